// The limit that every speed is held against: what the processor's multiply-adds could do if they
// never waited for a value.
#pragma once

#include <cstdint>
#include <span>

#include "phasor/config.h"
#include "phasor/precision.h"

namespace phasor::bench {

/// A multiplication and an addition are two operations. The instruction sets are those that oneDNN
/// may use (ONEDNN_MAX_CPU_ISA). AMX is not measured.
class MachineLimit {
 public:
  /// Measures for some tenths of a second on each of that many threads at once.
  explicit MachineLimit(int threads);

  /// Operations a second with operands in this format, of all threads.
  double rate(Precision precision) const { return rates_[static_cast<int>(precision)]; }
  /// What the products of a run over sequences of these lengths would take: linear maps in this
  /// precision, attention in the format that Encoder takes for it.
  double seconds(const ModelConfig& config, std::span<const int64_t> lengths,
                 Precision precision) const;

 private:
  double rates_[3];
};

}  // namespace phasor::bench
