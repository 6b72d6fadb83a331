// One pass over a text: ASCII by a table, other characters by Unicode's rules.
#include "tokenizer/bert_words.h"

#include <array>
#include <string>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

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

class WordCutter {
 public:
  using Visit = std::function<void(std::string_view word, int64_t num_characters)>;

  WordCutter(const BertWordOptions& options, const Visit& visit)
      : options_(options), visit_(visit) {}

  void cut(std::string_view text) {
    while (!text.empty()) {
      const char c = text.front();
      if (static_cast<unsigned char>(c) < 0x80) {
        text.remove_prefix(1);
        add_ascii(c);
      } else {
        add_unicode(take_character(text));
      }
    }
    end_word();
  }

 private:
  void add_ascii(char c) {
    switch (kAsciiKinds[static_cast<size_t>(c)]) {
      case Kind::kPartOfWord:
        word_ += options_.lower_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        ++num_characters_;
        break;
      case Kind::kSpace:
        end_word();
        break;
      case Kind::kPunctuation:
        end_word();
        word_ += c;
        ++num_characters_;
        end_word();
        break;
      case Kind::kLeftOut:
        break;
    }
  }

  void add_unicode(char32_t c) {
    if (c == U'\ufffd') return;
    if (is_white_space(c) && c != U'\u0085') return end_word();
    if (is_control(c)) return;
    const bool alone = options_.split_han && is_han(c);
    if (alone) end_word();
    add_normalized(c);
    if (alone) end_word();
  }

  void add_normalized(char32_t c) {
    constexpr char32_t kCapitalIWithDot = U'\u0130';  // becomes two: "i" and a dot
    if (options_.strip_accents || (options_.lower_case && c == kCapitalIWithDot)) {
      PartsBuffer buffer;
      for (const int32_t part : canonical_parts(c, buffer)) {
        const auto character = static_cast<char32_t>(part);
        if (options_.strip_accents && is_nonspacing_mark(character)) continue;
        add_in_case(character);
      }
    } else {
      add_in_case(c);
    }
  }

  void add_in_case(char32_t c) {
    if (c < 0x80) return add_ascii(static_cast<char>(c));
    if (options_.lower_case) c = to_lower(c);
    const bool alone = is_punctuation(c);
    if (alone) end_word();
    append_character(c, word_);
    ++num_characters_;
    if (alone) end_word();
  }

  void end_word() {
    if (num_characters_ == 0) return;
    visit_(word_, num_characters_);
    word_.clear();
    num_characters_ = 0;
  }

  const BertWordOptions& options_;
  const Visit& visit_;
  std::string word_;
  int64_t num_characters_ = 0;
};

}  // namespace

void for_each_bert_word(
    std::string_view text, const BertWordOptions& options,
    const std::function<void(std::string_view word, int64_t num_characters)>& visit) {
  WordCutter(options, visit).cut(text);
}

}  // namespace phasor::internal
