// Tokenizer::load: chooses the tokenizer of a folder. The tokenizer's own files decide, and the
// model's type only if they say nothing: multilingual-e5-small is a BERT with XLM-R's tokenizer.
#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "models/bpe_files.h"
#include "models/config_reader.h"
#include "models/files.h"
#include "models/sentencepiece_files.h"
#include "models/tokenizer_families.h"
#include "models/tokenizer_json.h"
#include "models/unigram_json.h"
#include "models/wordpiece_files.h"
#include "phasor/errors.h"
#include "phasor/tokenizer.h"

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

/// What all kinds of tokenizers need of the folder.
struct Files {
  fs::path folder;
  std::vector<std::string> names;  // sorted
  JsonDocument config;             // config.json, {} if missing
  JsonDocument tokenizer_config;   // tokenizer_config.json, likewise
  LoadOptions options;

  bool has(std::string_view name) const {
    return std::binary_search(names.begin(), names.end(), name);
  }
  ConfigReader config_reader() const { return {(folder / "config.json").string(), *config}; }
  ConfigReader tokenizer_reader() const {
    return {(folder / "tokenizer_config.json").string(), *tokenizer_config};
  }
};

// Not with std::filesystem: libstdc++'s iterators end the process where they get no memory.
std::vector<std::string> file_names(const fs::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  std::vector<std::string> names;
  errno = opened == nullptr ? errno : 0;
  while (const dirent* const entry = opened != nullptr ? readdir(opened.get()) : nullptr) {
    names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) {
    throw ModelError(fmt::format("{}: cannot be read: {}", folder.string(), std::strerror(errno)));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Files read_files(const fs::path& folder, const LoadOptions& options) {
  Files files{.folder = folder,
              .names = file_names(folder),
              .config = {},
              .tokenizer_config = {},
              .options = options};
  if (files.has("config.json")) files.config = read_json_object(folder / "config.json");
  if (files.has("tokenizer_config.json")) {
    files.tokenizer_config = read_json_object(folder / "tokenizer_config.json");
  }
  return files;
}

/// tokenizer_config.json's added_tokens_decoder: {"103": {"content": "[MASK]", …}, …}.
std::vector<AddedToken> added_tokens(const ConfigReader& reader) {
  std::vector<AddedToken> added;
  if (!reader.has("added_tokens_decoder")) return added;
  const ConfigReader list = reader.object("added_tokens_decoder");
  for (const std::string& id : list.keys_besides({})) {
    const bool is_id =
        !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == id.npos;
    if (!is_id) list.fail(fmt::format("{} is no token id", value_text(id)));
    added.push_back(read_added_token(list.object(id), std::stoll(id)));
  }
  return added;
}

void refuse_language(const Files& files) {
  if (files.options.language.empty()) return;
  throw InvalidArgument(fmt::format("{}: its tokenizer knows no languages; leave out '{}'",
                                    files.folder.string(), files.options.language));
}

/// `name` is a class's, without "Tokenizer".
std::shared_ptr<const Tokenizer> load_bert(const Files& files, std::string_view name) {
  refuse_language(files);
  const ConfigReader reader = files.tokenizer_reader();
  return load_wordpiece(files.folder, name, reader, added_tokens(reader));
}

std::shared_ptr<const Tokenizer> load_bert_by_type(const Files& files) {
  const bool mpnet = files.config_reader().text({"model_type"}, "") == "mpnet";
  return load_bert(files, mpnet ? "MPNet" : "BERT");
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const Files& files, TokenizerFamily family,
                                                    std::vector<std::string> notes = {}) {
  const ConfigReader reader = files.tokenizer_reader();
  family.spec.notes = std::move(notes);
  family.spec.added = added_tokens(reader);
  return load_family(files.folder, std::move(family), reader, files.options);
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

/// What a folder has instead of a tokenizer that phasor reads.
std::string what_there_is(const Files& files) {
  if (files.has("tokenizer.json")) return "a tokenizer.json of an unknown kind";
  if (files.has("spiece.model") || files.has("sentencepiece.bpe.model")) {
    return "a SentencePiece model, but nothing that says which tokenizer it belongs to; "
           "put \"tokenizer_class\" into tokenizer_config.json";
  }
  return "no tokenizer files";
}

[[noreturn]] void unsupported(const Files& files) {
  throw ModelError(
      fmt::format(
          "{}: found {}; phasor reads WordPiece (vocab.txt), byte-level BPE (vocab.json and "
          "merges.txt) and SentencePiece tokenizers, and tokenizer.json; or give token ids "
          "instead of text (infer --ids \"5 17 9\")",
          files.folder.string(), what_there_is(files)),
      ErrorCode::kUnsupported);
}

std::shared_ptr<const Tokenizer> load_json(const Files& files) {
  const fs::path file = files.folder / "tokenizer.json";
  const JsonDocument document = read_json_object(file, kMaxTokenizerFile);
  const json& root = *document;
  const std::string type = model_of_tokenizer_json(root);
  if (type == "WordPiece") return load_bert_by_type(files);
  refuse_language(files);
  if (type == "BPE") return load_bpe_json(file, root, files.tokenizer_reader());
  if (type == "Unigram") return load_unigram_json(file, root, files.tokenizer_reader());
  unsupported(files);
}

std::shared_ptr<const Tokenizer> load_byte_level(const Files& files) {
  if (files.has("tokenizer.json")) return load_json(files);
  refuse_language(files);
  const ConfigReader reader = files.tokenizer_reader();
  return load_bpe(files.folder, reader, added_tokens(reader));
}

/// The only SentencePiece model of a folder without a tokenizer configuration.
std::optional<fs::path> bare_model(const Files& files) {
  std::optional<fs::path> model;
  if (files.has("config.json") || files.has("tokenizer_config.json")) return std::nullopt;
  for (const std::string& file : files.names) {
    const fs::path path = files.folder / file;
    if (path.extension() != ".model" && path.extension() != ".spm") continue;
    if (model) return std::nullopt;
    model = path;
  }
  return model;
}

/// The family with these files; if several have the same, config.json's model_type decides.
std::optional<TokenizerFamily> family_by_files(const Files& files) {
  const std::string model_type = files.config_reader().text({"model_type"}, "");
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

std::shared_ptr<const Tokenizer> load_by_files(const Files& files) {
  if (files.has("vocab.txt")) return load_bert_by_type(files);
  if (const auto family = family_by_files(files)) return load_sentencepiece(files, *family);
  if (files.has("sentencepiece.bpe.model") && !files.has("vocab.json")) {
    return load_sentencepiece(files, *find_tokenizer_family("XLMRobertaTokenizer"),
                              {"no file says which tokenizer sentencepiece.bpe.model belongs to; "
                               "XLM-R's is assumed"});
  }
  if (const std::optional<fs::path> model = bare_model(files)) {
    refuse_language(files);
    return load_plain(*model);
  }
  if (files.has("tokenizer.json") || (files.has("vocab.json") && files.has("merges.txt"))) {
    return load_byte_level(files);
  }
  unsupported(files);
}

/// The tokenizer's class without "Fast"; empty if no specific one is named.
std::string tokenizer_class(const Files& files) {
  for (const ConfigReader& reader : {files.tokenizer_reader(), files.config_reader()}) {
    std::string name = reader.text({"tokenizer_class"}, "");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    const bool says_nothing = name.empty() || name == "PreTrainedTokenizer" ||
                              name == "AutoTokenizer" || name == "TokenizersBackend";
    if (!says_nothing) return name;
  }
  return {};
}

std::shared_ptr<const Tokenizer> load_by_class(const Files& files, const std::string& name) {
  if (is_among(kWordPieceClasses, name)) {
    return load_bert(files, name.substr(0, name.size() - std::string_view("Tokenizer").size()));
  }
  if (is_among(kByteLevelClasses, name)) return load_byte_level(files);
  const std::optional<TokenizerFamily> family = find_tokenizer_family(name);
  if (family && files.has(family->model_file)) return load_sentencepiece(files, *family);
  if (files.has("tokenizer.json")) return load_json(files);
  if (family) {
    throw ModelError(fmt::format("{}: no such file; {} needs it",
                                 (files.folder / family->model_file).string(), name));
  }
  throw ModelError(
      fmt::format("{}: the tokenizer_class \"{}\" is none that phasor reads: {}; or give token ids "
                  "instead of text (infer --ids \"5 17 9\")",
                  files.folder.string(), name, fmt::join(class_names(), ", ")),
      ErrorCode::kUnsupported);
}

}  // namespace

Tokens Tokenizer::encode_pair(std::string_view, std::string_view, const TokenizeOptions&) const {
  throw InvalidArgument("this tokenizer does not read pairs of texts", ErrorCode::kUnsupported);
}

std::shared_ptr<const Tokenizer> Tokenizer::load(const fs::path& folder,
                                                 const LoadOptions& options) {
  const Files files = read_files(folder, options);
  if (files.config_reader().has("tokenizer")) {
    refuse_language(files);
    return load_spelled_out(folder, files.config_reader().object("tokenizer"));
  }
  const std::string name = tokenizer_class(files);
  return name.empty() ? load_by_files(files) : load_by_class(files, name);
}

}  // namespace phasor
