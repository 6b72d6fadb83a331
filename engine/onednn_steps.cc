// The steps of the forward pass in oneDNN's primitives alone: what a block is, primitive by
// primitive. phasor computes three things itself: what positions add to scores (binary adds it),
// the angles of rotary positions, and the one activation that oneDNN lacks.
//
// A step takes the group's rows in pieces and runs its primitives one after the other over a piece,
// so that what lies between them stays in the cache.

#include <algorithm>
#include <array>
#include <compare>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "engine/kernels/kernels.h"
#include "engine/linear.h"
#include "engine/memory.h"
#include "engine/steps.h"

namespace phasor::internal {
namespace {

using dnnl::algorithm;
using onednn::dense;
using onednn::Desc;
using onednn::PostOps;
using onednn::Primitive;
using onednn::Type;
using Primitives = std::vector<Primitive>;
using Arguments = std::initializer_list<std::pair<int, const void*>>;

struct Eltwise {
  dnnl::algorithm algorithm;
  float alpha = 0, beta = 0;
};

/// f as oneDNN's functions, the first applied first; none if it lacks it.
const std::vector<Eltwise>* eltwise_of(Activation f) {
  constexpr float kMost = std::numeric_limits<float>::max();
  using A = Activation;
  static const std::map<A, std::vector<Eltwise>> kAll = {
      {A::kGeluErf, {{algorithm::eltwise_gelu_erf}}},
      {A::kGeluTanh, {{algorithm::eltwise_gelu_tanh}}},
      {A::kRelu, {{algorithm::eltwise_relu}}},
      {A::kSilu, {{algorithm::eltwise_swish, 1}}},
      {A::kTanh, {{algorithm::eltwise_tanh}}},
      {A::kIdentity, {{algorithm::eltwise_linear, 1}}},
      {A::kSigmoid, {{algorithm::eltwise_logistic}}},
      {A::kQuickGelu, {{algorithm::eltwise_swish, 1.702f}}},
      {A::kGelu10, {{algorithm::eltwise_gelu_erf}, {algorithm::eltwise_clip, -kMost, 10}}},
      {A::kRelu2, {{algorithm::eltwise_relu}, {algorithm::eltwise_square}}},
      {A::kRelu6, {{algorithm::eltwise_clip, 0, 6}}},
      {A::kLeakyRelu, {{algorithm::eltwise_relu, 0.01f}}},
      {A::kHardswish, {{algorithm::eltwise_hardswish, 1.0f / 6, 0.5f}}},
      {A::kMish, {{algorithm::eltwise_mish}}}};
  const auto found = kAll.find(f);
  return found == kAll.end() ? nullptr : &found->second;
}

PostOps then(PostOps ops, std::span<const Eltwise> more) {
  for (const Eltwise& f : more) ops.then(f.algorithm, f.alpha, f.beta);
  return ops;
}

template <typename... Steps>
Primitives sequence(Steps&&... steps) {
  Primitives all;
  (all.push_back(std::move(steps)), ...);
  return all;
}

/// The primitives of a step, compiled for pieces of so many rows and for the rest, with arguments
/// for each thread.
class Pieces {
 public:
  using Make = std::function<Primitives(int64_t rows)>;
  Pieces(int64_t num_rows, int64_t piece_rows, int threads, const Make& make)
      : num_rows_(num_rows), piece_rows_(std::min(piece_rows, num_rows)) {
    whole_ = for_each(threads, make(piece_rows_));
    if (num_rows_ % piece_rows_ > 0) rest_ = for_each(threads, make(num_rows_ % piece_rows_));
  }

  int64_t count() const { return (num_rows_ + piece_rows_ - 1) / piece_rows_; }
  /// The pieces, first and end, that hold these rows.
  std::pair<int64_t, int64_t> of_rows(int64_t first, int64_t end) const {
    return {first / piece_rows_, (end - 1) / piece_rows_ + 1};
  }
  /// body(primitives, first_row, rows) for one piece, on the thread of that number.
  template <typename Body>
  void run(int64_t piece, int thread, const Body& body) {
    const int64_t first = piece * piece_rows_, rows = std::min(piece_rows_, num_rows_ - first);
    body(rows == piece_rows_ ? whole_[thread] : rest_[thread], first, rows);
  }
  std::string impl_info() const {
    std::string all;
    for (const Primitive& primitive : whole_.front()) {
      all += (all.empty() ? "" : " + ") + primitive.impl_info();
    }
    return all;
  }

