// Puts data into the page that infer/page/ builds; its scripts say what is drawn.
#include "infer/render/page.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "infer/cli/terminal.h"
#include "infer/render/json_text.h"

namespace infer {

extern const char kReportPage[];  // infer/page/report.html, in a file that CMake writes

namespace {

constexpr std::string_view kPlaceOfData = "REPORT_DATA";

/// JSON that cannot end the script element it stands in: "<" occurs in its strings alone.
std::string for_script(const nlohmann::ordered_json& json) {
  std::string out;
  for (const char c : one_line(json)) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

}  // namespace

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

std::string page_with(const nlohmann::ordered_json& data) {
  std::string page = kReportPage;
  return page.replace(page.find(kPlaceOfData), kPlaceOfData.size(), for_script(data));
}

void Page::write(const nlohmann::ordered_json& data, bool quiet) {
  const std::string page = page_with(data);
  file_.write(std::as_bytes(std::span(page)));
  file_.commit();
  if (quiet) return;
  report_note(
      fmt::format("wrote {} ({:.1f} MB)", path_.string(), static_cast<double>(page.size()) / 1e6));
}

}  // namespace infer
