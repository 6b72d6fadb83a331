// infer info: what a model is, without running it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "infer/commands.h"
#include "infer/options.h"
#include "infer/report.h"
#include "infer/terminal.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/model.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

uintmax_t bytes_on_disk(const std::filesystem::path& folder) {
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors" && entry.path().stem() != "golden") {
      bytes += entry.file_size();
    }
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

Json describe_tokenizer(const phasor::Model& model) {
  if (model.has_tokenizer()) return {{"description", model.tokenizer().description()}};
  try {
    model.tokenizer();
  } catch (const phasor::ModelError& error) {
    return {{"description", nullptr}, {"problem", error.what()}};
  }
  return nullptr;
}

Json describe(const phasor::Model& model) {
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
  json["mlm_head"] = model.weights().mlm_head.has_value();
  json["parameters"] = model.num_parameters();
  json["bytes_on_disk"] = bytes_on_disk(model.folder());
  json["unused_tensors"] = model.unused_tensors().size();
  json["unused_keys"] = model.unused_keys();
  json["notes"] = model.notes();
  json["versions"] = versions();
  return json;
}

std::string yes_no(bool value) { return value ? "yes" : "no"; }

std::string describe_rows(const Json& position) {
  if (position["kind"] == "none") return "none are added";
  if (position["kind"] == "relative_bias") {
    return fmt::format("relative bias, {} buckets up to distance {}, without end",
                       position["num_buckets"].get<int64_t>(),
                       position["max_distance"].get<int64_t>());
  }
  std::string text =
      position["kind"] == "sinusoidal"
          ? fmt::format("sinusoidal, layout {}, base {}", position["layout"].get<std::string>(),
                        position["base"].get<double>())
          : position["kind"].get<std::string>();
  text += fmt::format(", first position {}", position["first_position"].get<int64_t>());
  if (position["table_rows"].is_null()) return text + ", without end";
  return text + fmt::format(", {} rows, {} usable", position["table_rows"].get<int64_t>(),
                            position["usable_positions"].get<int64_t>());
}

std::string describe_keys(const Json& keys) {
  if (keys.empty()) return "none";
  return fmt::format("{}", fmt::join(keys.get<std::vector<std::string>>(), ", "));
}

std::string describe_sizes(const Json& info) {
  const auto size = [&](const char* key) { return info[key].get<int64_t>(); };
  std::string text =
      fmt::format("{} layers, d_model {}, {} heads, d_ff {}, vocabulary {}", size("num_layers"),
                  size("d_model"), size("num_heads"), size("d_ff"), size("vocab_size"));
  if (size("head_dim") * size("num_heads") != size("d_model")) {
    text += fmt::format(", heads {} wide", size("head_dim"));
  }
  if (size("embedding_width") != size("d_model")) {
    text += fmt::format(", embedding {} wide", size("embedding_width"));
  }
  if (size("layer_groups") != size("num_layers")) {
    text += fmt::format(", weights for {} of the layers, shared by all", size("layer_groups"));
  }
  return text;
}

std::string to_text(const Json& info) {
  const auto size = [&](const char* key) { return info[key].get<int64_t>(); };
  const auto name = [&](const char* key) { return info[key].get<std::string>(); };
  const Json& trained = info["position"]["trained_length"];
  const Json& tokenizer = info["tokenizer"];
  std::vector<std::pair<const char*, std::string>> lines = {
      {"folder", name("folder")},
      {"family", name("family")},
      {"sizes", describe_sizes(info)},
      {"norm", fmt::format("{}-norm, {}, eps {}; after the embedding: {}; at the end: {}",
                           name("norm_order"), name("norm"), info["norm_eps"].get<double>(),
                           yes_no(info["embedding_norm"]), yes_no(info["final_norm"]))},
      {"linear maps",
       fmt::format("{} bias; attention scores {}", info["linear_bias"] ? "with" : "without",
                   info["scale_scores"] ? "scaled" : "not scaled")},
      {"activation", name("activation") + (info["gated_mlp"] ? ", gated" : "")},
      {"embedding scale", fmt::format("{}", info["embedding_scale"].get<double>())},
      {"positions", describe_rows(info["position"])},
      {"trained on",
       trained.is_null() ? "not said" : fmt::format("at most {} tokens", trained.get<int64_t>())},
      {"tokenizer", tokenizer["description"].is_null()
                        ? "none: " + tokenizer["problem"].get<std::string>()
                        : tokenizer["description"].get<std::string>()},
      {"MLM head", yes_no(info["mlm_head"])},
      {"parameters", fmt::format("{}", size("parameters"))},
      {"on disk", fmt::format("{:.1f} MB", info["bytes_on_disk"].get<double>() / 1e6)},
      {"unused tensors", fmt::format("{}", size("unused_tensors"))},
      {"unused keys", describe_keys(info["unused_keys"])},
      {"versions", name("versions")},
  };
  for (const Json& note : info["notes"]) lines.emplace_back("note", note.get<std::string>());
  std::string out;
  for (const auto& [label, value] : lines) {
    out += fmt::format("{:<16} {}\n", label, printable(value));
  }
  return out;
}

}  // namespace

int info(int argc, char** argv) {
  CommonOptions common;
  CLI::App app("Says what a model is: family, sizes, norms, positions, tokenizer.", "infer info");
  app.add_option("MODEL", common.model, "the same as --model")->type_name("");
  add_model(app, common);
  add_json_and_quiet(app, common);
  if (const auto done = parse(app, argc, argv)) return *done;

  const Json json = describe(*phasor::Model::load(common.model));
  Output().write(common.json
                     ? json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                     : to_text(json));
  return 0;
}

}  // namespace infer
