// Texts are tokenized, sorted by length, run in batches, and put in order.

#include "engine/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "engine/parallel_for.h"
#include "phasor/errors.h"

namespace phasor {

namespace internal {
namespace {

constexpr int64_t kWindowTexts = 4096;  // tokenized at once
constexpr int64_t kBatchTokens = 8192;  // run at once
constexpr int64_t kLongestText = 2048;  // in tokens, if a checkpoint sets no limit

const Pooling& pooling_of(const EmbedOptions& options, const Model& model) {
  return options.pooling ? *options.pooling : model.sentence().pooling;
}

std::string prompt_of(const EmbedOptions& options, const Model& model) {
  if (options.prompt) return *options.prompt;
  return model.has_sentence() ? model.sentence().prompt : std::string();
}

/// As sentence-transformers: max_seq_length, or else what the model was trained on. 0: no limit.
int64_t longest_text(const EmbedOptions& options, const Model& model) {
  const bool runs_all =
      options.overflow == Overflow::kClamp || options.overflow == Overflow::kInterpolate;
  if (options.max_tokens < 0) {
    throw InvalidArgument(fmt::format("max_tokens is {}; it must be 0 (the model's own) or more",
                                      options.max_tokens));
  }
  int64_t longest = options.max_tokens;
  if (runs_all) return longest;
  if (longest == 0 && model.has_sentence()) longest = model.sentence().max_tokens;
  if (longest == 0) longest = model.config().max_positions;
  if (longest == 0) longest = kLongestText;
  return std::min(longest, model.max_tokens(options.positions).value_or(longest));
}

/// The token ids of some of the texts, and reports on them.
class Tokenized {
 public:
  Tokenized(const Model& model, const EmbedOptions& options)
      : model_(model),
        prompt_(prompt_of(options, model)),
        max_tokens_(longest_text(options, model)),
        cuts_(options.overflow != Overflow::kError && options.overflow != Overflow::kWindow),
        refuses_(options.overflow == Overflow::kError) {}

  /// 0: no limit.
  int64_t max_tokens() const { return max_tokens_; }

  /// Tokenizes `texts` on that many threads, replacing the previous ones; the first is text number
  /// `first` of the call. Writes a report for each to `reports`.
  void assign(std::span<const std::string_view> texts, int64_t first, int threads,
              std::span<TextReport> reports) {
    sequences_.assign(texts.size(), {});
    parallel_for(std::ssize(texts), threads,
                 [&](int64_t i) { reports[i] = tokenize(texts[i], first + i, sequences_[i]); });
  }

  const std::vector<int32_t>& sequence(size_t i) const { return sequences_[i]; }
  /// The texts' numbers, longest first, so that texts of similar length run together.
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
                                         {.max_tokens = cuts_ ? max_tokens_ : 0});
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
  const int64_t max_tokens_;
  const bool cuts_, refuses_;
  std::vector<std::vector<int32_t>> sequences_;
};

/// One call of embed(): tokenizes one window of texts after another and runs it in batches.
class EmbedRun {
 public:
  /// Borrows its arguments.
  EmbedRun(const Model& model, int threads, std::span<const std::string_view> texts,
           const EmbedOptions& options, const EncodeBatch& encode, EmbeddingsData& data)
      : model_(model),
        threads_(threads),
        texts_(texts),
        options_(options),
        encode_(encode),
        data_(data),
        tokenized_(model, options),
        run_{.positions = options.positions,
             .overflow = options.overflow,
             .pooling = pooling_of(options, model),
             .stop = options.stop} {}

  void operator()() {
    for (int64_t first = 0; first < std::ssize(texts_); first += kWindowTexts) {
      window(first, std::min(kWindowTexts, std::ssize(texts_) - first));
    }
  }

 private:
  void window(int64_t first, int64_t count) {
    tokenized_.assign(texts_.subspan(first, count), first, threads_,
                      std::span(data_.reports).subspan(first, count));
    const std::vector<size_t> order = tokenized_.by_length();
    std::span<const size_t> left = order;
    while (!left.empty() && !tokenized_.sequence(left.front()).empty()) {
      left = left.subspan(batch(first, left));
    }
    for (const size_t i : left) std::ranges::fill(vector(first + i), 0.0f);  // no tokens
    if (!left.empty()) tell(std::ssize(left));
  }

  /// Runs as many texts from the front as fit into one batch; returns their number.
  int64_t batch(int64_t first, std::span<const size_t> order) {
    token_ids_.clear();
    offsets_ = {0};
    for (const size_t i : order) {
      const std::vector<int32_t>& ids = tokenized_.sequence(i);
      const bool full = std::ssize(token_ids_) + std::ssize(ids) > kBatchTokens;
      if (ids.empty() || (full && !token_ids_.empty())) break;
      token_ids_.insert(token_ids_.end(), ids.begin(), ids.end());
      offsets_.push_back(std::ssize(token_ids_));
    }
    hidden_.resize(token_ids_.size() * model_.config().d_model);
    run_.hidden = hidden_;
    const Encoding encoding = encode_({token_ids_, offsets_}, run_, tokenized_.max_tokens());
    for (int64_t i = 0; i < encoding.num_sequences(); ++i) {
      std::ranges::copy(encoding.embedding(i), vector(first + order[i]).begin());
    }
    tell(encoding.num_sequences());
    return encoding.num_sequences();
  }

  std::span<float> vector(int64_t text) {
    return data_.values.subspan(text * data_.width, data_.width);
  }
  void tell(int64_t count) {
    done_ += count;
    if (options_.progress) options_.progress(done_, std::ssize(texts_));
  }

  const Model& model_;
  const int threads_;
  std::span<const std::string_view> texts_;
  const EmbedOptions& options_;
  const EncodeBatch& encode_;
  EmbeddingsData& data_;
  Tokenized tokenized_;
  RunOptions run_;
  std::vector<int32_t> token_ids_;  // of a batch, like the next two: reused for all
  std::vector<int64_t> offsets_;
  std::vector<float> hidden_;
  int64_t done_ = 0;
};

}  // namespace

int64_t embedding_width(const Model& model, const EmbedOptions& options) {
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  const int64_t width = pooling_of(options, model).width(model.config().d_model);
  if (width < 1 || width > kMostColumns) {
    throw InvalidArgument(fmt::format("the pooling makes vectors of width {}; it must be 1 to {}",
                                      width, kMostColumns));
  }
  return width;
}

std::shared_ptr<const EmbeddingsData> embed(const Model& model, int threads,
                                            std::span<const std::string_view> texts,
                                            const EmbedOptions& options,
                                            const EncodeBatch& encode) {
  const auto data = std::make_shared<EmbeddingsData>();
  data->width = embedding_width(model, options);
  data->reports.resize(texts.size());
  const int64_t num_values = std::ssize(texts) * data->width;
  if (!options.output.empty() && std::ssize(options.output) != num_values) {
    throw InvalidArgument(
        fmt::format("the memory for vectors has {} floats; {} vectors of width {} take {}",
                    options.output.size(), texts.size(), data->width, num_values));
  }
  if (options.output.empty()) data->own_values.resize(num_values);
  data->values = options.output.empty() ? std::span(data->own_values) : options.output;
  EmbedRun(model, threads, texts, options, encode, *data)();
  return data;
}

}  // namespace internal

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

}  // namespace phasor
