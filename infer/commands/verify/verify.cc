// infer verify DIR…: a model beside its reference activations, layer by layer, and what a lower
// precision costs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/verify/golden.h"
#include "infer/render/json_text.h"
#include "lens/study/deviation.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/trace.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLogits = "logits";

/// One tensor of the forward pass, compared for every item that has it.
struct Check {
  std::string tensor;
  int64_t items = 0;
  std::string difference = {};  // of the first item that differs; empty where none does
  phasor::internal::Deviation deviation = {};
};

/// All comparisons of one folder. In float32 every value must be as close as golden.json says.
/// Lower precisions differ by what they cost; there the mean cosine of the last hidden states
/// decides, and that of all logits, taken as one vector.
struct Verification {
  static constexpr double kLeastCosine = 0.99;

  std::string folder;
  std::string family;
  phasor::Precision precision = phasor::Precision::kFloat32;  // never kAuto
  Golden golden = {};
  int64_t texts = 0;                   // whose ids were compared
  std::string tokenizer_problem = {};  // why none were
  std::string ids_difference = {};
  std::vector<float> logits = {}, wanted_logits = {};  // of all items, end to end
  std::vector<Check> checks = {};  // hidden_states.0, attentions.0, …, last_hidden_state, logits

  bool exact() const { return precision == phasor::Precision::kFloat32; }
  /// A sentence; empty where all is well.
  std::string first_difference() const {
    if (!ids_difference.empty()) return ids_difference;
    const auto different =
        std::ranges::find_if(checks, [](const Check& check) { return !check.difference.empty(); });
    return different == checks.end() ? "" : different->difference;
  }
  bool ok() const { return first_difference().empty(); }
};

std::string name_of(const GoldenItem& item, int64_t i) {
  return item.text ? fmt::format("item {} ('{}')", i, *item.text) : fmt::format("item {}", i);
}

void compare(Verification& v, const std::string& tensor_name, int64_t i,
             const std::vector<int64_t>& shape, std::span<const float> got) {
  const auto found = std::ranges::find(v.checks, tensor_name, &Check::tensor);
  Check& check = found != v.checks.end() ? *found : v.checks.emplace_back(Check{tensor_name});
  const auto tensor = v.golden.tensor(i, tensor_name);
  if (!tensor) return;
  ++check.items;
  const std::string name = name_of(v.golden.items[i], i);
  if (tensor->shape != shape) {
    if (!check.difference.empty()) return;
    check.difference = fmt::format("{} of {} has shape [{}], the reference [{}]", check.tensor,
                                   name, fmt::join(shape, ", "), fmt::join(tensor->shape, ", "));
    return;
  }
  const std::vector<float> want = tensor->to_float();
  if (tensor_name == kLogits) {
    v.logits.insert(v.logits.end(), got.begin(), got.end());
    v.wanted_logits.insert(v.wanted_logits.end(), want.begin(), want.end());
  } else {
    check.deviation.add(got, want, shape.back());
  }
  for (size_t e = 0; e < want.size() && v.exact() && check.difference.empty(); ++e) {
    const double bound = v.golden.atol + v.golden.rtol * std::abs(double{want[e]});
    if (std::isfinite(want[e]) && std::abs(double{got[e]} - double{want[e]}) <= bound) continue;
    check.difference = fmt::format("{} of {} differs at element {}: got {}, want {}", check.tensor,
                                   name, e, got[e], want[e]);
  }
}

void compare_ids(Verification& v, const phasor::Model& model, int64_t i) {
  const GoldenItem& item = v.golden.items[i];
  if (!item.text || !model.has_tokenizer()) return;
  ++v.texts;
  const phasor::Tokenizer& tokenizer = model.tokenizer();
  const phasor::TokenizeOptions how = {.ids_only = true};
  phasor::Tokens got = item.text_pair ? tokenizer.encode_pair(*item.text, *item.text_pair, how)
                                      : tokenizer.encode(*item.text, how);
  const auto check = [&](const char* what, const auto& ids, const auto& wanted) {
    if (ids == wanted || !v.ids_difference.empty()) return;
    v.ids_difference = fmt::format("the {} of {} differ: got {}, want {}", what, name_of(item, i),
                                   fmt::join(ids, " "), fmt::join(wanted, " "));
  };
  check("ids", got.ids, item.ids);
  if (item.token_types.empty()) return;
  got.token_types.resize(got.ids.size());  // zeros if there are none
  check("token types", got.token_types, item.token_types);
}

std::string attentions_of(int64_t layer) { return fmt::format("attentions.{}", layer); }

