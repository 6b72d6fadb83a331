// What was observed, as the data of the page.
#include "infer/render/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "infer/render/page.h"
#include "infer/render/terminal.h"
#include "phasor/version.h"

namespace infer {

namespace {

constexpr int64_t kMostCells = 128;  // of a pattern, along an edge

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

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
  const int64_t tokens = observed.num_tokens(), cells = std::min(tokens, kMostCells);
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
  return {{"columns", std::ssize(values) / observed.num_tokens()},
          {"values", base64(std::as_bytes(values))}};
}

}  // namespace

HtmlReport::HtmlReport(const std::filesystem::path& path) : path_(path) { check_page(path_); }

void HtmlReport::add_run(size_t i, const std::string& label, const Observed& observed) {
  if (i >= kMostTexts) {
    left_out_ = std::max(left_out_, i + 1 - kMostTexts);
    return;
  }
  nlohmann::ordered_json run = {{"label", label}, {"observed", to_json(observed)}};
  if (!observed.patterns.empty()) run["patterns"] = patterns_json(observed);
  if (!observed.position_vectors.empty()) run["vectors"] = vectors_json(observed);
  texts_[i]["runs"].push_back(std::move(run));
}

void HtmlReport::add_moved(size_t i, const std::vector<Deviation>& moved) {
  if (i >= kMostTexts) return;
  nlohmann::ordered_json& layers = texts_[i]["moved"];
  for (const Deviation& deviation : moved) {
    layers.push_back({{"layer", layers.size()}});
    layers.back().update(deviation_json(deviation));
  }
}

void HtmlReport::write(bool quiet) {
  nlohmann::ordered_json json = {{"version", PHASOR_VERSION}};
  for (const auto& [i, text] : texts_) json["texts"].push_back(text);
  if (left_out_ > 0 && !quiet) {
    report_note(
        fmt::format("the page shows the first {} texts, not the other {}", kMostTexts, left_out_));
  }
  write_page(path_, json, quiet);
}

}  // namespace infer
