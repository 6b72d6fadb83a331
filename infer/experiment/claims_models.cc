// Claims that take a run of the bundled models to decide.

#include <algorithm>
#include <cmath>

#include "infer/experiment/claim_list.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/lens/order.h"
#include "phasor/lens/prediction.h"
#include "phasor/lens/residual.h"

namespace infer::claims {
namespace {

using TokenIds = std::vector<int32_t>;

TokenIds ids_of(const Model& model, const std::string& text) {
  return model.tokenizer().encode(text).ids;
}

/// How far "a dog bit Tom" is from "Tom bit a dog", both of the same ids.
struct Reordered {
  double pooled = 0;  // 1 − cos of the pooled vectors
  double states = 0;  // order_sensitivity() of the last states
};

Reordered reorder(std::shared_ptr<const Model> model) {
  const std::vector<int64_t> order = {0, 3, 4, 2, 1, 5, 6};  // [CLS] a dog bit Tom . [SEP]
  const TokenIds ids = ids_of(*model, "Tom bit a dog.");
  if (ids.size() != order.size()) {
    throw InvalidArgument(
        fmt::format("\"Tom bit a dog.\" has {} tokens, not {}; the claims are "
                    "about the bundled models",
                    ids.size(), order.size()));
  }
  Encoder encoder(std::move(model), {.threads = 1});
  const Encoding out = encoder.encode_ids(std::vector<TokenIds>{ids, reordered(ids, order)},
                                          {.pooling = encoder.model().sentence().pooling});
  const int64_t d_model = encoder.model().config().d_model;
  return {.pooled = mean_cosine_distance(out.embedding(0), out.embedding(1), d_model),
          .states = order_sensitivity(out.hidden(0), out.hidden(1), order, d_model)};
}

/// Every token of the tutorials' sentences, masked in turn, and how well it is filled in: the mean
/// loss in nats.
double masked_loss(std::shared_ptr<const Model> model) {
  const int32_t mask = model->tokenizer().mask_id().value();
  std::vector<TokenIds> masked;
  TokenIds answers;
  std::vector<int64_t> places;
  for (const char* text :
       {"Tom bit a dog.", "A dog bit Tom.", "She told him that she only loved him.",
        "She only told him that she loved him.", "Only she told him that she loved him.",
        "The cat sat on the mat.", "I am a robot."}) {
    const TokenIds ids = ids_of(*model, text);
    for (size_t place = 1; place + 1 < ids.size(); ++place) {  // between [CLS] and [SEP]
      masked.push_back(ids);
      masked.back()[place] = mask;
      answers.push_back(ids[place]);
      places.push_back(static_cast<int64_t>(place));
    }
  }
  Encoder encoder(model, {.threads = 1});
  const Encoding out = encoder.encode_ids(masked);
  const int64_t d_model = model->config().d_model;
  std::vector<float> states;  // [n, C]
  for (size_t i = 0; i < masked.size(); ++i) {
    const auto state = out.hidden(static_cast<int64_t>(i)).subspan(places[i] * d_model, d_model);
    states.insert(states.end(), state.begin(), state.end());
  }
  double loss = 0;
  for (const TokenScore& score :
       score_tokens(encoder.mlm_logits(states), model->config().vocab_size, answers)) {
    loss += score.loss;
  }
  return loss / static_cast<double>(answers.size());
}

}  // namespace

void same_for_any_phrase(Claims& claims) {
  const auto& model = claims.models.sinusoidal;
  if (!model) return;
  std::vector<std::vector<double>> added;  // [4, C] each
  Encoder encoder(model, {.threads = 1});
  for (const char* phrase : {"I am a robot", "Tom bit a dog"}) {
    TokenIds ids = ids_of(*model, phrase);
    ids.resize(4);
    Trace trace{Hook::kPosEmbed};
    encoder.encode_ids(ids, {.observer = &trace});
    const std::vector<float>& values = trace.at(Hook::kPosEmbed).values;
    added.emplace_back(values.begin(), values.end());
  }
  const double off = largest_difference(added[0], added[1]);
  const auto table = sinusoidal_table(SinusoidalLayout::kPaper, 4, model->config().d_model);
  claims.add("The table is the same for any phrase of four words",
             right(off == 0, largest_difference(added[0], table) <= 1e-6), "",
             "what a run adds to \"I am a robot\" and to \"Tom bit a dog\": {} apart", off);
}

void order_is_lost_without_positions(Claims& claims) {
  if (!claims.models.none || !claims.models.sinusoidal) return;
  const Reordered without = reorder(claims.models.none), with = reorder(claims.models.sinusoidal);
  claims.add("Without positions \"Tom bit a dog\" and \"A dog bit Tom\" look the same",
             right(without.states <= 1e-5 && without.pooled <= 1e-6,
                   with.states > 0.05 && with.pooled > 1e-3),
             "for the same ids: a tokenizer may tell \"A\" from \"a\"",
             "none: states move by {:.1e} of their length, 1 − cos of the pooled "
             "vectors {:.1e}; sinusoidal: {:.3f}, {:.3f}",
             without.states, without.pooled, with.states, with.pooled);
}

void residual_connections_carry_positions(Claims& claims) {
  const auto& model = claims.models.sinusoidal;
  if (!model) return;
  Encoder encoder(model, {.threads = 1});
  const auto path = [&](std::vector<ResidualCut> cuts) {
    Trace trace = residual_trace();
    encoder.encode("Tom bit a dog.", {.observer = &trace, .cut_residuals = cuts});
    return direct_position_path(*model, trace, 0, cuts);
  };
  const std::vector<PartShare> whole = path({}), cut = path({{.layer = 0}});
  claims.add("Positions survive through the layers because of the residual connections",
             measured(whole.back().norm > 0.01 && cut.back().norm == 0),
             "the direct path alone; attention carries positions on as well",
             "length of the position vector's direct path beside the state: {:.2f} at "
             "the embedding, {:.2f} after layer {}; {} with layer 1's cut",
             whole.front().norm, whole.back().norm, whole.size() - 1, cut.back().norm);
}

void learned_is_as_good_as_sinusoidal(Claims& claims) {
  const ClaimModels& models = claims.models;
  if (!models.sinusoidal || !models.learned || !models.none) return;
  const double sinusoidal = masked_loss(models.sinusoidal), learned = masked_loss(models.learned);
  const double none = masked_loss(models.none);
  claims.add("Learned and sinusoidal positions give nearly identical results",
             measured(std::abs(learned - sinusoidal) < none - std::max(learned, sinusoidal)),
             "the paper compares translations; these are small models and seven sentences",
             "loss at masked words of the tutorials' sentences: sinusoidal {:.3f}, "
             "learned {:.3f}, none {:.3f}",
             sinusoidal, learned, none);
}

}  // namespace infer::claims
