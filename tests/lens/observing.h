// Observing a text in a test: a model's run, and what was measured of it.
#pragma once

#include <gtest/gtest.h>

#include <clocale>
#include <string>
#include <vector>

#include "lens/study/measures.h"
#include "phasor/phasor.h"
#include "tests/support/run_program.h"
#include "tests/support/test_files.h"

namespace phasor::internal {

inline const bool kUtf8 = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;  // as main() does

inline const std::string kText = "Tom bit a dog.";
inline const std::string kOther = "The old man gave the boy a book.";
inline const std::string kSentences = std::string(PHASOR_SOURCE_DIR) + "/examples/sentences.txt";

/// As many as every view needs: "longer" twice the trained length.
inline std::vector<std::string> few_lines() {
  std::vector<std::string> lines = lines_of(read_text_file(kSentences));
  lines.resize(14);
  return lines;
}

inline Encoder encoder_of(const std::string& name = "sinusoidal",
                          Precision precision = Precision::kFloat32) {
  return Encoder(Model::load(bundled_model(name)), {.precision = precision});
}

/// The views of these names, or all.
inline Request request_of(const std::vector<std::string>& names = {}) {
  Request request;
  for (const View& view : views()) {
    const bool named = std::ranges::find(names, view.name) != names.end();
    if (names.empty() || named) request.views.push_back(&view);
  }
  return request;
}

inline std::vector<Input> inputs_of(const Encoder& encoder, const std::vector<std::string>& texts) {
  std::vector<Input> inputs;
  for (const std::string& text : texts) inputs.push_back(input_from_text(encoder.model(), text));
  return inputs;
}

inline Observed observe(Encoder& encoder, const Input& input, const Request& request = request_of(),
                        const RunOptions& options = {}) {
  const Subject subject{.label = "", .name = "it", .encoder = encoder, .options = options};
  return observe_texts(subject, std::span(&input, 1), request, {}).at(0);
}
inline Observed observe(Encoder& encoder, const std::string& text,
                        const Request& request = request_of(), const RunOptions& options = {}) {
  return observe(encoder, input_from_text(encoder.model(), text), request, options);
}
inline Observed observe_ids(Encoder& encoder, const std::vector<int32_t>& ids,
                            const Request& request = request_of(), const RunOptions& options = {}) {
  return observe(encoder, input_from_ids(encoder.model(), ids), request, options);
}

/// Texts as one, in one run or two.
inline std::vector<Observed> observe_all(const std::vector<Subject>& subjects,
                                         const std::vector<std::string>& texts,
                                         const Request& request = request_of()) {
  std::vector<std::vector<Input>> inputs;
  for (const Subject& subject : subjects) inputs.push_back(inputs_of(subject.encoder, texts));
  return observe_runs(subjects, "texts.txt", inputs, request, {});
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

/// Why there is no such table; empty where there is one.
inline std::string why_missing(const Observed& run, const char* view) {
  const auto why = run.missing.find(view);
  EXPECT_EQ(run.table(view) == nullptr, why != run.missing.end()) << view;
  return why == run.missing.end() ? "" : why->second;
}

}  // namespace phasor::internal
