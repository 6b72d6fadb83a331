// Means over many texts of what is known of each.
#include "infer/experiment/means.h"

#include "infer/views/numbers.h"

namespace infer {
namespace {

constexpr const char* kDistance = "attention.distance";
constexpr std::string_view kByOffset = "attention.by_offset.";

template <typename T>
void make_room(std::optional<T>& mean, const std::optional<T>& value) {
  if (value && !mean) mean.emplace();
}

/// The mean gets all numbers that the layer has.
void make_room(ObservedLayer& mean, const ObservedLayer& layer) {
  make_room(mean.split, layer.split);
  make_room(mean.position_effect, layer.position_effect);
  make_room(mean.direct_position, layer.direct_position);
  make_room(mean.order, layer.order);
  make_room(mean.attention, layer.attention);
  if (!layer.attention) return;
  for (const auto& [offset, share] : layer.attention->by_offset) mean.attention->by_offset[offset];
  if (mean.attention->heads.empty()) mean.attention->heads.resize(layer.attention->heads.size());
}

void make_room(Observed& mean, const Observed& text) {
  mean.layers.resize(text.layers.size());
  for (size_t l = 0; l < text.layers.size(); ++l) make_room(mean.layers[l], text.layers[l]);
  make_room(mean.pooled_effect, text.pooled_effect);
  make_room(mean.first_layer_scores, text.first_layer_scores);
  if (!text.first_layer_scores) return;
  mean.first_layer_scores->heads.resize(text.first_layer_scores->heads.size());
}

/// The heads that look at one neighbour from nine rows in ten of all texts.
void name_positional(std::vector<phasor::HeadProfile>& heads) {
  for (phasor::HeadProfile& head : heads) {
    if (head.positional_share >= 0.9) head.positional_offset = head.previous > head.next ? -1 : 1;
  }
}

}  // namespace

void ObservedMeans::add(const Observed& text) {
  make_room(mean_, text);
  sums_.resize(text.layers.size());
  const auto weight = static_cast<double>(text.num_tokens());
  const auto add_to = [weight](Sums& sums) {
    return [&sums, weight](int64_t head, const std::string& name, double value) {
      Sum& sum = sums[{head, name}];
      sum.sum += weight * value;
      sum.weight += weight;
    };
  };
  for (size_t l = 0; l < sums_.size(); ++l) for_each_number(text.layers[l], add_to(sums_[l]));
  for_each_text_number(text, add_to(text_sums_));
  if (texts_++ == 0) {
    mean_.model = text.model;
    mean_.positions = text.positions;
    mean_.precision = text.precision;
    mean_.edits = text.edits;
    mean_.cut_residuals = text.cut_residuals;
    mean_.num_heads = text.num_heads;
    mean_.d_model = text.d_model;
  }
  tokens_ += text.num_tokens();
  if (text.text_tokens.size() > 1) ++reordered_texts_;
  for (const auto& [measure, why] : text.missing) {
    ++missing_[measure].first;
    missing_[measure].second = why;
  }
}

Observed ObservedMeans::result() const {
  Observed mean = mean_;
  const auto mean_of = [](const Sums& sums) {
    return [&sums](int64_t head, const std::string& name, double& value) {
      // In a text that is too short for an offset, nothing goes so far.
      const Sum& weights = sums.at({head, name.starts_with(kByOffset) ? kDistance : name});
      value = sums.at({head, name}).sum / weights.weight;
    };
  };
  for (size_t l = 0; l < sums_.size(); ++l) {
    for_each_number(mean.layers[l], mean_of(sums_[l]));
    if (mean.layers[l].attention) name_positional(mean.layers[l].attention->heads);
  }
  for_each_text_number(mean, mean_of(text_sums_));
  for (const auto& [measure, texts_and_why] : missing_) {
    if (texts_and_why.first == texts_) mean.missing[measure] = texts_and_why.second;
  }
  return mean;
}

}  // namespace infer
