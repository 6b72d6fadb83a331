// The only file that depends on oneDNN's version.

#include "engine/onednn.h"

#include <dlfcn.h>
#include <dnnl_debug.h>
#include <fmt/format.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/fork.h"
#include "files/refuse.h"

namespace phasor::internal::onednn {
namespace {

/// Holds oneDNN to the calling thread, where it was built with OpenMP: libgomp and libomp keep the
/// number of threads for each calling thread. Looked up by name, so that phasor needs no OpenMP of
/// its own beside oneDNN's.
class OneThread {
 public:
  OneThread() {
    if (openmp().get == nullptr || openmp().set == nullptr) return;
    before_ = openmp().get();
    if (before_ != 1) openmp().set(1);
  }
  ~OneThread() {
    if (before_ > 1) openmp().set(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  struct OpenMp {
    int (*get)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    void (*set)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  };
  static const OpenMp& openmp() {
    static const OpenMp found;
    return found;
  }

  int before_ = 1;
};

/// Throws BackendError where no memory is left for compiling, as under `ulimit -v`: oneDNN would
/// end the process. It compiles when a primitive is created, and its matrix products' kernels also
/// when the first of them runs.
void require_room() {
  constexpr size_t kBytes = 16 << 20;
  void* const room =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) {
    refuse<BackendError>(
        "out of memory: oneDNN {} needs {} MB to compile its kernels; raise the limit of the "
        "address space (ulimit -v), or give fewer or shorter texts, or a smaller model",
        version(), kBytes >> 20);
  }
  munmap(room, kBytes);
}

template <typename Body>
auto guarded(std::string_view doing, Body body) {
  const OneThread alone;  // the compiled code depends on the number of threads
  const NoFork no_fork;   // oneDNN's cache has a lock
  require_room();
  try {
    return body();
  } catch (const dnnl::error& error) {
    refuse<BackendError>("oneDNN {} cannot {}: {} ({})", version(), doing, error.message,
                         dnnl_status2str(error.status));
  }
}

dnnl::primitive_attr attributes(const PostOps& post) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);
  attr.set_post_ops(post.get());
  return attr;
}

/// The description of a primitive with these operands.
template <typename P, typename... Operands>
typename P::primitive_desc describe(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                    const Operands&... operands) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, operands..., attr};
#else
  return {typename P::desc(operands...), attr, engine};
#endif
}

template <typename P>
Primitive make(const dnnl::engine& engine, const typename P::primitive_desc& desc,
               std::vector<std::pair<int, Desc>> arguments, const PostOps& post = {}) {
  arguments.insert(arguments.end(), post.arguments().begin(), post.arguments().end());
  return {engine, P(desc), arguments, desc.scratchpad_desc(), desc.impl_info_str()};
}

Dims dims_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

/// A blocked layout: strides of the dimensions' blocks, then blocks within blocks, the last of
/// which is contiguous. In elements.
struct Blocks {
  Dims strides;
  Dims sizes;
  Dims dims;  // which dimension each block divides

  bool operator==(const Blocks&) const = default;
};

Blocks blocks_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return {desc.get_strides(), desc.get_inner_blks(), desc.get_inner_idxs()};
#else
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  const auto inner = [&](const dnnl_dims_t& values) {
    return Dims(values, values + blocking.inner_nblks);
  };
  return {Dims(blocking.strides, blocking.strides + desc.data.ndims), inner(blocking.inner_blks),
          inner(blocking.inner_idxs)};
#endif
}

bool is_blocked(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_format_kind() == dnnl::memory::format_kind::blocked;
#else
  return desc.data.format_kind == dnnl_blocked;
#endif
}

/// The offset of each index of dimension `dim`, in elements: an element's place is the sum over its
/// dimensions.
std::vector<int64_t> places_of(const Blocks& blocks, int64_t dim, int64_t size) {
  std::vector<int64_t> places(size);
  for (int64_t i = 0; i < size; ++i) {
    int64_t rest = i, stride = 1;
    for (size_t k = blocks.sizes.size(); k-- > 0; stride *= blocks.sizes[k]) {
      if (blocks.dims[k] != dim) continue;
      places[i] += rest % blocks.sizes[k] * stride;
      rest /= blocks.sizes[k];
    }
    places[i] += rest * blocks.strides[dim];
  }
  return places;
}

