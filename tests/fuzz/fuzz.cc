#include "tests/fuzz/fuzz.h"

#include <unistd.h>

#include <cstdio>

namespace phasor::fuzz {
namespace {

constexpr std::string_view kMark = "=== ";

}  // namespace

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool blank = text[i] == ' ' || text[i] == '\n';
    if (!blank && !inside) all.emplace_back();
    inside = !blank;
    if (blank) continue;
    char byte = text[i];
    if (byte == '\\') {
      byte = text.at(++i);
      if (byte == 'x') {
        byte = static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
      } else {
        byte = byte == 'n' ? '\n' : byte == 'r' ? '\r' : byte == 's' ? ' ' : byte;
      }
    }
    all.back() += byte;
  }
  return all;
}

Parts parts_of(std::string_view input, std::string_view first, Names others) {
  Parts parts;
  std::string name(input.starts_with(kMark) ? "" : first);
  bool known = !name.empty();
  while (true) {
    // The next mark at the beginning of a line.
    size_t mark = input.starts_with(kMark) ? 0 : input.find(std::string("\n").append(kMark));
    if (known) parts[name] = input.substr(0, mark);
    if (mark == input.npos) return parts;
    if (input[mark] == '\n') ++mark;
    input.remove_prefix(mark + kMark.size());
    const size_t end = std::min(input.find('\n'), input.size());
    name = input.substr(0, end);
    known = name == first || std::ranges::find(others, name) != others.end();
    input.remove_prefix(std::min(end + 1, input.size()));
  }
}

std::string input_of(const Parts& parts) {
  std::string input;
  for (const auto& [name, bytes] : parts)
    input += std::string(input.empty() ? "" : "\n").append(kMark) + name + "\n" + bytes;
  return input;
}

Folder::Folder()
    : TempFolder(access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                               : std::filesystem::temp_directory_path()) {}

void Folder::write(const Parts& parts, Names names) const {
  for (const std::string_view name : names) {
    const auto part = parts.find(name);
    if (part != parts.end()) {
      write(part->first, part->second);
    } else {
      std::error_code ignored;
      std::filesystem::remove(path() / name, ignored);
    }
  }
}

uint8_t Choices::byte(uint8_t usual) {
  if (written_ != nullptr) {
    written_->push_back(static_cast<char>(usual));
    return usual;
  }
  if (rest_.empty()) return 0;
  const auto byte = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return byte;
}

int64_t Choices::number(uint8_t usual) {
  constexpr int64_t kEdges[] = {INT64_MIN, INT64_MIN + 1,    INT32_MIN, -1,
                                256,       int64_t{1} << 31, INT32_MAX, INT64_MAX};
  const uint8_t choice = byte(usual);
  return choice < 240 ? choice % 16 : kEdges[choice % 8];
}

std::string Choices::text(std::string_view usual) {
  size_t size = byte(static_cast<uint8_t>(usual.size()));
  if (written_ != nullptr) {
    written_->append(usual);
    return std::string(usual);
  }
  size = std::min(size, rest_.size());
  const std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

void look_at(const void* bytes, size_t size) {
  uint8_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum ^= static_cast<const uint8_t*>(bytes)[i];
  __asm__ volatile("" ::"r"(sum));  // it is not left out
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: it does not hold that %s\n", what);
  std::abort();
}

// ---- The table

Fuzzer capi_fuzzer(), config_fuzzer(), safetensors_fuzzer(), sentence_fuzzer(),
    sentencepiece_fuzzer(), split_fuzzer(), table_fuzzer(), text_fuzzer(), tokenizer_fuzzer(),
    torch_fuzzer();
// Of infer.
Fuzzer http_fuzzer(), lines_fuzzer(), server_fuzzer();

std::span<const Fuzzer> fuzzers() {
  static const std::vector<Fuzzer> all = {
      capi_fuzzer(),        config_fuzzer(),   http_fuzzer(),          lines_fuzzer(),
      safetensors_fuzzer(), sentence_fuzzer(), sentencepiece_fuzzer(), server_fuzzer(),
      split_fuzzer(),       table_fuzzer(),    text_fuzzer(),          tokenizer_fuzzer(),
      torch_fuzzer()};
  return all;
}

}  // namespace phasor::fuzz
