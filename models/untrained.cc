// Model::untrained(): a model as it was before training, for comparison.
#include <cmath>
#include <map>
#include <numbers>
#include <random>
#include <set>
#include <utility>

#include "models/parameters.h"
#include "phasor/model.h"

namespace phasor {
using namespace internal;

namespace {

/// Random numbers that are the same on every machine, up to the rounding of log and cos.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  /// Between 0 and 1, both excluded.
  double uniform() { return (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53; }
  /// By Box and Muller.
  double normal() {
    const double length = std::sqrt(-2 * std::log(uniform()));
    return length * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::mt19937_64 bits_;
};

double root_mean_square(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

std::vector<float> drawn(const Parameter& parameter, Spread spread, Random& random) {
  static const std::set<std::string_view> kTables = {"token_embedding",      "position_embedding",
                                                     "token_type_embedding", "relative_table",
                                                     "relative_bias",        "mlm.decoder"};
  std::vector<float> values = parameter.tensor->to_float();
  const std::vector<int64_t>& shape = parameter.tensor->shape;
  const bool is_table = kTables.contains(parameter.module);
  if (is_table && spread == Spread::kOwn) return values;
  if (is_table || (shape.size() == 2 && spread == Spread::kOwn)) {
    const double size = root_mean_square(values);
    for (float& value : values) value = static_cast<float>(size * random.normal());
  } else if (shape.size() == 2) {
    const double bound = std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1]));
    for (float& value : values) value = static_cast<float>(bound * (2 * random.uniform() - 1));
  } else {
    values.assign(values.size(), parameter.leaf == "weight" ? 1.0f : 0.0f);
  }
  return values;
}

}  // namespace

std::shared_ptr<const Model> Model::untrained(uint64_t seed, Spread spread) const {
  const auto model = std::shared_ptr<Model>(new Model(*this));
  const auto storage = std::make_shared<std::map<const std::byte*, std::vector<float>>>();
  Random random(seed);
  for (const Parameter& parameter : internal::parameters(model->config_, model->weights_)) {
    Tensor& tensor = *parameter.tensor;
    const bool computed = parameter.module == "position_embedding" &&
                          config_.position.kind == PositionKind::kSinusoidal;
    if (!tensor.present() || computed) continue;
    const auto [known, is_new] = storage->try_emplace(tensor.data);  // a tied decoder's is known
    if (is_new) known->second = drawn(parameter, spread, random);
    tensor.dtype = DType::kFloat32;
    tensor.data = reinterpret_cast<const std::byte*>(known->second.data());
  }
  using Kept = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  model->storage_ = std::make_shared<Kept>(storage, storage_);  // a stored sinusoid is in the files
  return model;
}

}  // namespace phasor
