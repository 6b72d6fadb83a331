// infer embed --sparse and --tokens, and infer rank by token vectors.
#include "tests/program/program.h"
#include "tests/support/bundled_folder.h"

namespace phasor {
namespace {

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
  const std::string file = model.folder().path() / "a.safetensors";
  expect_noted({{embed + " It --tokens -o " + file, {"2 lines", "vectors each"}}});
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

}  // namespace
}  // namespace phasor
