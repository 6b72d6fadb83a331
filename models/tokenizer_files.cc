// Tokenizer::load: which tokenizer a folder's files make, and their JSON side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "models/config_reader.h"
#include "models/files.h"
#include "models/tokenizer_families.h"
#include "phasor/errors.h"
#include "phasor/tokenizer.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxId = int64_t{1} << 24;

std::vector<std::string> class_names() {
  std::vector<std::string> names;
  for (const TokenizerFamily& family : tokenizer_families())
    names.push_back(family.tokenizer_class);
  return names;
}

void read_model(const fs::path& file, SentencePieceSpec& spec) {
  spec.file = file.string();
  spec.model = read_file(file);
  if (const std::string_view what = imposter(spec.model); !what.empty()) {
    throw ModelError(fmt::format("{}: this is {}", spec.file, what));
  }
}

std::map<std::string, int32_t> read_vocabulary(const fs::path& file) {
  const nlohmann::json json = read_json_object(file);
  const ConfigReader reader(file.string(), json);
  std::map<std::string, int32_t> ids;
  for (const auto& [piece, id] : json.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > uint64_t{kMaxId}) {
      reader.refuse(piece, fmt::format("a whole number from 0 to {}", kMaxId));
    }
    ids.emplace_hint(ids.end(), piece, id.get<int32_t>());
  }
  return ids;
}

/// phasor's own way: everything in config.json.
std::shared_ptr<const Tokenizer> load_spelled_out(const fs::path& folder,
                                                  const ConfigReader& reader) {
  if (reader.text({"type"}) != "sentencepiece") reader.refuse("type", "\"sentencepiece\"");
  const std::string file = reader.text({"file"});
  if (file.empty() || fs::path(file).has_parent_path()) {
    reader.refuse("file", "the name of a file in the model's folder");
  }
  SentencePieceSpec spec{.kind = "phasor",
                         .prefix = reader.texts({"prefix"}),
                         .suffix = reader.texts({"suffix"}),
                         .unk = reader.text({"unk"}, ""),
                         .mask = reader.text({"mask"}, ""),
                         .pad = reader.text({"pad"}, "")};
  read_model(folder / file, spec);
  return make_sentencepiece_tokenizer(spec);
}

std::shared_ptr<const Tokenizer> load_family(const fs::path& folder, const TokenizerFamily& family,
                                             const std::string& language) {
  SentencePieceSpec spec = family.spec;
  for (std::vector<std::string>* list : {&spec.prefix, &spec.suffix}) {
    for (std::string& piece : *list) {
      const size_t at = piece.find("{lang}");
      if (at != std::string::npos) {
        piece.replace(at, 6, language.empty() ? family.default_language : language);
      }
    }
  }
  read_model(folder / family.model_file, spec);
  if (family.has_vocab_json) spec.vocabulary = read_vocabulary(folder / "vocab.json");
  return make_sentencepiece_tokenizer(spec);
}

/// The family whose files these are.
std::optional<TokenizerFamily> family_by_files(const fs::path& folder) {
  const bool has_vocab_json = is_file(folder / "vocab.json");
  for (const TokenizerFamily& family : tokenizer_families()) {
    if (is_file(folder / family.model_file) && family.has_vocab_json == has_vocab_json) {
      return family;
    }
  }
  return std::nullopt;
}

/// The only SentencePiece model of a folder with nothing that says how to use it.
std::optional<fs::path> bare_model(const fs::path& folder, const std::vector<std::string>& files) {
  std::optional<fs::path> model;
  for (const std::string& file : files) {
    const fs::path path = folder / file;
    if (file == "config.json" || file == "tokenizer_config.json") return std::nullopt;
    if (path.extension() != ".model" && path.extension() != ".spm") continue;
    if (model) return std::nullopt;
    model = path;
  }
  return model;
}

std::vector<std::string> file_names(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) {
    throw ModelError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void unsupported(const fs::path& folder, const std::vector<std::string>& files) {
  const auto has = [&](const char* name) {
    return std::find(files.begin(), files.end(), name) != files.end();
  };
  std::string found = "no tokenizer files";
  if (has("vocab.txt")) {
    found = "a WordPiece tokenizer (vocab.txt)";
  } else if (has("merges.txt")) {
    found = "a byte-level BPE tokenizer (vocab.json, merges.txt)";
  } else if (has("tokenizer.json")) {
    found = "tokenizer.json alone";
  } else if (has("spiece.model") || has("sentencepiece.bpe.model")) {
    found = "a SentencePiece model, but nothing that says which tokenizer it belongs to";
  }
  throw ModelError(
      fmt::format("{}: found {}; phasor reads the SentencePiece tokenizers {} and its "
                  "own; give token ids instead of text",
                  folder.string(), found, fmt::join(class_names(), ", ")));
}

std::shared_ptr<const Tokenizer> load_by_files(const fs::path& folder, const std::string& language,
                                               const std::vector<std::string>& files) {
  if (const std::optional<TokenizerFamily> family = family_by_files(folder)) {
    return load_family(folder, *family, language);
  }
  const std::optional<fs::path> model = bare_model(folder, files);
  if (!model) unsupported(folder, files);
  SentencePieceSpec spec{.kind = "plain"};
  read_model(*model, spec);
  return make_sentencepiece_tokenizer(spec);
}

/// The class of tokenizer_config.json without "Fast"; empty where it names none in particular.
std::string tokenizer_class(const ConfigReader& reader) {
  std::string name = reader.text({"tokenizer_class"}, "");
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const bool says_nothing =
      name == "PreTrainedTokenizer" || name == "AutoTokenizer" || name == "TokenizersBackend";
  return says_nothing ? "" : name;
}

std::shared_ptr<const Tokenizer> load_by_class(const fs::path& folder, const ConfigReader& reader,
                                               const std::vector<std::string>& files) {
  const std::string name = tokenizer_class(reader);
  const std::string language = reader.text({"src_lang"}, "");
  if (name.empty()) return load_by_files(folder, language, files);
  for (const TokenizerFamily& family : tokenizer_families()) {
    if (family.tokenizer_class == name) return load_family(folder, family, language);
  }
  reader.refuse("tokenizer_class", fmt::format("one of: {}; or give token ids instead of text",
                                               fmt::join(class_names(), ", ")));
}

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::load(const fs::path& folder) {
  const std::vector<std::string> files = file_names(folder);
  const fs::path config_json = folder / "config.json";
  if (is_file(config_json)) {
    const nlohmann::json json = read_json_object(config_json);
    const ConfigReader reader(config_json.string(), json);
    if (reader.has("tokenizer")) return load_spelled_out(folder, reader.object("tokenizer"));
  }
  const fs::path tokenizer_json = folder / "tokenizer_config.json";
  const bool has_config = is_file(tokenizer_json);
  const nlohmann::json json =
      has_config ? read_json_object(tokenizer_json) : nlohmann::json::object();
  return load_by_class(folder, ConfigReader(tokenizer_json.string(), json), files);
}

}  // namespace phasor
