// Sparse vectors: by their formulas, and beside sentence-transformers' and FlagEmbedding's.
#include "phasor/sparse.h"

#include <stop_token>

#include "tests/support/tiny_model.h"

namespace phasor {
namespace {

const json kMax = {{"pooling_strategy", "max"}};
const std::vector<std::string> kTexts = {"Tom bit a dog.", "", "It rains; it pours."};

Vectors sparse(Encoder& encoder, const Texts& texts, TextOptions options = {}) {
  options.kinds = {VectorKind::kSparse};
  return encoder.embed(texts, options);
}

using TermWeights = std::map<int32_t, double>;

TermWeights weights_of(const SparseVector& vector) {
  EXPECT_TRUE(std::ranges::is_sorted(vector.indices, std::less_equal()));
  TermWeights weights;
  for (size_t i = 0; i < vector.indices.size(); ++i) weights[vector.indices[i]] = vector.values[i];
  return weights;
}

/// Compares with what is above 0.
void expect_weights(const SparseVector& vector, const TermWeights& want) {
  TermWeights got = weights_of(vector);
  for (const auto& [id, weight] : want) {
    if (weight <= 0) continue;
    EXPECT_NEAR(got[id], weight, 1e-5 * (1 + weight)) << id;
    got.erase(id);
  }
  EXPECT_TRUE(got.empty());
}

/// Texts with more tokens than a block of scores has rows, and some without any words.
std::vector<std::string> many_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i)
    texts.push_back(kTexts[i % 3] + (i % 5 == 0 ? " She told him so." : ""));
  return texts;
}

TEST(SparseTest, WeightsAreThoseOfTheFormulaWhateverTheBlocksAndThreads) {
  for (const bool sum : {false, true}) {
    for (const bool twice : {false, true}) {
      const SparseFolder folder({{"pooling_strategy", sum ? "sum" : "max"},
                                 {"activation_function", twice ? "log1p_relu" : "relu"}});
      Encoder encoder(Model::load(folder.path()), {.threads = 3}),
          alone(Model::load(folder.path()), {.threads = 1});
      const std::vector<std::string> texts = many_texts();
      const Vectors vectors = sparse(encoder, texts);
      const SparseRows& all = vectors.sparse;
      ASSERT_EQ(all.size(), 60);
      for (int64_t i = 15; i < 60; ++i)  // they repeat
        EXPECT_EQ(weights_of(all[i]), weights_of(all[i - 15]));
      for (const int64_t i : {0, 1, 2, 5, 59}) {
        const Vectors one = sparse(alone, texts[i]);
        EXPECT_EQ(weights_of(one.sparse[0]), weights_of(all[i]));
        const Encoding encoding = alone.encode(texts[i]);
        const std::vector<float> logits = alone.mlm_logits(encoding.hidden);
        TermWeights want;
        for (int64_t t = 0; t < encoding[0].num_tokens(); ++t) {
          for (int32_t v = 0; v < all.width; ++v) {
            double weight = std::log1p(std::max(0.0F, logits[t * all.width + v]));
            if (twice) weight = std::log1p(weight);
            want[v] = sum ? want[v] + weight : std::max(want[v], weight);
          }
        }
        expect_weights(all[i], want);
        EXPECT_EQ(vectors.reports[i].num_tokens, encoding[0].num_tokens());
      }
    }
  }
}

