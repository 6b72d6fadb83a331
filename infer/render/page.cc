// Puts data into the page that infer/page/ builds; its scripts say what is drawn.
#include "infer/render/page.h"

#include <fmt/format.h>

#include "infer/cli/terminal.h"
#include "phasor/version.h"

namespace infer {

extern const char kReportPage[];  // infer/page/report.html, in a file that CMake writes

namespace {

constexpr std::string_view kPlaceOfData = "REPORT_DATA";

/// JSON that cannot end the script element it stands in: "<" occurs in its strings alone.
std::string for_script(std::string_view json) {
  std::string out;
  for (const char c : json) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

}  // namespace

std::string page_with(std::string_view data) {
  std::string page = kReportPage;
  return page.replace(page.find(kPlaceOfData), kPlaceOfData.size(), for_script(data));
}

std::string report_json(std::span<const std::string> texts, std::span<const double> cosines,
                        std::optional<HeadNumber> head) {
  JsonWriter json;
  json.object([&] {
    json.member("version", PHASOR_VERSION);
    json.key("views").raw(lens::views_json());
    json.key("texts").array([&] {
      for (const std::string& text : texts) json.raw(text);
    });
    if (!cosines.empty()) json.member("cosines", cosines);
    if (!head) return;
    json.key("opens_on").object("layer", head->layer, "head", head->head);
  });
  return json.take();
}

void Page::write(std::string_view data, bool quiet) {
  const std::string page = page_with(data);
  file_.write(std::as_bytes(std::span(page)));
  file_.commit();
  if (quiet) return;
  report_note(
      fmt::format("wrote {} ({:.1f} MB)", path_.string(), static_cast<double>(page.size()) / 1e6));
}

}  // namespace infer
