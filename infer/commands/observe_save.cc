// What infer observe saves: the activations of its runs, and the arrays that it measured.
#include "infer/commands/observe_save.h"

#include <fmt/format.h>

#include "infer/files/save.h"

namespace infer {
namespace {

void add_arrays(const std::string& prefix, const Observed& text, Activations& activations) {
  const int64_t tokens = text.num_tokens();
  const std::vector<double> vectors(text.position_vectors.begin(), text.position_vectors.end());
  if (!vectors.empty()) {
    activations.add(prefix + "position_vectors", {tokens, std::ssize(vectors) / tokens}, vectors);
  }
  for (size_t l = 0; l < text.layers.size(); ++l) {
    if (!text.layers[l].split) continue;
    const std::vector<double>& means = text.layers[l].split->position_means;
    activations.add(fmt::format("{}split.position.{}", prefix, l),
                    {std::ssize(text.text_tokens), text.d_model}, means);
  }
}

}  // namespace

void save_observed(const TextOptions& options, const Runs& runs, std::span<const Input> inputs,
                   std::span<const ObservedPair> pairs) {
  Activations activations;
  const auto add = [&](const char* run, std::span<const Recording> recordings, auto observed) {
    for_each_sequence(recordings, [&](size_t number, const Recording& recording, int64_t i) {
      const std::string prefix = fmt::format("{}.{}", number, runs.after ? run : "");
      activations.add(prefix, recording, i);
      add_arrays(prefix, observed(pairs[number]), activations);
    });
  };
  const std::vector<Recording> before =
      record_all(options, runs.before.encoder, inputs, runs.before.options);
  add("before.", before, [](const ObservedPair& pair) -> const Observed& { return pair.before; });
  std::vector<Recording> after;
  if (runs.after) {
    after = record_all(options, runs.after->encoder, inputs, runs.after->options);
    add("after.", after, [](const ObservedPair& pair) -> const Observed& { return *pair.after; });
  }
  save(options.save, activations.tensors(),
       metadata(options, runs.before.encoder, runs.before.options, before));
}

}  // namespace infer
