// config.json of every family, and what is said about keys that phasor cannot follow.
#include "models/config_keys.h"
#include "models/model_config.h"
#include "tests/support/tiny_model.h"

namespace phasor {
using namespace internal;

namespace {

CheckpointConfig read(const json& config) {
  const TempFolder folder;
  folder.write_json("config.json", config);
  ModelFolder files(folder.path());
  return read_model_config(files);
}

void expect_config_refused(const json& config, std::vector<std::string> words) {
  words.push_back("config.json");
  EXPECT_REFUSED(read(config), words);
}

json with(json config, const std::string& key, const json& value) {
  config[key] = value;
  return config;
}

json bert() {
  return json::parse(R"({"model_type": "bert", "hidden_size": 8, "intermediate_size": 16,
    "num_hidden_layers": 3, "num_attention_heads": 2, "vocab_size": 30, "hidden_act": "gelu",
    "max_position_embeddings": 12, "type_vocab_size": 2, "pad_token_id": 0,
    "layer_norm_eps": 1e-12})");
}

json fairseq(const std::string& model_type) {
  return json::parse(R"({"d_model": 8, "encoder_ffn_dim": 16, "encoder_layers": 3,
    "encoder_attention_heads": 2, "vocab_size": 30, "activation_function": "swish",
    "max_position_embeddings": 12, "pad_token_id": 1, "scale_embedding": true,
    "decoder_layers": 5, "num_hidden_layers": 5, "model_type": ")" +
                     model_type + "\"}");
}

TEST(ConfigTest, PhasorSpellsEverythingOut) {
  json config = small_config_json();
  config.update(json::parse(R"({"norm_order": "pre", "norm": "rms_norm", "activation": "silu",
    "embedding_norm": true, "final_norm": true, "mlm_head": true, "layer_norm_eps": 0.25,
    "d_head": 3, "d_embedding": 6, "num_layer_groups": 1, "gated_mlp": true, "linear_bias": false,
    "scale_scores": false,
    "position": {"kind": "sinusoidal", "layout": "t2t", "base": 500, "first_position": 3}})"));
  const CheckpointConfig read_back = read(config);
  const ModelConfig expected{.family = "phasor",
                             .d_model = 4,
                             .d_ff = 6,
                             .num_layers = 2,
                             .num_heads = 2,
                             .d_head = 3,
                             .d_embedding = 6,
                             .num_layer_groups = 1,
                             .vocab_size = 5,
                             .max_positions = 7,
                             .norm_order = NormOrder::kPreNorm,
                             .norm = NormKind::kRmsNorm,
                             .activation = Activation::kSilu,
                             .norm_eps = 0.25f,
                             .gated_mlp = true,
                             .linear_bias = false,
                             .scale_scores = false,
                             .embedding_scale = 2.0f,
                             .embedding_norm = true,
                             .final_norm = true,
                             .position = {.kind = PositionKind::kSinusoidal,
                                          .layout = SinusoidalLayout::kT2T,
                                          .base = 500.0,
                                          .first_position = 3}};
  EXPECT_EQ(read_back.config, expected);
  EXPECT_TRUE(read_back.needs_mlm_head);
  EXPECT_TRUE(read_back.notes.empty());
}

TEST(ConfigTest, PhasorMayHaveARelativeBiasAndReadsEveryLayoutByItsName) {
  json config = small_config_json();
  config["position"] = {{"kind", "none"}, {"bias", "buckets"}, {"num_buckets", 8}};
  const PositionConfig position = read(config).config.position;
  EXPECT_EQ(position.bias, ScoreBias::kBuckets);
  EXPECT_EQ(describe(position), "bias (buckets)");
  json both = small_config_json();
  both["position"]["bias"] = "alibi";
  EXPECT_EQ(describe(read(both).config.position), "learned + bias (alibi)");
  both["position"]["bias"] = "kerple";
  expect_config_refused(both, {"bias", "\"kerple\"", "none, buckets, alibi"});
  EXPECT_EQ(position.num_buckets, 8);
  EXPECT_EQ(position.max_distance, 128);
  for (const std::string_view name : names<SinusoidalLayout>().all) {
    const json layout = {{"kind", "sinusoidal"}, {"layout", name}};
    const auto named = read(with(small_config_json(), "position", layout)).config.position;
    EXPECT_EQ(named.layout, parse<SinusoidalLayout>(name));
    EXPECT_EQ(named.base, 10000.0);
  }
}

json t5(const std::string& model_type = "t5") {
  return json::parse(R"({"d_model": 8, "d_ff": 16, "num_layers": 3, "num_decoder_layers": 5,
    "num_heads": 2, "d_kv": 6, "vocab_size": 30, "model_type": ")" +
                     model_type + "\"}");
}

json of_type(const std::string& model_type) {
  json config = with(bert(), "model_type", model_type);
  if (model_type == "albert") config["embedding_size"] = 4;
  return config;
}

// families_test.cc compares the whole configuration of files that have all keys.
TEST(ConfigTest, AKeyThatIsAbsentHasItsFamilysDefault) {
  const auto without = [](json config, const std::vector<std::string>& keys) {
    for (const std::string& key : keys) config.erase(key);
    return read(config).config;
  };
  EXPECT_EQ(without(fairseq("marian"), {"scale_embedding"}).embedding_scale, 1.0f);
  const ModelConfig m2m = without(fairseq("m2m_100"), {"scale_embedding", "activation_function"});
  EXPECT_FLOAT_EQ(m2m.embedding_scale, std::sqrt(8.0f));
  EXPECT_EQ(m2m.activation, Activation::kRelu);
  const ModelConfig relative = without(t5(), {"d_kv"});
  EXPECT_EQ(relative.head_dim(), 64);
  EXPECT_EQ(relative.position.num_buckets, 32);
  EXPECT_EQ(relative.position.max_distance, 128);
  EXPECT_EQ(relative.activation, Activation::kRelu);
  EXPECT_FALSE(relative.gated_mlp);
  EXPECT_EQ(relative.norm_eps, 1e-6f);
  EXPECT_EQ(without(of_type("albert"), {"hidden_act"}).activation, Activation::kGeluTanh);
}

TEST(ConfigTest, T5sFeedForwardNamesGateAndActivationAtOnce) {
  json spelled_out = with(t5(), "feed_forward_proj", "relu");
  spelled_out["dense_act_fn"] = "gelu_new";
  spelled_out["is_gated_act"] = true;
  const auto proj = [](const char* name) { return with(t5(), "feed_forward_proj", name); };
  for (const auto& [config, gated, activation] :
       {std::tuple(proj("gated-gelu"), true, Activation::kGeluTanh),
        std::tuple(proj("gated-silu"), true, Activation::kSilu),
        std::tuple(proj("gelu"), false, Activation::kGeluErf),
        std::tuple(t5("mt5"), true, Activation::kGeluTanh),
        std::tuple(spelled_out, true, Activation::kGeluTanh)}) {
    EXPECT_EQ(read(config).config.gated_mlp, gated) << config;
    EXPECT_EQ(read(config).config.activation, activation) << config;
  }
}

TEST(ConfigTest, LayersAndNamesOfOneValueAreSharedAndSomeFamiliesCodeFixesTheEpsilon) {
  ModelConfig config;
  config.num_layers = 18;
  config.num_layer_groups = 14;
  EXPECT_EQ(config.block_of(9), 6);  // 9 / (18 / 14.) is just below 7
  EXPECT_EQ(config.block_of(17), 13);
  EXPECT_EQ(read(with(fairseq("bart"), "layer_norm_eps", 0.5)).config.norm_eps, 1e-5f);
  EXPECT_EQ(read(with(bert(), "layer_norm_eps", 0.5)).config.norm_eps, 0.5f);
  EXPECT_NO_THROW(read(with(bert(), "num_layers", 3)));
  EXPECT_EQ(read(with(bert(), "encoder_layers", 1)).config.num_layers, 3);
  EXPECT_EQ(read(with(bert(), "norm_eps", 0.5)).config, read(bert()).config);
  EXPECT_EQ(read(fairseq("bart")).config.num_layers, 3);  // num_hidden_layers is 5
}

TEST(ConfigTest, ActivationsHaveTheNamesOfTransformers) {
  using enum Activation;
  const std::vector<std::pair<Activation, std::vector<const char*>>> all = {
      {kGeluErf, {"gelu", "gelu_python"}},
      {kGelu10, {"gelu_10"}},
      {kGeluTanh,
       {"gelu_accurate", "gelu_fast", "gelu_new", "gelu_python_tanh", "gelu_pytorch_tanh"}},
      {kHardswish, {"hardswish"}},
      {kLaplace, {"laplace"}},
      {kLeakyRelu, {"leaky_relu"}},
      {kIdentity, {"linear"}},
      {kMish, {"mish"}},
      {kQuickGelu, {"quick_gelu"}},
      {kRelu, {"relu"}},
      {kRelu2, {"relu2"}},
      {kRelu6, {"relu6"}},
      {kSigmoid, {"sigmoid"}},
      {kSilu, {"silu", "swish"}},
      {kTanh, {"tanh"}}};
  for (const auto& [activation, spellings] : all)
    for (const char* const name : spellings)
      EXPECT_EQ(read(with(bert(), "hidden_act", name)).config.activation, activation) << name;
  for (const char* const name : {"prelu", "xielu", "sqrtsoftplus", "GELU"})
    expect_config_refused(with(bert(), "hidden_act", name), {"hidden_act", name, "leaky_relu"});
  EXPECT_EQ(read(with(small_config_json(), "activation", "gelu_tanh")).config.activation,
            kGeluTanh);
}

TEST(ConfigTest, MissingKeysAreNamedAndAnUnknownTypeMayBeOfALaterVersion) {
  for (const char* const key : {"d_model", "d_ff", "num_layers", "num_heads", "vocab_size",
                                "norm_order", "position", "model_type"}) {
    json config = small_config_json();
    config.erase(key);
    expect_config_refused(config, {key, "missing"});
  }
  json config = bert();
  config.erase("max_position_embeddings");
  expect_config_refused(config, {"max_position_embeddings", "missing"});
  config = bert();
  config.erase("model_type");
  expect_config_refused(config, {"model_type is missing", "xlm-roberta", "\"model_type\": \"bert"});
  // null counts as missing.
  EXPECT_EQ(read(with(bert(), "layer_norm_eps", nullptr)).config.norm_eps, 1e-12f);
  expect_config_refused(with(bert(), "hidden_size", nullptr), {"hidden_size", "missing"});
  json unknown = of_type("bert9");
  expect_config_refused(unknown, {"\"bert9\"", "one of: phasor, bert"});
  unknown["transformers_version"] = "9.1.0";
  expect_config_refused(unknown, {"\"bert9\"", "Transformers 9.1.0", "a later phasor"});
}

/// A configuration with one key replaced is refused, and the message has these words.
struct Refusal {
  const char* key;
  json value;
  std::vector<std::string> words;
};

void expect_each_refused(const json& config, const std::vector<Refusal>& rows) {
  for (const auto& [key, value, words] : rows)
    expect_config_refused(with(config, key, value), words);
}

TEST(ConfigTest, ValuesThatNoEncoderHas) {
  expect_each_refused(
      small_config_json(),
      {{"d_model", "four", {"d_model", "\"four\"", "whole number"}},
       {"d_model", 4.5, {"d_model", "4.5"}},
       {"final_norm", "yes", {"final_norm", "\"yes\"", "true"}},
       {"activation", 3, {"activation", "3"}},
       {"layer_norm_eps", "1e-5", {"layer_norm_eps", "\"1e-5\""}},
       {"position", "learned", {"position", "\"learned\""}},
       {"d_model", 0, {"d_model", "0"}},
       {"num_layers", -2, {"num_layers", "-2"}},
       {"vocab_size", 9000000000000000000, {"vocab_size"}},
       {"d_ff", 18446744073709551615u, {"d_ff", "1844674407370955"}},
       {"num_heads", 3, {"4", "multiple", "3"}},
       {"num_heads", 5, {"num_heads", "5"}},
       {"max_positions", 0, {"max_positions", "learned"}},
       {"layer_norm_eps", 0, {"layer_norm_eps", "0"}},
       {"embedding_scale", 1e-300, {"embedding_scale"}}});  // above 0, but not in float32
  expect_each_refused(bert(), {{"model_type", 7, {"model_type", "7"}},
                               {"pad_token_id", 30, {"pad_token_id", "30", "29"}}});
}

TEST(ConfigTest, PositionsThatPhasorDoesNotKnow) {
  const json paper = {{"kind", "sinusoidal"}, {"layout", "paper"}};
  json far = with(paper, "first_position", 1024);  // endless sinusoids would be needed
  EXPECT_EQ(read(with(small_config_json(), "position", far)).config.position.first_position, 1024);
  far["first_position"] = 1 << 24;
  expect_each_refused(
      small_config_json(),
      {{"position", {{"kind", "rotary"}}, {"kind", "\"rotary\"", "sinusoidal, learned, none"}},
       {"position", {{"kind", "sinusoidal"}}, {"layout", "missing"}},
       {"position",
        with(paper, "layout", "papers"),
        {"layout", "\"papers\"", "paper, marian, t2t, fairseq, opennmt"}},
       {"position", with(paper, "base", 1), {"base", "1"}},
       {"position", far, {"first_position is 16777216", "0 to 1024"}}});
  json odd = with(small_config_json(), "d_model", 5);
  odd["num_heads"] = 1;
  expect_config_refused(with(odd, "position", with(paper, "layout", "opennmt")), {"opennmt", "5"});
}

TEST(ConfigTest, WhatPhasorDoesNotImplementIsRefusedByName) {
  expect_each_refused(bert(), {{"model_type", "gpt2", {"model_type", "\"gpt2\"", "bert", "marian"}},
                               {"is_decoder", true, {"is_decoder", "true", "false"}},
                               {"hidden_act", "xielu", {"hidden_act", "\"xielu\"", "gelu"}},
                               // Names of one value that do not agree.
                               {"num_layers", 1, {"num_layers is 1", "num_hidden_layers"}},
                               {"n_heads", 1, {"n_heads is 1", "num_attention_heads"}},
                               {"activation_function", "relu", {"activation_function"}}});
  for (const char* const model_type : {"bart", "marian"})
    expect_config_refused(with(fairseq(model_type), "normalize_before", true),
                          {"normalize_before", "true"});
  for (const char* const model_type : {"gpt2", "llama", "mistral", "qwen2"})
    expect_config_refused(of_type(model_type),
                          {model_type, "decoder", "encoders", "bert", "llama.cpp"});
  expect_each_refused(t5(),
                      {{"feed_forward_proj", "gated-xielu", {"feed_forward_proj", "xielu"}},
                       {"relative_attention_num_buckets", 0, {"num_buckets is 0"}},
                       {"relative_attention_num_buckets", 6, {"num_buckets is 6"}},
                       {"relative_attention_max_distance", 8, {"max_distance is 8", "above 8"}},
                       {"relative_attention_max_distance",
                        1000000000,
                        {"relative_attention_max_distance is 1000000000", "1 to 4096"}}});
  expect_each_refused(of_type("albert"),
                      {{"inner_group_num", 2, {"inner_group_num is 2", "1"}},
                       {"num_hidden_groups", 4, {"num_hidden_groups is 4", "3"}}});
}

TEST(ConfigTest, TheTypeOfPositionsCountsWhereTransformersReadsIt) {
  const json modern = of_type("modernbert");
  EXPECT_EQ(read(with(modern, "position_embedding_type", "sans_pos")).config, read(modern).config);
  for (const char* const type : {"bert", "roberta", "electra"})
    expect_config_refused(with(of_type(type), "position_embedding_type", "relative_key"),
                          {"position_embedding_type", "relative_key", "absolute"});
}

TEST(ConfigTest, KeysThatCouldChangeTheResultAreRefusedInEveryFamily) {
  for (const json& family : {bert(), fairseq("bart"), fairseq("m2m_100")}) {
    expect_each_refused(
        family,
        {{"quantization_config", {{"bits", 4}}, {"quantization_config is {\"bits\":4}", "absent"}},
         {"pruned_heads", {{"0", {1}}}, {"pruned_heads", "{\"0\":[1]}"}},
         {"sliding_window", 128, {"sliding_window is 128"}},
         {"rope_theta", 10000.0, {"rope_theta is 10000.0", "positions"}},
         {"rotary_dim", 64, {"rotary_dim is 64"}}});
    json harmless = with(family, "rotary_value", false);
    harmless["quantization_config"] = nullptr;
    harmless["pruned_heads"] = json::object();
    EXPECT_NO_THROW(read(harmless));
  }
}

TEST(ConfigTest, RotaryPositionsThatPhasorDoesNotImplement) {
  const json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  const json tiny = {{"rope_type", "linear"}, {"factor", 1e-300}};
  expect_each_refused(
      of_type("nomic_bert"),
      {{"rotary_emb_fraction", 0.01, {"rotary_emb_fraction", "2 columns"}},
       {"rotary_emb_base", 1, {"rotary_emb_base is 1", "above 1"}},
       {"rotary_emb_scale_base", 512, {"rotary_emb_scale_base is 512"}},
       {"moe_every_n_layers", 2, {"moe_every_n_layers is 2"}},
       {"rotary_something", 3, {"rotary_something is 3"}},
       {"rope_parameters", yarn, {"rope_parameters", "rope_type is \"yarn\"", "dynamic"}},
       {"rope_parameters", tiny, {"factor is 1e-300"}},
       {"rope_scaling", {{"type", "linear"}}, {"rope_scaling", "factor"}},
       {"rope_scaling", 2, {"rope_scaling is 2", "object"}}});
  const json mixed = {{"type", "ntk"}, {"factor", 2.0}, {"mixed_b", 0.75}};
  expect_each_refused(with(of_type("new"), "position_embedding_type", "rope"),
                      {{"position_embedding_type", "absolute", {"absolute", "\"rope\""}},
                       {"logn_attention_scale", true, {"logn_attention_scale is true"}},
                       {"layer_norm_type", "rms_norm", {"layer_norm_type", "layer_norm"}},
                       {"rope_scaling", mixed, {"mixed_b is 0.75"}}});
  expect_config_refused(with(of_type("roformer"), "rotary_value", true), {"rotary_value is true"});
}

TEST(ConfigTest, ScalingsOfRotaryPositions) {
  const json nomic = of_type("nomic_bert");
  const auto rotary = [&](const json& scaling) {
    return read(with(nomic, "rope_parameters", scaling)).config.position.rotary.value();
  };
  EXPECT_EQ(rotary({{"rope_type", "linear"}, {"factor", 4.0}}).factor, 0.25);
  EXPECT_EQ(rotary({{"rope_theta", 77.0}}).base, 77.0);
  const RotaryConfig dynamic =
      rotary({{"type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 10}});
  EXPECT_EQ(dynamic.ntk_factor, 2.0);
  EXPECT_EQ(dynamic.ntk_length, 10);
  EXPECT_EQ(read(with(nomic, "partial_rotary_factor", 0.5)).config.position.rotary->dims,
            read(with(nomic, "rotary_emb_fraction", 0.5)).config.position.rotary->dims);
  // Both spellings count once, or are refused.
  const json ntk = {{"type", "ntk"}, {"factor", 2.0}};
  const json once = with(nomic, "rope_parameters", ntk);
  EXPECT_EQ(read(with(once, "rope_scaling", ntk)).config.position.rotary->base,
            read(once).config.position.rotary->base);
  expect_config_refused(with(once, "rope_scaling", {{"type", "linear"}, {"factor", 2.0}}),
                        {"rope_scaling", "rope_parameters"});
}

TEST(ConfigTest, LayersOfModernBertThatNobodyDefined) {
  const std::vector<std::string> chunked(bert()["num_hidden_layers"], "chunked_attention");
  const json yarn = {{"full_attention", {{"rope_type", "yarn"}}}, {"sliding_attention", {}}};
  const json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  const json part = {{"sliding_attention", {{"partial_rotary_factor", 0.5}}}};
  expect_each_refused(
      of_type("modernbert"),
      {{"layer_types", {"full_attention"}, {"layer_types names 1 layers"}},
       {"layer_types", chunked, {"layer_types", "sliding_attention"}},
       {"local_attention", 1, {"local_attention is 1", "2 to"}},
       {"global_attn_every_n_layers", 0, {"global_attn_every_n_layers is 0"}},
       {"rope_parameters", yarn, {"full_attention", "yarn"}},
       {"rope_parameters", linear, {"rope_type is \"linear\""}},
       {"rope_scaling", linear, {"rope_scaling", "absent"}},
       {"rope_parameters", part, {"sliding_attention", "partial_rotary_factor is 0.5"}}});
}

TEST(ConfigTest, DisentangledPositionsThatPhasorDoesNotImplement) {
  json deberta = with(of_type("deberta-v2"), "relative_attention", true);
  deberta["pos_att_type"] = "c2p|p2c";
  EXPECT_TRUE(read(deberta).config.position.disentangled->position_to_content);
  EXPECT_TRUE(read(with(deberta, "pos_att_type", "C2P | P2C"))
                  .config.position.disentangled->content_to_position);
  for (const json& types : {json({"C2P"}), json("c2p,p2c"), json(5), json({1})})
    expect_config_refused(with(deberta, "pos_att_type", types), {"pos_att_type"});
  expect_each_refused(deberta, {{"pos_att_type", {"p2p"}, {"pos_att_type", "c2p and p2c"}},
                                {"share_att_key", false, {"share_att_key is false"}},
                                {"conv_kernel_size", 3, {"conv_kernel_size is 3"}},
                                {"position_buckets", 5, {"num_buckets is 5", "even"}},
                                {"norm_rel_ebd", "batch_norm", {"norm_rel_ebd", "layer_norm"}},
                                {"max_relative_positions", 1 << 20, {"max_relative_positions"}}});
}

TEST(ConfigTest, CodeOfTheModelsOwnIsNoted) {
  const json config = with(bert(), "auto_map", {{"AutoModel", "modeling_bert.BertModel"}});
  expect_one_note(read(config).notes, {"auto_map", "plain bert"});
  json jina = with(bert(), "position_embedding_type", "alibi");
  jina["auto_map"] = {{"AutoModel", "modeling_bert.JinaBertModel"}};
  EXPECT_TRUE(read(jina).notes.empty());  // that code is what phasor computes
}

TEST(ConfigTest, FilesThatAreNoConfiguration) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"", {"not valid JSON"}},
           {"{\"model_type\": \"bert\"", {"not valid JSON"}},
           {"[]", {"[]", "object"}},
           {"{\"d_model\": 4, \"d_model\": 8}", {"\"d_model\"", "twice"}},
           {"<!doctype html>", {"HTML"}},
           {"version https://git-lfs.github.com/spec/v1", {"Git LFS"}}}) {
    const TempFolder folder;
    const std::string file = folder.write("config.json", text);
    ModelFolder files(folder.path());
    EXPECT_REFUSED(read_model_config(files), words);
    EXPECT_REFUSED(read_model_config(files), {file});
  }
}

