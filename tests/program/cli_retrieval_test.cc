// infer embed --sparse and --tokens, and infer rank by token vectors.
#include <fmt/ranges.h>

#include <cstring>

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

/// A file's tensors are the arrays of a result.
void expect_arrays(const SafetensorsFile& file, const std::vector<ResultArray>& arrays) {
  for (const ResultArray& array : arrays) {
    const std::string name(array.name);
    ASSERT_TRUE(file.entries().contains(name)) << name;
    const SafetensorsFile::Entry& entry = file.entries().at(name);
    std::visit(
        [&](auto values) {
          ASSERT_EQ(entry.num_bytes, values.size_bytes()) << name;
          EXPECT_EQ(std::memcmp(entry.data, values.data(), values.size_bytes()), 0) << name;
          std::vector<int64_t> shape = {std::ssize(values)};
          if (array.columns > 0) shape = {shape[0] / array.columns, array.columns};
          EXPECT_EQ(entry.shape, shape) << name;
        },
        array.values);
  }
}

/// The text of a file of lines.
std::string text_of(const Words& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

TEST(CliSparseTest, ALineShowsPiecesTheLargestWeightFirst) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const auto tokenizer = Model::load(model.path());
  const json weights = json_of("embed --sparse 'It rains.' -m " + model.path())["sparse"];
  ASSERT_GT(weights.size(), 1u);
  for (size_t w = 0; w < weights.size(); ++w) {
    EXPECT_GE(weights[0]["value"], weights[w]["value"]);
    EXPECT_EQ(weights[w]["word"], tokenizer->tokenizer().piece(weights[w]["index"]));
  }
}

TEST(CliAllVectorsTest, KindsHaveOlderNames) {
  const TokenVectorFolder model;
  model.make_bge();
  const std::string embed = "embed 'Tom bit a dog.' -m " + model.path();
  expect_alike({{embed + " --sparse", embed + " --kinds sparse"},
                {embed + " --tokens --query", embed + " --kinds tokens --role query"},
                {embed + " --sparse --tokens", embed + " --kinds dense,sparse,tokens"}});
}

TEST(CliSparseTest, WhatDoesNotGoTogetherIsRefused) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const std::string sparse = "embed a --sparse -m " + model.path();
  const std::string no_model = "embed a -m none ";
  expect_refused({{2, no_model + "--sparse --similarity", {"--similarity"}},
                  {2, no_model + "--kinds dense --tokens", {"--kinds", "--tokens"}},
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
  expect_arrays(*SafetensorsFile::open(file), want.arrays());
}

}  // namespace
}  // namespace phasor
