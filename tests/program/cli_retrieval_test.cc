// infer embed --sparse and --tokens, and infer rank by token vectors.
#include <fmt/ranges.h>

#include <cstring>
#include <limits>
#include <map>

#include "phasor/names.h"
#include "phasor/safetensors.h"
#include "tests/program/program.h"
#include "tests/support/sparse_folder.h"
#include "tests/support/token_vector_folder.h"

namespace phasor {
namespace {

/// So many lines that they are run in more than one window.
Words many_lines() {
  Words lines;
  for (int i = 0; i < 700; ++i) lines.push_back("line " + std::to_string(i));
  return lines;
}

/// A file's tensors are the parts of a result.
void expect_parts(const SafetensorsFile& file, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const std::string name(part.name);
    ASSERT_TRUE(file.entries().contains(name)) << name;
    const SafetensorsFile::Entry& entry = file.entries().at(name);
    std::visit(
        [&](auto values) {
          ASSERT_EQ(entry.num_bytes, values.size_bytes()) << name;
          EXPECT_EQ(std::memcmp(entry.data, values.data(), values.size_bytes()), 0) << name;
          std::vector<int64_t> shape = {std::ssize(values)};
          if (part.columns > 0) shape = {shape[0] / part.columns, part.columns};
          EXPECT_EQ(entry.shape, shape) << name;
        },
        part.values);
  }
}

/// A line's JSON of token vectors.
void expect_tokens(const json& line, const TokenRows& want, int64_t i) {
  const auto tokenizer = Model::load("sinusoidal");
  ASSERT_EQ(std::ssize(line), want.offsets[i + 1] - want.offsets[i]);
  std::vector<float> values;
  for (int64_t t = want.offsets[i]; const json& each : line) {
    EXPECT_EQ(each["token"], tokenizer->tokenizer().piece(want.ids[t]));
    EXPECT_EQ(each["start"], want.spans[t].begin);
    EXPECT_EQ(each["stop"], want.spans[t++].end);
    for (const float value : each["vector"]) values.push_back(value);
  }
  EXPECT_TRUE(std::ranges::equal(values, want[i]));
}

/// The text of a file of lines.
std::string text_of(const Words& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

TEST(CliSparseTest, WeightsAreThoseOfTheLibrary) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const Words texts = {"Tom bit a dog.", "It rains.", ""};
  const auto loaded = Model::load(model.path());
  const Vectors want = Encoder(loaded).embed(texts, {.kinds = {VectorKind::kSparse}});
  const std::vector<json> lines =
      infer_json(Words{"embed", "--sparse", "-m", model.path(), "--precision", "f32"} + texts);
  ASSERT_EQ(lines.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(lines[i]["line"], i + 1);
    std::map<int32_t, float> found;
    float before = std::numeric_limits<float>::infinity();
    for (const json& each : lines[i]["sparse"]) {
      const float value = each["value"];
      EXPECT_LE(value, before);
      before = found[each["index"].get<int32_t>()] = value;
      EXPECT_EQ(each["word"], loaded->tokenizer().piece(each["index"]));
    }
    const SparseVector vector = want.sparse[i];
    std::map<int32_t, float> expected;
    for (size_t w = 0; w < vector.indices.size(); ++w)
      expected[vector.indices[w]] = vector.values[w];
    EXPECT_EQ(found, expected);
  }
}

TEST(CliSparseTest, WhatDoesNotGoTogetherIsRefused) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const std::string sparse = "embed a --sparse -m " + model.path();
  const std::string no_model = "embed a -m none ";
  expect_refused({{2, no_model + "--sparse --similarity", {"--similarity"}},
                  {2, no_model + "--sparse --pooling mean", {"--kinds sparse", "pooling"}},
                  {2, no_model + "--kinds tokens --no-normalize", {"--kinds tokens", "normalize"}},
                  {2, no_model + "--offset-unit bytes", {"infer embed", "offset_unit"}},
                  {2, no_model + "--kinds dense --tokens", {"--kinds", "--tokens"}},
                  {2, no_model + "--kinds dence", {"--kinds", "dense"}},
                  {2, no_model + "--max-tokens -1", {"--max-tokens", "0"}},
                  {2, no_model + "--prompt a --prompt-name b", {"prompt_name"}},
                  {2, sparse + " -o x.npy", {".safetensors"}},
                  {4, sparse + " --tokens", {"--sparse"}},
                  {3, sparse + " -o no/such/x.safetensors", {"no folder"}},
                  {4, "embed a --tokens", {"ColBERT"}},
                  {4, "embed a --sparse", {"SpladePooling"}},
                  {4, "embed a -m " + model.path(), {"--sparse"}},
                  {4, "rank a b -m " + model.path(), {"--sparse", "a reranker"}},
                  {4, "classify a -m " + model.path(), {"infer embed --sparse"}}});
}

class CliTokensTest : public testing::Test {
 protected:
  TokenVectorFolder folder_{"rotary",
                            {{"query_expansion", {{"strategy", "fixed"}, {"length", 16}}}}};
  std::shared_ptr<const Model> model_ = Model::load(folder_.path());
  Encoder encoder_{model_};
};

