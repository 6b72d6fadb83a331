// Tokenizer::load: chooses the tokenizer of a folder. The tokenizer's own files decide, and the
// model's type only if they say nothing: multilingual-e5-small is a BERT with XLM-R's tokenizer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "files/config_reader.h"
#include "files/files.h"
#include "files/refuse.h"
#include "phasor/tokenizer.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/tokenizer_json.h"

namespace phasor {
using namespace internal;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Classes of Transformers that split texts like BERT's.
constexpr std::string_view kWordPieceClasses[] = {"BertTokenizer",       "DistilBertTokenizer",
                                                  "ElectraTokenizer",    "MPNetTokenizer",
                                                  "MobileBertTokenizer", "RoFormerTokenizer"};

/// Classes with RoBERTa's byte-level BPE and special tokens.
constexpr std::string_view kByteLevelClasses[] = {"BartTokenizer", "RobertaTokenizer"};

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Models whose tokenizer is BERT's in Transformers, where no file names a class.
constexpr std::string_view kBertTypes[] = {"bert",       "distilbert", "electra",
                                           "mobilebert", "nomic_bert", "roformer"};

/// The folder, as all kinds of tokenizers read it.
struct Files {
  ModelFolder& folder;
  std::vector<std::string> names;  // sorted
  TokenizerSettings settings;
  const LoadOptions& options;

