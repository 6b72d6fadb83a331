// Weights are packed one matrix at a time: to float32, to the precision, then into oneDNN's layout.

#include "engine/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "engine/checks.h"
#include "engine/kernels/kernels.h"
#include "engine/linear.h"
#include "engine/norm.h"
#include "files/refuse.h"

namespace phasor::internal {
namespace {

template <typename T>
T* take_zeros(Arena& arena, int64_t count) {
  auto* const memory = static_cast<T*>(arena.take(count * sizeof(T)));
  std::fill_n(memory, count, T());
  return memory;
}

constexpr int32_t kLargestInt8 = 127;  // a weight's magnitude

/// Row o of `weight` [out, in], at most max_int8_width() wide, rounded to integers of at most 127
/// in magnitude.
struct Int8Rows {
  Int8Rows(std::span<const float> weight, int64_t in, int64_t out, float* scales, int32_t* sums)
      : values(in * out) {
    for (int64_t o = 0; o < out; ++o) {
      const std::span<const float> row = weight.subspan(o * in, in);
      float largest = 0;
#pragma omp simd reduction(max : largest)
      for (int64_t i = 0; i < in; ++i) largest = std::max(largest, std::abs(row[i]));
      scales[o] = largest / kLargestInt8;
      // Of weights that are too small to divide by, all are 0.
      constexpr float kLeast = kLargestInt8 / std::numeric_limits<float>::max();
      const float inverse = largest > kLeast ? kLargestInt8 / largest : 0.0f;
      int32_t sum = 0;
      for (int64_t i = 0; i < in; ++i) {
        // Adding it rounds to a whole number, of ties to the even one, in the last bits.
        constexpr float kRounds = 0x1.8p23f;
        const auto whole = static_cast<int8_t>(std::bit_cast<int32_t>(row[i] * inverse + kRounds) -
                                               std::bit_cast<int32_t>(kRounds));
        values[o * in + i] = whole;
        sum += whole;
      }
      sums[o] = sum;
    }
  }

  std::vector<int8_t> values;  // [out, in]
};

/// Packs matrices of one precision into an arena, which several may share.
class Packer {
 public:
  Packer(const dnnl::engine& engine, Arena& arena, Precision precision,
         KernelLibrary kernels = KernelLibrary::kOwn)
      : engine_(engine), arena_(arena), precision_(precision), kernels_(kernels) {}

  PackedLinear linear(const std::string& name, const LinearWeights& weights) {
    const FiniteValues values(name + " weight", weights.weight);
    std::vector<float> bias = read_finite(name + " bias", weights.bias);
    bias.resize(weights.weight.shape[0]);  // zeros if there is none
    return linear(values.get(), bias);
  }
  /// Bytes of the arena that linear() takes for a map.
  int64_t bytes(int64_t in, int64_t out) {
    const int64_t columns = filled_up(out);
    const int64_t bias = Arena::rounded(columns * sizeof(float));
    const int64_t scales = precision_ == Precision::kInt8 ? 2 * bias : 0;
    const int64_t matrix = takes_panels(in) ? columns * in * panel_value_bytes(precision_)
                                            : static_cast<int64_t>(layout(in, out).get_size());
    return Arena::rounded(matrix) + bias + scales;
  }
  /// Several maps of the same input, packed side by side as one.
  PackedLinear side_by_side(
      std::initializer_list<std::pair<std::string, const LinearWeights*>> parts) {
    joined_.clear();
    std::vector<float> bias;
    for (const auto& [name, part] : parts) {
      const FiniteValues values(name + " weight", part->weight);
      joined_.insert(joined_.end(), values.get().begin(), values.get().end());
      const std::vector<float> some = read_finite(name + " bias", part->bias);
      bias.insert(bias.end(), some.begin(), some.end());
      bias.resize(joined_.size() / part->weight.shape[1]);
    }
    return linear(joined_, bias);
  }

