// infer's subcommands: tokenize, info and verify.
#include "tests/program/program.h"
#include "tests/support/shared_files.h"

namespace phasor {
namespace {

/// Where a safetensors file's header ends.
size_t data_start(const std::string& bytes) {
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  return 8 + header_size;
}

TEST(CliTokenizeTest, JsonHasTextIdsAndPieces) {
  const std::vector<json> objects = infer_json({"tokenize", "Tom bit a dog.", "[x]"});
  ASSERT_EQ(objects.size(), 2u);
  ASSERT_EQ(objects[0].size(), 3u);
  EXPECT_NE(infer_json({"tokenize", "a [MASK]"}),
            infer_json({"tokenize", "--special", "a [MASK]"}));
  EXPECT_EQ(objects[0]["text"], "Tom bit a dog.");
  EXPECT_EQ(objects[0]["ids"].size(), objects[0]["pieces"].size());
  EXPECT_EQ(objects[0]["pieces"][0], "[CLS]");
  EXPECT_EQ(objects[0]["ids"], infer_json({"-q", "Tom bit a dog."}).at(0)["ids"]);
}

TEST(CliTokenizeTest, TextHasThePiecesOverTheIds) {
  const Words lines = lines_of(succeed({"tokenize", "Tom", "a"}).out);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "Tom");
  EXPECT_TRUE(lines[1].starts_with("  token  [CLS]  ▁Tom"));
  EXPECT_TRUE(lines[2].starts_with("  id     "));
  EXPECT_EQ(lines[3], "");
}

TEST(CliTokenizeTest, NeedsNoWeights) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "sinusoidal");
  fs::remove(copy / "model.safetensors");
  EXPECT_EQ(infer_json({"tokenize", "-m", copy.string(), "Tom"}), infer_json({"tokenize", "Tom"}));
  fs::remove(copy / "tokenizer.model");
  expect_infer_fails({"tokenize", "-m", copy.string(), "Tom"}, 4, {"tokenizer"});
}

TEST(CliInfoTest, SaysWhatABundledModelIs) {
  // Packed are six blocks' matrices and biases; layouts may pad them, though not these sizes.
  const json expected = json::parse(R"json({
      "family": "phasor",
      "sizes": {"layers": 6, "d_model": 128, "heads": 4, "head_dim": 32, "d_ff": 512,
                "vocabulary": 8192},
      "embedding": {"width": 128, "scale": 11.313708},
      "norm": {"order": "post", "kind": "layer_norm", "eps": 1e-5, "after_embedding": false,
               "at_end": false},
      "linear": {"bias": true, "scaled_scores": true},
      "attention": {"kv_heads": 4, "causal": false, "qk_norm": false, "branch_norms": false,
                    "score_cap": 0.0},
      "mlp": {"activation": "gelu", "gated": false},
      "position": {"kind": "learned", "first_position": 0, "table_rows": 128,
                   "usable_positions": 128, "trained_length": 128},
      "tokenizer": {"kind": "phasor (SentencePiece, tokenizer.model)", "frame": "[CLS] … [SEP]"},
      "text": {"special_tokens": true},
      "sentence": {"pooling": "mean, not normalised", "width": 128, "similarity": "cosine",
                   "source": "default"},
      "mlm_head": true, "classifier": false, "parameters": 2279552, "disk": {"F16_bytes": 4559104},
      "memory": {"packed_bytes": 4746240, "mapped_bytes": 2129920},
      "unused_tensors": [], "unused_keys": [], "notes": []})json");
  json learned = infer_json({"info", "-m", "learned"}).at(0);
  for (const char* const elsewhere : {"folder", "precision", "versions"}) {
    EXPECT_EQ(learned.erase(elsewhere), 1u);
  }
  EXPECT_EQ(learned, expected);
  const json sinusoidal = infer_json({"info"}).at(0);
  EXPECT_EQ(sinusoidal["position"], (json{{"kind", "sinusoidal"},
                                          {"layout", "paper"},
                                          {"base", 10000.0},
                                          {"first_position", 0},
                                          {"trained_length", 128}}));
}

TEST(CliInfoTest, TextHoldsTheSameFactsAGroupALine) {
  const std::string text = run_infer({"info", "none"}).out;
  const json info = infer_json({"info", "none"}).at(0);
  for (const auto& [group, facts] : info.items()) {
    EXPECT_TRUE(text.starts_with(group + " ") || contains(text, "\n" + group + " ")) << group;
  }
  expect_contains(text,
                  {"\nsizes           layers 6, d_model 128, heads 4, head_dim 32, d_ff 512,"
                   " vocabulary 8192\n",
                   "\nnorm            order post, kind layer_norm, eps 1e-05,"
                   " after_embedding no, at_end no\n",
                   "\nposition        kind none, trained_length 128\n", "\nmlm_head        yes\n",
                   "\nunused_keys     none\n", "\nmemory          mapped 2.1 MB, packed 4.7 MB\n"});
}

