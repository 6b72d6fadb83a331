// The options of the commands that show views, where their results go, and the lens' words for
// these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/cli/command_line.h"
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
  std::string without = "mean";
  uint64_t seed = 1;
  int64_t top_k = 5;
  lens::Baseline baseline = {};
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

/// What to show, and how: all but --top-k.
void add_views(CommandLine& line, ViewOptions& options);
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

/// What `infer COMMAND --help` says about --only: the names of all.
std::string views_help();

}  // namespace infer
