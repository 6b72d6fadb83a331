// config.json and an index of shards, beside small weights of the family named: what loads also
// runs.
#include "tests/fuzz/fuzz.h"
#include "tests/support/family_files.h"

namespace phasor::fuzz {
namespace {

constexpr std::string_view kConfigFiles[] = {"config.json", "model.safetensors.index.json"};

std::vector<FamilyCase> families() {
  std::vector<FamilyCase> all = all_families();
  for (FamilyCase& family : all_classifiers()) all.push_back(std::move(family));
  return all;
}

/// The weights of each family in a file: "0.safetensors", …; small_tensors() in
/// "small.safetensors".
class Weights {
 public:
  Weights() {
    folder_.write("small.safetensors", safetensors_bytes(small_tensors()));
    for (const FamilyCase& each : families())
      folder_.write(std::to_string(count_++) + ".safetensors", safetensors_bytes(tensors_of(each)));
  }
  /// By the input's first byte.
  std::filesystem::path file(uint8_t choice) const {
    const size_t i = choice % (count_ + 1);
    return folder_ / ((i == count_ ? "small" : std::to_string(i)) + ".safetensors");
  }

 private:
  TempFolder folder_;
  size_t count_ = 0;
};

/// The files that an index names, as far as they lie in its folder: its shards. All that is in it
/// would be read from model.safetensors, if that were there.
std::vector<std::string> shards_of(const std::string& index) {
  std::vector<std::string> shards;
  const auto json = nlohmann::json::parse(index, nullptr, false);
  if (!json.is_object() || !json.contains("weight_map")) return shards;
  for (const auto& file : json["weight_map"]) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    const bool plain = !name.empty() && name.size() < 100 && name[0] != '.' &&
                       name.find_first_of(std::string("/\0", 2)) == name.npos &&
                       name.find(".json") == name.npos && name != "model.safetensors";
    if (plain && std::ranges::find(shards, name) == shards.end()) shards.push_back(name);
  }
  if (shards.size() > 3) shards.resize(3);
  return shards;
}

bool run_config(std::string_view bytes) {
  static const Weights weights;
  static const Folder folder;
  static std::vector<std::string> before;  // the weights' files of the last input
  if (bytes.empty()) return false;
  const Parts parts = parts_of(bytes.substr(1), "config.json", kConfigFiles);
  folder.write(parts, kConfigFiles);
  std::error_code failed;
  for (const std::string& file : before) std::filesystem::remove(folder / file, failed);
  const auto index = parts.find("model.safetensors.index.json");
  before = index == parts.end() ? std::vector<std::string>{"model.safetensors"}
                                : shards_of(index->second);
  for (const std::string& file : before)
    std::filesystem::copy_file(weights.file(static_cast<uint8_t>(bytes[0])), folder / file, failed);
  bool ran = false;
  survive([&] {
    const auto model = Model::load(folder.path());
    Encoder encoder(model, {.threads = 1});
    const auto run = [&](const std::vector<int32_t>& ids, const RunOptions& options) {
      return survive([&] { static_cast<void>(encoder.encode_ids(ids, options)); });
    };
    ran = run({1, 2, 3}, {});
    run({0, 4, 1, 2, 3, 4, 0, 1, 2}, {.overflow = Overflow::kWindow});
    run({0, 4, 1, 2, 3, 4, 0, 1, 2}, {.overflow = Overflow::kInterpolate});
    survive([&] { static_cast<void>(model->position_vectors(5)); });
  });
  return ran;
}

std::vector<std::string> config_seeds() {
  std::vector<std::string> inputs;
  for (const FamilyCase& family : families())
    inputs.push_back(static_cast<char>(inputs.size()) + family.config.dump());
  const std::string small = small_config_json().dump();
  const char place = static_cast<char>(inputs.size());
  inputs.push_back(place + small);
  inputs.push_back(place + small.substr(0, small.size() - 1) +
                   R"(, "note": [-0, NaN, -Infinity]})");
  nlohmann::json index;
  for (const TestTensor& tensor : small_tensors()) {
    const bool odd = index["weight_map"].size() % 2 == 1;
    index["weight_map"][tensor.name] = odd ? "b.safetensors" : "a.safetensors";
  }
  inputs.push_back(
      place + input_of({{"config.json", small}, {"model.safetensors.index.json", index.dump()}}));
  return inputs;
}

}  // namespace

Fuzzer config_fuzzer() {
  return {.name = "config", .run = run_config, .seeds = config_seeds, .words = words(R"(
===\smodel.safetensors.index.json\n "weight_map" "a.safetensors" "../config.json" "model_type"
"architectures" "hidden_size" "num_hidden_layers" "num_attention_heads" "vocab_size"
"max_position_embeddings" "pad_token_id" "position_embedding_type" "rope_theta" "rope_scaling"
"local_attention" "relative_attention_num_buckets" "relative_attention_max_distance"
"layer_norm_eps" "hidden_act" "first_position" "id2label" null true 0 -1 2147483648
9223372036854775807 1e308 1e-320 NaN Infinity -Infinity -0)")};
}

}  // namespace phasor::fuzz
