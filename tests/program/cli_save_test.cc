// infer --save: files read back by the library, and disks that are full.
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

TEST(CliSaveTest, HoldsWhatTheLibraryComputes) {
  const TempFolder folder;
  const fs::path path = folder / "states.safetensors";
  const Words texts = {"Tom bit a dog.", "Why?"};
  succeed(Words{"-q", "--save", path} + texts);
  const auto file = SafetensorsFile::open(path);
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  Trace trace = Trace::hidden_states_and_attentions();
  const Encoding out = encoder.encode(std::span(texts), {.observer = &trace});
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t tokens = out[i].num_tokens();
    const std::string prefix = std::to_string(i) + ".";
    for (int64_t l = 0; l <= 6; ++l) {
      expect_saved(*file, prefix + "hidden_states." + std::to_string(l), {tokens, 128},
                   trace.hidden_state(l, i).values);
      if (l == 6) continue;
      expect_saved(*file, prefix + "attentions." + std::to_string(l), {4, tokens, tokens},
                   trace.at(Hook::kPattern, l, i).values);
    }
    expect_saved(*file, prefix + "embedding", {128}, pool(out[i].hidden, 128, {}));
    EXPECT_TRUE(std::ranges::equal(int32s(*file, prefix + "position_ids"), out[i].positions));
  }
  for (const auto& [name, entry] : file->entries())
    EXPECT_EQ(entry.dtype, name.ends_with("_ids") ? "I32" : "F32") << name;
  EXPECT_EQ(file->entries().size(), 2u * (2 + 7 + 6 + 2)) << "tensors that nobody asked for";
}

TEST(CliSaveTest, MetadataSaysHowItWasMade) {
  const TempFolder folder;
  const std::string file = (folder / "a.safetensors").string();
  run_infer({"-q", "--save", file, "Tom"});
  EXPECT_EQ(SafetensorsFile::open(file)->metadata(),
            (std::map<std::string, std::string>{{"model", "sinusoidal"},
                                                {"layout", "paper"},
                                                {"first_position", "0"},
                                                {"precision", "f32"},
                                                {"version", PHASOR_VERSION}}));
  const auto saved = [&](const std::string& options, const char* key) {
    succeed(words_of("-q Tom --save " + file + " " + options));
    return SafetensorsFile::open(file)->metadata().at(key);
  };
  EXPECT_EQ(saved("-m learned --positions sinusoidal:fairseq", "layout"), "fairseq");
  EXPECT_EQ(saved("-m learned --positions sinusoidal:fairseq", "first_position"), "2");
  EXPECT_EQ(saved("-m learned", "layout"), "learned");
  EXPECT_EQ(saved("--precision auto", "precision"), to_string(fastest_precision()));
}

TEST(CliSaveTest, NumbersTextsThroughAllBatches) {
  const TempFolder folder;
  const fs::path file = folder / "many.safetensors";
  succeed({"-q", "--save", file.string(), "-"}, {.input = repeat("a\n", 40)});
  EXPECT_EQ(SafetensorsFile::open(file)->entries().size(), 40u * 17);
  EXPECT_TRUE(SafetensorsFile::open(file)->contains("39.embedding"));
}

TEST(CliSaveTest, AFileThatCannotBeWrittenIsNamedAndLeavesAllAsItWas) {
  const TempFolder folder;
  const std::string name = "a.safetensors", file = folder.write(name, "earlier").string();
  const Words save = {"--save", file, "Tom bit a dog."};
  for (const Words& words : {save, Words{"positions", "--length", "512", "--save", file},
                             Words{"positions", "--length", "512", "--html", file}}) {
    expect_infer_fails(words, 3, {file, "File too large"}, {.file_size_limit = 10000});
    EXPECT_EQ(read_text_file(file), "earlier");
  }
  fs::remove(file);
  fs::create_directory(file);
  expect_infer_fails(save, 3, {file});
  EXPECT_EQ(file_names(folder.path()), Words{name});
  const std::string nowhere = (folder / "none" / name).string();
  expect_infer_fails({"--save", nowhere, "Tom"}, 3, {nowhere, "there is no folder"});
}

TEST(CliSaveTest, AModelWithoutSentenceVectorsLacksTheirTensorAlone) {
  const BertFolder model({});
  const TempFolder folder;
  const auto saved = [&](const Words& more) {
    const fs::path file = folder / "a.safetensors";
    succeed(Words{"-q", "-m", model.path(), "--save", file.string(), "a dog"} + more);
    return tensors_in(file);
  };
  const Words hooks = {"--hooks", "attn.hook_pattern"};
  std::vector<TestTensor> want = saved({});
  const std::string patterns = safetensors_bytes(saved(hooks));
  EXPECT_EQ(std::erase_if(want, [](const auto& each) { return each.name == "0.embedding"; }), 1u);
  model.write("modules.json", R"([{"type": "a.MLMTransformer", "path": ""},
    {"type": "a.SpladePooling", "path": "1_SpladePooling"}])");
  EXPECT_TRUE(safetensors_bytes(saved({})) == safetensors_bytes(want));
  EXPECT_TRUE(safetensors_bytes(saved(hooks)) == patterns);
}

}  // namespace
}  // namespace phasor