TEST(CliInfoTest, LongListsAreCutAndLongLinesWrappedBesideTheirLabels) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = small_tensors();
  for (char name = 'a'; name <= 'j'; ++name) tensors.push_back({{name}, {2, 2}});
  write_checkpoint(folder, small_config_json(), tensors);
  const ProgramResult result = run_infer({"info", folder.path().string()});
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 100u + 2) << line;
  expect_contains(result.out, {"\ntokenizer       problem ", "\n                (vocab.txt)",
                               " a; b; c; d; e; f; g; h; … (10 in all; --json lists them)\n"});
  const json info = infer_json({"info", folder.path().string()}).at(0);
  EXPECT_EQ(info["unused_tensors"].size(), 10u);
  EXPECT_EQ(info["tokenizer"].size(), 1u);
}

TEST(CliInfoTest, ShowsWhatSentenceTransformersFilesSay) {
  const TempFolder folder;
  const fs::path copy = sentence_model(folder, 64, "query");
  const json info = infer_json({"info", copy.string()}).at(0);
  EXPECT_EQ(info["sentence"], (json{{"pooling", "cls, normalised"},
                                    {"width", 128},
                                    {"similarity", "cosine"},
                                    {"source", "1_Pooling/config.json"}}));
  EXPECT_EQ(info["text"], (json{{"max_tokens", 64},
                                {"special_tokens", true},
                                {"prompt", "query: "},
                                {"prompts", {{"query", "query: "}}},
                                {"query_prompt", "query: "}}));
  folder.write("model/config_sentence_transformers.json", R"({"prompts": {"a_bytes": "b"}})");
  succeed({"info", copy.string()});
  folder.write("model/1_Pooling/config.json", R"({"pooling_mode": "attention"})");
  EXPECT_TRUE(infer_json({"info", copy.string()}).at(0)["sentence"].contains("problem"));
}

TEST(CliInfoTest, SaysThatDamagedWeightsCannotBeRun) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = small_tensors();
  tensors[2].bytes.replace(0, 4, float_bytes({NAN}));
  tensors.push_back({"decoder.weight", {2, 2}});
  write_checkpoint(folder, small_config_json(), tensors);
  const json info = infer_json({"info", folder.path().string()}).at(0);
  EXPECT_FALSE(info["memory"].contains("packed_bytes"));
  ASSERT_EQ(info["notes"].size(), 1u);
  EXPECT_TRUE(contains(info["notes"][0], "cannot be run: the model's block 0 q weight holds nan"))
      << info["notes"];
  EXPECT_EQ(info["unused_tensors"], json{"decoder.weight"});
}

TEST(CliInfoTest, NotesOnTheFilesAreShownThereAndBeforeARun) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "none");
  json config = json::parse(std::ifstream(copy / "config.json"));
  config["final_nrom"] = true;  // a slip that changes nothing and must not pass unseen
  folder.write((copy.filename() / "config.json").string(), config.dump());
  const json notes = infer_json({"info", copy.string()}).at(0)["notes"];
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(contains(notes[0].get<std::string>(), "final_nrom")) << notes;
  EXPECT_TRUE(contains(run_infer({"info", copy.string()}).out, "final_nrom"));
  EXPECT_TRUE(contains(run_infer({"-m", copy.string(), "Tom"}).err, "final_nrom"));
}

TEST(CliVerifyTest, TheBundledModelsAgreeWithTheirTraining) {
  const ProgramResult result = run_infer({"verify", "sinusoidal", "learned", "none"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  const std::vector<json> objects = infer_json({"verify", "sinusoidal", "learned", "none"});
  ASSERT_EQ(objects.size(), 3u);
  for (const json& object : objects) {
    EXPECT_EQ(object["ok"], true);
    EXPECT_GT(object["texts"], 0);
    EXPECT_EQ(object["tensors"].size(), 7u + 6 + 1);
  }
}

TEST(CliVerifyTest, NamesTheFirstLayerThatDiffers) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "sinusoidal");
  json golden = json::parse(read_text_file(copy / "golden.json"));
  golden["atol"] = 0;
  golden["rtol"] = 0;
  golden["items"][0]["ids"].push_back(7);
  std::ofstream(copy / "golden.json") << golden.dump();
  const ProgramResult result = run_infer({"verify", copy.string()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  expect_contains(result.out, {"first difference: the ids of item 0", "hidden_states.0"});

  golden["items"][0]["text"] = nullptr;  // without a text only the layers can differ
  std::ofstream(copy / "golden.json") << golden.dump();
  const ProgramResult layers = run_infer({"verify", copy.string()});
  EXPECT_EQ(layers.exit_code, 1);
  EXPECT_TRUE(contains(layers.out, "first difference: hidden_states.0 of item 0 has shape"))
      << layers.out;
}

TEST(CliVerifyTest, AnInfiniteReferenceIsNotMetByAnything) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "none");
  std::string bytes = read_text_file(copy / "golden.safetensors");
  const float infinite = std::numeric_limits<float>::infinity();
  for (size_t at = data_start(bytes); at + 4 <= bytes.size(); at += 4) {
    std::memcpy(&bytes[at], &infinite, 4);
  }
  std::ofstream(copy / "golden.safetensors", std::ios::binary) << bytes;
  EXPECT_EQ(run_infer({"verify", copy.string()}).exit_code, 1);
}