/// Keeps those patterns alone that the reference has, so that they take no more memory than its
/// file.
class Recorder : public phasor::Trace {
 public:
  Recorder(const Golden& golden, int64_t item, std::vector<int64_t> shape)
      : Trace(hidden_states_and_attentions()),
        golden_(golden),
        item_(item),
        shape_(std::move(shape)) {}
  bool wants(phasor::Hook hook, int64_t layer) const override {
    if (!Trace::wants(hook, layer) || hook != phasor::Hook::kPattern)
      return Trace::wants(hook, layer);
    const auto reference = golden_.tensor(item_, attentions_of(layer));
    return reference && reference->shape == shape_;
  }

 private:
  const Golden& golden_;
  const int64_t item_;
  const std::vector<int64_t> shape_;  // of a pattern
};

void compare_item(Verification& v, phasor::Encoder& encoder, int64_t i) {
  const phasor::ModelConfig& config = encoder.model().config();
  const int64_t layers = config.num_layers;
  const GoldenItem& item = v.golden.items[i];
  const int64_t num_tokens = std::ssize(item.ids);
  const std::vector<int64_t> pattern_shape = {config.num_heads, num_tokens, num_tokens};
  Recorder trace(v.golden, i, pattern_shape);
  phasor::RunOptions options = {.token_types = item.token_types};
  if (v.golden.tensors) options.observer = &trace;
  const auto& head = encoder.model().weights().classifier;
  if (head) options.pooling = phasor::Pooling{.modes = {head->pooling}};
  const phasor::Encoding encoding = encoder.encode_ids(item.ids, options);
  for (int64_t l = 0; v.golden.tensors && l <= layers; ++l) {
    const phasor::Trace::Entry& state = trace.hidden_state(l);
    compare(v, fmt::format("hidden_states.{}", l), i, state.shape, state.values);
    if (l == layers) continue;
    std::span<const float> pattern;
    if (trace.has(phasor::Hook::kPattern, l)) pattern = trace.at(phasor::Hook::kPattern, l).values;
    compare(v, attentions_of(l), i, pattern_shape, pattern);
  }
  if (v.golden.tensors) {
    compare(v, "last_hidden_state", i, {encoding.num_tokens(0), encoder.model().config().d_model},
            encoding.hidden(0));
  }
  if (item.logits.empty()) return;
  std::span<const float> states;  // without a head it throws
  if (head) states = head->mean_of_logits ? encoding.hidden(0) : encoding.embedding(0);
  std::vector<float> logits = encoder.classifier_logits(states);
  if (head->mean_of_logits) {
    const int64_t labels = std::ssize(head->labels);
    logits = phasor::pool(logits, labels, {.modes = {phasor::PoolingMode::kMean}});
  }
  compare(v, kLogits, i, {std::ssize(logits)}, logits);
}

/// Both must know the same layers, or what is equal says nothing.
void check_layers(const Verification& v, int64_t layers) {
  for (int64_t i = 0; i < std::ssize(v.golden.items); ++i) {
    for (int64_t l = 0; l <= layers + 1; ++l) {
      const std::string name = fmt::format("hidden_states.{}", l);
      if (v.golden.tensor(i, name).has_value() == (l <= layers)) continue;
      throw phasor::InvalidArgument(
          fmt::format("{}/golden.safetensors {} {}.{}, but the model has {} layers", v.folder,
                      l <= layers ? "lacks" : "has", i, name, layers));
    }
  }
}

/// Runs the model on the inputs of its reference. Throws what loading and running throw, and
/// InvalidArgument where the reference has other layers.
Verification verify_folder(const std::string& folder, const CommonOptions& common) {
  const auto model = phasor::Model::load(folder, load_options(common));
  Verification v{.folder = folder,
                 .family = model->config().family,
                 .golden = load_golden({model->folder(), common.follow_links})};
  if (v.golden.tensors) check_layers(v, model->config().num_layers);
  try {
    model->tokenizer();
  } catch (const phasor::ModelError& error) {
    v.tokenizer_problem = error.what();
  }
  phasor::Encoder encoder(model, encoder_options(common));
  v.precision = encoder.precision();
  for (int64_t i = 0; i < std::ssize(v.golden.items); ++i) {
    compare_ids(v, *model, i);
    compare_item(v, encoder, i);
  }
  const std::string last = fmt::format("hidden_states.{}", model->config().num_layers);
  for (Check& check : v.checks) {
    if (check.tensor == kLogits)
      check.deviation.add(v.logits, v.wanted_logits, std::ssize(v.logits));
    const double cosine = check.deviation.mean_cosine();
    if (v.exact() || !check.difference.empty()) continue;
    if (check.tensor != last && check.tensor != kLogits) continue;
    if (cosine >= Verification::kLeastCosine) continue;
    check.difference = fmt::format("the mean cosine of {} is {:.5f}, below {}", check.tensor,
                                   cosine, Verification::kLeastCosine);
  }
  return v;
}

