// Model::load and find_model: from a name or folder to a Model.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "files/spelling.h"
#include "models/config_keys.h"
#include "models/model_config.h"
#include "models/parameters.h"
#include "models/sentence_files.h"
#include "models/tensor_files.h"
#include "phasor/model.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor {
using namespace internal;

namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// An environment variable; `otherwise` where it is not set or empty.
std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// The folders of add_models_folder().
struct AddedFolders {
  std::mutex mutex;
  std::vector<fs::path> folders;

  static AddedFolders& get() {
    static AddedFolders added;  // created on first use, possibly before main()
    return added;
  }
};

/// Adds the folder of the bundled models' wheel, beside the wheel that `file` is of. Files
/// elsewhere are not of one, and strangers may own the folder three above.
void add_models_wheel(const fs::path& file, std::vector<fs::path>& folders) {
  const fs::path package = file.parent_path().parent_path();
  const fs::path models = package.parent_path().parent_path() / "phasor_models";
  if (package.filename() == "_install" && is_folder(models)) folders.push_back(models);
}

/// The folders searched for bundled models, in this order.
std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders;
  const std::string asked_for = variable("PHASOR_MODELS", "");
  if (!asked_for.empty()) folders.emplace_back(asked_for);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  // Beside a shared library, whose folder may be lib or lib/x86_64-linux-gnu. Of a program, and of
  // a library that was opened by a relative name, the name says nothing of where it is.
  Dl_info library;
  if (dladdr(reinterpret_cast<const void*>(&find_model), &library) != 0) {
    const fs::path file = library.dli_fname;
    for (const char* const up : {"..", "../.."}) {
      const fs::path models = file.parent_path() / up / "share/phasor/models";
      if (file.is_absolute() && !fs::equivalent(file, program, error) && is_folder(models)) {
        folders.push_back(models.lexically_normal());
      }
    }
    add_models_wheel(file, folders);
  }
  if (!program.empty()) {
    folders.push_back(program.parent_path().parent_path() / "share/phasor/models");
    add_models_wheel(program, folders);
  }
  {
    AddedFolders& added = AddedFolders::get();
    const std::lock_guard lock(added.mutex);
    folders.insert(folders.end(), added.folders.begin(), added.folders.end());
  }
  folders.emplace_back(PHASOR_INSTALLED_MODELS);
  return folders;
}

