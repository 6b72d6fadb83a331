// The words of the library's lens that infer uses, too.
#pragma once

#include "lens/study/observed.h"
#include "lens/study/run.h"
#include "lens/study/text.h"
#include "lens/views/differences.h"
#include "phasor/lens/observe.h"

namespace infer {

namespace lens = phasor::lens;

using lens::Chart;
using lens::Column;
using lens::Filler;
using lens::Needs;
using lens::Observed;
using lens::Row;
using lens::Rows;
using lens::Table;
using lens::View;
using phasor::internal::batches_of;
using phasor::internal::conclusions;
using phasor::internal::describe_positions;
using phasor::internal::described;
using phasor::internal::differences;
using phasor::internal::ends_with_table;
using phasor::internal::for_each_number;
using phasor::internal::HeadNumber;
using phasor::internal::keep_views;
using phasor::internal::label_of;
using phasor::internal::lacking;
using phasor::internal::Lacks;
using phasor::internal::layout_name;
using phasor::internal::lead_name;
using phasor::internal::most_positional_head;
using phasor::internal::number_text;
using phasor::internal::short_name;
using phasor::internal::small_number;
using phasor::internal::trained_length;
using phasor::internal::view;

}  // namespace infer
