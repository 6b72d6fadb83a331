// The activations of whole runs, as the named tensors of one file.
#include "infer/experiment/activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::Hook;

std::vector<Hook> hooks_for(const std::vector<std::string>& names) {
  if (names.empty()) {
    return {Hook::kFullEmbed, Hook::kPattern, Hook::kResidPost, Hook::kNormalizedResidPost,
            Hook::kFinalNorm};
  }
  std::vector<Hook> hooks;
  for (int hook = 0; hook < phasor::kNumHooks; ++hook) hooks.push_back(static_cast<Hook>(hook));
  return hooks;
}

bool is_called(const std::string& path, const std::string& name) {
  return name == "all" || path == name || path.ends_with("." + name) ||
         path.ends_with("hook_" + name);
}

/// Calls visit(hook, layer) for every hook of a model.
template <typename Visit>
void for_each_hook(int64_t num_layers, Visit visit) {
  for (int hook = 0; hook < phasor::kNumHooks; ++hook) {
    const bool in_block = phasor::is_block_hook(static_cast<Hook>(hook));
    for (int64_t layer = in_block ? 0 : -1; layer < (in_block ? num_layers : 0); ++layer) {
      visit(static_cast<Hook>(hook), layer);
    }
  }
}

}  // namespace

HookTrace::HookTrace(std::vector<std::string> names, int64_t num_layers)
    : Trace(hooks_for(names)), names_(std::move(names)) {
  for (const std::string& name : names_) {
    bool known = false;
    for_each_hook(num_layers, [&](Hook hook, int64_t layer) {
      known = known || is_called(phasor::hook_path(hook, layer), name);
    });
    if (known) continue;
    throw phasor::InvalidArgument(fmt::format(
        "--hooks: this model has no hook '{}'; write all, or names like attn.hook_pattern (of "
        "every "
        "block) and blocks.0.hook_resid_post (of the first), as TransformerLens has them",
        name));
  }
}

bool HookTrace::wants(Hook hook, int64_t layer) const {
  if (!Trace::wants(hook, layer)) return false;
  const std::string path = phasor::hook_path(hook, layer);
  return names_.empty() || std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
           return is_called(path, name);
         });
}

Recording record(phasor::Encoder& encoder, std::span<const Input> inputs,
                 phasor::RunOptions options, HookTrace trace) {
  options.observer = &trace;
  options.pooling = encoder.model().sentence().pooling;
  phasor::Encoding encoding = encoder.encode_ids(token_ids_of(inputs), options);
  return {std::move(encoding), std::move(trace)};
}

void Activations::add(const std::string& prefix, const Recording& recording, int64_t i) {
  const phasor::Encoding& encoding = recording.encoding;
  const int64_t tokens = encoding.num_tokens(i);
  tensors_.emplace_back(prefix + "token_ids", std::vector{tokens}, encoding.token_ids(i));
  std::vector<int32_t>& rows = position_ids_.emplace_back();
  for (const float position : encoding.positions(i)) {
    rows.push_back(static_cast<int32_t>(std::lround(position)));
  }
  tensors_.emplace_back(prefix + "position_ids", std::vector{tokens},
                        std::span<const int32_t>(rows));
  if (recording.trace.by_path()) {
    add_hooks(prefix, recording.trace, i);
  } else {
    add_states(prefix, recording, i);
  }
}

void Activations::add(const std::string& name, std::vector<int64_t> shape,
                      std::span<const double> values) {
  const std::vector<float>& array = arrays_.emplace_back(values.begin(), values.end());
  tensors_.emplace_back(name, std::move(shape), std::span<const float>(array));
}

void Activations::add(const std::string& name, const phasor::Trace::Entry& entry) {
  tensors_.emplace_back(name, entry.shape, std::span<const float>(entry.values));
}

void Activations::add_states(const std::string& prefix, const Recording& recording, int64_t i) {
  const phasor::Encoding& encoding = recording.encoding;
  const HookTrace& trace = recording.trace;
  for (int64_t l = 0; l <= trace.num_layers(); ++l) {
    add(fmt::format("{}hidden_states.{}", prefix, l), trace.hidden_state(l, i));
  }
  for (int64_t l = 0; l < trace.num_layers(); ++l) {
    add(fmt::format("{}attentions.{}", prefix, l), trace.at(Hook::kPattern, l, i));
  }
  const int64_t tokens = encoding.num_tokens(i);
  tensors_.emplace_back(prefix + "last_hidden_state",
                        std::vector{tokens, std::ssize(encoding.hidden(i)) / tokens},
                        encoding.hidden(i));
  tensors_.emplace_back(prefix + "embedding", std::vector{std::ssize(encoding.embedding(i))},
                        encoding.embedding(i));
}

void Activations::add_hooks(const std::string& prefix, const HookTrace& trace, int64_t i) {
  for_each_hook(trace.num_layers(), [&](Hook hook, int64_t layer) {
    if (trace.has(hook, layer, i))
      add(prefix + phasor::hook_path(hook, layer), trace.at(hook, layer, i));
  });
}

}  // namespace infer
