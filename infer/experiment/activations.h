// The activations of whole runs, as the named tensors of one file.
#pragma once

#include <filesystem>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/input.h"
#include "infer/files/save.h"
#include "phasor/encoder.h"
#include "phasor/trace.h"

namespace infer {

/// What is saved of a run: hidden states and attentions under Transformers' names, or hooks under
/// TransformerLens'.
class HookTrace : public phasor::Trace {
 public:
  /// Without names: hidden states and attentions. A name is a hook's path ("blocks.0.hook_mlp_out")
  /// or the end of one ("hook_mlp_out", "mlp_out": of every block); "all" is every hook. Throws
  /// InvalidArgument for a name that no hook of the model has.
  HookTrace(std::vector<std::string> names, int64_t num_layers);
  bool wants(phasor::Hook hook, int64_t layer) const override;
  bool by_path() const { return !names_.empty(); }

 private:
  std::vector<std::string> names_;
};

/// A batch that was run, and what passed the hooks that are to be saved.
struct Recording {
  phasor::Encoding encoding;
  HookTrace trace;
};

/// `options.observer` is not used.
Recording record(phasor::Encoder& encoder, std::span<const Input> inputs,
                 phasor::RunOptions options, HookTrace trace);

/// The tensors of a file.
class Activations {
 public:
  /// Of sequence i, under names that begin with `prefix`: token_ids and position_ids (int32, [T]),
  /// and by hooks {path}, or else hidden_states.{l} [T, C] for l = 0 … L, attentions.{l} [H, T, T]
  /// for l = 0 … L − 1, last_hidden_state [T, C], embedding [C]. Fractional positions are rounded.
  /// Borrows from the recording.
  void add(const std::string& prefix, const Recording& recording, int64_t i);
  /// One more. Borrows nothing.
  void add(const std::string& name, std::vector<int64_t> shape, std::span<const double> values);

  std::span<const SavedTensor> tensors() const { return tensors_; }

 private:
  void add(const std::string& name, const phasor::Trace::Entry& entry);
  void add_states(const std::string& prefix, const Recording& recording, int64_t i);
  void add_hooks(const std::string& prefix, const HookTrace& trace, int64_t i);

  std::vector<SavedTensor> tensors_;
  std::list<std::vector<int32_t>> position_ids_;  // what tensors_ borrows
  std::list<std::vector<float>> arrays_;
};

}  // namespace infer
