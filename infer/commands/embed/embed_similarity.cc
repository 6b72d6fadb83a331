// infer embed --similarity: the cosines between the vectors of a few texts.
#include "infer/commands/embed/embed_similarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "infer/commands/embed/line_report.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr size_t kMaxTexts = 1000;

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

std::string to_text(const std::vector<std::string>& texts,
                    const std::vector<std::vector<double>>& cosines, const Output& output) {
  constexpr int kCell = 7;
  const int number_width = static_cast<int>(std::to_string(texts.size()).size());
  std::string text = std::string(number_width + 1, ' ');
  for (size_t j = 0; j < texts.size(); ++j) text += pad_left(std::to_string(j + 1), kCell);
  text += "\n";
  const int used = number_width + 3 + kCell * static_cast<int>(texts.size());
  const int room = std::max(output.width() - used, 20);
  for (size_t i = 0; i < texts.size(); ++i) {
    text += pad_left(std::to_string(i + 1), number_width) + " ";
    for (const double value : cosines[i]) text += pad_left(fmt::format("{:.3f}", value), kCell);
    text += "  " + output.heading(cut_right(printable(texts[i]), room)) + "\n";
  }
  return text;
}

}  // namespace

int print_similarities(phasor::Encoder& encoder, const phasor::EmbedOptions& how,
                       const std::vector<std::string>& texts, const CommonOptions& common) {
  if (texts.empty() || texts.size() > kMaxTexts) {
    throw phasor::InvalidArgument(fmt::format(
        "--similarity compares 1 to {} texts with each other, not {}", kMaxTexts, texts.size()));
  }
  const phasor::Embeddings vectors = encoder.embed(texts, how);
  for (int64_t i = 0; i < vectors.size() && !common.quiet; ++i) {
    const LineReport report{.tokens = vectors.report(i)};
    if (report.odd()) report_note(fmt::format("text {}: {}", i + 1, report.text()));
  }
  std::vector<std::vector<double>> cosines(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = 0; j < texts.size(); ++j) cosines[i].push_back(cosine(vectors[i], vectors[j]));
  }
  Output output;
  if (common.json) {
    const nlohmann::ordered_json json = {{"texts", texts}, {"cosines", cosines}};
    output.write(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    output.write(to_text(texts, cosines, output));
  }
  return 0;
}

}  // namespace infer
