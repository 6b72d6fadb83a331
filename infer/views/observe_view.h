// What infer observe prints of a text: a table or picture for each view.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/experiment/observed_pair.h"
#include "infer/matrix.h"
#include "infer/render/side_by_side.h"
#include "infer/render/terminal.h"

namespace infer {

enum class View {
  kMoved,
  kSplit,
  kDirect,
  kEffect,
  kOrder,
  kAttention,
  kPattern,
  kScores,
  kCorpus,  // these two of many texts
  kProbe
};
inline constexpr std::array<std::string_view, 10> kViewNames = {
    "moved",     "split",   "direct", "effect", "order",
    "attention", "pattern", "scores", "corpus", "probe"};

/// A head, both numbers counted from 1.
struct HeadNumber {
  int64_t layer = 0;
  int64_t head = 0;
};

/// The head that looks at the same neighbour from the most rows; empty where heads are not known.
std::optional<HeadNumber> most_positional_head(const Observed& text);

/// The one that is asked for, else the most positional of the first run; the same for both.
HeadNumber chosen_head(const ObservedPair& pair, std::optional<HeadNumber> asked);
/// A head's attention, [T, T].
Matrix pattern_of(const Observed& text, HeadNumber head);

struct Shown {
  std::vector<View> views;
  std::optional<HeadNumber> head = {};  // of kPattern; empty: the most positional one
};

/// Whether the view is one of these runs: of many texts, say, or of two runs.
bool applies(View view, const ObservedPair& pair);

/// The text, its tokens, and the views that there is something to say about.
std::string to_text(const ObservedPair& pair, const Shown& shown, const Output& output);

/// The views, one function each.
void layer_tables(const ObservedPair& pair, const Shown& shown, SideBySide& page);
void layer_table(View view, const ObservedPair& pair, SideBySide& page);
void moved_table(const ObservedPair& pair, SideBySide& page);
void attention_tables(const ObservedPair& pair, SideBySide& page);
void pattern_picture(const ObservedPair& pair, std::optional<HeadNumber> head, const Output& output,
                     SideBySide& page);
void scores_table(const ObservedPair& pair, SideBySide& page);

/// The heads of a table's columns: "before" and "after" where there are both, then their names.
void begin_columns(const ObservedPair& pair, std::string_view label, std::string_view columns,
                   SideBySide& page);

}  // namespace infer
