// One measurement of infer bench, and how it is shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/commands/bench/bench_shape.h"
#include "infer/commands/bench/matmul_limit.h"
#include "infer/render/terminal.h"
#include "phasor/encoder.h"

namespace infer {

struct Measurement {
  std::string shape;
  int64_t tokens = 0;
  int threads = 0;
  std::string precision;
  double median = 0, fastest = 0;  // seconds
  double operations = 0;           // of the matmuls
  double limit = 0;                // seconds
  int64_t peak_bytes = 0;
  std::vector<phasor::PrimitiveInfo> primitives;

  double tokens_per_second() const { return static_cast<double>(tokens) / median; }
};

/// Runs batches of this shape for about so many seconds, on a replica of `encoder`.
Measurement measure(const phasor::Encoder& encoder, const MatmulLimit& limit,
                    const BenchShape& shape, double seconds);

/// An object in a line. `model`: as the user named it.
std::string to_json(const Measurement& measurement, const std::string& model);

std::string table_head(const Output& output);
std::string table_row(const Measurement& measurement);

}  // namespace infer
