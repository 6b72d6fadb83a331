// The options of commands that read texts as Encoder's calls do, from the table in
// phasor/fields.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "infer/cli/command_line.h"
#include "phasor/fields.h"
#include "phasor/options.h"

namespace infer {

/// The option of a field: "--max-tokens", or with the other name that it has, "--prompt,--prefix".
std::string option_of(const phasor::Field& field);
/// Half a sentence with the values.
std::string help_of(const phasor::Field& field);

/// The commands that have it, "embed --kinds tokens,states" or "label".
std::vector<std::string> commands_of(const phasor::Field& field);

/// Adds the options of the fields that have one of the uses.
void add_fields(CommandLine& line, uint32_t uses, phasor::TextOptions& options);

/// After parse(). Throws UsageError where check_fields() throws: before a model is loaded.
void check_options(const phasor::TextOptions& options, uint32_t uses, std::string_view command);

}  // namespace infer
