#include "models/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "files/files.h"

namespace phasor::internal {
namespace {

/// Types of decoders, which users often try.
constexpr std::string_view kDecoders[] = {
    "bloom",   "codegen", "cohere",  "dbrx",     "deepseek_v2", "deepseek_v3", "falcon",
    "gemma",   "gemma2",  "gemma3",  "gpt2",     "gpt_bigcode", "gpt_neo",     "gpt_neox",
    "gpt_oss", "gptj",    "granite", "internlm", "llama",       "llama4",      "mamba",
    "mistral", "mixtral", "mpt",     "olmo",     "opt",         "phi",         "phi3",
    "qwen",    "qwen2",   "rwkv",    "stablelm", "starcoder2",  "xglm"};

/// In every family; null means that the key must not be set.
constexpr FixedKey kEverywhere[] = {{"is_causal", "false"},
                                    {"is_decoder", "false"},
                                    {"pruned_heads", "{}"},
                                    {"quantization_config", "null"},
                                    {"sliding_window", "null"}};

constexpr const char* kPositionType = "position_embedding_type";

/// Prefixes of keys about positions, which phasor follows in some families only. Encoders with
/// custom code keep the model_type of the family they derive from.
constexpr std::string_view kOtherPositions[] = {"alibi", "relative_key", "rope", "rotary"};

void check(const ConfigReader& reader, const FixedKey& fixed, const Family& family) {
  const nlohmann::json* const value = reader.value(fixed.key);
  if (value == nullptr || *value == *parse_json(fixed.value, fixed.key)) return;
  reader.unsupported(fixed.key, "{}: phasor implements nothing else for {} models",
                     fixed.value == "null" ? "absent" : fixed.value, family.model_type);
}

bool asks_for_nothing(const nlohmann::json& value) {
  return value.is_null() || value == false || value == 0;
}

}  // namespace

const Family& family_of(const ConfigReader& reader) {
  std::vector<std::string_view> known;
  for (const Family& row : families()) {
    if (std::ranges::find(known, row.model_type) == known.end()) known.push_back(row.model_type);
  }
  const std::string allowed = fmt::format("one of: {}", fmt::join(known, ", "));
  if (!reader.has("model_type")) {
    reader.refuse("model_type", "{}",
                  allowed + R"(. Old files lack it: add a line like "model_type": "bert",)");
  }
  const std::string model_type = reader.text({"model_type"});
  const nlohmann::json* const positions = reader.value(kPositionType);
  const Family* const family =
      find_family(model_type, positions == nullptr ? "\"absolute\"" : positions->dump());
  if (family != nullptr) return *family;
  if (std::ranges::find(kDecoders, model_type) != std::end(kDecoders)) {
    reader.unsupported("model_type",
                       "{}. This one is a decoder, which writes text, and phasor runs encoders; "
                       "for decoders there are llama.cpp and Transformers",
                       allowed);
  }
  const std::string version = reader.text({"transformers_version"}, "");
  reader.unsupported(
      "model_type", "{}",
      version.empty()
          ? allowed
          : fmt::format("{}. The file is from Transformers {}; a later phasor may know this type",
                        allowed, version));
}

void refuse_other_architectures(const ConfigReader& reader, const Family& family) {
  for (const FixedKey& fixed : kEverywhere) {
    const bool is_read = (fixed.key == "is_causal" && family.causal) ||
                         (family.local && fixed.key == family.local->window_key) ||
                         (fixed.key == "sliding_window" && family.groups_queries);
    if (!is_read) check(reader, fixed, family);
  }
  for (const FixedKey& fixed : family.fixed_keys) check(reader, fixed, family);
  if (!family.position_embedding_type.empty()) {
    check(reader, {kPositionType, family.position_embedding_type}, family);
  }
  for (const std::string& key : reader.keys()) {
    const bool other = std::ranges::any_of(
        kOtherPositions, [&](std::string_view beginning) { return key.starts_with(beginning); });
    if (!other || (family.rotary && is_rotary_key(key))) continue;
    const nlohmann::json* const value = reader.value(key);
    if (value != nullptr && !asks_for_nothing(*value)) {
      reader.unsupported(key, "absent: phasor implements no such positions");
    }
  }
}

}  // namespace phasor::internal
