// From lines of text to vectors: cut, tokenized, sorted by length, run in batches, put in order.
#include "infer/embed_vectors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "infer/input.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::Overflow;

constexpr int64_t kBatchTokens = 8192;  // that are run at once
constexpr int64_t kLongestText = 2048;  // in tokens, where a checkpoint sets no limit at all

/// As sentence-transformers: max_seq_length, or else what the model was trained on.
int64_t longest_text(const phasor::Encoder& encoder) {
  const phasor::Model& model = encoder.model();
  int64_t longest = model.config().max_positions > 0 ? model.config().max_positions : kLongestText;
  if (model.has_sentence() && model.sentence().max_tokens > 0) {
    longest = model.sentence().max_tokens;
  }
  return std::min(longest, encoder.max_tokens().value_or(longest));
}

/// The sequences' indices, the longest first: what is run together is of like length.
std::vector<size_t> by_length(const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sequences[a].size() > sequences[b].size(); });
  return order;
}

}  // namespace

std::string LineReport::text() const {
  std::vector<std::string> parts;
  if (bytes_left_out > 0) {
    parts.push_back(fmt::format("its last {} bytes were left out: lines are read up to {}",
                                bytes_left_out, LineReader::kMaxBytes));
  }
  if (tokens_left_out == 1) parts.emplace_back("its last token was cut off");
  if (tokens_left_out > 1) {
    parts.push_back(fmt::format("its last {} tokens were cut off", tokens_left_out));
  }
  if (invalid_bytes > 0) parts.push_back(invalid_bytes_note(invalid_bytes));
  if (no_tokens) parts.emplace_back("it has no tokens; its vector is zeros");
  return fmt::format("{}", fmt::join(parts, "; "));
}

LineEmbedder::LineEmbedder(phasor::Encoder& encoder, EmbedOptions options)
    : encoder_(encoder), options_(std::move(options)) {
  if (options_.overflow == Overflow::kTruncate || options_.overflow == Overflow::kError) {
    max_tokens_ = longest_text(encoder);
  }
}

int64_t LineEmbedder::width() const {
  return options_.pooling.width(encoder_.model().config().d_model);
}

std::vector<int32_t> LineEmbedder::tokenize(const Line& line, int64_t number,
                                            LineReport& report) const {
  report.bytes_left_out = line.left_out;
  const bool truncates = options_.overflow == Overflow::kTruncate;
  phasor::Tokens tokens;
  try {
    tokens = encoder_.model().tokenizer().encode(options_.prefix + line.text,
                                                 {.max_tokens = truncates ? *max_tokens_ : 0});
  } catch (const phasor::InvalidArgument&) {  // a tokenizer without special tokens, an empty line
    report.no_tokens = true;
    return {};
  }
  report.tokens_left_out = tokens.dropped;
  report.invalid_bytes = tokens.invalid_bytes;
  const int64_t vocab_size = encoder_.model().config().vocab_size;
  for (const int32_t id : tokens.ids) {
    if (id < vocab_size) continue;
    throw phasor::InvalidArgument(
        fmt::format("line {}: its token {} is none of the model's {}; the tokenizer is another "
                    "model's",
                    number, id, vocab_size));
  }
  if (options_.overflow == Overflow::kError && std::ssize(tokens.ids) > *max_tokens_) {
    throw phasor::InvalidArgument(
        fmt::format("line {}: {} tokens are too many: at most {} are run; shorten it or choose "
                    "another --overflow (truncate, clamp, interpolate, window)",
                    number, tokens.ids.size(), *max_tokens_));
  }
  return std::move(tokens.ids);
}

std::optional<LineEmbedder::Result> LineEmbedder::embed(std::span<const Line> lines,
                                                        int64_t first_line,
                                                        const std::function<bool()>& stop) const {
  Result result{.vectors = std::vector<float>(lines.size() * width()),
                .reports = std::vector<LineReport>(lines.size())};
  std::vector<std::vector<int32_t>> sequences;
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t number = first_line + static_cast<int64_t>(i);
    sequences.push_back(tokenize(lines[i], number, result.reports[i]));
  }
  const phasor::RunOptions run{.overflow = options_.overflow, .pooling = options_.pooling};
  const std::vector<size_t> order = by_length(sequences);
  for (size_t begin = 0, end = 0; begin < order.size() && !sequences[order[begin]].empty();
       begin = end) {
    if (stop()) return std::nullopt;
    std::vector<std::vector<int32_t>> batch;
    for (int64_t tokens = 0; end < order.size() && tokens < kBatchTokens; ++end) {
      std::vector<int32_t>& sequence = sequences[order[end]];
      if (sequence.empty()) break;
      tokens += std::ssize(sequence);
      batch.push_back(std::move(sequence));
    }
    const phasor::Encoding encoding = encoder_.encode_ids(batch, run);
    for (size_t i = begin; i < end; ++i) {
      std::ranges::copy(encoding.embedding(static_cast<int64_t>(i - begin)),
                        result.vectors.begin() + static_cast<std::ptrdiff_t>(order[i]) * width());
    }
  }
  return result;
}

}  // namespace infer
