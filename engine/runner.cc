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
Threads threads_for(int64_t work, Team& team) {
  constexpr int64_t kThreadWork = 1 << 19;
  return Threads(team, static_cast<int>(std::clamp<int64_t>(work / kThreadWork, 1, team.size())));
}

/// Packing only moves values: many count as one multiplication. A thread that is started for a
/// small model costs more than it saves, and each holds a layer's weights in float32.
Threads packing_threads(const ModelConfig& config, Team& team) {
  constexpr int kMost = 8;
  const Threads threads = threads_for(8 * config.d_model * config.d_ff, team);
  return Threads(team, std::min(kMost, threads.count()));
}

}  // namespace

Runner::Runner(std::shared_ptr<const Model> model, const EncoderOptions& options)
    : model_(std::move(model)),
      executor_(options.executor),
      team_(team_size(options.threads, executor_.get()), executor_),
      max_plans_(options.max_plans),
      engine_(dnnl::engine::kind::cpu, 0),
      weights_(std::make_shared<const PackedWeights>(*model_, engine_, options.precision,
                                                     options.kernels,
                                                     packing_threads(model_->config(), team_))),
      position_tables_(model_->config()) {
  make_workspaces();
}

Runner::Runner(const Runner& other)
    : model_(other.model_),
      executor_(other.executor_),
      team_(other.team_.size(), executor_),
      max_plans_(other.max_plans_),
      engine_(other.engine_),
      weights_(other.weights_),
      position_tables_(model_->config()) {
  make_workspaces();
}

void Runner::make_workspaces() {
  const auto make =
      weights_->kernels == KernelLibrary::kOneDnn ? make_onednn_steps : make_kernel_steps;
  for (int t = 0; t < team_.size(); ++t)
    workspaces_.emplace_back(make(engine_, model_->config(), *weights_, max_plans_));
}

Encoding Runner::run(const TokenBatch& batch, const RunOptions& options, int64_t window) {
  check_batch(batch, model_->config());
  check_token_types(batch, model_->weights().token_type_embedding);
  check_run(options, batch.size(), model_->config());
  PositionSource positions(*model_, options.positions, position_tables_);
  const Watch watch(options.observer, model_->config().num_layers);
  std::vector<Segment> segments = make_segments(batch, options.overflow, positions, window);
  const bool are_whole = std::ssize(segments) == batch.size();
  for (size_t i = 0; i < batch.read_tokens.size() && are_whole && !watch.active(); ++i)
    segments[i].read_token = std::min(batch.read_tokens[i], segments[i].num_tokens() - 1);
  EncodingParts parts(segments, model_->config().d_model, options.hidden);
  run_segments({*model_, *weights_, positions, watch, options.cut_residuals, options.first_block,
                options.stop},
               segments, parts.rows());
  check_finite(parts.rows(), *model_);
  return parts.finish();
}

std::vector<float> Runner::run_head(Head head, std::span<const float> states) {
  const PackedHead& packed = weights_->head(head, *model_, engine_);
  std::unique_ptr<HeadRunner>& runner = heads_[static_cast<size_t>(head)];
  if (!runner) runner = std::make_unique<HeadRunner>(model_->config(), engine_, packed);
  int64_t row_work = 0;  // multiplications for each number of a row
  for (const PackedHead::Map& map : packed.maps) row_work = std::max(row_work, map.linear.out);
  return runner->run(threads_for(std::ssize(states) * row_work, team_), states);
}

// Writes the last hidden state of all segments, end to end: [rows, C].
void Runner::run_segments(const Run& run, const std::vector<Segment>& segments,
                          std::span<float> hidden) {
  // Each thread runs whole groups through the whole network. If that leaves threads idle, all
  // threads share the matmuls of one group.
  const bool whole = run.watch.active();
  const int64_t row = floats_per_token(model_->config(), 1);
  const int64_t group_rows = std::clamp<int64_t>(kGroupFloats / row, 1, kGroupRows);
  std::vector<Group> groups = make_groups(
      segments, {.min_groups = team_.size(), .target_rows = group_rows, .whole_sequences = whole});
  const Group& last = groups.back();
  const bool are_few = std::ssize(segments) < team_.size();
  if (are_few || (last.offset + last.num_rows <= kSharedGroups * group_rows &&
                  imbalance(groups, team_.size()) > kMostImbalance)) {
    groups = make_groups(segments, {.target_rows = kAllRows, .whole_sequences = whole});
  }
  const int64_t width = model_->config().d_model;
  const auto run_group = [&](const Threads& threads, const Group& group, Workspace& workspace) {
    workspace.prepare(threads, group, model_->config(), run.positions.rotation(), run.watch);
    const float* result = forward(run, group, workspace);
    std::copy_n(result, group.num_rows * width, &hidden[group.offset * width]);
  };
  if (groups.size() == 1) {
    const int64_t work = groups.front().num_rows * width * model_->config().d_ff;
    run_group(threads_for(work, team_), groups.front(), workspaces_.front());
    last_workspace_ = 0;
    return;
  }
  Threads(team_).run(std::ssize(groups), [&](int64_t g, int thread) {
    run_group(Threads(), groups[g], workspaces_[thread]);
    if (g == 0) last_workspace_ = thread;
  });
}

std::vector<PrimitiveInfo> Runner::primitives() const {
  return workspaces_[last_workspace_].steps().primitives();
}

}  // namespace phasor::internal
