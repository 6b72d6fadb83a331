// config.json of every family, and what is said about keys that phasor cannot follow.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "models/model_config.h"
#include "phasor/errors.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_files.h"

namespace phasor {
using namespace internal;

namespace {

using nlohmann::json;

CheckpointConfig read(const json& config) {
  const TempFolder folder;
  folder.write("config.json", config.dump());
  ModelFolder files(folder.path());
  return read_model_config(files);
}

void expect_config_refused(const json& config, std::vector<std::string> words) {
  words.push_back("config.json");
  expect_error<ModelError>([&] { read(config); }, words);
}

void expect_text_refused(std::string_view text, std::vector<std::string> words) {
  const TempFolder folder;
  const auto file = folder.write("config.json", text);
  words.push_back(file.string());
  ModelFolder files(folder.path());
  expect_error<ModelError>([&] { read_model_config(files); }, words);
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
  config["norm_order"] = "pre";
  config["activation"] = "silu";
  config["embedding_norm"] = true;
  config["final_norm"] = true;
  config["mlm_head"] = true;
  config["layer_norm_eps"] = 0.25;
  config["norm"] = "rms_norm";
  config["d_head"] = 3;
  config["d_embedding"] = 6;
  config["num_layer_groups"] = 1;
  config["gated_mlp"] = true;
  config["linear_bias"] = false;
  config["scale_scores"] = false;
  config["position"] = {
      {"kind", "sinusoidal"}, {"layout", "t2t"}, {"base", 500}, {"first_position", 3}};
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

TEST(ConfigTest, PhasorMayHaveARelativeBias) {
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
}

TEST(ConfigTest, PhasorReadsEveryLayoutByItsName) {
  for (const auto layout :
       {SinusoidalLayout::kPaper, SinusoidalLayout::kMarian, SinusoidalLayout::kT2T,
        SinusoidalLayout::kFairseq, SinusoidalLayout::kOpenNmt}) {
    json config = small_config_json();
    config["position"] = {{"kind", "sinusoidal"}, {"layout", std::string(to_string(layout))}};
    EXPECT_EQ(read(config).config.position.layout, layout);
    EXPECT_EQ(read(config).config.position.base, 10000.0);
  }
}

TEST(ConfigTest, BertHasLearnedPositionsFromZeroAndANormAfterTheEmbedding) {
  const ModelConfig config = read(bert()).config;
  EXPECT_EQ(config.norm_order, NormOrder::kPostNorm);
  EXPECT_EQ(config.position.kind, PositionKind::kLearned);
  EXPECT_EQ(config.position.first_position, 0);
  EXPECT_EQ(config.max_positions, 12);
  EXPECT_EQ(config.num_layers, 3);
  EXPECT_EQ(config.d_ff, 16);
  EXPECT_EQ(config.norm_eps, 1e-12f);
  EXPECT_EQ(config.embedding_scale, 1.0f);
  EXPECT_TRUE(config.embedding_norm);
  EXPECT_FALSE(config.final_norm);
  EXPECT_EQ(config.position.uncounted_token, std::nullopt);
}

TEST(ConfigTest, MarianScalesTheEmbeddingWhereAsked) {
  const ModelConfig config = read(fairseq("marian")).config;
  EXPECT_EQ(config.norm_order, NormOrder::kPostNorm);
  EXPECT_EQ(config.position.kind, PositionKind::kSinusoidal);
  EXPECT_EQ(config.position.layout, SinusoidalLayout::kMarian);
  EXPECT_EQ(config.position.first_position, 0);
  EXPECT_EQ(config.activation, Activation::kSilu);
  EXPECT_EQ(config.num_layers, 3);  // the encoder's, not the decoder's 5
  EXPECT_FLOAT_EQ(config.embedding_scale, std::sqrt(8.0f));
  EXPECT_EQ(config.norm_eps, 1e-5f);
  EXPECT_FALSE(config.embedding_norm);
  json unscaled = fairseq("marian");
  unscaled.erase("scale_embedding");
  EXPECT_EQ(read(unscaled).config.embedding_scale, 1.0f);
}

TEST(ConfigTest, BartsFirstTwoPositionRowsAreNeverUsed) {
  const ModelConfig config = read(fairseq("bart")).config;
  EXPECT_EQ(config.position.kind, PositionKind::kLearned);
  EXPECT_EQ(config.position.first_position, 2);
  EXPECT_EQ(config.max_positions, 12);
  EXPECT_TRUE(config.embedding_norm);
  EXPECT_FALSE(config.final_norm);
}

TEST(ConfigTest, M2m100CountsPositionsFromAfterThePad) {
  json json = fairseq("m2m_100");
  json.erase("scale_embedding");
  json.erase("activation_function");
  const ModelConfig config = read(json).config;
  EXPECT_EQ(config.norm_order, NormOrder::kPreNorm);
  EXPECT_EQ(config.position.layout, SinusoidalLayout::kFairseq);
  EXPECT_EQ(config.position.first_position, 2);
  EXPECT_EQ(config.position.uncounted_token, 1);
  EXPECT_EQ(config.max_positions, 12);
  EXPECT_EQ(config.activation, Activation::kRelu);
  EXPECT_FLOAT_EQ(config.embedding_scale, std::sqrt(8.0f));
  EXPECT_TRUE(config.final_norm);
}

json t5(const std::string& model_type = "t5") {
  return json::parse(R"({"d_model": 8, "d_ff": 16, "num_layers": 3, "num_decoder_layers": 5,
    "num_heads": 2, "d_kv": 6, "vocab_size": 30, "model_type": ")" +
                     model_type + "\"}");
}

TEST(ConfigTest, T5HasRelativePositionsAndHeadsOfTheirOwnWidth) {
  const ModelConfig config = read(t5()).config;
  EXPECT_EQ(config.norm_order, NormOrder::kPreNorm);
  EXPECT_EQ(config.norm, NormKind::kRmsNorm);
  EXPECT_EQ(config.norm_eps, 1e-6f);
  EXPECT_EQ(config.position.kind, PositionKind::kNone);
  EXPECT_EQ(config.position.bias, ScoreBias::kBuckets);
  EXPECT_EQ(config.position.num_buckets, 32);
  EXPECT_EQ(config.position.max_distance, 128);
  EXPECT_EQ(config.num_layers, 3);
  EXPECT_EQ(config.head_dim(), 6);
  EXPECT_EQ(config.max_positions, 0);
  EXPECT_EQ(config.activation, Activation::kRelu);
  EXPECT_FALSE(config.gated_mlp);
  EXPECT_FALSE(config.linear_bias);
  EXPECT_FALSE(config.scale_scores);
  EXPECT_TRUE(config.final_norm);
  json no_width = t5();
  no_width.erase("d_kv");
  EXPECT_EQ(read(no_width).config.head_dim(), 64);  // Transformers' default
}

TEST(ConfigTest, T5sFeedForwardNamesGateAndActivationAtOnce) {
  const auto feed_forward = [](const json& config) {
    const ModelConfig read_back = read(config).config;
    return std::pair(read_back.gated_mlp, read_back.activation);
  };
  EXPECT_EQ(feed_forward(with(t5(), "feed_forward_proj", "gated-gelu")),
            std::pair(true, Activation::kGeluTanh));
  EXPECT_EQ(feed_forward(with(t5(), "feed_forward_proj", "gated-silu")),
            std::pair(true, Activation::kSilu));
  EXPECT_EQ(feed_forward(with(t5(), "feed_forward_proj", "gelu")),
            std::pair(false, Activation::kGeluErf));
  EXPECT_EQ(feed_forward(t5("mt5")), std::pair(true, Activation::kGeluTanh));
  json spelled_out = with(t5(), "feed_forward_proj", "relu");
  spelled_out["dense_act_fn"] = "gelu_new";
  spelled_out["is_gated_act"] = true;
  EXPECT_EQ(feed_forward(spelled_out), std::pair(true, Activation::kGeluTanh));
  expect_config_refused(with(t5(), "feed_forward_proj", "gated-xielu"),
                        {"feed_forward_proj", "xielu"});
}

TEST(ConfigTest, BucketsThatNoRelativeBiasHas) {
  expect_config_refused(with(t5(), "relative_attention_num_buckets", 0), {"num_buckets is 0"});
  expect_config_refused(with(t5(), "relative_attention_num_buckets", 6), {"num_buckets is 6"});
  expect_config_refused(with(t5(), "relative_attention_max_distance", 8),
                        {"max_distance is 8", "above 8"});
  expect_config_refused(with(t5(), "relative_attention_max_distance", 1000000000),
                        {"relative_attention_max_distance is 1000000000", "1 to 4096"});
}

TEST(ConfigTest, AnOffsetThatNeedsEndlessSinusoidsIsRefused) {
  json config = small_config_json();
  config["position"] = {{"kind", "sinusoidal"}, {"layout", "paper"}, {"first_position", 1024}};
  EXPECT_EQ(read(config).config.position.first_position, 1024);
  config["position"]["first_position"] = 1 << 24;
  expect_config_refused(config, {"first_position is 16777216", "0 to 1024"});
}

TEST(ConfigTest, AlbertHasANarrowEmbeddingAndGroupsOfLayers) {
  json albert = with(bert(), "model_type", "albert");
  albert["embedding_size"] = 4;
  albert["num_hidden_groups"] = 2;
  const ModelConfig config = read(albert).config;
  EXPECT_EQ(config.d_embedding, 4);
  EXPECT_EQ(config.num_blocks(), 2);
  EXPECT_EQ(config.block_of(1), 0);
  EXPECT_EQ(config.block_of(2), 1);
  albert.erase("hidden_act");
  EXPECT_EQ(read(albert).config.activation, Activation::kGeluTanh);
  expect_config_refused(with(albert, "inner_group_num", 2), {"inner_group_num is 2", "1"});
  expect_config_refused(with(albert, "num_hidden_groups", 4), {"num_hidden_groups is 4", "3"});
}

TEST(ConfigTest, LayersAreSharedAsTransformersRounds) {
  ModelConfig config;
  config.num_layers = 18;
  config.num_layer_groups = 14;
  EXPECT_EQ(config.block_of(9), 6);  // 9 / (18 / 14.) is just below 7
  EXPECT_EQ(config.block_of(17), 13);
}

TEST(ConfigTest, SomeFamiliesCodeFixesTheEpsilon) {
  EXPECT_EQ(read(with(fairseq("bart"), "layer_norm_eps", 0.5)).config.norm_eps, 1e-5f);
  EXPECT_EQ(read(with(bert(), "layer_norm_eps", 0.5)).config.norm_eps, 0.5f);
}

TEST(ConfigTest, ActivationsHaveTheNamesOfTransformers) {
  const std::pair<const char*, Activation> all[] = {{"gelu", Activation::kGeluErf},
                                                    {"gelu_10", Activation::kGelu10},
                                                    {"gelu_accurate", Activation::kGeluTanh},
                                                    {"gelu_fast", Activation::kGeluTanh},
                                                    {"gelu_new", Activation::kGeluTanh},
                                                    {"gelu_python", Activation::kGeluErf},
                                                    {"gelu_python_tanh", Activation::kGeluTanh},
                                                    {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                                    {"hardswish", Activation::kHardswish},
                                                    {"laplace", Activation::kLaplace},
                                                    {"leaky_relu", Activation::kLeakyRelu},
                                                    {"linear", Activation::kIdentity},
                                                    {"mish", Activation::kMish},
                                                    {"quick_gelu", Activation::kQuickGelu},
                                                    {"relu", Activation::kRelu},
                                                    {"relu2", Activation::kRelu2},
                                                    {"relu6", Activation::kRelu6},
                                                    {"sigmoid", Activation::kSigmoid},
                                                    {"silu", Activation::kSilu},
                                                    {"swish", Activation::kSilu},
                                                    {"tanh", Activation::kTanh}};
  for (const auto& [name, activation] : all) {
    EXPECT_EQ(read(with(bert(), "hidden_act", name)).config.activation, activation) << name;
  }
  for (const char* const name : {"prelu", "xielu", "sqrtsoftplus", "GELU"}) {
    expect_config_refused(with(bert(), "hidden_act", name), {"hidden_act", name, "leaky_relu"});
  }
  EXPECT_EQ(read(with(small_config_json(), "activation", "gelu_tanh")).config.activation,
            Activation::kGeluTanh);
}

TEST(ConfigTest, NullCountsAsMissing) {
  EXPECT_EQ(read(with(bert(), "layer_norm_eps", nullptr)).config.norm_eps, 1e-12f);
  expect_config_refused(with(bert(), "hidden_size", nullptr), {"hidden_size", "missing"});
}

TEST(ConfigTest, MissingKeysAreNamed) {
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
  expect_config_refused(config,
                        {"model_type is missing", "xlm-roberta", "\"model_type\": \"bert\""});
}

TEST(ConfigTest, ValuesOfTheWrongType) {
  expect_config_refused(with(small_config_json(), "d_model", "four"),
                        {"d_model", "\"four\"", "whole number"});
  expect_config_refused(with(small_config_json(), "d_model", 4.5), {"d_model", "4.5"});
  expect_config_refused(with(small_config_json(), "final_norm", "yes"),
                        {"final_norm", "\"yes\"", "true"});
  expect_config_refused(with(small_config_json(), "activation", 3), {"activation", "3"});
  expect_config_refused(with(small_config_json(), "layer_norm_eps", "1e-5"),
                        {"layer_norm_eps", "\"1e-5\""});
  expect_config_refused(with(small_config_json(), "position", "learned"),
                        {"position", "\"learned\""});
  expect_config_refused(with(bert(), "model_type", 7), {"model_type", "7"});
}

TEST(ConfigTest, SizesThatNoEncoderHas) {
  expect_config_refused(with(small_config_json(), "d_model", 0), {"d_model", "0"});
  expect_config_refused(with(small_config_json(), "num_layers", -2), {"num_layers", "-2"});
  expect_config_refused(with(small_config_json(), "vocab_size", 9000000000000000000),
                        {"vocab_size"});
  expect_config_refused(with(small_config_json(), "d_ff", 18446744073709551615u),
                        {"d_ff", "1844674407370955"});
  expect_config_refused(with(small_config_json(), "num_heads", 3), {"4", "multiple", "3"});
  expect_config_refused(with(small_config_json(), "num_heads", 5), {"num_heads", "5"});
  expect_config_refused(with(small_config_json(), "max_positions", 0),
                        {"max_positions", "learned"});
  expect_config_refused(with(small_config_json(), "layer_norm_eps", 0), {"layer_norm_eps", "0"});
  // Above 0, but not in float32.
  expect_config_refused(with(small_config_json(), "embedding_scale", 1e-300), {"embedding_scale"});
  expect_config_refused(with(bert(), "pad_token_id", 30), {"pad_token_id", "30", "29"});
}

TEST(ConfigTest, PositionsThatPhasorDoesNotKnow) {
  json config = small_config_json();
  config["position"] = {{"kind", "rotary"}};
  expect_config_refused(config, {"position", "kind", "\"rotary\"", "sinusoidal, learned, none"});
  config["position"] = {{"kind", "sinusoidal"}};
  expect_config_refused(config, {"layout", "missing"});
  config["position"] = {{"kind", "sinusoidal"}, {"layout", "papers"}};
  expect_config_refused(config, {"layout", "\"papers\"", "paper, marian, t2t, fairseq, opennmt"});
  config["position"] = {{"kind", "sinusoidal"}, {"layout", "paper"}, {"base", 1}};
  expect_config_refused(config, {"base", "1"});
}

TEST(ConfigTest, OddWidthsHaveNoOpenNmtLayout) {
  json config = with(small_config_json(), "d_model", 5);
  config["num_heads"] = 1;
  config["position"] = {{"kind", "sinusoidal"}, {"layout", "opennmt"}};
  expect_config_refused(config, {"opennmt", "5"});
}

TEST(ConfigTest, WhatPhasorDoesNotImplementIsRefusedByName) {
  expect_config_refused(with(bert(), "model_type", "gpt2"),
                        {"model_type", "\"gpt2\"", "bert", "marian"});
  expect_config_refused(with(bert(), "position_embedding_type", "relative_key"),
                        {"position_embedding_type", "relative_key", "absolute"});
  expect_config_refused(with(bert(), "is_decoder", true), {"is_decoder", "true", "false"});
  expect_config_refused(with(bert(), "hidden_act", "xielu"), {"hidden_act", "\"xielu\"", "gelu"});
  expect_config_refused(with(fairseq("bart"), "normalize_before", true),
                        {"normalize_before", "true"});
  expect_config_refused(with(fairseq("marian"), "normalize_before", true),
                        {"normalize_before", "true"});
}

TEST(ConfigTest, ADecoderIsNamedAsOne) {
  for (const char* const model_type : {"gpt2", "llama", "mistral", "qwen3"}) {
    expect_config_refused(with(bert(), "model_type", model_type),
                          {model_type, "decoder", "encoders", "bert", "llama.cpp"});
  }
}

TEST(ConfigTest, AnUnknownTypeMayBeOfALaterVersion) {
  json config = with(bert(), "model_type", "bert9");
  expect_config_refused(config, {"\"bert9\"", "one of: phasor, bert"});
  config["transformers_version"] = "9.1.0";
  expect_config_refused(config, {"\"bert9\"", "Transformers 9.1.0", "a later phasor"});
}

TEST(ConfigTest, NamesOfOneValueAgreeOrAreRefused) {
  EXPECT_NO_THROW(read(with(bert(), "num_layers", 3)));
  expect_config_refused(with(bert(), "num_layers", 1), {"num_layers is 1", "num_hidden_layers"});
  expect_config_refused(with(bert(), "n_heads", 1), {"n_heads is 1", "num_attention_heads"});
  expect_config_refused(with(bert(), "activation_function", "relu"), {"activation_function"});
  // Not names of this family's.
  EXPECT_EQ(read(with(bert(), "encoder_layers", 1)).config.num_layers, 3);
  EXPECT_EQ(read(with(bert(), "norm_eps", 0.5)).config, read(bert()).config);
  EXPECT_EQ(read(fairseq("bart")).config.num_layers, 3);  // num_hidden_layers is 5
}

TEST(ConfigTest, TheTypeOfPositionsCountsWhereTransformersReadsIt) {
  json modern = bert();
  modern["model_type"] = "modernbert";
  EXPECT_EQ(read(with(modern, "position_embedding_type", "sans_pos")).config, read(modern).config);
  for (const char* const type : {"bert", "roberta", "electra"}) {
    const json family = with(bert(), "model_type", type);
    expect_config_refused(with(family, "position_embedding_type", "relative_key"),
                          {"relative_key", "absolute"});
  }
}

TEST(ConfigTest, KeysThatCouldChangeTheResultAreRefusedInEveryFamily) {
  for (const json& family : {bert(), fairseq("bart"), fairseq("m2m_100")}) {
    expect_config_refused(with(family, "quantization_config", {{"bits", 4}}),
                          {"quantization_config is {\"bits\":4}", "absent"});
    expect_config_refused(with(family, "pruned_heads", {{"0", {1}}}),
                          {"pruned_heads", "{\"0\":[1]}"});
    expect_config_refused(with(family, "sliding_window", 128), {"sliding_window is 128"});
    expect_config_refused(with(family, "rope_theta", 10000.0),
                          {"rope_theta is 10000.0", "positions"});
    expect_config_refused(with(family, "rotary_dim", 64), {"rotary_dim is 64"});
    json harmless = with(family, "rotary_value", false);
    harmless["quantization_config"] = nullptr;
    harmless["pruned_heads"] = json::object();
    EXPECT_NO_THROW(read(harmless));
  }
}

json of_type(const char* model_type) { return with(bert(), "model_type", model_type); }

TEST(ConfigTest, RotaryPositionsThatPhasorDoesNotImplement) {
  const json nomic = of_type("nomic_bert");
  expect_config_refused(with(nomic, "rotary_emb_fraction", 0.01),
                        {"rotary_emb_fraction", "2 columns"});
  expect_config_refused(with(nomic, "rotary_emb_base", 1), {"rotary_emb_base is 1", "above 1"});
  expect_config_refused(with(nomic, "rotary_emb_scale_base", 512),
                        {"rotary_emb_scale_base is 512"});
  expect_config_refused(with(nomic, "moe_every_n_layers", 2), {"moe_every_n_layers is 2"});
  expect_config_refused(with(nomic, "rotary_something", 3), {"rotary_something is 3"});
  expect_config_refused(with(nomic, "rope_parameters", {{"rope_type", "yarn"}, {"factor", 4.0}}),
                        {"rope_parameters", "rope_type is \"yarn\"", "dynamic"});
  expect_config_refused(with(nomic, "rope_scaling", {{"type", "linear"}}),
                        {"rope_scaling", "factor"});
  expect_config_refused(with(nomic, "rope_scaling", 2), {"rope_scaling is 2", "object"});
  const json gte = with(of_type("new"), "position_embedding_type", "rope");
  expect_config_refused(with(gte, "position_embedding_type", "absolute"), {"absolute", "\"rope\""});
  expect_config_refused(with(gte, "logn_attention_scale", true), {"logn_attention_scale is true"});
  expect_config_refused(with(gte, "layer_norm_type", "rms_norm"),
                        {"layer_norm_type", "layer_norm"});
  expect_config_refused(
      with(gte, "rope_scaling", {{"type", "ntk"}, {"factor", 2.0}, {"mixed_b", 0.75}}),
      {"mixed_b is 0.75"});
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
  expect_config_refused(
      with(nomic, "rope_parameters", {{"rope_type", "linear"}, {"factor", 1e-300}}),
      {"factor is 1e-300"});
}

TEST(ConfigTest, BothSpellingsOfAScalingCountOnceOrAreRefused) {
  const json ntk = {{"type", "ntk"}, {"factor", 2.0}};
  const json once = with(of_type("nomic_bert"), "rope_parameters", ntk);
  const auto base = [](const json& config) { return read(config).config.position.rotary->base; };
  EXPECT_EQ(base(with(once, "rope_scaling", ntk)), base(once));
  expect_config_refused(with(once, "rope_scaling", {{"type", "linear"}, {"factor", 2.0}}),
                        {"rope_scaling", "rope_parameters"});
}

TEST(ConfigTest, LayersOfModernBertThatNobodyDefined) {
  const json modern = of_type("modernbert");
  expect_config_refused(with(modern, "layer_types", {"full_attention"}),
                        {"layer_types names 1 layers"});
  std::vector<std::string> types(bert()["num_hidden_layers"].get<size_t>(), "chunked_attention");
  expect_config_refused(with(modern, "layer_types", types), {"layer_types", "sliding_attention"});
  expect_config_refused(with(modern, "local_attention", 1), {"local_attention is 1", "2 to"});
  expect_config_refused(with(modern, "global_attn_every_n_layers", 0),
                        {"global_attn_every_n_layers is 0"});
  expect_config_refused(
      with(modern, "rope_parameters",
           {{"full_attention", {{"rope_type", "yarn"}}}, {"sliding_attention", {}}}),
      {"full_attention", "yarn"});
  const json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  expect_config_refused(with(modern, "rope_parameters", linear), {"rope_type is \"linear\""});
  expect_config_refused(with(modern, "rope_scaling", linear), {"rope_scaling", "absent"});
  expect_config_refused(
      with(modern, "rope_parameters", {{"sliding_attention", {{"partial_rotary_factor", 0.5}}}}),
      {"sliding_attention", "partial_rotary_factor is 0.5"});
}

TEST(ConfigTest, DisentangledPositionsThatPhasorDoesNotImplement) {
  json deberta = with(of_type("deberta-v2"), "relative_attention", true);
  deberta["pos_att_type"] = "c2p|p2c";
  EXPECT_TRUE(read(deberta).config.position.disentangled->position_to_content);
  EXPECT_TRUE(read(with(deberta, "pos_att_type", "C2P | P2C"))
                  .config.position.disentangled->content_to_position);
  for (const json& types : {json({"p2p"}), json({"C2P"}), json("c2p,p2c"), json(5), json({1})}) {
    expect_config_refused(with(deberta, "pos_att_type", types), {"pos_att_type"});
  }
  expect_config_refused(with(deberta, "pos_att_type", {"p2p"}), {"pos_att_type", "c2p and p2c"});
  expect_config_refused(with(deberta, "share_att_key", false), {"share_att_key is false"});
  expect_config_refused(with(deberta, "conv_kernel_size", 3), {"conv_kernel_size is 3"});
  expect_config_refused(with(deberta, "position_buckets", 5), {"num_buckets is 5", "even"});
  expect_config_refused(with(deberta, "norm_rel_ebd", "batch_norm"),
                        {"norm_rel_ebd", "layer_norm"});
  expect_config_refused(with(deberta, "max_relative_positions", 1 << 20),
                        {"max_relative_positions"});
}

TEST(ConfigTest, CodeOfTheModelsOwnIsNoted) {
  const json config = with(bert(), "auto_map", {{"AutoModel", "modeling_bert.BertModel"}});
  const std::vector<std::string> notes = read(config).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("auto_map"), std::string::npos);
  EXPECT_NE(notes[0].find("plain bert"), std::string::npos);
  json jina = with(bert(), "position_embedding_type", "alibi");
  jina["auto_map"] = {{"AutoModel", "modeling_bert.JinaBertModel"}};
  EXPECT_TRUE(read(jina).notes.empty());  // that code is what phasor computes
}

TEST(ConfigTest, FilesThatAreNoConfiguration) {
  expect_text_refused("", {"not valid JSON"});
  expect_text_refused("{\"model_type\": \"bert\"", {"not valid JSON"});
  expect_text_refused("[]", {"[]", "object"});
  expect_text_refused("{\"d_model\": 4, \"d_model\": 8}", {"\"d_model\"", "twice"});
  expect_text_refused("<!doctype html>", {"HTML"});
  expect_text_refused("version https://git-lfs.github.com/spec/v1", {"Git LFS"});
}

}  // namespace
}  // namespace phasor
