#include <algorithm>
#include <utility>
#include <vector>

#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "tokenizer/files/readers.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLanguage = "{lang}";

void read_model(const ModelPath& file, SentencePieceSpec& spec) {
  spec.common.file = file.string();
  spec.model = read_model_file(file);
  refuse_other_kind(spec.model, file);
}

/// Marian's languages: the text between `before` and `after` in its vocabulary.
void find_languages(const SentencePieceSpec& spec, TokenizerLanguages& languages) {
  if (!languages.codes.empty() || languages.before.empty() || !spec.vocabulary) return;
  const size_t marks = languages.before.size() + languages.after.size();
  for (const auto& [piece, id] : *spec.vocabulary) {
    if (piece.size() > marks && piece.starts_with(languages.before) &&
        piece.ends_with(languages.after)) {
      languages.codes.push_back(piece.substr(languages.before.size(), piece.size() - marks));
    }
  }
}

/// The code of `asked_for`, which is a code or the token of one.
std::string choose_language(const std::string& asked_for, const TokenizerLanguages& languages,
                            const SentencePieceSpec& spec) {
  for (const std::string& code : languages.codes) {
    if (asked_for == code || asked_for == languages.piece(code)) return code;
  }
  if (languages.codes.empty()) {
    refuse<InvalidArgument>("{}: this {} tokenizer knows no languages; leave out '{}'",
                            spec.common.file, spec.kind, asked_for);
  }
  refuse<InvalidArgument>("{}: the {} tokenizer has no language '{}'; it has {}", spec.common.file,
                          spec.kind, asked_for, list_languages(languages.codes, asked_for));
}

std::string language_of(const ConfigReader& config, const TokenizerLanguages& languages,
                        const SentencePieceSpec& spec, const LoadOptions& options) {
  if (!options.language.empty()) return choose_language(options.language, languages, spec);
  if (languages.fallback.empty()) return {};
  const std::string code = config.text({"src_lang"}, languages.fallback);
  if (std::ranges::find(languages.codes, code) == languages.codes.end())
    config.refuse("src_lang", "one of {}", list_languages(languages.codes, code));
  return code;
}

void set_language(const std::string& piece, std::vector<std::string>& specials) {
  if (piece.empty()) std::erase(specials, kLanguage);
  std::replace(specials.begin(), specials.end(), std::string(kLanguage), piece);
}

}  // namespace

std::shared_ptr<const Tokenizer> load_family(const ModelPath& folder, TokenizerFamily family,
                                             const TokenizerSettings& settings,
                                             const LoadOptions& options) {
  SentencePieceSpec& spec = family.spec;
  const ConfigReader& config = settings.config;
  spec.common.added = settings.added;
  if (!settings.lower_case)  // all are looked for in the text as it is
    for (AddedToken& token : spec.common.added) token.normalized = false;
  spec.common.truncate_left = settings.truncate_left.value_or(false);
  if (settings.lower_case) spec.common.normalizer = lower_case;
  if (family.read_options) family.read_options(config, spec);
  read_model(folder / family.model_file, spec);
  if (family.has_vocab_json) spec.vocabulary = read_vocab_json(folder / "vocab.json");
  find_languages(spec, family.languages);
  const std::string language = language_of(config, family.languages, spec, options);
  const std::string piece = language.empty() ? "" : family.languages.piece(language);
  set_language(piece, spec.common.prefix);
  set_language(piece, spec.common.suffix);
  return make_sentencepiece_tokenizer(spec);
}

std::shared_ptr<const Tokenizer> load_spelled_out(const ModelPath& folder,
                                                  const ConfigReader& reader) {
  if (reader.text({"type"}) != "sentencepiece") reader.refuse("type", "\"sentencepiece\"");
  const std::string file = reader.text({"file"});
  if (file.empty() || fs::path(file).has_parent_path())
    reader.refuse("file", "the name of a file in the model's folder");
  SentencePieceSpec spec{.kind = "phasor",
                         .unk = reader.text({"unk"}, ""),
                         .pad = reader.text({"pad"}, ""),
                         .common = {.prefix = reader.texts({"prefix"}),
                                    .suffix = reader.texts({"suffix"}),
                                    .mask = reader.text({"mask"}, "")}};
  const size_t count = spec.common.prefix.size() + spec.common.suffix.size();
  constexpr size_t kMostSpecials = 16;
  if (count > kMostSpecials) {
    reader.fail("{} special tokens round a text; at most {} are put there", count, kMostSpecials);
  }
  read_model(folder / file, spec);
  return make_sentencepiece_tokenizer(spec);
}

std::shared_ptr<const Tokenizer> load_plain(const ModelPath& model) {
  SentencePieceSpec spec{.kind = "plain"};
  read_model(model, spec);
  return make_sentencepiece_tokenizer(spec);
}

}  // namespace phasor::internal