/// Writes rows [out, in] of `Value`s to their places as [in, out].
template <typename Value>
void transpose(const void* from, const std::vector<int64_t>& in_places,
               const std::vector<int64_t>& out_places, void* to) {
  constexpr int64_t kTile = 16;  // rows read side by side, so that cache lines are written whole
  const int64_t in = std::ssize(in_places), out = std::ssize(out_places);
  for (int64_t first = 0; first < out; first += kTile) {
    const Value* rows[kTile];
    int64_t columns[kTile];
    const auto write = [&](int64_t count) {
      for (int64_t i = 0; i < in; ++i) {
        Value* const place = static_cast<Value*>(to) + in_places[i];
        for (int64_t k = 0; k < count; ++k) place[columns[k]] = rows[k][i];
      }
    };
    const int64_t count = std::min(kTile, out - first);
    for (int64_t k = 0; k < count; ++k) {
      rows[k] = static_cast<const Value*>(from) + (first + k) * in;
      columns[k] = out_places[first + k];
    }
    count == kTile ? write(kTile) : write(count);  // the former unrolled
  }
}

}  // namespace

Desc dense(const Dims& dims, Type type) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return guarded("describe a tensor", [&] { return Desc(dims, type, strides); });
}

Primitive::Primitive(const dnnl::engine& engine, const dnnl::primitive& primitive,
                     const std::vector<std::pair<int, Desc>>& arguments, const Desc& scratchpad,
                     std::string impl_info)
    : primitive_(primitive), stream_(engine), impl_info_(std::move(impl_info)) {
  const auto add = [&](int arg, const Desc& desc) {
    memories_.emplace_back(desc, engine, nullptr);
    arguments_.push_back({arg, memories_.back().get()});
  };
  for (const auto& [arg, desc] : arguments) add(arg, desc);
  add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

Primitive Primitive::with_own_arguments() const {
  const dnnl::engine engine = stream_.get_engine();
  Primitive other = *this;
  other.stream_ = dnnl::stream(engine);
  for (size_t i = 0; i < memories_.size(); ++i) {
    other.memories_[i] = dnnl::memory(memories_[i].get_desc(), engine, nullptr);
    other.arguments_[i].memory = other.memories_[i].get();
  }
  return other;
}

size_t Primitive::index_of(int arg) const {
  const auto found = std::ranges::find(arguments_, arg, &dnnl_exec_arg_t::arg);
  if (found == arguments_.end()) refuse<BackendError>("there is no argument {}", arg);
  return found - arguments_.begin();
}

void Primitive::set(int arg, const void* data) {
  memories_[index_of(arg)].set_data_handle(const_cast<void*>(data));
}

void Primitive::set(int arg, const dnnl::memory& memory) {
  arguments_[index_of(arg)].memory = memory.get();
}

void Primitive::run(void* scratchpad) {
  const OneThread alone;
  std::optional<NoFork> no_fork;
  if (impl_info_.find("gemm") != std::string::npos) no_fork.emplace();  // it takes a lock, too
  if (!std::exchange(has_run_, true)) require_room();
  set(DNNL_ARG_SCRATCHPAD, scratchpad);
  dnnl_status_t status = dnnl_primitive_execute(
      primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status == dnnl_success) status = dnnl_stream_wait(stream_.get());
  if (status != dnnl_success) {
    refuse<BackendError>("oneDNN {} failed to run {} ({})", version(), impl_info_,
                         dnnl_status2str(status));
  }
}

Desc Primitive::desc(int arg) const { return memories_[index_of(arg)].get_desc(); }

size_t Primitive::scratchpad_bytes() const { return memories_.back().get_desc().get_size(); }

PostOps& PostOps::then(dnnl::algorithm algorithm, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  ops_.append_eltwise(algorithm, alpha, beta);
#else
  ops_.append_eltwise(1.0f, algorithm, alpha, beta);
#endif
  return *this;
}

PostOps& PostOps::then(dnnl::algorithm algorithm, const Desc& desc) {
  arguments_.emplace_back(other(ops_.len()), desc);
  ops_.append_binary(algorithm, desc);
  return *this;
}

Primitive make_matmul(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                      const std::optional<Desc>& bias, const Desc& dst, const PostOps& post) {
  return guarded("create a matmul", [&] {
    using Op = dnnl::matmul;
    const auto attr = attributes(post);
    const auto pd = bias ? describe<Op>(engine, attr, src, weights, *bias, dst)
                         : describe<Op>(engine, attr, src, weights, dst);
    std::vector<std::pair<int, Desc>> arguments = {{DNNL_ARG_SRC, pd.src_desc()},
                                                   {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                                   {DNNL_ARG_DST, pd.dst_desc()}};
    if (bias) arguments.emplace_back(DNNL_ARG_BIAS, pd.bias_desc());
    return make<Op>(engine, pd, arguments, post);
  });
}

Primitive make_reorder(const dnnl::engine& engine, const Desc& src, const Desc& dst) {
  return guarded("create a reorder", [&] {
    const dnnl::reorder::primitive_desc pd(engine, src, engine, dst, attributes({}));
    return make<dnnl::reorder>(engine, pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}});
  });
}

