// A model held against the reference activations beside it, tensor by tensor.
#include "infer/commands/verify/verification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <span>

#include "infer/experiment/subject.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/trace.h"

namespace infer {
namespace {

std::string name_of(const GoldenItem& item, int64_t i) {
  return item.text ? fmt::format("item {} ('{}')", i, *item.text) : fmt::format("item {}", i);
}

void compare(Verification& v, Check& check, int64_t i, const std::vector<int64_t>& shape,
             std::span<const float> got) {
  if (!v.golden.contains(i, check.tensor)) return;
  const phasor::Tensor tensor = v.golden.tensor(i, check.tensor);
  ++check.items;
  const std::string name = name_of(v.golden.items[i], i);
  if (tensor.shape != shape) {
    if (check.ok()) {
      check.first_difference =
          fmt::format("{} of {} has shape [{}], the reference [{}]", check.tensor, name,
                      fmt::join(shape, ", "), fmt::join(tensor.shape, ", "));
    }
    return;
  }
  const std::vector<float> want = tensor.to_float();
  if (!v.exact()) check.deviation.add(got, want, shape.back());
  for (size_t e = 0; e < want.size(); ++e) {
    const double diff = std::abs(double{got[e]} - double{want[e]});
    if (!(diff <= check.max_diff)) check.max_diff = std::isnan(check.max_diff) ? NAN : diff;
    const bool close =
        std::isfinite(want[e]) && diff <= v.golden.atol + v.golden.rtol * std::abs(double{want[e]});
    if (v.exact() && !close && check.ok()) {
      check.first_difference = fmt::format("{} of {} differs at element {}: got {}, want {}",
                                           check.tensor, name, e, got[e], want[e]);
    }
  }
}

void compare_ids(Verification& v, const phasor::Model& model, int64_t i) {
  const GoldenItem& item = v.golden.items[i];
  if (!item.text || !model.has_tokenizer()) return;
  ++v.texts;
  const std::vector<int32_t> got = model.tokenizer().encode(*item.text).ids;
  if (got == item.ids || !v.ids_difference.empty()) return;
  v.ids_difference = fmt::format("the ids of {} differ: got {}, want {}", name_of(item, i),
                                 fmt::join(got, " "), fmt::join(item.ids, " "));
}

void compare_item(Verification& v, phasor::Encoder& encoder, int64_t i) {
  const int64_t layers = encoder.model().config().num_layers;
  phasor::Trace trace = v.exact() ? phasor::Trace::hidden_states_and_attentions() : hidden_states();
  const phasor::Encoding encoding = encoder.encode_ids(v.golden.items[i].ids, {.observer = &trace});
  for (int64_t l = 0; l <= layers; ++l) {
    const phasor::Trace::Entry& state = trace.hidden_state(l);
    compare(v, v.hidden[l], i, state.shape, state.values);
    if (l == layers || !v.exact()) continue;
    const phasor::Trace::Entry& pattern = trace.at(phasor::Hook::kPattern, l);
    compare(v, v.attentions[l], i, pattern.shape, pattern.values);
  }
  const int64_t tokens = encoding.num_tokens(0);
  compare(v, v.last, i, {tokens, encoder.model().config().d_model}, encoding.hidden(0));
}

/// Both must know the same layers, or what is equal says nothing.
void check_layers(const Verification& v, int64_t layers) {
  for (int64_t i = 0; i < std::ssize(v.golden.items); ++i) {
    for (int64_t l = 0; l <= layers + 1; ++l) {
      const std::string name = fmt::format("hidden_states.{}", l);
      if (v.golden.contains(i, name) == (l <= layers)) continue;
      throw phasor::InvalidArgument(
          fmt::format("{}/golden.safetensors {} {}.{}, but the model has {} layers", v.folder,
                      l <= layers ? "lacks" : "has", i, name, layers));
    }
  }
}

}  // namespace

std::vector<const Check*> Verification::checks() const {
  std::vector<const Check*> all;
  for (size_t l = 0; l < hidden.size(); ++l) {
    all.push_back(&hidden[l]);
    if (l < attentions.size()) all.push_back(&attentions[l]);
  }
  all.push_back(&last);
  return all;
}

std::string Verification::first_difference() const {
  if (!ids_difference.empty()) return ids_difference;
  for (const Check* check : checks()) {
    if (!check->ok()) return check->first_difference;
  }
  const double cosine = hidden.back().deviation.mean_cosine();
  if (exact() || cosine >= kLeastCosine) return "";
  return fmt::format("the mean cosine of {} is {:.5f}, below {}", hidden.back().tensor, cosine,
                     kLeastCosine);
}

Verification verify_folder(const std::string& folder, int threads, phasor::Precision precision) {
  const auto model = phasor::Model::load(folder);
  const int64_t layers = model->config().num_layers;
  Verification v{
      .folder = folder, .family = model->config().family, .golden = load_golden(model->folder())};
  check_layers(v, layers);
  try {
    model->tokenizer();
  } catch (const phasor::ModelError& error) {
    v.tokenizer_problem = error.what();
  }
  phasor::Encoder encoder(model, {.threads = threads, .precision = precision});
  v.precision = encoder.precision();
  for (int64_t l = 0; l <= layers; ++l) {
    v.hidden.push_back({.tensor = fmt::format("hidden_states.{}", l)});
    if (l == layers || !v.exact()) continue;
    v.attentions.push_back({.tensor = fmt::format("attentions.{}", l)});
  }
  for (int64_t i = 0; i < std::ssize(v.golden.items); ++i) {
    compare_ids(v, *model, i);
    compare_item(v, encoder, i);
  }
  return v;
}

}  // namespace infer
