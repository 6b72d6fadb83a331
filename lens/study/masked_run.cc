#include "lens/study/masked_run.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "lens/causes.h"
#include "lens/order.h"

namespace phasor::internal {

namespace {

constexpr int64_t kTokensAtOnce = 1024;
constexpr int64_t kSquares = 4;  // for position components

/// Records a run, and gives it other position vectors where there are some.
class Recorder : public Observer {
 public:
  Recorder(Trace& trace, const TextRows& vectors) : trace_(trace), vectors_(vectors) {}

  bool wants(Hook hook, int64_t layer) const override { return trace_.wants(hook, layer); }
  void observe(const HookEvent& event) override { trace_.observe(event); }
  bool changes(Hook hook, int64_t) const override {
    return !vectors_.empty() && hook == Hook::kPosEmbed;
  }
  void change(const HookEvent& event, std::span<float> values) override {
    std::ranges::copy(vectors_[event.sequence], values.begin());
  }

 private:
  Trace& trace_;
  const TextRows& vectors_;
};

/// A recorded run from a block on, less rows at a hook of that block. Keeps the next block's input
/// where it is asked to.
class Rerun : public Observer {
 public:
  Rerun(const Trace& trace, Hook hook, int64_t layer, TextRows rows, TextRows* next = nullptr)
      : trace_(trace),
        hook_(hook),
        layer_(layer),
        next_(next),
        less_(hook, layer, std::move(rows)) {}

  bool wants(Hook hook, int64_t layer) const override {
    return next_ != nullptr && hook == Hook::kResidPre && layer == layer_ + 1;
  }
  void observe(const HookEvent& event) override {
    (*next_)[event.sequence].assign(event.values.begin(), event.values.end());
  }
  bool changes(Hook hook, int64_t layer) const override {
    return layer == layer_ && (hook == Hook::kResidPre || hook == hook_);
  }
  void change(const HookEvent& event, std::span<float> values) override {
    if (event.hook == Hook::kResidPre)
      std::ranges::copy(trace_.hidden_state(layer_, event.sequence).values, values.begin());
    if (event.hook == hook_) less_.change(event, values);
  }

 private:
  const Trace& trace_;
  Hook hook_;
  int64_t layer_;
  TextRows* next_;
  Subtraction less_;
};

/// Gives a block other states than its own.
class Begin : public Observer {
 public:
  Begin(int64_t layer, const TextRows& states) : layer_(layer), states_(states) {}

  bool wants(Hook, int64_t) const override { return false; }
  void observe(const HookEvent&) override {}
  bool changes(Hook hook, int64_t layer) const override {
    return hook == Hook::kResidPre && layer == layer_;
  }
  void change(const HookEvent& event, std::span<float> values) override {
    std::ranges::copy(states_[event.sequence], values.begin());
  }

 private:
  int64_t layer_;
  const TextRows& states_;
};

}  // namespace

TextRows less(TextRows rows, const TextRows& others) {
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows[i].size(); ++j) rows[i][j] -= others[i][j];
  }
  return rows;
}

std::vector<std::vector<int32_t>> ids_of(std::span<const MaskedText> texts) {
  std::vector<std::vector<int32_t>> ids;
  for (const MaskedText& text : texts) ids.push_back(text.token_ids);
  return ids;
}

MaskedRun::MaskedRun(const lens::Run& subject, std::span<const MaskedText> texts, uint64_t seed,
                     MaskedScore& score, const Recording& how)
    : subject_(subject),
      texts_(texts),
      seed_(seed),
      scorer_(how.scorer),
      trace_(residual_trace(how.heads)) {
  RunOptions options = subject.options;
  Recorder recorder(trace_, how.vectors);
  options.observer = &recorder;
  score_again(options, score);
}

TextRows MaskedRun::state(int64_t l) const {
  TextRows rows;
  for (int64_t i = 0; i < std::ssize(texts_); ++i) rows.push_back(trace_.hidden_state(l, i).values);
  return rows;
}

TextRows MaskedRun::at(Hook hook, int64_t layer) const {
  TextRows rows;
  for (int64_t i = 0; i < std::ssize(texts_); ++i) rows.push_back(trace_.at(hook, layer, i).values);
  return rows;
}

TextRows MaskedRun::head(int64_t layer, int64_t head) {
  if (layer != heads_layer_) {
    heads_layer_ = layer;
    heads_.clear();
    for (int64_t i = 0; i < std::ssize(texts_); ++i)
      heads_.push_back(head_outputs(subject_.model(), trace_, layer, i));
  }
  TextRows rows;
  for (const TextRows& heads : heads_) rows.push_back(heads[head]);
  return rows;
}

TextRows MaskedRun::position(Hook hook, int64_t layer) {
  if (positions_.empty()) measure_positions();
  TextRows rows;
  for (const TextRows& layers : positions_.at(hook)) rows.push_back(layers[layer]);
  return rows;
}

void MaskedRun::measure_positions() {
  constexpr Hook kHooks[] = {Hook::kResidPre, Hook::kAttnOut};
  const ModelConfig& config = subject_.model().config();
  for (const MaskedText& text : texts_) {
    const std::vector<int64_t> places = text_places(subject_.model(), text.token_ids);
    std::vector<std::vector<std::vector<double>>> components;
    if (places.size() > 1) {
      components = position_components(*subject_.encoder, text.token_ids, places, kHooks,
                                       subject_.options, kSquares, seed_);
    }
    for (size_t h = 0; h < std::size(kHooks); ++h) {
      TextRows& layers = positions_[kHooks[h]].emplace_back(
          config.num_layers, std::vector<float>(text.token_ids.size() * config.d_model));
      for (size_t l = 0; l < layers.size() && !components.empty(); ++l) {
        for (size_t k = 0; k < components[h][l].size(); ++k) {
          const int64_t place = places[k / config.d_model];
          layers[l][place * config.d_model + k % config.d_model] =
              static_cast<float>(components[h][l][k]);
        }
      }
    }
  }
}

