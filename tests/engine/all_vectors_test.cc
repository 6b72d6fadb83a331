// Vectors of several kinds from one run: the same bits as one by one.
#include "phasor/encoder.h"
#include "tests/support/token_vector_folder.h"

namespace phasor {
namespace {

TEST(AllVectorsTest, OneRunGivesTheSameBitsAsThree) {
  const TokenVectorFolder folder;
  folder.make_bge();
  std::vector<std::string> texts = {"Tom bit a dog.", "", "It rains."};
  for (int i = 0; i < 200; ++i) texts.push_back(repeat("a dog ", i % 31) + std::to_string(i));
  Encoder encoder(Model::load(folder.path()), {.threads = 2});
  const RetrievalOptions how = {
      .is_query = true, .offset_unit = OffsetUnit::kBytes, .prompt = "Q: "};
  int64_t told = 0;
  RetrievalOptions counted = how;
  counted.progress = [&](int64_t done, int64_t) { told = done; };
  const AllVectors all = encoder.embed_all(texts, {}, counted);
  EXPECT_EQ(told, std::ssize(texts));
  const Embeddings dense = encoder.embed(texts, {.prompt = "Q: "});
  EXPECT_TRUE(std::ranges::equal(all.dense->values(), dense.values()));
  const SparseVectors sparse = encoder.embed_sparse(texts, how);
  EXPECT_EQ(all.sparse->width, sparse.width);
  const TokenVectors tokens = encoder.embed_tokens(texts, how);
  EXPECT_EQ(all.tokens->values, tokens.values);
  EXPECT_EQ(all.tokens->offsets, tokens.offsets);
  EXPECT_EQ(all.tokens->spans, tokens.spans);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto n = static_cast<int64_t>(i);
    EXPECT_EQ((*all.sparse)[n].indices, sparse[n].indices);
    EXPECT_EQ((*all.sparse)[n].values, sparse[n].values);
    EXPECT_EQ(all.dense->report(n).num_tokens, tokens.report(n).num_tokens);
    EXPECT_EQ(all.sparse->report(n).num_tokens, tokens.report(n).num_tokens);
  }
  const AllVectors one = encoder.embed_all(texts, {.dense = false, .tokens = false}, how);
  EXPECT_FALSE(one.dense || one.tokens);
  EXPECT_EQ(one.sparse->vectors.size(), texts.size());
  expect_error<InvalidArgument>(
      [&] {
        encoder.embed_all(texts, {false, false, false});
      },
      {"no kind"});
}

TEST(AllVectorsTest, WhatAModelDoesNotMakeOrRunsOtherwiseIsRefused) {
  Encoder plain(Model::load("sinusoidal"));
  expect_error<ModelError>([&] { plain.embed_all("a"); }, {});
  EXPECT_TRUE(plain.embed_all("a", {.sparse = false, .tokens = false}).dense);
  const TokenVectorFolder longer("sinusoidal", {{"document_length", 9}});
  longer.add_sparse_linear();
  Encoder colbert(Model::load(longer.path()));
  expect_error<InvalidArgument>([&] { colbert.embed_all("a", {.dense = false}); },
                                {"one run", "length"});
  EXPECT_TRUE(colbert.embed_all("a", {.dense = false}, {.is_query = true}).tokens);
  EXPECT_TRUE(colbert.embed_all("a", {.dense = false, .sparse = false}).tokens);
}

}  // namespace
}  // namespace phasor
