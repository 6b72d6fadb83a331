// What was observed, on standard output and on the page of --html.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "infer/cli/terminal.h"
#include "infer/cli/view_options.h"
#include "infer/render/observed_text.h"
#include "infer/render/page.h"

namespace infer {

/// Observed texts, one after the other, as JSON, CSV or text, and on a page where one is asked for.
/// Borrows what it is made of.
class Report {
 public:
  using ToText = std::string(std::span<const Observed>, const Shown&, const Output&);

  /// Throws InvalidArgument where the page cannot be written.
  Report(const CommonOptions& common, const ViewOptions& options, const Shown& shown,
         ToText* to_text = infer::to_text);

  /// What must be measured for it, of texts of up to so many tokens. Throws UsageError.
  lens::ObserveOptions observe_options(int64_t max_tokens);

  /// Prints one or two runs of the next text, or of many.
  void print(std::span<const Observed> runs);
  /// Puts them on the page; `left_out`: so many more texts are not there.
  void add_to_page(std::span<const Observed> runs, size_t left_out = 0);
  /// Whether anybody still reads.
  bool wanted() const { return page_ || !output_.closed(); }
  bool has_page() const { return page_.has_value(); }
  /// Writes the page.
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
  std::optional<HtmlReport> page_;
  size_t number_ = 0;
};

/// Every number in a line of its own: text,run,layer,head,measure,value. Texts and heads count from
/// 1, layer 0 is the embedding; a measure is VIEW.COLUMN, in named rows VIEW.ROW.COLUMN.
std::string csv_head();
std::string to_csv(std::span<const Observed> runs, size_t number);

}  // namespace infer
