// Texts run as for embed(); the state of each token becomes a vector.
#include "outputs/token_vectors.h"

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

namespace internal {

TokenVectorHead::TokenVectorHead(const Model& model, const Threads& threads, int64_t num_texts,
                                 bool is_query, HeadOfStates project)
    : config_(model.token_vectors()),
      side_(config_.side(is_query)),
      threads_(threads),
      project_(std::move(project)),
      parts_(num_texts) {}

/// The texts' vectors end to end.
TokenVectors TokenVectorHead::finish(std::vector<TextReport> reports) {
  result_.reports = std::move(reports);
  result_.width = config_.width();
  for (const Part& part : parts_)
    result_.offsets.push_back(result_.offsets.back() + std::ssize(part.token_ids));
  result_.values.reserve(result_.offsets.back() * result_.width);
  const auto move_to = [](auto& all, auto part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  for (Part& part : parts_) {
    move_to(result_.values, std::exchange(part.values, {}));
    move_to(result_.token_ids, std::exchange(part.token_ids, {}));
    move_to(result_.spans, std::exchange(part.spans, {}));
  }
  return std::move(result_);
}

void TokenVectorHead::take(const TextStates& batch) {
  const std::vector<float> rows = project_(batch.states);
  check_finite_logits(rows, config_.source);
  for_each_text(threads_, std::ssize(batch.texts), [&](int64_t text) {
    const int64_t begin = batch.offsets[text], end = batch.offsets[text + 1];
    for (int64_t t = begin + (config_.skips_first ? 1 : 0); t < end; ++t)
      add(batch, t, rows, parts_[batch.texts[text]]);
  });
}

/// The vector of token t of a batch.
void TokenVectorHead::add(const TextStates& batch, int64_t t, std::span<const float> rows,
                          Part& part) const {
  if (std::ranges::binary_search(side_.skipped, batch.token_ids[t])) return;
  const int64_t width = config_.width();
  const std::span<const float> row = rows.subspan(t * width, width);
  const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
  const double length = config_.unit_length ? std::max(std::sqrt(squares), 1e-12) : 1;
  for (const float x : row) part.values.push_back(static_cast<float>(x / length));
  part.token_ids.push_back(batch.token_ids[t]);
  if (!batch.spans.empty()) part.spans.push_back(batch.spans[t]);
}

}  // namespace internal
}  // namespace phasor
