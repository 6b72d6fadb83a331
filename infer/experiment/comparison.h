// One side of a comparison: a model with its positions, and all that is measured about it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/input.h"
#include "infer/cli/progress.h"
#include "infer/experiment/deviation.h"
#include "infer/experiment/masked.h"
#include "infer/experiment/observation.h"
#include "infer/render/html_report.h"
#include "phasor/encoder.h"
#include "phasor/lens.h"

namespace infer {

/// What can be compared; each is a table of its own.
enum class Section { kPrecision, kEffect, kOrder, kAttention, kDirect, kTable, kMasked, kLonger };
inline constexpr std::array<std::string_view, 8> kSectionNames = {
    "precision", "effect", "order", "attention", "direct", "table", "masked", "longer"};

/// What is asked of both sides.
struct Question {
  std::vector<Section> sections;
  uint64_t seed = 1;
  int64_t max_tokens = 0;  // texts are cut to so many tokens; 0: they are not
  std::vector<std::string> texts = {};
  std::vector<std::vector<int32_t>> ids = {};           // instead of texts
  std::optional<std::vector<std::string>> corpus = {};  // lines for the masked tokens
  HtmlReport* page = nullptr;                           // gets every text's run; borrowed

  bool asks(Section section) const;
};

struct TableMeasures {
  double toeplitz_r2 = 0, locality = 0, symmetry = 0;
};

/// The position vectors by themselves.
struct TableReport {
  int64_t rows = 0;
  double norm = 0;  // mean length of a row
  TableMeasures measures;
  TableMeasures random;  // of a table of random rows, as many and as wide
};

struct SideReport {
  std::vector<Input> inputs;     // as they were run
  std::optional<Corpus> corpus;  // as it was masked
  int64_t tokens = 0;            // of all inputs
  int64_t reordered_texts = 0;   // those with two tokens or more to reorder
  /// [L + 1], means over the tokens of all texts; empty where not asked for.
  std::vector<ObservedLayer> layers;
  std::optional<TableReport> table;
  std::optional<MaskedScore> masked;
  std::vector<LengthScore> lengths;
  std::map<Section, std::string> missing;  // why there is no answer
};

/// A model, its positions, and what to call them.
struct Side {
  std::string label;
  std::string model_name;
  phasor::Encoder encoder;
  phasor::RunOptions options = {};

  const phasor::Model& model() const { return encoder.model(); }
  /// The longest text seen in training that its positions reach, in tokens; empty where neither the
  /// files nor a table say.
  std::optional<int64_t> trained_length() const;
  Subject subject();
};

/// Whether both sides were given the same tokens: the same ids, meaning the same pieces.
bool same_tokens(const SideReport& a, const SideReport& b);

/// Throws what encoding throws.
SideReport measure(Side& side, const Question& question, Progress& progress);

}  // namespace infer