TEST(CliVerifyTest, AChangedWeightShowsWhereItActs) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "none");
  // The last block's last bias in the file: flip the sign and scale of its first value.
  std::string bytes = read_text_file(copy / "model.safetensors");
  const json header = json::parse(bytes.substr(8, data_start(bytes) - 8));
  std::string name;
  for (const auto& [key, value] : header.items()) {
    if (contains(key, "5") && contains(key, "bias") && contains(key, "norm")) name = key;
  }
  ASSERT_FALSE(name.empty());
  const size_t at = data_start(bytes) + header[name]["data_offsets"][0].get<size_t>();
  bytes[at] = 0;
  bytes[at + 1] = 0x44;  // 4.0 as float16
  std::ofstream(copy / "model.safetensors", std::ios::binary) << bytes;

  const ProgramResult result = run_infer({"verify", copy.string()});
  EXPECT_EQ(result.exit_code, 1) << name << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "first difference: hidden_states.6 of item 0")) << result.out;
}

TEST(CliVerifyTest, GoesOnAfterAFolderThatCannotBeRead) {
  const ProgramResult result = run_infer({"verify", "--json", "no-such-model", "none"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(lines_of(result.out).size(), 1u);
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
}

TEST(CliVerifyTest, ReferenceFilesThatAreMissingOrBrokenAreNamed) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "none");
  folder.write("none/golden.json", R"({"atol": 1, "rtol": 1, "items": [{"ids": ["x"]}]})");
  expect_infer_fails({"verify", copy.string()}, 3, {"golden.json"});
  const std::string text(1'048'577, 'a');
  folder.write("none/golden.json",
               json{{"atol", 1}, {"rtol", 1}, {"items", {{{"text", text}, {"ids", {5}}}}}}.dump());
  expect_infer_fails({"verify", copy.string()}, 3, {"text has 1048577 bytes"});
  folder.write("none/golden.json", R"({"atol": 1, "rtol": 1, "items": [{"ids": [5]}]})");
  folder.write("none/golden.safetensors", safetensors_bytes(std::vector<TestTensor>{}));
  expect_infer_fails({"verify", copy.string()}, 3, {"0.hidden_states.0"});
  fs::remove(copy / "golden.safetensors");
  expect_infer_fails({"verify", copy.string()}, 4, {"golden.safetensors"});
  fs::remove(copy / "golden.json");
  expect_infer_fails({"verify", copy.string()}, 3, {"golden.json"});
}

TEST(CliVerifyTest, OtherFrameworksActivationsAreReached) {
  PHASOR_SHARED_OR_SKIP(golden, "golden");
  PHASOR_SHARED_OR_SKIP(real, "real");
  PHASOR_SHARED_OR_SKIP(newer, "golden2");
  Words folders;
  size_t older = 0;  // of which some have ids alone
  for (const fs::path& group : {golden, real, newer}) {
    if (group == newer) older = folders.size();
    for (const auto& folder : fs::directory_iterator(group)) {
      const bool has_states = fs::exists(folder.path() / "golden.safetensors");
      if (has_states || group != newer) folders.push_back(folder.path().string());
    }
  }
  for (const std::string precision : {"f32", "bf16", "int8"}) {
    const std::vector<json> objects =
        infer_json(Words{"verify", "-q", "--precision", precision} + folders);
    ASSERT_EQ(objects.size(), folders.size());
    std::set<std::string> families;
    for (size_t i = 0; i < objects.size(); ++i) {
      const json& object = objects[i];
      EXPECT_EQ(object["ok"], true) << precision << object;
      EXPECT_TRUE(i < older || object["texts"] > 0) << object;
      families.insert(object["family"]);
    }
    EXPECT_GE(families.size(), 11u);
  }
}

TEST(CliVerifyTest, TodaysArchitecturesAreRightWithBothLibrariesOfKernels) {
  PHASOR_SHARED_OR_SKIP(golden, "golden3");
  for (const std::string name :
       {"eurobert", "eurobert-classifier-bos", "eurobert-classifier-mean",
        "eurobert-classifier-late", "qwen3-embedding", "qwen3-bidirectional",
        "qwen3-bidirectional-flag", "embeddinggemma", "t5gemma", "mmbert", "granite-o200k",
        "modernbert-gpt4"}) {
    for (const char* const kernels : {"own", "onednn"}) {
      const std::string folder = (golden / name).string();
      for (const json& object : infer_json({"verify", "-q", "--kernels", kernels, folder}))
        EXPECT_EQ(object["ok"], true) << name << " " << kernels << object;
    }
  }
}

}  // namespace
}  // namespace phasor
