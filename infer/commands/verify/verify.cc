// infer verify DIR…: a model beside its reference activations, layer by layer, and what a lower
// precision costs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/commands/verify/verification.h"
#include "infer/experiment/deviation.h"
#include "infer/render/terminal.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

/// A row for each tensor: within the tolerance or not.
std::string exact_rows(const Verification& v) {
  std::string out;
  for (const Check* check : v.checks()) {
    if (check->items == 0) continue;
    out += fmt::format("  {:<18} max |diff| {:<9.3g} {}\n", check->tensor, check->max_diff,
                       check->ok() ? "ok" : "DIFFERENT");
  }
  return out;
}

/// A row for each hidden state: how far it is from the reference's.
std::string deviation_rows(const Verification& v) {
  std::string out = deviation_head() + "\n";
  for (size_t l = 0; l < v.hidden.size(); ++l) {
    out += deviation_row(l, v.hidden[l].deviation) + "\n";
  }
  return out;
}

std::string to_text(const Verification& v, const Output& output) {
  const std::string bound =
      v.exact() ? fmt::format("|got - want| <= {} + {}*|want|", v.golden.atol, v.golden.rtol)
                : fmt::format("{}, the last state's mean cosine >= {}", to_string(v.precision),
                              Verification::kLeastCosine);
  std::string out = output.heading(printable(v.folder)) +
                    fmt::format(": {}, {} items, {}\n", v.family, v.golden.items.size(), bound);
  if (!v.tokenizer_problem.empty()) {
    out += fmt::format("  token ids from the reference, not from text: {}\n",
                       printable(v.tokenizer_problem));
  } else {
    out += fmt::format("  token ids of {} texts: {}\n", v.texts,
                       v.ids_difference.empty() ? "equal" : "DIFFERENT");
  }
  out += v.exact() ? exact_rows(v) : deviation_rows(v);
  const std::string difference = printable(v.first_difference());
  return out + (v.ok() ? "  ok\n" : fmt::format("  first difference: {}\n", difference));
}

std::string to_json(const Verification& v) {
  Json tensors = Json::array();
  for (const Check* check : v.checks()) {
    if (check->items == 0) continue;
    tensors.push_back({{"tensor", check->tensor},
                       {"items", check->items},
                       {"max_diff", check->max_diff},
                       {"ok", check->ok()}});
    if (check->deviation.tokens() > 0) tensors.back().update(deviation_json(check->deviation));
  }
  Json json;
  json["model"] = v.folder;
  json["family"] = v.family;
  json["precision"] = to_string(v.precision);
  json["items"] = v.golden.items.size();
  if (v.exact()) {
    json["atol"] = v.golden.atol;
    json["rtol"] = v.golden.rtol;
  } else {
    json["least_mean_cosine"] = Verification::kLeastCosine;
  }
  json["texts"] = v.texts;
  json["tokenizer_problem"] = v.tokenizer_problem.empty() ? Json() : Json(v.tokenizer_problem);
  json["ids_ok"] = v.ids_difference.empty();
  json["tensors"] = tensors;
  json["ok"] = v.ok();
  json["first_difference"] = v.ok() ? Json() : Json(v.first_difference());
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

constexpr const char* kFooter = R"(golden.json names the inputs and the tolerance:
  {"atol": 1e-5, "rtol": 1e-4, "items": [{"text": "Tom bit a dog.", "ids": [2, 1042, 3]}]}
where "text" may be null. golden.safetensors holds, for item i and layer l, {i}.hidden_states.{l},
{i}.attentions.{l} and {i}.last_hidden_state, as infer --save writes them.

In lower precision each hidden state shows what that costs: the largest difference, the
length of the difference beside the reference's, and the mean and least cosine of a token's
state with the reference's. The check is that the last one's mean cosine is at least 0.99.

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
                   kFooter);
  line.words("DIR", "folders of models, or bundled models' names", folders);
  add_threads(line, common);
  add_precision(line, common);
  add_json_and_quiet(line, common);
  if (const auto done = line.parse(argc, argv)) return *done;
  if (folders.empty()) throw UsageError("verify: no folder was given");

  if (!common.quiet) note_slow(common.precision);
  Output output;
  int result = 0;
  for (const std::string& folder : folders) {
    try {
      const Verification v = verify_folder(folder, common.threads, common.precision);
      output.write(common.json ? to_json(v) : to_text(v, output));
      if (!v.ok() && result == 0) result = kCheckFailed;
    } catch (const std::exception&) {  // the other folders are still worth checking
      const int code = report_current_exception();
      if (result <= kCheckFailed) result = code;
    }
  }
  return result;
}

}  // namespace infer
