// The forward pass, top to bottom as in the paper: embed, L blocks of attention and MLP, the last
// norm.
//
// There are N rows of C = d_model values: the tokens of all sequences of the group end to end, then
// a few unused rows that make N a round number. Positions enter as vectors in embed(), by rotation
// of queries and keys in rotate(), and in the scores in attend(). Attention is the only step that
// mixes rows.

#include "engine/forward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

/// The q, k or v of a token in its row of qkv.
struct Part {
  int64_t first;  // column
  int64_t heads;
};

class ForwardPass {
 public:
  ForwardPass(const Run& run, const Group& group, Workspace& workspace)
      : run_(run),
        config_(run.model.config()),
        group_(group),
        workspace_(workspace),
        steps_(workspace.steps()),
        a_(workspace.activations()) {}

  const float* operator()() {
    place_rotation();
    if (run_.first_block == 0) {
      embed();
    } else {
      std::fill_n(a_.x, group_.num_rows * config_.d_model, 0.0f);
    }
    const float* input = nullptr;
    for (int64_t layer = run_.first_block; layer < config_.num_layers; ++layer) {
      if (run_.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the run was cancelled");
      input = block(layer, input);
    }
    if (run_.weights.final_norm) {
      if (input == a_.normed) {  // the last block, of a pre-norm model, left it there
        std::swap(a_.x, a_.normed);
      } else {
        steps_.norm(*run_.weights.final_norm, a_.x, a_.x);
      }
      saw(Hook::kFinalNorm, -1, a_.x);
    }
    return group_.reads_one_token() ? spread_read_rows() : a_.x;
  }

 private:
  // The angles of all tokens, for every table of the rotation.
  void place_rotation() {
    const Rotation* const rotation = run_.positions.rotation();
    if (rotation == nullptr) return;
    for (int64_t table = 0; table < rotation->num_tables(); ++table) {
      for (const Segment& segment : group_.segments) {
        rotation->rows(table, segment.positions, run_.positions.attention_scale(),
                       rotation_rows(table) + segment.first_row * rotation->row_size());
      }
    }
  }

  float* rotation_rows(int64_t table) const {
    return a_.rotation + table * a_.num_rows * run_.positions.rotation()->row_size();
  }

  // x = s·Emb[id] (+ Type[type]) + P[position], then the embedding's norm and its map to d_model.
  void embed() {
    const int64_t width = config_.embedding_width();
    float* position_rows = a_.out;  // unused until the first block
    for (const Segment& segment : group_.segments) embed_tokens(segment);
    saw_embedding(Hook::kTokenEmbed, a_.x);
    if (!run_.weights.token_types.empty()) add_token_types();
    if (run_.positions.adds()) {
      for (const Segment& segment : group_.segments) {
        run_.positions.rows(segment.positions, position_rows + segment.first_row * width);
      }
      saw_embedding(Hook::kPosEmbed, position_rows);
      steps_.add(position_rows, width, a_.x);
    }
    if (run_.weights.embedding_norm) {
      steps_.norm(*run_.weights.embedding_norm, a_.x, a_.x);
    }
    if (run_.weights.embedding_map) {
      steps_.linear(*run_.weights.embedding_map, a_.x, a_.normed);
      std::swap(a_.x, a_.normed);
    }
    saw(Hook::kFullEmbed, -1, a_.x);
  }

  // Post-norm: x = LN(x + Attention(x)), x = LN(x + MLP(x)).
  // Pre-norm:  x = x + Attention(LN(x)), x = x + MLP(LN(x)).
  // `input` of attention, x or LN(x), is what the block before left; the next block's is returned.
  const float* block(int64_t layer, const float* input) {
    const PackedBlock& block = block_of(layer);
    saw(Hook::kResidPre, layer, a_.x);
    if (input == nullptr || run_.watch.changes(Hook::kResidPre, layer)) {
      input = sublayer_input(block.attn_norm);
    }
    attention(layer, input);
    input = add_residual(layer, ResidualCut::Site::kAttention, Hook::kResidMid,
                         post_norm() ? block.attn_norm : block.mlp_norm);
    if (post_norm()) saw(Hook::kNormalizedResidMid, layer, a_.x);
    mlp(layer, input);
    input = add_residual(layer, ResidualCut::Site::kMlp, Hook::kResidPost,
                         post_norm() ? block.mlp_norm : norm_after(layer));
    if (post_norm()) saw(Hook::kNormalizedResidPost, layer, a_.x);
    return input;
  }

  const std::optional<Norm>& norm_after(int64_t layer) const {
    return layer + 1 < config_.num_layers ? block_of(layer + 1).attn_norm : run_.weights.final_norm;
  }

  // out = W_o · concat_h softmax(Q_h·K_hᵀ/√D + …)·V_h, with rotated Q and K where positions are
  // rotary
  void attention(int64_t layer, const float* input) {
    const PackedBlock& block = block_of(layer);
    steps_.linear(block.qkv, input, a_.qkv);
    saw_part(Hook::kQ, layer, q_);
    saw_part(Hook::kK, layer, k_);
    saw_part(Hook::kV, layer, v_);
    if (block.q_norm) norm_heads(*block.q_norm, q_);
    if (block.k_norm) norm_heads(*block.k_norm, k_);
    if (run_.positions.rotation() != nullptr) rotate(layer);
    attend(layer);
    if (layer == config_.num_layers - 1 && group_.reads_one_token()) gather_read_rows();
    saw_heads(Hook::kZ, layer, config_.num_heads, a_.z);
    steps_.linear(block.out, a_.z, a_.out);
    if (block.attn_branch_norm) steps_.norm(*block.attn_branch_norm, a_.out, a_.out);
    saw(Hook::kAttnOut, layer, a_.out);
  }

  void norm_heads(const Norm& norm, const Part& part) {
    steps_.norm_heads(norm, part.heads, qkv_width_, a_.qkv + part.first);
  }

  void rotate(int64_t layer) {
    const Rotation& rotation = *run_.positions.rotation();
    steps_.rotate(rotation, rotation_rows(rotation.table_of(layer)), a_.qkv);
    saw_part(Hook::kRotQ, layer, q_);
    saw_part(Hook::kRotK, layer, k_);
  }

  ScorePositions score_positions(int64_t layer, const Segment& segment) const {
    const PackedWeights& own = run_.weights;
    ScorePositions at{.positions = segment.positions,
                      .consecutive = are_consecutive(segment.positions),
                      .factor = run_.positions.attention_scale(),
                      .bias = run_.positions.bias(),
                      .window = run_.positions.window(layer),
                      .causal = run_.positions.is_causal(),
                      .num_keys = segment.num_keys};
    if (!run_.positions.is_own()) return at;
    if (own.score_bias) at.bias = &*own.score_bias;
    if (own.disentangled) {
      at.disentangled = &*own.disentangled;
      at.relative = &block_of(layer).relative;
    }
    return at;
  }

  AttentionOperands attention_operands(int64_t layer, const Segment& segment) const {
    const bool last = layer == config_.num_layers - 1;
    const int64_t width = config_.attention_width();
    const float* const row = a_.qkv + segment.first_row * qkv_width_;
    return {.products = attention_products(run_.weights.precision),
            .q = row + q_.first,
            .k = row + k_.first,
            .v = row + v_.first,
            .z = a_.z + segment.first_row * width,
            .stride = qkv_width_,
            .num_tokens = segment.num_tokens(),
            .num_heads = config_.num_heads,
            .head_dim = config_.head_dim(),
            .scale = config_.score_scale(),
            .cap = static_cast<float>(config_.score_cap),
            .group_heads = config_.num_heads / config_.kv_heads(),
            .first_query = last ? segment.read_token.value_or(0) : 0,
            .num_queries = last && segment.read_token ? 1 : 0,
            .positions = score_positions(layer, segment)};
  }

  // Attention within each sequence.
  void attend(int64_t layer) {
    sequences_.clear();
    for (const Segment& segment : group_.segments) {
      sequences_.push_back(attention_operands(layer, segment));
    }
    if (a_.maps.scores == nullptr && a_.maps.pattern == nullptr) {
      return steps_.attention({}, sequences_, {}, a_.attention);
    }
    for (size_t s = 0; s < sequences_.size(); ++s) attend_observed(layer, s);
  }

  void attend_observed(int64_t layer, size_t s) {
    const auto pass = [&](Hook hook, float* map) {
      run_.watch.attention_map(hook, layer, group_.segments[s], map, config_.num_heads);
    };
    const auto step = [&](std::optional<AttentionStep> only) {
      steps_.attention(only, {&sequences_[s], 1}, a_.maps, a_.attention);
    };
    const bool one_by_one =
        run_.watch.changes(Hook::kAttnScores, layer) || run_.watch.changes(Hook::kPattern, layer);
    if (one_by_one) {
      step(AttentionStep::kScores);
    } else {
      step({});
    }
    pass(Hook::kAttnScores, a_.maps.scores);
    if (one_by_one) step(AttentionStep::kSoftmax);
    pass(Hook::kPattern, a_.maps.pattern);
    if (one_by_one) step(AttentionStep::kMix);
  }

  // Where of each sequence one state is read, the rest of the last block has a row for each.
  void gather_read_rows() {
    num_rows_ = std::ssize(group_.segments);
    for (int64_t s = 0; s < num_rows_; ++s) {
      const int64_t row = row_read(s), width = config_.attention_width();
      std::copy_n(a_.x + row * config_.d_model, config_.d_model, a_.x + s * config_.d_model);
      std::copy_n(a_.z + row * width, width, a_.z + s * width);
    }
    steps_.prepare(workspace_.threads(), num_rows_);
  }

  // Those rows at their places; zeros in the others.
  const float* spread_read_rows() {
    std::fill_n(a_.out, group_.num_rows * config_.d_model, 0.0f);
    for (int64_t s = 0; s < num_rows_; ++s) {
      std::copy_n(a_.x + s * config_.d_model, config_.d_model,
                  a_.out + row_read(s) * config_.d_model);
    }
    return a_.out;
  }

  int64_t row_read(int64_t segment) const {
    return group_.segments[segment].first_row + *group_.segments[segment].read_token;
  }

  // out = W_down · f(W_up · input), or W_down · (f(W_gate · input) ⊙ W_up · input)
  void mlp(int64_t layer, const float* input) {
    const PackedBlock& block = block_of(layer);
    const PackedLinear& activated = block.gate ? *block.gate : block.up;
    if (run_.watch.wants(Hook::kMlpPre, layer)) {
      steps_.linear(activated, input, a_.mlp);
      saw_mlp(Hook::kMlpPre, layer);
      steps_.activate(config_.activation, config_.d_ff, a_.mlp);
    } else {
      steps_.linear(activated, input, a_.mlp, config_.activation);
    }
    if (block.gate) {
      steps_.linear(block.up, input, a_.gate);
      steps_.multiply(a_.gate, config_.d_ff, a_.mlp);
    }
    saw_mlp(Hook::kMlpPost, layer);
    steps_.linear(block.down, a_.mlp, a_.out);
    if (block.mlp_branch_norm) steps_.norm(*block.mlp_branch_norm, a_.out, a_.out);
    saw(Hook::kMlpOut, layer, a_.out);
  }

  const float* sublayer_input(const std::optional<Norm>& norm) {
    if (post_norm() || !norm) return a_.x;
    steps_.norm(*norm, a_.x, a_.normed);
    return a_.normed;
  }

  // x += out, observed at `hook`, and its norm in one pass. In post-norm models x becomes the norm.
  // Returns the next step's input.
  const float* add_residual(int64_t layer, ResidualCut::Site site, Hook hook,
                            const std::optional<Norm>& norm) {
    if (is_cut(layer, site)) std::fill_n(a_.x, num_rows_ * config_.d_model, 0.0f);
    const bool at_once = norm && !run_.watch.changes(hook, layer);
    if (at_once) {
      steps_.add_norm(a_.out, *norm, a_.x, a_.normed);
    } else {
      steps_.add(a_.out, config_.d_model, a_.x);
    }
    saw(hook, layer, a_.x);
    if (!norm) return a_.x;
    if (!at_once) steps_.norm(*norm, a_.x, a_.normed);
    if (post_norm()) std::swap(a_.x, a_.normed);
    return post_norm() ? a_.x : a_.normed;
  }

  void embed_tokens(const Segment& segment) {
    const Tensor& embedding = run_.model.weights().token_embedding;
    const int64_t width = config_.embedding_width();
    float* row = a_.x + segment.first_row * width;
    for (const int32_t id : segment.token_ids) {
      embedding.copy_to(row, id * width, width);
      for (int64_t e = 0; e < width; ++e) row[e] *= config_.embedding_scale;
      row += width;
    }
  }

  void add_token_types() {
    const int64_t width = config_.embedding_width();
    for (const Segment& segment : group_.segments) {
      for (int64_t t = 0; t < segment.num_tokens(); ++t) {
        const int64_t type = segment.token_types.empty() ? 0 : segment.token_types[t];
        std::copy_n(&run_.weights.token_types[type * width], width,
                    a_.out + (segment.first_row + t) * width);
      }
    }
    saw_embedding(Hook::kTokenTypeEmbed, a_.out);
    steps_.add(a_.out, width, a_.x);
  }

  const PackedBlock& block_of(int64_t layer) const {
    return run_.weights.blocks[config_.block_of(layer)];
  }

  bool post_norm() const { return config_.norm_order == NormOrder::kPostNorm; }

  bool is_cut(int64_t layer, ResidualCut::Site site) const {
    return std::any_of(run_.cuts.begin(), run_.cuts.end(), [&](const ResidualCut& cut) {
      return cut.layer == layer && (cut.site == site || cut.site == ResidualCut::Site::kBoth);
    });
  }

  void saw(Hook hook, int64_t layer, float* values) const {
    run_.watch.rows(hook, layer, group_.segments, values, {config_.d_model});
  }
  void saw_embedding(Hook hook, float* values) const {
    run_.watch.rows(hook, -1, group_.segments, values, {config_.embedding_width()});
  }
  void saw_heads(Hook hook, int64_t layer, int64_t heads, float* values) const {
    run_.watch.rows(hook, layer, group_.segments, values, {heads, config_.head_dim()});
  }
  // q, k or v, gathered in the memory of z.
  void saw_part(Hook hook, int64_t layer, const Part& part) const {
    if (!run_.watch.wants(hook, layer)) return;
    const int64_t width = part.heads * config_.head_dim();
    for (int64_t n = 0; n < group_.num_rows; ++n) {
      std::copy_n(a_.qkv + n * qkv_width_ + part.first, width, a_.z + n * width);
    }
    saw_heads(hook, layer, part.heads, a_.z);
    if (!run_.watch.changes(hook, layer)) return;
    for (int64_t n = 0; n < group_.num_rows; ++n) {
      std::copy_n(a_.z + n * width, width, a_.qkv + n * qkv_width_ + part.first);
    }
  }
  void saw_mlp(Hook hook, int64_t layer) const {
    run_.watch.rows(hook, layer, group_.segments, a_.mlp, {config_.d_ff});
  }

  const Run& run_;
  const ModelConfig& config_;
  const int64_t qkv_width_ = config_.attention_width() + 2 * config_.kv_width();
  const Part q_ = {0, config_.num_heads};
  const Part k_ = {config_.attention_width(), config_.kv_heads()};
  const Part v_ = {k_.first + config_.kv_width(), config_.kv_heads()};
  const Group& group_;
  Workspace& workspace_;
  Steps& steps_;
  Activations a_;
  std::vector<AttentionOperands> sequences_;  // of a block
  int64_t num_rows_ = group_.num_rows;        // of tokens that are still computed
};

}  // namespace

const float* forward(const Run& run, const Group& group, Workspace& workspace) {
  return ForwardPass(run, group, workspace)();
}

}  // namespace phasor::internal
