#include "lens/study/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace phasor::internal {

namespace {

PositionKind kind_of(const PositionConfig& own, const Positions& positions) {
  using Source = Positions::Source;
  const Source source = positions.source();
  if (source == Source::kModel) return own.kind;
  if (source == Source::kSinusoidal) return PositionKind::kSinusoidal;
  const bool table = source == Source::kLearned || source == Source::kTable;
  return table ? PositionKind::kLearned : PositionKind::kNone;
}

/// "1.attn", "2.mlp", "3": layers count from 1.
std::vector<std::string> describe_cuts(std::span<const ResidualCut> cuts) {
  std::vector<std::string> names;
  for (const ResidualCut& cut : cuts) {
    const char* const site = cut.site == ResidualCut::Site::kBoth        ? ""
                             : cut.site == ResidualCut::Site::kAttention ? ".attn"
                                                                         : ".mlp";
    names.push_back(fmt::format("{}{}", cut.layer + 1, site));
  }
  return names;
}

}  // namespace

Encoding encode(const lens::Run& run, std::span<const std::vector<int32_t>> sequences,
                Observer& observer) {
  RunOptions options = run.options;
  options.observer = &observer;
  return run.encoder->encode_ids(sequences, options);
}

Trace hidden_states() {
  return Trace{Hook::kFullEmbed, Hook::kResidPost, Hook::kNormalizedResidPost, Hook::kFinalNorm};
}

std::optional<int64_t> trained_length(const Encoder& encoder, const RunOptions& run) {
  const int64_t trained = encoder.model().config().max_positions;
  const std::optional<int64_t> limit = encoder.model().max_tokens(run.positions);
  if (trained == 0) return limit;
  return std::min(trained, limit.value_or(trained));
}

int64_t trained_length(std::span<const lens::Run> runs) {
  int64_t shortest = 0;
  for (const lens::Run& run : runs) {
    const int64_t length = trained_length(*run.encoder, run.options).value_or(0);
    if (length > 0) shortest = shortest == 0 ? length : std::min(shortest, length);
  }
  return shortest;
}

std::string short_name(const std::string& model) {
  std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::filesystem::path above = path.parent_path();
  if (path.filename() == "model" && above.has_filename()) path = above;
  const std::string cached = above.parent_path().filename().string();
  const bool of_hub = above.filename() == "snapshots" && cached.starts_with("models--");
  return of_hub ? cached.substr(cached.rfind("--") + 2) : path.filename().string();
}

std::string layout_name(const PositionConfig& own, const Positions& positions) {
  if (positions.source() >= Positions::Source::kTable) {  // table, rotary, alibi
    return std::string(to_string(positions.source()));
  }
  const PositionKind kind = kind_of(own, positions);
  if (kind != PositionKind::kSinusoidal) return std::string(to_string(kind));
  const bool computed = positions.source() == Positions::Source::kSinusoidal;
  return std::string(to_string(computed ? positions.layout() : own.layout));
}

std::string describe_positions(const PositionConfig& own, const Positions& positions) {
  if (positions.mask() != AttentionMask::kModel) {
    const bool causal = positions.mask() == AttentionMask::kCausal;
    return describe_positions(own, positions.masked(AttentionMask::kModel)) +
           (causal ? ", causal mask" : ", no mask");
  }
  if (positions.source() == Positions::Source::kModel) return describe(own);
  const std::string layout = layout_name(own, positions);
  if (positions.source() == Positions::Source::kRotary) {
    return fmt::format("rotary (base {})", positions.base());
  }
  const bool sinusoidal = kind_of(own, positions) == PositionKind::kSinusoidal;
  return sinusoidal ? fmt::format("sinusoidal ({})", layout) : layout;
}

bool ends_with_table(const PositionConfig& own, const Positions& positions) {
  return kind_of(own, positions) == PositionKind::kLearned;
}

bool adds_vectors(const lens::Run& run) {
  return kind_of(run.model().config().position, run.options.positions) != PositionKind::kNone;
}

bool acts_in_attention(const lens::Run& run) {
  const PositionConfig& own = run.model().config().position;
  const auto source = run.options.positions.source();
  return source == Positions::Source::kRotary || source == Positions::Source::kAlibi ||
         own.bias != ScoreBias::kNone || own.rotary || own.disentangled;
}

Observed described(const lens::Run& run) {
  const ModelConfig& config = run.model().config();
  return {.label = run.label,
          .model = run.name,
          .positions = describe_positions(config.position, run.options.positions),
          .precision = std::string(to_string(run.encoder->precision())),
          .edits = run.edits,
          .cut_residuals = describe_cuts(run.options.cut_residuals),
          .num_layers = config.num_layers,
          .num_heads = config.num_heads,
          .d_model = config.d_model};
}

}  // namespace phasor::internal