 private:
  static std::vector<Primitives> for_each(int threads, Primitives first) {
    std::vector<Primitives> all(threads);
    for (int t = 1; t < threads; ++t) {
      for (const Primitive& primitive : first) all[t].push_back(primitive.with_own_arguments());
    }
    all.front() = std::move(first);
    return all;
  }

  int64_t num_rows_, piece_rows_;
  std::vector<Primitives> whole_, rest_;  // by thread
};

class OnednnSteps : public Steps {
 public:
  OnednnSteps(const dnnl::engine& engine, const ModelConfig& config, const PackedWeights& weights,
              size_t max_plans)
      : engine_(engine),
        config_(config),
        weights_(weights),
        plans_(max_plans),
        attention_plans_(max_plans) {}

  int64_t padded(int64_t num_rows) const override {
    // oneDNN 2.6's matmul for AVX2 gives the same bits to a row of any batch of 24, 48, … rows, and
    // of no other numbers.
    static const int64_t unit = onednn::may_use(dnnl::cpu_isa::avx512_core) ? 8 : 24;
    return (num_rows + unit - 1) / unit * unit;
  }

  void prepare(const Threads& threads, int64_t num_rows) override {
    threads_ = threads;
    num_rows_ = padded(num_rows);
    plan_ = plans_.get({num_rows_, threads.count()}, [] { return std::make_shared<Plan>(); });
    while (std::ssize(memory_) < threads.count()) memory_.emplace_back();
  }

  // matmul with f as its post-op; in bfloat16 a reorder before it, in int8 what make_int8() says.
  void linear(const PackedLinear& map, const float* x, float* y,
              std::optional<Activation> f) override {
    const std::vector<Eltwise>* const fused = f ? eltwise_of(*f) : nullptr;
    const std::span<const Eltwise> post = fused ? *fused : std::span<const Eltwise>();
    const Key key = {role_of(map), map.in, map.out, f ? static_cast<int>(*f) : -1};
    const bool int8 = map.precision == Precision::kInt8;
    over_rows(
        key,
        [&](int64_t rows) {
          return int8 ? make_int8(map, rows, post) : make_float(map, rows, post);
        },
        [&](Primitives& steps, int64_t first, int64_t rows, int thread) {
          const float* const from = x + first * map.in;
          float* const to = y + first * map.out;
          int8 ? run_int8(steps, map, from, rows, to, thread)
               : run_float(steps, map, from, rows, to, thread);
        });
    if (f && !fused) internal::activate(threads_, y, num_rows_, map.out, *f, map.precision);
  }

  void activate(Activation f, int64_t width, float* x) override {
    const std::vector<Eltwise>* const found = eltwise_of(f);
    if (!found) return internal::activate(threads_, x, num_rows_, width, f, weights_.precision);
    const auto make = [&](int64_t rows) {
      Primitives steps;
      for (const auto& [algorithm, alpha, beta] : *found) {
        steps.push_back(
            onednn::make_eltwise(engine_, algorithm, dense({rows, width}), alpha, beta));
      }
      return steps;
    };
    over_rows({"activation", width, width, static_cast<int>(f)}, make,
              [&](Primitives& steps, int64_t first, int64_t, int thread) {
                float* const at = x + first * width;
                for (Primitive& step : steps) copy(step, thread, at, at);
              });
  }

