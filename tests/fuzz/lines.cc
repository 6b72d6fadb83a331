// Lines of a corpus: however the bytes come, the lines are the same.
#include "infer/cli/line_reader.h"
#include "tests/fuzz/fuzz.h"

namespace phasor::fuzz {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t size = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, size));
    if (line.ends_with('\r')) line.pop_back();
    if (lines.empty() && line.starts_with("\uFEFF")) line.erase(0, 3);
    lines.push_back(line);
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return lines;
}

bool run_lines(std::string_view bytes) {
  static const Folder folder;
  folder.write("corpus", bytes);
  const std::string file = folder / "corpus";
  return survive([&] {
    infer::LineReader reader(file, true);
    std::vector<std::string> lines;
    while (lines.size() < 20000) {
      auto line = reader.next();
      if (!line) break;
      require(line->text.size() <= infer::kMaxLineBytes, "a line is not too long");
      lines.push_back(std::move(line->text));
    }
    if (bytes.size() > infer::kMaxLineBytes || lines.size() == 20000) return;
    require(lines == lines_of(bytes), "lines do not depend on how the bytes come");
  });
}

std::vector<std::string> lines_seeds() {
  const std::string text("Tom bit a dog.\r\n\n\xef\xbb\xbfIt\0 rained.\na\rb\n\xff last", 42);
  return {text, "\xef\xbb\xbf" + text, std::string(3000, '\n')};
}

}  // namespace

Fuzzer lines_fuzzer() {
  return {.name = "lines",
          .run = run_lines,
          .seeds = lines_seeds,
          .words = words(R"(
\x1f\x8b\x08 (\xb5/\xfd P*M\x18 \xfd7zXZ BZh91AY&SY PK\x03\x04 \r\n \xef\xbb\xbf \n\n)"),
          .refused = {"\x1f\x8b\x08", "(\xb5/\xfd", "BZh91AY&SY", "Tom\rbit\r"}};
}

}  // namespace phasor::fuzz
