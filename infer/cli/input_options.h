// The options of the subcommands that run texts and show what happens: which texts, and how.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/options.h"
#include "infer/cli/view_options.h"
#include "phasor/encoder.h"

namespace infer {

struct InputOptions {
  CommonOptions common;
  std::vector<std::string> words;
  std::vector<std::string> ids;
  std::string positions, mask;
  phasor::Overflow overflow = phasor::Overflow::kError;
  std::string save;                // a file's name; empty: nothing is saved
  std::vector<std::string> hooks;  // what of; empty: hidden states and attentions
  int64_t max_tokens = 0;          // texts are cut to so many tokens; 0: they are not

  bool has_input() const { return !words.empty() || !ids.empty(); }
};

/// The texts, -m, --lang, --prefix, --special, --positions, --mask, --ids, --overflow.
void add_texts(CommandLine& line, InputOptions& options);
/// --save and --hooks.
void add_save(CommandLine& line, InputOptions& options);
/// After parse(). Throws UsageError where options exclude each other or need one another. `how`
/// says how the lines of a file are read, for a text that is a file's name.
void take_texts(InputOptions& options, const std::string& how = "-i");

/// Throws UsageError for names that are none.
phasor::RunOptions run_options(const InputOptions& options, const phasor::PositionConfig& own);

/// What is done to a run for the sake of seeing what happens: --edit and --cut-residual.
struct Interventions {
  std::vector<std::string> edits;  // of the positions, as the user wrote them, in order
  std::vector<std::string> cuts;   // LAYER[.attn|.mlp], layers counted from 1

  bool any() const { return !edits.empty() || !cuts.empty(); }
};
void add_interventions(CommandLine& line, Interventions& interventions);

/// `run` with the interventions. Throws UsageError for what is none, and InvalidArgument for a
/// layer that `config` does not have or a table that cannot be read.
phasor::RunOptions intervened(const phasor::RunOptions& run, const Interventions& interventions,
                              const phasor::ModelConfig& config);

/// The run, alone; or "before" and "after" the interventions. Throws what intervened() throws.
std::vector<lens::Run> before_and_after(lens::Run run, const Interventions& interventions);

/// The ids and the texts.
std::vector<lens::Text> make_texts(std::span<const std::string> ids,
                                   std::span<const std::string> texts);

/// On stderr: how many of the texts were cut, and what was not UTF-8. `what` says whose they are.
void note_texts(const std::string& what, const Observed& means, int64_t max_tokens);

/// On stderr, unless quiet: that a mask was not filled.
void print_mask_note(const CommonOptions& options);

/// On stderr, unless quiet: what is run, before the first text, and what should be known about
/// each.
void print_notes(const InputOptions& options, const phasor::Encoder& encoder,
                 const phasor::RunOptions& run, const Observed& text, size_t number, size_t count);

}  // namespace infer
