// What the handles of the C interface hold.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/model.h"
#include "phasor/phasor_c.h"

struct phasor_model {
  std::shared_ptr<const phasor::Model> model;
  mutable std::once_flag described = {};
  mutable std::string info = {};  // once described
};

struct phasor_encoder {
  phasor::Encoder encoder;
  std::string info;
};

struct phasor_stop {
  std::stop_source source;
};

namespace phasor::internal {

/// float, int32_t or int64_t at `data`, row-major.
template <typename T>
phasor_array array_of(const T* data, const std::vector<int64_t>& shape) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, int32_t> ||
                std::is_same_v<T, int64_t>);
  phasor_array array = {.data = data,
                        .type = std::is_same_v<T, float>     ? PHASOR_FLOAT32
                                : std::is_same_v<T, int32_t> ? PHASOR_INT32
                                                             : PHASOR_INT64,
                        .num_dims = static_cast<int32_t>(shape.size()),
                        .shape = {}};
  for (size_t i = 0; i < shape.size(); ++i) array.shape[i] = shape[i];
  return array;
}

}  // namespace phasor::internal

/// Arrays and strings by name, and what holds their memory.
struct phasor_result {
  /// An array of the caller, or of an object that keep() keeps.
  void borrow(const std::string& name, int64_t text, phasor_array array);
  /// An array of its own, [values.size()].
  template <typename T>
  void own(const std::string& name, std::vector<T> values, std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = {std::ssize(values)};
    borrow(name, -1, phasor::internal::array_of(keep(std::move(values)).data(), shape));
  }
  template <typename T>
  const T& keep(T object) {
    auto kept = std::make_shared<const T>(std::move(object));
    kept_.push_back(kept);
    return *kept;
  }

  std::map<std::pair<std::string, int64_t>, phasor_array> arrays = {};  // by name and text
  std::vector<std::string> names = {};                                  // of arrays, each once
  std::map<std::string, std::vector<std::string>, std::less<>> strings = {};

 private:
  std::vector<std::shared_ptr<const void>> kept_ = {};
};
