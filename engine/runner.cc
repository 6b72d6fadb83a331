#include "engine/runner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/checks.h"
#include "engine/encoding.h"
#include "files/refuse.h"
#include "phasor/names.h"

namespace phasor::internal {
namespace {

// Groups of about this many rows keep their activations in the second-level cache, and there are
// enough groups to keep all threads busy to the end.
constexpr int64_t kGroupRows = 256;
constexpr int64_t kGroupFloats = int64_t{8} << 20;  // fewer rows, where they are very wide
constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

// Up to the rows of about kSharedGroups groups, threads that share each matmul are some 5 % slower
// than threads that have as much work each. So they share where a thread has more than its part by
// this factor.
constexpr double kMostImbalance = 1.1;
constexpr int64_t kSharedGroups = 8;

/// How many times its share the busiest thread has, where each takes the next group once it is
/// free.
double imbalance(const std::vector<Group>& groups, int num_threads) {
  std::vector<int64_t> rows(num_threads);
  int64_t total = 0;
  for (const Group& group : groups) {
    *std::ranges::min_element(rows) += group.num_rows;
    total += group.num_rows;
  }
  return static_cast<double>(std::ranges::max(rows)) * num_threads / static_cast<double>(total);
}

/// As many threads as pay for that many multiplications in the widest step.
Threads threads_for(int64_t work, const Threads& all) {
  constexpr int64_t kThreadWork = 1 << 19;
  return all.at_most(static_cast<int>(std::clamp<int64_t>(work / kThreadWork, 1, all.count())));
}

/// Packing only moves values: many count as one multiplication. A thread that is started for a
/// small model costs more than it saves, and each holds a layer's weights in float32.
Threads packing_threads(const ModelConfig& config, const Threads& all) {
  constexpr int kMost = 8;
  return threads_for(8 * config.d_model * config.d_ff, all).at_most(kMost);
}

/// Threads of make_executor() themselves, which look for other loops after each task; through an
/// Executor they would do so after a whole loop.
std::shared_ptr<Team> team_of(const EncoderOptions& options) {
  const int size = team_size(options.threads, options.executor.get());
  if (auto team = std::dynamic_pointer_cast<Team>(options.executor)) return team;
  return std::make_shared<Team>(size, options.executor);
}

}  // namespace

Runner::Runner(std::shared_ptr<const Model> model, const EncoderOptions& options)
    : model_(std::move(model)),
      team_(team_of(options)),
      threads_(*team_, options.threads > 0 ? options.threads : team_->size()),
      engine_(dnnl::engine::kind::cpu, 0),
      weights_(*model_, engine_, options.precision, options.kernels,
               packing_threads(model_->config(), threads_)),
      position_tables_(threads_.count(),
                       [this] { return std::make_unique<PositionTables>(model_->config()); }),
      workspaces_(threads_.count(), [this, max_plans = options.max_plans] {
        const auto make =
            weights_.kernels == KernelLibrary::kOneDnn ? make_onednn_steps : make_kernel_steps;
        return std::make_unique<Workspace>(make(engine_, model_->config(), weights_, max_plans));
      }) {}

Encoding Runner::run(const TokenBatch& batch, const RunOptions& options, int64_t window) const {
  const Team::Caller caller(*team_);
  check_batch(batch, model_->config());
  check_token_types(batch, model_->weights().token_type_embedding);
  check_run(options, batch.size(), model_->config());
  const auto tables = position_tables_.take();
  PositionSource positions(*model_, options.positions, *tables);
  const Watch watch(options.observer, model_->config().num_layers);
  std::vector<Segment> segments = make_segments(batch, options.overflow, positions, window);
  const bool are_whole = std::ssize(segments) == batch.size();
  for (size_t i = 0; i < batch.read_tokens.size() && are_whole && !watch.active(); ++i)
    segments[i].read_token = std::min(batch.read_tokens[i], segments[i].num_tokens() - 1);
  EncodingParts parts(segments, model_->config().d_model, options.hidden);
  run_segments({*model_, weights_, positions, watch, options.cut_residuals, options.first_block,
                options.stop},
               segments, options.primitives, parts.rows());
  check_finite(parts.rows(), *model_);
  return parts.finish();
}

std::vector<float> Runner::run_head(Head head, std::span<const float> states) const {
  const Team::Caller caller(*team_);
  const PackedHead& packed = heads_.get(head, *model_, engine_, weights_);
  int64_t row_work = 0;  // multiplications for each number of a row
  for (const PackedHead::Map& map : packed.maps) row_work = std::max(row_work, map.linear.out);
  return internal::run_head(packed, model_->config(), engine_,
                            threads_for(std::ssize(states) * row_work, threads_), states);
}

// Writes the last hidden state of all segments, end to end: [rows, C].
void Runner::run_segments(const Run& run, const std::vector<Segment>& segments,
                          std::vector<PrimitiveInfo>* primitives, std::span<float> hidden) const {
  // Each thread runs whole groups through the whole network. If that leaves threads idle, all
  // threads share the matmuls of one group.
  const bool whole = run.watch.active();
  const int64_t row = floats_per_token(model_->config(), 1);
  const int64_t group_rows = std::clamp<int64_t>(kGroupFloats / row, 1, kGroupRows);
  std::vector<Group> groups = make_groups(
      segments,
      {.min_groups = threads_.count(), .target_rows = group_rows, .whole_sequences = whole});
  const Group& last = groups.back();
  const bool are_few = std::ssize(segments) < threads_.count();
  if (are_few || (last.offset + last.num_rows <= kSharedGroups * group_rows &&
                  imbalance(groups, threads_.count()) > kMostImbalance)) {
    groups = make_groups(segments, {.target_rows = kAllRows, .whole_sequences = whole});
  }
  const int64_t width = model_->config().d_model;
  const auto run_group = [&](int64_t g, const Threads& threads, int thread) {
    const Group& group = groups[g];
    const auto workspace = workspaces_.take(thread);
    workspace->prepare(threads, group, model_->config(), run.positions.rotation(), run.watch);
    const float* result = forward(run, group, *workspace);
    std::copy_n(result, group.num_rows * width, &hidden[group.offset * width]);
    if (g == 0 && primitives != nullptr) *primitives = workspace->steps().primitives();
  };
  if (groups.size() == 1) {
    const int64_t work = groups.front().num_rows * width * model_->config().d_ff;
    return run_group(0, threads_for(work, threads_), 0);
  }
  threads_.run(std::ssize(groups), [&](int64_t g, int thread) { run_group(g, Threads(), thread); });
}

}  // namespace phasor::internal
