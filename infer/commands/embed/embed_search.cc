#include "infer/commands/embed/embed_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "infer/render/observed_json.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

/// What fits behind `used` columns.
std::string shortened(const std::string& text, int used, const Output& output) {
  return cut_right(printable(text), std::max(output.width() - used, 20));
}

}  // namespace

phasor::Embeddings embed_few(phasor::Encoder& encoder, const phasor::EmbedOptions& how,
                             const std::vector<std::string>& texts, const std::string& option,
                             bool quiet) {
  constexpr size_t kMost = 1000;
  if (texts.empty() || texts.size() > kMost) {
    throw phasor::InvalidArgument(
        fmt::format("{} takes 1 to {} texts, not {}", option, kMost, texts.size()));
  }
  phasor::Embeddings vectors = encoder.embed(texts, how);
  for (int64_t i = 0; i < vectors.size() && !quiet; ++i) {
    const LineReport report{.tokens = vectors.report(i)};
    if (report.odd()) report_note(fmt::format("text {}: {}", i + 1, report.text()));
  }
  return vectors;
}

void print_similarities(const std::vector<std::string>& texts, const phasor::Embeddings& vectors,
                        bool json) {
  std::vector<std::vector<double>> cosines(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = 0; j < texts.size(); ++j) cosines[i].push_back(cosine(vectors[i], vectors[j]));
  }
  Output output;
  if (json) return output.write(line({{"texts", texts}, {"cosines", cosines}}) + "\n");
  const size_t number_width = std::to_string(texts.size()).size();
  const size_t used = number_width + 3 + 7 * texts.size();
  std::string table(number_width + 1, ' ');
  for (size_t j = 0; j < texts.size(); ++j) table += fmt::format("{:>7}", j + 1);
  for (size_t i = 0; i < texts.size(); ++i) {
    table += fmt::format("\n{:>{}} ", i + 1, number_width);
    for (const double value : cosines[i]) table += fmt::format("{:7.3f}", value);
    table += "  " + output.heading(shortened(texts[i], static_cast<int>(used), output));
  }
  output.write(table + "\n");
}

void NearestLines::add(std::span<const Line> lines, const phasor::Embeddings& vectors,
                       int64_t first) {
  for (size_t q = 0; q < queries_.size(); ++q) {
    std::vector<Neighbour>& nearest = nearest_[q];
    for (size_t i = 0; i < lines.size(); ++i) {
      const double near = cosine(vectors_[q], vectors[i]);
      // Of lines that are equally near the first comes first.
      const auto place =
          std::ranges::upper_bound(nearest, near, std::greater(), &Neighbour::cosine);
      if (place == nearest.end() && nearest.size() == most_) continue;
      nearest.insert(place, {near, first + static_cast<int64_t>(i), lines[i].text});
      if (nearest.size() > most_) nearest.pop_back();
    }
  }
}

void NearestLines::print(bool json) const {
  Output output;
  for (size_t q = 0; q < queries_.size() && !output.closed(); ++q) {
    if (json) {
      Json lines = Json::array();
      for (const auto& [near, number, text] : nearest_[q]) {
        lines.push_back({{"line", number}, {"cosine", near}, {"text", text}});
      }
      output.write(infer::line({{"query", queries_[q]}, {"nearest", lines}}) + "\n");
      continue;
    }
    std::string text = (q > 0 ? "\n" : "") + output.heading(printable(queries_[q])) + "\n";
    for (const auto& [near, number, line] : nearest_[q]) {
      const std::string label = fmt::format("  {:6.3f}  line {:<7} ", near, number);
      text += label + shortened(line, static_cast<int>(label.size()), output) + "\n";
    }
    output.write(text);
  }
}

}  // namespace infer
