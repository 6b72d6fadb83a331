// Token vectors: by their formulas, and beside sentence-transformers' and FlagEmbedding's.
#include "phasor/token_vectors.h"

#include "tests/support/reference_encoder.h"
#include "tests/support/tiny_model.h"

namespace phasor {
namespace {

const std::vector<std::string> kVectorTexts = {"Tom bit a dog.", "", "It rains; it pours."};

TextOptions of_tokens(TextRole role = TextRole::kAny) {
  return {.kinds = {VectorKind::kTokens}, .role = role};
}
TextOptions of_queries() { return of_tokens(TextRole::kQuery); }

Vectors token_vectors(Encoder& encoder, const Texts& texts, const TextOptions& how = of_tokens()) {
  return encoder.embed(texts, how);
}

std::vector<int32_t> ids_of(Encoder& encoder, const std::string& text, TextRole role) {
  return token_vectors(encoder, text, of_tokens(role)).tokens.ids;
}

std::vector<double> normal(std::span<const float> values) { return {values.begin(), values.end()}; }

/// Checks vectors of consecutive states against the formula.
void expect_of_states(std::span<const float> got, std::span<const double> states) {
  constexpr int64_t kWidth = TokenVectorFolder::kWidth;
  ASSERT_EQ(got.size() / kWidth, states.size() / 128);
  for (size_t t = 0; t < states.size() / 128; ++t) {
    const std::vector<double> want = TokenVectorFolder::vector_of(states.subspan(t * 128, 128));
    for (int64_t o = 0; o < kWidth; ++o) EXPECT_NEAR(got[t * kWidth + o], want[o], 3e-5) << t;
  }
}

TEST(TokenVectorsTest, AreThoseOfTheFormulaWhateverTheBatchAndThreads) {
  const TokenVectorFolder folder;
  const auto model = Model::load(folder.path());
  Encoder encoder(model, {.threads = 3}), alone(model, {.threads = 1});
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i)
    texts.push_back(kVectorTexts[i % 3] + (i % 5 == 0 ? " She told him." : ""));
  TextOptions options = of_tokens();
  options.offset_unit = OffsetUnit::kCharacters;
  const Vectors vectors = encoder.embed(texts, options);
  const TokenRows& all = vectors.tokens;
  ASSERT_EQ(all.size(), 40);
  EXPECT_EQ(all.width, TokenVectorFolder::kWidth);
  EXPECT_EQ(std::ssize(all.values), all.offsets.back() * all.width);
  EXPECT_EQ(std::ssize(all.spans), all.offsets.back());
  for (const int64_t i : {0, 1, 2, 5, 39}) {
    const TokenRows one = token_vectors(alone, texts[i]).tokens;
    EXPECT_TRUE(std::ranges::equal(one[0], all[i]));
    const Encoding encoding = alone.encode(texts[i]);
    EXPECT_EQ(one.ids, encoding.token_ids);
    expect_of_states(one[0], normal(encoding.hidden));
    EXPECT_EQ(vectors.reports[i].num_tokens, encoding[0].num_tokens());
    const auto spans =
        model->tokenizer().encode(texts[i], {.offset_unit = OffsetUnit::kCharacters}).offsets;
    EXPECT_TRUE(std::ranges::equal(
        spans, std::span(all.spans).subspan(all.offsets[i], encoding[0].num_tokens())));
  }
}

/// Every kind of positions, beside a second implementation of the whole run.
TEST(TokenVectorsTest, QueriesAreFilledUpWithTokensThatNobodyAttendsTo) {
  for (const char* const kind : {"sinusoidal", "learned", "none", "rotary", "relative", "alibi"}) {
    for (const bool attended : {false, true}) {
      SCOPED_TRACE(kind);
      const TokenVectorFolder folder(
          kind,
          {{"query_expansion", {{"strategy", "fixed"}, {"length", 20}, {"attend", attended}}}});
      const auto model = Model::load(folder.path());
      const int32_t mask = model->tokenizer().mask_id().value();
      TextOptions options = of_queries();
      options.offset_unit = OffsetUnit::kBytes;
      for (int64_t i = 0; i < 2; ++i) {
        std::vector<int32_t> ids = model->tokenizer().encode("Q: " + kVectorTexts[2 * i]).ids;
        const auto num_keys = std::ssize(ids);
        ids.resize(20, mask);
        const auto want = reference::encode(*model, ids, {}, {}, attended ? 0 : num_keys);
        for (const KernelLibrary kernels : {KernelLibrary::kOwn, KernelLibrary::kOneDnn}) {
          Encoder encoder(model, {.kernels = kernels});
          const TokenRows both = encoder.embed({kVectorTexts[0], kVectorTexts[2]}, options).tokens;
          const int64_t first = both.offsets[i];
          EXPECT_TRUE(std::ranges::equal(ids, std::span(both.ids).subspan(first, 20)));
          EXPECT_EQ(both.spans[first + 19], TextSpan());
          EXPECT_EQ(both.spans[first + num_keys - 2].end, std::ssize(kVectorTexts[2 * i]));
          expect_of_states(both[i], want.hidden);
        }
      }
    }
  }
}

TEST(TokenVectorsTest, QueriesHaveTheLengthThatTheirExpansionSays) {
  const auto lengths = [&](const std::string& strategy, const json& more, int64_t max_tokens,
                           std::optional<Overflow> overflow = {}) {
    json options = {{"query_expansion", {{"strategy", strategy}, {"length", 12}}},
                    {"document_length", 9}};
    options.update(more);
    Encoder encoder(TokenVectorFolder("sinusoidal", options).load());
    std::vector<int64_t> all;
    for (const TextRole role : {TextRole::kQuery, TextRole::kDocument}) {
      TextOptions how = of_tokens(role);
      how.max_tokens = max_tokens;
      how.overflow = overflow;
      const Vectors made = encoder.embed({"Tom", repeat("Tom bit a dog. ", 20)}, how);
      for (const int64_t i : {0, 1}) {
        all.push_back(made.tokens.offsets[i + 1] - made.tokens.offsets[i]);
        EXPECT_EQ(all.back(), made.reports[i].num_tokens);
      }
    }
    return all;
  };
  const json none = json::object(), longer = {{"query_length", 15}};
  EXPECT_EQ(lengths("fixed", none, 0), (std::vector<int64_t>{12, 12, 3, 9}));
  EXPECT_EQ(lengths("fixed", none, 5), (std::vector<int64_t>{12, 12, 3, 5}));
  EXPECT_EQ(lengths("min", longer, 0), (std::vector<int64_t>{12, 15, 3, 9}));
  EXPECT_EQ(lengths("min", longer, 5), (std::vector<int64_t>{12, 12, 3, 5}));
  EXPECT_GT(lengths("min", none, 0)[1], 100);
  // Policies that run whole texts do not cut documents to the files' length, but queries have it.
  for (const Overflow overflow : {Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow}) {
    const std::vector<int64_t> all = lengths("fixed", none, 0, overflow);
    EXPECT_EQ(all[1], 12);
    EXPECT_GT(all[3], 100);
  }
  EXPECT_INVALID(lengths("fixed", none, 0, Overflow::kError), {"at most 12"});
}

TEST(TokenVectorsTest, MarkersOfPyLateStandBetweenTheSpecialTokensAndThePrompt) {
  const TokenVectorFolder folder;
  const auto tokenizer = Model::load("sinusoidal")->tokenizer().encode("Tom bit a dog.");
  const std::vector<std::string>& pieces = tokenizer.pieces;
  json options = {{"query_prefix", pieces[1] + " "},
                  {"document_prefix", pieces[2]},
                  {"document_length", 5},
                  {"do_query_expansion", false},
                  {"prompts", {{"query", "Q: "}}}};
  const auto write = [&] { folder.write_json("config_sentence_transformers.json", options); };
  write();
  const auto model = Model::load(folder.path());
  Encoder encoder(model);
  const auto with_marker = [&](const std::string& text, int32_t marker, int64_t most) {
    std::vector<int32_t> ids = model->tokenizer().encode(text, {.max_tokens = most}).ids;
    ids.insert(ids.begin() + 1, marker);
    return ids;
  };
  EXPECT_EQ(ids_of(encoder, "It rains", TextRole::kQuery),
            with_marker("Q: It rains", tokenizer.ids[1], 0));
  const std::string longer = repeat("It rains ", 9);
  EXPECT_EQ(ids_of(encoder, longer, TextRole::kDocument), with_marker(longer, tokenizer.ids[2], 4));
  // Once, where the prompt begins with it; and null turns off what PyLate does by default.
  json again = options;
  again["prompts"]["query"] = pieces[1] + " Q: ";
  again["do_query_expansion"] = true;
  again["query_expansion"] = nullptr;
  folder.write_json("config_sentence_transformers.json", again);
  Encoder prompted(Model::load(folder.path()));
  EXPECT_EQ(ids_of(prompted, "It rains", TextRole::kQuery),
            prompted.model().tokenizer().encode(pieces[1] + " Q: It rains").ids);
  options["query_prefix"] = "[NO] ";
  write();
  const auto other = Model::load(folder.path());
  EXPECT_REFUSED(other->token_vectors(), {"query_prefix", "vocabulary"});
}

TEST(TokenVectorsTest, TokensOfTheSkipListHaveNoVector) {
  const auto model = Model::load("sinusoidal");
  const std::vector<int32_t> ids = model->tokenizer().encode("dog.").ids;
  const std::string dot = model->tokenizer().piece(ids[ids.size() - 2]);
  std::vector<int32_t> left = ids;
  left.erase(left.end() - 2);
  const auto tokens = [&](json mask, TextRole role) {
    mask["skiplist_words"] = {dot, "no piece at all"};
    const TokenVectorFolder folder("sinusoidal", json::object(), mask);
    Encoder encoder(Model::load(folder.path()));
    TextOptions how = of_tokens(role);
    how.prompt = "";
    return encoder.embed("dog.", how).tokens.ids;
  };
  EXPECT_EQ(tokens(json::object(), TextRole::kDocument), left);
  EXPECT_EQ(tokens(json::object(), TextRole::kQuery), ids);
  EXPECT_EQ(tokens({{"skiplist_tasks", {"query"}}}, TextRole::kQuery), left);
  EXPECT_EQ(tokens({{"skiplist_tasks", "query"}}, TextRole::kQuery), left);
  EXPECT_EQ(tokens({{"keep_only_token_ids", json::array()}}, TextRole::kAny), left);
  EXPECT_EQ(tokens({{"skiplist_tasks", {"query"}}}, TextRole::kDocument), ids);
}

TEST(TokenVectorsTest, AMistakeInTheFilesIsNamed) {
  const auto refused = [](const auto& folder, std::initializer_list<std::string> words) {
    const auto model = Model::load(folder.path());
    EXPECT_FALSE(model->has_token_vectors());
    EXPECT_FALSE(model->has_sentence());
    EXPECT_REFUSED(model->token_vectors(), words);
    EXPECT_REFUSED(Encoder(model).embed("a", of_tokens()), words);
  };
  const auto expansion = [](const json& how) {
    return TokenVectorFolder("learned", {{"query_expansion", how}});
  };
  refused(expansion({{"strategy", "max"}, {"length", 9}}), {"strategy", "\"fixed\" or \"min\""});
  refused(expansion({{"strategy", "fixed"}}), {"length"});
  refused(expansion({{"strategy", "fixed"}, {"length", 100'000}}), {"length", "100000"});
  refused(expansion({{"strategy", "min"}, {"length", 9}, {"token", "[NO]"}}), {"token", "[NO]"});
  refused(TokenVectorFolder("none", json::object(), {{"keep_only_token_ids", {1}}}),
          {"keep_only_token_ids"});
  refused(TokenVectorFolder("none", json::object(), {{"skiplist_tasks", {"image"}}}),
          {"skiplist_tasks"});
  const TokenVectorFolder other;
  other.write_modules({"Transformer", "Dense", "HierarchicalTokenPooling"});
  refused(other, {"modules.json", "module 2"});
  other.write_modules({"Transformer", "Dense", "Normalize", "Dense"});
  refused(other, {"module 3"});
  other.write_modules({"Transformer", "Dense"});
  other.write("1_Dense/model.safetensors",
              safetensors_bytes({{"linear.weight", {3, 127}}, {"linear.bias", {3}}}));
  refused(other, {"linear.weight", "127", "128"});
  refused(expansion({{"strategy", "fixed"}, {"length", 2000}}), {"2000", "at most 128"});
  const TokenVectorFolder unmasked = expansion({{"strategy", "fixed"}, {"length", 9}});
  unmasked.write_modules({"Transformer", "Dense", "Normalize"});
  refused(unmasked, {"modules.json", "MultiVectorMask"});
  const TokenVectorFolder outside;  // a module elsewhere on the machine
  json modules = json::parse(std::ifstream(outside / "modules.json"));
  modules[2]["path"] = "../" + fs::path(other.path()).filename().string() + "/2_MultiVectorMask";
  outside.write_json("modules.json", modules);
  refused(outside, {"a module's path", "in the model's own"});
  // A model of token vectors makes no others by its files, and other models none of these.
  const TokenVectorFolder folder;
  EXPECT_REFUSED(Encoder(Model::load(folder.path())).embed("a"), {"kind tokens"});
  EXPECT_REFUSED(Encoder(Model::load("sinusoidal")).embed("a", of_tokens()), {"no vector of each"});
}

// Its last tokens would attend to nothing.
TEST(TokenVectorsTest, AnUnattendedExpansionEndsWithinALocalLayersReach) {
  PHASOR_SHARED_OR_SKIP(shared, "golden3/token-modernbert");  // a token sees 8 to each side
  const TempFolder folder;
  fs::copy(shared, folder.path());
  for (const auto& [length, attended] : {std::pair(9, false), {10, false}, {10, true}}) {
    const TokenVectorFolder made(
        "none",
        {{"query_expansion", {{"strategy", "fixed"}, {"length", length}, {"attend", attended}}}});
    for (const char* const name :
         {"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
          "1_Dense", "2_MultiVectorMask"})
      fs::copy(made / name, folder / name,
               fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    json dense = json::parse(std::ifstream(folder / "1_Dense/config.json"));
    dense["in_features"] = 32;
    folder.write_json("1_Dense/config.json", dense);
    folder.write("1_Dense/model.safetensors",
                 safetensors_bytes({{"linear.weight", {3, 32}}, {"linear.bias", {3}}}));
    const auto model = Model::load(folder.path());
    if (length == 10 && !attended) {
      EXPECT_REFUSED(model->token_vectors(), {"10", "8", "at most 9"});
      continue;
    }
    Encoder encoder(model);
    EXPECT_EQ(encoder.embed("a", of_queries()).tokens.offsets[1], length);
  }
}

TEST(TokenVectorsTest, EveryTokenButTheFirstOfBgeM3) {
  const TokenVectorFolder folder;
  folder.make_bge();
  Encoder encoder(Model::load(folder.path()));
  const TokenRows made = token_vectors(encoder, kVectorTexts[0]).tokens;
  const Encoding encoding = encoder.encode(kVectorTexts[0]);
  ASSERT_EQ(made.offsets[1], encoding[0].num_tokens() - 1);
  EXPECT_EQ(made.ids.front(), encoding.token_ids[1]);
  const auto state = encoding[0].hidden.subspan(128, 128);
  std::vector<double> want;
  for (int64_t o = 0; o < 3; ++o) {
    const std::vector<float> map = TokenVectorFolder::weight();
    want.push_back(std::inner_product(state.begin(), state.end(), map.begin() + 128 * o,
                                      double{TokenVectorFolder::bias()[o]}));
  }
  const double length = std::hypot(want[0], want[1], want[2]);
  for (int o = 0; o < 3; ++o) EXPECT_NEAR(made.values[o], want[o] / length, 1e-5);
  folder.write("colbert_linear.pt",
               torch_bytes({{"weight", {3, 127}, "F32", std::string(3 * 127 * 4, 0)},
                            {"bias", {3}, "F32", std::string(3 * 4, 0)}}));
  const auto model = Model::load(folder.path());
  EXPECT_REFUSED(model->token_vectors(), {"colbert_linear.pt", "127", "128"});
  EXPECT_TRUE(model->has_sentence());
}

TEST(TokenVectorsTest, MaxSimIsTheSumOfTheLargestProducts) {
  for (const int64_t width : {1, 3, 16, 33, 128, 1024}) {
    for (const int64_t num_queries : {0, 1, 7, 16, 33}) {
      for (const int64_t num_keys : {0, 1, 5, 128, 300}) {
        const auto numbers = [](int64_t count, double seed) {
          std::vector<float> all(count);
          for (int64_t i = 0; i < count; ++i)
            all[i] = static_cast<float>(std::sin(seed + 1.7 * static_cast<double>(i * i % 1009)));
          return all;
        };
        const auto a = numbers(num_queries * width, 1), b = numbers(num_keys * width, 2);
        double want = 0;
        for (int64_t i = 0; i < num_queries && num_keys > 0; ++i) {
          double best = -1e300;
          for (int64_t j = 0; j < num_keys; ++j) {
            double sum = 0;
            for (int64_t c = 0; c < width; ++c) sum += double{a[i * width + c]} * b[j * width + c];
            best = std::max(best, sum);
          }
          want += best;
        }
        EXPECT_NEAR(maxsim(a, b, width), want, 1e-5 * static_cast<double>(1 + num_queries * width));
      }
    }
  }
  const std::vector<float> some(6);
  EXPECT_INVALID(maxsim(some, some, 4), {"6", "4"});
  EXPECT_INVALID(maxsim(some, some, 0), {"0"});
}

TEST(TokenVectorsTest, DocumentsAreRankedByThem) {
  const TokenVectorFolder folder;
  Encoder encoder(Model::load(folder.path()), {.threads = 2});
  const std::vector<std::string> documents = {"It rains.", "Tom bit a dog.", "", "She told him."};
  const Ranking ranking = encoder.rank("Who bit the dog?", documents);
  const TokenRows query = token_vectors(encoder, "Who bit the dog?", of_queries()).tokens;
  const Vectors made = token_vectors(encoder, documents);
  const TokenRows& vectors = made.tokens;
  EXPECT_EQ(ranking.logits, ranking.scores);
  EXPECT_EQ(ranking.scores, maxsim(query[0], vectors));
  EXPECT_EQ(ranking.reports.num_tokens, made.reports.num_tokens);
  for (const bool mean : {false, true}) {
    const std::vector<float> scores = maxsim(query[0], vectors, mean, 3);
    const auto divisor = static_cast<double>(mean ? query.offsets[1] : 1);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_FLOAT_EQ(scores[i], static_cast<float>(maxsim(query[0], vectors[i], 3) / divisor));
  }
  TokenRows other = vectors;
  other.width = 4;
  EXPECT_INVALID(maxsim(query[0], other), {"width 4"});
  std::vector<int64_t> order = ranking.order;
  EXPECT_TRUE(
      std::ranges::is_sorted(order, std::greater(), [&](int64_t i) { return ranking.scores[i]; }));
}

TEST(TokenVectorsTest, AreThoseOfTheReferences) {
  PHASOR_SHARED_OR_SKIP(shared, "golden3");
  for (const std::string name : {"colbert", "colbert-min", "colbert-pylate", "colbert-stanford"}) {
    SCOPED_TRACE(name);
    const json golden = json::parse(std::ifstream(shared / name / "multivector.json"));
    Encoder encoder(Model::load(shared / name), {.threads = 2});
    EXPECT_FALSE(encoder.model().has_sentence());
    std::vector<std::vector<float>> queries;
    for (const TextRole role : {TextRole::kQuery, TextRole::kDocument}) {
      const bool is_query = role == TextRole::kQuery;
      for (const json& item : golden[is_query ? "queries" : "documents"]) {
        const auto text = item["text"].get<std::string>();
        SCOPED_TRACE(text);
        const Vectors vectors = encoder.embed(text, of_tokens(role));
        const TokenRows& made = vectors.tokens;
        EXPECT_EQ(vectors.reports[0].num_tokens, std::ssize(item["input_ids"]));
        expect_golden(made.values, joined(item["vectors"]), golden);
        if (is_query) queries.push_back(made.values);
      }
    }
    std::vector<std::string> documents;
    for (const json& item : golden["documents"]) documents.push_back(item["text"]);
    const TokenRows vectors = token_vectors(encoder, documents).tokens;
    for (size_t q = 0; q < queries.size(); ++q) {
      const std::vector<float> scores =
          maxsim(queries[q], vectors, encoder.model().token_vectors().mean, encoder.threads());
      for (size_t d = 0; d < scores.size(); ++d)
        EXPECT_NEAR(scores[d], golden["maxsim"][q][d].get<double>(), 1e-4);
      const auto text = golden["queries"][q]["text"].get<std::string>();
      EXPECT_EQ(encoder.rank(text, documents).scores, scores);
    }
  }
  const json golden = json::parse(std::ifstream(shared / "bge-m3" / "m3.json"));
  Encoder encoder(Model::load(shared / "bge-m3"));
  std::vector<std::string> texts;
  for (const json& item : golden["items"]) texts.push_back(item["text"]);
  const TokenRows made = token_vectors(encoder, texts).tokens;
  for (size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    expect_golden(made[i], joined(golden["items"][i]["multi"]), golden);
  }
  for (size_t q = 0; q < 4; ++q) {
    for (size_t d = 0; d < 4; ++d)
      EXPECT_NEAR(maxsim(made[q], made, encoder.model().token_vectors().mean)[d],
                  golden["multi_scores"][q][d].get<double>(), 1e-4);
  }
}

}  // namespace
}  // namespace phasor