Primitive make_eltwise(const dnnl::engine& engine, dnnl::algorithm algorithm, const Desc& desc,
                       float alpha, float beta) {
  return guarded("create an eltwise primitive", [&] {
    using Op = dnnl::eltwise_forward;
    constexpr auto kind = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
    const auto pd = describe<Op>(engine, attributes({}), kind, algorithm, desc, desc, alpha, beta);
#else
    const auto pd = describe<Op>(engine, attributes({}), kind, algorithm, desc, alpha, beta);
#endif
    return make<Op>(engine, pd, {{DNNL_ARG_SRC, desc}, {DNNL_ARG_DST, desc}});
  });
}

Primitive make_softmax(const dnnl::engine& engine, const Desc& desc) {
  return guarded("create a softmax", [&] {
    using Op = dnnl::softmax_forward;
    const int axis = static_cast<int>(dims_of(desc).size()) - 1;
    constexpr auto kind = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
    constexpr auto algorithm = dnnl::algorithm::softmax_accurate;
    const auto pd = describe<Op>(engine, attributes({}), kind, algorithm, desc, desc, axis);
#else
    const auto pd = describe<Op>(engine, attributes({}), kind, desc, axis);
#endif
    return make<Op>(engine, pd, {{DNNL_ARG_SRC, desc}, {DNNL_ARG_DST, desc}});
  });
}

Primitive make_reduction(const dnnl::engine& engine, dnnl::algorithm algorithm, const Desc& src,
                         const Desc& dst, const PostOps& post) {
  return guarded("create a reduction", [&] {
    using Op = dnnl::reduction;
    const auto pd = describe<Op>(engine, attributes(post), algorithm, src, dst, 0.0f, 0.0f);
    return make<Op>(engine, pd, {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}}, post);
  });
}

Primitive make_layer_norm(const dnnl::engine& engine, const Desc& desc, float eps) {
  return guarded("create a layer norm", [&] {
    using Op = dnnl::layer_normalization_forward;
    constexpr auto kind = dnnl::prop_kind::forward_inference;
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
#if DNNL_VERSION_MAJOR >= 3
    const auto pd = describe<Op>(engine, attributes({}), kind, desc, desc, eps, flags);
#else
    const auto pd = describe<Op>(engine, attributes({}), kind, desc, eps, flags);
#endif
    const Desc weights = dense({dims_of(desc).back()});
    return make<Op>(engine, pd,
                    {{DNNL_ARG_SRC, desc},
                     {DNNL_ARG_SCALE, weights},
                     {DNNL_ARG_SHIFT, weights},
                     {DNNL_ARG_DST, desc}});
  });
}

