// infer bench: what it measures adds up, and what it cannot measure it says in a line.
#include "tests/program/program.h"

namespace phasor {
namespace {

/// Fast ones.
std::vector<json> bench_json(const Words& arguments) {
  return infer_json(Words{"bench", "--seconds", "0.01"} + arguments);
}

TEST(CliBenchTest, TheNumbersOfAMeasurementAgreeWithEachOther) {
  const std::vector<json> objects = bench_json({"--shape", "3x10", "--threads", "1"});
  ASSERT_EQ(objects.size(), 1u);
  const json& m = objects.front();
  Words keys;
  for (const auto& [key, value] : m.items()) keys.push_back(key);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()),
            (std::set<std::string>{"model", "shape", "tokens", "threads", "asked", "precision",
                                   "kernels", "mean_cosine", "median_ms", "min_ms", "tokens_per_s",
                                   "rss_bytes", "impl"}));
  EXPECT_EQ(m["model"], "sinusoidal");
  EXPECT_EQ(m["shape"], "3x10");
  EXPECT_EQ(m["tokens"], 30);
  EXPECT_EQ(m["threads"], 1);
  EXPECT_EQ(m["precision"], "f32");
  const double seconds = m["median_ms"].get<double>() / 1e3;
  EXPECT_LE(m["min_ms"].get<double>(), m["median_ms"].get<double>());
  EXPECT_GT(m["min_ms"].get<double>(), 0);
  EXPECT_NEAR(m["tokens_per_s"].get<double>() * seconds, 30, 1e-6);
  const json info = infer_json({"info"}).at(0);
  EXPECT_GT(m["rss_bytes"], info["memory"]["packed_bytes"]);
  EXPECT_TRUE(m["impl"].contains("qkv"));
  for (const auto& [name, implementation] : m["impl"].items()) {
    EXPECT_NE(implementation, "") << name;
  }
}

TEST(CliBenchTest, EveryShapeIsMeasuredOnEveryNumberOfThreads) {
  const std::vector<json> objects =
      bench_json({"--shape", "1x2", "--shape", "ragged:4-6x9,2x1", "--threads", "2,1,2"});
  ASSERT_EQ(objects.size(), 6u);
  const char* const shapes[] = {"1x2", "ragged:4-6x9", "2x1"};
  for (size_t i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(objects[i]["shape"], shapes[i % 3]);
    EXPECT_EQ(objects[i]["threads"], i < 3 ? 2 : 1);
  }
  const int64_t ragged = objects[1]["tokens"].get<int64_t>();
  EXPECT_GT(ragged, 4 * 9);
  EXPECT_LT(ragged, 6 * 9);
  EXPECT_EQ(objects[4]["tokens"], ragged) << "drawn anew";
}

TEST(CliBenchTest, KernelsAreMeasuredSideBySide) {
  const Words ask = {"--shape", "2x9", "-t", "1", "--kernels", "own,onednn"};
  const std::vector<json> rows = bench_json(ask);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["kernels"], "own");
  EXPECT_EQ(rows[1]["kernels"], "onednn");
  EXPECT_FALSE(rows[0]["impl"].contains("add_norm"));
  EXPECT_TRUE(rows[1]["impl"].contains("add_norm")) << "each step is a primitive";
  const ProgramResult table = run_infer(Words{"bench", "--seconds", "0"} + ask);
  const Words lines = lines_of(table.out);
  ASSERT_EQ(lines.size(), 4u) << table.out;
  EXPECT_NE(lines[1].find(" own f32 "), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find(" onednn f32 "), std::string::npos) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("fastest: ")) << lines[3];
}

TEST(CliBenchTest, TheTableHasARowForEveryMeasurement) {
  const ProgramResult result =
      succeed({"bench", "--seconds", "0", "--shape", "1x2,7x3", "-t", "1"});
  const std::string fastest(to_string(fastest_precision()));
  const std::string hint = fmt::format(
      "note: {0} may be faster here; compare: infer bench --precision f32,{0}\n", fastest);
  EXPECT_EQ(result.err, fastest == "f32" ? "" : hint);
  const Words lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 3u) << result.out;
  EXPECT_TRUE(lines[0].starts_with("shape ")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("1x2 ")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("7x3 ")) << lines[2];
  EXPECT_EQ(lines[0].size(), lines[1].size()) << result.out;
}

TEST(CliBenchTest, PrecisionsHaveTheirAccuracyAndTheFastestIsNamed) {
  const Words ask = {"--shape", "2x9", "-t", "1", "--precision", "f32,int8,auto"};
  const std::vector<json> rows = bench_json(ask);
  ASSERT_EQ(rows.size(), 3u);
  const std::string automatic(to_string(fastest_precision()));
  const char* const asked[] = {"f32", "int8", "auto"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i]["asked"], asked[i]);
    EXPECT_EQ(rows[i]["precision"], i < 2 ? asked[i] : automatic);
  }
  EXPECT_EQ(rows[0]["mean_cosine"], 1);
  EXPECT_GT(rows[1]["mean_cosine"], 0.99);
  EXPECT_LT(rows[1]["mean_cosine"], 1);
  Words table = {"bench", "-q", "--seconds", "0"};
  table.insert(table.end(), ask.begin(), ask.end());
  const Words lines = lines_of(run_infer(table).out);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(contains(lines[3], "auto (" + automatic + ")")) << lines[3];
  EXPECT_TRUE(lines[4].starts_with("fastest: ")) << lines[4];
}

TEST(CliBenchTest, DefaultShapesThatAreTooLongAreLeftOutWithANote) {
  const ProgramResult result =
      succeed({"bench", "-m", "learned", "--seconds", "0", "-t", "1", "--json"});
  EXPECT_EQ(lines_of(result.out).size(), 5u);
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(result.err.starts_with("note: left out: 8x512 has 512 tokens")) << result.err;
  EXPECT_TRUE(contains(result.err, " 128")) << result.err;

  const TempFolder folder;  // with room for 7 tokens
  write_checkpoint(folder);
  expect_infer_fails({"bench", "-q", "-m", folder.path().string()}, 3, {"7", "--shape"});
  EXPECT_EQ(bench_json({"-m", folder.path().string(), "--shape", "2x7", "-t", "1"}).size(), 1u);
}

}  // namespace
}  // namespace phasor
