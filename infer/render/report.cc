// What a plain run says about each text: as a table, as JSON, and in notes.
#include "infer/render/report.h"

#include <fmt/format.h>

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

std::string layer_rows(const std::vector<ObservedLayer>& layers) {
  std::string out = fmt::format("  {:>5}  {:>8}  {:<28}  {}\n", "layer", "norm",
                                "moved by positions", "attention reaches");
  for (size_t l = 0; l < layers.size(); ++l) {
    const ObservedLayer& layer = layers[l];
    const double effect = layer.position_effect.value_or(0);
    const std::string moved =
        fmt::format("{:>5}  {}", small_number(effect), bar(effect, kBarWidth));
    const std::string reach =
        layer.attention ? fmt::format("{:.2f} tokens", layer.attention->distance) : "";
    std::string line =
        fmt::format("  {:>5}  {:>8.2f}  {}  {}", l == 0 ? "embed" : fmt::format("{}", l),
                    layer.norm, pad_right(moved, 28), reach);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string mask_rows(const Observed& text) {
  std::string out;
  for (const MaskReport& mask : text.masks) {
    out += fmt::format("\n  likeliest for the mask at position {:.4g}\n",
                       text.position_ids[mask.token]);
    for (const Filler& filler : mask.fillers) {
      out += fmt::format("    {} {:.3f} {}", pad_right(filler.piece, 16), filler.probability,
                         bar(filler.probability, kBarWidth));
      out.erase(out.find_last_not_of(' ') + 1);
      out += "\n";
    }
  }
  return out;
}

}  // namespace

std::string token_rows(const Observed& text, int width) {
  TokenRow position{"position", {}}, token{"token", {}}, id{"id", {}};
  for (const float p : text.position_ids) position.cells.push_back(fmt::format("{:.4g}", p));
  for (const std::string& piece : text.input.pieces) token.cells.push_back(printable(piece));
  for (const int32_t i : text.input.token_ids) id.cells.push_back(fmt::format("{}", i));
  if (token.cells.empty()) return token_table({position, id}, width);
  return token_table({position, token, id}, width);
}

std::string layout_name(const phasor::PositionConfig& own, const Positions& positions) {
  if (positions.source() == Positions::Source::kTable) return "table";
  const PositionKind kind = kind_of(own, positions);
  if (kind != PositionKind::kSinusoidal) return std::string(to_string(kind));
  const bool computed = positions.source() == Positions::Source::kSinusoidal;
  return std::string(to_string(computed ? positions.layout() : own.layout));
}

std::string describe_positions(const phasor::PositionConfig& own, const Positions& positions) {
  const PositionKind kind = kind_of(own, positions);
  if (kind != PositionKind::kSinusoidal) return layout_name(own, positions);
  return fmt::format("sinusoidal ({})", layout_name(own, positions));
}

std::string describe_model(const std::string& name, const phasor::ModelConfig& config,
                           const Positions& positions, phasor::Precision precision) {
  return fmt::format("model {}: {} layers, d_model {}, {} heads, {}-norm, positions {}, {}", name,
                     config.num_layers, config.d_model, config.num_heads,
                     to_string(config.norm_order), describe_positions(config.position, positions),
                     phasor::to_string(precision));
}

std::string to_text(const Observed& text, const Output& output) {
  std::string out;
  if (text.input.text) {
    const std::string title = printable(*text.input.text);
    out += output.heading(title.empty() ? "(empty text)" : title) + "\n";
  }
  return out + token_rows(text, output.width()) + "\n" + layer_rows(text.layers) + mask_rows(text);
}

std::vector<std::string> notes(const Observed& text, const phasor::Model& model,
                               const phasor::RunOptions& options) {
  const Input& input = text.input;
  const phasor::ModelConfig& config = model.config();
  std::vector<std::string> notes;
  if (input.invalid_bytes > 0) notes.push_back(invalid_bytes_note(input.invalid_bytes));
  if (input.mask_as_text) {
    notes.push_back("this model fills no masks; its mask was read as plain text");
  }
  if (input.dropped > 0) {
    notes.push_back(fmt::format("{} tokens were dropped to fit the position table", input.dropped));
  }
  const int64_t tokens = text.num_tokens();
  if (config.max_positions > 0 && tokens > config.max_positions) {
    const bool endless = kind_of(config.position, options.positions) != PositionKind::kLearned;
    notes.push_back(fmt::format(
        "{} tokens; the model was trained on at most {}{}", tokens, config.max_positions,
        endless ? "" : fmt::format(" (--overflow {})", to_string(options.overflow))));
  }
  return notes;
}

}  // namespace infer
