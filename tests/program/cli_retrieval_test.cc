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

TEST(CliSparseTest, WeightsAreThoseOfTheLibrary) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const Words texts = {"Tom bit a dog.", "It rains.", ""};
  const auto loaded = Model::load(model.path());
  const SparseVectors want = Encoder(loaded).embed_sparse(texts);
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
    SparseVector got;
    for (const auto& [index, value] : found) {
      got.indices.push_back(index);
      got.values.push_back(value);
    }
    EXPECT_EQ(got, want.vectors[i]);
  }
}

TEST(CliSparseTest, WhatDoesNotGoTogetherIsRefused) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const std::string sparse = "embed a --sparse -m " + model.path();
  expect_refused({{2, "embed a --query", {"--sparse"}},
                  {2, sparse + " --similarity", {"--similarity"}},
                  {2, sparse + " --pooling mean", {"--pooling"}},
                  {2, sparse + " -o x.npy", {".safetensors"}},
                  {2, sparse + " --chunks 3", {"--chunks"}},
                  {4, sparse + " --tokens", {"vector of each token"}},
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
    const TokenVectors want = encoder_.embed_tokens(
        texts, {.is_query = is_query, .offset_unit = OffsetUnit::kCharacters});
    const std::vector<json> lines = infer_json(words + texts);
    ASSERT_EQ(lines.size(), texts.size());
    std::vector<float> values;
    size_t t = 0;
    for (const json& line : lines) {
      for (const json& each : line["tokens"]) {
        EXPECT_EQ(each["token"], model_->tokenizer().piece(want.token_ids[t]));
        EXPECT_EQ(each["start"], want.spans[t].begin);
        EXPECT_EQ(each["stop"], want.spans[t].end);
        for (const float value : each["vector"]) values.push_back(value);
        ++t;
      }
      EXPECT_EQ(t, static_cast<size_t>(want.offsets[line["line"].get<size_t>()]));
    }
    EXPECT_EQ(values, want.values);
  }
}

TEST(CliAllVectorsTest, AFileHoldsWhatTheLibraryMakesOfAllLines) {
  const TokenVectorFolder folder;
  folder.make_bge();
  const TempFolder made;
  const std::string file = made.path() / "v.safetensors";
  const Words lines = many_lines(), embed = {"embed", "-m", folder.path(), "--precision", "f32"};
  const ProgramResult done = succeed(embed + Words{"--sparse", "--tokens", "-o", file},
                                     {.input = fmt::format("{}\n", fmt::join(lines, "\n"))});
  expect_contains(done.err, {"700 lines", "weights each", "vectors each"});
  const AllVectors want =
      Encoder(Model::load(folder.path())).embed_all(lines, {true, true, true}, {});
  const auto saved = SafetensorsFile::open(file);
  EXPECT_EQ(saved->entries().size(), 9u);
  expect_same_bits(saved->tensor("embeddings").to_float(), want.dense->values(), "embeddings");
  EXPECT_EQ(saved->tensor("vectors").to_float(), want.tokens->values);
  EXPECT_EQ(int32s(*saved, "token_ids"), want.tokens->token_ids);
  const auto& offsets = want.tokens->offsets;
  EXPECT_EQ(int32s(*saved, "offsets"), std::vector<int32_t>(offsets.begin(), offsets.end()));
  EXPECT_EQ(int32s(*saved, "spans").size(), 2 * want.tokens->token_ids.size());
  const std::vector<int32_t> indptr = int32s(*saved, "indptr"), indices = int32s(*saved, "indices");
  const std::vector<float> values = saved->tensor("values").to_float();
  EXPECT_EQ(int32s(*saved, "shape")[0], 700);
  ASSERT_EQ(indptr.size(), 701u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto part = [&](const auto& all) {
      return std::remove_cvref_t<decltype(all)>(all.begin() + indptr[i],
                                                all.begin() + indptr[i + 1]);
    };
    EXPECT_EQ((SparseVector{part(indices), part(values)}), want.sparse->vectors[i]) << i;
  }
}

