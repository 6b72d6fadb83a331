// What a run says about each sequence: as a table, as JSON, and in notes.
#include "infer/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace infer {
namespace {

using phasor::PositionKind;
using phasor::Positions;

constexpr int kBarWidth = 20;

PositionKind kind_of(const phasor::PositionConfig& own, const Positions& positions) {
  switch (positions.source()) {
    case Positions::Source::kNone:
      return PositionKind::kNone;
    case Positions::Source::kSinusoidal:
      return PositionKind::kSinusoidal;
    case Positions::Source::kLearned:
    case Positions::Source::kTable:
      return PositionKind::kLearned;
    case Positions::Source::kModel:
      break;
  }
  return own.kind;
}

std::string piece_of(const phasor::Model& model, int32_t id) {
  if (!model.has_tokenizer() || id >= model.tokenizer().vocab_size()) return "";
  return printable(model.tokenizer().piece(id));
}

std::string token_rows(const SequenceReport& report, int width) {
  TokenRow position{"position", {}}, token{"token", {}}, id{"id", {}};
  for (const float p : report.positions) position.cells.push_back(fmt::format("{:.4g}", p));
  for (const std::string& piece : report.input.pieces) token.cells.push_back(printable(piece));
  for (const int32_t i : report.input.token_ids) id.cells.push_back(fmt::format("{}", i));
  if (token.cells.empty()) return token_table({position, id}, width);
  return token_table({position, token, id}, width);
}

std::string layer_rows(const std::vector<LayerReport>& layers) {
  std::string out = fmt::format("  {:>5}  {:>8}  {:<28}  {}\n", "layer", "norm",
                                "moved by positions", "attention reaches");
  for (size_t l = 0; l < layers.size(); ++l) {
    const LayerReport& layer = layers[l];
    const std::string moved = fmt::format("{:>5}  {}", small_number(layer.position_effect),
                                          bar(layer.position_effect, kBarWidth));
    const std::string reach =
        layer.attention_distance ? fmt::format("{:.2f} tokens", *layer.attention_distance) : "";
    std::string line =
        fmt::format("  {:>5}  {:>8.2f}  {}  {}", l == 0 ? "embed" : fmt::format("{}", l),
                    layer.norm, pad_right(moved, 28), reach);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string mask_rows(const SequenceReport& report, const phasor::Model& model) {
  std::string out;
  for (const MaskReport& mask : report.masks) {
    out += fmt::format("\n  likeliest for the mask at position {:.4g}\n",
                       report.positions[mask.token]);
    for (const Filler& filler : mask.fillers) {
      out += fmt::format("    {} {:.3f} {}", pad_right(piece_of(model, filler.id), 16),
                         filler.probability, bar(filler.probability, kBarWidth));
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n";
    }
  }
  return out;
}

nlohmann::ordered_json number(float position) {
  const float whole = std::round(position);
  if (whole == position) return static_cast<int64_t>(whole);
  return position;
}

}  // namespace

std::vector<SequenceReport> report(phasor::Encoder& encoder, std::span<const Input> inputs,
                                   const Batch& batch) {
  std::vector<SequenceReport> reports;
  for (int64_t i = 0; i < std::ssize(inputs); ++i) {
    const std::span<const float> positions = batch.encoding.positions(i);
    SequenceReport& report = reports.emplace_back(
        SequenceReport{.input = inputs[i],
                       .positions = {positions.begin(), positions.end()},
                       .layers = layer_reports(batch, encoder.model().config().d_model, i),
                       .masks = mask_reports(encoder, batch, i)});
    keep_leading_tokens(report.input, batch.encoding.num_tokens(i));
  }
  return reports;
}

std::string layout_name(const phasor::PositionConfig& own, const Positions& positions) {
  const PositionKind kind = kind_of(own, positions);
  if (kind != PositionKind::kSinusoidal) return std::string(to_string(kind));
  const bool computed = positions.source() == Positions::Source::kSinusoidal;
  return std::string(to_string(computed ? positions.layout() : own.layout));
}

std::string describe_positions(const phasor::PositionConfig& own, const Positions& positions) {
  const PositionKind kind = kind_of(own, positions);
  if (kind != PositionKind::kSinusoidal) return std::string(to_string(kind));
  return fmt::format("sinusoidal ({})", layout_name(own, positions));
}

std::string describe_model(const std::string& name, const phasor::ModelConfig& config,
                           const Positions& positions, phasor::Precision precision) {
  return fmt::format("model {}: {} layers, d_model {}, {} heads, {}-norm, positions {}, {}", name,
                     config.num_layers, config.d_model, config.num_heads,
                     to_string(config.norm_order), describe_positions(config.position, positions),
                     phasor::precision_name(precision));
}

std::string to_text(const SequenceReport& report, const phasor::Model& model,
                    const Output& output) {
  std::string out;
  if (report.input.text) {
    const std::string text = printable(*report.input.text);
    out += output.heading(text.empty() ? "(empty text)" : text) + "\n";
  }
  out += token_rows(report, output.width()) + "\n" + layer_rows(report.layers);
  return out + mask_rows(report, model);
}

std::string to_json(const SequenceReport& report, const phasor::Model& model,
                    const std::string& model_name) {
  const Input& input = report.input;
  nlohmann::ordered_json json;
  json["model"] = model_name;
  json["text"] = input.text ? nlohmann::ordered_json(*input.text) : nlohmann::ordered_json();
  json["ids"] = input.token_ids;
  json["pieces"] = input.pieces;
  auto& positions = json["positions"] = nlohmann::ordered_json::array();
  for (const float position : report.positions) positions.push_back(number(position));
  json["invalid_bytes"] = input.invalid_bytes;
  json["dropped"] = input.dropped;
  auto& layers = json["layers"] = nlohmann::ordered_json::array();
  for (size_t l = 0; l < report.layers.size(); ++l) {
    const LayerReport& layer = report.layers[l];
    layers.push_back({{"layer", l},
                      {"norm", layer.norm},
                      {"position_effect", layer.position_effect},
                      {"attention_distance", nullptr}});
    if (layer.attention_distance) {
      layers.back()["attention_distance"] = *layer.attention_distance;
    }
  }
  auto& masks = json["masks"] = nlohmann::ordered_json::array();
  for (const MaskReport& mask : report.masks) {
    nlohmann::ordered_json fillers = nlohmann::ordered_json::array();
    for (const Filler& filler : mask.fillers) {
      fillers.push_back({{"id", filler.id},
                         {"piece", piece_of(model, filler.id)},
                         {"probability", filler.probability}});
    }
    masks.push_back({{"token", mask.token}, {"fillers", fillers}});
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string> notes(const SequenceReport& report, const phasor::Model& model,
                               const phasor::RunOptions& options) {
  const Input& input = report.input;
  const phasor::ModelConfig& config = model.config();
  std::vector<std::string> notes;
  if (input.invalid_bytes > 0) notes.push_back(invalid_bytes_note(input.invalid_bytes));
  if (input.mask_as_text) {
    notes.push_back("this model fills no masks; its mask was read as plain text");
  }
  if (input.dropped > 0) {
    notes.push_back(fmt::format("{} tokens were dropped to fit the position table", input.dropped));
  }
  const int64_t tokens = std::ssize(input.token_ids);
  if (config.max_positions > 0 && tokens > config.max_positions) {
    const bool endless = kind_of(config.position, options.positions) != PositionKind::kLearned;
    notes.push_back(fmt::format(
        "{} tokens; the model was trained on at most {}{}", tokens, config.max_positions,
        endless ? "" : fmt::format(" (--overflow {})", to_string(options.overflow))));
  }
  return notes;
}

}  // namespace infer