  // binary, then layer normalization; an RMS norm is eltwise, reduction and binary.
  void add_norm(const float* f, const Norm& norm, float* x, float* out) override {
    const int64_t width = std::ssize(norm.weight);
    const bool centred = norm.kind == NormKind::kLayerNorm;
    const auto make = [&](int64_t rows) {
      const Desc all = dense({rows, width});
      Primitives steps = centred ? sequence(onednn::make_layer_norm(engine_, all, config_.norm_eps))
                                 : make_rms_norm(rows, width);
      if (f) steps.push_back(onednn::make_binary(engine_, algorithm::binary_add, all, all, all));
      return steps;
    };
    const char* const name = f ? "add_norm" : "norm";
    over_rows({name, width, width, static_cast<int>(norm.kind)}, make,
              [&](Primitives& steps, int64_t first, int64_t rows, int thread) {
                float* const at = x + first * width;
                if (f) binary(steps.back(), thread, at, f + first * width, at);
                if (!centred)
                  return run_rms_norm(steps, norm, at, rows, out + first * width, thread);
                run(steps[0], thread,
                    {{DNNL_ARG_SRC, at},
                     {DNNL_ARG_SCALE, norm.weight.data()},
                     {DNNL_ARG_SHIFT, norm.bias.data()},
                     {DNNL_ARG_DST, out + first * width}});
              });
  }

  // As make_rms_norm(), with the heads of a row gathered first.
  void norm_heads(const Norm& norm, int64_t heads, int64_t stride, float* x) override {
    const int64_t D = std::ssize(norm.weight);
    const auto make = [&](int64_t rows) {
      const Desc apart({rows, heads * D}, Type::f32, {stride, 1});
      const Desc together = dense({rows, heads * D});
      Primitives steps = make_rms_norm(rows * heads, D);
      steps.push_back(onednn::make_reorder(engine_, apart, together));
      steps.push_back(onednn::make_reorder(engine_, together, apart));
      return steps;
    };
    over_rows({"head_norm", heads, D}, make,
              [&](Primitives& steps, int64_t first, int64_t rows, int thread) {
                std::vector<float>& gathered = memory_[thread].heads;
                gathered.resize(rows * heads * D);
                copy(steps[3], thread, x + first * stride, gathered.data());
                run_rms_norm(steps, norm, gathered.data(), rows * heads, gathered.data(), thread);
                copy(steps[4], thread, gathered.data(), x + first * stride);
              });
  }

  void add(const float* f, int64_t width, float* x) override {
    in_place("add", algorithm::binary_add, f, width, x);
  }
  void multiply(const float* f, int64_t width, float* x) override {
    in_place("multiply", algorithm::binary_mul, f, width, x);
  }

  // x = x ⊙ factors + (x·P) ⊙ other factors, where the matrix P swaps the columns of each pair.
  void rotate(const Rotation& rotation, const float* table, float* qkv) override {
    const int64_t dims = rotation.row_size() / 2, heads = config_.num_heads + config_.kv_heads();
    const int64_t width = config_.attention_width() + 2 * config_.kv_width();
    if (swap_.empty()) swap_ = rotation.swaps();
    const auto make = [&](int64_t rows) {
      const Desc in_heads({rows, heads, dims}, Type::f32, {width, config_.head_dim(), 1});
      const Desc in_table({rows, 1, dims}, Type::f32, {2 * dims, 2 * dims, 1});
      const Desc x = dense({rows, heads, dims}), factors = dense({rows, 1, dims});
      const Desc flat = dense({rows * heads, dims});
      return sequence(onednn::make_reorder(engine_, in_heads, x),
                      onednn::make_reorder(engine_, in_table, factors),
                      onednn::make_matmul(engine_, flat, dense({dims, dims}), {}, flat),
                      onednn::make_binary(engine_, algorithm::binary_mul, x, factors, x),
                      onednn::make_binary(engine_, algorithm::binary_mul, x, factors, x,
                                          PostOps().then(algorithm::binary_add, x)),
                      onednn::make_reorder(engine_, x, in_heads));
    };
    over_rows({"rotation", dims, dims}, make,
              [&](Primitives& steps, int64_t first, int64_t rows, int thread) {
                const int64_t all = rows * heads * dims;
                const auto [x, swapped, factors, others] =
                    memory<4>(thread, {all, all, rows * dims, rows * dims});
                const float* const angles = table + first * 2 * dims;
                copy(steps[0], thread, qkv + first * width, x);
                copy(steps[1], thread, angles, factors);
                copy(steps[1], thread, angles + dims, others);
                matmul(steps[2], thread, x, swap_.data(), swapped);
                binary(steps[3], thread, swapped, others, swapped);
                steps[4].set(PostOps::other(0), swapped);
                binary(steps[4], thread, x, factors, x);
                copy(steps[5], thread, x, qkv + first * width);
              });
  }