/// Names of the models in `folders`, sorted, each once.
std::vector<std::string> models_in(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    for (std::string& name : list_folder(folder, 0, &ignored)) {
      if (is_file(folder / name / "config.json")) names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// OWNER/MODEL as the hub allows it, which may be meant as a path as well.
bool is_hub_name(const std::string& name) {
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  constexpr std::string_view kForbidden[] = {"//", "/.", "/-", "./", "-/", "..", "--"};
  const std::string framed = "/" + name + "/";
  return std::ranges::count(name, '/') == 1 && name.find_first_not_of(kCharacters) == name.npos &&
         std::ranges::none_of(
             kForbidden, [&](std::string_view pair) { return framed.find(pair) != framed.npos; });
}

/// A path with ~, $NAME and ${NAME} replaced, as Python's expanduser() and expandvars() do; an
/// unknown name stays.
std::string expanded(std::string path) {
  constexpr std::string_view kWord =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (path == "~" || path.starts_with("~/")) path.replace(0, 1, variable("HOME", "~"));
  for (size_t at = path.find('$'); at != path.npos; at = path.find('$', at)) {
    const bool braces = path.compare(at + 1, 1, "{") == 0;
    const size_t first = at + (braces ? 2 : 1);
    const size_t end = std::min(
        braces ? path.find('}', first) : path.find_first_not_of(kWord, first), path.size());
    const std::string name = path.substr(first, end - first);
    const bool closed = !braces || end < path.size();
    const char* const value = closed ? std::getenv(name.c_str()) : nullptr;
    if (value != nullptr) path.replace(at, end + (braces ? 1 : 0) - at, value);
    at = value != nullptr ? at + std::string_view(value).size() : end;
  }
  return path;
}

/// Where huggingface_hub keeps what it has downloaded: its constants.py.
fs::path hub_cache() {
  const std::string home =
      variable("HF_HOME", variable("XDG_CACHE_HOME", "~/.cache") + "/huggingface");
  return expanded(
      variable("HF_HUB_CACHE", variable("HUGGINGFACE_HUB_CACHE", expanded(home) + "/hub")));
}

/// The folder of a model's main revision in the hub's cache. Throws ModelError that says what of it
/// is not there.
fs::path in_hub_cache(const fs::path& name) {
  const fs::path cache = hub_cache();
  const auto refuse_without = [&](const std::string& what) {
    refuse<ModelError>(
        ErrorCode::kNotFound,
        "no model '{}': there is no such folder, and {}; fetch it by: {}; then give the same name",
        name.string(), what, fetch_command(name.string()));
  };
  const fs::path model =
      cache / fmt::format("models--{}--{}", name.parent_path().string(), name.filename().string());
  const fs::path ref = model / "refs/main";
  if (!is_folder(model)) {
    refuse_without(
        fmt::format("no model of that name in the Hugging Face hub's cache {}", cache.string()));
  }
  if (!is_file(ref))
    refuse_without(fmt::format("its folder in the hub's cache has no {}", ref.string()));
  const std::string commit = read_file(ref, 64);
  const fs::path folder = model / "snapshots" / commit;
  const bool plain = commit.find_first_not_of("0123456789abcdef") == commit.npos;
  if (!plain || commit.empty() || !is_folder(folder)) {
    refuse_without(fmt::format("{} in the hub's cache names the snapshot {}, which is not there",
                               ref.string(), value_text(commit)));
  }
  return folder;
}

/// Whether a config.json is a model's: those of Pooling and Dense modules have no model_type.
bool names_model_type(const ModelPath& file) {
  try {
    return read_model_file(file, kMaxConfig).find("\"model_type\"") != std::string::npos;
  } catch (const ModelError&) {
    return false;
  }
}

/// Folders with a config.json of a model, up to two levels below `folder`: a hub's cache has them
/// in snapshots/…, old sentence-transformers in 0_Transformer.
std::vector<std::string> models_below(const ModelPath& folder) {
  std::vector<std::string> names;
  for (const fs::path name : list_folder(folder, 2)) {
    if (name.filename() == "config.json" && names_model_type(folder / name))
      names.push_back((folder / name).parent_path().string());
  }
  return names;
}

/// Throws ModelError that says what a folder without config.json most likely is.
[[noreturn]] void no_config(const ModelPath& folder) {
  std::vector<std::string> below = models_below(folder);
  if (!below.empty()) {
    constexpr size_t kShown = 5;
    const size_t count = below.size();
    below.resize(std::min(count, kShown));
    refuse<ModelError>(
        "{}: no config.json in it, but {}: {}{}", folder.string(),
        count == 1 ? "in a folder below; give that one" : "in folders below; give one of them",
        fmt::join(below, ", "), count > kShown ? fmt::format(", … ({} in all)", count) : "");
  }
  const ForeignWeights found = foreign_weights(folder);
  refuse<ModelError>(found.code,
                     "{}: no config.json in it; a model is a folder with config.json, "
                     "model.safetensors and tokenizer files{}",
                     folder.string(), found.clause);
}

/// Transformers adds an adapter's weights to a model in another folder, which the file names.
void refuse_adapter(const fs::path& folder) {
  const fs::path file = folder / "adapter_config.json";
  if (!is_there(file)) return;
  refuse<ModelError>(
      ErrorCode::kUnsupported,
      "{}: an adapter (PEFT) changes the weights, and phasor runs none; merge it into the model "
      "(merge_and_unload), or, if the weights have it already, remove this file",
      file.string());
}

/// Throws ModelError if plain text gives ids without a row in the embedding.
void check_fits(const Tokenizer& tokenizer, const ModelConfig& config) {
  if (tokenizer.text_vocab_size() <= config.vocab_size) return;
  refuse<ModelError>(
      "the tokenizer, {}, has {} ids, but the token embedding {} rows: they are of different "
      "models; get the tokenizer files of this model, or give token ids",
      tokenizer.description(), tokenizer.text_vocab_size(), config.vocab_size);
}

/// Throws ModelError where the special tokens round a text are more than a text may have.
void check_length(const TextConfig& config, const Tokenizer& tokenizer) {
  if (config.max_tokens == 0) return;
  try {
    tokenizer.encode(
        "a", {.max_tokens = config.max_tokens, .no_special_tokens = !config.special_tokens});
  } catch (const InvalidArgument& error) {
    if (error.code() == ErrorCode::kEmptyText) return;
    refuse<ModelError>(
        "max_seq_length, max_length or model_max_length is {}, fewer than the special tokens that "
        "every text gets; correct it in sentence_bert_config.json or tokenizer_config.json",
        config.max_tokens);
  }
}

/// Files of sentence-transformers that it does not read itself, where modules.json is missing.
std::string modules_note(const ModelFolder& folder) {
  if (folder.has(kModules)) return {};
  for (const std::string& name : {sentence_file(folder), std::string(kSentenceConfig)}) {
    if (!folder.has(name)) continue;
    return fmt::format(
        "{} is followed, although sentence-transformers reads it only beside a "
        "modules.json",
        name);
  }
  return {};
}

bool has_modules_after_first(ModelFolder& folder) {
  int64_t count = 0;
  try {
    if (folder.has(kModules)) folder.list(kModules).for_each_object([&](const auto&) { ++count; });
  } catch (const ModelError&) {
    return false;
  }
  return count > 1;
}

/// A note if the tokenizer and the token embedding differ in size.
std::string rows_note(const Tokenizer& tokenizer, const ModelConfig& config) {
  const int64_t rows = config.vocab_size, pieces = tokenizer.vocab_size();
  if (pieces == rows) return {};
  if (pieces < rows) {
    return fmt::format("the token embedding has {} rows, the tokenizer {} pieces", rows, pieces);
  }
  const auto first = static_cast<int32_t>(config.vocab_size);
  return fmt::format(
      "special or added tokens from id {} ('{}') on have no row in the token embedding", first,
      tokenizer.piece(first));
}

}  // namespace

fs::path find_model(const fs::path& folder_or_name) {
  if (is_folder(folder_or_name)) return folder_or_name;
  std::error_code error;
  const fs::file_status status = fs::status(folder_or_name, error);
  if (fs::exists(status)) {
    const FileKind* const kind = file_kind(file_head(folder_or_name));
    refuse<ModelError>("{}: not a folder{}{}; give the folder that holds config.json",
                       folder_or_name.string(), kind == nullptr ? "" : ", but ",
                       kind == nullptr ? "" : kind->name);
  }
  if (error && status.type() != fs::file_type::not_found)
    refuse<ModelError>("{}: {}", folder_or_name.string(), error.message());
  const std::vector<fs::path> folders = model_folders();
  const bool is_name = !folder_or_name.empty() && !folder_or_name.has_parent_path();
  std::vector<std::string> looked_in;
  for (const fs::path& folder : folders) {
    if (is_name && is_file(folder / folder_or_name / "config.json")) return folder / folder_or_name;
    looked_in.push_back(folder.string());
  }
  if (is_hub_name(folder_or_name)) return in_hub_cache(folder_or_name);
  const std::vector<std::string> names = models_in(folders);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string meant = did_you_mean(folder_or_name.string(), known);
  throw ModelError(
      names.empty()
          ? fmt::format("no model '{}': there is no such folder, and no bundled models were found "
                        "in {}; install phasor-models, give a model's folder, or name theirs in "
                        "PHASOR_MODELS",
                        folder_or_name.string(), fmt::join(looked_in, ", "))
          : fmt::format("no model '{}': there is no such folder; the bundled models are: {}{}",
                        folder_or_name.string(), fmt::join(names, ", "),
                        !meant.empty() ? meant
                                       : "; one of the hub's is fetched by: " + fetch_command() +
                                             "; then give OWNER/MODEL"),
      ErrorCode::kNotFound);
}

bool add_models_folder(const fs::path& folder) {
  AddedFolders& added = AddedFolders::get();
  const std::lock_guard lock(added.mutex);
  if (std::ranges::find(added.folders, folder) == added.folders.end()) {
    added.folders.push_back(folder);
  }
  return true;
}

std::shared_ptr<const Model> Model::load(const fs::path& folder_or_name,
                                         const LoadOptions& options) {
  const ModelPath folder(find_model(folder_or_name), options.follow_links);
  const ModelPath transformer = transformer_of(folder);
  const ModelPath config = transformer / "config.json";
  if (std::error_code ignored; !is_file(config) && !fs::is_symlink(config, ignored))
    no_config(folder);
  ModelFolder json_files(transformer);
  std::optional<ModelFolder> outer;
  ModelFolder& sentence_files = transformer == folder ? json_files : outer.emplace(folder);
  refuse_adapter(transformer);
  CheckpointConfig checkpoint = read_model_config(json_files);
  const std::shared_ptr<const TensorFiles> files = TensorFiles::open(transformer, options.copy);
  const std::string colbert =
      has_modules(sentence_files) ? "" : sign_of_colbert(json_files, *files);
  checkpoint.maps_tokens = !colbert.empty() && files->contains(kTokenMapWeight);
  BoundWeights bound = bind_weights(*files, checkpoint);

  const std::shared_ptr<Model> model(new Model());
  model->config_ = std::move(checkpoint.config);
  model->weights_ = std::move(bound.weights);
  using Kept = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  model->storage_ = std::make_shared<Kept>(files, bound.computed);
  model->release_pages_ = [mapped = files.get()] { mapped->release_pages(); };
  model->folder_ = folder;
  model->metadata_ = files->metadata();
  model->unused_tensors_ = std::move(bound.unused);
  model->notes_ = std::move(checkpoint.notes);
  const auto add_note = [&](std::string note) {
    if (!note.empty()) model->notes_.push_back(std::move(note));
  };
  for (std::string& note : bound.notes) add_note(std::move(note));
  add_note(compare_with_formula(model->config_, model->weights_.position_table));
  try {
    std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(json_files, options);
    check_fits(*tokenizer, model->config_);
    for (const std::string& note : tokenizer->notes()) add_note(note);
    add_note(rows_note(*tokenizer, model->config_));
    model->tokenizer_ = std::move(tokenizer);
  } catch (const ModelError& error) {
    model->tokenizer_problem_ = error;
    for (const char* const name :
         {kTokenizerJson, kTokenizerConfig, "added_tokens.json", "special_tokens_map.json"}) {
      json_files.forget(name);  // not all of their keys were asked for
    }
  }
  try {
    static_cast<TextConfig&>(model->sentence_) = read_text_config(json_files, sentence_files);
    if (model->tokenizer_) check_length(model->sentence_, *model->tokenizer_);
  } catch (const ModelError& error) {
    model->text_problem_ = error;
    json_files.forget(sentence_file(json_files));
    sentence_files.forget(kSentenceConfig);
  }
  try {
    model->sparse_ =
        read_sparse_config(sentence_files, model->config_, model->weights_.mlm_head.has_value());
  } catch (const ModelError& error) {
    model->sparse_problem_ = error;
    add_note(fmt::format("no sparse vectors: {}", error.what()));
  }
  try {
    model->token_vectors_ = read_token_vector_config(json_files, sentence_files, *model, *files,
                                                     checkpoint.maps_tokens);
  } catch (const ModelError& error) {
    model->token_vectors_problem_ = error;
    add_note(fmt::format("no token vectors: {}", error.what()));
  }
  try {
    model->sentence_ =
        read_sentence_config(sentence_files, model->config_.d_model, model->text(), model->notes_);
    if (!colbert.empty()) {
      refuse<ModelError>(ErrorCode::kUnsupported,
                         "{}: it is a multi-vector model (ColBERT): {}; ask for vectors of the "
                         "kind tokens, choose a model of sentence vectors, or give a pooling",
                         folder.string(), colbert);
    }
    add_note(modules_note(sentence_files));
  } catch (const ModelError& error) {
    model->sentence_problem_ = error;
    if (model->weights_.classifier && has_modules_after_first(sentence_files)) {
      model->weights_.classifier.reset();
      add_note(
          "the classification head is not used: modules.json has modules after the Transformer, "
          "which phasor does not run for labels");
    }
    sentence_files.forget_modules();
    if (!model->weights_.classifier && !model->sparse_ && !model->token_vectors_)
      add_note(fmt::format("no sentence vectors: {}", error.what()));
  }
  report_others(json_files, model->unused_keys_, model->notes_);
  if (outer) report_others(*outer, model->unused_keys_, model->notes_);
  return model;
}

}  // namespace phasor
