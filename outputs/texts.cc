// Texts are tokenized, sorted by length, run in batches, and put in order.

#include "outputs/texts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/packed_weights.h"
#include "engine/workspace.h"
#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor {

std::string prompt_of(const TextOptions& options, const TextConfig& text) {
  if (options.prompt) return *options.prompt;
  if (options.prompt_name.empty()) {
    const bool is_document = std::ranges::any_of(options.kinds, [](VectorKind kind) {
      return kind == VectorKind::kSparse || kind == VectorKind::kTokens;
    });
    if (options.role == TextRole::kAny && !is_document) return text.prompt;
    return text.prompt_for(options.role == TextRole::kQuery);
  }
  if (const auto found = text.prompts.find(options.prompt_name); found != text.prompts.end())
    return found->second;
  std::vector<std::string_view> names;
  for (const auto& [name, prompt] : text.prompts) names.push_back(name);
  internal::refuse<InvalidArgument>(
      "the model has no prompt \"{:.100}\"; {}{}", options.prompt_name,
      names.empty() ? "it has none" : "there are: ", fmt::join(names, ", "));
}

}  // namespace phasor

namespace phasor::internal {
namespace {

constexpr int64_t kWindowTexts = 4096;  // tokenized at once
constexpr int64_t kBatchTokens = 8192;  // run at once, about, unless their states have more than
constexpr int64_t kBatchNumbers = int64_t{16} << 20;
constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
constexpr int64_t kLongestText = 2048;  // in tokens, if a checkpoint sets no limit

}  // namespace

int64_t longest_text(int64_t max_tokens, Overflow overflow, const Positions& positions,
                     const Model& model, int threads) {
  int64_t longest = max_tokens;
  if (overflow == Overflow::kClamp || overflow == Overflow::kInterpolate) return longest;
  if (longest == 0) longest = model.text().max_tokens;
  if (longest == 0) longest = model.config().max_positions;
  if (longest == 0) longest = kLongestText;
  longest = std::min(longest, model.max_tokens(positions).value_or(longest));
  return affordable_tokens(longest, model, threads);
}

namespace {

/// The token ids of some of the texts, and reports on them.
class Tokenized {
 public:
  /// Borrows its arguments.
  Tokenized(const Model& model, const TextInput& input, const TextOptions& options,
            const TextTask& task, int threads)
      : model_(model),
        input_(input),
        task_(task),
        max_tokens_(
            longest_text(task.max_tokens, task.overflow, options.positions, model, threads)),
        how_{.parse_special = options.parse_special,
             .ids_only = true,
             .max_tokens = cuts() ? most_without_marker() : 0,
             .prompt_bytes = std::ssize(task.prompt),
             .truncation_side = options.truncation_side,
             .no_special_tokens = !model.text().special_tokens,
             .offset_unit = task.offset_unit},
        prompt_tokens_(task.counts_prompt ? count_prompt() : 0),
        marker_place_(task.marker ? count_leading() : 0) {}

  /// 0: no limit.
  int64_t max_tokens() const { return max_tokens_; }
  /// The prompt's tokens in each text, counted like sentence-transformers: the prompt tokenized
  /// alone, less a special token at its end.
  int64_t prompt_tokens() const { return prompt_tokens_; }

  /// Tokenizes texts `first`, `first` + 1, … on `threads`, replacing the previous ones.
  /// Writes a report for each.
  void assign(int64_t first, int64_t count, const Threads& threads, TextReports& reports) {
    sequences_.assign(count, {});
    for_each_text(threads, count, [&](int64_t i) { tokenize(first + i, sequences_[i], reports); });
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
    if (task_.prompt.empty()) return 0;
    const std::vector<int32_t> ids = ids_of(task_.prompt), special = ids_of("");
    const bool ends = !special.empty() && ids.back() == special.back();
    return std::ssize(ids) - (ends ? 1 : 0);
  }

  bool cuts() const {
    return task_.overflow != Overflow::kError && task_.overflow != Overflow::kWindow;
  }

  /// 0: no limit.
  int64_t most_without_marker() const {
    return task_.marker && max_tokens_ > 0 ? std::max<int64_t>(max_tokens_ - 1, 1) : max_tokens_;
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
        task_.prompt + std::string(input_.first[input_.first.size() == 1 ? 0 : number]);
    return input_.second ? model_.tokenizer().encode_pair(first, (*input_.second)[number], how_)
                         : model_.tokenizer().encode(first, how_);
  }

