// Steps of phasor's own kernels, and of oneDNN's matmuls where they are faster.

#include <algorithm>

#include "engine/kernels/kernels.h"
#include "engine/linear.h"
#include "engine/memory.h"
#include "engine/norm.h"
#include "engine/steps.h"

namespace phasor::internal {
namespace {

class KernelSteps : public Steps {
 public:
  KernelSteps(const dnnl::engine& engine, const ModelConfig& config, const PackedWeights& weights,
              size_t max_plans)
      : engine_(engine), config_(config), weights_(weights), plans_(max_plans) {}

  int64_t padded(int64_t num_rows) const override { return padded_rows(num_rows); }
  void prepare(const Threads& threads, int64_t num_rows) override {
    threads_ = threads;
    num_rows_ = num_rows;
    plan_ = plans_.get({padded(num_rows), threads.count()}, [&] {
      return std::make_shared<Plan>(engine_, padded(num_rows), weights_, threads.count());
    });
    scratchpad_.reserve_bytes(plan_->scratchpad_bytes());
  }

  void linear(const PackedLinear& weights, const float* x, float* y,
              std::optional<Activation> f) override {
    plan_->of(weights).run(threads_, x, weights, y, scratchpad_.data(), f);
  }
  void activate(Activation f, int64_t width, float* x) override {
    internal::activate(threads_, x, num_rows_, width, f, weights_.precision);
  }
  void add_norm(const float* f, const Norm& norm, float* x, float* out) override {
    layer_norm(threads_, f, x, num_rows_, norm, config_.norm_eps, out);
  }
  void norm_heads(const Norm& norm, int64_t heads, int64_t stride, float* x) override {
    const int64_t width = heads * std::ssize(norm.weight);
    threads_.run_rows(num_rows_, width, [&](int64_t first, int64_t count) {
      for (int64_t n = first; n < first + count; ++n) {
        float* const at = x + n * stride;
        layer_norm(Threads(), nullptr, at, heads, norm, config_.norm_eps, at);
      }
    });
  }
  void add(const float* f, int64_t width, float* x) override {
    threads_.run_rows(num_rows_, width, [&](int64_t first, int64_t count) {
      kernels().add(f + first * width, count * width, x + first * width);
    });
  }
  void multiply(const float* f, int64_t width, float* x) override {
    threads_.run_rows(num_rows_, width, [&](int64_t first, int64_t count) {
      kernels().multiply(f + first * width, count * width, x + first * width);
    });
  }
  void rotate(const Rotation& rotation, const float* rows, float* qkv) override {
    rotation.turn(threads_, rows, num_rows_, config_.attention_width() + 2 * config_.kv_width(),
                  config_.num_heads + config_.kv_heads(), config_.head_dim(), qkv);
  }
  void attention(std::optional<AttentionStep> only, std::span<const AttentionOperands> all,
                 const AttentionMaps& maps, float* scratch) override {
    attend(only, threads_, all, maps, scratch);
  }
  std::vector<PrimitiveInfo> primitives() const override {
    if (!plan_) return {};
    std::vector<PrimitiveInfo> all;
    const PackedBlock& block = weights_.blocks.front();
    const auto tell = [&](const char* name, const PackedLinear& map) {
      all.push_back({name, plan_->of(map).impl_info()});
    };
    if (weights_.embedding_map) tell("embedding_map", *weights_.embedding_map);
    tell("qkv", block.qkv);
    all.push_back({"attention", attention_products(weights_.precision).name});
    tell("out", block.out);
    tell("up", block.up);
    tell("down", block.down);
    return all;
  }

 private:
  /// The linear maps of the embedding and of a block, compiled for N rows. Maps of the same shape
  /// share one.
  class Plan {
   public:
    Plan(const dnnl::engine& engine, int64_t num_rows, const PackedWeights& weights, int threads) {
      const PackedBlock& block = weights.blocks.front();
      std::vector<const PackedLinear*> maps = {&block.qkv, &block.out, &block.up, &block.down};
      if (weights.embedding_map) maps.push_back(&*weights.embedding_map);
      for (const PackedLinear* const map : maps) {
        if (find(*map) == nullptr) linears_.emplace_back(engine, num_rows, *map, threads);
      }
    }
    Linear& of(const PackedLinear& map) { return *find(map); }
    size_t scratchpad_bytes() const {
      size_t most = 0;
      for (const Linear& linear : linears_) most = std::max(most, linear.scratchpad_bytes());
      return most;
    }

   private:
    Linear* find(const PackedLinear& map) {
      const auto found =
          std::ranges::find_if(linears_, [&](const Linear& linear) { return linear.suits(map); });
      return found == linears_.end() ? nullptr : &*found;
    }

    std::vector<Linear> linears_;
  };

  dnnl::engine engine_;
  const ModelConfig& config_;
  const PackedWeights& weights_;
  Threads threads_;
  int64_t num_rows_ = 0;  // that belong to tokens
  LruCache<PlanSize, Plan> plans_;
  std::shared_ptr<Plan> plan_;
  ScratchBuffer scratchpad_;
};

}  // namespace

std::unique_ptr<Steps> make_kernel_steps(const dnnl::engine& engine, const ModelConfig& config,
                                         const PackedWeights& weights, size_t max_plans) {
  return std::make_unique<KernelSteps>(engine, config, weights, max_plans);
}

}  // namespace phasor::internal
