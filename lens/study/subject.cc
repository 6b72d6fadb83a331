#include "lens/study/subject.h"

#include <fmt/format.h>

#include <algorithm>

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

Encoding Subject::run(std::span<const std::vector<int32_t>> sequences, Observer& observer,
                      const Positions& positions) const {
  RunOptions changed = options;
  changed.positions = positions;
  changed.observer = &observer;
  return encoder.encode_ids(sequences, changed);
}

Trace hidden_states() {
  return Trace{Hook::kFullEmbed, Hook::kResidPost, Hook::kNormalizedResidPost, Hook::kFinalNorm};
}

std::vector<Deviation> deviations(const Subject& got, const Subject& want,
                                  std::span<const Input> inputs, std::string_view what,
                                  const Stages& stages) {
  const ModelConfig& config = want.model().config();
  std::vector<Deviation> deviations(config.num_layers + 1);
  int64_t done = 0;
  for (const std::span<const Input> batch : batches_of(inputs)) {
    stages.show(what, done, std::ssize(inputs));
    Trace wanted = hidden_states(), gotten = hidden_states();
    const Encoding a = want.run(token_ids_of(batch), wanted);
    const Encoding b = got.run(token_ids_of(batch), gotten);
    if (!std::ranges::equal(a.offsets(), b.offsets())) return {};
    for (int64_t i = 0; i < std::ssize(batch); ++i) {
      for (int64_t l = 0; l < std::ssize(deviations); ++l) {
        deviations[l].add(gotten.hidden_state(l, i).values, wanted.hidden_state(l, i).values,
                          config.d_model);
      }
    }
    done += std::ssize(batch);
  }
  return deviations;
}

std::optional<int64_t> trained_length(const Encoder& encoder, const RunOptions& run) {
  const int64_t trained = encoder.model().config().max_positions;
  const std::optional<int64_t> limit = encoder.model().max_tokens(run.positions);
  if (trained == 0) return limit;
  return std::min(trained, limit.value_or(trained));
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

bool adds_vectors(const Subject& subject) {
  return kind_of(subject.model().config().position, subject.options.positions) !=
         PositionKind::kNone;
}

Observed described(const Subject& subject) {
  const ModelConfig& config = subject.model().config();
  return {.label = subject.label,
          .model = subject.name,
          .positions = describe_positions(config.position, subject.options.positions),
          .precision = std::string(to_string(subject.encoder.precision())),
          .edits = subject.edits,
          .cut_residuals = describe_cuts(subject.options.cut_residuals),
          .num_layers = config.num_layers,
          .num_heads = config.num_heads,
          .d_model = config.d_model};
}

}  // namespace phasor::internal
