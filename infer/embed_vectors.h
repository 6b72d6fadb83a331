// From lines of text to vectors: cut, tokenized, sorted by length, run in batches, put in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/embed_lines.h"
#include "phasor/encoder.h"

namespace infer {

struct EmbedOptions {
  phasor::Pooling pooling;
  phasor::Overflow overflow = phasor::Overflow::kTruncate;
  std::string prefix;  // put before every line
};

/// What was odd about a line; nothing was where all is 0.
struct LineReport {
  int64_t tokens_left_out = 0;
  int64_t bytes_left_out = 0;  // of a line longer than a line may be
  int64_t invalid_bytes = 0;   // read as U+FFFD
  bool no_tokens = false;      // not even special ones: the vector is zeros

  bool cut() const { return tokens_left_out > 0 || bytes_left_out > 0; }
  bool odd() const { return cut() || invalid_bytes > 0 || no_tokens; }
  std::string text() const;
};

/// Embeds lines with one Encoder.
class LineEmbedder {
 public:
  LineEmbedder(phasor::Encoder& encoder, EmbedOptions options);

  int64_t width() const;

  struct Result {
    std::vector<float> vectors;       // [lines, width], in order
    std::vector<LineReport> reports;  // [lines]
  };
  /// `first_line` is the number of the first line in messages. Stops early, with fewer vectors than
  /// lines, where `stop` says so between two batches. Throws InvalidArgument for a line that is too
  /// long under Overflow::kError.
  std::optional<Result> embed(std::span<const Line> lines, int64_t first_line,
                              const std::function<bool()>& stop) const;

 private:
  std::vector<int32_t> tokenize(const Line& line, int64_t number, LineReport& report) const;

  phasor::Encoder& encoder_;
  EmbedOptions options_;
  /// The longest line in tokens, as sentence-transformers has it; empty where another overflow
  /// policy than kTruncate and kError decides.
  std::optional<int64_t> max_tokens_;
};

}  // namespace infer
