// The options of the commands that run texts and show what happens: which texts, how they run,
// which views are shown where, and the lens' words for these.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/options.h"
#include "lens/study/observed.h"
#include "lens/study/run.h"
#include "lens/study/text.h"
#include "lens/views/differences.h"
#include "phasor/lens/observe.h"

namespace infer {

namespace lens = phasor::lens;

using lens::Column;
using lens::Observed;
using lens::Row;
using lens::Rows;
using lens::Table;
using lens::View;
using phasor::internal::conclusions;
using phasor::internal::differences;
using phasor::internal::HeadNumber;
using phasor::internal::keep_views;
using phasor::internal::label_of;
using phasor::internal::Lacks;
using phasor::internal::lead_name;
using phasor::internal::number_text;
using phasor::internal::short_name;
using phasor::internal::small_number;
using phasor::internal::trained_length;
using phasor::internal::view;

struct ViewOptions {
  std::vector<std::string> only;
  std::vector<std::string> heads;
  std::string html;
  bool csv = false;
  lens::ObserveOptions measured = {.views = {"norm"}, .allowed_only = true};
};

/// What is done to a run for the sake of seeing what happens: --edit and --cut-residual.
struct Interventions {
  std::vector<std::string> edits;  // of the positions, as the user wrote them, in order
  std::vector<std::string> cuts;   // LAYER[.attn|.mlp], layers counted from 1

  bool any() const { return !edits.empty() || !cuts.empty(); }
};

struct InputOptions {
  CommonOptions common;
  ViewOptions views;
  Interventions interventions;
  std::vector<std::string> words, ids;  // texts, and ids in their place
  std::string file;                     // whose lines are observed as one; empty: there is none
  std::string positions, mask;
  phasor::Overflow overflow = phasor::Overflow::kError;
  std::string save;                // a file's name; empty: nothing is saved
  std::vector<std::string> hooks;  // what of; empty: hidden states and attentions
  int64_t max_tokens = 0;          // texts are cut to so many tokens; 0: they are not

  bool has_input() const { return !words.empty() || !ids.empty(); }
  bool as_text() const { return !common.json && !views.csv; }
};

/// The texts, -m, --lang, --prefix, --special, --positions, --mask, --ids, --overflow.
void add_texts(CommandLine& line, InputOptions& options);
/// --save and --hooks.
void add_save(CommandLine& line, InputOptions& options);
/// --top-k.
void add_top_k(CommandLine& line, ViewOptions& options);
/// All other options of views.
void add_views(CommandLine& line, ViewOptions& options);
/// --ids.
void add_ids(CommandLine& line, InputOptions& options);
/// After parse(): throws UsageError where there are ids and texts.
void refuse_ids_and_texts(const InputOptions& options);
/// After parse(). Throws UsageError where options exclude each other or need one another. `how`
/// says how the lines of a file are read, for a text that is a file's name.
void take_texts(const InputOptions& options, const std::string& how);

/// The run, alone; or "before" and "after" the interventions. Throws UsageError for an intervention
/// that is none, and InvalidArgument for a layer that the model does not have or a table that
/// cannot be read.
std::vector<lens::Run> before_and_after(lens::Run run, const Interventions& interventions);

/// The ids and the texts. Throws UsageError for a list of ids that has none, or what could be none.
std::vector<lens::Text> make_texts(std::span<const std::string> ids,
                                   std::span<const std::string> texts);

/// What is printed of the tables.
struct Shown {
  std::vector<const View*> views = {};
  std::vector<const View*> of_page = {};  // those, and what is too long for a terminal
  std::vector<std::string> names = {};    // of the views that --only picks; empty without it
  /// Whose patterns and rows; empty: the pattern of the most positional one, and all rows.
  std::vector<HeadNumber> heads = {};

  bool has(const Row& row) const;
};

/// What to show of a model; `as_text`: without --only the brief views, else all. Throws
/// UsageError for names that are none or lack something, and InvalidArgument for heads that
/// `config` does not have.
Shown parse_views(const ViewOptions& options, bool as_text, const phasor::ModelConfig& config,
                  const Lacks& lacks);

/// What `infer COMMAND --help` says about --only: the names of all.
std::string views_help();

/// On stderr: how many of the texts were cut, and what was not UTF-8. `what` says whose they are.
void note_texts(const std::string& what, const Observed& means, int64_t max_tokens);
/// On stderr, unless quiet: what is run, before the first text, and what should be known about
/// each.
void print_notes(const InputOptions& options, const phasor::Encoder& encoder,
                 const phasor::RunOptions& run, const Observed& text, size_t number, size_t count);

}  // namespace infer