TEST(ModelConfigTest, AMessageIsOneLineWhateverItQuotes) {
  const nlohmann::json json = {{"a\nb\x1b[31m\u202e", {{"c", 1}}}};
  const ConfigReader reader("config\r.json", json);
  try {
    reader.object("a\nb\x1b[31m\u202e").text({"c"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "config .json: a b [31m : c is 1; it must be a text in quotation marks");
  }
  EXPECT_STREQ(ModelError("\xff\t").what(), "\uFFFD ");
}

/// tests/fixtures/keys_written.py says where it comes from.
json keys_written() { return json::parse(std::ifstream(fixture("keys_written.json"))); }

TEST(KnownKeysTest, EveryKeyThatTransformersWritesIntoAConfigIsReadOrChangesNothing) {
  const json written = keys_written(), configs = written.at("config.json");
  ASSERT_GE(configs.size(), 19u);
  for (const auto& [type, own] : configs.items()) {
    json config = written.at("every type");
    config.update(own);
    const TempFolder folder;
    folder.write_json("config.json", config);
    ModelFolder files(folder.path());
    read_model_config(files);
    std::vector<std::string> unused, notes;
    report_others(files, unused, notes);
    EXPECT_TRUE(notes.empty()) << type << ": " << notes.front();
    EXPECT_FALSE(unused.empty());
  }
}

/// A small BERT with the files of sentence-transformers, all with the keys that are written.
class WrittenFolderTest : public testing::Test {
 protected:
  WrittenFolderTest() {
    const json written = keys_written();
    for (const char* const name :
         {"tokenizer_config.json", "special_tokens_map.json", "sentence_bert_config.json",
          "config_sentence_transformers.json"})
      files_[name] = written.at(name);
    files_["modules.json"] = modules_of({"Transformer", "Pooling"});
    files_["1_Pooling/config.json"] = written.at("1_Pooling/config.json");
    for (const char* const width : {"embedding_dimension", "word_embedding_dimension"})
      files_["1_Pooling/config.json"][width] = small_config_json()["d_model"];
  }

  std::shared_ptr<const Model> load() const {
    for (const auto& [name, content] : files_) folder_.write_json(name, content);
    return folder_.load();
  }

  const TinyModel folder_{"small", {{"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"}}};
  std::map<std::string, json> files_;
};

TEST_F(WrittenFolderTest, EveryKeyIsReadOrChangesNothingAndAnAdapterIsRefused) {
  const auto model = load();
  EXPECT_TRUE(model->has_sentence());
  EXPECT_FALSE(mentions(model->notes(), "does not know")) << testing::PrintToString(model->notes());
  EXPECT_TRUE(mentions(model->unused_keys(), "tokenizer_config.json: clean_up_tokenization_space"));
  files_["sentence_bert_config.json"]["modality_config"]["text"]["rounding"] = "up";
  EXPECT_TRUE(mentions(load()->notes(), "modality_config.text.rounding"));
  folder_.write("adapter_config.json", "{}");
  EXPECT_REFUSED(load(), {"adapter_config.json", "merge"});
}

TEST_F(WrittenFolderTest, AKeyThatNobodyKnowsIsNamedInEveryFile) {
  files_["config.json"] = small_config_json();
  files_["config.json"]["position"]["bass"] = 500;
  for (const auto& [name, content] : std::map(files_)) {
    const auto before = files_;
    if (name == "special_tokens_map.json") {  // is read where there is no such list
      files_["tokenizer_config.json"].erase("added_tokens_decoder");
    }
    json& file = files_[name];
    (file.is_array() ? file[0] : file)["unheard_of"] = 1;
    const auto model = load();
    EXPECT_TRUE(mentions(model->notes(), name + ": phasor does not know")) << name;
    EXPECT_TRUE(mentions(model->notes(), "unheard_of")) << name;
    EXPECT_TRUE(mentions(model->notes(), "position.bass")) << name;
    files_ = before;
  }
}

TEST_F(WrittenFolderTest, WhatChangesTheTokensOfEveryTextIsRefused) {
  const auto expect_refused = [&](const char* key, const json& value) {
    const json before = std::exchange(files_["sentence_bert_config.json"][key], value);
    const auto model = load();
    EXPECT_FALSE(model->has_sentence()) << key;
    EXPECT_REFUSED(model->text(), {"sentence_bert_config.json", key});
    files_["sentence_bert_config.json"][key] = before;
  };
  expect_refused("config_kwargs", {{"num_hidden_layers", 1}});
  expect_refused("tokenizer_args", {{"do_lower_case", false}});
  expect_refused("processing_kwargs", {{"text", {{"truncation", false}}}});
  expect_refused("processing_kwargs", {{"text", {{"is_split_into_words", true}}}});
  expect_refused("transformer_task", "retrieval");
  expect_refused("modality_config", {{"text", {{"method", "get_text_features"}}}});
}

}  // namespace
}  // namespace phasor
