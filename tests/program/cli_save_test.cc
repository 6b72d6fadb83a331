// infer --save: files read back by the library, and disks that are full.
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

/// A tensor as a file holds it.
struct Saved {
  std::string type;  // "<f4" or "<i4"
  std::vector<int64_t> shape;
  std::string bytes;

  bool operator==(const Saved&) const = default;
};

std::map<std::string, Saved> read_safetensors(const fs::path& file) {
  std::map<std::string, Saved> tensors;
  const auto opened = SafetensorsFile::open(file);
  for (const auto& [name, entry] : opened->entries()) {
    const char* data = reinterpret_cast<const char*>(entry.data);
    tensors[name] = {entry.dtype == "I32" ? "<i4" : "<f4", entry.shape,
                     std::string(data, static_cast<size_t>(entry.num_bytes))};
  }
  return tensors;
}

std::vector<int32_t> ints(const Saved& saved) {
  std::vector<int32_t> values(saved.bytes.size() / sizeof(int32_t));
  std::memcpy(values.data(), saved.bytes.data(), saved.bytes.size());
  return values;
}

const Words kTwoTexts = {"Tom bit a dog.", "Why?"};

std::map<std::string, Saved> saved_by_infer(const fs::path& file) {
  succeed({"-q", "--save", file.string(), kTwoTexts[0], kTwoTexts[1]});
  return read_safetensors(file);
}

TEST(CliSaveTest, HoldsWhatTheLibraryComputes) {
  const TempFolder folder;
  const fs::path path = folder.path() / "states.safetensors";
  const std::map<std::string, Saved> saved = saved_by_infer(path);
  const auto file = SafetensorsFile::open(path);
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  Trace trace = Trace::hidden_states_and_attentions();
  const Encoding out =
      encoder.encode(std::span(kTwoTexts), {.observer = &trace, .pooling = Pooling()});
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t tokens = out.num_tokens(i);
    const std::string prefix = std::to_string(i) + ".";
    for (int64_t l = 0; l <= 6; ++l) {
      expect_saved(*file, prefix + "hidden_states." + std::to_string(l), {tokens, 128},
                   trace.hidden_state(l, i).values);
      if (l == 6) continue;
      expect_saved(*file, prefix + "attentions." + std::to_string(l), {4, tokens, tokens},
                   trace.at(Hook::kPattern, l, i).values);
    }
    expect_saved(*file, prefix + "last_hidden_state", {tokens, 128}, out.hidden(i));
    expect_saved(*file, prefix + "embedding", {128}, out.embedding(i));
    EXPECT_TRUE(std::ranges::equal(ints(saved.at(prefix + "token_ids")), out.token_ids(i)));
    EXPECT_TRUE(std::ranges::equal(ints(saved.at(prefix + "position_ids")), out.positions(i)));
  }
  for (const auto& [name, tensor] : saved) {
    EXPECT_EQ(tensor.type, name.ends_with("_ids") ? "<i4" : "<f4") << name;
  }
  EXPECT_EQ(saved.size(), 2u * (2 + 7 + 6 + 2)) << "there are tensors that nobody asked for";
}

TEST(CliSaveTest, MetadataSaysHowItWasMade) {
  const TempFolder folder;
  const std::string file = (folder.path() / "a.safetensors").string();
  run_infer({"-q", "--save", file, "Tom"});
  EXPECT_EQ(SafetensorsFile::open(file)->metadata(),
            (std::map<std::string, std::string>{{"model", "sinusoidal"},
                                                {"layout", "paper"},
                                                {"first_position", "0"},
                                                {"precision", "f32"},
                                                {"version", PHASOR_VERSION}}));
  run_infer({"-q", "-m", "learned", "--positions", "sinusoidal:fairseq", "--save", file, "Tom"});
  EXPECT_EQ(SafetensorsFile::open(file)->metadata().at("layout"), "fairseq");
  EXPECT_EQ(SafetensorsFile::open(file)->metadata().at("first_position"), "2");
  run_infer({"-q", "-m", "learned", "--save", file, "Tom"});
  EXPECT_EQ(SafetensorsFile::open(file)->metadata().at("layout"), "learned");
  run_infer({"-q", "--precision", "auto", "--save", file, "Tom"});
  EXPECT_EQ(SafetensorsFile::open(file)->metadata().at("precision"),
            to_string(fastest_precision()));
}

TEST(CliSaveTest, TheSameRunGivesTheSameBytes) {
  const TempFolder folder;
  const fs::path file = folder.path() / "a.safetensors";
  std::string bytes[2];
  for (std::string& once : bytes) {
    run_infer({"-q", "-t", "1", "--save", file.string(), "Tom"});
    once = read_text_file(file);
  }
  EXPECT_TRUE(bytes[0] == bytes[1]);
}

TEST(CliSaveTest, NumbersTextsThroughAllBatches) {
  const TempFolder folder;
  const fs::path file = folder.path() / "many.safetensors";
  const std::string input = repeat("a\n", 40);
  succeed({"-q", "--save", file.string(), "-"}, {.input = input});
  const auto saved = read_safetensors(file);
  EXPECT_EQ(saved.size(), 40u * 17);
  EXPECT_TRUE(saved.contains("39.embedding"));
}

TEST(CliSaveTest, AFileThatCannotBeWrittenIsNamedAndLeavesAllAsItWas) {
  const TempFolder folder;
  const std::string name = "a.safetensors", file = folder.write(name, "earlier").string();
  const Words save = {"--save", file, "Tom bit a dog."};
  expect_infer_fails(save, 3, {file, "File too large"}, {.file_size_limit = 10000});
  EXPECT_EQ(read_text_file(file), "earlier");
  fs::remove(file);
  fs::create_directory(file);
  expect_infer_fails(save, 3, {file});
  EXPECT_EQ(file_names(folder.path()), Words{name});
  const std::string nowhere = (folder.path() / "none" / name).string();
  expect_infer_fails({"--save", nowhere, "Tom"}, 3, {nowhere, "No such file or directory"});
}

TEST(CliSaveTest, AModelWithoutSentenceVectorsLacksTheirTensorAlone) {
  const BertFolder model({});
  const TempFolder folder;
  const auto saved = [&](const Words& more) {
    const fs::path file = folder.path() / "a.safetensors";
    succeed(Words{"-q", "-m", model.path(), "--save", file.string(), "a dog"} + more);
    return read_safetensors(file);
  };
  const Words hooks = {"--hooks", "attn.hook_pattern"};
  std::map<std::string, Saved> want = saved({});
  const std::map<std::string, Saved> patterns = saved(hooks);
  EXPECT_EQ(want.erase("0.embedding"), 1u);
  model.folder().write("modules.json", R"([{"type": "a.MLMTransformer", "path": ""},
    {"type": "a.SpladePooling", "path": "1_SpladePooling"}])");
  EXPECT_EQ(saved({}), want);
  EXPECT_EQ(saved(hooks), patterns);
}

}  // namespace
}  // namespace phasor
