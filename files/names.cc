// The names of every enum of phasor, in one place.

#include <fmt/ranges.h>

#include <algorithm>

#include "files/enum_names.h"
#include "files/refuse.h"
#include "files/spelling.h"
#include "phasor/options.h"
#include "phasor/quantize.h"
#include "phasor/run.h"

namespace phasor {

using namespace internal;

void check_value(const EnumNames& names, size_t value) {
  if (value < names.all.size()) return;
  refuse<InvalidArgument>("there is no {} with the number {}; there are: {}", names.what, value,
                          fmt::join(names.all, ", "));
}

size_t index_of(const EnumNames& names, std::string_view name) {
  const auto found = std::find(names.all.begin(), names.all.end(), name);
  if (found == names.all.end()) {
    refuse<InvalidArgument>("unknown {} \"{}\"; there are: {}{}", names.what, name,
                            fmt::join(names.all, ", "), did_you_mean(name, names.all));
  }
  return static_cast<size_t>(found - names.all.begin());
}

PHASOR_NAMES(Activation, Activation::kLaplace, "activation", "gelu", "gelu_tanh", "relu", "silu",
             "tanh", "linear", "sigmoid", "quick_gelu", "gelu_10", "relu2", "relu6", "leaky_relu",
             "hardswish", "mish", "laplace")
PHASOR_NAMES(Aggregation, Aggregation::kMax, "aggregation", "simple", "none", "first", "average",
             "max")
PHASOR_NAMES(ClassifierHead::Output, ClassifierHead::Output::kTanh, "output of a classifier",
             "softmax", "sigmoid", "identity", "tanh")
PHASOR_NAMES(DType, DType::kFloat64, "dtype", "F32", "F16", "BF16", "F64")
PHASOR_NAMES(ErrorCode, ErrorCode::kBackend, "error code", "invalid_argument", "empty_text",
             "too_long", "cancelled", "not_found", "invalid_model", "unsupported", "backend")
PHASOR_NAMES(KernelLibrary, KernelLibrary::kOneDnn, "kind of kernels", "auto", "own", "onednn")
PHASOR_NAMES(NormKind, NormKind::kRmsNorm, "norm", "layer_norm", "rms_norm")
PHASOR_NAMES(NormOrder, NormOrder::kPostNorm, "norm order", "pre", "post")
PHASOR_NAMES(OffsetUnit, OffsetUnit::kCharacters, "unit of offsets", "none", "bytes", "characters")
PHASOR_NAMES(Overflow, Overflow::kWindow, "overflow policy", "error", "truncate", "clamp",
             "interpolate", "window")
PHASOR_NAMES(PoolingMode, PoolingMode::kLastToken, "pooling mode", "cls", "max", "mean",
             "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
PHASOR_NAMES(PositionKind, PositionKind::kLearned, "kind of positions", "none", "sinusoidal",
             "learned")
PHASOR_NAMES(Positions::Source, Positions::Source::kAlibi, "source of positions", "model", "none",
             "sinusoidal", "learned", "table", "rotary", "alibi")
PHASOR_NAMES(Precision, Precision::kAuto, "precision", "f32", "bf16", "int8", "auto")
PHASOR_NAMES(ScoreBias, ScoreBias::kAlibi, "bias on the scores", "none", "buckets", "alibi")
PHASOR_NAMES(ResidualCut::Site, ResidualCut::Site::kBoth, "residual connection", "attn", "mlp",
             "both")
PHASOR_NAMES(Similarity, Similarity::kManhattan, "similarity", "cosine", "dot", "euclidean",
             "manhattan")
PHASOR_NAMES(SinusoidalLayout, SinusoidalLayout::kOpenNmt, "sinusoidal layout", "paper", "marian",
             "t2t", "fairseq", "opennmt")
PHASOR_NAMES(TextRole, TextRole::kDocument, "role of texts", "any", "query", "document")
PHASOR_NAMES(TruncationSide, TruncationSide::kLeft, "truncation side", "tokenizer", "right", "left")
PHASOR_NAMES(VectorKind, VectorKind::kStates, "kind of vectors", "dense", "sparse", "tokens",
             "states")
PHASOR_NAMES(VectorType, VectorType::kUbinary, "type of vectors", "f32", "f16", "int8", "uint8",
             "binary", "ubinary")

}  // namespace phasor
