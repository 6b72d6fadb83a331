// What infer uses of the room files/ by its bare name.
#pragma once

#include "files/files.h"
#include "files/matrix_file.h"

namespace infer {

using phasor::internal::as_input;
using phasor::internal::is_table_file;
using phasor::internal::read_table;
using phasor::internal::why_not_opened;

}  // namespace infer
