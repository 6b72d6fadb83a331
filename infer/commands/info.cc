// infer info: what a model is, without running it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/render/terminal.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/model.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json value_if(bool there, const T& value) {
  return there ? Json(value) : Json();
}

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
  const bool sinusoidal = position.kind == phasor::PositionKind::kSinusoidal;
  const bool relative = position.kind == phasor::PositionKind::kRelativeBias;
  const int64_t rows = table.present() ? table.shape.at(0) : 0;
  const int64_t trained = model.config().max_positions;
  return {{"kind", to_string(position.kind)},
          {"layout", value_if(sinusoidal, to_string(position.layout))},
          {"base", value_if(sinusoidal, position.base)},
          {"num_buckets", value_if(relative, position.num_buckets)},
          {"max_distance", value_if(relative, position.max_distance)},
          {"first_position", position.first_position},
          {"table_rows", value_if(table.present(), rows)},
          {"usable_positions", value_if(table.present(), rows - position.first_position)},
          {"trained_length", value_if(trained > 0, trained)}};
}

/// What the tokenizer puts round a text: "[CLS] … [SEP]".
std::string frame_of(const phasor::Tokenizer& tokenizer) {
  const std::vector<std::string> pieces = tokenizer.encode("a").pieces;
  std::vector<std::string> special;
  try {
    special = tokenizer.encode("").pieces;
  } catch (const phasor::InvalidArgument&) {  // nothing at all
  }
  const auto before = std::ranges::mismatch(special, pieces).in1;
  std::vector<std::string> frame(special.begin(), before);
  frame.emplace_back("…");
  frame.insert(frame.end(), before, special.end());
  return fmt::format("{}", fmt::join(frame, " "));
}

Json describe_tokenizer(const phasor::Model& model) {
  try {
    const phasor::Tokenizer& tokenizer = model.tokenizer();
    return {{"description", tokenizer.description()}, {"frame", frame_of(tokenizer)}};
  } catch (const phasor::ModelError& error) {
    return {{"description", nullptr}, {"problem", error.what()}};
  }
}

Json describe_sentence(const phasor::Model& model) {
  try {
    const phasor::SentenceConfig& sentence = model.sentence();
    return {{"pooling", to_string(sentence.pooling)},
            {"width", sentence.pooling.width(model.config().d_model)},
            {"max_tokens", value_if(sentence.max_tokens > 0, sentence.max_tokens)},
            {"prompt", sentence.prompt},
            {"source", value_if(!sentence.source.empty(), sentence.source)}};
  } catch (const phasor::ModelError& error) {
    return {{"problem", error.what()}};
  }
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
  Json json = {{"in_place", bytes_of(model->weights().token_embedding) +
                                bytes_of(model->weights().position_table)},
               {"packed", nullptr}};
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

/// 1e-12, not 9.99999996e-13.
double as_written(float value) { return std::stod(fmt::format("{}", value)); }

Json describe(const std::shared_ptr<const phasor::Model>& loaded) {
  const phasor::Model& model = *loaded;
  const phasor::ModelConfig& config = model.config();
  Json notes = model.notes();
  const Json memory = describe_memory(loaded, notes);
  return {{"folder", model.folder().string()},
          {"family", config.family},
          {"d_model", config.d_model},
          {"d_ff", config.d_ff},
          {"num_layers", config.num_layers},
          {"num_heads", config.num_heads},
          {"head_dim", config.head_dim()},
          {"embedding_width", config.embedding_width()},
          {"layer_groups", config.num_blocks()},
          {"vocab_size", config.vocab_size},
          {"norm_order", to_string(config.norm_order)},
          {"norm", to_string(config.norm)},
          {"activation", to_string(config.activation)},
          {"gated_mlp", config.gated_mlp},
          {"linear_bias", config.linear_bias},
          {"scale_scores", config.scale_scores},
          {"norm_eps", as_written(config.norm_eps)},
          {"embedding_scale", as_written(config.embedding_scale)},
          {"embedding_norm", config.embedding_norm},
          {"final_norm", config.final_norm},
          {"position", describe_position(model)},
          {"tokenizer", describe_tokenizer(model)},
          {"sentence", describe_sentence(model)},
          {"mlm_head", model.weights().mlm_head.has_value()},
          {"parameters", model.num_parameters()},
          {"bytes_on_disk", bytes_on_disk(model.folder())},
          {"dtypes", describe_dtypes(model)},
          {"bytes_in_memory", memory},
          {"precision", describe_precision()},
          {"unused_tensors", model.unused_tensors()},
          {"unused_keys", model.unused_keys()},
          {"notes", notes},
          {"versions", versions()}};
}

// For people.

std::string yes_no(bool value) { return value ? "yes" : "no"; }
std::string text(const Json& value) { return value.get<std::string>(); }
int64_t number(const Json& value) { return value.get<int64_t>(); }
double megabytes(const Json& bytes) { return bytes.get<double>() / 1e6; }

/// "1 layer", "6 layers".
std::string count(const Json& value, std::string_view what) {
  return fmt::format("{} {}{}", number(value), what, number(value) == 1 ? "" : "s");
}

std::string rows_text(const Json& position) {
  const std::string kind = text(position["kind"]);
  if (kind == "none") return "none are added";
  if (kind == "relative_bias") {
    return fmt::format("relative bias, {} buckets up to distance {}, without end",
                       number(position["num_buckets"]), number(position["max_distance"]));
  }
  std::string line = kind;
  if (kind == "sinusoidal") {
    line += fmt::format(", layout {}, base {}", text(position["layout"]),
                        position["base"].get<double>());
  }
  line += fmt::format(", first position {}", number(position["first_position"]));
  if (position["table_rows"].is_null()) return line + ", without end";
  return line + fmt::format(", {} rows, {} usable", number(position["table_rows"]),
                            number(position["usable_positions"]));
}

/// All of them, or the first and how many.
std::string names_text(const Json& names, size_t most) {
  if (names.empty()) return "none";
  auto shown = names.get<std::vector<std::string>>();
  const bool all = shown.size() <= most;
  shown.resize(std::min(most, shown.size()));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     all ? "" : fmt::format(", … ({} in all; --json lists them)", names.size()));
}

