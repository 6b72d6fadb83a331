// Lines of a corpus, plain, or compressed by gzip or zstd: however the bytes come, the lines are
// the same.
#include "files/corpus/decompressor.h"
#include "infer/cli/line_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/compressed.h"

namespace phasor::fuzz {
namespace {

/// What a file holds, decompressed in small pieces; nothing where it is damaged, or holds so much
/// that it is not compared.
std::optional<std::string> decompressed(std::string_view bytes) try {
  constexpr size_t kMost = infer::kMaxLineBytes;
  const auto decompressor = infer::Decompressor::for_data(bytes);
  if (!decompressor) return std::string(bytes);
  std::string text;
  char piece[7];
  while (!bytes.empty()) {
    std::string_view some = bytes.substr(0, 5);
    bytes.remove_prefix(some.size());
    for (size_t size = sizeof piece; size == sizeof piece && text.size() < kMost;)
      text.append(piece, size = decompressor->run(some, piece));
    if (text.size() >= kMost) return std::nullopt;
    require(some.empty(), "a decompressor that has room takes all");
  }
  if (!decompressor->complete()) return std::nullopt;
  return text;
} catch (const infer::DecompressionError&) {
  return std::nullopt;
}

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
  const std::string file = folder.path() / "corpus";
  const std::optional<std::string> text = decompressed(bytes);
  return survive([&] {
    infer::LineReader reader(file, true);
    std::vector<std::string> lines;
    while (lines.size() < 20000) {
      auto line = reader.next();
      if (!line) break;
      require(line->text.size() <= infer::kMaxLineBytes, "a line is not too long");
      lines.push_back(std::move(line->text));
    }
    if (!text || lines.size() == 20000) return;
    require(lines == lines_of(*text), "lines do not depend on how the bytes come");
  });
}

std::vector<std::string> lines_seeds() {
  const std::string text = "Tom bit a dog.\r\n\n\xef\xbb\xbfIt\0rained.\n\xff last";
  // A skippable frame, with which pzstd's files begin.
  const std::string frame("\x50\x2a\x4d\x18\x04\0\0\0abcd", 12);
  return {text,
          "\xef\xbb\xbf" + text,
          gzip_of(text),
          zstd_of(text),
          gzip_of("a\nb") + gzip_of(text) + std::string(20, '\0'),
          zstd_of("a\nb") + frame + zstd_of(text),
          frame + zstd_of(std::string(3000, 'a')),
          gzip_of(std::string(3000, '\n'))};
}

}  // namespace

Fuzzer lines_fuzzer() {
  const std::string zipped = gzip_of("Tom bit a dog."), zstd = zstd_of("Tom bit a dog.");
  return {.name = "lines",
          .run = run_lines,
          .seeds = lines_seeds,
          .words = words(R"(
\x1f\x8b\x08 (\xb5/\xfd P*M\x18 \xfd7zXZ BZh91AY&SY PK\x03\x04 \r\n \xef\xbb\xbf \n\n)"),
          .refused = {zipped.substr(0, zipped.size() - 1), zstd.substr(0, zstd.size() - 1),
                      "BZh91AY&SY"}};
}

}  // namespace phasor::fuzz