TEST(SparseTest, AMistakeInTheFilesIsNamed) {
  const auto refused = [](const json& pooling, std::initializer_list<std::string> words) {
    const SparseFolder folder(pooling);
    const auto model = Model::load(folder.path());
    EXPECT_FALSE(model->has_sparse());
    EXPECT_REFUSED(model->sparse(), words);
    expect_error<ModelError>(
        [&] {
          Encoder encoder(model);
          sparse(encoder, "a");
        },
        words);
  };
  refused({{"pooling_strategy", "mean"}}, {"1_SpladePooling/config.json", "\"max\" or \"sum\""});
  refused({{"activation_function", "gelu"}}, {"activation_function", "log1p_relu"});
  refused({{"word_embedding_dimension", 7}}, {"7", "8192"});
  Encoder dense(Model::load("sinusoidal"));
  EXPECT_REFUSED(sparse(dense, "a"), {"no sparse vectors", "SpladePooling"});
  // The pooling without a folder of its own would lie in the root of the file system.
  const SparseFolder bare(kMax);
  json modules = json::parse(std::ifstream(bare / "modules.json"));
  modules[1]["path"] = "";
  bare.write_json("modules.json", modules);
  EXPECT_REFUSED(Model::load(bare.path())->sparse(), {"path"});
  // A model of sparse vectors makes no others by its files.
  const SparseFolder folder(kMax);
  EXPECT_REFUSED(Encoder(Model::load(folder.path())).embed("a"), {"sparse vectors"});
}

TEST(SparseTest, TokensGiveTheirPiecesTheLargestOfTheirWeights) {
  for (const size_t numbers : {size_t{128}, size_t{127}}) {
    const SparseFolder folder(kMax);
    fs::remove(folder / "modules.json");
    std::vector<float> weight(numbers);
    for (size_t i = 0; i < numbers; ++i) weight[i] = std::sin(static_cast<float>(i));
    const std::vector<TestTensor> tensors = {
        {"weight", {1, std::ssize(weight)}, "F32", float_bytes(weight)},
        {"bias", {1}, "F32", float_bytes({0.5F})}};
    folder.write("sparse_linear.pt", torch_bytes(tensors));
    const auto model = Model::load(folder.path());
    if (std::ssize(weight) != model->config().d_model) {
      EXPECT_REFUSED(model->sparse(), {"sparse_linear.pt", "weight", "128"});
      continue;
    }
    Encoder encoder(model);
    const std::string text = "Tom bit a dog and the dog bit Tom, the dog.";
    const SparseRows vectors = sparse(encoder, {text, ""}).sparse;
    const Encoding encoding = encoder.encode(text);
    const std::vector<int32_t> round = model->tokenizer().encode("").ids;
    TermWeights want;
    for (int64_t t = 0; t < encoding[0].num_tokens(); ++t) {
      const int32_t id = encoding.token_ids[t];
      if (std::ranges::find(round, id) != round.end()) continue;
      double sum = 0.5;
      for (size_t c = 0; c < numbers; ++c) sum += encoding.hidden[t * numbers + c] * weight[c];
      if (sum > 0) want[id] = std::max(want[id], sum);
    }
    ASSERT_GT(want.size(), 2u);
    expect_weights(vectors[0], want);
    EXPECT_TRUE(vectors[1].indices.empty());
  }
}

