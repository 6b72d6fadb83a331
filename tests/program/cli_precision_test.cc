// --precision on the command line: what it changes, what it costs, and what is said about it.
#include "tests/program/program.h"
#include "tests/support/shared_files.h"

namespace phasor {
namespace {

std::vector<float> embedding_of(const json& line) {
  return line["embedding"].get<std::vector<float>>();
}

TEST(CliPrecisionTest, ARunComputesInThePrecisionAskedFor) {
  const json f32 = infer_json({"embed", "-q", "Tom bit a dog."}).at(0);
  for (const char* name : {"f32", "bf16", "int8", "auto"}) {
    const json line = infer_json({"embed", "-q", "--precision", name, "Tom bit a dog."}).at(0);
    Encoder encoder(Model::load("sinusoidal"), {.precision = parse<Precision>(name)});
    const Embeddings vectors = encoder.embed("Tom bit a dog.");
    const std::vector<float> got = embedding_of(line);
    ASSERT_EQ(std::ssize(got), vectors.width());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], vectors[0][i], 1e-5) << name << i;
    }
    EXPECT_EQ(line == f32, encoder.precision() == Precision::kFloat32) << name;
    const json run = infer_json({"-q", "--precision", name, "Tom bit a dog."}).at(0);
    EXPECT_EQ(run["views"]["norm"].size(), 7u);
  }
}

TEST(CliPrecisionTest, AskingForASlowOneSaysSoOnce) {
  const std::vector<Words> commands = {
      {"Tom", "Tim"},
      {"embed", "Tom", "Tim"},
      {"verify", "none", "none"},
      {"compare", "none", "learned", "--only", "effect", "Tom"},
      {"bench", "--seconds", "0", "--shape", "1x2,2x2", "-t", "1,2"}};
  for (const char* name : {"auto", "bf16", "int8"}) {
    const std::string why = why_slow(parse<Precision>(name));
    for (Words arguments : commands) {
      arguments.insert(arguments.end(), {"--precision", name});
      const ProgramResult result = succeed(arguments);
      const Words lines = lines_of(result.err);
      EXPECT_EQ(std::count(lines.begin(), lines.end(), "note: " + why), why.empty() ? 0 : 1)
          << arguments[0] << " in " << name << "\n"
          << result.err;
      arguments.emplace_back("-q");
      EXPECT_EQ(run_infer(arguments).err, "") << arguments[0] << " in " << name;
    }
  }
}

TEST(CliPrecisionTest, EmbeddingAFileSaysWhichPrecisionsAreFasterWhereNoneWasChosen) {
  const TempFolder folder;
  folder.write("lines.txt", "Tom\nTim\n");
  const auto gains = precision_gains();
  const auto notes = [&](const Words& more) {
    Words words = {"embed", "-i", folder.path() / "lines.txt", "-o", folder.path() / "out.npy"};
    words.insert(words.end(), more.begin(), more.end());
    const Words err = lines_of(run_infer(words).err);
    return std::ranges::count_if(err, [](const std::string& line) {
      return line.starts_with("note: --precision is f32 by default; ");
    });
  };
  EXPECT_EQ(notes({}), gains.empty() ? 0 : 1);
  EXPECT_EQ(notes({"-q"}), 0);
  EXPECT_EQ(notes({"--precision", "f32"}), 0);
}

TEST(CliPrecisionTest, InfoSaysWhatAutoIsAndWhatIsSlowHere) {
  const json precision = infer_json({"info"}).at(0)["precision"];
  EXPECT_EQ(precision["auto"], to_string(fastest_precision()));
  const json slow = precision.value("slow", json::object());
  EXPECT_FALSE(slow.contains(precision["auto"]));
  for (const char* name : {"bf16", "int8"}) {
    const std::string why = why_slow(parse<Precision>(name));
    EXPECT_EQ(slow.value(name, ""), why);
  }
}

TEST(CliVerifyPrecisionTest, EachTensorSaysWhatThePrecisionCosts) {
  double cosine = 1;  // of the last state, falling from precision to precision
  for (const char* name : {"f32", "bf16", "int8"}) {
    const json object = infer_json({"verify", "-q", "--precision", name, "sinusoidal"}).at(0);
    EXPECT_EQ(object["ok"], true);
    EXPECT_EQ(object["precision"], name);
    ASSERT_EQ(object["tensors"].size(), 7u + 6 + 1);
    const json &first = object["tensors"][0], &last = object["tensors"][12];
    EXPECT_EQ(last["tensor"], "hidden_states.6");
    EXPECT_LT(last["mean_cosine"], cosine);
    cosine = last["mean_cosine"];
    EXPECT_GT(cosine, object["least_mean_cosine"]);
    EXPECT_LE(first["max_diff"], 1e-6) << "embeddings are float32 in every precision";
  }
}

TEST(CliVerifyPrecisionTest, BelowTheBoundTheCheckFailsAndSaysWhy) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "none");
  json golden = json::parse(read_text_file(copy / "golden.json"));
  for (json& item : golden["items"]) {  // other inputs of the same length than the reference's
    for (size_t t = 1; t < item["ids"].size(); ++t) item["ids"][t] = 500 + 7 * t;
    item["text"] = nullptr;
  }
  std::ofstream(copy / "golden.json") << golden.dump();
  const ProgramResult result = run_infer({"verify", "-q", "--precision", "int8", copy.string()});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  expect_contains(result.out, {"mean cosine >= 0.99", "the mean cosine of hidden_states.6 is 0.",
                               ", below 0.99"});
}

}  // namespace
}  // namespace phasor
