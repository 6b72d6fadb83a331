// Texts to vectors: tokenized, sorted by length, run in batches, put in order.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/parallel_for.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"

namespace phasor {

struct internal::EmbeddingsData {
  int64_t width = 0;
  std::vector<float> own_values;    // [B, E]; empty where the caller gave memory
  std::span<float> values;          // [B, E]
  std::vector<TextReport> reports;  // [B]
};

namespace {

constexpr int64_t kWindowTexts = 4096;  // that are tokenized at once
constexpr int64_t kBatchTokens = 8192;  // that are run at once
constexpr int64_t kLongestText = 2048;  // in tokens, where a checkpoint sets no limit at all

const Pooling& pooling_of(const EmbedOptions& options, const Model& model) {
  return options.pooling ? *options.pooling : model.sentence().pooling;
}

std::string prompt_of(const EmbedOptions& options, const Model& model) {
  if (options.prompt) return *options.prompt;
  return model.has_sentence() ? model.sentence().prompt : std::string();
}

/// As sentence-transformers: max_seq_length, or else what the model was trained on. 0: no limit.
int64_t longest_text(const EmbedOptions& options, const Model& model) {
  const bool cuts = options.overflow == Overflow::kTruncate || options.overflow == Overflow::kError;
  if (options.max_tokens < 0) {
    throw InvalidArgument(fmt::format("max_tokens is {}; it must be 0 (the model's own) or more",
                                      options.max_tokens));
  }
  int64_t longest = options.max_tokens;
  if (longest == 0 && !cuts) return 0;
  if (longest == 0 && model.has_sentence()) longest = model.sentence().max_tokens;
  if (longest == 0) longest = model.config().max_positions;
  if (longest == 0) longest = kLongestText;
  if (!cuts) return longest;
  return std::min(longest, model.max_tokens(options.positions).value_or(longest));
}

/// The token ids of some of the texts, and what became of those.
class Tokenized {
 public:
  Tokenized(const Model& model, const EmbedOptions& options)
      : model_(model),
        prompt_(prompt_of(options, model)),
        max_tokens_(longest_text(options, model)),
        refuses_(options.overflow == Overflow::kError) {}

  /// Tokenizes `texts` in place of those before, on so many threads; the first of them is text
  /// number `first` of the call. What became of each goes to `reports`.
  void assign(std::span<const std::string_view> texts, int64_t first, int threads,
              std::span<TextReport> reports) {
    sequences_.assign(texts.size(), {});
    internal::parallel_for(std::ssize(texts), threads, [&](int64_t i) {
      reports[i] = tokenize(texts[i], first + i, sequences_[i]);
    });
  }

  const std::vector<int32_t>& sequence(size_t i) const { return sequences_[i]; }
  /// The texts' numbers, the longest first: what is run together is of like length.
  std::vector<size_t> by_length() const {
    std::vector<size_t> order(sequences_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return sequences_[i].size(); });
    return order;
  }

 private:
  TextReport tokenize(std::string_view text, int64_t number, std::vector<int32_t>& ids) const {
    Tokens tokens;
    try {
      tokens = model_.tokenizer().encode(prompt_ + std::string(text),
                                         {.max_tokens = refuses_ ? 0 : max_tokens_});
    } catch (const InvalidArgument& error) {
      if (error.code() != ErrorCode::kEmptyText) throw;
    }
    const int64_t vocab_size = model_.config().vocab_size;
    const auto bad = std::ranges::find_if(tokens.ids, [&](int32_t id) { return id >= vocab_size; });
    if (bad != tokens.ids.end()) {
      throw InvalidArgument(
          fmt::format("text {}: its token {} is none of the model's {}; the tokenizer is another "
                      "model's",
                      number, *bad, vocab_size));
    }
    if (refuses_ && std::ssize(tokens.ids) > max_tokens_) {
      throw InvalidArgument(
          fmt::format("text {}: {} tokens are too many: at most {} are run; shorten it or choose "
                      "another overflow policy (truncate, clamp, interpolate, window)",
                      number, tokens.ids.size(), max_tokens_),
          ErrorCode::kTooLong);
    }
    ids = std::move(tokens.ids);
    return {.num_tokens = std::ssize(ids),
            .dropped_tokens = tokens.dropped,
            .invalid_bytes = tokens.invalid_bytes};
  }

