// infer info: what a model is, without running it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/render/observed_json.h"
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

/// What people read of something, and its keys in --json.
struct Fact {
  const char* label;
  std::string text;
  Json json = Json::object();
};

template <typename T>
Json value_if(bool there, const T& value) {
  return there ? Json(value) : Json();
}

const char* yes_no(bool value) { return value ? "yes" : "no"; }
double megabytes(uintmax_t bytes) { return static_cast<double>(bytes) / 1e6; }
/// 1e-12, not 9.99999996e-13.
double as_written(float value) { return std::stod(fmt::format("{}", value)); }

/// "1 layer", "6 layers".
std::string count(int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

Fact sizes(const phasor::ModelConfig& config) {
  std::string text =
      fmt::format("{}, d_model {}, {}, d_ff {}, vocabulary {}", count(config.num_layers, "layer"),
                  config.d_model, count(config.num_heads, "head"), config.d_ff, config.vocab_size);
  if (config.attention_width() != config.d_model) {
    text += fmt::format(", heads {} wide", config.head_dim());
  }
  if (config.embedding_width() != config.d_model) {
    text += fmt::format(", embedding {} wide", config.embedding_width());
  }
  if (config.num_blocks() != config.num_layers) {
    text += fmt::format(", weights for {} of the layers, shared by all", config.num_blocks());
  }
  return {"sizes",
          text,
          {{"d_model", config.d_model},
           {"d_ff", config.d_ff},
           {"num_layers", config.num_layers},
           {"num_heads", config.num_heads},
           {"head_dim", config.head_dim()},
           {"embedding_width", config.embedding_width()},
           {"layer_groups", config.num_blocks()},
           {"vocab_size", config.vocab_size}}};
}

Fact positions_row(const phasor::Model& model) {
  const phasor::PositionConfig& position = model.config().position;
  const phasor::Tensor& table = model.weights().position_table;
  const bool sinusoidal = position.kind == phasor::PositionKind::kSinusoidal;
  const bool relative = position.kind == phasor::PositionKind::kRelativeBias;
  const int64_t rows = table.present() ? table.shape.at(0) : 0;
  const int64_t usable = rows - position.first_position, trained = model.config().max_positions;
  std::string text(to_string(position.kind));
  if (position.kind == phasor::PositionKind::kNone) {
    text = "none are added";
  } else if (relative) {
    text = fmt::format("relative bias, {} buckets up to distance {}, without end",
                       position.num_buckets, position.max_distance);
  } else {
    if (sinusoidal) {
      text +=
          fmt::format(", layout {}, base {}", to_string(position.layout), double{position.base});
    }
    text += fmt::format(", first position {}", position.first_position);
    text += table.present() ? fmt::format(", {} rows, {} usable", rows, usable) : ", without end";
  }
  return {"positions",
          text,
          {{"position",
            {{"kind", to_string(position.kind)},
             {"layout", value_if(sinusoidal, to_string(position.layout))},
             {"base", value_if(sinusoidal, position.base)},
             {"num_buckets", value_if(relative, position.num_buckets)},
             {"max_distance", value_if(relative, position.max_distance)},
             {"first_position", position.first_position},
             {"table_rows", value_if(table.present(), rows)},
             {"usable_positions", value_if(table.present(), usable)},
             {"trained_length", value_if(trained > 0, trained)}}}}};
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

Fact tokenizer_row(const phasor::Model& model) {
  try {
    const phasor::Tokenizer& tokenizer = model.tokenizer();
    const std::string frame = frame_of(tokenizer);
    return {"tokenizer",
            tokenizer.description() + ": " + frame,
            {{"tokenizer", {{"description", tokenizer.description()}, {"frame", frame}}}}};
  } catch (const phasor::ModelError& error) {
    return {"tokenizer",
            fmt::format("none: {}", error.what()),
            {{"tokenizer", {{"description", nullptr}, {"problem", error.what()}}}}};
  }
}

Fact vectors_row(const phasor::Model& model) {
  constexpr const char* kLabel = "sentence vectors";
  try {
    const phasor::SentenceConfig& sentence = model.sentence();
    const int64_t width = sentence.pooling.width(model.config().d_model);
    std::string text = fmt::format(
        "{}, {} numbers ({})", to_string(sentence.pooling), width,
        sentence.source.empty() ? "the default: no sentence-transformers files" : sentence.source);
    if (sentence.max_tokens > 0)
      text += fmt::format("; texts cut to {} tokens", sentence.max_tokens);
    if (!sentence.prompt.empty()) text += fmt::format("; after \"{}\"", sentence.prompt);
    return {kLabel,
            text,
            {{"sentence",
              {{"pooling", to_string(sentence.pooling)},
               {"width", width},
               {"max_tokens", value_if(sentence.max_tokens > 0, sentence.max_tokens)},
               {"prompt", sentence.prompt},
               {"source", value_if(!sentence.source.empty(), sentence.source)}}}}};
  } catch (const phasor::ModelError& error) {
    const Json problem = {{"problem", error.what()}};
    return {kLabel, fmt::format("none: {}", error.what()), {{"sentence", problem}}};
  }
}

/// With how many tensors the file has in each dtype, of those that are used.
Fact disk(const phasor::Model& model) {
  std::map<std::string, int64_t> dtypes;
  for (const auto& [name, tensor] : model.parameters())
    ++dtypes[std::string(to_string(tensor.dtype))];
  const uintmax_t bytes = bytes_on_disk(model.folder());
  std::vector<std::string> tensors;
  for (const auto& [name, number] : dtypes) {
    tensors.push_back(fmt::format("{} in {}", count(number, "tensor"), name));
  }
  return {"on disk",
          fmt::format("{:.1f} MB; {}", megabytes(bytes), fmt::join(tensors, ", ")),
          {{"bytes_on_disk", bytes}, {"dtypes", dtypes}}};
}

int64_t bytes_of(const phasor::Tensor& tensor) {
  if (!tensor.present()) return 0;
  return tensor.num_elements() * (tensor.dtype == phasor::DType::kFloat32 ? 4 : 2);
}

/// Packs the weights as a run does, which also looks at every one of them.
Fact memory(const std::shared_ptr<const phasor::Model>& model, std::vector<std::string>& notes) {
  const int64_t in_place =
      bytes_of(model->weights().token_embedding) + bytes_of(model->weights().position_table);
  std::string text =
      fmt::format("{:.1f} MB embeddings read from the file as needed", megabytes(in_place));
  Json packed;
  try {
    const int64_t bytes = phasor::Encoder(model).packed_bytes();
    packed = bytes;
    text = fmt::format("{:.1f} MB packed, {}", megabytes(bytes), text);
  } catch (const phasor::ModelError& error) {
    notes.push_back(fmt::format("cannot be run: {}", error.what()));
  }
  return {"in memory", text, {{"bytes_in_memory", {{"in_place", in_place}, {"packed", packed}}}}};
}

/// What precision "auto" is on this machine, and why others are no faster than f32.
Fact precision_row() {
  const auto automatic = to_string(phasor::fastest_precision());
  std::string text = fmt::format("auto is {} here", automatic);
  Json slow = Json::object();
  for (const auto precision : {phasor::Precision::kBfloat16, phasor::Precision::kInt8}) {
    const std::string why = phasor::why_slow(precision);
    if (why.empty()) continue;
    text += fmt::format("; {} is slow: {}", to_string(precision), why);
    slow[std::string(to_string(precision))] = why;
  }
  return {"precision", text, {{"precision", {{"auto", automatic}, {"slow", slow}}}}};
}

/// All of them, or the first and how many.
std::string names_text(std::vector<std::string> names, size_t most) {
  if (names.empty()) return "none";
  const size_t all = names.size();
  names.resize(std::min(most, all));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     all <= most ? "" : fmt::format(", … ({} in all; --json lists them)", all));
}

std::vector<Fact> describe(const std::shared_ptr<const phasor::Model>& loaded) {
  const phasor::Model& model = *loaded;
  const phasor::ModelConfig& config = model.config();
  const int64_t trained = config.max_positions, parameters = model.num_parameters();
  const bool mlm_head = model.weights().mlm_head.has_value();
  const std::string folder = model.folder().string(), activation(to_string(config.activation));
  std::vector<std::string> notes = model.notes();
  std::vector<Fact> rows = {
      {"folder", folder, {{"folder", folder}}},
      {"family", config.family, {{"family", config.family}}},
      sizes(config),
      {"norm",
       fmt::format("{}-norm, {}, eps {}; after the embedding: {}; at the end: {}",
                   to_string(config.norm_order), to_string(config.norm), config.norm_eps,
                   yes_no(config.embedding_norm), yes_no(config.final_norm)),
       {{"norm_order", to_string(config.norm_order)},
        {"norm", to_string(config.norm)},
        {"norm_eps", as_written(config.norm_eps)},
        {"embedding_norm", config.embedding_norm},
        {"final_norm", config.final_norm}}},
      {"linear maps",
       fmt::format("{} bias; attention scores {}", config.linear_bias ? "with" : "without",
                   config.scale_scores ? "scaled" : "not scaled"),
       {{"linear_bias", config.linear_bias}, {"scale_scores", config.scale_scores}}},
      {"activation",
       activation + (config.gated_mlp ? ", gated" : ""),
       {{"activation", activation}, {"gated_mlp", config.gated_mlp}}},
      {"embedding scale",
       fmt::format("{}", config.embedding_scale),
       {{"embedding_scale", as_written(config.embedding_scale)}}},
      positions_row(model),
      {"trained on", trained > 0 ? fmt::format("at most {} tokens", trained) : "not said"},
      tokenizer_row(model),
      vectors_row(model),
      {"MLM head", yes_no(mlm_head), {{"mlm_head", mlm_head}}},
      {"parameters", fmt::format("{}", parameters), {{"parameters", parameters}}},
      disk(model),
      memory(loaded, notes),
      precision_row(),
      {"unused tensors",
       names_text(model.unused_tensors(), 5),
       {{"unused_tensors", model.unused_tensors()}}},
      {"unused keys", names_text(model.unused_keys(), 100), {{"unused_keys", model.unused_keys()}}},
      {"versions", versions(), {{"versions", versions()}, {"notes", notes}}}};
  for (const std::string& note : notes) rows.push_back({"note", note});
  return rows;
}

constexpr const char* kInfoFooter = R"(Examples:
  infer info
  infer info path/to/checkpoint
  infer info --json learned)";

}  // namespace

int info(int argc, char** argv) {
  CommonOptions common;
  CommandLine line("infer info",
                   "Says what a model is: family, sizes, norms, positions, tokenizer.",
                   kInfoFooter);
  line.option("MODEL", "", "the same as --model", common.model);
  add_model(line, common);
  add_language(line, common);
  add_json_and_quiet(line, common);
  if (const auto done = line.parse(argc, argv)) return *done;

  Output output;
  Json json = Json::object();
  std::string text;
  constexpr int kLabel = 17;
  for (const Fact& row :
       describe(phasor::Model::load(common.model, {.language = common.language}))) {
    json.update(row.json);
    text += fmt::format("{:<{}}{}\n", row.label, kLabel,
                        wrapped(printable(row.text), kLabel, output.width()));
  }
  output.write(common.json ? one_line(json) + "\n" : text);
  return 0;
}

}  // namespace infer