std::string to_text(const Verification& v, const Output& output) {
  const std::string bound =
      v.exact() ? fmt::format("|got - want| <= {} + {}*|want|", v.golden.atol, v.golden.rtol)
                : fmt::format("the last state's mean cosine >= {}", Verification::kLeastCosine);
  std::string out =
      output.heading(printable(v.folder)) +
      fmt::format(": {}, {}, {}\n", v.family, to_string(v.precision), bound) +
      fmt::format("  {:<18}{:>6}{:>13}{:>13}\n", "tensor", "items", "max |diff|", "mean cosine");
  const auto row = [&](const std::string& name, int64_t items, const std::string& numbers,
                       const std::string& difference) {
    out += items == 0 ? fmt::format("  {:<18}  none\n", name)
                      : fmt::format("  {:<18}{:>6}{:>26}  {}\n", name, items, numbers,
                                    difference.empty() ? "ok" : "DIFFERENT");
  };
  row("token_ids", v.texts, "", v.ids_difference);
  for (const Check& check : v.checks) {
    row(check.tensor, check.items,
        fmt::format("{:.3g}{:>13.6f}", check.deviation.max_diff(), check.deviation.mean_cosine()),
        check.difference);
  }
  if (!v.tokenizer_problem.empty()) {
    out += fmt::format("  token_ids are the reference's: {}\n", printable(v.tokenizer_problem));
  }
  if (v.ok()) return out + "  ok\n";
  return out + fmt::format("  first difference: {}\n", printable(v.first_difference()));
}

std::string to_json(const Verification& v) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  Json tensors = Json::array();
  for (const Check& check : v.checks) {
    tensors.push_back({{"tensor", check.tensor},
                       {"items", check.items},
                       {"max_diff", check.deviation.max_diff()},
                       {"mean_cosine", check.deviation.mean_cosine()},
                       {"ok", check.difference.empty()}});
  }
  return one_line({{"model", v.folder},
                   {"family", v.family},
                   {"precision", to_string(v.precision)},
                   {"atol", v.golden.atol},
                   {"rtol", v.golden.rtol},
                   {"least_mean_cosine", Verification::kLeastCosine},
                   {"items", v.golden.items.size()},
                   {"texts", v.texts},
                   {"tokenizer_problem", text_or_null(v.tokenizer_problem)},
                   {"ids_ok", v.ids_difference.empty()},
                   {"tensors", tensors},
                   {"ok", v.ok()},
                   {"first_difference", text_or_null(v.first_difference())}}) +
         "\n";
}

constexpr const char* kVerifyFooter = R"(golden.json names the inputs and the tolerance:
  {"atol": 1e-5, "rtol": 1e-4, "items": [{"text": "Tom bit a dog.", "ids": [2, 1042, 3]}]}
where "text" may be null, and "text_pair", "token_type_ids" and "logits" (of a classification
head) may be added. golden.safetensors holds, for item i and layer l, {i}.hidden_states.{l},
{i}.attentions.{l} and {i}.last_hidden_state, as infer --save writes them. Without it only
logits are compared.

The table has, for each tensor, the largest difference and the mean cosine of its rows with the
reference's. In float32 every number must be within the tolerance. In lower precisions verify
passes if the mean cosine of the last layer's states is at least 0.99, and so is that of all logits
taken as one vector.

Examples:
  infer verify sinusoidal
  infer verify --precision int8 sinusoidal
  infer verify checkpoints/*)";

}  // namespace

int verify(int argc, char** argv) {
  CommonOptions common;
  std::vector<std::string> folders;
  CommandLine line("infer verify",
                   "Compares each model with the golden.json and golden.safetensors beside it.",
                   kVerifyFooter);
  line.words("DIR", "folders of models, or bundled models' names", folders);
  suggest_models(line);
  add_links(line, common);
  add_run(line, common);
  if (const auto done = line.parse(argc, argv)) return *done;
  if (folders.empty()) throw UsageError("verify: no folder was given");

  if (!common.quiet) note_slow(precision_of(common));
  Output output;
  int result = 0;
  for (const std::string& folder : folders) {
    try {
      const Verification v = verify_folder(folder, common);
      common.json ? output.write(to_json(v)) : output.show(to_text(v, output));
      if (!v.ok() && result == 0) result = kCheckFailed;
    } catch (const std::exception&) {  // the other folders are still worth checking
      const int code = report_current_exception();
      if (result <= kCheckFailed) result = code;
    }
  }
  return result;
}

}  // namespace infer
