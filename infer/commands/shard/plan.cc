#include "infer/commands/shard/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "files/corpus/fingerprint.h"
#include "files/corpus/save.h"
#include "files/corpus/temporary_file.h"
#include "files/files.h"
#include "infer/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;
constexpr const char* kPlan = "plan.json";
constexpr int64_t kMostBytes = 64 << 20;        // of plan.json
constexpr int64_t kMostIndexBytes = 512 << 20;  // of ten million shards: 320 MB

// ---- plan.json

Json json_of(const VectorOptions& options) {
  Json json = {{"model", options.common.model},
               {"language", options.common.language},
               {"precision", to_string(precision_of(options.common))},
               {"kernels", to_string(options.common.kernels)},
               {"pooling", options.pooling},
               {"overflow", options.overflow},
               {"prefix", nullptr},
               {"normalize", nullptr},
               {"strict", options.strict}};
  if (options.prefix) json["prefix"] = *options.prefix;
  if (options.normalize || options.no_normalize) json["normalize"] = options.normalize;
  return json;
}

VectorOptions options_of(const Json& json) {
  VectorOptions options;
  options.common.model = json.at("model");
  options.common.language = json.at("language");
  options.common.precision =
      phasor::parse<phasor::Precision>(json.at("precision").get<std::string>());
  options.common.kernels = phasor::parse<phasor::KernelLibrary>(json.value("kernels", "auto"));
  options.pooling = json.at("pooling");
  options.overflow = json.at("overflow");
  if (!json.at("prefix").is_null()) options.prefix = json.at("prefix").get<std::string>();
  if (const Json& normalize = json.at("normalize"); !normalize.is_null()) {
    options.normalize = normalize.get<bool>();
    options.no_normalize = !options.normalize;
  }
  options.strict = json.at("strict");
  return options;
}

Json json_of(const Plan& plan, const std::string& index_fingerprint) {
  Json inputs = Json::array();
  for (const Plan::Input& input : plan.inputs) {
    inputs.push_back({{"file", input.file}, {"bytes", input.bytes}, {"lines", input.lines}});
  }
  return {{"phasor_shards", kVersion},
          {"format", VectorFormat::kExtensions[static_cast<size_t>(plan.format.kind)]},
          {"width", plan.format.width},
          {"lines", plan.lines},
          {"input", plan.input},
          {"lines_per_shard", plan.lines_per_shard},
          {"shards", plan.size()},
          {"made_with", plan.format.made_with},
          {"options", json_of(plan.options)},
          {"inputs", inputs},
          {"index", index_fingerprint}};
}

/// A whole number from `least` up. The bytes of so many lines of the widest vectors fit into 64
/// bits, and so do the bytes of all inputs.
int64_t whole(const Json& json, const char* name, int64_t least) {
  const int64_t kMost = std::string_view(name) == "bytes" ? int64_t{1} << 46 : int64_t{1} << 36;
  const Json& number = json.at(name);
  const bool fits =
      number.is_number_unsigned() && number.get<uint64_t>() <= static_cast<uint64_t>(kMost);
  if (!fits || number.get<int64_t>() < least) {
    throw phasor::InvalidArgument(fmt::format("\"{}\" is {}", name, number.dump()));
  }
  return number.get<int64_t>();
}

// ---- the index

using IndexRow = std::array<int64_t, 4>;

std::string index_of(const Plan& plan) {
  std::vector<IndexRow> rows;
  for (const ShardLines& lines : plan.shards) {
    rows.push_back({lines.begin.file, lines.begin.offset, lines.begin.line,
                    std::bit_cast<int64_t>(lines.fingerprint)});
  }
  return npy_header("<i8", std::array<int64_t, 2>{plan.size(), 4}) +
         std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(IndexRow));
}

