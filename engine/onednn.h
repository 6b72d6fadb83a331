// The interface to oneDNN: all primitives of the encoder are created here.
//
// Code for the differences between oneDNN 2.6 and 3.x is in onednn.cc. Every primitive has a user
// scratchpad (the library's own is not thread-safe) and strict float32 arithmetic (regardless of
// environment variables), and runs on the calling thread alone.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phasor::internal::onednn {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;

/// A tensor, row-major.
Desc dense(const Dims& dims, Type type = Type::f32);

/// A compiled primitive and the memory objects of its arguments, created once and re-pointed
/// between runs, so that running allocates nothing. Not shared between threads.
class Primitive {
 public:
  Primitive(const dnnl::engine& engine, const dnnl::primitive& primitive,
            const std::vector<std::pair<int, Desc>>& arguments, const Desc& scratchpad,
            std::string impl_info);
  Primitive(Primitive&&) = default;
  Primitive& operator=(Primitive&&) = default;

  /// The same compiled primitive for another thread.
  Primitive with_own_arguments() const;

  /// Points argument `arg` (DNNL_ARG_…) at data of the argument's shape.
  void set(int arg, const void* data);
  /// Uses an existing memory object. Packed weights need this, because pointing a memory object at
  /// a padded layout writes to the padding.
  void set(int arg, const dnnl::memory& memory);
  /// Blocks until done. `scratchpad` has scratchpad_bytes(). Throws BackendError.
  void run(void* scratchpad);

  Desc desc(int arg) const;
  size_t scratchpad_bytes() const;
  /// The oneDNN implementation that was chosen: "brg:avx512_core".
  const std::string& impl_info() const { return impl_info_; }

 private:
  Primitive(const Primitive&) = default;

  size_t index_of(int arg) const;

  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;  // owners of what arguments_ points to
  std::vector<dnnl_exec_arg_t> arguments_;
  std::string impl_info_;
  bool has_run_ = false;
};

/// What a primitive does to its result before it writes it, in order: oneDNN's post-ops.
class PostOps {
 public:
  /// An eltwise algorithm.
  PostOps& then(dnnl::algorithm algorithm, float alpha = 0, float beta = 0);
  /// A binary algorithm with a tensor, whose dimensions may be 1. Its argument is other(i), where i
  /// counts all post-ops.
  PostOps& then(dnnl::algorithm algorithm, const Desc& desc);
  static int other(int i) { return DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1; }

  const dnnl::post_ops& get() const { return ops_; }
  const std::vector<std::pair<int, Desc>>& arguments() const { return arguments_; }

 private:
  dnnl::post_ops ops_;
  std::vector<std::pair<int, Desc>> arguments_;
};

/// dst = src · weights + bias. Arguments DNNL_ARG_SRC, _WEIGHTS, _BIAS (if any), _DST.
Primitive make_matmul(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                      const std::optional<Desc>& bias, const Desc& dst, const PostOps& post = {});

// Arguments DNNL_ARG_SRC and _DST, which may be the same memory unless descriptions differ.
/// Copies into another layout or type.
Primitive make_reorder(const dnnl::engine& engine, const Desc& src, const Desc& dst);
Primitive make_eltwise(const dnnl::engine& engine, dnnl::algorithm algorithm, const Desc& desc,
                       float alpha = 0, float beta = 0);
/// Over the last dimension.
Primitive make_softmax(const dnnl::engine& engine, const Desc& desc);
/// Over the dimensions that are 1 in dst.
Primitive make_reduction(const dnnl::engine& engine, dnnl::algorithm algorithm, const Desc& src,
                         const Desc& dst, const PostOps& post = {});
/// Over the last dimension, with arguments DNNL_ARG_SCALE and _SHIFT, each [C].
Primitive make_layer_norm(const dnnl::engine& engine, const Desc& desc, float eps);
/// dst = src_0 ∘ src_1, which may have dimensions of 1: DNNL_ARG_SRC_0, _SRC_1, _DST.
Primitive make_binary(const dnnl::engine& engine, dnnl::algorithm algorithm, const Desc& src_0,
                      const Desc& src_1, const Desc& dst, const PostOps& post = {});

/// The types of a matmul's matrices.
struct MatmulTypes {
  Type src = Type::f32;
  Type weights = Type::f32;
  Type dst = Type::f32;
};

/// The layout in which oneDNN wants the weights [in, out] of a linear map.
Desc preferred_weights(const dnnl::engine& engine, int64_t in, int64_t out,
                       const MatmulTypes& types = {});

/// Copies `weight` [out, in], as PyTorch stores it, of the layout's type, into `layout` [in, out]:
/// to `place`, which is borrowed, or into new memory.
dnnl::memory pack(const dnnl::engine& engine, const void* weight, const Desc& layout,
                  void* place = DNNL_MEMORY_ALLOCATE);

Type type_of(const Desc& desc);

/// Whether the packed weights of a matrix [in, out] begin with the packed weights of its first
/// columns (`part`), without padding, so that it can be run in parts.
bool is_part(const Desc& part, const Desc& whole);

/// Whether this machine has the instructions, which are x86's, and oneDNN may use them
/// (ONEDNN_MAX_CPU_ISA).
bool may_use(dnnl::cpu_isa isa);
/// Whether four products of bytes are summed in 32 bits (VNNI) instead of two in 16.
bool has_int8_dot_products();
/// Whether bfloat16 is multiplied faster than float32.
bool has_fast_bfloat16();
/// Whether that holds for vectors, without AMX.
bool has_fast_bfloat16_vectors();

/// "2.6.3"
std::string version();

}  // namespace phasor::internal::onednn