  void attention(std::optional<AttentionStep> only, std::span<const AttentionOperands> all,
                 const AttentionMaps& maps, float* scratch) override {
    for (const AttentionOperands& in : all) {
      attention_ = attention_plans_.get({in.num_tokens, threads_.count()},
                                        [&] { return make_attention(in); });
      const int64_t heads = attention_->heads, share = attention_scratch(in);
      threads_.run(in.num_heads / heads, [&](int64_t task, int thread) {
        attend(only, in, maps, task * heads, scratch + thread * share, thread);
      });
    }
  }

  std::vector<PrimitiveInfo> primitives() const override {
    std::vector<PrimitiveInfo> all;
    if (!plan_) return all;
    for (const auto& [key, pieces] : *plan_) all.push_back({key.name, pieces.impl_info()});
    if (attention_) all.push_back({"attention", attention_->tiles.impl_info()});
    return all;
  }

 private:
  struct Key {
    std::string name;
    int64_t in, out;
    int detail = 0;  // the activation or the kind of norm
    auto operator<=>(const Key&) const = default;
  };
  using Plan = std::map<Key, Pieces>;  // of one number of rows; grows with the first run
  struct AttentionPlan {
    int64_t heads;       // of a task
    Pieces keys_values;  // all rows at once
    Pieces tiles;        // of queries
  };
  struct Memory {
    ScratchBuffer values, scratchpad;
    std::vector<float> heads;  // of norm_heads()
  };

  static constexpr int64_t kPieceRows = 240;  // see padded()

  Primitives make_float(const PackedLinear& map, int64_t rows, std::span<const Eltwise> f) {
    const Type type = matmul_types(map.precision).src;
    const Desc x = dense({rows, map.in}), source = dense({rows, map.in}, type);
    Primitives steps =
        sequence(onednn::make_matmul(engine_, source, map.weight.get_desc(), dense({1, map.out}),
                                     dense({rows, map.out}), then({}, f)));
    if (type != Type::f32) steps.push_back(onednn::make_reorder(engine_, x, source));
    return steps;
  }

  void run_float(Primitives& steps, const PackedLinear& map, const float* x, int64_t rows, float* y,
                 int thread) {
    const auto [rounded] = memory<1>(thread, {rows * map.in});
    if (steps.size() > 1) {
      copy(steps[1], thread, x, rounded);
    } else if (map.precision == Precision::kBfloat16) {  // in float32, where it is emulated
      kernels().round_to_bfloat16(x, rows * map.in, rounded);
    }
    steps[0].set(DNNL_ARG_WEIGHTS, map.weight);
    run(steps[0], thread,
        {{DNNL_ARG_SRC, map.precision == Precision::kBfloat16 ? rounded : x},
         {DNNL_ARG_BIAS, map.bias.get_data_handle()},
         {DNNL_ARG_DST, y}});
  }

  // q = x / max|x| · levels + levels, and y = f((q·W / levels − ΣW) · scales · max|x| + b), see
  // PackedLinear.
  Primitives make_int8(const PackedLinear& map, int64_t rows, std::span<const Eltwise> f) {
    constexpr float kLeast = 1e-30f, kMost = std::numeric_limits<float>::max();  // not 0 / 0
    const auto levels = static_cast<float>(most_int8_input() / 2);
    const Desc x = dense({rows, map.in}), q = dense({rows, map.in}, Type::u8);
    const Desc y = dense({rows, map.out}), of_rows = dense({rows, 1});
    const Desc of_columns = dense({1, map.out}), sums = dense({1, map.out}, Type::s32);
    return sequence(
        onednn::make_eltwise(engine_, algorithm::eltwise_abs, x),
        onednn::make_reduction(engine_, algorithm::reduction_max, x, of_rows,
                               PostOps().then(algorithm::eltwise_clip, kLeast, kMost)),
        onednn::make_binary(engine_, algorithm::binary_div, x, of_rows, q,
                            PostOps().then(algorithm::eltwise_linear, levels, levels)),
        onednn::make_matmul(engine_, q, map.weight.get_desc(), {}, y,
                            PostOps()
                                .then(algorithm::eltwise_linear, 1 / levels)
                                .then(algorithm::binary_sub, sums)
                                .then(algorithm::binary_mul, of_columns)),
        onednn::make_binary(engine_, algorithm::binary_mul, y, of_rows, y,
                            then(PostOps().then(algorithm::binary_add, of_columns), f)));
  }

