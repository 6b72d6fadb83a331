// Observing a text in a test: a model's run, and what was measured of it.
#pragma once

#include <clocale>

#include "lens/study/measures.h"
#include "tests/support/run_program.h"

namespace phasor::internal {

inline const bool kUtf8 = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;  // as main() does

inline const std::string kText = "Tom bit a dog.";
inline const std::string kOther = "The old man gave the boy a book.";
inline const std::string kSentences = std::string(PHASOR_SOURCE_DIR) + "/examples/sentences.txt";

/// The lines of kSentences, and as many as every view needs: "longer" twice the trained length.
inline const std::vector<std::string>& all_lines() {
  static const std::vector<std::string> lines = lines_of(read_text_file(kSentences));
  return lines;
}
inline const std::vector<std::string>& few_lines() {
  static const std::vector<std::string> lines(all_lines().begin(), all_lines().begin() + 14);
  return lines;
}
/// Some of them, of which a run takes little time.
inline std::vector<std::string> eight_lines() {
  return {all_lines().begin(), all_lines().begin() + 8};
}

inline Encoder encoder_of(const std::string& name = "sinusoidal",
                          Precision precision = Precision::kFloat32) {
  return Encoder(Model::load(bundled_model(name)), {.precision = precision});
}

/// Those of these views that the runs and texts allow.
inline lens::ObserveOptions asking_for(const std::vector<std::string>& names = {"all"}) {
  return {.views = names, .allowed_only = true};
}
inline lens::Run run_of(Encoder& encoder, const std::string& label = "",
                        const RunOptions& options = {}) {
  return {.encoder = &encoder,
          .label = label,
          .name = label.empty() ? "it" : label,
          .options = options};
}

/// A text in runs.
inline std::vector<Observed> observe(const std::vector<lens::Run>& runs, const lens::Text& text,
                                     const lens::ObserveOptions& options = asking_for()) {
  std::vector<Observed> observed;
  lens::observe(runs, {&text, 1}, options, [&](std::vector<Observed>&& text) {
    observed = std::move(text);
    return true;
  });
  return observed;
}
inline Observed observe(Encoder& encoder, const std::string& text,
                        const lens::ObserveOptions& options = asking_for(),
                        const RunOptions& run = {}) {
  return observe({run_of(encoder, "", run)}, {.text = text}, options).at(0);
}
inline Observed observe_ids(Encoder& encoder, const std::vector<int32_t>& ids,
                            const lens::ObserveOptions& options = asking_for(),
                            const RunOptions& run = {}) {
  return observe({run_of(encoder, "", run)}, {.token_ids = ids}, options).at(0);
}

/// Texts as one, in one run or two.
inline std::vector<Measured> observe_all(const std::vector<lens::Run>& runs,
                                         const std::vector<std::string>& texts,
                                         const lens::ObserveOptions& options = asking_for()) {
  std::vector<lens::Text> all;
  for (const std::string& text : texts) all.push_back({.text = text});
  return means_of(runs, all, options);
}

/// The same, of views of tokens that are masked in `lines`.
inline std::vector<Measured> observe_masked(const std::vector<lens::Run>& runs,
                                            const std::vector<std::string>& texts,
                                            const std::vector<std::string>& lines,
                                            const std::vector<std::string>& views) {
  lens::ObserveOptions options = asking_for(views);
  options.masked = lines;
  return observe_all(runs, texts, options);
}

inline Measured observe_masked(Encoder& encoder, const std::vector<std::string>& lines,
                               const std::vector<std::string>& views,
                               const RunOptions& options = {}) {
  return observe_masked({run_of(encoder, "", options)}, lines, lines, views).at(0);
}

/// A number of a table; NaN, and a failed test, where there is none.
inline double number(const Observed& run, const char* view, const Row& place, const char* column) {
  const Table* const table = run.table(view);
  const Row* const row = table == nullptr ? nullptr : table->find(place);
  if (row != nullptr && table->column(column) >= 0) return row->cells.at(table->column(column));
  ADD_FAILURE() << "there is no " << view << "." << column << " at " << place.layer << "."
                << place.head << place.label;
  return std::nan("");
}
inline double number(const Observed& run, const char* view, int64_t layer, const char* column) {
  return number(run, view, Row{.layer = layer, .cells = {}}, column);
}
inline double number(const Observed& run, const char* view, const std::string& label,
                     const char* column) {
  return number(run, view, Row{.label = label, .cells = {}}, column);
}

/// Equal, or both NaN.
inline bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Why there is no such table; empty where there is one.
inline std::string why_missing(const Observed& run, const char* view) {
  const auto why = run.missing.find(view);
  EXPECT_EQ(run.table(view) == nullptr, why != run.missing.end()) << view;
  return why == run.missing.end() ? "" : why->second;
}

}  // namespace phasor::internal