 private:
  PackedLinear linear(std::span<const float> weight, std::span<const float> bias) {
    const int64_t out = std::ssize(bias);
    const int64_t in = std::ssize(weight) / out;
    const int64_t columns = filled_up(out);
    auto* const packed_bias = take_zeros<float>(arena_, columns);
    std::copy(bias.begin(), bias.end(), packed_bias);
    PackedLinear packed{.precision = precision_,
                        .in = in,
                        .out = out,
                        .weight = {},
                        .bias = dnnl::memory(onednn::dense({1, out}), engine_, packed_bias)};
    const auto pack = [&](const auto* values) {
      if (takes_panels(in)) {
        packed.panels =
            pack_panels(reinterpret_cast<const std::byte*>(values), in * sizeof(*values), out);
        return;
      }
      const onednn::Desc& desc = layout(in, out);
      packed.weight = onednn::pack(engine_, values, desc, arena_.take(desc.get_size()));
    };
    if (precision_ == Precision::kInt8) {
      auto* const scales = take_zeros<float>(arena_, columns);
      auto* const sums = take_zeros<int32_t>(arena_, columns);
      const Int8Rows rows(weight, in, out, scales, sums);
      pack(rows.values.data());
      packed.column_scale = scales;
      packed.column_sum = sums;
    } else if (matmul_types(precision_).weights == onednn::Type::bf16) {
      pack(halves(weight));
    } else if (precision_ == Precision::kBfloat16 && takes_panels(in)) {
      packed.panels = pack_half_panels(halves(weight), in, out);
    } else if (precision_ == Precision::kBfloat16) {
      std::vector<float> rounded(weight.size());
      kernels().round_to_bfloat16(weight.data(), std::ssize(weight), rounded.data());
      pack(rounded.data());
    } else {
      pack(weight.data());
    }
    return packed;
  }

  static int64_t filled_up(int64_t columns) {
    return (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  }
  const uint16_t* halves(std::span<const float> weight) {
    halves_.resize(weight.size());
    kernels().to_bfloat16(weight.data(), std::ssize(weight), halves_.data());
    return halves_.data();
  }
  bool takes_panels(int64_t in) const {
    if (kernels_ == KernelLibrary::kOneDnn) return false;
    if (precision_ != Precision::kInt8) return kernels().linear != nullptr;
    return kernels().linear_int8 != nullptr && in % kUnit == 0;
  }

  // Four bytes of each of 16 rows, then the next four.
  const std::byte* pack_panels(const std::byte* rows, int64_t row_bytes, int64_t out) {
    const int64_t count = filled_up(out) / kPanelColumns;
    auto* const panels = static_cast<std::byte*>(arena_.take(filled_up(out) * row_bytes));
    std::byte* to = panels;
    for (int64_t p = 0; p < count; ++p, rows += kPanelColumns * row_bytes) {
      const int64_t columns = std::min(kPanelColumns, out - p * kPanelColumns);
      for (int64_t k = 0; k < row_bytes; k += kUnit, to += kPanelColumns * kUnit) {
        for (int64_t c = 0; c < columns; ++c) {
          std::memcpy(to + c * kUnit, rows + c * row_bytes + k, kUnit);
        }
        std::memset(to + columns * kUnit, 0, (kPanelColumns - columns) * kUnit);
      }
    }
    return panels;
  }

  // See Kernels::linear_bfloat16.
  const std::byte* pack_half_panels(const uint16_t* rows, int64_t in, int64_t out) {
    const int64_t size = filled_up(out) * in;
    auto* const panels = take_zeros<uint16_t>(arena_, size);
    for (int64_t o = 0; o < out; ++o, rows += in) {
      const int64_t column = o % kPanelColumns, half = kPanelColumns / 2;
      uint16_t* const to =
          panels + (o - column) * in + 2 * (column % half) + (column < half ? 1 : 0);
      for (int64_t k = 0; k < in; ++k) to[k * kPanelColumns] = rows[k];
    }
    return reinterpret_cast<const std::byte*>(panels);
  }

  static constexpr int64_t kUnit = 4;  // bytes: one float or four integers

  const onednn::Desc& layout(int64_t in, int64_t out) {
    if (!layout_ || in != in_ || out != out_) {
      layout_ = onednn::preferred_weights(engine_, in, out, matmul_types(precision_));
      in_ = in;
      out_ = out;
    }
    return *layout_;
  }

  const dnnl::engine& engine_;
  Arena& arena_;
  Precision precision_;
  KernelLibrary kernels_;
  std::vector<float> joined_;           // reused for all blocks: new pages are slow
  std::vector<uint16_t> halves_;        // the same
  std::optional<onednn::Desc> layout_;  // of the last shape
  int64_t in_ = 0;
  int64_t out_ = 0;
};

Norm unpack(NormKind kind, const std::string& name, const NormWeights& weights) {
  Norm norm{kind, read_finite(name + " weight", weights.weight),
            read_finite(name + " bias", weights.bias)};
  norm.bias.resize(norm.weight.size());
  return norm;
}

std::optional<Norm> unpack_if_there(NormKind kind, const std::string& name,
                                    const NormWeights& weights) {
  return weights.weight.present() ? std::optional(unpack(kind, name, weights)) : std::nullopt;
}

/// Computes the blocks' RelativeRows, in float32 whatever the precision.
class RelativePacker {
 public:
  RelativePacker(const Model& model, const dnnl::engine& engine)
      : config_(*model.config().position.disentangled), engine_(engine) {
    const Weights& weights = model.weights();
    table_ = read_finite("relative table", weights.relative_table);
    if (!config_.norm) return;
    const Norm norm = unpack(model.config().norm, "relative norm", weights.relative_norm);
    layer_norm(Threads(), nullptr, table_.data(), 2 * config_.num_buckets, norm,
               model.config().norm_eps, table_.data());
  }