TEST_F(CliTokensTest, VectorsAreThoseOfTheLibrary) {
  const Words texts = {"Tom bit a dog.", "It rains, caf\u00e9.", ""};
  for (const bool is_query : {false, true}) {
    Words words = {"embed", "--tokens", "-m", folder_.path(), "--precision", "f32"};
    if (is_query) words.push_back("--query");
    const Vectors want =
        encoder_.embed(texts, {.kinds = {VectorKind::kTokens},
                               .role = is_query ? TextRole::kQuery : TextRole::kAny,
                               .offset_unit = OffsetUnit::kCharacters});
    const std::vector<json> lines = infer_json(words + texts);
    ASSERT_EQ(lines.size(), texts.size());
    for (size_t i = 0; i < lines.size(); ++i) expect_tokens(lines[i]["tokens"], want.tokens, i);
  }
}

TEST_F(CliTokensTest, AFileSaysWhereEachLineBegins) {
  const TempFolder folder;
  const std::string file = folder.path() / "vectors.safetensors";
  const Words lines = many_lines();
  const std::string input = text_of(lines);
  const ProgramResult done =
      succeed({"embed", "--tokens", "-m", folder_.path(), "--precision", "f32", "-o", file},
              {.input = input});
  expect_contains(done.err, {"700 lines", "vectors each"});
  const Vectors want = encoder_.embed(
      lines, {.kinds = {VectorKind::kTokens}, .offset_unit = OffsetUnit::kCharacters});
  expect_parts(*SafetensorsFile::open(file), want.parts());
}

TEST(CliAllVectorsTest, OneRunGivesWhatThreeGive) {
  const TokenVectorFolder folder;
  folder.make_bge();
  const TempFolder made;
  const Words texts = {"Tom bit a dog.", "", "It rains."};
  const auto run = [&](const Words& options) {
    return infer_json(Words{"embed", "-m", folder.path(), "--precision", "f32"} + options + texts);
  };
  std::vector<json> all = run({});
  for (const std::vector<json>& others : {run({"--sparse"}), run({"--tokens"})})
    for (size_t i = 0; i < all.size(); ++i) all[i].update(others.at(i));
  EXPECT_EQ(run({"--sparse", "--tokens"}), all);
  const auto save = [&](const Words& options) {
    const std::string file = made.path() / "v.safetensors";
    const Words words = {"embed", "-q", "-m", folder.path(), "-o", file};
    succeed(words + options + texts);
    return SafetensorsFile::open(file);
  };
  const auto whole = save({"--sparse", "--tokens"});
  for (const auto& [options, names] :
       {std::pair<Words, Words>{{}, {"dense"}},
        {{"--sparse"}, {"sparse_shape", "sparse_offsets", "sparse_indices", "sparse_values"}},
        {{"--tokens"}, {"token_vectors", "token_offsets", "token_ids", "token_spans"}}}) {
    const auto part = save(options);
    for (const std::string& name : names) {
      const auto &a = whole->entries().at(name), &b = part->entries().at(name);
      EXPECT_EQ(a.shape, b.shape) << name;
      ASSERT_EQ(a.num_bytes, b.num_bytes) << name;
      EXPECT_TRUE(std::equal(a.data, a.data + a.num_bytes, b.data)) << name;
    }
  }
}

TEST(CliStatesTest, LinesHaveTheirTokensLastStatesWithTheirPlaces) {
  const TempFolder folder;
  const std::string file = folder.path() / "states.safetensors";
  const Words texts = {"Tom bit a dog.", "", "Über"};
  const Words words = Words{"embed", "--kinds", "dense,states", "--precision", "f32"} + texts;
  const TextOptions how = {.kinds = {VectorKind::kDense, VectorKind::kStates},
                           .offset_unit = OffsetUnit::kCharacters};
  const Vectors want = Encoder(Model::load("sinusoidal")).embed(texts, how);
  const std::vector<json> lines = infer_json(words);
  ASSERT_EQ(lines.size(), texts.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(lines[i]["embedding"].get<std::vector<float>>(), want[i]));
    expect_tokens(lines[i]["states"], want.states, i);
  }
  EXPECT_FALSE(
      infer_json(words + Words{"--offset-unit", "none"})[0]["states"][0].contains("start"));
  succeed(words + Words{"-o", file});
  expect_parts(*SafetensorsFile::open(file), want.parts());
}

TEST_F(CliTokensTest, LinesAreRankedByThem) {
  const Words texts = {"It rains.", "Tom bit a dog.", "She told him so."};
  const std::string query = "Who bit the dog?";
  const Ranking want = encoder_.rank(query, texts);
  const std::vector<json> lines = infer_json(
      Words{"rank", "--json", "-m", folder_.path(), "--precision", "f32", query} + texts);
  const json& ranking = lines.at(0)["ranking"];
  ASSERT_EQ(ranking.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(ranking[i]["line"], want.order[i] + 1);
    EXPECT_NEAR(ranking[i]["score"].get<float>(), want.scores[want.order[i]], 1e-5);
  }
}

}  // namespace
}  // namespace phasor
