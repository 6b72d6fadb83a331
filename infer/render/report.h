// What a plain run says about each text: as a table, as JSON, and in notes.
#pragma once

#include <string>
#include <vector>

#include "infer/experiment/observed.h"
#include "infer/render/terminal.h"
#include "phasor/encoder.h"

namespace infer {

/// Which positions a run adds, for people: "sinusoidal (paper)", "learned", "none", "table".
std::string describe_positions(const phasor::PositionConfig& own,
                               const phasor::Positions& positions);
/// The layout alone: "paper"; "learned", "none" or "table" where nothing is computed.
std::string layout_name(const phasor::PositionConfig& own, const phasor::Positions& positions);

/// "sinusoidal: 6 layers, d_model 128, 4 heads, post-norm, positions sinusoidal (paper),
/// f32".
std::string describe_model(const std::string& name, const phasor::ModelConfig& config,
                           const phasor::Positions& positions, phasor::Precision precision);

std::string to_text(const Observed& text, const Output& output);
/// The ids, positions and pieces of a text's tokens under each other.
std::string token_rows(const Observed& text, int width);
/// One line, without its end.
std::string summary_json(const Observed& text);

/// What a reader should know about this text: bytes replaced, tokens dropped, longer than
/// trained.
std::vector<std::string> notes(const Observed& text, const phasor::Model& model,
                               const phasor::RunOptions& options);

}  // namespace infer
