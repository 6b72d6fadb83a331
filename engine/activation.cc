#include "engine/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "files/refuse.h"

namespace phasor::internal {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }  // Φ

}  // namespace

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kGeluErf:
      return x * normal(x);
    case Activation::kGeluTanh:
      return x * sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x * sigmoid(x);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kIdentity:
      return x;
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kQuickGelu:
      return x * sigmoid(1.702 * x);
    case Activation::kGelu10:
      return std::min(x * normal(x), 10.0);
    case Activation::kRelu2:
      return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case Activation::kLeakyRelu:
      return std::max(x, 0.01 * x);
    case Activation::kHardswish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
    case Activation::kMish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case Activation::kLaplace:
      return normal((x - 0.707107) / 0.282095);
  }
  refuse<InvalidArgument>("no activation has the number {}", static_cast<int>(activation));
}

}  // namespace phasor::internal
