// Texts are tokenized, sorted by length, run in batches, and put in order.

#include "outputs/embed.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "engine/encoding.h"
#include "engine/packed_weights.h"
#include "engine/workspace.h"
#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor {

namespace internal {
namespace {

constexpr int64_t kWindowTexts = 4096;  // tokenized at once
constexpr int64_t kBatchTokens = 8192;  // run at once, about, unless their states have more than
constexpr int64_t kBatchNumbers = int64_t{16} << 20;
constexpr int64_t kLongestText = 2048;  // in tokens, if a checkpoint sets no limit

const Pooling& pooling_of(const EmbedOptions& options, const Model& model) {
  return options.pooling ? *options.pooling : model.sentence().pooling;
}

}  // namespace

int64_t longest_text(const EmbedOptions& options, const Model& model, int threads) {
  const bool runs_all =
      options.overflow == Overflow::kClamp || options.overflow == Overflow::kInterpolate;
  if (options.max_tokens < 0) {
    refuse<InvalidArgument>("max_tokens is {}; it must be 0 (the model's own) or more",
                            options.max_tokens);
  }
  int64_t longest = options.max_tokens;
  if (runs_all) return longest;
  if (longest == 0) longest = model.text().max_tokens;
  if (longest == 0) longest = model.config().max_positions;
  if (longest == 0) longest = kLongestText;
  longest = std::min(longest, model.max_tokens(options.positions).value_or(longest));
  return affordable_tokens(longest, model, threads);
}

namespace {

/// The token ids of some of the texts, and reports on them.
class Tokenized {
 public:
  /// Borrows the input.
  Tokenized(const Model& model, const EmbedInput& input, const EmbedOptions& options,
            const EmbedHead* head, int threads)
      : model_(model),
        input_(input),
        takes_empty_(head == nullptr || head->take),
        prompt_(options.prompt.value_or(model.text().prompt)),
        max_tokens_(longest_text(options, model, threads)),
        cuts_(options.overflow != Overflow::kError && options.overflow != Overflow::kWindow),
        refuses_(options.overflow == Overflow::kError),
        edit_(head == nullptr ? TokenEdit() : head->edit),
        how_{.parse_special = options.parse_special,
             .ids_only = true,
             .max_tokens = cuts_ ? most_without_marker() : 0,
             .prompt_bytes = std::ssize(prompt_),
             .truncation_side = options.truncation_side,
             .no_special_tokens = !model.text().special_tokens,
             .offset_unit = head == nullptr ? OffsetUnit::kNone : head->offset_unit},
        prompt_tokens_(pooling_of(options, model).include_prompt ? 0 : count_prompt()),
        marker_place_(edit_.marker ? count_leading() : 0) {}

  /// 0: no limit.
  int64_t max_tokens() const { return max_tokens_; }
  /// The prompt's tokens in each text, counted like sentence-transformers: the prompt tokenized
  /// alone, less a special token at its end. 0 where it makes no difference.
  int64_t prompt_tokens() const { return prompt_tokens_; }

  /// Tokenizes texts `first`, `first` + 1, … on `threads`, replacing the previous ones.
  /// Writes a report for each to `reports`.
  void assign(int64_t first, const Threads& threads, std::span<TextReport> reports) {
    sequences_.assign(reports.size(), {});
    for_each_text(threads, std::ssize(reports),
                  [&](int64_t i) { reports[i] = tokenize(first + i, sequences_[i]); });
  }

  int64_t num_tokens() const {
    int64_t count = 0;
    for (const Sequence& sequence : sequences_) count += std::ssize(sequence.tokens.ids);
    return count;
  }
  struct Sequence {
    Tokens tokens;         // without types where all are 0, and without spans where nobody asks
    int64_t num_keys = 0;  // of the ids; the others are not attended to
  };
  const Sequence& operator[](size_t i) const { return sequences_[i]; }
  /// The texts' numbers, longest first, so that texts of similar length run together.
  std::vector<size_t> by_length() const {
    std::vector<size_t> order(sequences_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(),
                             [&](size_t i) { return sequences_[i].tokens.ids.size(); });
    return order;
  }

 private:
  int64_t count_prompt() const {
    const auto ids_of = [&](const std::string& text) {
      return tokens_or_none([&] { return model_.tokenizer().encode(text, how_); }).ids;
    };
    if (prompt_.empty()) return 0;
    const std::vector<int32_t> ids = ids_of(prompt_), special = ids_of("");
    const bool ends = !special.empty() && ids.back() == special.back();
    return std::ssize(ids) - (ends ? 1 : 0);
  }

