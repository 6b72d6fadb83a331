// The names of every enum of the lens.

#include "files/enum_names.h"
#include "phasor/lens/residual.h"
#include "phasor/lens/table.h"

namespace phasor {

PHASOR_NAMES(ResidualSource, ResidualSource::kBiases, "part of the residual stream", "token",
             "position", "token_type", "attention", "mlp", "biases")
PHASOR_NAMES(RowMeasure, RowMeasure::kDotProduct, "measure of rows", "cosine_distance", "euclidean",
             "dot_product")

}  // namespace phasor
