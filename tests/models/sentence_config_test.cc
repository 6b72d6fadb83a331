// sentence-transformers' files, as people have them and as they should not be.
#include "tests/support/tiny_model.h"

namespace phasor {
namespace {

constexpr const char *kDense = "linear.weight", *kPooling = "1_Pooling/config.json";

/// A small model whose folder gets files of sentence-transformers.
class SentenceConfigTest : public testing::Test {
 protected:
  /// sentence-transformers' modules; the Pooling has its defaults, unless its file is there.
  void write_modules(const std::vector<std::string>& kinds) {
    folder_.write("modules.json", modules_of(kinds).dump());
    if (!fs::exists(folder_ / kPooling)) write(kPooling, json::object());
  }
  void write(const std::string& name, const json& content) { folder_.write_json(name, content); }
  void write_dense(const json& config, const std::vector<TestTensor>& tensors) {
    write("2_Dense/config.json", config);
    folder_.write("2_Dense/model.safetensors", safetensors_bytes(tensors));
  }

  std::shared_ptr<const Model> load() const { return Model::load(folder_.path()); }
  SentenceConfig read() const { return load()->sentence(); }
  /// Loading works, and asking for sentence vectors says why not.
  void expect_refused(const std::vector<std::string>& words) const {
    const auto model = load();
    EXPECT_FALSE(model->has_sentence());
    EXPECT_REFUSED(model->sentence(), words);
    Encoder encoder(model);
    EXPECT_EQ(encoder.encode_ids(std::vector<int32_t>{1, 2}).token_ids.size(), 2u);
    EXPECT_REFUSED(encoder.embed("a"), words);
    ASSERT_FALSE(model->notes().empty());
    EXPECT_NE(model->notes().back().find(words.front()), std::string::npos)
        << model->notes().back();
  }

