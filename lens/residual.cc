// Walks a recorded run block by block and collects the parts; lengths of states, and distances
// between them.

#include "phasor/lens/residual.h"

#include <algorithm>

#include "lens/causes.h"
#include "lens/residual_stream.h"
#include "lens/rows.h"
#include "phasor/pooling.h"

namespace phasor {
using namespace internal;

namespace {

bool is_cut(std::span<const ResidualCut> cuts, int64_t layer, ResidualCut::Site site) {
  return std::any_of(cuts.begin(), cuts.end(), [&](const ResidualCut& cut) {
    check_value(names<ResidualCut::Site>(), static_cast<size_t>(cut.site));
    return cut.layer == layer && (cut.site == site || cut.site == ResidualCut::Site::kBoth);
  });
}

}  // namespace

double mean_norm(std::span<const float> x, int64_t d_model) {
  const int64_t rows = num_rows(x, d_model);
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) sum += norm(&x[t * d_model], d_model);
  return sum / static_cast<double>(rows);
}

double mean_cosine_distance(std::span<const float> a, std::span<const float> b, int64_t d_model) {
  const int64_t rows = num_rows(a, b, d_model);
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) {
    sum += 1 - cosine(a.subspan(t * d_model, d_model), b.subspan(t * d_model, d_model));
  }
  return sum / static_cast<double>(rows);
}

PartShare share_of(std::span<const double> part, std::span<const float> states, int64_t d_model) {
  const int64_t rows = num_rows(part, states, d_model);
  PartShare share;
  for (int64_t t = 0; t < rows; ++t) {
    const double* d = &part[t * d_model];
    const float* h = &states[t * d_model];
    const double length = norm(h, d_model);
    if (!(length > 0)) continue;
    share.norm += norm(d, d_model) / length;
    share.alignment += dot(d, h, d_model) / (length * length);
  }
  share.norm /= static_cast<double>(rows);
  share.alignment /= static_cast<double>(rows);
  return share;
}

Trace residual_trace(bool heads) {
  std::vector<Hook> hooks = {Hook::kTokenEmbed, Hook::kPosEmbed,  Hook::kTokenTypeEmbed,
                             Hook::kFullEmbed,  Hook::kAttnOut,   Hook::kResidMid,
                             Hook::kMlpOut,     Hook::kResidPost, Hook::kNormalizedResidPost,
                             Hook::kFinalNorm};
  if (heads) hooks.push_back(Hook::kZ);
  return Trace(std::move(hooks));
}

void for_each_residual_state(
    const Model& model, const Trace& trace, int64_t sequence,
    const std::function<void(int64_t l, std::span<const ResidualPart> parts)>& visit,
    std::span<const ResidualCut> cuts) {
  const Weights& weights = model.weights();
  const int64_t num_layers = model.config().num_layers;
  const bool post_norm = model.config().norm_order == NormOrder::kPostNorm;
  ResidualStream stream(model, trace, sequence);

  stream.embed();
  visit(0, stream.parts());

  const auto sublayer = [&](int64_t layer, ResidualCut::Site site, ResidualSource source, Hook out,
                            Hook resid, const NormWeights& norm) {
    if (is_cut(cuts, layer, site)) stream.cut();
    stream.add(source, out, layer);
    if (source == ResidualSource::kAttention && trace.has(Hook::kZ, layer, sequence))
      stream.split_last(head_outputs(model, trace, layer, sequence));
    if (post_norm) stream.normalize(norm, stream.values(resid, layer));
  };
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const BlockWeights& block = weights.blocks[model.config().block_of(layer)];
    sublayer(layer, ResidualCut::Site::kAttention, ResidualSource::kAttention, Hook::kAttnOut,
             Hook::kResidMid, block.attn_norm);
    sublayer(layer, ResidualCut::Site::kMlp, ResidualSource::kMlp, Hook::kMlpOut, Hook::kResidPost,
             block.mlp_norm);
    if (layer + 1 == num_layers && model.config().final_norm) {
      const Hook last = post_norm ? Hook::kNormalizedResidPost : Hook::kResidPost;
      stream.normalize(weights.final_norm, stream.values(last, layer));
    }
    visit(layer + 1, stream.parts());
  }
}

std::vector<DirectPath> direct_path(const Model& model, const Trace& trace, int64_t sequence,
                                    std::span<const ResidualCut> cuts) {
  std::vector<DirectPath> path;
  const auto find_parts = [&](int64_t l, std::span<const ResidualPart> parts) {
    DirectPath& state = path.emplace_back();
    for (const ResidualPart& part : parts) {
      const bool is_position = part.source == ResidualSource::kPosition;
      if (!is_position && part.source != ResidualSource::kToken) continue;
      (is_position ? state.position : state.token) =
          share_of(part.values, trace.hidden_state(l, sequence).values, model.config().d_model);
    }
  };
  for_each_residual_state(model, trace, sequence, find_parts, cuts);
  return path;
}

}  // namespace phasor
