#include "infer/render/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "infer/cli/terminal.h"
#include "infer/render/json_text.h"
#include "lens/views/json.h"
#include "phasor/version.h"

namespace infer {

namespace {

constexpr int64_t kMostCells = 128;  // of a pattern, along an edge

/// The mean weight of a block of rows and columns of a pattern [T, T].
double block_mean(const float* pattern, int64_t tokens, int64_t cells, int64_t row,
                  int64_t column) {
  const auto edge = [&](int64_t cell) { return cell * tokens / cells; };
  double sum = 0;
  for (int64_t i = edge(row); i < edge(row + 1); ++i) {
    for (int64_t j = edge(column); j < edge(column + 1); ++j) sum += pattern[i * tokens + j];
  }
  return sum / static_cast<double>((edge(row + 1) - edge(row)) * (edge(column + 1) - edge(column)));
}

/// Square roots, so that 8 bits tell small weights apart, too. [L, H, cells, cells]
nlohmann::ordered_json patterns_json(const Observed& observed) {
  const int64_t tokens = observed.num_tokens, cells = std::min(tokens, kMostCells);
  std::vector<uint8_t> values;
  for (const std::vector<float>& layer : observed.patterns) {  // [H, T, T]
    for (int64_t head = 0; head < observed.num_heads; ++head) {
      const float* pattern = layer.data() + head * tokens * tokens;  // [T, T]
      for (int64_t cell = 0; cell < cells * cells; ++cell) {
        const double weight = block_mean(pattern, tokens, cells, cell / cells, cell % cells);
        values.push_back(
            static_cast<uint8_t>(std::lround(255 * std::sqrt(std::clamp(weight, 0.0, 1.0)))));
      }
    }
  }
  return {{"cells", cells}, {"values", base64(std::as_bytes(std::span(values)))}};
}

nlohmann::ordered_json vectors_json(const Observed& observed) {
  const std::span<const float> values = observed.position_vectors;  // [T, E]
  return {{"columns", std::ssize(values) / observed.num_tokens},
          {"values", base64(std::as_bytes(values))}};
}

/// The profiles by offset of all heads, [L, H, 2K + 1], up to the offset K.
nlohmann::ordered_json profiles_json(const Observed& observed) {
  const int64_t tokens = observed.num_tokens, farthest = std::min(tokens - 1, kFarthestOffset);
  std::vector<float> values;
  for (const std::vector<phasor::HeadProfile>& layer : observed.heads) {
    for (const phasor::HeadProfile& head : layer) {
      const auto middle = head.by_offset.begin() + tokens - 1;
      values.insert(values.end(), middle - farthest, middle + farthest + 1);
    }
  }
  return {{"offsets", farthest}, {"values", base64(std::as_bytes(std::span(values)))}};
}

nlohmann::ordered_json run_json(const Observed& observed) {
  nlohmann::ordered_json run = {{"label", observed.label.empty() ? observed.model : observed.label},
                                {"observed", to_json(observed)}};
  if (observed.means) return run;
  if (!observed.patterns.empty()) run["patterns"] = patterns_json(observed);
  if (!observed.heads.empty()) run["profiles"] = profiles_json(observed);
  if (!observed.position_vectors.empty()) run["vectors"] = vectors_json(observed);
  return run;
}

}  // namespace

nlohmann::ordered_json text_json(std::span<const Observed> runs) {
  nlohmann::ordered_json text;
  for (const Observed& run : runs) text["runs"].push_back(run_json(run));
  return text;
}

nlohmann::ordered_json report_json(nlohmann::ordered_json texts) {
  return {{"version", PHASOR_VERSION}, {"views", views_json()}, {"texts", std::move(texts)}};
}

void HtmlReport::add(size_t number, const Observed& run) {
  if (number >= kMostTexts) {
    left_out_ = std::max(left_out_, number + 1 - kMostTexts);
    return;
  }
  texts_[number]["runs"].push_back(run_json(run));
}

void HtmlReport::add(std::span<const Observed> runs) {
  if (runs[0].means) {  // means have room beside all texts
    texts_.push_back(text_json(runs));
    return;
  }
  const size_t number = texts_.size() + left_out_;
  for (const Observed& run : runs) add(number, run);
}

void HtmlReport::write(bool quiet) {
  if (!quiet && left_out_ > 0) {
    report_note(
        fmt::format("the page shows the first {} texts, not the other {}", kMostTexts, left_out_));
  }
  page_.write(report_json(std::move(texts_)), quiet);
}

}  // namespace infer
