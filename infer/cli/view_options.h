// The options of the commands that show views, and where their results go.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/cli/command_line.h"
#include "infer/cli/options.h"
#include "infer/cli/study.h"

namespace infer {

struct ViewOptions {
  std::vector<std::string> only;
  std::vector<std::string> heads;
  std::string html;
  std::string without = "mean";
  uint64_t seed = 1;
  int64_t top_k = 5;
  int64_t untrained = 0;  // models beside each run
  bool csv = false;
};

/// What is printed of the tables.
struct Shown {
  std::vector<const View*> views = {};
  std::vector<const View*> of_page = {};  // those, and what is too long for a terminal
  bool all_rows = false;                  // else of views with many rows the first
  /// Whose patterns and rows; empty: the pattern of the most positional one, and all rows.
  std::vector<HeadNumber> heads = {};

  bool has(const Row& row) const;
};

/// --only, --seed, --without, --html, --csv.
void add_views(CommandLine& line, ViewOptions& options);
/// --head.
void add_head(CommandLine& line, ViewOptions& options);
/// --top-k.
void add_top_k(CommandLine& line, ViewOptions& options);

/// What to show of a model; `as_text`: without --only the brief views, else all. Throws
/// UsageError for names that are none or lack something, and InvalidArgument for heads that
/// `config` does not have.
Shown parse_views(const ViewOptions& options, bool as_text, const phasor::ModelConfig& config,
                  const Lacks& lacks);
/// The names of what --only picks; none where it is not given.
std::vector<std::string> named_views(const ViewOptions& options, const Shown& shown);
/// What must be measured for that. Throws UsageError.
lens::ObserveOptions observe_options(const ViewOptions& options, const Shown& shown);

/// What `infer COMMAND --help` says about --only: a line for each view.
std::string views_help();

}  // namespace infer
