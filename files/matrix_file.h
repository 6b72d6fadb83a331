// A matrix of floating-point numbers in a file that another program may have written: .npy or
// .safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "phasor/model.h"

namespace phasor::internal {

/// Stays mapped, and must not be overwritten in place, for as long as this object lives.
class MatrixFile {
 public:
  /// Of several matrices the one called `name`. Throws ModelError naming the file where it holds no
  /// row-major matrix of float32 or float64 (.safetensors also F16 and BF16), or several.
  MatrixFile(const std::filesystem::path& file, const std::string& name);

  int64_t rows() const { return tensor_.shape[0]; }
  int64_t columns() const { return tensor_.shape[1]; }
  const Tensor& tensor() const { return tensor_; }

 private:
  std::shared_ptr<const void> mapped_;
  Tensor tensor_;
};

}  // namespace phasor::internal