std::string vectors_text(const Json& sentence) {
  if (sentence.contains("problem")) return "none: " + text(sentence["problem"]);
  std::string line =
      fmt::format("{}, {} numbers ({})", text(sentence["pooling"]), number(sentence["width"]),
                  sentence["source"].is_null() ? "the default: no sentence-transformers files"
                                               : text(sentence["source"]));
  if (!sentence["max_tokens"].is_null()) {
    line += fmt::format("; texts cut to {} tokens", number(sentence["max_tokens"]));
  }
  if (sentence["prompt"] != "") line += fmt::format("; after \"{}\"", text(sentence["prompt"]));
  return line;
}

std::string file_text(const Json& info) {
  std::string line = fmt::format("{:.1f} MB;", megabytes(info["bytes_on_disk"]));
  for (const auto& [name, tensors] : info["dtypes"].items()) {
    line +=
        fmt::format("{} {} in {}", line.back() == ';' ? "" : ",", count(tensors, "tensor"), name);
  }
  return line;
}

std::string memory_text(const Json& bytes) {
  const std::string in_place = fmt::format("{:.1f} MB embeddings read from the file as needed",
                                           megabytes(bytes["in_place"]));
  if (bytes["packed"].is_null()) return in_place;
  return fmt::format("{:.1f} MB packed, {}", megabytes(bytes["packed"]), in_place);
}

std::string precision_text(const Json& precision) {
  std::string line = fmt::format("auto is {} here", text(precision["auto"]));
  for (const auto& [name, why] : precision["slow"].items()) {
    line += fmt::format("; {} is slow: {}", name, text(why));
  }
  return line;
}

std::string sizes_text(const Json& info) {
  std::string line =
      fmt::format("{}, d_model {}, {}, d_ff {}, vocabulary {}", count(info["num_layers"], "layer"),
                  number(info["d_model"]), count(info["num_heads"], "head"), number(info["d_ff"]),
                  number(info["vocab_size"]));
  if (number(info["head_dim"]) * number(info["num_heads"]) != number(info["d_model"])) {
    line += fmt::format(", heads {} wide", number(info["head_dim"]));
  }
  if (info["embedding_width"] != info["d_model"]) {
    line += fmt::format(", embedding {} wide", number(info["embedding_width"]));
  }
  if (info["layer_groups"] != info["num_layers"]) {
    line +=
        fmt::format(", weights for {} of the layers, shared by all", number(info["layer_groups"]));
  }
  return line;
}

std::string to_text(const Json& info, int width) {
  const Json& trained = info["position"]["trained_length"];
  const Json& tokenizer = info["tokenizer"];
  std::vector<std::pair<const char*, std::string>> lines = {
      {"folder", text(info["folder"])},
      {"family", text(info["family"])},
      {"sizes", sizes_text(info)},
      {"norm",
       fmt::format("{}-norm, {}, eps {}; after the embedding: {}; at the end: {}",
                   text(info["norm_order"]), text(info["norm"]), info["norm_eps"].get<double>(),
                   yes_no(info["embedding_norm"]), yes_no(info["final_norm"]))},
      {"linear maps",
       fmt::format("{} bias; attention scores {}", info["linear_bias"] ? "with" : "without",
                   info["scale_scores"] ? "scaled" : "not scaled")},
      {"activation", text(info["activation"]) + (info["gated_mlp"] ? ", gated" : "")},
      {"embedding scale", fmt::format("{}", info["embedding_scale"].get<double>())},
      {"positions", rows_text(info["position"])},
      {"trained on",
       trained.is_null() ? "not said" : fmt::format("at most {} tokens", number(trained))},
      {"tokenizer", tokenizer["description"].is_null()
                        ? "none: " + text(tokenizer["problem"])
                        : text(tokenizer["description"]) + ": " + text(tokenizer["frame"])},
      {"sentence vectors", vectors_text(info["sentence"])},
      {"MLM head", yes_no(info["mlm_head"])},
      {"parameters", fmt::format("{}", number(info["parameters"]))},
      {"on disk", file_text(info)},
      {"in memory", memory_text(info["bytes_in_memory"])},
      {"precision", precision_text(info["precision"])},
      {"unused tensors", names_text(info["unused_tensors"], 5)},
      {"unused keys", names_text(info["unused_keys"], 100)},
      {"versions", text(info["versions"])}};
  for (const Json& note : info["notes"]) lines.emplace_back("note", text(note));
  constexpr int kLabel = 17;
  std::string out;
  for (const auto& [label, value] : lines) {
    out += fmt::format("{:<{}}{}\n", label, kLabel, wrapped(printable(value), kLabel, width));
  }
  return out;
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
                   : to_text(json, output.width()));
  return 0;
}

}  // namespace infer
