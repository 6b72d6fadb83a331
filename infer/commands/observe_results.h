// Where the results of infer observe go: standard output, a page, activations.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "infer/commands/observe_options.h"
#include "infer/render/html_report.h"
#include "infer/render/terminal.h"

namespace infer {

class ObserveResults {
 public:
  /// Borrows all three. Throws InvalidArgument where a page cannot be made.
  ObserveResults(const ObserveOptions& options, const Runs& runs, std::span<const Input> inputs);

  /// How many texts, from the first on, need their patterns for the page.
  size_t texts_on_page() const { return page_ ? HtmlReport::kMostTexts : 0; }
  /// Whether anybody still looks.
  bool wanted() const { return page_ || !output_.closed(); }

  /// The next text.
  void add(ObservedPair pair);
  /// After the last text, and before a corpus: saves activations, where that was asked for.
  void end_texts();
  /// After all: writes the page.
  void finish();

 private:
  void show(const ObservedPair& pair);

  const ObserveOptions& options_;
  const Runs& runs_;
  std::span<const Input> inputs_;
  Output output_;
  std::optional<HtmlReport> page_;
  std::vector<ObservedPair> unsaved_;  // are shown when they are saved
  size_t added_ = 0, shown_ = 0;
};

}  // namespace infer