  /// 0: no limit.
  int64_t most_without_marker() const {
    return edit_.marker && max_tokens_ > 0 ? std::max<int64_t>(max_tokens_ - 1, 1) : max_tokens_;
  }

  /// How many special tokens stand before a text.
  int64_t count_leading() const {
    TokenizeOptions how = how_;
    how.max_tokens = how.prompt_bytes = 0;
    how.offset_unit = OffsetUnit::kBytes;
    const Tokens tokens = model_.tokenizer().encode("a", how);
    return std::ranges::find(tokens.special, false) - tokens.special.begin();
  }

  Tokens encode(int64_t number) const {
    const std::string first =
        prompt_ + std::string(input_.first[input_.first.size() == 1 ? 0 : number]);
    return input_.second ? model_.tokenizer().encode_pair(first, (*input_.second)[number], how_)
                         : model_.tokenizer().encode(first, how_);
  }

  /// Spans in the text as it was given; those in the prompt are {0, 0}.
  std::vector<TextSpan> without_prompt(std::vector<TextSpan> spans) const {
    const int64_t length = how_.offset_unit == OffsetUnit::kBytes
                               ? std::ssize(prompt_)
                               : std::ranges::count(prompt_, false, is_inside_character);
    for (TextSpan& span : spans) {
      span.begin = std::max<int64_t>(span.begin - length, 0);
      span.end = std::max<int64_t>(span.end - length, 0);
    }
    return spans;
  }

  /// Up to its length, or to that of the longest text that is run.
  void expand(const TokenVectorConfig::Expansion& expansion, Sequence& sequence) const {
    const int64_t length =
        max_tokens_ > 0 ? std::min(expansion.length, max_tokens_) : expansion.length;
    if (sequence.num_keys >= length) return;
    sequence.tokens.ids.resize(length, expansion.token);
    if (how_.offset_unit != OffsetUnit::kNone) sequence.tokens.offsets.resize(length);
    if (expansion.attended) sequence.num_keys = length;
  }

  TextReport tokenize(int64_t number, Sequence& sequence) const {
    Tokens& tokens = sequence.tokens;
    tokens = takes_empty_ ? tokens_or_none([&] { return encode(number); }) : encode(number);
    if (edit_.marker) {
      const int64_t place = std::min(marker_place_, std::ssize(tokens.ids));
      tokens.ids.insert(tokens.ids.begin() + place, *edit_.marker);
      if (how_.offset_unit != OffsetUnit::kNone)
        tokens.offsets.insert(tokens.offsets.begin() + place, TextSpan());
    }
    const int64_t vocab_size = model_.config().vocab_size;
    const auto bad = std::ranges::find_if(tokens.ids, [&](int32_t id) { return id >= vocab_size; });
    if (bad != tokens.ids.end()) {
      refuse<InvalidArgument>(
          "text {}: its token {} is none of the model's {}; the tokenizer is another model's",
          number, *bad, vocab_size);
    }
    if (refuses_ && std::ssize(tokens.ids) > max_tokens_) {
      refuse<InvalidArgument>(
          ErrorCode::kTooLong,
          "text {}: {} tokens are too many: at most {} are run; shorten it or choose another "
          "overflow policy (truncate, clamp, interpolate, window)",
          number, tokens.ids.size(), max_tokens_);
    }
    sequence.num_keys = std::ssize(tokens.ids);
    if (edit_.expansion) expand(*edit_.expansion, sequence);
    tokens.offsets = without_prompt(std::move(tokens.offsets));
    if (!model_.weights().token_type_embedding.present()) tokens.token_types = {};
    return {.num_tokens = std::ssize(tokens.ids),
            .dropped_tokens = tokens.dropped,
            .invalid_bytes = tokens.invalid_bytes};
  }

  const Model& model_;
  const EmbedInput& input_;
  const bool takes_empty_;
  const std::string prompt_;
  const int64_t max_tokens_;
  const bool cuts_, refuses_;
  const TokenEdit edit_;
  const TokenizeOptions how_;
  const int64_t prompt_tokens_, marker_place_;
  std::vector<Sequence> sequences_;
};

/// One call of embed(): tokenizes one window of texts after another and runs it in batches.
class EmbedRun {
 public:
  /// Borrows its arguments.
  EmbedRun(const Model& model, const Threads& threads, const EmbedInput& input,
           const EmbedOptions& options, const EncodeBatch& encode, const EmbedHead* head,
           EmbeddingsData& data)
      : model_(model),
        threads_(threads),
        num_texts_(input.size()),
        options_(options),
        encode_(encode),
        head_(head),
        data_(data),
        tokenized_(model, input, options, head, threads.count()),
        run_{.positions = options.positions,
             .overflow = options.overflow,
             .pooling = pooling_of(options, model),
             .stop = options.stop} {}