  void run_int8(Primitives& steps, const PackedLinear& map, const float* x, int64_t rows, float* y,
                int thread) {
    const auto [values, largest, q] = memory<3>(thread, {rows * map.in, rows, rows * map.in});
    copy(steps[0], thread, x, values);
    copy(steps[1], thread, values, largest);
    binary(steps[2], thread, x, largest, q);
    steps[3].set(DNNL_ARG_WEIGHTS, map.weight);
    steps[3].set(PostOps::other(1), map.column_sum);
    steps[3].set(PostOps::other(2), map.column_scale);
    copy(steps[3], thread, q, y);
    steps[4].set(PostOps::other(0), map.bias.get_data_handle());
    binary(steps[4], thread, y, largest, y);
  }

  // x · (mean(x²) + eps)^(−1/2) · weight + bias
  Primitives make_rms_norm(int64_t rows, int64_t width) {
    const Desc x = dense({rows, width}), of_rows = dense({rows, 1}), of_columns = dense({1, width});
    return sequence(onednn::make_eltwise(engine_, algorithm::eltwise_square, x),
                    onednn::make_reduction(engine_, algorithm::reduction_mean, x, of_rows,
                                           PostOps()
                                               .then(algorithm::eltwise_linear, 1, config_.norm_eps)
                                               .then(algorithm::eltwise_pow, 1, -0.5f)),
                    onednn::make_binary(engine_, algorithm::binary_mul, x, of_rows, x,
                                        PostOps()
                                            .then(algorithm::binary_mul, of_columns)
                                            .then(algorithm::binary_add, of_columns)));
  }

  void run_rms_norm(Primitives& steps, const Norm& norm, const float* x, int64_t rows, float* out,
                    int thread) {
    const auto [squares, factors] = memory<2>(thread, {rows * std::ssize(norm.weight), rows});
    copy(steps[0], thread, x, squares);
    copy(steps[1], thread, squares, factors);
    steps[2].set(PostOps::other(0), norm.weight.data());
    steps[2].set(PostOps::other(1), norm.bias.data());
    binary(steps[2], thread, x, factors, out);
  }