std::vector<ShardLines> shards_of(std::string_view index, int64_t count, int64_t num_inputs) {
  const std::string header = npy_header("<i8", std::array<int64_t, 2>{count, 4});
  const auto size = static_cast<size_t>(count) * sizeof(IndexRow);
  if (!index.starts_with(header) || index.size() != header.size() + size) {
    throw phasor::InvalidArgument("the index has another number of shards");
  }
  std::vector<ShardLines> shards;
  for (index.remove_prefix(header.size()); !index.empty(); index.remove_prefix(sizeof(IndexRow))) {
    IndexRow row{};
    std::memcpy(row.data(), index.data(), sizeof row);
    constexpr int64_t kMost = int64_t{1} << 60;
    if (row[0] < 0 || row[0] >= num_inputs || row[1] < 0 || row[1] > kMost || row[2] < 0 ||
        row[2] > kMost) {
      throw phasor::InvalidArgument(
          fmt::format("row {} of the index is out of range", shards.size()));
    }
    shards.push_back({{row[0], row[1], row[2]}, std::bit_cast<uint64_t>(row[3])});
  }
  return shards;
}

std::string fingerprint_of_text(std::string_view text) {
  Fingerprint fingerprint;
  fingerprint.add(std::as_bytes(std::span(text)));
  return fingerprint.text();
}

fs::path index_file(const fs::path& folder, const std::string& fingerprint) {
  return folder / fmt::format("plan.{}.npy", fingerprint);
}

void write_index(const fs::path& folder, const std::string& fingerprint, std::string_view index) {
  TemporaryFile file("-o", index_file(folder, fingerprint));
  file.write(std::as_bytes(std::span(index)));
  file.commit();
}

/// The first thing that differs, as "lines is 5, not 7"; empty where nothing does.
std::string difference(const Json& before, const Json& now, const std::string& name = "plan") {
  if (before == now) return "";
  if (!before.is_object() || !now.is_object()) {
    const std::string then = before.dump(), value = now.dump();
    const bool brief = then.size() + value.size() < 200;
    return brief ? fmt::format("{} is {}, not {}", name, then, value) : name + " is another";
  }
  for (const auto& [key, value] : now.items()) {
    const std::string found = difference(before.value(key, Json()), value, key);
    if (!found.empty()) return found;
  }
  return name + " is another";
}

}  // namespace

int64_t Plan::lines_of(int64_t shard) const {
  return std::min(lines_per_shard, lines - first_line(shard));
}

std::string Plan::input_of(int64_t shard) const {
  return fmt::format("{:016x}", shards[shard].fingerprint);
}

std::string Plan::header_of(int64_t shard) const {
  return format.header(lines_of(shard), input_of(shard));
}

std::optional<int64_t> Plan::bytes_of(int64_t shard) const {
  if (format.kind == VectorFormat::Kind::kJsonLines) return std::nullopt;
  return std::ssize(header_of(shard)) + 4 * format.width * lines_of(shard);
}

fs::path Plan::group_of(int64_t shard) const {
  return folder / fmt::format("{:03}", shard / kGroupSize);
}

fs::path Plan::file_of(int64_t shard) const {
  return group_of(shard) / fmt::format("shard-{:06}.{}", shard,
                                       VectorFormat::kExtensions[static_cast<size_t>(format.kind)]);
}

fs::path Plan::record_of(int64_t shard) const { return file_of(shard).replace_extension("done"); }

std::vector<std::string> Plan::files() const {
  std::vector<std::string> files;
  for (const Input& input : inputs) files.push_back(input.file);
  return files;
}

bool Plan::write() {
  std::error_code problem;
  const bool made = fs::create_directories(folder, problem);
  if (!fs::is_directory(folder)) {
    throw phasor::InvalidArgument(
        fmt::format("-o: cannot make the folder {}: {}", folder.string(),
                    problem ? problem.message() : "a file has that name"));
  }
  if (made) sync_name(fs::absolute(folder));
  const std::string index = index_of(*this), fingerprint = fingerprint_of_text(index);
  const std::string text = json_of(*this, fingerprint).dump(1) + "\n";
  id = fingerprint_of_text(text);
  const bool others = std::ranges::any_of(fs::directory_iterator(folder), [](const auto& entry) {
    return !entry.path().filename().string().starts_with("plan.");  // of a plan that was killed
  });
  if (!fs::exists(folder / kPlan)) {
    if (others) {
      throw phasor::InvalidArgument(fmt::format(
          "-o: {} holds other files, and no plan; choose a new folder", folder.string()));
    }
    // Under a name of its own: of two plans made at once, each has its index.
    write_index(folder, fingerprint, index);
    TemporaryFile output("-o", folder / kPlan);
    output.write(std::as_bytes(std::span(text)));
    if (output.commit_if_new()) return true;
  }
  const std::string before =
      as_input("-o: ", [&] { return phasor::internal::read_file(folder / kPlan, kMostBytes); });
  if (before == text) {
    // It may have been lost, or damaged.
    write_index(folder, fingerprint, index);
    return false;
  }
  const Json json = as_input("-o: ", [&] {
                      return phasor::internal::parse_json_object(before, (folder / kPlan).string());
                    }).take();
  throw phasor::InvalidArgument(
      fmt::format("-o: {} holds another plan: {}; choose another folder, or remove that one",
                  folder.string(), difference(json, Json::parse(text))));
}

