// The command that infer prints for weights in a pickle: it is run as printed, where Python has
// torch and safetensors.
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"
#include "tests/support/shared_files.h"

namespace phasor {
namespace {

#define PHASOR_TORCH_OR_SKIP()                                                          \
  if (run_program({"/usr/bin/env", "python3", "-c", "import torch, safetensors.torch"}) \
          .exit_code != 0) {                                                            \
    GTEST_SKIP() << "python3 has no torch or no safetensors here";                      \
  }

/// The command at the end of the message about `folder`.
std::string printed_command(const fs::path& folder,
                            const std::string& why = "no model.safetensors") {
  const ProgramResult result = run_infer({"embed", "-m", folder.string(), "a"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_TRUE(contains(result.err, why)) << result.err;
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  const size_t command = result.err.find("python3 -c ");
  if (command == std::string::npos) {
    ADD_FAILURE() << "no command in: " << result.err;
    return "false";
  }
  return result.err.substr(command);
}

ProgramResult run_shell(const std::string& command) {
  return run_program({"/bin/sh", "-c", command});
}

/// Makes pickles of t, the tensors of model.safetensors in folder f, and removes that file.
void make_pickles(const fs::path& folder, const std::string& statements) {
  const std::string script =
      "import os, sys, torch; from safetensors.torch import load_file\n"
      "f = sys.argv[1] + '/'; t = load_file(f + 'model.safetensors')\n" +
      statements + "\nos.remove(f + 'model.safetensors')\n";
  const ProgramResult result =
      run_program({"/usr/bin/env", "python3", "-c", script, folder.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

TEST(CliConversionTest, TheDocumentationHasTheCommandThatIsPrinted) {
  const TempFolder folder;
  folder.write("config.json", R"({"model_type": "bert", "hidden_size": 12, "intermediate_size": 20,
    "num_hidden_layers": 1, "num_attention_heads": 3, "vocab_size": 56,
    "max_position_embeddings": 32})");
  folder.write("pytorch_model.bin", "\x80\x02}q");
  const std::string command = printed_command(folder.path());
  const std::string script = command.substr(0, command.find(" '" + folder.path().string()));
  EXPECT_TRUE(script.ends_with("})'")) << script;
  EXPECT_TRUE(contains(read_text_file(fs::path(PHASOR_SOURCE_DIR) / "docs/models.md"), script));
}

TEST(CliConversionTest, ThePrintedCommandKeepsConfigurationAndHeads) {
  PHASOR_TORCH_OR_SKIP();
  const BertFolder model({"no", "yes", "maybe"});
  const std::string config = read_text_file(fs::path(model.path()) / "config.json");
  const auto answers = [](const fs::path& folder) {
    return run_infer({"classify", "--json", "-m", folder.string(), "a dog", "rain"}).out;
  };
  const std::string want = answers(model.path());
  for (const char* const statements :
       {"torch.save(t, f + 'pytorch_model.bin')",
        "torch.save(t, f + 'model.pt', _use_new_zipfile_serialization=False)",
        "torch.save({'epoch': 3, 'state_dict': t}, f + 'pytorch_model.bin')",
        // Parameters; a tensor under two names; transposed and sliced views; what is no tensor.
        "d = {k: torch.nn.Parameter(v) for k, v in t.items()}\n"
        "w = 'bert.embeddings.word_embeddings.weight'; d['tied'] = d[w]\n"
        "p = 'bert.pooler.dense.weight'; d[p] = t[p].t().contiguous().t()\n"
        "both = torch.cat([t['classifier.weight'], t['classifier.bias'][:, None]], 1)\n"
        "d['classifier.weight'], d['classifier.bias'] = both[:, :-1], both[:, -1]\n"
        "d['version'] = 2; torch.save(d, f + 'pytorch_model.bin')",
        "k = sorted(t)\n"
        "torch.save({n: t[n] for n in k[:9]}, f + 'pytorch_model-00001-of-00002.bin')\n"
        "torch.save({n: t[n] for n in k[9:]}, f + 'pytorch_model-00002-of-00002.bin')\n"
        "open(f + 'pytorch_model.bin.index.json', 'w').write('{}')"}) {
    SCOPED_TRACE(statements);
    const TempFolder above;
    const fs::path folder = above.path() / "it's a \"model\" of $HOME";
    fs::copy(model.path(), folder);
    make_pickles(folder, statements);
    const ProgramResult converted = run_shell(printed_command(folder));
    ASSERT_EQ(converted.exit_code, 0) << converted.err;
    EXPECT_EQ(answers(folder), want);
    EXPECT_EQ(read_text_file(folder / "config.json"), config);
  }
}

TEST(CliConversionTest, TheSameCommandIsPrintedForADenseModule) {
  PHASOR_TORCH_OR_SKIP();
  const BertFolder model({});
  model.folder().write("modules.json", R"([{"type": "a.Transformer", "path": ""},
    {"type": "a.Pooling", "path": "1_Pooling"}, {"type": "a.Dense", "path": "2_Dense"}])");
  model.folder().write("1_Pooling/config.json", "{}");
  model.folder().write("2_Dense/config.json", R"({"in_features": 12, "out_features": 1})");
  model.folder().write(
      "2_Dense/model.safetensors",
      safetensors_bytes(
          {{"linear.weight", {1, 12}, "F32", float_bytes(std::vector<float>(12, 0.25f))},
           {"linear.bias", {1}, "F32", float_bytes({0.5f})}}));
  const auto vector = [&] { return run_infer({"embed", "-m", model.path(), "a"}).out; };
  const std::string want = vector();
  make_pickles(fs::path(model.path()) / "2_Dense", "torch.save(t, f + 'pytorch_model.bin')");
  ASSERT_EQ(run_shell(printed_command(model.path(), "2_Dense: no model.safetensors")).exit_code, 0);
  EXPECT_EQ(vector(), want);
}

TEST(CliConversionTest, PicklesOfTheReferenceDataAreConvertedOrRefused) {
  PHASOR_SHARED_OR_SKIP(golden, "golden3");
  PHASOR_TORCH_OR_SKIP();
  for (const auto& entry : fs::directory_iterator(golden)) {
    if (!entry.path().filename().string().starts_with("pickle-")) continue;
    SCOPED_TRACE(entry.path());
    const TempFolder above;
    const fs::path folder = above.path() / "model";
    fs::copy(entry.path(), folder);
    const int code = run_shell(printed_command(folder)).exit_code;
    if (fs::exists(folder / "expect.json")) {  // a pickle that runs a program, or is cut off
      EXPECT_NE(code, 0);
      EXPECT_FALSE(fs::exists(folder / "model.safetensors"));
    } else {
      EXPECT_EQ(code, 0);
      const ProgramResult verified = run_infer({"verify", folder.string()});
      EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
    }
  }
}

}  // namespace
}  // namespace phasor
