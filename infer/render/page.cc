// Puts data into the page that infer/page/ builds; its scripts say what is drawn.
#include "infer/render/page.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "infer/render/observed_json.h"
#include "infer/render/terminal.h"

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
