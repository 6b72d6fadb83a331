// infer bench: what it measures adds up, and what it cannot measure it says in a line.
#include "tests/program/program.h"

namespace phasor {
namespace {

/// The rows of fast measurements.
std::vector<json> bench_json(const std::string& options) {
  return infer_json(words_of("bench --seconds 0.01 " + options));
}

/// The lines of a table, of which those below the first hold `parts`, one after the other.
Words expect_table(const std::string& options, const Words& parts) {
  const Words lines = lines_of(succeed(words_of("bench -q --seconds 0 " + options)).out);
  EXPECT_EQ(lines.size(), 1 + parts.size());
  for (size_t i = 0; i < parts.size(); ++i) expect_contains(lines.at(1 + i), {parts[i]});
  return lines;
}

TEST(CliBenchTest, TheNumbersOfAMeasurementAgreeWithEachOther) {
  const std::vector<json> objects = bench_json("--shape 3x10 --threads 1");
  ASSERT_EQ(objects.size(), 1u);
  const json& m = objects.front();
  EXPECT_TRUE(holds(m, json::parse(R"({"model": "sinusoidal", "shape": "3x10", "tokens": 30,
      "threads": 1, "asked": "f32", "precision": "f32", "kernels": "own", "mean_cosine": 1})")))
      << m;
  EXPECT_EQ(m.size(), 13u) << m;
  const double seconds = m["median_ms"].get<double>() / 1e3;
  EXPECT_LE(m["min_ms"].get<double>(), m["median_ms"].get<double>());
  EXPECT_GT(m["min_ms"].get<double>(), 0);
  EXPECT_NEAR(m["tokens_per_s"].get<double>() * seconds, 30, 1e-6);
  EXPECT_GT(m["rss_bytes"], json_of("info")["memory"]["packed_bytes"]);
  EXPECT_TRUE(m["impl"].contains("qkv"));
  for (const auto& [name, implementation] : m["impl"].items())
    EXPECT_NE(implementation, "") << name;
}

TEST(CliBenchTest, EveryShapeIsMeasuredOnEveryNumberOfThreads) {
  const std::vector<json> objects =
      bench_json("--shape 1x2 --shape ragged:4-6x9,2x1 --threads 2,1,2");
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
  const std::string ask = "--shape 2x9 -t 1 --kernels own,onednn";
  const std::vector<json> rows = bench_json(ask);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["kernels"], "own");
  EXPECT_EQ(rows[1]["kernels"], "onednn");
  EXPECT_FALSE(rows[0]["impl"].contains("add_norm"));
  EXPECT_TRUE(rows[1]["impl"].contains("add_norm")) << "each step is a primitive";
  expect_table(ask, {" own f32 ", " onednn f32 ", "fastest: "});
}

TEST(CliBenchTest, TheTableHasARowForEveryMeasurement) {
  const std::string ask = "--shape 1x2,7x3 -t 1", fastest(to_string(fastest_precision()));
  const Words lines = expect_table(ask, {"1x2 ", "7x3 "});
  EXPECT_TRUE(lines[0].starts_with("shape ")) << lines[0];
  EXPECT_EQ(lines[0].size(), lines[1].size()) << lines[1];
  const std::string hint = fmt::format(
      "note: {0} may be faster here; compare: infer bench --precision f32,{0}\n", fastest);
  EXPECT_EQ(succeed(words_of("bench --seconds 0 " + ask)).err, fastest == "f32" ? "" : hint);
}

TEST(CliBenchTest, PrecisionsHaveTheirAccuracyAndTheFastestIsNamed) {
  const std::string ask = "--shape 2x9 -t 1 --precision f32,int8,auto";
  const std::vector<json> rows = bench_json(ask);
  ASSERT_EQ(rows.size(), 3u);
  const std::string automatic(to_string(fastest_precision()));
  const std::string asked[] = {"f32", "int8", "auto"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i]["asked"], asked[i]);
    EXPECT_EQ(rows[i]["precision"], i < 2 ? asked[i] : automatic);
  }
  EXPECT_EQ(rows[0]["mean_cosine"], 1);
  EXPECT_GT(rows[1]["mean_cosine"], 0.99);
  EXPECT_LT(rows[1]["mean_cosine"], 1);
  expect_table(ask, {"f32", "int8", "auto (" + automatic + ")", "fastest: "});
}

TEST(CliBenchTest, DefaultShapesThatAreTooLongAreLeftOutWithANote) {
  const ProgramResult result = succeed(words_of("bench -m learned --seconds 0 -t 1 --json"));
  EXPECT_EQ(lines_of(result.out).size(), 5u);
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  expect_contains(result.err, {"note: left out: 8x512 has 512 tokens", " 128"});

  const TempFolder folder;  // with room for 7 tokens
  write_checkpoint(folder);
  expect_infer_fails({"bench", "-q", "-m", folder.path().string()}, 3, {"7", "--shape"});
  EXPECT_EQ(bench_json("--shape 2x7 -t 1 -m " + folder.path().string()).size(), 1u);
}

}  // namespace
}  // namespace phasor