  const Model& model_;
  const std::string prompt_;
  const int64_t max_tokens_;  // 0: no limit
  const bool refuses_;
  std::vector<std::vector<int32_t>> sequences_;
};

}  // namespace

Embeddings::Embeddings(std::shared_ptr<const internal::EmbeddingsData> data)
    : data_(std::move(data)) {}
int64_t Embeddings::size() const { return std::ssize(data_->reports); }
int64_t Embeddings::width() const { return data_->width; }
std::span<const float> Embeddings::values() const& { return data_->values; }
const TextReport& Embeddings::report(int64_t i) const& { return data_->reports.at(i); }
std::span<const float> Embeddings::operator[](int64_t i) const& {
  report(i);
  return values().subspan(i * width(), width());
}

int64_t Encoder::embedding_width(const EmbedOptions& options) const {
  return pooling_of(options, model()).width(model().config().d_model);
}

Embeddings Encoder::embed(const Texts& texts, const EmbedOptions& options) {
  const std::span<const std::string_view> all = texts.get();
  const auto data = std::make_shared<internal::EmbeddingsData>();
  data->width = embedding_width(options);
  data->reports.resize(all.size());
  const int64_t num_values = std::ssize(all) * data->width;
  if (!options.output.empty() && std::ssize(options.output) != num_values) {
    throw InvalidArgument(
        fmt::format("the memory for vectors has {} floats; {} vectors of width {} take {}",
                    options.output.size(), all.size(), data->width, num_values));
  }
  if (options.output.empty()) data->own_values.resize(num_values);
  data->values = options.output.empty() ? std::span(data->own_values) : options.output;

  RunOptions run{.positions = options.positions,
                 .overflow = options.overflow,
                 .pooling = pooling_of(options, model()),
                 .stop = options.stop};
  Tokenized tokenized(model(), options);
  std::vector<float> hidden;  // of a batch; one for all
  int64_t done = 0;
  const auto tell = [&](int64_t count) {
    done += count;
    if (options.progress) options.progress(done, std::ssize(all));
  };
  for (size_t first = 0; first < all.size(); first += kWindowTexts) {
    const size_t count = std::min<size_t>(kWindowTexts, all.size() - first);
    tokenized.assign(all.subspan(first, count), static_cast<int64_t>(first), threads(),
                     std::span(data->reports).subspan(first, count));
    const std::vector<size_t> order = tokenized.by_length();
    for (size_t begin = 0; begin < count;) {
      std::vector<int32_t> token_ids;
      std::vector<int64_t> offsets = {0};
      size_t end = begin;
      for (; end < count; ++end) {
        const std::vector<int32_t>& ids = tokenized.sequence(order[end]);
        const bool full = std::ssize(token_ids) + std::ssize(ids) > kBatchTokens;
        if (ids.empty() || (full && end > begin)) break;
        token_ids.insert(token_ids.end(), ids.begin(), ids.end());
        offsets.push_back(std::ssize(token_ids));
      }
      if (end == begin) break;  // the others have no tokens
      hidden.resize(token_ids.size() * model().config().d_model);
      run.hidden = hidden;
      const Encoding encoding = encode_ids(token_ids, offsets, run);
      for (size_t i = begin; i < end; ++i) {
        const auto vector = encoding.embedding(static_cast<int64_t>(i - begin));
        std::ranges::copy(vector, &data->values[(first + order[i]) * data->width]);
      }
      tell(static_cast<int64_t>(end - begin));
      begin = end;
    }
    for (size_t i = 0; i < count; ++i) {
      if (!tokenized.sequence(i).empty()) continue;
      std::ranges::fill(data->values.subspan((first + i) * data->width, data->width), 0.0f);
      tell(1);
    }
  }
  return Embeddings(data);
}

}  // namespace phasor