  // softmax(scale·Q·Kᵀ + what positions add)·V for some heads and a tile of queries at a time,
  // whose scores stay in the second-level cache.
  std::shared_ptr<AttentionPlan> make_attention(const AttentionOperands& in) {
    constexpr int64_t kScores = int64_t{1} << 19;
    const int64_t T = in.num_tokens, D = in.head_dim;
    const int threads = threads_.count();
    const int64_t tile = std::min(T, std::clamp<int64_t>(kScores / T / 16 * 16, 16, kPieceRows));
    int64_t heads = (in.num_heads + threads - 1) / threads;
    while (heads > 1 && (in.num_heads % heads > 0 || heads * tile * T > kScores)) --heads;
    const Type type = in.products.values_per_float == 2 ? Type::bf16 : Type::f32;
    const auto of_heads = [&](int64_t rows, int64_t stride) {
      return Desc({heads, rows, D}, Type::f32, {D, stride, 1});
    };
    const int64_t kv_heads = in.group_heads > 1 ? 1 : heads;
    const auto make_keys_values = [&](int64_t rows) {
      const Desc strided({kv_heads, rows, D}, Type::f32, {D, in.stride, 1});
      return sequence(onednn::make_reorder(engine_, strided, dense({kv_heads, rows, D}, type)));
    };
    const auto make_tile = [&](int64_t rows) {
      const Desc q = dense({heads, rows, D}, type), k({heads, D, T}, type, {T * D, 1, D});
      const Desc v = dense({heads, T, D}, type), z = dense({heads, rows, D});
      const Desc scores = dense({heads, rows, T}), pattern = dense({heads, rows, T}, type);
      Primitives steps = sequence(
          onednn::make_reorder(engine_, of_heads(rows, in.stride), q),
          onednn::make_matmul(engine_, q, k, {}, scores,
                              PostOps().then(algorithm::eltwise_linear, in.scale)),
          onednn::make_binary(engine_, algorithm::binary_add, scores, scores, scores),
          onednn::make_softmax(engine_, scores), onednn::make_reorder(engine_, scores, pattern),
          onednn::make_matmul(engine_, pattern, v, {}, z),
          onednn::make_reorder(engine_, z, of_heads(rows, in.num_heads * D)));
      if (in.cap == 0) return steps;
      for (const auto& [f, alpha] : {std::pair(algorithm::eltwise_linear, 1 / in.cap),
                                     std::pair(algorithm::eltwise_tanh, 0.0f),
                                     std::pair(algorithm::eltwise_linear, in.cap)}) {
        steps.push_back(onednn::make_eltwise(engine_, f, scores, alpha));
      }
      return steps;
    };
    return std::make_shared<AttentionPlan>(AttentionPlan{
        heads, Pieces(T, T, threads, make_keys_values), Pieces(T, tile, threads, make_tile)});
  }

  void attend(std::optional<AttentionStep> only, const AttentionOperands& in,
              const AttentionMaps& maps, int64_t head, float* scratch, int thread) {
    const auto runs = [&](AttentionStep step) { return !only || *only == step; };
    const int64_t T = in.num_tokens, D = in.head_dim, heads = attention_->heads;
    const int64_t tile = heads * std::min(T, kPieceRows);
    const std::array<float*, 6> parts =
        memory<6>(thread, {tile * D, heads * T * D, heads * T * D, tile * T, tile * T, tile * D});
    float *const q = parts[0], *const k = parts[1], *const v = parts[2], *const scores = parts[3],
                 *const other = parts[4], *const rows_of_z = parts[5];
    attention_->keys_values.run(0, thread, [&](Primitives& steps, int64_t, int64_t) {
      const int64_t at_once = in.group_heads > 1 ? 1 : heads;
      const auto bytes = int64_t{sizeof(float)} / in.products.values_per_float * T * D;
      for (int64_t h = 0; h < heads; h += at_once) {
        const int64_t column = in.kv_head(head + h) * D;
        copy(steps[0], thread, in.k + column, reinterpret_cast<std::byte*>(k) + h * bytes);
        copy(steps[0], thread, in.v + column, reinterpret_cast<std::byte*>(v) + h * bytes);
      }
    });
    const auto run_tile = [&](Primitives& steps, int64_t first, int64_t rows) {
      const auto show = [&](float* map, bool change) {
        for (int64_t h = 0; map != nullptr && h < heads; ++h) {
          float* const in_map = map + ((head + h) * T + first) * T;
          float* const in_tile = scores + h * rows * T;
          std::copy_n(change ? in_map : in_tile, rows * T, change ? in_tile : in_map);
        }
      };
      if (runs(AttentionStep::kScores)) {
        copy(steps[0], thread, in.q + first * in.stride + head * D, q);
        matmul(steps[1], thread, q, k, scores);
        for (size_t i = 7; i < steps.size(); ++i) copy(steps[i], thread, scores, scores);
        for (int64_t h = 0; in.positions.change_scores() && h < heads; ++h) {
          position_scores(in, head + h, first, rows, scratch, other + h * rows * T);
        }
        if (in.positions.change_scores()) binary(steps[2], thread, scores, other, scores);
        show(maps.scores, false);
      }
      if (runs(AttentionStep::kSoftmax)) {
        if (only) show(maps.scores, true);
        copy(steps[3], thread, scores, scores);
        show(maps.pattern, false);
      }
      if (runs(AttentionStep::kMix)) {
        if (only) show(maps.pattern, true);
        const bool halves = in.products.values_per_float == 2;
        if (halves) copy(steps[4], thread, scores, other);
        matmul(steps[5], thread, halves ? other : scores, v, rows_of_z);
        copy(steps[6], thread, rows_of_z, in.z + (first * in.num_heads + head) * D);
      }
    };
    const auto [begin, end] = attention_->tiles.of_rows(in.first_query, in.end_query());
    for (int64_t t = begin; t < end; ++t) attention_->tiles.run(t, thread, run_tile);
  }

