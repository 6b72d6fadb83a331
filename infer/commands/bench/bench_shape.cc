// The batches that infer bench runs: their names, and token ids for them.
#include "infer/commands/bench/bench_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>

#include "infer/commands.h"

namespace infer {
namespace {

constexpr std::string_view kRagged = "ragged:";
constexpr int64_t kMostTokens = 1 << 20;

/// A whole number from 1 to kMostTokens.
std::optional<int64_t> parse_size(std::string_view text) {
  int64_t size = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), size);
  const bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole && size >= 1 && size <= kMostTokens ? std::optional(size) : std::nullopt;
}

/// The parts round the first `separator`; the second is empty where there is none.
std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw UsageError(
      fmt::format("--shape '{}': {}; write 32x128 for 32 sequences of 128 tokens, "
                  "ragged:4-60x64 for 64 of 4 to 60",
                  name, why));
}

}  // namespace

int64_t BenchShape::num_tokens() const {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

int64_t BenchShape::max_tokens() const { return *std::max_element(lengths.begin(), lengths.end()); }

BenchShape parse_shape(const std::string& name) {
  const bool ragged = name.starts_with(kRagged);
  const auto [left, right] = split(std::string_view(name).substr(ragged ? kRagged.size() : 0), 'x');
  const auto [shortest, longest] = split(ragged ? left : right, '-');
  const auto count = parse_size(ragged ? right : left);
  const auto from = parse_size(shortest);
  const auto to = ragged ? parse_size(longest) : from;
  if (!count || !from || !to || (!ragged && right != shortest)) {
    refuse(name, fmt::format("sizes are whole numbers from 1 to {}", kMostTokens));
  }
  if (*from > *to) refuse(name, fmt::format("{} is more than {}", *from, *to));
  if (*count * *to > kMostTokens) {
    refuse(name, fmt::format("a batch has at most {} tokens", kMostTokens));
  }
  BenchShape shape{name, std::vector<int64_t>(*count, *from)};
  std::mt19937_64 random(1);
  for (int64_t& length : shape.lengths)
    length += static_cast<int64_t>(random() % (*to - *from + 1));
  return shape;
}

std::vector<std::vector<int32_t>> draw_token_ids(const BenchShape& shape,
                                                 const phasor::ModelConfig& config) {
  std::mt19937_64 random(2);
  const auto draw = [&] { return static_cast<int32_t>(random() % config.vocab_size); };
  std::vector<std::vector<int32_t>> sequences;
  for (const int64_t length : shape.lengths) {
    auto& ids = sequences.emplace_back(length);
    for (int32_t& id : ids) {
      do id = draw();
      while (id == config.position.uncounted_token && config.vocab_size > 1);
    }
  }
  return sequences;
}

}  // namespace infer
