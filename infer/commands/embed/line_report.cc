// The clauses about one line.
#include "infer/commands/embed/line_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "infer/cli/input.h"
#include "infer/commands/embed/embed_lines.h"

namespace infer {

std::string LineReport::text() const {
  std::vector<std::string> parts;
  if (bytes_left_out > 0) {
    parts.push_back(fmt::format("its last {} bytes were left out: lines are read up to {}",
                                bytes_left_out, LineReader::kMaxBytes));
  }
  if (tokens.dropped_tokens == 1) parts.emplace_back("its last token was cut off");
  if (tokens.dropped_tokens > 1) {
    parts.push_back(fmt::format("its last {} tokens were cut off", tokens.dropped_tokens));
  }
  if (tokens.invalid_bytes > 0) parts.push_back(invalid_bytes_note(tokens.invalid_bytes));
  if (has_no_tokens()) parts.emplace_back("it has no tokens; its vector is zeros");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace infer
