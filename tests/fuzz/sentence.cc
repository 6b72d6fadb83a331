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
  const std::string pooling = R"({"word_embedding_dimension": 12, "pooling_mode_cls_token": false,
"pooling_mode_mean_tokens": true})";
  const std::string modules = R"([
{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
{"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
{"idx": 3, "name": "3", "path": "3_Normalize", "type": "sentence_transformers.models.Normalize"}])";
  const Parts all = {
      {"modules.json", modules},
      {"1_Pooling/config.json", pooling},
      {"2_Dense/config.json", R"({"in_features": 12, "out_features": 4, "bias": true,
"activation_function": "torch.nn.modules.activation.Tanh"})"},
      {"sentence_bert_config.json", R"({"max_seq_length": 16, "do_lower_case": false})"},
      {"config_sentence_transformers.json",
       R"({"prompts": {"query": "q: ", "document": "d: "}, "default_prompt_name": "query",
"similarity_fn_name": "cosine"})"}};
  Parts two = all;
  two.erase("modules.json");
  two["1_Pooling/config.json"] =
      R"({"pooling_mode": ["cls", "max"], "word_embedding_dimension": 12})";
  Parts tokens = {{"modules.json", R"([
{"path": "", "type": "sentence_transformers.models.Transformer"},
{"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
{"path": "3_MultiVectorMask", "type": "sentence_transformers.modules.MultiVectorMask"},
{"path": "4_Normalize", "type": "sentence_transformers.models.Normalize"}])"},
                  {"2_Dense/config.json", R"({"in_features": 12, "out_features": 4, "bias": true,
"activation_function": "torch.nn.modules.activation.Tanh", "module_input_name": "token_embeddings",
"module_output_name": "token_embeddings"})"},
                  {"3_MultiVectorMask/config.json",
                   R"({"skiplist_words": ["b"], "skiplist_tasks": ["document"]})"},
                  {"sentence_bert_config.json", R"({"document_length": 9, "query_length": 8,
"query_expansion": {"strategy": "min", "length": 7, "token": "c", "attend": false}})"},
                  {"config_sentence_transformers.json", R"({"model_type": "MultiVectorEncoder"})"}};
  Parts pylate = tokens;
  pylate.erase("sentence_bert_config.json");
  pylate["config_sentence_transformers.json"] = R"({"query_prefix": "a ", "document_prefix": "b",
"query_length": 9, "do_query_expansion": false, "skiplist_words": ["c"], "similarity_fn_name": "MaxSim"})";
  return {input_of(all), input_of(two), input_of(tokens), input_of(pylate)};
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