TEST(SparseTest, QueriesAreLookedUpByTheModelsOwnTokens) {
  const SparseFolder folder(kMax);
  const std::string base = "sentence_transformers.sparse_encoder.models.";
  folder.write("modules.json", json{{{"path", ""}, {"type", base + "Router"}}}.dump());
  fs::create_directory(folder / "doc");
  for (const char* const name : {"config.json", "model.safetensors", "tokenizer.model"})
    fs::rename(folder / name, folder / "doc" / name);
  const auto route = [&](const std::vector<std::string>& query) {
    const json router = {
        {"types",
         {{"doc", base + "MLMTransformer"},
          {"other", base + "MLMTransformer"},
          {"1_SpladePooling", base + "SpladePooling"},
          {"table", base + "SparseStaticEmbedding"}}},
        {"structure", {{"document", {"doc", "1_SpladePooling"}}, {"query", query}}}};
    folder.write_json("router_config.json", router);
  };
  std::vector<float> table(8192);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i % 3) - 1;
  const auto write = [&](const std::vector<float>& weights) {
    folder.write(
        "table/model.safetensors",
        safetensors_bytes({{"weight", {std::ssize(weights)}, "F32", float_bytes(weights)}}));
  };
  write(table);
  route({"table"});
  const auto model = Model::load(folder.path());
  Encoder encoder(model);
  const std::string text = "Tom bit a dog, a dog.";
  TermWeights want;
  for (const int32_t id : model->tokenizer().encode(text, {.no_special_tokens = true}).ids)
    if (table[id] != 0) want[id] = table[id];
  const Vectors query = sparse(encoder, {text, ""}, {.role = TextRole::kQuery});
  EXPECT_EQ(weights_of(query.sparse[0]), want);
  EXPECT_TRUE(query.sparse[1].indices.empty());
  const Vectors document = sparse(encoder, text);
  EXPECT_NE(weights_of(document.sparse[0]), want);
  TextOptions how = {.role = TextRole::kQuery, .max_tokens = 2};
  EXPECT_GT(sparse(encoder, text, how).reports[0].dropped_tokens, 0);
  how.overflow = Overflow::kError;
  EXPECT_INVALID(sparse(encoder, text, how), {"too many", "2"});
  std::stop_source stop;
  stop.request_stop();
  how.stop = stop.get_token();
  expect_code(ErrorCode::kCancelled, "", [&] { sparse(encoder, text, how); });
  const auto refused = [&](std::initializer_list<std::string> words) {
    const auto other = Model::load(folder.path());
    EXPECT_REFUSED(other->sparse(), words);
  };
  route({"other", "1_SpladePooling"});  // another Transformer than that of documents
  refused({"router_config.json", "other modules"});
  route({"table"});
  write(std::vector<float>(8191));
  refused({"weight", "8192"});
  table[7] = std::numeric_limits<float>::quiet_NaN();
  write(table);
  refused({"NaN"});
}

TEST(SparseTest, ADotProductCountsCommonPieces) {
  const SparseRows rows{.width = 12,
                        .offsets = {0, 3, 7},
                        .indices = {1, 4, 9, 0, 4, 9, 11},
                        .values = {2, 3, 5, 7, 0.5, 2, 1}};
  const SparseVector a = rows[0], b = rows[1];
  EXPECT_EQ(dot(a, b), 11.5);
  EXPECT_EQ(dot(b, a), 11.5);
  EXPECT_EQ(dot(a, {}), 0);
}

/// Compares with {"index", "value"}.
void expect_near(const SparseVector& got, const json& want, const json& golden) {
  ASSERT_EQ(json(std::vector(got.indices.begin(), got.indices.end())), want["index"]);
  expect_golden(got.values, want["value"], golden);
}

TEST(SparseTest, AreThoseOfTheReferences) {
  PHASOR_SHARED_OR_SKIP(shared, "golden3");
  for (const std::string name : {"splade", "splade-sum", "splade-doc", "bge-m3"}) {
    SCOPED_TRACE(name);
    const bool tokens = name == "bge-m3";
    const json golden =
        json::parse(std::ifstream(shared / name / (tokens ? "m3.json" : "sparse.json")));
    Encoder encoder(Model::load(shared / name), {.threads = 2});
    std::vector<std::string> texts;
    for (const json& item : golden["items"]) texts.push_back(item["text"]);
    const SparseRows documents = sparse(encoder, texts).sparse,
                     queries = sparse(encoder, texts, {.role = TextRole::kQuery}).sparse;
    for (int64_t i = 0; i < documents.size(); ++i) {
      SCOPED_TRACE(texts[i]);
      const json& item = golden["items"][i];
      expect_near(documents[i], item[tokens ? "sparse" : "document"], golden);
      if (!tokens) expect_near(queries[i], item["query"], golden);
    }
    const json& products = golden[tokens ? "sparse_scores" : "similarity"];
    for (size_t i = 0; i < products.size(); ++i) {
      for (size_t j = 0; j < products[i].size(); ++j)
        EXPECT_NEAR(dot(queries[i], documents[j]), products[i][j].get<double>(), 1e-4)
            << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace phasor