Primitive make_binary(const dnnl::engine& engine, dnnl::algorithm algorithm, const Desc& src_0,
                      const Desc& src_1, const Desc& dst, const PostOps& post) {
  return guarded("create a binary primitive", [&] {
    using Op = dnnl::binary;
    const auto pd = describe<Op>(engine, attributes(post), algorithm, src_0, src_1, dst);
    return make<Op>(engine, pd,
                    {{DNNL_ARG_SRC_0, src_0}, {DNNL_ARG_SRC_1, src_1}, {DNNL_ARG_DST, dst}}, post);
  });
}

Desc preferred_weights(const dnnl::engine& engine, int64_t in, int64_t out,
                       const MatmulTypes& types) {
  constexpr int64_t kTypicalRows = 128;  // the layout was never observed to depend on it
  const Desc any({in, out}, types.weights, dnnl::memory::format_tag::any);
  const auto bias = types.dst == Type::f32 ? std::optional(dense({1, out})) : std::nullopt;
  return make_matmul(engine, dense({kTypicalRows, in}, types.src), any, bias,
                     dense({kTypicalRows, out}, types.dst))
      .desc(DNNL_ARG_WEIGHTS);
}

// Not by oneDNN's reorder, which transposes wrongly in 3.7 to 3.8.0 with AVX-512.
dnnl::memory pack(const dnnl::engine& engine, const void* weight, const Desc& layout, void* place) {
  return guarded("pack weights", [&] {
    if (!is_blocked(layout)) throw BackendError("oneDNN wants weights in an unknown layout");
    const Dims dims = dims_of(layout);
    const Blocks blocks = blocks_of(layout);
    const std::vector<int64_t> in_places = places_of(blocks, 0, dims.at(0));
    const std::vector<int64_t> out_places = places_of(blocks, 1, dims.at(1));
    const dnnl::memory packed(layout, engine, place);
    void* const to = packed.get_data_handle();
    const size_t value_bytes = dnnl::memory::data_type_size(type_of(layout));
    const bool padded = layout.get_size() != dims[0] * dims[1] * value_bytes;
    if (padded) std::memset(to, 0, layout.get_size());
    switch (value_bytes) {
      case 1:
        transpose<uint8_t>(weight, in_places, out_places, to);
        break;
      case 2:
        transpose<uint16_t>(weight, in_places, out_places, to);
        break;
      default:
        transpose<float>(weight, in_places, out_places, to);
    }
    return packed;
  });
}

bool is_part(const Desc& part, const Desc& whole) {
  const Dims some = dims_of(part), all = dims_of(whole);
  const size_t value = dnnl::memory::data_type_size(type_of(part));
  return some.at(0) == all.at(0) && all.at(1) % some.at(1) == 0 &&
         type_of(part) == type_of(whole) && blocks_of(part) == blocks_of(whole) &&
         part.get_size() == some.at(0) * some.at(1) * value &&
         whole.get_size() == all.at(0) * all.at(1) * value;
}

Type type_of(const Desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_data_type();
#else
  return desc.data_type();
#endif
}

bool may_use([[maybe_unused]] dnnl::cpu_isa isa) {
#if defined(__x86_64__)
  // A set's number has the sets it includes as lower bits.
  static const auto allowed = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (allowed & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
#else
  return false;  // the same numbers mean other sets: 1 is SSE4.1 on x86, ASIMD on arm64
#endif
}

bool has_int8_dot_products() {
  return may_use(dnnl::cpu_isa::avx512_core_vnni) || may_use(dnnl::cpu_isa::avx2_vnni);
}

#if defined(__x86_64__)
bool has_fast_bfloat16() {
  return may_use(dnnl::cpu_isa::avx512_core_amx) || has_fast_bfloat16_vectors();
}

bool has_fast_bfloat16_vectors() {
  // Measured: AVX512_BF16 of an Intel without AMX has half of float32's speed, AMD's twice that.
  // Not by __builtin_cpu_is(), which Zig's runtime library always answers with no.
  unsigned a = 0, vendor = 0, c = 0, d = 0;
  return may_use(dnnl::cpu_isa::avx512_core_bf16) && __get_cpuid(0, &a, &vendor, &c, &d) != 0 &&
         vendor == signature_AMD_ebx;
}
#else
bool has_fast_bfloat16() { return false; }
bool has_fast_bfloat16_vectors() { return false; }
#endif

std::string version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace phasor::internal::onednn