  void operator()() {
    for (int64_t first = 0; first < num_texts_; first += kWindowTexts) {
      if (options_.stop.stop_requested())
        throw Error(ErrorCode::kCancelled, "the run was cancelled");
      window(first, std::min(kWindowTexts, num_texts_ - first));
    }
  }

 private:
  void window(int64_t first, int64_t count) {
    tokenized_.assign(first, threads_, std::span(data_.reports).subspan(first, count));
    const std::vector<size_t> order = tokenized_.by_length();
    // Of equal size, because a small last batch would leave threads idle.
    const int64_t width =
        std::max(model_.config().d_model, head_ != nullptr ? head_->token_width : 0);
    const int64_t most = std::clamp<int64_t>(kBatchNumbers / width, 1, kBatchTokens);
    const int64_t batches = (tokenized_.num_tokens() + most / 2) / most;
    batch_tokens_ = tokenized_.num_tokens() / std::max<int64_t>(batches, 1) + 1;
    if (options_.batch_tokens > 0) batch_tokens_ = std::min(batch_tokens_, options_.batch_tokens);
    std::span<const size_t> left = order;
    while (!left.empty() && !tokenized_[left.front()].tokens.ids.empty()) {
      left = left.subspan(batch(first, left));
    }
    for (const size_t i : left) std::ranges::fill(vector(first + i), 0.0f);  // no tokens
    if (!left.empty()) tell(std::ssize(left));
  }

  /// Runs as many texts from the front as fit into one batch; returns their number.
  int64_t batch(int64_t first, std::span<const size_t> order) {
    token_ids_.clear();
    token_types_.clear();
    spans_.clear();
    num_keys_.clear();
    offsets_ = {0};
    bool all_are_keys = true;
    for (const size_t i : order) {
      const auto& [tokens, num_keys] = tokenized_[i];
      const std::vector<int32_t>& ids = tokens.ids;
      if (ids.empty() || std::ssize(token_ids_) >= batch_tokens_) break;
      token_ids_.insert(token_ids_.end(), ids.begin(), ids.end());
      token_types_.insert(token_types_.end(), tokens.token_types.begin(), tokens.token_types.end());
      token_types_.resize(token_ids_.size());
      spans_.insert(spans_.end(), tokens.offsets.begin(), tokens.offsets.end());
      num_keys_.push_back(num_keys);
      all_are_keys = all_are_keys && num_keys == std::ssize(ids);
      offsets_.push_back(std::ssize(token_ids_));
    }
    if (all_are_keys) num_keys_.clear();
    hidden_.resize(token_ids_.size() * model_.config().d_model);
    run_.hidden = hidden_;
    const Encoding encoding = encode_({.token_ids = token_ids_,
                                       .offsets = offsets_,
                                       .token_types = token_types_,
                                       .num_keys = num_keys_,
                                       .prompt_tokens = tokenized_.prompt_tokens(),
                                       .pooled_only = head_ == nullptr || !head_->take},
                                      run_, tokenized_.max_tokens());
    const int64_t count = encoding.num_sequences();
    if (head_ != nullptr && head_->take) {
      TextStates states = {{}, {}, offsets_, token_ids_, spans_, hidden_};
      for (const size_t i : order.first(count)) {
        states.texts.push_back(first + i);
        states.tokens.push_back(&tokenized_[i].tokens);
      }
      head_->take(states);
    }
    std::vector<float> results;
    const bool applies = head_ != nullptr && head_->apply;
    if (applies) {
      results = head_->of_every_token ? means(head_->apply(hidden_))
                                      : head_->apply(encoding.embeddings());
    }
    const std::span<const float> rows = applies ? results : encoding.embeddings();
    for (int64_t i = 0; i < count; ++i) {
      std::ranges::copy(rows.subspan(i * data_.width, data_.width),
                        vector(first + order[i]).begin());
    }
    tell(count);
    return count;
  }

  /// Of the rows of each text's tokens.
  std::vector<float> means(std::span<const float> rows) const {
    std::vector<float> all;
    for (size_t text = 0; text + 1 < offsets_.size(); ++text) {
      const int64_t begin = offsets_[text] * data_.width, end = offsets_[text + 1] * data_.width;
      const std::vector<float> mean =
          pool(rows.subspan(begin, end - begin), data_.width, {.modes = {PoolingMode::kMean}});
      all.insert(all.end(), mean.begin(), mean.end());
    }
    return all;
  }

  std::span<float> vector(int64_t text) {
    return data_.values.subspan(text * data_.width, data_.width);
  }
  void tell(int64_t count) {
    done_ += count;
    if (options_.progress) options_.progress(done_, num_texts_);
  }