  /// Spans in the text as it was given; those in the prompt are {0, 0}.
  std::vector<TextSpan> without_prompt(std::vector<TextSpan> spans) const {
    const int64_t length = how_.offset_unit == OffsetUnit::kBytes
                               ? std::ssize(task_.prompt)
                               : std::ranges::count(task_.prompt, false, is_inside_character);
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

  void tokenize(int64_t number, Sequence& sequence, TextReports& reports) const {
    Tokens& tokens = sequence.tokens;
    tokens = task_.needs_tokens ? encode(number) : tokens_or_none([&] { return encode(number); });
    if (task_.marker) {
      const int64_t place = std::min(marker_place_, std::ssize(tokens.ids));
      tokens.ids.insert(tokens.ids.begin() + place, *task_.marker);
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
    if (task_.overflow == Overflow::kError && std::ssize(tokens.ids) > max_tokens_) {
      throw TooLong(number, std::ssize(tokens.ids),
                    fmt::format("at most {} are run; shorten it or choose another overflow policy "
                                "(truncate, clamp, interpolate, window)",
                                max_tokens_));
    }
    sequence.num_keys = std::ssize(tokens.ids);
    if (task_.expansion) expand(*task_.expansion, sequence);
    tokens.offsets = without_prompt(std::move(tokens.offsets));
    if (!model_.weights().token_type_embedding.present()) tokens.token_types = {};
    report(tokens, number, reports);
  }

  const Model& model_;
  const TextInput& input_;
  const TextTask& task_;
  const int64_t max_tokens_;
  const TokenizeOptions how_;
  const int64_t prompt_tokens_, marker_place_;
  std::vector<Sequence> sequences_;
};

/// One call: tokenizes one window of texts after another and runs it in batches.
class TextRun {
 public:
  /// Borrows its arguments.
  TextRun(const Runner& runner, const TextInput& input, const TextOptions& options,
          const TextTask& task)
      : runner_(runner),
        d_model_(runner.model().config().d_model),
        num_texts_(input.size()),
        options_(options),
        task_(task),
        tokenized_(runner.model(), input, options, task, runner.num_threads()),
        reports_(reports_for(num_texts_)),
        run_{.positions = options.positions, .overflow = task.overflow, .stop = options.stop} {}

  TextReports operator()() {
    for (int64_t first = 0; first < num_texts_; first += kWindowTexts) {
      if (options_.stop.stop_requested())
        throw Error(ErrorCode::kCancelled, "the run was cancelled");
      window(first, std::min(kWindowTexts, num_texts_ - first));
    }
    return std::move(reports_);
  }

 private:
  void window(int64_t first, int64_t count) {
    tokenized_.assign(first, count, runner_.threads(), reports_);
    const std::vector<size_t> order = tokenized_.by_length();
    // Of equal size, because a small last batch would leave threads idle.
    const int64_t width = std::max(d_model_, task_.token_width);
    const int64_t most = std::clamp<int64_t>(kBatchNumbers / width, 1, kBatchTokens);
    const int64_t batches = (tokenized_.num_tokens() + most / 2) / most;
    batch_tokens_ = tokenized_.num_tokens() / std::max<int64_t>(batches, 1) + 1;
    if (options_.batch_tokens > 0) batch_tokens_ = std::min(batch_tokens_, options_.batch_tokens);
    std::span<const size_t> left = order;
    while (!left.empty() && !tokenized_[left.front()].tokens.ids.empty()) {
      left = left.subspan(batch(first, left));
    }
    if (!left.empty()) tell(std::ssize(left));  // no tokens
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
    const int64_t count = std::ssize(num_keys_);
    if (all_are_keys) num_keys_.clear();
    read_tokens_.assign(task_.reads == ReadStates::kAll ? 0 : count,
                        task_.reads == ReadStates::kFirst ? tokenized_.prompt_tokens() : kLast);
    hidden_.resize(token_ids_.size() * d_model_);
    run_.hidden = hidden_;
    runner_.run({.token_ids = token_ids_,
                 .offsets = offsets_,
                 .token_types = token_types_,
                 .num_keys = num_keys_,
                 .read_tokens = read_tokens_},
                run_, tokenized_.max_tokens());
    TextStates states = {{}, {}, offsets_, token_ids_, spans_, hidden_, tokenized_.prompt_tokens()};
    for (const size_t i : order.first(count)) {
      states.texts.push_back(first + i);
      states.tokens.push_back(&tokenized_[i].tokens);
    }
    task_.take(states);
    tell(count);
    return count;
  }

  void tell(int64_t count) {
    done_ += count;
    if (options_.progress) options_.progress(done_, num_texts_);
  }

  const Runner& runner_;
  const int64_t d_model_, num_texts_;
  const TextOptions& options_;
  const TextTask& task_;
  Tokenized tokenized_;
  TextReports reports_;
  RunOptions run_;
  int64_t batch_tokens_ = 0;
  std::vector<int32_t> token_ids_;  // of a batch, like the next six: reused for all
  std::vector<int32_t> token_types_;
  std::vector<TextSpan> spans_;
  std::vector<int64_t> num_keys_;  // empty where all tokens are keys
  std::vector<int64_t> read_tokens_;
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

TextReports run_texts(const Runner& runner, const TextInput& input, const TextOptions& options,
                      const TextTask& task) {
  const auto num_first = std::ssize(input.first);
  if (input.second && num_first != 1 && num_first != input.size()) {
    refuse<InvalidArgument>(
        "{} first texts were given for {} second ones; give as many, or one first text for all",
        num_first, input.size());
  }
  return TextRun(runner, input, options, task)();
}

}  // namespace phasor::internal
