// infer info: what a model is, without running it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/commands/info_text.h"
#include "infer/render/terminal.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/model.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

uintmax_t bytes_on_disk(const std::filesystem::path& folder) {
  uintmax_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path& file = entry->path();
    if (file.extension() != ".safetensors" || file.stem() == "golden") continue;
    std::error_code no_file;  // a folder of this name, a link to nothing
    const uintmax_t size = entry->file_size(no_file);
    if (!no_file) bytes += size;
  }
  return bytes;
}

Json describe_position(const phasor::Model& model) {
  const phasor::PositionConfig& position = model.config().position;
  const phasor::Tensor& table = model.weights().position_table;
  Json json;
  json["kind"] = to_string(position.kind);
  const bool sinusoidal = position.kind == phasor::PositionKind::kSinusoidal;
  const bool relative = position.kind == phasor::PositionKind::kRelativeBias;
  json["layout"] = sinusoidal ? Json(to_string(position.layout)) : Json();
  json["base"] = sinusoidal ? Json(position.base) : Json();
  json["num_buckets"] = relative ? Json(position.num_buckets) : Json();
  json["max_distance"] = relative ? Json(position.max_distance) : Json();
  json["first_position"] = position.first_position;
  json["table_rows"] = table.present() ? Json(table.shape.at(0)) : Json();
  json["usable_positions"] =
      table.present() ? Json(table.shape.at(0) - position.first_position) : Json();
  const int64_t trained = model.config().max_positions;
  json["trained_length"] = trained > 0 ? Json(trained) : Json();
  return json;
}

/// What the tokenizer puts round a text: "[CLS] … [SEP]".
std::string frame_of(const phasor::Tokenizer& tokenizer) {
  const std::vector<std::string> pieces = tokenizer.encode("a").pieces;
  std::vector<std::string> special;
  try {
    special = tokenizer.encode("").pieces;
  } catch (const phasor::InvalidArgument&) {  // nothing at all
  }
  const auto before = std::mismatch(special.begin(), special.end(), pieces.begin(), pieces.end());
  std::vector<std::string> frame(special.begin(), before.first);
  frame.emplace_back("…");
  frame.insert(frame.end(), before.first, special.end());
  return fmt::format("{}", fmt::join(frame, " "));
}

Json describe_tokenizer(const phasor::Model& model) {
  if (model.has_tokenizer()) {
    return {{"description", model.tokenizer().description()},
            {"frame", frame_of(model.tokenizer())}};
  }
  try {
    model.tokenizer();
  } catch (const phasor::ModelError& error) {
    return {{"description", nullptr}, {"problem", error.what()}};
  }
  return nullptr;
}

Json describe_sentence(const phasor::Model& model) {
  Json json;
  if (!model.has_sentence()) {
    try {
      model.sentence();
    } catch (const phasor::ModelError& error) {
      json["problem"] = error.what();
    }
    return json;
  }
  const phasor::SentenceConfig& sentence = model.sentence();
  json["pooling"] = to_string(sentence.pooling);
  json["width"] = sentence.pooling.width(model.config().d_model);
  json["max_tokens"] = sentence.max_tokens > 0 ? Json(sentence.max_tokens) : Json();
  json["prompt"] = sentence.prompt;
  json["source"] = sentence.source.empty() ? Json() : Json(sentence.source);
  return json;
}

/// How many tensors the file has in each dtype, of those that are used.
Json describe_dtypes(const phasor::Model& model) {
  Json json = Json::object();
  for (const auto& [name, tensor] : model.parameters()) {
    Json& count = json[std::string(to_string(tensor.dtype))];
    count = count.is_null() ? 1 : count.get<int64_t>() + 1;
  }
  return json;
}

int64_t bytes_of(const phasor::Tensor& tensor) {
  if (!tensor.present()) return 0;
  return tensor.num_elements() * (tensor.dtype == phasor::DType::kFloat32 ? 4 : 2);
}

/// Packs the weights as a run does, which also looks at every one of them.
Json describe_memory(const std::shared_ptr<const phasor::Model>& model, Json& notes) {
  Json json;
  json["in_place"] =
      bytes_of(model->weights().token_embedding) + bytes_of(model->weights().position_table);
  json["packed"] = nullptr;
  try {
    json["packed"] = phasor::Encoder(model).packed_bytes();
  } catch (const phasor::ModelError& error) {
    notes.push_back(fmt::format("cannot be run: {}", error.what()));
  }
  return json;
}

/// What precision "auto" is on this machine, and why others are no faster than f32.
Json describe_precision() {
  Json slow = Json::object();
  for (const auto precision : {phasor::Precision::kBfloat16, phasor::Precision::kInt8}) {
    const std::string why = phasor::why_slow(precision);
    if (!why.empty()) slow[std::string(to_string(precision))] = why;
  }
  return {{"auto", to_string(phasor::fastest_precision())}, {"slow", slow}};
}

Json describe(const std::shared_ptr<const phasor::Model>& loaded) {
  const phasor::Model& model = *loaded;
  const phasor::ModelConfig& config = model.config();
  Json json;
  json["folder"] = model.folder().string();
  json["family"] = config.family;
  json["d_model"] = config.d_model;
  json["d_ff"] = config.d_ff;
  json["num_layers"] = config.num_layers;
  json["num_heads"] = config.num_heads;
  json["head_dim"] = config.head_dim();
  json["embedding_width"] = config.embedding_width();
  json["layer_groups"] = config.num_blocks();
  json["vocab_size"] = config.vocab_size;
  json["norm_order"] = to_string(config.norm_order);
  json["norm"] = to_string(config.norm);
  json["activation"] = to_string(config.activation);
  json["gated_mlp"] = config.gated_mlp;
  json["linear_bias"] = config.linear_bias;
  json["scale_scores"] = config.scale_scores;
  json["norm_eps"] = std::stod(fmt::format("{}", config.norm_eps));  // 1e-12, not 9.99999996e-13
  json["embedding_scale"] = std::stod(fmt::format("{}", config.embedding_scale));
  json["embedding_norm"] = config.embedding_norm;
  json["final_norm"] = config.final_norm;
  json["position"] = describe_position(model);
  json["tokenizer"] = describe_tokenizer(model);
  json["sentence"] = describe_sentence(model);
  json["mlm_head"] = model.weights().mlm_head.has_value();
  json["parameters"] = model.num_parameters();
  json["bytes_on_disk"] = bytes_on_disk(model.folder());
  json["dtypes"] = describe_dtypes(model);
  Json notes = model.notes();
  json["bytes_in_memory"] = describe_memory(loaded, notes);
  json["precision"] = describe_precision();
  json["unused_tensors"] = model.unused_tensors();
  json["unused_keys"] = model.unused_keys();
  json["notes"] = notes;
  json["versions"] = versions();
  return json;
}

constexpr const char* kFooter = R"(Examples:
  infer info
  infer info path/to/checkpoint
  infer info --json learned)";

}  // namespace

int info(int argc, char** argv) {
  CommonOptions common;
  CommandLine line("infer info",
                   "Says what a model is: family, sizes, norms, positions, tokenizer.", kFooter);
  line.option("MODEL", "", "the same as --model", common.model);
  add_model(line, common);
  add_language(line, common);
  add_json_and_quiet(line, common);
  if (const auto done = line.parse(argc, argv)) return *done;

  const Json json = describe(phasor::Model::load(common.model, {.language = common.language}));
  Output output;
  output.write(common.json
                   ? json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                   : info_text(json, output.width()));
  return 0;
}

}  // namespace infer