  bool has(std::string_view name) const {
    return std::binary_search(names.begin(), names.end(), name);
  }
  std::string where() const { return folder.path().string(); }
  std::string model_type() const { return folder.object("config.json").text({"model_type"}, ""); }
};

void refuse_language(const Files& files) {
  if (files.options.language.empty()) return;
  refuse<InvalidArgument>("{}: its tokenizer knows no languages; leave out '{}'", files.where(),
                          files.options.language);
}

/// `name` is a class's; empty: config.json's model_type says which.
std::shared_ptr<const Tokenizer> load_bert(const Files& files, std::string_view name) {
  refuse_language(files);
  name = name.substr(0, name.find("Tokenizer"));
  TokenizerSettings settings = files.settings;
  const std::string type = files.model_type();
  if (name.empty() && type == "mpnet") name = "MPNet";
  if (name.empty() && !is_among(kBertTypes, type)) {
    settings.follows_json = true;
    if (!type.empty() && !settings.gives_types) settings.gives_types = false;
  }
  return load_wordpiece(files.folder, name.empty() ? "BERT" : name, settings);
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const Files& files, TokenizerFamily family,
                                                    std::vector<std::string> notes = {}) {
  family.spec.common.notes = std::move(notes);
  return load_family(files.folder.path(), std::move(family), files.settings, files.options);
}

std::vector<std::string> class_names() {
  std::vector<std::string> names(std::begin(kWordPieceClasses), std::end(kWordPieceClasses));
  names.insert(names.end(), std::begin(kByteLevelClasses), std::end(kByteLevelClasses));
  for (const TokenizerFamily& family : tokenizer_families()) {
    names.push_back(family.tokenizer_class);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Names the folder's tokenizer files, none of which phasor reads.
std::string what_there_is(const Files& files) {
  if (files.has("tokenizer.json")) return "a tokenizer.json of an unknown kind";
  if (files.has("spiece.model") || files.has("sentencepiece.bpe.model")) {
    return "a SentencePiece model, but nothing that says which tokenizer it belongs to; "
           "put \"tokenizer_class\" into tokenizer_config.json";
  }
  return "no tokenizer files";
}

[[noreturn]] void unsupported(const Files& files) {
  refuse<ModelError>(ErrorCode::kUnsupported,
                     "{}: found {}; phasor reads WordPiece (vocab.txt), byte-level BPE (vocab.json "
                     "and merges.txt) and SentencePiece tokenizers, and tokenizer.json; or give "
                     "token ids instead of text (infer --ids \"5 17 9\")",
                     files.where(), what_there_is(files));
}

/// The only SentencePiece model of a folder without a tokenizer configuration.
std::optional<ModelPath> bare_model(const Files& files) {
  std::optional<ModelPath> model;
  if (files.has("config.json") || files.has("tokenizer_config.json")) return std::nullopt;
  for (const std::string& file : files.names) {
    const ModelPath path = files.folder.path() / file;
    if (path.extension() != ".model" && path.extension() != ".spm") continue;
    if (model) return std::nullopt;
    model = path;
  }
  return model;
}

/// The family with these files; if several have the same, config.json's model_type decides.
std::optional<TokenizerFamily> family_by_files(const Files& files) {
  const std::string model_type = files.model_type();
  std::vector<TokenizerFamily> candidates = tokenizer_families();
  std::erase_if(candidates, [&](const TokenizerFamily& family) {
    return !files.has(family.model_file) || family.has_vocab_json != files.has("vocab.json");
  });
  for (const TokenizerFamily& family : candidates) {
    const auto& types = family.model_types;
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return family;
  }
  if (candidates.size() == 1) return candidates.front();
  return std::nullopt;
}

std::shared_ptr<const Tokenizer> load_byte_level(const Files& files) {
  refuse_language(files);
  return load_bpe(files.folder.path(), files.settings);
}

std::shared_ptr<const Tokenizer> load_by_files(const Files& files) {
  if (files.has("vocab.txt")) return load_bert(files, "");
  if (const auto family = family_by_files(files)) return load_sentencepiece(files, *family);
  if (files.has("sentencepiece.bpe.model") && !files.has("vocab.json")) {
    return load_sentencepiece(files, *find_tokenizer_family("XLMRobertaTokenizer"),
                              {"no file says which tokenizer sentencepiece.bpe.model belongs to; "
                               "XLM-R's is assumed"});
  }
  if (const std::optional<ModelPath> model = bare_model(files)) {
    refuse_language(files);
    return load_plain(*model);
  }
  if (files.has("vocab.json") && files.has("merges.txt")) return load_byte_level(files);
  unsupported(files);
}

std::shared_ptr<const Tokenizer> load_by_class(const Files& files, const std::string& name) {
  if (is_among(kWordPieceClasses, name)) return load_bert(files, name);
  if (is_among(kByteLevelClasses, name)) return load_byte_level(files);
  const std::optional<TokenizerFamily> family = find_tokenizer_family(name);
  if (family && files.has(family->model_file)) return load_sentencepiece(files, *family);
  if (family) {
    refuse<ModelError>("{}: no such file; {} needs it",
                       (files.folder.path() / family->model_file).string(), name);
  }
  refuse<ModelError>(ErrorCode::kUnsupported,
                     "{}: the tokenizer_class {} is none that phasor reads: {}; or give token ids "
                     "instead of text (infer --ids \"5 17 9\")",
                     files.where(), value_text(name), fmt::join(class_names(), ", "));
}

/// The family of the class, otherwise of the files, whose SentencePiece model is there.
std::optional<TokenizerFamily> family_beside_json(const Files& files) {
  const std::string& name = files.settings.tokenizer_class;
  const auto family = name.empty() ? family_by_files(files) : find_tokenizer_family(name);
  return family && files.has(family->model_file) ? family : std::nullopt;
}

/// tokenizer.json goes before the SentencePiece model, except where texts have a language, which
/// only the table of families knows, and where phasor does not read it.
std::shared_ptr<const Tokenizer> load_unigram(const Files& files) {
  std::optional<TokenizerFamily> family = family_beside_json(files);
  if (family && !(family->languages.codes.empty() && family->languages.before.empty())) {
    Files with_added = files;
    for (AddedToken& token : read_added_tokens(files.folder.object(kTokenizerJson))) {
      with_added.settings.added.push_back(std::move(token));
    }
    return load_sentencepiece(with_added, *family,
                              {fmt::format("{} is followed, with the added tokens of {}",
                                           family->model_file, kTokenizerJson)});
  }
  try {
    refuse_language(files);
    if (const auto row = find_tokenizer_family(files.settings.tokenizer_class);
        row && row->read_options) {
      SentencePieceSpec unused;  // only what the class refuses counts
      row->read_options(files.settings.config, unused);
    }
    return load_unigram_json(files.folder, files.settings, family ? family->model_file : "");
  } catch (const ModelError& error) {
    if (!family || error.code() != ErrorCode::kUnsupported) throw;
    return load_sentencepiece(
        files, *family, {fmt::format("{} is followed: {}", family->model_file, error.what())});
  }
}

std::shared_ptr<const Tokenizer> load_json(const Files& files) {
  const std::string& name = files.settings.tokenizer_class;
  const std::string type = model_of_tokenizer_json(files.folder.object(kTokenizerJson));
  if (is_among(kWordPieceClasses, name)) return load_bert(files, name);
  if (type == "WordPiece") return load_bert(files, "");
  if (type == "Unigram") return load_unigram(files);
  if (type == "BPE") {
    refuse_language(files);
    return load_bpe_json(files.folder, files.settings);
  }
  unsupported(files);
}

}  // namespace

Tokens Tokenizer::encode_pair(std::string_view, std::string_view, const TokenizeOptions&) const {
  throw InvalidArgument("this tokenizer does not read pairs of texts", ErrorCode::kUnsupported);
}

namespace internal {

std::shared_ptr<const Tokenizer> load_tokenizer(ModelFolder& folder, const LoadOptions& options) {
  const ConfigReader config = folder.object("config.json");
  const Files files{.folder = folder,
                    .names = list_folder(folder.path()),
                    .settings = read_tokenizer_settings(folder),
                    .options = options};
  if (config.has("tokenizer")) {
    refuse_language(files);
    return load_spelled_out(folder.path(), config.object("tokenizer"));
  }
  const std::string& name = files.settings.tokenizer_class;
  if (files.has(kTokenizerJson)) return load_json(files);
  return name.empty() ? load_by_files(files) : load_by_class(files, name);
}

}  // namespace internal

std::shared_ptr<const Tokenizer> Tokenizer::load(const fs::path& folder,
                                                 const LoadOptions& options) {
  ModelFolder files(ModelPath(folder, options.follow_links));
  return load_tokenizer(files, options);
}

}  // namespace phasor
