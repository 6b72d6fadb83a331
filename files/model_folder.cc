#include "files/model_folder.h"

#include "files/refuse.h"

namespace phasor::internal {

ModelFolder::File& ModelFolder::open(const std::string& name, bool is_object) {
  std::unique_ptr<File>& file = files_[name];
  if (file != nullptr) return *file;
  auto opened = std::make_unique<File>();
  if (has(name)) {
    const int64_t most = name == kTokenizerJson ? kMaxTokenizerFile : kMaxConfig;
    opened->document =
        is_object ? read_json_object(path_ / name, most) : read_json(path_ / name, most);
  }
  file = std::move(opened);
  return *file;
}

ConfigReader ModelFolder::object(const std::string& name) {
  File& file = open(name, true);
  return ConfigReader((path_ / name).string(), *file.document, &file.asked);
}

ConfigReader ModelFolder::needed(const std::string& name) {
  if (!has(name)) refuse<ModelError>("{}: no such file", (path_ / name).string());
  return object(name);
}

ConfigReader ModelFolder::list(const std::string& name) {
  File& file = open(name, false);
  const ConfigReader reader((path_ / name).string(), *file.document, &file.asked);
  if (!file.document->is_array())
    reader.fail("it must be a list of modules, not {}", value_text(*file.document));
  return reader;
}

std::vector<ModelFolder::Others> ModelFolder::others() const {
  std::vector<Others> all;
  for (const auto& [name, file] : files_) {
    if (file == nullptr || forgotten_.contains(name)) continue;
    if (std::set<std::string> keys = file->asked.others(*file->document); !keys.empty()) {
      all.push_back({name, std::move(keys)});
    }
  }
  return all;
}

}  // namespace phasor::internal