TEST(CliAllVectorsTest, OneRunGivesWhatThreeGive) {
  const TokenVectorFolder folder;
  folder.make_bge();
  const Words texts = {"Tom bit a dog.", "", "It rains."};
  const auto run = [&](const Words& options) {
    return infer_json(Words{"embed", "-m", folder.path(), "--precision", "f32"} + options + texts);
  };
  std::vector<json> all = run({});
  for (const std::vector<json>& others : {run({"--sparse"}), run({"--tokens"})})
    for (size_t i = 0; i < all.size(); ++i) all[i].update(others.at(i));
  EXPECT_EQ(run({"--sparse", "--tokens"}), all);
}

TEST(CliChunksTest, VectorsAreThoseOfTheLibrary) {
  const std::string text = "Ünter was there. Tom bit a dog! It rains";
  const TempFolder folder;
  const std::string file = folder.path() / "chunks.safetensors";
  for (const auto& [name, chunk_tokens] : {std::pair("sentences", 0), {"4", 4}}) {
    ChunkOptions options;
    options.chunk_tokens = chunk_tokens;
    options.offset_unit = OffsetUnit::kCharacters;
    const ChunkVectors want =
        Encoder(Model::load("sinusoidal")).embed_chunks({text, "", "Tom."}, options);
    const Words words = {"embed", "--chunks", name, "--precision", "f32", text, "", "Tom."};
    std::vector<float> values;
    size_t chunk = 0;
    for (const json& line : infer_json(words)) {
      for (const json& each : line["chunks"]) {
        EXPECT_EQ(each["start"], want.spans[chunk].begin);
        EXPECT_EQ(each["stop"], want.spans[chunk].end);
        for (const float value : each["vector"]) values.push_back(value);
        ++chunk;
      }
      EXPECT_EQ(chunk, static_cast<size_t>(want.offsets[line["line"].get<size_t>()]));
    }
    EXPECT_EQ(values, want.values);
    succeed(words + Words{"-o", file});
    const auto saved = SafetensorsFile::open(file);
    EXPECT_EQ(saved->tensor("vectors").to_float(), want.values);
    EXPECT_EQ(int32s(*saved, "offsets"),
              std::vector<int32_t>(want.offsets.begin(), want.offsets.end()));
  }
  const json sentences = infer_json({"embed", "--chunks", "sentences", text}).at(0)["chunks"];
  EXPECT_EQ(sentences[0]["text"], "Ünter was there.");
  EXPECT_EQ(sentences[2]["text"], "It rains");
  // A long line in windows, or cut where that is asked for.
  const std::string longer = repeat(text + ". ", 40);
  const auto count = [&](const Words& more) {
    return infer_json(Words{"embed", "-q", "--chunks", "sentences", longer} + more)
        .at(0)["chunks"]
        .size();
  };
  EXPECT_EQ(count({}), 120u);
  EXPECT_LT(count({"--overflow", "truncate"}), 60u);
  expect_infer_fails({"embed", "-q", "--chunks", "2", "--pooling", "cls", "a"}, 3, {"cls", "mean"});
  for (const char* const wrong : {"0", "-1", "sentence", "1.5"})
    expect_infer_fails({"embed", "-q", std::string("--chunks=") + wrong, "-m", "none at all", "a"},
                       2, {"--chunks", "\"sentences\""});
  // Bytes that are not UTF-8 count as the character that stands for them.
  const json odd = infer_json({"embed", "-q", "--chunks", "sentences", "a\xff\xfe. Cd \x80"}).at(0);
  EXPECT_EQ(odd["chunks"][0]["text"], "a\ufffd\ufffd.");
  EXPECT_EQ(odd["chunks"][1]["start"], 5);
  expect_infer_fails({"embed", "--chunks", "2", "--tokens", "a"}, 2, {"--chunks"});
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
