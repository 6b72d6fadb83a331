// Texts run as for embed(); the state of each token becomes a vector.
#include "outputs/token_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/checks.h"
#include "engine/kernels/kernels.h"
#include "files/refuse.h"

namespace phasor {

using namespace internal;

// The scores of attention, of which the largest of each query is kept.
double maxsim(std::span<const float> query, std::span<const float> document, int64_t width) {
  if (width < 1 || std::ssize(query) % width != 0 || std::ssize(document) % width != 0) {
    refuse<InvalidArgument>("{} and {} numbers are no whole vectors of width {}", query.size(),
                            document.size(), width);
  }
  constexpr int64_t kBlockKeys = 128;
  const int64_t num_queries = std::ssize(query) / width, num_keys = std::ssize(document) / width;
  const int64_t lanes = kernels().tile_queries;
  const AttentionProducts& products = kernels().products;
  const int64_t stride = packed_head_stride(products, width);
  std::vector<float> keys(kBlockKeys * stride), tile(kBlockKeys * lanes), scratch(stride * lanes);
  std::vector<float> rows(num_queries * stride);  // with room behind the last one
  for (int64_t i = 0; i < num_queries; ++i)
    std::ranges::copy(query.subspan(i * width, width), rows.begin() + i * stride);
  std::vector<float> best(num_queries, -std::numeric_limits<float>::infinity());
  for (int64_t first = 0; first < num_keys; first += kBlockKeys) {
    const int64_t count = std::min(kBlockKeys, num_keys - first);
    products.pack_keys(&document[first * width], count, width, width, stride, keys.data());
    for (int64_t i = 0; i < num_queries; i += lanes) {
      const int64_t taken = std::min(lanes, num_queries - i);
      products.scores(&rows[i * stride], stride, taken, keys.data(), count, width, stride, 1.0F,
                      scratch.data(), tile.data());
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t q = 0; q < taken; ++q)
          best[i + q] = std::max(best[i + q], tile[j * lanes + q]);
      }
    }
  }
  return num_keys == 0 ? 0 : std::accumulate(best.begin(), best.end(), 0.0);
}

std::vector<float> maxsim(std::span<const float> query, const TokenRows& documents, bool mean,
                          int threads) {
  Team team(team_size(threads));
  return maxsim(query, documents, mean, Threads(team));
}

namespace internal {

std::vector<float> maxsim(std::span<const float> query, const TokenRows& documents, bool mean,
                          const Threads& threads) {
  const int64_t width = std::max<int64_t>(documents.width, 1);
  const double divisor = mean ? static_cast<double>(std::ssize(query) / width) : 1.0;
  std::vector<float> scores(documents.size());
  threads.run(documents.size(), [&](int64_t i, int) {
    const double sum = phasor::maxsim(query, documents[i], documents.width);
    scores[i] = static_cast<float>(sum / std::max(divisor, 1.0));
  });
  return scores;
}

TokenHead::TokenHead(const Runner& runner, int64_t num_texts, const TokenVectorConfig* config,
                     bool is_query)
    : runner_(runner),
      config_(config),
      side_(config != nullptr ? &config->side(is_query) : nullptr),
      width_(config != nullptr ? config->width() : runner.model().config().d_model),
      parts_(num_texts) {}

TokenRows TokenHead::finish() {
  TokenRows result;
  result.width = width_;
  for (const Part& part : parts_)
    result.offsets.push_back(result.offsets.back() + std::ssize(part.ids));
  result.values.reserve(result.offsets.back() * width_);
  const auto move_to = [](auto& all, auto part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  for (Part& part : parts_) {
    move_to(result.values, std::exchange(part.values, {}));
    move_to(result.ids, std::exchange(part.ids, {}));
    move_to(result.spans, std::exchange(part.spans, {}));
  }
  return result;
}

void TokenHead::take(const TextStates& batch) {
  std::vector<float> projected;
  std::span<const float> rows = batch.states;
  if (config_ != nullptr) {
    projected = runner_.run_head(Head::kTokenVectors, batch.states);
    check_finite_logits(projected, config_->source);
    rows = projected;
  }
  const bool skips_first = config_ != nullptr && config_->skips_first;
  for_each_text(runner_.threads(), batch.size(), [&](int64_t text) {
    for (int64_t t = batch.offsets[text] + (skips_first ? 1 : 0); t < batch.offsets[text + 1]; ++t)
      add(batch, t, rows, parts_[batch.texts[text]]);
  });
}

void TokenHead::add(const TextStates& batch, int64_t t, std::span<const float> rows,
                    Part& part) const {
  if (side_ != nullptr && std::ranges::binary_search(side_->skipped, batch.token_ids[t])) return;
  const std::span<const float> row = rows.subspan(t * width_, width_);
  if (config_ != nullptr && config_->unit_length) {
    const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
    const double length = std::max(std::sqrt(squares), 1e-12);
    for (const float x : row) part.values.push_back(static_cast<float>(x / length));
  } else {
    part.values.insert(part.values.end(), row.begin(), row.end());
  }
  part.ids.push_back(batch.token_ids[t]);
  if (!batch.spans.empty()) part.spans.push_back(batch.spans[t]);
}

}  // namespace internal
}  // namespace phasor