  RelativeRows rows(const BlockWeights& block) const {
    return {config_.content_to_position ? map(block.k) : std::vector<float>(),
            config_.position_to_content ? map(block.q) : std::vector<float>()};
  }

 private:
  std::vector<float> map(const LinearWeights& weights) const {
    Arena arena;
    const PackedLinear packed =
        Packer(engine_, arena, Precision::kFloat32).linear("relative", weights);
    const int64_t rows = 2 * config_.num_buckets;
    Linear linear(engine_, rows, packed);
    ScratchBuffer scratchpad;
    std::vector<float> out(rows * weights.weight.shape[0]);
    linear.run(Threads(), table_.data(), packed, out.data(),
               scratchpad.reserve_bytes(linear.scratchpad_bytes()));
    return out;
  }

  const DisentangledConfig& config_;
  const dnnl::engine& engine_;
  std::vector<float> table_;  // [2S, C], after its norm
};

/// Throws ModelError where packing takes out of proportion to the weights: narrow matrices are
/// filled up, and tables by offset are as large as config.json says.
void check_packed_bytes(const Model& model, int64_t bytes) {
  if (const int64_t most = affordable_bytes(model); bytes > most) {
    refuse<ModelError>(
        "the packed weights would take {} MB; a model of {} parameters may take {} MB", bytes >> 20,
        model.num_parameters(), most >> 20);
  }
}

/// A map of a head, as it is in the model.
struct HeadMap {
  const char* name;       // in messages
  NormWeights norm = {};  // before it; may be absent
  LinearWeights linear;
  std::optional<Activation> activation = {};
};

PackedHead pack_maps(const Model& model, const dnnl::engine& engine, int64_t packed_already,
                     const std::string& name, const std::vector<HeadMap>& maps) {
  PackedHead packed;
  Packer packer(engine, packed.arena, Precision::kFloat32);
  int64_t bytes = packed_already;
  for (const auto& [part, norm, linear, activation] : maps)
    bytes += packer.bytes(linear.weight.shape[1], linear.weight.shape[0]);
  check_packed_bytes(model, bytes);
  for (const auto& [part, norm, linear, activation] : maps) {
    packed.maps.push_back({.norm = unpack_if_there(model.config().norm, name + " norm", norm),
                           .linear = packer.linear(fmt::format("{} {}", name, part), linear),
                           .activation = activation});
  }
  return packed;
}

/// W·LN(f(V·h + c)) + b, where V, f and c may be absent.
std::vector<HeadMap> maps_of(const LinearWeights& dense, Activation activation,
                             const NormWeights& norm, const LinearWeights& out) {
  std::vector<HeadMap> maps;
  if (dense.weight.present())
    maps.push_back({.name = "dense", .linear = dense, .activation = activation});
  maps.push_back({.name = "out", .norm = norm, .linear = out});
  return maps;
}

/// Borrows the numbers.
Tensor tensor_of(const std::vector<float>& values, std::vector<int64_t> shape) {
  return {.shape = std::move(shape), .data = reinterpret_cast<const std::byte*>(values.data())};
}

std::vector<HeadMap> maps_of(const TokenVectorConfig& config) {
  std::vector<HeadMap> maps;
  for (const Projection& map : config.projections) {
    HeadMap& added = maps.emplace_back(HeadMap{.name = "map", .linear = {}});
    added.linear = {tensor_of(map.weight, {map.out, map.in}), tensor_of(map.bias, {map.out})};
    if (map.activation != Activation::kIdentity) added.activation = map.activation;
  }
  return maps;
}

const MlmHead& mlm_head_of(const Model& model) {
  if (model.weights().mlm_head) return *model.weights().mlm_head;
  refuse<ModelError>(
      ErrorCode::kUnsupported,
      "this {} checkpoint has no masked-language-model head; choose one saved with it "
      "(…ForMaskedLM)",
      model.config().family);
}

}  // namespace

int64_t affordable_bytes(const Model& model) {
  constexpr int64_t kBytesOfParameter = 8;
  return kAlwaysAffordable + kBytesOfParameter * model.num_parameters();
}

/// Says why the model has no head for a `task` in the names of architectures, Sequence or Token.
[[noreturn]] void refuse_headless(const Model& model, std::string_view task) {
  for (const std::string& note : model.notes()) {  // why the file's head is not used
    if (note.starts_with("the classification head"))
      throw ModelError(note, ErrorCode::kUnsupported);
  }
  refuse<ModelError>(ErrorCode::kUnsupported,
                     "this {} checkpoint has no classification head; choose one saved with it "
                     "(…For{}Classification)",
                     model.config().family, task);
}

const ClassifierHead& token_classifier_of(const Model& model) {
  if (model.weights().token_classifier) return *model.weights().token_classifier;
  refuse_headless(model, "Token");
}

const ClassifierHead& classifier_of(const Model& model) {
  if (model.weights().classifier) return *model.weights().classifier;
  if (model.weights().token_classifier) {
    refuse<ModelError>(ErrorCode::kUnsupported,
                       "this model's classification head labels tokens; call label() (infer "
                       "label), or choose a model that labels texts");
  }
  refuse_headless(model, "Sequence");
}

int64_t panel_value_bytes(Precision precision) {
  return precision == Precision::kInt8 ? 1 : precision == Precision::kBfloat16 ? 2 : 4;
}

onednn::MatmulTypes matmul_types(Precision precision) {
  using onednn::Type;
  if (precision == Precision::kInt8) return {Type::u8, Type::s8, Type::s32};
  if (precision == Precision::kBfloat16 && onednn::has_fast_bfloat16()) {
    return {Type::bf16, Type::bf16, Type::f32};
  }
  return {};
}

// Without dot products of four bytes, two products of u8 and s8 are added in 16 bits: 2·254·127
// overflows, 2·127·127 does not.
int32_t most_int8_input() { return onednn::has_int8_dot_products() ? 254 : 126; }

int64_t max_int8_width() {
  return std::numeric_limits<int32_t>::max() / ((most_int8_input() + 1) * kLargestInt8);
}

Precision precision_for(const ModelConfig& config, Precision wanted) {
  const Precision precision = wanted == Precision::kAuto ? fastest_precision() : wanted;
  const int64_t width =
      std::max({config.d_model, config.attention_width(), config.d_ff, config.embedding_width()});
  if (precision != Precision::kInt8 || width <= max_int8_width()) return precision;
  if (wanted == Precision::kAuto) {
    return onednn::has_fast_bfloat16() ? Precision::kBfloat16 : Precision::kFloat32;
  }
  refuse<InvalidArgument>(
      "the model's widest linear map has {} inputs; int8 takes up to {} on this CPU, or its sums "
      "would overflow: choose the precision f32 or bf16",
      width, max_int8_width());
}

KernelLibrary kernels_for(KernelLibrary wanted) {
  // Faster wherever they were compared, which is on x86-64: docs/performance.md.
  return wanted == KernelLibrary::kAuto ? KernelLibrary::kOwn : wanted;
}

int64_t packed_bytes(const Model& model, const dnnl::engine& engine, Precision precision,
                     KernelLibrary kernels) {
  const ModelConfig& config = model.config();
  const PositionConfig& position = config.position;
  Arena none;
  Packer packer(engine, none, precision_for(config, precision), kernels);
  const int64_t width = config.d_model, heads = config.attention_width(), mlp = config.d_ff;
  int64_t block = packer.bytes(width, heads + 2 * config.kv_width()) + packer.bytes(heads, width) +
                  (config.gated_mlp ? 2 : 1) * packer.bytes(width, mlp) + packer.bytes(mlp, width);
  int64_t bytes = 0;
  if (config.d_embedding > 0) bytes += packer.bytes(config.d_embedding, width);
  if (position.bias != ScoreBias::kNone) bytes += OffsetBias::bytes(config);
  if (position.disentangled) {
    bytes += Disentangled::bytes(*position.disentangled);
    block += RelativeRows::bytes(*position.disentangled, heads);
  }
  return bytes + config.num_blocks() * block;
}

PackedWeights::PackedWeights(const Model& model, const dnnl::engine& engine, Precision wanted,
                             KernelLibrary wanted_kernels, const Threads& threads)
    : precision(precision_for(model.config(), wanted)), kernels(kernels_for(wanted_kernels)) {
  const ModelConfig& config = model.config();
  const Weights& weights = model.weights();
  Packer packer(engine, arena, precision, kernels);
  check_packed_bytes(model, packed_bytes(model, engine, precision, kernels));
  token_types = read_finite("token type embedding", weights.token_type_embedding);
  const auto norm = [&](const std::string& name, const NormWeights& of) {
    return unpack(config.norm, name, of);
  };
  if (config.embedding_norm) embedding_norm = norm("embedding norm", weights.embedding_norm);
  if (config.d_embedding > 0) {
    embedding_map = packer.linear("embedding map", weights.embedding_map);
  }
  if (config.position.bias != ScoreBias::kNone) {
    score_bias.emplace(config, read_finite("relative bias", weights.relative_bias));
  }
  std::optional<RelativePacker> relative;
  if (config.position.disentangled) {
    disentangled.emplace(*config.position.disentangled);
    relative.emplace(model, engine);
  }
  const auto pack_block = [&](int64_t index, Packer& packer) -> PackedBlock {
    const BlockWeights& block = weights.blocks[index];
    const std::string name = fmt::format("block {} ", index);
    const auto norm_if_there = [&](const char* what, const NormWeights& of) {
      return unpack_if_there(config.norm, name + what, of);
    };
    return {.qkv = packer.side_by_side(
                {{name + "q", &block.q}, {name + "k", &block.k}, {name + "v", &block.v}}),
            .q_norm = unpack_if_there(NormKind::kRmsNorm, name + "q norm", block.q_norm),
            .k_norm = unpack_if_there(NormKind::kRmsNorm, name + "k norm", block.k_norm),
            .relative = relative ? relative->rows(block) : RelativeRows(),
            .out = packer.linear(name + "attention output", block.out),
            .attn_branch_norm = norm_if_there("attention's branch norm", block.attn_branch_norm),
            .mlp_branch_norm = norm_if_there("MLP's branch norm", block.mlp_branch_norm),
            .attn_norm = norm_if_there("attention norm", block.attn_norm),
            .gate = config.gated_mlp ? std::optional(packer.linear(name + "MLP gate", block.gate))
                                     : std::nullopt,
            .up = packer.linear(name + "MLP up", block.up),
            .down = packer.linear(name + "MLP down", block.down),
            .mlp_norm = norm(name + "MLP norm", block.mlp_norm)};
  };
  std::vector<Packer> packers(threads.count(), packer);
  blocks.resize(weights.blocks.size());
  for (int64_t first = 0; first < std::ssize(blocks); first += threads.count()) {
    const int64_t count = std::min<int64_t>(threads.count(), std::ssize(blocks) - first);
    threads.run(count, [&](int64_t i, int thread) {
      blocks[first + i] = pack_block(first + i, packers[thread]);
    });
    model.release_pages();  // before the next blocks are read
  }
  if (config.final_norm) final_norm = norm("final norm", weights.final_norm);
}

int64_t PackedWeights::bytes() const {
  int64_t bytes = arena.bytes() + (score_bias ? score_bias->bytes() : 0);
  if (disentangled) bytes += disentangled->bytes();
  for (const PackedBlock& block : blocks) bytes += block.relative.bytes();
  return bytes;
}

PackedHead pack_head(Head which, const Model& model, const dnnl::engine& engine,
                     int64_t packed_already) {
  const auto pack = [&](const std::string& name, const std::vector<HeadMap>& maps) {
    return pack_maps(model, engine, packed_already, name, maps);
  };
  if (which == Head::kMlm) {
    const MlmHead& head = mlm_head_of(model);
    return pack("MLM head",
                maps_of(head.dense, head.activation, head.norm, {head.decoder, head.bias}));
  }
  if (which == Head::kTokenVectors) return pack("token vectors'", maps_of(model.token_vectors()));
  const auto& of_tokens = model.weights().token_classifier;
  const ClassifierHead& head = of_tokens ? *of_tokens : classifier_of(model);
  return pack("classifier", maps_of(head.dense, head.activation, head.norm, head.out));
}

}  // namespace phasor::internal