  const Model& model_;
  const Threads threads_;
  const int64_t num_texts_;
  const EmbedOptions& options_;
  const EncodeBatch& encode_;
  const EmbedHead* head_;
  EmbeddingsData& data_;
  Tokenized tokenized_;
  RunOptions run_;
  int64_t batch_tokens_ = 0;
  std::vector<int32_t> token_ids_;  // of a batch, like the next five: reused for all
  std::vector<int32_t> token_types_;
  std::vector<TextSpan> spans_;
  std::vector<int64_t> num_keys_;  // empty where all tokens are keys
  std::vector<int64_t> offsets_;
  std::vector<float> hidden_;
  int64_t done_ = 0;
};

}  // namespace

int64_t affordable_tokens(int64_t tokens, const Model& model, int threads) {
  const int64_t row = floats_per_token(model.config(), threads) * int64_t{sizeof(float)};
  if (tokens <= kAlwaysAffordable / row) return tokens;
  return std::clamp<int64_t>(affordable_bytes(model) / row, 16, tokens);
}

int64_t embedding_width(const Model& model, const EmbedOptions& options) {
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  const int64_t width = pooling_of(options, model).width(model.config().d_model);
  if (width < 1 || width > kMostColumns) {
    refuse<InvalidArgument>("the pooling makes vectors of width {}; it must be 1 to {}", width,
                            kMostColumns);
  }
  return width;
}

std::shared_ptr<const EmbeddingsData> embed(const Model& model, const Threads& threads,
                                            const EmbedInput& input, const EmbedOptions& options,
                                            const EncodeBatch& encode, const EmbedHead* head) {
  const auto num_first = std::ssize(input.first);
  if (input.second && num_first != 1 && num_first != input.size()) {
    refuse<InvalidArgument>(
        "{} first texts were given for {} second ones; give as many, or one for all", num_first,
        input.size());
  }
  const auto data = std::make_shared<EmbeddingsData>();
  data->width = head != nullptr ? head->width : embedding_width(model, options);
  data->reports.resize(input.size());
  if (options.batch_tokens < 0)
    refuse<InvalidArgument>("batch_tokens is {}; it must be 0 (the default) or more",
                            options.batch_tokens);
  const int64_t num_values = input.size() * data->width;
  if (!options.output.empty() && std::ssize(options.output) != num_values) {
    refuse<InvalidArgument>("the memory for vectors has {} floats; {} vectors of width {} take {}",
                            options.output.size(), input.size(), data->width, num_values);
  }
  if (options.output.empty()) data->own_values.resize(num_values);
  data->values = options.output.empty() ? std::span(data->own_values) : options.output;
  EmbedRun(model, threads, input, options, encode, head, *data)();
  return data;
}

EmbedOptions embed_options(const Model& model, const RetrievalOptions& options) {
  return {.pooling = Pooling(),
          .prompt = options.prompt.value_or(model.text().prompt_for(options.is_query)),
          .max_tokens = options.max_tokens,
          .overflow = options.overflow,
          .progress = options.progress,
          .stop = options.stop,
          .parse_special = options.parse_special,
          .truncation_side = options.truncation_side};
}

}  // namespace internal

Embeddings::Embeddings(std::shared_ptr<const internal::EmbeddingsData> data)
    : data_(std::move(data)) {}
int64_t Embeddings::size() const { return std::ssize(data_->reports); }
int64_t Embeddings::width() const { return data_->width; }
std::span<const float> Embeddings::values() const& { return data_->values; }
const TextReport& Embeddings::report(int64_t i) const& {
  internal::check_index(i, size(), "vector");
  return data_->reports[i];
}
std::span<const float> Embeddings::operator[](int64_t i) const& {
  report(i);
  return values().subspan(i * width(), width());
}

Classification::Classification(std::shared_ptr<const internal::ClassificationData> data)
    : data_(std::move(data)) {}
int64_t Classification::size() const { return std::ssize(data_->logits->reports); }
int64_t Classification::num_labels() const { return data_->logits->width; }
std::span<const float> Classification::logits() const& { return data_->logits->values; }
std::span<const float> Classification::probabilities() const& { return data_->probabilities; }
const TextReport& Classification::report(int64_t i) const& {
  internal::check_index(i, size(), "text");
  return data_->logits->reports[i];
}
std::span<const float> Classification::logits(int64_t i) const& {
  report(i);
  return logits().subspan(i * num_labels(), num_labels());
}
std::span<const float> Classification::probabilities(int64_t i) const& {
  report(i);
  return probabilities().subspan(i * num_labels(), num_labels());
}

}  // namespace phasor