  void in_place(const char* name, dnnl::algorithm algorithm, const float* f, int64_t width,
                float* x) {
    const auto make = [&](int64_t rows) {
      const Desc all = dense({rows, width});
      return sequence(onednn::make_binary(engine_, algorithm, all, all, all));
    };
    over_rows({name, width, width}, make,
              [&](Primitives& steps, int64_t first, int64_t, int thread) {
                float* const at = x + first * width;
                binary(steps[0], thread, at, f + first * width, at);
              });
  }

  /// Runs a step over all rows, compiling it first if it is new.
  template <typename Body>
  void over_rows(const Key& key, const Pieces::Make& make, const Body& body) {
    auto found = plan_->find(key);
    if (found == plan_->end()) {
      const int threads = threads_.count();
      const int64_t piece = std::min(kPieceRows, padded((num_rows_ + threads - 1) / threads));
      found = plan_->try_emplace(key, num_rows_, piece, threads, make).first;
    }
    Pieces& pieces = found->second;
    threads_.run(pieces.count(), [&](int64_t piece, int thread) {
      pieces.run(piece, thread, [&](Primitives& steps, int64_t first, int64_t rows) {
        body(steps, first, rows, thread);
      });
    });
  }

  void run(Primitive& primitive, int thread, Arguments arguments) {
    for (const auto& [arg, data] : arguments) primitive.set(arg, data);
    primitive.run(memory_[thread].scratchpad.reserve_bytes(primitive.scratchpad_bytes()));
  }
  void copy(Primitive& unary, int thread, const void* from, void* to) {
    run(unary, thread, {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}});
  }
  void binary(Primitive& primitive, int thread, const void* a, const void* b, void* to) {
    run(primitive, thread, {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}});
  }
  void matmul(Primitive& primitive, int thread, const void* a, const void* b, void* to) {
    run(primitive, thread, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, to}});
  }

  /// Memory of the thread for so many floats each, until its next call.
  template <size_t count>
  std::array<float*, count> memory(int thread, std::array<int64_t, count> sizes) {
    constexpr int64_t kLine = 16;
    int64_t total = 0;
    for (int64_t& size : sizes) total += size = (size + kLine - 1) / kLine * kLine;
    std::array<float*, count> parts;
    float* next = memory_[thread].values.reserve(total);
    for (size_t i = 0; i < count; ++i) parts[i] = std::exchange(next, next + sizes[i]);
    return parts;
  }

  std::string role_of(const PackedLinear& map) const {
    const auto is = [&](const PackedLinear& of) { return map.in == of.in && map.out == of.out; };
    const PackedBlock& block = weights_.blocks.front();
    if (is(block.qkv)) return "qkv";
    if (is(block.out)) return "out";
    if (is(block.up)) return "up";
    return is(block.down) ? "down" : "embedding_map";
  }

  dnnl::engine engine_;
  const ModelConfig& config_;
  const PackedWeights& weights_;
  Threads threads_;
  int64_t num_rows_ = 0;
  LruCache<PlanSize, Plan> plans_;
  std::shared_ptr<Plan> plan_;
  LruCache<PlanSize, AttentionPlan> attention_plans_;
  std::shared_ptr<AttentionPlan> attention_;  // of the last segment
  std::vector<float> swap_;                   // P of rotate(), [dims, dims]
  std::vector<Memory> memory_;                // of each thread
};

}  // namespace

std::unique_ptr<Steps> make_onednn_steps(const dnnl::engine& engine, const ModelConfig& config,
                                         const PackedWeights& weights, size_t max_plans) {
  return std::make_unique<OnednnSteps>(engine, config, weights, max_plans);
}

}  // namespace phasor::internal
