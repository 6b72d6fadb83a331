// What the well-known tutorials say about positions, held against what phasor computes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phasor/model.h"
#include "phasor/positions.h"

namespace infer {

/// A sentence, a number or a figure of a tutorial.
struct Claim {
  std::string source;         // the tutorial's title
  std::string text;           // what it says
  std::optional<bool> holds;  // empty where it is a matter of how much
  bool as_expected = true;    // whether that and the numbers are those of theory
  std::string computed;       // the numbers that decide
  std::string reason;         // where it does not hold, what does; where it does, within what
};

/// The bundled twins. A claim about a model that is null is left out.
struct ClaimModels {
  std::shared_ptr<const phasor::Model> sinusoidal = nullptr, none = nullptr;
};

/// What computes the tables: sinusoidal_table(), or another to see the claims fail.
using TableSource =
    std::function<std::vector<double>(phasor::SinusoidalLayout layout, int64_t rows,
                                      int64_t d_model, double base, int64_t first_position)>;

/// Every claim, computed now, in the order of the sources. Rounded to float32 where the source was.
/// Throws InvalidArgument for models that are too unlike the twins, and tables of a wrong size.
std::vector<Claim> tutorial_claims(const ClaimModels& models = {},
                                   const TableSource& table = phasor::sinusoidal_table);

}  // namespace infer
