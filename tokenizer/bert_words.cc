// One pass over a text: ASCII by a table, other characters by Unicode's rules.
#include "tokenizer/bert_words.h"

#include <array>
#include <string>

#include "files/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

enum class Kind : uint8_t { kPartOfWord, kSpace, kPunctuation, kLeftOut };

/// BERT also counts ASCII's symbols ($+<=>^`|~) as punctuation.
constexpr Kind ascii_kind(char c) {
  if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return Kind::kSpace;
  if (c < ' ' || c == '\x7f') return Kind::kLeftOut;
  const bool alphanumeric =
      (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return alphanumeric ? Kind::kPartOfWord : Kind::kPunctuation;
}

constexpr std::array<Kind, 128> kAsciiKinds = [] {
  std::array<Kind, 128> kinds{};
  for (int c = 0; c < 128; ++c) kinds[c] = ascii_kind(static_cast<char>(c));
  return kinds;
}();

bool is_space(char32_t c) {
  return c < 0x80 ? kAsciiKinds[c] == Kind::kSpace : is_white_space(c) && c != U'\u0085';
}

bool is_left_out(char32_t c) {
  return c < 0x80 ? kAsciiKinds[c] == Kind::kLeftOut : c == U'\ufffd' || is_control(c);
}

/// Calls `visit` with each character that `c` becomes.
template <typename Visit>
void normalize(char32_t c, const BertWordOptions& options, const Visit& visit) {
  constexpr char32_t kCapitalIWithDot = U'\u0130';  // becomes two: "i" and a dot
  const auto in_case = [&](char32_t part) { visit(options.lower_case ? to_lower(part) : part); };
  if (!options.strip_accents && !(options.lower_case && c == kCapitalIWithDot)) return in_case(c);
  PartsBuffer buffer;
  for (const int32_t part : canonical_parts(c, buffer)) {
    const auto character = static_cast<char32_t>(part);
    if (!options.strip_accents || !is_nonspacing_mark(character)) in_case(character);
  }
}

class WordCutter {
 public:
  using Visit = std::function<void(const AlignedView& word, int64_t num_characters)>;

  WordCutter(const AlignedView& text, const BertWordOptions& options, const Visit& visit)
      : text_(text), options_(options), visit_(visit), word_(AlignedText::of(text)) {}

  void cut() {
    for (std::string_view rest = text_.text; !rest.empty();) {
      source_ = text_.source_of(rest);
      const char c = rest.front();
      if (static_cast<unsigned char>(c) < 0x80) {
        rest.remove_prefix(1);
        add_ascii(c);
      } else {
        add_unicode(take_character(rest));
      }
    }
    end_word();
  }

 private:
  void add_ascii(char c) {
    switch (kAsciiKinds[static_cast<size_t>(c)]) {
      case Kind::kPartOfWord:
        add(options_.lower_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
        break;
      case Kind::kSpace:
        end_word();
        break;
      case Kind::kPunctuation:
        end_word();
        add(c);
        end_word();
        break;
      case Kind::kLeftOut:
        break;
    }
  }

  void add_unicode(char32_t c) {
    if (is_space(c)) return end_word();
    if (is_left_out(c)) return;
    const bool alone = options_.split_han && is_han(c);
    if (alone) end_word();
    normalize(c, options_, [&](char32_t part) { add_part(part); });
    if (alone) end_word();
  }

  void add_part(char32_t c) {
    if (c < 0x80) return add_ascii(static_cast<char>(c));
    const bool alone = is_punctuation(c);
    if (alone) end_word();
    word_.append(c, source_);
    ++num_characters_;
    if (alone) end_word();
  }

  void add(char c) {
    word_.append(std::string_view(&c, 1), source_);
    ++num_characters_;
  }

  void end_word() {
    if (num_characters_ == 0) return;
    visit_(word_, num_characters_);
    word_.clear();
    num_characters_ = 0;
  }

  const AlignedView text_;
  const BertWordOptions& options_;
  const Visit& visit_;
  Source source_;  // of the character that is read
  AlignedText word_;
  int64_t num_characters_ = 0;
};

}  // namespace

AlignedText bert_normalized(const AlignedView& text, const BertWordOptions& options) {
  return for_each_character(text, [&](char32_t c, Source source, AlignedText& result) {
    if (is_left_out(c)) return;
    const std::string_view around = options.split_han && is_han(c) ? " " : "";
    result.append(around, source);
    normalize(is_space(c) ? U' ' : c, options, [&](char32_t part) { result.append(part, source); });
    result.append(around, source);
  });
}

void for_each_bert_word(
    const AlignedView& text, const BertWordOptions& options,
    const std::function<void(const AlignedView& word, int64_t num_characters)>& visit) {
  WordCutter(text, options, visit).cut();
}

}  // namespace phasor::internal
