// Masked texts, run and recorded; and run again with a part of that run changed.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lens/causes.h"
#include "lens/study/masked.h"
#include "lens/study/measures.h"
#include "lens/study/run.h"

namespace phasor::internal {

/// The rows [T, C] of each text of a batch.
using TextRows = std::vector<std::vector<float>>;
/// What turns `rows` into `others`, when it is subtracted.
TextRows less(TextRows rows, const TextRows& others);

std::vector<std::vector<int32_t>> ids_of(std::span<const MaskedText> texts);

/// Adds what the last states of texts are worth.
using Scorer = std::function<void(const Encoding& encoding, std::span<const MaskedText> texts,
                                  MaskedScore& score)>;

/// How a MaskedRun is made.
struct Recording {
  Scorer scorer = {};     // says what is added in the place of losses
  TextRows vectors = {};  // [T, E] of each text, in the place of the positions' own; empty: these
  bool heads = false;     // keeps what MaskedRun::head() needs
};

/// One batch. Borrows all.
class MaskedRun {
 public:
  /// Runs the texts and adds their losses to `score`. Random orders of the texts are drawn from
  /// `seed`.
  MaskedRun(const lens::Run& subject, std::span<const MaskedText> texts, uint64_t seed,
            MaskedScore& score, const Recording& how = {});

  std::span<const MaskedText> texts() const { return texts_; }
  const lens::Run& subject() const { return subject_; }
  const Trace& trace() const { return trace_; }  // of residual_trace()

  TextRows state(int64_t l) const;
  TextRows at(Hook hook, int64_t layer) const;
  /// What a head of a layer adds to attention's output.
  TextRows head(int64_t layer, int64_t head);
  /// The position components at kResidPre or kAttnOut, from random orders of each text; 0 at
  /// special tokens.
  TextRows position(Hook hook, int64_t layer);

  /// Adds the losses of the same texts, run with other options or an observer.
  void score_again(RunOptions options, MaskedScore& score) const;
  /// Adds the losses of a run from which rows are subtracted at a hook.
  void score_without(Hook hook, int64_t layer, TextRows rows, MaskedScore& score) const;
  /// The states after `layer` in such a run.
  TextRows state_without(Hook hook, int64_t layer, TextRows rows) const;
  /// Adds the losses of a run that begins at a layer with these states.
  void score_from(int64_t layer, const TextRows& states, RunOptions options,
                  MaskedScore& score) const;

 private:
  void measure_positions();

  const lens::Run& subject_;
  std::span<const MaskedText> texts_;
  uint64_t seed_;
  Scorer scorer_;
  Trace trace_;
  int64_t heads_layer_ = -1;                              // whose heads are kept:
  std::vector<TextRows> heads_ = {};                      // of each text, [H]
  std::map<Hook, std::vector<TextRows>> positions_ = {};  // of each text, [L]
};

/// A part of a run: rows that appear at a hook.
struct RunPart {
  std::string label;
  Hook hook;
  int64_t layer;
  std::function<TextRows(MaskedRun&)> of;
};

/// The masked texts of the file, with so many draws of their masks, cut to what each of `runs`,
/// which have the same model, can take; none, and why is noted under `view`, where they cannot be
/// scored or are run in windows.
std::vector<MaskedText> recordable_texts(Many& many, const char* view,
                                         std::initializer_list<const lens::Run*> runs,
                                         int64_t draws = 1);

/// Notes under `view` that a text is run in windows, where one is.
bool are_in_windows(Many& many, const char* view, const lens::Run& run,
                    std::span<const MaskedText> texts);

/// Batches of few tokens, because whole runs of them are recorded.
std::vector<std::span<const MaskedText>> recordable_batches(std::span<const MaskedText> texts);

/// Draws of a control.
constexpr size_t kDraws = 3;
using Draws = std::vector<MaskedScore>;

/// Random vectors of the length of each row.
TextRows random_like(const TextRows& rows, int64_t d_model, uint64_t seed);
/// The rows of each text's tokens, special ones aside, at other tokens' places.
TextRows at_other_places(const TextRows& rows, const MaskedRun& run, uint64_t seed);

/// Σ (a − b) of each block of texts.
std::vector<double> differences(const MaskedScore& a, const MaskedScore& b,
                                std::vector<double> MaskedScore::*values = &MaskedScore::losses);
/// Σ part / Σ whole.
double ratio(const std::vector<double>& part, const std::vector<double>& whole);
/// Whether losses are above others, as far as their texts tell.
bool is_above_zero(const MaskedScore& losses, const MaskedScore& others,
                   std::vector<double> MaskedScore::*values = &MaskedScore::losses);
/// By how much losses are above others, mask by mask, with an interval over texts.
void add_difference(const MaskedScore& losses, const MaskedScore& others, Row& row,
                    std::vector<double> MaskedScore::*values = &MaskedScore::losses);

}  // namespace phasor::internal
