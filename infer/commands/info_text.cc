// What infer info prints for people.
#include "infer/commands/info_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "infer/render/terminal.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

std::string yes_no(bool value) { return value ? "yes" : "no"; }

/// "1 layer", "6 layers".
std::string count(int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string describe_rows(const Json& position) {
  if (position["kind"] == "none") return "none are added";
  if (position["kind"] == "relative_bias") {
    return fmt::format("relative bias, {} buckets up to distance {}, without end",
                       position["num_buckets"].get<int64_t>(),
                       position["max_distance"].get<int64_t>());
  }
  std::string text =
      position["kind"] == "sinusoidal"
          ? fmt::format("sinusoidal, layout {}, base {}", position["layout"].get<std::string>(),
                        position["base"].get<double>())
          : position["kind"].get<std::string>();
  text += fmt::format(", first position {}", position["first_position"].get<int64_t>());
  if (position["table_rows"].is_null()) return text + ", without end";
  return text + fmt::format(", {} rows, {} usable", position["table_rows"].get<int64_t>(),
                            position["usable_positions"].get<int64_t>());
}

/// All of them, or the first and how many.
std::string describe_names(const Json& names, size_t most) {
  if (names.empty()) return "none";
  auto shown = names.get<std::vector<std::string>>();
  const bool all = shown.size() <= most;
  shown.resize(std::min(most, shown.size()));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     all ? "" : fmt::format(", … ({} in all; --json lists them)", names.size()));
}

std::string describe_vectors(const Json& sentence) {
  if (sentence.contains("problem")) return "none: " + sentence["problem"].get<std::string>();
  std::string text =
      fmt::format("{}, {} numbers ({})", sentence["pooling"].get<std::string>(),
                  sentence["width"].get<int64_t>(),
                  sentence["source"].is_null() ? "the default: no sentence-transformers files"
                                               : sentence["source"].get<std::string>());
  if (!sentence["max_tokens"].is_null()) {
    text += fmt::format("; texts cut to {} tokens", sentence["max_tokens"].get<int64_t>());
  }
  if (!sentence["prompt"].get<std::string>().empty()) {
    text += fmt::format("; after \"{}\"", sentence["prompt"].get<std::string>());
  }
  return text;
}

std::string describe_file(const Json& info) {
  std::vector<std::string> dtypes;
  for (const auto& [name, number] : info["dtypes"].items()) {
    dtypes.push_back(fmt::format("{} in {}", count(number.get<int64_t>(), "tensor"), name));
  }
  return fmt::format("{:.1f} MB; {}", info["bytes_on_disk"].get<double>() / 1e6,
                     fmt::join(dtypes, ", "));
}

std::string describe_memory(const Json& bytes) {
  const std::string in_place = fmt::format("{:.1f} MB embeddings read from the file as needed",
                                           bytes["in_place"].get<double>() / 1e6);
  if (bytes["packed"].is_null()) return in_place;
  return fmt::format("{:.1f} MB packed, {}", bytes["packed"].get<double>() / 1e6, in_place);
}

std::string describe_precision(const Json& precision) {
  std::string text = fmt::format("auto is {} here", precision["auto"].get<std::string>());
  for (const auto& [name, why] : precision["slow"].items()) {
    text += fmt::format("; {} is slow: {}", name, why.get<std::string>());
  }
  return text;
}

std::string describe_sizes(const Json& info) {
  const auto size = [&](const char* key) { return info[key].get<int64_t>(); };
  std::string text = fmt::format(
      "{}, d_model {}, {}, d_ff {}, vocabulary {}", count(size("num_layers"), "layer"),
      size("d_model"), count(size("num_heads"), "head"), size("d_ff"), size("vocab_size"));
  if (size("head_dim") * size("num_heads") != size("d_model")) {
    text += fmt::format(", heads {} wide", size("head_dim"));
  }
  if (size("embedding_width") != size("d_model")) {
    text += fmt::format(", embedding {} wide", size("embedding_width"));
  }
  if (size("layer_groups") != size("num_layers")) {
    text += fmt::format(", weights for {} of the layers, shared by all", size("layer_groups"));
  }
  return text;
}

}  // namespace

std::string info_text(const Json& info, int width) {
  const auto size = [&](const char* key) { return info[key].get<int64_t>(); };
  const auto name = [&](const char* key) { return info[key].get<std::string>(); };
  const Json& trained = info["position"]["trained_length"];
  const Json& tokenizer = info["tokenizer"];
  std::vector<std::pair<const char*, std::string>> lines = {
      {"folder", name("folder")},
      {"family", name("family")},
      {"sizes", describe_sizes(info)},
      {"norm", fmt::format("{}-norm, {}, eps {}; after the embedding: {}; at the end: {}",
                           name("norm_order"), name("norm"), info["norm_eps"].get<double>(),
                           yes_no(info["embedding_norm"]), yes_no(info["final_norm"]))},
      {"linear maps",
       fmt::format("{} bias; attention scores {}", info["linear_bias"] ? "with" : "without",
                   info["scale_scores"] ? "scaled" : "not scaled")},
      {"activation", name("activation") + (info["gated_mlp"] ? ", gated" : "")},
      {"embedding scale", fmt::format("{}", info["embedding_scale"].get<double>())},
      {"positions", describe_rows(info["position"])},
      {"trained on",
       trained.is_null() ? "not said" : fmt::format("at most {} tokens", trained.get<int64_t>())},
      {"tokenizer", tokenizer["description"].is_null()
                        ? "none: " + tokenizer["problem"].get<std::string>()
                        : fmt::format("{}: {}", tokenizer["description"].get<std::string>(),
                                      tokenizer["frame"].get<std::string>())},
      {"sentence vectors", describe_vectors(info["sentence"])},
      {"MLM head", yes_no(info["mlm_head"])},
      {"parameters", fmt::format("{}", size("parameters"))},
      {"on disk", describe_file(info)},
      {"in memory", describe_memory(info["bytes_in_memory"])},
      {"precision", describe_precision(info["precision"])},
      {"unused tensors", describe_names(info["unused_tensors"], 5)},
      {"unused keys", describe_names(info["unused_keys"], 100)},
      {"versions", name("versions")},
  };
  for (const Json& note : info["notes"]) lines.emplace_back("note", note.get<std::string>());
  constexpr int kLabel = 17;
  std::string out;
  for (const auto& [label, value] : lines) {
    out += fmt::format("{:<{}}{}\n", label, kLabel, wrapped(printable(value), kLabel, width));
  }
  return out;
}

}  // namespace infer
