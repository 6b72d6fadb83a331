// How texts are prepared: read_text_config().
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "files/config_reader.h"
#include "files/files.h"
#include "models/sentence_files.h"
#include "phasor/errors.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostTextTokens = int64_t{1} << 30;

/// A length in tokens that a tokenizer or a call is given; those without a limit have 1e30.
int64_t read_length(const ConfigReader& reader, ConfigReader::Keys keys) {
  const double limit = reader.number(keys, 0, 1e300, 1e30);
  if (limit < 1) reader.refuse(*keys.begin(), "a number of tokens");
  return limit < static_cast<double>(kMostTextTokens) ? static_cast<int64_t>(limit) : 0;
}

void refuse_others(const ConfigReader& options, std::initializer_list<std::string_view> followed) {
  for (const std::string& key : options.keys()) {
    if (std::ranges::find(followed, key) != followed.end()) continue;
    options.fail(ErrorCode::kUnsupported, "{} is not followed; remove it", value_text(key));
  }
}

/// Options that sentence-transformers passes when it loads the tokenizer.
void read_loading(const ConfigReader& sentence, TextConfig& config) {
  for (const char* const key : {"processor_kwargs", "tokenizer_args"}) {
    if (!sentence.has(key)) continue;
    const ConfigReader options = sentence.object(key);
    if (options.has("model_max_length"))
      config.max_tokens = read_length(options, {"model_max_length"});
    refuse_others(options, {"model_max_length", "use_fast", "padding_side"});
  }
  for (const char* const key : {"model_kwargs", "model_args"}) {
    if (sentence.has(key)) sentence.object(key);  // its keys are known, or noted
  }
  for (const char* const key : {"config_kwargs", "config_args"}) {
    const nlohmann::json* const options = sentence.value(key);
    if (options != nullptr && !options->empty()) {
      sentence.unsupported(key, "empty: phasor takes config.json as it is");
    }
  }
}

/// Options that it passes with every text: {"text": {"max_length": 128, …}, …}.
void read_processing(const ConfigReader& sentence, TextConfig& config) {
  if (!sentence.has("processing_kwargs")) return;
  const ConfigReader all = sentence.object("processing_kwargs");
  for (const char* const key : {"text", "common"}) {  // the last counts
    if (!all.has(key)) continue;
    const ConfigReader options = all.object(key);
    if (options.has("max_length")) config.max_tokens = read_length(options, {"max_length"});
    config.special_tokens = options.boolean({"add_special_tokens"}, config.special_tokens);
    const nlohmann::json* const truncation = options.value("truncation");
    if (truncation != nullptr && *truncation != true && *truncation != "longest_first") {
      options.unsupported("truncation", "true or \"longest_first\"");
    }
    refuse_others(options, {"add_special_tokens", "max_length", "padding", "padding_side",
                            "pad_to_multiple_of", "return_tensors", "truncation"});
  }
}

/// Checks the Transformer module's output: the last hidden states, or logits.
void check_task(const ConfigReader& sentence) {
  const auto check = [](const ConfigReader& reader, const char* key,
                        std::initializer_list<std::string_view> allowed) {
    const std::string value = reader.text({key}, std::string(*allowed.begin()));
    if (std::ranges::find(allowed, value) != allowed.end()) return;
    reader.unsupported(key, "one of: {}", fmt::join(allowed, ", "));
  };
  check(sentence, "transformer_task",
        {"feature-extraction", "sequence-classification", "fill-mask"});
  check(sentence, "module_output_name", {"token_embeddings", "scores"});
  if (!sentence.has("modality_config")) return;
  const ConfigReader modalities = sentence.object("modality_config");
  if (!modalities.has("text")) modalities.fail("it has no text, and phasor runs only texts");
  const ConfigReader text = modalities.object("text");
  check(text, "method", {"forward"});
  check(text, "method_output_name", {"last_hidden_state", "logits"});
}

/// How many tokens of a text are run: sentence_bert_config.json's, otherwise the tokenizer's own.
void read_lengths(ModelFolder& folder, TextConfig& config) {
  config.max_tokens = read_length(folder.object(kTokenizerConfig), {"model_max_length", "max_len"});
  const ConfigReader sentence = folder.object(sentence_file(folder));
  check_task(sentence);
  if (sentence.has("max_seq_length")) {
    config.max_tokens = sentence.integer({"max_seq_length"}, 1, kMostTextTokens);
  }
  read_loading(sentence, config);
  read_processing(sentence, config);
}

void read_prompts(const ConfigReader& file, TextConfig& config) {
  constexpr size_t kMostBytes = 1 << 16, kMostPrompts = 1024;
  if (file.has("prompts")) {
    const ConfigReader prompts = file.object("prompts");
    const std::vector<std::string> names = prompts.keys();
    if (names.size() > kMostPrompts)
      prompts.fail("it has {} prompts; at most {} are read", names.size(), kMostPrompts);
    for (const std::string& name : names) {
      const std::string prompt = prompts.text({name}, "");
      if (prompt.size() > kMostBytes) {
        prompts.fail("the prompt {} has {} bytes; at most {} are read", value_text(name),
                     prompt.size(), kMostBytes);
      }
      config.prompts.emplace(name, prompt);
    }
  }
  const std::string name = file.text({"default_prompt_name"}, "");
  if (name.empty()) return;
  const auto found = config.prompts.find(name);
  if (found == config.prompts.end() && (name == "query" || name == "document")) return;  // ""
  if (found == config.prompts.end())
    file.refuse("default_prompt_name", "a name of one of its prompts");
  config.prompt = found->second;
}

}  // namespace

TextConfig read_text_config(ModelFolder& transformer, ModelFolder& folder) {
  TextConfig config;
  read_lengths(transformer, config);
  read_prompts(folder.object(kSentenceConfig), config);
  return config;
}

}  // namespace phasor::internal