void MaskedRun::score_again(RunOptions options, MaskedScore& score) const {
  if (scorer_) return scorer_(subject_.encoder->encode_ids(ids_of(texts_), options), texts_, score);
  add_scores(*subject_.encoder, std::move(options), texts_, std::span(&score, 1));
}

void MaskedRun::score_without(Hook hook, int64_t layer, TextRows rows, MaskedScore& score) const {
  Rerun rerun(trace_, hook, layer, std::move(rows));
  RunOptions options = subject_.options;
  options.observer = &rerun;
  options.first_block = layer;  // the blocks below give the same states again
  score_again(options, score);
}

TextRows MaskedRun::state_without(Hook hook, int64_t layer, TextRows rows) const {
  TextRows next(texts_.size());
  Rerun rerun(trace_, hook, layer, std::move(rows), &next);
  RunOptions options = subject_.options;
  options.observer = &rerun;
  options.first_block = layer;
  subject_.encoder->encode_ids(ids_of(texts_), options);
  return next;
}

void MaskedRun::score_from(int64_t layer, const TextRows& states, RunOptions options,
                           MaskedScore& score) const {
  Begin begin(layer, states);
  options.observer = &begin;
  options.first_block = layer;
  score_again(options, score);
}

std::vector<MaskedText> recordable_texts(Many& many, const char* view,
                                         std::initializer_list<const lens::Run*> runs,
                                         int64_t draws) {
  if (!can_mask(many, {view})) return {};
  const Model& model = many.subject.model();
  int64_t most = 0;
  for (const lens::Run* const run : runs) {
    const int64_t of_run = most_tokens(*run, many.request);
    most = most == 0 || of_run == 0 ? std::max(most, of_run) : std::min(most, of_run);
  }
  const Corpus corpus = tokenize_corpus(model, many.request.lines);
  std::vector<MaskedText> texts;
  for (int64_t draw = 0; draw < draws; ++draw)
    std::ranges::move(masked_texts(model, corpus, most, many.request.seed + draw),
                      std::back_inserter(texts));
  for (const lens::Run* const run : runs)
    if (are_in_windows(many, view, *run, texts)) return {};
  return texts;
}

bool are_in_windows(Many& many, const char* view, const lens::Run& run,
                    std::span<const MaskedText> texts) {
  const auto limit = run.model().max_tokens(run.options.positions);
  const auto is_longer = [&](const MaskedText& text) {
    return limit && std::ssize(text.token_ids) > *limit;
  };
  if (run.options.overflow != Overflow::kWindow || !std::ranges::any_of(texts, is_longer))
    return false;
  many.means.missing[view] = "a text was run in overlapping windows";
  return true;
}

std::vector<std::span<const MaskedText>> recordable_batches(std::span<const MaskedText> texts) {
  std::vector<std::span<const MaskedText>> batches;
  size_t first = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto more = std::ssize(texts[i].token_ids);
    if (i > first && tokens + more > kTokensAtOnce) {
      batches.push_back(texts.subspan(first, i - first));
      first = i;
      tokens = 0;
    }
    tokens += more;
  }
  if (first < texts.size()) batches.push_back(texts.subspan(first));
  return batches;
}

TextRows random_like(const TextRows& rows, int64_t d_model, uint64_t seed) {
  TextRows random;
  for (const std::vector<float>& text : rows) random.push_back(random_rows(text, d_model, seed++));
  return random;
}

TextRows at_other_places(const TextRows& rows, const MaskedRun& run, uint64_t seed) {
  const Model& model = run.subject().model();
  const int64_t d_model = model.config().d_model;
  TextRows moved;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<int32_t>& ids = run.texts()[i].token_ids;
    const std::vector<int64_t> order =
        shuffled_order(std::ssize(ids), text_places(model, ids), seed++);
    std::vector<float>& text = moved.emplace_back();
    for (const int64_t t : order) {
      const auto row = std::span(rows[i]).subspan(t * d_model, d_model);
      text.insert(text.end(), row.begin(), row.end());
    }
  }
  return moved;
}

std::vector<double> differences(const MaskedScore& a, const MaskedScore& b,
                                std::vector<double> MaskedScore::*values) {
  const int64_t most = a.texts.empty() ? -1 : std::ranges::max(a.texts);
  std::vector<double> sums(std::min(most + 1, kMostBlocks));
  for (size_t i = 0; i < (a.*values).size(); ++i)
    sums[a.texts[i] % kMostBlocks] += (a.*values)[i] - (b.*values)[i];
  return sums;
}

double ratio(const std::vector<double>& part, const std::vector<double>& whole) {
  return std::accumulate(part.begin(), part.end(), 0.0) /
         std::accumulate(whole.begin(), whole.end(), 0.0);
}

bool is_above_zero(const MaskedScore& losses, const MaskedScore& others,
                   std::vector<double> MaskedScore::*values) {
  constexpr double kLeast = 1e-6;
  Row row{.cells = {}};
  add_difference(losses, others, row, values);
  return row.cells[0] > kLeast && !(row.intervals[0].low < 0);
}

void add_difference(const MaskedScore& losses, const MaskedScore& others, Row& row,
                    std::vector<double> MaskedScore::*values) {
  std::vector<double> differences;
  for (size_t i = 0; i < (losses.*values).size(); ++i)
    differences.push_back((losses.*values)[i] - (others.*values)[i]);
  const Estimate difference = estimate(differences, losses.texts);
  add_cell(row, difference.mean, difference.interval);
}

}  // namespace phasor::internal
