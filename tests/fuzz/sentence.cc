// sentence-transformers' files beside a small BERT: what loads also embeds.
#include "tests/fuzz/fuzz.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
namespace {

constexpr std::string_view kSentenceFiles[] = {
    "modules.json",          "sentence_bert_config.json", "config_sentence_transformers.json",
    "1_Pooling/config.json", "2_Dense/config.json",       "3_MultiVectorMask/config.json"};

bool run_sentence(std::string_view bytes) {
  static const BertFolder bert({});
  static const Folder folder;
  static const bool made = [] {
    std::filesystem::copy(bert.path(), folder.path(), std::filesystem::copy_options::recursive);
    folder.write("2_Dense/model.safetensors",
                 safetensors_bytes({{"linear.weight", {4, 12}}, {"linear.bias", {4}}}));
    return true;
  }();
  static_cast<void>(made);
  folder.write(parts_of(bytes, "modules.json", kSentenceFiles), kSentenceFiles);
  return survive([&] {
    Encoder encoder(Model::load(folder.path()), {.threads = 1});
    if (!encoder.model().has_token_vectors()) {
      static_cast<void>(encoder.embed({"a b", "c"}));
      return;
    }
    for (const TextRole role : {TextRole::kQuery, TextRole::kDocument}) {
      const TokenRows made = encoder
                                 .embed({"a b", "c"}, {.kinds = {VectorKind::kTokens},
                                                       .role = role,
                                                       .offset_unit = OffsetUnit::kBytes})
                                 .tokens;
      require(made.offsets[2] * made.width == std::ssize(made.values), "each token has a vector");
      require(made.spans.size() == made.ids.size(), "each vector has a place");
    }
  });
}

std::vector<std::string> sentence_seeds() {
  std::vector<std::string> inputs;
  const json seeds = json::parse(std::ifstream(fixture("sentence_seeds.json")));
  for (const json& files : seeds) {
    Parts parts;
    for (const auto& [name, content] : files.items()) parts[name] = content.dump();
    inputs.push_back(input_of(parts));
  }
  return inputs;
}

}  // namespace

Fuzzer sentence_fuzzer() {
  return {.name = "sentence", .run = run_sentence, .seeds = sentence_seeds, .words = words(R"(
===\smodules.json\n ===\s1_Pooling/config.json\n ===\s2_Dense/config.json\n
===\ssentence_bert_config.json\n ===\sconfig_sentence_transformers.json\n "path" "type" "idx"
"name" "../" "/etc" "sentence_transformers.models.Pooling" "pooling_mode" "include_prompt"
"query_expansion" "document_length" "query_prefix" "do_query_expansion" "skiplist_words"
"sentence_transformers.modules.MultiVectorMask" "meanmaxsim" "keep_only_token_ids"
"prompts" "max_seq_length" "pooling_mode_lasttoken" "pooling_mode_weightedmean_tokens"
"pooling_mode_mean_sqrt_len_tokens" "torch.nn.modules.linear.Identity" null 9223372036854775807
1.5)")};
}

}  // namespace phasor::fuzz
