// The JSON files of a model's folder: each is read once, and remembers which keys were asked for.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "files/config_reader.h"
#include "files/files.h"

namespace phasor::internal {

inline constexpr const char* kModules = "modules.json";
inline constexpr const char* kTokenizerJson = "tokenizer.json";
inline constexpr const char* kTokenizerConfig = "tokenizer_config.json";
inline constexpr const char* kSentenceConfig = "config_sentence_transformers.json";

class ModelFolder {
 public:
  explicit ModelFolder(ModelPath path) : path_(std::move(path)) {}

  const ModelPath& path() const { return path_; }
  /// Whether anything of this name is in the folder; see is_there().
  bool has(const std::string& name) const { return is_there(path_ / name); }

  /// The file "config.json", "1_Pooling/config.json", …; an empty object if it is not there. What
  /// it reads lives as long as the folder. Throws ModelError if the file is no JSON object.
  ConfigReader object(const std::string& name);
  /// Like object(), of a file that must be there.
  ConfigReader needed(const std::string& name);
  /// Like object(), of a list; see ConfigReader::for_each_object(). Throws ModelError if there is
  /// none.
  ConfigReader list(const std::string& name);

  /// Leaves a file out of others(), because reading it ended early.
  void forget(const std::string& name) { forgotten_.insert(name); }
  /// Likewise modules.json and the files of its modules.
  void forget_modules() {
    for (const auto& [name, file] : files_) {
      if (name == kModules || name.find('/') != name.npos) forget(name);
    }
  }

  /// The keys of a file that nobody asked for.
  struct Others {
    std::string file;
    std::set<std::string> keys;
  };
  /// For all files that were read.
  std::vector<Others> others() const;

 private:
  struct File {
    JsonDocument document;
    AskedKeys asked;
  };
  File& open(const std::string& name, bool is_object);

  ModelPath path_;
  std::map<std::string, std::unique_ptr<File>> files_;
  std::set<std::string> forgotten_;
};

}  // namespace phasor::internal
