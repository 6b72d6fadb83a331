// Means over many texts of what is known of their layers.
#include "infer/means.h"

#include "infer/numbers.h"

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
  make_room(mean.position_effect, layer.position_effect);
  make_room(mean.direct_position, layer.direct_position);
  make_room(mean.order, layer.order);
  make_room(mean.attention, layer.attention);
  if (!layer.attention) return;
  for (const auto& [offset, share] : layer.attention->by_offset) mean.attention->by_offset[offset];
}

}  // namespace

void LayerMeans::add(const Observed& text) {
  layers_.resize(text.layers.size());
  sums_.resize(text.layers.size());
  const auto weight = static_cast<double>(text.num_tokens());
  for (size_t l = 0; l < layers_.size(); ++l) {
    make_room(layers_[l], text.layers[l]);
    for_each_number(text.layers[l], [&](const std::string& name, double value) {
      sums_[l][name].sum += weight * value;
      sums_[l][name].weight += weight;
    });
  }
  ++texts_;
  tokens_ += text.num_tokens();
  if (text.text_tokens.size() > 1) ++reordered_texts_;
  for (const auto& [measure, why] : text.missing) {
    ++missing_[measure].first;
    missing_[measure].second = why;
  }
}

std::vector<ObservedLayer> LayerMeans::layers() const {
  std::vector<ObservedLayer> layers = layers_;
  for (size_t l = 0; l < layers.size(); ++l) {
    for_each_number(layers[l], [&](const std::string& name, double& value) {
      // In a text that is too short for an offset, nothing goes so far.
      const Sum& weights = sums_[l].at(name.starts_with(kByOffset) ? kDistance : name);
      value = sums_[l].at(name).sum / weights.weight;
    });
  }
  return layers;
}

std::map<Measure, std::string> LayerMeans::missing() const {
  std::map<Measure, std::string> missing;
  for (const auto& [measure, texts_and_why] : missing_) {
    if (texts_and_why.first == texts_) missing[measure] = texts_and_why.second;
  }
  return missing;
}

}  // namespace infer
