// The activations of whole runs, as the named tensors of one file.
#include "infer/activations.h"

#include <fmt/format.h>

#include <cmath>
#include <list>

#include "infer/save.h"

namespace infer {
namespace {

class Collector {
 public:
  void add_sequence(const Recording& recording, int64_t i) {
    const phasor::Encoding& encoding = recording.encoding;
    const phasor::Trace& trace = recording.trace;
    const int64_t tokens = encoding.num_tokens(i);
    add("token_ids", {tokens}, encoding.token_ids(i));
    add("position_ids", {tokens}, std::span<const int32_t>(rounded(encoding.positions(i))));
    for (int64_t l = 0; l <= trace.num_layers(); ++l) {
      add(fmt::format("hidden_states.{}", l), trace.hidden_state(l, i));
    }
    for (int64_t l = 0; l < trace.num_layers(); ++l) {
      add(fmt::format("attentions.{}", l), trace.at(phasor::Hook::kPattern, l, i));
    }
    add("last_hidden_state", {tokens, std::ssize(encoding.embedding(i))}, encoding.hidden(i));
    add("embedding", {std::ssize(encoding.embedding(i))}, encoding.embedding(i));
    ++number_;
  }

  std::span<const SavedTensor> tensors() const { return tensors_; }

 private:
  template <typename T>
  void add(const std::string& name, std::vector<int64_t> shape, std::span<const T> values) {
    tensors_.emplace_back(fmt::format("{}.{}", number_, name), std::move(shape), values);
  }
  void add(const std::string& name, const phasor::Trace::Entry& entry) {
    add(name, entry.shape, std::span<const float>(entry.values));
  }
  const std::vector<int32_t>& rounded(std::span<const float> positions) {
    std::vector<int32_t>& rows = position_ids_.emplace_back();
    for (const float position : positions) {
      rows.push_back(static_cast<int32_t>(std::lround(position)));
    }
    return rows;
  }

  int64_t number_ = 0;
  std::vector<SavedTensor> tensors_;
  std::list<std::vector<int32_t>> position_ids_;  // what tensors_ borrows
};

}  // namespace

Recording record(phasor::Encoder& encoder, std::span<const Input> inputs,
                 phasor::RunOptions options, phasor::Trace trace) {
  options.observer = &trace;
  phasor::Encoding encoding = encoder.encode_ids(token_ids_of(inputs), options);
  return {std::move(encoding), std::move(trace)};
}

void save_activations(const std::filesystem::path& path, std::span<const Recording> recordings,
                      const std::map<std::string, std::string>& metadata) {
  Collector collector;
  for (const Recording& recording : recordings) {
    for (int64_t i = 0; i < recording.encoding.num_sequences(); ++i) {
      collector.add_sequence(recording, i);
    }
  }
  save(path, collector.tensors(), metadata);
}

}  // namespace infer