Plan Plan::read(const fs::path& folder) {
  const fs::path file = folder / kPlan;
  std::error_code problem;
  if (!fs::exists(file, problem)) {
    if (problem) {
      throw phasor::InvalidArgument(fmt::format("{}: {}", file.string(), problem.message()));
    }
    const char* const what = !fs::exists(folder, problem)         ? "there is no such folder"
                             : !fs::is_directory(folder, problem) ? "it is not a folder"
                                                                  : "there is no plan.json in it";
    throw phasor::InvalidArgument(
        fmt::format("{}: {}; name the folder that infer shard plan -i CORPUS -o FOLDER has made",
                    folder.string(), what));
  }
  const auto bytes_of = [&](const fs::path& path, int64_t most) {
    return as_input("", [&] { return phasor::internal::read_file(path, most); });
  };
  const std::string text = bytes_of(file, kMostBytes);
  // Refuses what is nested too deeply.
  const Json json =
      as_input("", [&] { return phasor::internal::parse_json_object(text, file.string()); }).take();
  try {
    if (json.at("phasor_shards") != kVersion) {
      throw phasor::InvalidArgument(fmt::format("it is of version {}, and this program reads {}",
                                                json.at("phasor_shards").dump(), kVersion));
    }
    Plan plan;
    plan.folder = folder;
    plan.options = options_of(json.at("options"));
    const auto kind =
        std::ranges::find(VectorFormat::kExtensions, json.at("format").get<std::string>());
    if (kind == VectorFormat::kExtensions.end()) {
      throw phasor::InvalidArgument("there is no format " + json.at("format").dump());
    }
    plan.format.kind = static_cast<VectorFormat::Kind>(kind - VectorFormat::kExtensions.begin());
    constexpr int64_t kMostWidth = 1 << 24;
    plan.format.width = std::min(whole(json, "width", 1), kMostWidth);
    plan.format.made_with = json.at("made_with").get<MadeWith>();
    plan.lines = whole(json, "lines", 0);
    plan.input = json.at("input");
    plan.lines_per_shard = whole(json, "lines_per_shard", 1);
    for (const Json& input : json.at("inputs")) {
      plan.inputs.push_back({input.at("file"), whole(input, "bytes", 1), whole(input, "lines", 1)});
      if (!plan.inputs.back().file.starts_with('/')) {
        throw phasor::InvalidArgument(
            fmt::format("the input {} is no absolute name", input.at("file").dump()));
      }
    }
    const int64_t count = whole(json, "shards", 0);
    if (count != (plan.lines + plan.lines_per_shard - 1) / plan.lines_per_shard) {
      throw phasor::InvalidArgument(fmt::format("{} lines are not {} shards", plan.lines, count));
    }
    const std::string fingerprint = json.at("index");
    const bool is_fingerprint =
        fingerprint.find_first_not_of("0123456789abcdef") == fingerprint.npos;
    const fs::path index_path = index_file(folder, is_fingerprint ? fingerprint : "");
    const std::string index = bytes_of(index_path, kMostIndexBytes);
    if (fingerprint_of_text(index) != fingerprint) {
      throw phasor::InvalidArgument(fmt::format("{} is damaged", index_path.string()));
    }
    plan.shards = shards_of(index, count, std::ssize(plan.inputs));
    plan.id = fingerprint_of_text(text);
    return plan;
  } catch (const nlohmann::json::exception&) {
    throw phasor::InvalidArgument(
        fmt::format("{} is damaged; plan into a new folder", file.string()));
  } catch (const phasor::InvalidArgument& error) {
    throw phasor::InvalidArgument(
        fmt::format("{}: {}; plan into a new folder", file.string(), error.what()));
  }
}

}  // namespace infer
