#include "files/corpus/vector_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "files/corpus/fingerprint.h"
#include "files/corpus/temporary_file.h"
#include "files/files.h"
#include "phasor/errors.h"
#include "phasor/safetensors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using phasor::internal::is_file;

/// Which fingerprint a file of a model's folder belongs to; empty for files that decide nothing.
std::string part_of(const fs::path& folder, const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.starts_with("pytorch_model") && file.extension() == ".bin") {
    const fs::path taken = (folder / file).replace_filename("model.safetensors");
    return is_file(taken) || is_file(taken.string() + ".index.json") ? "" : "weights";
  }
  constexpr std::array kExtensions = {".json", ".safetensors", ".model", ".spm", ".txt"};
  const bool decides = file.stem() != "golden" &&
                       std::ranges::find(kExtensions, file.extension()) != kExtensions.end();
  if (!decides) return "";
  if (file.extension() == ".safetensors") return "weights";
  const bool config = file.has_parent_path() || name == "modules.json" ||
                      name.ends_with(".index.json") ||
                      (name.ends_with("config.json") && !name.starts_with("tokenizer"));
  return config || name.starts_with("config_") ? "config" : "tokenizer";
}

}  // namespace

// Links to folders are not followed, and what is no plain file, or a link that leads nowhere or out
// of the folder, is none of the model's.
MadeWith model_fingerprints(const phasor::internal::ModelPath& folder) {
  fs::directory_iterator{folder};  // throws where the folder itself cannot be listed
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  std::map<std::string, Fingerprint> parts;
  for (const char* const part : {"config", "tokenizer", "weights"}) parts[part];
  std::map<std::pair<uint64_t, uint64_t>, std::string> contents;  // links may lead to one file
  for (const fs::path& file : files) {
    const fs::path name = file.lexically_relative(folder);
    const std::string part = part_of(folder, name);
    if (part.empty()) continue;
    try {
      phasor::internal::refuse_link_out(folder, file);
      std::string& content = contents[phasor::internal::file_id(file)];
      if (content.empty()) content = fingerprint_of(file);
      parts[part].add_piece(name.string());
      parts[part].add_piece(content);
    } catch (const phasor::ModelError&) {
      // The model was loaded without it.
    }
  }
  MadeWith texts;
  for (const auto& [part, fingerprint] : parts) texts[part] = fingerprint.text();
  return texts;
}

std::vector<Difference> differences(const MadeWith& before, const MadeWith& now) {
  std::vector<Difference> all;
  for (const auto& [what, value] : now) {
    const auto found = before.find(what);
    const std::string then = found == before.end() ? "?" : found->second;
    if (then != value && what != "model") all.push_back({what, then, value});
  }
  for (const auto& [what, value] : before) {
    if (!now.contains(what)) all.push_back({what, value, "?"});
  }
  for (const char* const first : {"tokenizer", "weights"}) {
    const auto at = std::ranges::find(all, first, &Difference::what);
    if (at != all.end()) std::rotate(all.begin(), at, at + 1);
  }
  return all;
}

std::string text_of(const Difference& difference, const MadeWith& before, const MadeWith& now) {
  const bool of_files = std::ranges::count(std::array{"config", "tokenizer", "weights"},
                                           std::string_view(difference.what)) > 0;
  const auto value = [&](const std::string& text, const MadeWith& made_with) {
    const auto model = made_with.find("model");
    if (of_files && model != made_with.end()) return fmt::format("{} of {}", text, model->second);
    return text.find(", ") != text.npos && !text.starts_with('"') ? fmt::format("\"{}\"", text)
                                                                  : text;
  };
  return fmt::format("{} {} (now {})", difference.what, value(difference.before, before),
                     value(difference.now, now));
}

nlohmann::ordered_json VectorRecord::json() const {
  nlohmann::ordered_json json = {
      {"made_with", made_with}, {"lines", lines}, {"bytes", bytes}, {"input", input}};
  if (!xxh64.empty()) json["xxh64"] = xxh64;
  return json;
}

VectorRecord VectorRecord::of(const nlohmann::json& json) {
  const auto count = [&](const char* name) {
    constexpr uint64_t kMost = uint64_t{1} << 46;  // sums of them fit into 64 bits
    const nlohmann::json& number = json.at(name);
    if (number.is_number_unsigned() && number.get<uint64_t>() <= kMost)
      return number.get<int64_t>();
    throw nlohmann::json::other_error::create(501, name, &json);
  };
  return {.made_with = json.at("made_with").get<MadeWith>(),
          .lines = count("lines"),
          .bytes = count("bytes"),
          .input = json.at("input"),
          .xxh64 = json.value("xxh64", "")};
}

void VectorRecord::write(const std::string& option, const fs::path& record) const {
  const std::string text =
      json().dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  TemporaryFile file(option, record);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::optional<VectorRecord> VectorRecord::read(const std::string& what, const fs::path& record) {
  constexpr int64_t kMostBytes = 1 << 20;
  const std::string text = phasor::internal::as_input(
      what, [&] { return phasor::internal::read_file(record, kMostBytes); });
  try {
    return of(phasor::internal::parse_json_object(text, record.string()).take());
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const phasor::ModelError&) {
    return std::nullopt;
  }
}

std::optional<VectorRecord> VectorRecord::find(const fs::path& vectors) {
  if (vectors.extension() == ".safetensors") {
    const auto file =
        phasor::internal::as_input("", [&] { return phasor::SafetensorsFile::open(vectors); });
    MadeWith made_with = file->metadata();
    const auto& entries = file->entries();
    const auto matrix = entries.find("embeddings"), offsets = entries.find("offsets");
    int64_t lines = -1;
    if (matrix != entries.end() && matrix->second.shape.size() == 2)
      lines = matrix->second.shape[0];
    else if (offsets != entries.end() && offsets->second.shape.size() == 1)
      lines = offsets->second.shape[0] - 1;
    const auto input = made_with.extract("input");
    if (!input || !made_with.contains("weights") || lines < 0) return std::nullopt;
    return VectorRecord{.made_with = std::move(made_with),
                        .lines = lines,
                        .bytes = static_cast<int64_t>(fs::file_size(vectors)),
                        .input = input.mapped(),
                        .xxh64 = {}};
  }
  const fs::path record = record_beside(vectors);
  return phasor::internal::is_there(record) ? read("", record) : std::nullopt;
}

fs::path record_beside(const fs::path& vectors) { return vectors.string() + ".json"; }

void refuse_to_replace_record(const fs::path& vectors) {
  const fs::path record = record_beside(vectors);
  if (!phasor::internal::is_there(record) || VectorRecord::read("-o: ", record)) return;
  throw phasor::InvalidArgument(
      fmt::format("-o: {} would be replaced by the record of {}; move it or choose another name",
                  record.string(), vectors.string()));
}

}  // namespace infer
