// One row for each tokenizer class. Transformers' tokenization_*.py are the sources.
#include "models/tokenizer_families.h"

#include <fmt/format.h>

namespace phasor {
namespace {

/// The 100 languages of M2M100, in the order of their ids after the vocabulary.
std::vector<std::string> m2m100_languages() {
  std::vector<std::string> pieces;
  for (const char* const language :
       {"af", "am", "ar", "ast", "az", "ba", "be", "bg", "bn", "br",  "bs", "ca", "ceb", "cs", "cy",
        "da", "de", "el", "en",  "es", "et", "fa", "ff", "fi", "fr",  "fy", "ga", "gd",  "gl", "gu",
        "ha", "he", "hi", "hr",  "ht", "hu", "hy", "id", "ig", "ilo", "is", "it", "ja",  "jv", "ka",
        "kk", "km", "kn", "ko",  "lb", "lg", "ln", "lo", "lt", "lv",  "mg", "mk", "ml",  "mn", "mr",
        "ms", "my", "ne", "nl",  "no", "ns", "oc", "or", "pa", "pl",  "ps", "pt", "ro",  "ru", "sd",
        "si", "sk", "sl", "so",  "sq", "sr", "ss", "su", "sv", "sw",  "ta", "th", "tl",  "tn", "tr",
        "uk", "ur", "uz", "vi",  "wo", "xh", "yi", "yo", "zh", "zu"}) {
    pieces.push_back(fmt::format("__{}__", language));
  }
  return pieces;
}

}  // namespace

std::vector<TokenizerFamily> tokenizer_families() {
  return {
      {.tokenizer_class = "MarianTokenizer",
       .model_file = "source.spm",
       .has_vocab_json = true,
       .spec = {.kind = "Marian",
                .suffix = {"</s>"},
                .unk = "<unk>",
                .pad = "<pad>",
                .leading_language_code = true,
                .new_word_after_special = true}},
      {.tokenizer_class = "M2M100Tokenizer",
       .model_file = "sentencepiece.bpe.model",
       .has_vocab_json = true,
       .spec = {.kind = "M2M100",
                .appended = m2m100_languages(),
                .prefix = {"__{lang}__"},
                .suffix = {"</s>"},
                .unk = "<unk>",
                .pad = "<pad>",
                .new_word_after_special = true},
       .default_language = "en"},
      {.tokenizer_class = "XLMRobertaTokenizer",
       .model_file = "sentencepiece.bpe.model",
       .spec = {.kind = "XLM-R",
                .offset = 1,
                .fixed = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}},
                .appended = {"<mask>"},
                .prefix = {"<s>"},
                .suffix = {"</s>"},
                .unk = "<unk>",
                .mask = "<mask>",
                .new_word_after_special = true}},
  };
}

}  // namespace phasor
