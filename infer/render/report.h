// What was observed, on standard output and on the page of --html.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/input_options.h"
#include "infer/cli/terminal.h"
#include "infer/render/observed_text.h"
#include "infer/render/page.h"

namespace infer {

/// Observed texts, one after the other, as JSON, CSV or text, and on a page where one is asked for:
/// with the views that are named, or with all that were measured. Borrows what it is made of.
class Report {
 public:
  /// More texts than these are not on the page: each takes up to a megabyte for each run.
  static constexpr size_t kMostTexts = 16;
  using ToText = std::string(std::span<const Observed>, const Shown&, const Output&);

  /// Throws UsageError for options that exclude each other, and InvalidArgument where the page
  /// cannot be written.
  Report(const CommonOptions& common, const ViewOptions& options, const Shown& shown,
         ToText* to_text = infer::to_text);

  /// What must be measured for it, of texts of up to so many tokens.
  lens::ObserveOptions observe_options(int64_t max_tokens);

  /// Prints a sentence for people, before the text that comes next.
  void say(std::string_view sentence);
  /// Prints one or two runs of the next text, or of many.
  void print(std::span<const Observed> runs);
  /// Puts them on the page, which should have their patterns.
  void add_to_page(std::span<const Observed> runs);
  /// So many more texts are not on the page.
  void leave_out(size_t texts) { left_out_ += texts; }
  /// Whether anybody still reads.
  bool wanted() const { return page_ || !output_.closed(); }
  bool has_page() const { return page_.has_value(); }
  /// Writes the page, whole or not at all; on stderr its size.
  void finish();
  /// Makes room for a note.
  void clear_progress() { progress_.clear(); }
  Output& output() { return output_; }

 private:
  const CommonOptions& common_;
  const ViewOptions& options_;
  const Shown& shown_;
  ToText* const to_text_;
  ProgressLine progress_;
  Output output_;
  size_t number_ = 0;
  std::optional<Page> page_;
  std::vector<std::string> page_texts_;
  size_t left_out_ = 0;
};

/// Every number in a line of its own: text,run,layer,head,measure,value. Texts and heads count from
/// 1, layer 0 is the embedding; a measure is VIEW.COLUMN, in named rows VIEW.ROW.COLUMN.
std::string csv_head();
std::string to_csv(std::span<const Observed> runs, size_t number);

}  // namespace infer
