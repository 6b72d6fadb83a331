// One pass without going back: every alternative of the pattern is a run of one kind.
#include "tokenizer/gpt2_words.h"

#include <array>

#include "files/utf8.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

enum class Gpt2Kind { kSpace, kLetter, kNumber, kOther };

Gpt2Kind kind_of(char32_t c) {
  if (is_white_space(c)) return Gpt2Kind::kSpace;
  if (is_letter(c)) return Gpt2Kind::kLetter;
  return is_number(c) ? Gpt2Kind::kNumber : Gpt2Kind::kOther;
}

constexpr std::array<Gpt2Kind, 128> kAsciiGpt2Kinds = [] {
  std::array<Gpt2Kind, 128> kinds{};
  for (int c = 0; c < 128; ++c) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    kinds[c] = space                  ? Gpt2Kind::kSpace
               : letter               ? Gpt2Kind::kLetter
               : c >= '0' && c <= '9' ? Gpt2Kind::kNumber
                                      : Gpt2Kind::kOther;
  }
  return kinds;
}();

/// The kind of the first character of `text`, and its bytes.
Gpt2Kind first_kind(std::string_view text, size_t& bytes) {
  const auto c = static_cast<unsigned char>(text.front());
  bytes = 1;
  if (c < 0x80) return kAsciiGpt2Kinds[c];
  std::string_view rest = text;
  const Gpt2Kind kind = kind_of(take_character(rest));
  bytes = text.size() - rest.size();
  return kind;
}

/// The bytes of the characters of `kind` that `text` begins with, and of the last of them.
size_t run_of(Gpt2Kind kind, std::string_view text, size_t& last) {
  size_t size = 0;
  size_t bytes = 0;
  while (size < text.size() && first_kind(text.substr(size), bytes) == kind) {
    size += bytes;
    last = bytes;
  }
  return size;
}

size_t contraction(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(end)) return end.size();
  }
  return 0;
}

/// The size of the word that `text` begins with.
size_t word_size(std::string_view text) {
  if (const size_t size = contraction(text); size > 0) return size;
  size_t bytes = 0, last = 0;
  const size_t space = text.size() > 1 && text.front() == ' ' ? 1 : 0;
  const Gpt2Kind kind = first_kind(text.substr(space), bytes);
  if (kind != Gpt2Kind::kSpace) return space + run_of(kind, text.substr(space), last);
  const size_t size = run_of(Gpt2Kind::kSpace, text, last);
  // The last space before a word is not part of the run, unless it is all of it.
  return size == text.size() || size == last ? size : size - last;
}

}  // namespace

void for_each_gpt2_word(std::string_view text,
                        const std::function<void(std::string_view word)>& visit) {
  while (!text.empty()) {
    const size_t size = word_size(text);
    visit(text.substr(0, size));
    text.remove_prefix(size);
  }
}

}  // namespace phasor::internal
