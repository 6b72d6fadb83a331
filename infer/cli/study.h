// The words of the library's studies that infer uses, too.
#pragma once

#include "lens/study/many.h"
#include "lens/study/measures.h"
#include "lens/study/stages.h"
#include "lens/study/text.h"
#include "lens/views/json.h"
#include "lens/views/view.h"

namespace infer {

using phasor::internal::Baseline;
using phasor::internal::batches_of;
using phasor::internal::BlockPart;
using phasor::internal::Chart;
using phasor::internal::Column;
using phasor::internal::describe_positions;
using phasor::internal::described;
using phasor::internal::Deviation;
using phasor::internal::deviations;
using phasor::internal::ends_with_table;
using phasor::internal::Filler;
using phasor::internal::HeadNumber;
using phasor::internal::Input;
using phasor::internal::input_from_ids;
using phasor::internal::input_from_text;
using phasor::internal::kFarthestOffset;
using phasor::internal::label_of;
using phasor::internal::layout_name;
using phasor::internal::MaskReport;
using phasor::internal::most_positional_head;
using phasor::internal::Needs;
using phasor::internal::observe_runs;
using phasor::internal::Observed;
using phasor::internal::Request;
using phasor::internal::Row;
using phasor::internal::Rows;
using phasor::internal::Stages;
using phasor::internal::Subject;
using phasor::internal::Table;
using phasor::internal::text_places;
using phasor::internal::token_ids_of;
using phasor::internal::trained_length;
using phasor::internal::view;
using phasor::internal::View;
using phasor::internal::views;
using phasor::internal::views_help;
using phasor::internal::views_json;

}  // namespace infer
