// What a run says about each sequence: as a table, as JSON, and in notes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "infer/input.h"
#include "infer/observation.h"
#include "infer/terminal.h"

namespace infer {

/// All that is known about one sequence after its run.
struct SequenceReport {
  Input input;
  std::vector<float> positions;  // [T]
  std::vector<LayerReport> layers;
  std::vector<MaskReport> masks;
};

/// Reports on every sequence of a batch; `inputs` are those it was run with.
std::vector<SequenceReport> report(phasor::Encoder& encoder, std::span<const Input> inputs,
                                   const Batch& batch);

/// Which positions a run adds, for people: "sinusoidal (paper)", "learned", "none".
std::string describe_positions(const phasor::PositionConfig& own,
                               const phasor::Positions& positions);
/// The layout alone: "paper"; "learned" or "none" where nothing is computed.
std::string layout_name(const phasor::PositionConfig& own, const phasor::Positions& positions);

/// "sinusoidal: 6 layers, d_model 128, 4 heads, post-norm, positions sinusoidal (paper),
/// f32".
std::string describe_model(const std::string& name, const phasor::ModelConfig& config,
                           const phasor::Positions& positions, phasor::Precision precision);

std::string to_text(const SequenceReport& report, const phasor::Model& model, const Output& output);
/// One line, without its end.
std::string to_json(const SequenceReport& report, const phasor::Model& model,
                    const std::string& model_name);

/// What a reader should know about this sequence: bytes replaced, tokens dropped, longer than
/// trained.
std::vector<std::string> notes(const SequenceReport& report, const phasor::Model& model,
                               const phasor::RunOptions& options);

}  // namespace infer