  const TinyModel folder_{"small"};
};

TEST_F(SentenceConfigTest, WithoutFilesItIsTheMeanNotNormalised) {
  const SentenceConfig config = read();
  EXPECT_EQ(config.pooling, Pooling{});
  EXPECT_EQ(config.max_tokens, 0);
  EXPECT_EQ(config.prompt, "");
  EXPECT_EQ(config.source, "");
  EXPECT_TRUE(load()->notes().empty());
}

TEST_F(SentenceConfigTest, AVectorForEachTokenIsNotTakenForTheMean) {
  json config = small_config_json();
  config["architectures"] = {"HF_ColBERT"};
  write("config.json", config);
  expect_refused({"multi-vector", "HF_ColBERT"});
  write("config.json", small_config_json());
  EXPECT_TRUE(load()->has_sentence());
  write("artifact.metadata", json::object());
  expect_refused({"multi-vector", "artifact.metadata"});
  fs::remove(folder_ / "artifact.metadata");
  std::vector<TestTensor> tensors = small_tensors();
  tensors.push_back({.name = kDense, .shape = {2, 4}});
  folder_.write("model.safetensors", safetensors_bytes(tensors));
  expect_refused({"multi-vector", kDense});
  EXPECT_TRUE(load()->notes().front().starts_with("no token vectors: "));
  // The files may say otherwise, and the head be another.
  write_modules({"Transformer", "Pooling"});
  EXPECT_TRUE(load()->has_sentence());
  fs::remove(folder_ / "modules.json");
  fs::remove(folder_ / kPooling);
  tensors.push_back({.name = "linear.bias", .shape = {2}});
  folder_.write("model.safetensors", safetensors_bytes(tensors));
  EXPECT_TRUE(load()->has_sentence());
}

TEST_F(SentenceConfigTest, HeadsBesideTheModelAreNamed) {
  // One that cannot be read takes away nothing else.
  folder_.write("colbert_linear.pt", "x");
  folder_.write("sparse_linear.pt", "x");
  const std::vector<std::string> notes = load()->notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(notes[0].starts_with("no sparse vectors: ")) << notes[0];
  EXPECT_NE(notes[0].find("sparse_linear.pt"), std::string::npos) << notes[0];
  EXPECT_TRUE(notes[1].starts_with("no token vectors: ")) << notes[1];
  EXPECT_NE(notes[1].find("colbert_linear.pt"), std::string::npos) << notes[1];
  EXPECT_FALSE(load()->has_sparse());
  EXPECT_FALSE(load()->has_token_vectors());
  EXPECT_TRUE(load()->has_sentence());
}

TEST_F(SentenceConfigTest, EveryFlagIsReadAndSeveralConcatenate) {
  write_modules({"Transformer", "Pooling"});
  const std::vector<std::pair<std::string, PoolingMode>> flags = {
      {"cls_token", PoolingMode::kCls},
      {"max_tokens", PoolingMode::kMax},
      {"mean_tokens", PoolingMode::kMean},
      {"mean_sqrt_len_tokens", PoolingMode::kMeanSqrtLen},
      {"weightedmean_tokens", PoolingMode::kWeightedMean},
      {"lasttoken", PoolingMode::kLastToken}};
  json all = {{"word_embedding_dimension", 4}};
  for (const auto& [name, mode] : flags) {
    json one = {{"word_embedding_dimension", 4}, {"pooling_mode_mean_tokens", false}};
    one["pooling_mode_" + name] = all["pooling_mode_" + name] = true;
    write(kPooling, one);
    EXPECT_EQ(read().pooling.modes, std::vector{mode}) << name;
  }
  write(kPooling, all);
  EXPECT_EQ(to_string(read().pooling.modes),
            "cls,max,mean,mean_sqrt_len_tokens,weightedmean,lasttoken");
  EXPECT_EQ(read().source, kPooling);
  // Without modules it is used and noted.
  fs::remove(folder_ / "modules.json");
  write(kPooling, {{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}});
  EXPECT_EQ(to_string(read().pooling.modes), "cls");
  expect_one_note(load()->notes(), {"modules.json"});
}

TEST_F(SentenceConfigTest, TheNewerSpellingIsReadAndTheMeanIsTheDefaultOfBoth) {
  write_modules({"Transformer", "Pooling"});
  const std::vector<std::pair<json, std::string>> all = {
      {{{"pooling_mode", "mean_sqrt_len_tokens"}}, "mean_sqrt_len_tokens"},
      {{{"pooling_mode", {"mean", "cls"}}}, "mean,cls"},
      {{{"pooling_mode", {"cls", "mean"}}}, "cls,mean"},
      {{{"pooling_mode", {"mean", "mean"}}}, "mean,mean"},
      {{{"pooling_mode", "lasttoken"}, {"pooling_mode_max_tokens", true}}, "lasttoken"},
      {json::object(), "mean"},
      {{{"pooling_mode_mean_tokens", false}}, "mean"},
      {{{"pooling_mode_cls_token", true}}, "cls"},
      {{{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}}, "cls,mean"}};
  for (const auto& [config, modes] : all) {
    write(kPooling, config);
    EXPECT_EQ(to_string(read().pooling.modes), modes);
  }
  EXPECT_TRUE(read().pooling.include_prompt);
  write(kPooling, {{"include_prompt", false}});
  EXPECT_FALSE(read().pooling.include_prompt);
}

TEST_F(SentenceConfigTest, ModulesAfterPoolingRunInTheirOrder) {
  write_dense({{"in_features", 4},
               {"out_features", 2},
               {"bias", true},
               {"activation_function", "torch.nn.modules.activation.SiLU"}},
              {{kDense, {2, 4}, "F64", double_bytes({1, 0, 0, 0, 0, .1, 0, .25})},
               {"linear.bias", {2}, "F32", float_bytes({.125, -1})}});
  const Projection dense{.in = 4,
                         .out = 2,
                         .weight = {1, 0, 0, 0, 0, .1f, 0, .25},
                         .bias = {.125, -1},
                         .activation = Activation::kSilu};
  const auto after_pooling = [&](std::vector<std::string> kinds) {
    kinds.insert(kinds.begin(), {"Transformer", "Pooling"});
    write_modules(kinds);
    return read().pooling;
  };
  EXPECT_EQ(after_pooling({"Dense", "Normalize"}), (Pooling{.steps = {dense}, .normalize = true}));
  EXPECT_EQ(after_pooling({"Dense", "Dropout"}), (Pooling{.steps = {dense}}));
  EXPECT_EQ(after_pooling({"Normalize", "Normalize"}), (Pooling{.normalize = true}));
  fs::rename(folder_ / "2_Dense", folder_ / "3_Dense");
  EXPECT_EQ(after_pooling({"Normalize", "Dense"}), (Pooling{.steps = {UnitLength(), dense}}));
  write("4_LayerNorm/config.json", {{"dimension", 2}});
  folder_.write("4_LayerNorm/model.safetensors",
                safetensors_bytes({{"norm.weight", {2}, "F32", float_bytes({1, 2})},
                                   {"norm.bias", {2}, "F32", float_bytes({3, 4})}}));
  const VectorNorm norm{.weight = {1, 2}, .bias = {3, 4}};
  EXPECT_EQ(after_pooling({"Normalize", "Dense", "LayerNorm", "Normalize"}),
            (Pooling{.steps = {UnitLength(), dense, norm}, .normalize = true}));
}

TEST_F(SentenceConfigTest, DenseHasAnyActivationOfTorchThatIsKnown) {
  write_modules({"Transformer", "Pooling", "Dense"});
  for (const auto& [name, activation] : std::vector<std::pair<std::string, Activation>>{
           {"torch.nn.modules.linear.Identity", Activation::kIdentity},
           {"torch.nn.modules.activation.GELU", Activation::kGeluErf},
           {"torch.nn.modules.activation.ReLU", Activation::kRelu},
           {"torch.nn.ReLU6", Activation::kRelu6},
           {"torch.nn.modules.activation.LeakyReLU", Activation::kLeakyRelu},
           {"torch.nn.modules.activation.Hardswish", Activation::kHardswish},
           {"torch.nn.modules.activation.Mish", Activation::kMish},
           {"torch.nn.modules.activation.Sigmoid", Activation::kSigmoid},
           {"torch.nn.modules.activation.Tanh", Activation::kTanh}}) {
    json config = {{"in_features", 4}, {"out_features", 1}, {"bias", false}};
    config["activation_function"] = name;
    write_dense(config, {{kDense, {1, 4}}});
    EXPECT_EQ(std::get<Projection>(read().pooling.steps.at(0)).activation, activation) << name;
  }
}

/// One file of a good folder is changed, and vectors are refused with the file's name and `words`.
TEST_F(SentenceConfigTest, ValuesThatAreRefused) {
  const std::string pooling = kPooling, dense = "2_Dense/config.json",
                    norm = "3_LayerNorm/config.json", normalize = "4_Normalize/config.json",
                    loading = "sentence_bert_config.json", tokenizer = "tokenizer_config.json",
                    prompts = "config_sentence_transformers.json";
  json files = {{dense, {{"in_features", 4}, {"out_features", 2}, {"bias", false}}},
                {norm, {{"dimension", 2}}}};
  for (const std::string& file : {pooling, normalize, loading, tokenizer, prompts})
    files[file] = json::object();
  for (const auto& [file, content] : files.items()) write(file, content);
  write_modules({"Transformer", "Pooling", "Dense", "LayerNorm", "Normalize"});
  folder_.write("2_Dense/model.safetensors", safetensors_bytes({{kDense, {2, 4}}}));
  folder_.write("3_LayerNorm/model.safetensors",
                safetensors_bytes({{"norm.weight", {2}}, {"norm.bias", {2}}}));
  EXPECT_TRUE(load()->has_sentence());
  json too_many;
  for (int i = 0; i <= 1024; ++i) too_many[std::to_string(i)] = "";
  struct Row {
    std::string file, key;
    json value;
    std::vector<std::string> words;
  };
  for (const auto& [file, key, value, words] : std::vector<Row>{
           {pooling, "pooling_mode_mean_tokens", "yes", {"true or false"}},
           {pooling, "pooling_mode_attention", true, {"not known"}},
           {pooling, "pooling_mode", "median", {"median", "weightedmean"}},
           {pooling, "pooling_mode", json::array(), {"0 modes"}},
           {pooling, "include_prompt", "no", {"true or false"}},
           {dense, "in_features", 5, {"5", "4"}},
           {dense, "out_features", 65537, {"65537", "65536"}},
           {dense,
            "activation_function",
            "torch.nn.modules.activation.PReLU",
            {"PReLU", "LeakyReLU"}},
           {dense, "activation_function", "own.code.Tanh", {"own.code.Tanh", "torch.nn"}},
           {dense, "activation_function", "Tanh", {"\"Tanh\"", "torch.nn"}},
           {dense, "use_residual", true, {"true", "false"}},
           {dense, "module_input_name", "token_embeddings", {"token_embeddings"}},
           {dense, "module_output_name", "sentence_embedding_2", {"sentence_embedding_2"}},
           {norm, "dimension", 3, {"3", "2"}},
           {normalize, "module_input_name", "token_embeddings", {"sentence_embedding"}},
           {loading, "max_seq_length", 0, {"max_seq_length is 0"}},
           {tokenizer, "model_max_length", 0.5, {"model_max_length is 0.5"}},
           {prompts, "default_prompt_name", "passage", {"passage", "one of its prompts"}},
           {prompts, "prompts", too_many, {"1025", "1024"}},
           {prompts, "prompts", {{"x", repeat("a", 65537)}}, {"65537", "65536"}},
           {prompts, "similarity_fn_name", "maxsim", {"maxsim", "manhattan"}}}) {
    SCOPED_TRACE(key);
    json changed = files[file];
    changed[key] = value;
    write(file, changed);
    std::vector<std::string> all = {file, key};
    all.insert(all.end(), words.begin(), words.end());
    expect_refused(all);
    write(file, files[file]);
  }
  write(pooling, {{"word_embedding_dimension", 5}});
  expect_refused({pooling, "vectors of 5", "4 wide"});
  fs::remove(folder_ / pooling);
  expect_refused({pooling, "no such file"});
}

TEST_F(SentenceConfigTest, TensorsOfDenseThatDoNotFitAreRefused) {
  write_modules({"Transformer", "Pooling", "Dense"});
  struct Row {
    bool bias;
    TestTensor tensor;
    std::vector<std::string> words;
  };
  for (const auto& [bias, tensor, words] : std::vector<Row>{
           {false, {kDense, {1, 3}}, {kDense, "[1, 3]", "[1, 4]"}},
           {false, {kDense, {1, 4}, "F32", float_bytes({1, 2, NAN, 4})}, {kDense, "NaN"}},
           {false,
            {kDense, {1, 4}, "F64", double_bytes({1, 2, 3, 1e39})},
            {kDense, "too large for float32"}},
           {true, {kDense, {1, 4}}, {"linear.bias", "missing"}}}) {
    write_dense({{"in_features", 4}, {"out_features", 1}, {"bias", bias}}, {tensor});
    expect_refused(words);
  }
  fs::remove(folder_ / "2_Dense/model.safetensors");
  expect_refused({"2_Dense", "no model.safetensors"});
}

TEST_F(SentenceConfigTest, OtherModulesAndOrdersAndMoreThanAFewAreRefused) {
  const std::vector<std::vector<std::string>> all = {{"Transformer", "Pooling", "CNN"},
                                                     {"WordEmbeddings", "Pooling"},
                                                     {"Transformer", "Pooling", "Pooling"},
                                                     {"Transformer", "Dropout", "Pooling"},
                                                     {"Transformer", "Normalize", "Pooling"}};
  for (const std::vector<std::string>& kinds : all) {
    write_modules(kinds);
    expect_refused({"modules.json", "type is", "a Transformer, then a Pooling"});
  }
  write_modules({"Transformer"});
  expect_refused({"modules.json", "no Pooling module"});
  for (const auto& [text, reason] :
       {std::pair("{}", "a list of modules"), {"[1]", "entry 0 is 1"}, {"[", "not valid JSON"}}) {
    folder_.write("modules.json", text);
    expect_refused({"modules.json", reason});
  }
  std::vector<std::string> kinds = {"Transformer", "Pooling"};
  kinds.resize(32, "Normalize");
  write_modules(kinds);
  EXPECT_TRUE(read().pooling.normalize);
  kinds.resize(33, "Normalize");
  write_modules(kinds);
  expect_refused({"modules.json", "32"});
  write_modules({"Transformer", "Pooling", "Dense", "Dense"});
  write_dense({{"in_features", 4}, {"out_features", 4}, {"bias", false}},
              {{kDense, {4, 4}, "F32", float_bytes(std::vector<float>(16))}});
  fs::create_directory_symlink("2_Dense", folder_ / "3_Dense");
  expect_refused({"modules.json", "3_Dense", "weights of its own"});
}

TEST_F(SentenceConfigTest, NoModuleLiesOutsideTheFolder) {
  const TempFolder outside;
  outside.write("config.json", "{}");
  const std::string up = "../" + outside.path().filename().string();
  for (const std::string& path :
       {outside.path().string(), up, "1_Pooling/../" + up, std::string("1_Pooling/..")}) {
    write("modules.json",
          json::array({{{"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
                       {{"path", path}, {"type", "sentence_transformers.models.Pooling"}}}));
    expect_refused({"modules.json", "path is", "inside"});
  }
}

TEST_F(SentenceConfigTest, TheLengthIsTheSentenceFilesOrElseTheTokenizers) {
  const json loading = {{"model_max_length", 4}}, of_text = {{"text", {{"max_length", 3}}}};
  const json both = {{"text", {{"max_length", 3}}}, {"common", {{"max_length", 2}}}};
  for (const auto& [sentence, expected] : std::vector<std::pair<json, int64_t>>{
           {json::object(), 7},
           {{{"max_seq_length", nullptr}, {"do_lower_case", false}}, 7},
           {{{"max_seq_length", 6}}, 6},
           {{{"max_seq_length", 6}, {"processor_kwargs", loading}}, 4},
           {{{"max_seq_length", 6}, {"tokenizer_args", loading}}, 4},
           {{{"max_seq_length", 6}, {"processing_kwargs", of_text}}, 3},
           {{{"processing_kwargs", both}}, 2}}) {
    write("tokenizer_config.json", {{"model_max_length", 7}});
    write("sentence_bert_config.json", sentence);
    EXPECT_EQ(load()->text().max_tokens, expected) << sentence;
    EXPECT_EQ(read().max_tokens, expected) << sentence;
  }
  fs::remove(folder_ / "sentence_bert_config.json");
  write("tokenizer_config.json", {{"model_max_length", 1e30}});
  EXPECT_EQ(read().max_tokens, 0);
  write("tokenizer_config.json", {{"model_max_length", 6}});
  write("sentence_xlm-roberta_config.json", {{"max_seq_length", 4}});
  EXPECT_EQ(read().max_tokens, 4);
}

TEST_F(SentenceConfigTest, TextsAreLowerCasedBeforeTheTokenizerWhereTheFilesAskForIt) {
  folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nriver\nRiver\n");
  const auto piece = [&] { return Tokenizer::load(folder_.path())->encode("River").pieces.at(1); };
  write("tokenizer_config.json", {{"do_lower_case", false}});
  EXPECT_EQ(piece(), "River");
  write("sentence_bert_config.json", {{"do_lower_case", true}});
  EXPECT_EQ(piece(), "river");
}

TEST_F(SentenceConfigTest, TruncateDimKeepsTheFirstNumbersOfTheModulesVector) {
  write_modules({"Transformer", "Pooling", "Normalize"});
  write(kPooling, {{"pooling_mode", "mean"}});
  const auto vector = [&] {
    Encoder encoder(load());
    const std::vector<int32_t> ids = {4, 3, 1};
    return pool(encoder.encode_ids(ids).hidden, 4, encoder.model().sentence().pooling);
  };
  const std::vector<float> whole = vector();
  write("config_sentence_transformers.json", {{"truncate_dim", 2}});
  EXPECT_EQ(vector(), std::vector<float>(whole.begin(), whole.begin() + 2));
  write("config_sentence_transformers.json", {{"truncate_dim", 1000}});
  EXPECT_EQ(vector(), whole);
}

// Folders of sentence-transformers 2.0 and older.
TEST_F(SentenceConfigTest, TheTransformerMayLieInAFolderOfItsOwn) {
  const std::string inner = "0_Transformer/";
  json config = small_config_json();
  config["embedding_scale"] = 3.0;  // unlike the one outside
  folder_.write_json(inner + "config.json", config);
  folder_.write(inner + "model.safetensors", safetensors_bytes(small_tensors()));
  write("0_Transformer/sentence_bert_config.json", {{"max_seq_length", 5}});
  write("sentence_bert_config.json", {{"max_seq_length", 6}});
  write_modules({"Transformer", "Pooling"});
  write(kPooling, {{"pooling_mode", "cls"}});
  json modules = {{{"path", "0_Transformer"}, {"type", "sentence_transformers.models.Transformer"}},
                  {{"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}}};
  write("modules.json", modules);
  const auto model = load();
  EXPECT_EQ(model->config().embedding_scale, 3.0f);
  EXPECT_EQ(model->text().max_tokens, 5);
  EXPECT_EQ(model->sentence().pooling.modes, std::vector{PoolingMode::kCls});
  modules[0]["path"] = "elsewhere";
  write("modules.json", modules);
  expect_refused({"modules.json", "path is", "config.json"});
  modules[0] = {{"path", ""}, {"type", "someones.code.Transformer"}};
  write("modules.json", modules);
  expect_refused({"someones.code.Transformer", "sentence_transformers"});
}

TEST_F(SentenceConfigTest, PromptsAndTheSimilarityAreTheFiles) {
  const std::string file = "config_sentence_transformers.json";
  const std::map<std::string, std::string> prompts = {{"document", ""}, {"query", "query: "}};
  write(file, {{"prompts", prompts}, {"default_prompt_name", nullptr}});
  EXPECT_EQ(read().prompt, "");
  EXPECT_EQ(read().prompts, prompts);
  EXPECT_EQ(read().query_prompt(), "query: ");
  EXPECT_EQ(read().document_prompt(), "");
  write(file, {{"prompts", prompts}, {"default_prompt_name", "query"}});
  EXPECT_EQ(read().prompt, "query: ");
  write(file, {{"prompts", {{"corpus", "c: "}, {"passage", "p: "}}}});
  EXPECT_EQ(read().document_prompt(), "p: ");
  EXPECT_EQ(read().query_prompt(), std::nullopt);
  write(file, json::object());
  EXPECT_EQ(read().similarity, Similarity::kCosine);
  write(file, {{"similarity_fn_name", nullptr}});
  EXPECT_EQ(read().similarity, Similarity::kCosine);
  for (const std::string_view name : names<Similarity>().all) {
    write(file, {{"similarity_fn_name", name}});
    EXPECT_EQ(read().similarity, parse<Similarity>(name));
  }
}

}  // namespace
}  // namespace phasor
