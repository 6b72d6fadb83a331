// Dense vectors of embed(): the pipeline of an application, against its steps one by one.
#include <stop_token>

#include "tests/support/encoder_cases.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_model.h"

namespace phasor {
namespace {

std::vector<std::string> random_texts(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<std::string> words = {"Tom", "dog", "bit", "a", "the", "old", "ran", "."};
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (uint64_t n = random() % 40; n > 0; --n) text += words[random() % words.size()] + " ";
    texts.push_back(text);
  }
  return texts;
}

std::shared_ptr<const Model> bundled() {
  static const auto model = Model::load("sinusoidal");
  return model;
}

/// The steps that embed() takes, one text at a time: prompt, length, run, pooling.
std::vector<float> by_hand(Encoder& encoder, const std::string& text, const std::string& prompt,
                           int64_t most, const Pooling& pooling) {
  const auto ids = encoder.model().tokenizer().encode(prompt + text, {.max_tokens = most}).ids;
  const Encoding encoding = encoder.encode_ids(ids);
  return pool(encoding[0].hidden, encoder.model().config().d_model, pooling);
}

TEST(EmbedTest, VectorsAreThoseOfEachTextByItselfAndABatchEndsWithTheTextThatFillsIt) {
  constexpr int64_t kTokens = 100;
  const std::vector<std::string> texts = random_texts(700, 2);
  Encoder encoder(bundled(), {.threads = 2});
  std::vector<int64_t> ends;
  const Vectors all = encoder.embed(
      texts,
      {.progress = [&](int64_t done, int64_t) { ends.push_back(done); }, .batch_tokens = kTokens});
  const Vectors whole = encoder.embed(texts);
  expect_same_bits(all.dense, whole.dense, "vectors");
  ASSERT_EQ(all.size(), 700);
  ASSERT_EQ(all.width, encoder.embedding_width());
  const SentenceConfig& own = bundled()->sentence();
  for (int64_t i = 0; i < all.size(); i += 13)
    expect_same_bits(all[i], by_hand(encoder, texts[i], own.prompt, 128, own.pooling),
                     "text " + std::to_string(i));
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < all.size(); ++i) lengths.push_back(all.reports[i].num_tokens);
  std::ranges::sort(lengths, std::greater());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    const auto but_last = std::accumulate(&lengths[begin], &lengths[end - 1], int64_t{0});
    EXPECT_LT(but_last, kTokens);
    EXPECT_TRUE(end == all.size() || but_last + lengths[end - 1] >= kTokens);
    begin = end;
  }
  EXPECT_EQ(begin, all.size());
}

TEST(EmbedTest, ThePromptIsLeftOutOfThePoolingIfThePoolingSaysSo) {
  const TinyModel folder("sinusoidal", {{"1_Pooling/config.json", {{"include_prompt", false}}}});
  folder.write_modules({"Transformer", "Pooling"});
  Encoder encoder(folder.load(), {.threads = 1});
  const std::string prompt = "The dog ";
  const int64_t prompt_tokens = std::ssize(bundled()->tokenizer().encode(prompt).ids) - 1;  // [SEP]
  const std::vector<PoolingMode> of_all = {PoolingMode::kMean, PoolingMode::kWeightedMean};
  for (const std::vector<PoolingMode>& modes : {of_all, {PoolingMode::kCls}}) {
    const Pooling pooling{.modes = modes, .include_prompt = false};
    for (const std::string text : {"ran after the cat.", "", "and the cat ran up the tree."}) {
      const Encoding run = encoder.encode(prompt + text);
      const Vectors one = encoder.embed(text, {.pooling = modes, .prompt = prompt});
      expect_same_bits(one[0], pool(run.hidden, 128, pooling, prompt_tokens), text);
      const Vectors plain = encoder.embed(prompt + text, {.pooling = modes});
      expect_same_bits(plain[0], pool(run.hidden, 128, {.modes = modes}), text);
    }
  }
}

/// Models whose blocks differ, with a tokenizer.
std::vector<std::shared_ptr<const Model>> models_with_texts() {
  ModelConfig post = sinusoidal_config(NormOrder::kPostNorm);
  post.vocab_size = 8192;
  post.max_positions = 400;
  ModelConfig pre = post;
  pre.norm_order = NormOrder::kPreNorm;
  pre.norm = NormKind::kRmsNorm;
  pre.gated_mlp = pre.final_norm = true;
  pre.position = {.rotary = RotaryConfig{.dims = 4}};
  pre.layer_attention = {{}, {.window = 5}};
  ModelConfig deberta = post;
  deberta.d_embedding = 20;
  deberta.position = {.disentangled = DisentangledConfig{.content_to_position = true,
                                                         .position_to_content = true,
                                                         .num_buckets = 8}};
  ModelConfig one_layer = post;
  one_layer.num_layers = 1;
  std::vector<std::shared_ptr<const Model>> models;
  for (const ModelConfig& config : {post, pre, deberta, one_layer}) {
    const std::shared_ptr<const Tokenizer> tokenizer(bundled(), &bundled()->tokenizer());
    models.push_back(random_model(config, 6, {.tokenizer = tokenizer}));
  }
  return models;
}

// The last block computes it alone.
TEST(EmbedTest, TheVectorOfOneTokenIsThatOfARunOfAllTokens) {
  std::vector<std::string> texts = random_texts(30, 8);
  texts.push_back(texts[1] + texts[2] + texts[3] + texts[4] + texts[5] + texts[6] + texts[7]);
  for (const auto& model : models_with_texts()) {
    for (const KernelLibrary kernels : kKernels) {
      for (const Precision precision :
           {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8}) {
        Encoder encoder(model, {.threads = 2, .precision = precision, .kernels = kernels});
        for (const PoolingMode mode : {PoolingMode::kCls, PoolingMode::kLastToken}) {
          const Pooling pooling{.modes = {mode}};
          const TextOptions options{.pooling = {mode}, .max_tokens = 300};
          for (const auto& given : {texts, {texts.back()}}) {
            const Vectors all = encoder.embed(given, options);
            for (int64_t i = 0; i < all.size(); ++i) {
              expect_same_bits(all[i], by_hand(encoder, given[i], "", 300, pooling),
                               fmt::format("text {}, {}, {}, {}", i, to_string(mode),
                                           to_string(precision), to_string(kernels)));
            }
          }
        }
      }
    }
  }
}

TEST(EmbedTest, AnyRangeOfTextsIsTaken) {
  Encoder encoder(bundled(), {.threads = 1});
  const std::vector<std::string> strings = {"Tom bit a dog.", "It rains."};
  const Vectors expected = encoder.embed(strings);
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  const std::list<std::string> list(strings.begin(), strings.end());
  for (const Texts& texts : {Texts(views), Texts(std::span(strings)), Texts(list),
                             Texts{"Tom bit a dog.", "It rains."}, Texts{strings[0], strings[1]}}) {
    const Vectors got = encoder.embed(texts);
    expect_same_bits(got.dense, expected.dense, "the same texts");
  }
  const Vectors one = encoder.embed("It rains.");
  expect_same_bits(one[0], expected[1], "one text");
  EXPECT_EQ(encoder.embed(std::vector<std::string>()).size(), 0);
}

TEST(EmbedTest, OddTextsAreReportedAndLongOnesRefusedWhereAskedFor) {
  Encoder encoder(bundled(), {.threads = 1});
  const std::string long_text = repeat("dog ", 300);
  const Vectors out = encoder.embed({"Tom", "bad \xff byte", long_text, ""});
  EXPECT_EQ(out.reports[0].invalid_bytes, 0);
  EXPECT_EQ(out.reports[1].invalid_bytes, 1);
  EXPECT_EQ(out.reports[2].num_tokens, 128);
  EXPECT_EQ(out.reports[2].dropped_tokens, 300 + 2 - 128);
  EXPECT_EQ(out.reports[3].num_tokens, 2);
  expect_error<std::out_of_range>([&] { out[4]; }, {"the result has no vector 4; they are 0 to 3"});
  expect_code(ErrorCode::kTooLong, "text 1: 302 tokens", [&] {
    encoder.embed({"Tom", long_text}, {.overflow = Overflow::kError});
  });
  const std::vector<PoolingMode> absurd((1 << 24) / 128 + 1, PoolingMode::kMax);
  EXPECT_THROW(encoder.embed("a", {.pooling = absurd}), InvalidArgument);
  EXPECT_THROW(bundled()->position_vectors(int64_t{1} << 40), InvalidArgument);
  EXPECT_THROW(Encoder(bundled(), {.threads = 1'000'000'000}), InvalidArgument);
  EXPECT_THROW(Encoder(bundled(), {.precision = static_cast<Precision>(99)}), InvalidArgument);
}

TEST(EmbedTest, ProgressCountsEveryTextAndAStopEndsTheCall) {
  Encoder encoder(bundled(), {.threads = 2});
  const std::vector<std::string> texts(4200, "Tom");  // more than are tokenized at once
  int64_t last = 0;
  encoder.embed(texts, {.progress = [&](int64_t done, int64_t total) {
                  EXPECT_GT(done, last);
                  EXPECT_EQ(total, 4200);
                  last = done;
                }});
  EXPECT_EQ(last, 4200);
  std::stop_source stop;
  int64_t calls = 0;
  expect_code(ErrorCode::kCancelled, "", [&] {
    encoder.embed(texts, {.progress = [&](int64_t, int64_t) { ++calls, stop.request_stop(); },
                          .stop = stop.get_token()});
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(encoder.embed("still usable").size(), 1);
}

TEST(EmbedTest, DimensionsAreTheFirstNumbersOfLengthOneWhereTheWholeVectorIs) {
  const auto length = [](std::span<const float> x) {
    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
  };
  const json dense = {{"in_features", 128}, {"out_features", 96}, {"bias", false}},
             options = {{"truncate_dim", 64}};
  const std::string weight =
      safetensors_bytes({{"linear.weight", {96, 128}, "F32", float_bytes(draw(96 * 128, 7))}});
  for (const auto& [modules, cuts] :
       std::vector<std::pair<std::vector<std::string>, bool>>{{{}, false},
                                                              {{}, true},
                                                              {{"Normalize"}, false},
                                                              {{"Normalize"}, true},
                                                              {{"Dense", "Normalize"}, false},
                                                              {{"Normalize", "Dense"}, false}}) {
    const TinyModel folder(
        "sinusoidal", {{"1_Pooling/config.json", json::object()},
                       {"2_Dense/config.json", dense},
                       {"3_Dense/config.json", dense},
                       {"config_sentence_transformers.json", cuts ? options : json::object()}});
    std::vector<std::string> all = {"Transformer", "Pooling"};
    all.insert(all.end(), modules.begin(), modules.end());
    folder.write_modules(all);
    for (const char* const name : {"2_Dense", "3_Dense"})
      folder.write(std::string(name) + "/model.safetensors", weight);
    Encoder encoder(folder.load(), {.threads = 1});
    for (TextOptions how : {TextOptions(),
                            {.normalize = true},
                            {.normalize = false},
                            {.pooling = {PoolingMode::kCls, PoolingMode::kMax}}}) {
      const Vectors whole = encoder.embed("Tom bit a dog.", how);
      const bool is_unit = std::abs(length(whole[0]) - 1) < 1e-5;
      EXPECT_EQ(is_unit, how.normalize.value_or(is_unit));
      for (const int64_t count : {int64_t{1}, int64_t{7}, whole.width}) {
        how.dimensions = count;
        const double divisor = is_unit ? length(whole[0].first(count)) : 1;
        std::vector<double> want(whole[0].begin(), whole[0].begin() + count);
        for (double& number : want) number /= divisor;
        const Vectors made = encoder.embed("Tom bit a dog.", how);
        expect_close<float, double>(made[0], want, 1e-6, std::to_string(count));
        EXPECT_EQ(encoder.embedding_width(how), count);
        const Encoding run = encoder.encode("Tom bit a dog.");
        expect_same_bits(made[0], pool(run.hidden, 128, encoder.pooling(how)), "pooling()");
      }
      how.dimensions = whole.width + 1;
      EXPECT_INVALID(encoder.embed("a", how),
                     {std::to_string(how.dimensions), std::to_string(whole.width)});
    }
  }
}

TEST(EmbedTest, DocumentsAreRankedByTheirVectors) {
  const TinyModel folder("sinusoidal", {{"config_sentence_transformers.json",
                                         {{"prompts", {{"query", "Q: "}, {"document", "D: "}}},
                                          {"similarity_fn_name", "euclidean"}}}});
  Encoder encoder(folder.load(), {.threads = 2});
  const std::vector<std::string> documents = {"It rains.", "Tom bit a dog.", "", "She told him."};
  const Ranking ranking = encoder.rank("Who bit the dog?", documents);
  const Vectors query = encoder.embed("Who bit the dog?", {.prompt = "Q: "});
  const Vectors vectors = encoder.embed(documents, {.prompt = "D: "});
  EXPECT_EQ(ranking.logits, ranking.scores);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(ranking.scores[i],
                    static_cast<float>(similarity(query[0], vectors[i], Similarity::kEuclidean)));
  EXPECT_TRUE(std::ranges::is_sorted(ranking.order, std::greater(),
                                     [&](int64_t i) { return ranking.scores[i]; }));
  EXPECT_EQ(ranking.reports.num_tokens, vectors.reports.num_tokens);
  EXPECT_INVALID(encoder.rank("a", "b", {.prompt = ""}),
                 {"rank() does not use prompt", "no classification head"});
}

/// A model whose tokenizer puts no special tokens round a text.
std::shared_ptr<const Model> bare_model() {
  json config = json::parse(read_text_file(bundled_model("learned") / "config.json"));
  config["tokenizer"]["prefix"] = config["tokenizer"]["suffix"] = json::array();
  return TinyModel("learned", {{"config.json", config}}).load();
}

TEST(EmbedTest, ATextWithoutATokenHasAVectorOfZerosAndIsCounted) {
  Encoder encoder(bare_model(), {.threads = 1});
  std::vector<float> memory(3 * 128, 7.0f);
  int64_t last = 0;
  const Vectors out = encoder.embed(
      {"", "Tom", ""}, {.output = memory, .progress = [&](int64_t n, int64_t) { last = n; }});
  EXPECT_EQ(last, 3);
  const Vectors states = encoder.embed({"", "Tom", ""}, {.kinds = {VectorKind::kStates}});
  const int64_t count = states.reports[1].num_tokens;
  EXPECT_EQ(states.states.offsets, (std::vector<int64_t>{0, 0, count, count}));
  EXPECT_EQ(out.reports[0].num_tokens, 0);
  EXPECT_GT(out.reports[1].num_tokens, 0);
  const Vectors alone = encoder.embed("Tom");
  expect_same_bits(std::span(memory).subspan(128, 128), alone[0], "Tom");
  for (const int64_t i : {0, 2})
    EXPECT_TRUE(std::ranges::all_of(std::span(memory).subspan(i * 128, 128),
                                    [](float x) { return x == 0; }));
  expect_code(ErrorCode::kEmptyText, "", [&] { encoder.encode(""); });
  expect_code(ErrorCode::kEmptyText, "", [&] { encoder.encode({"a", ""}); });
}

}  // namespace
}  // namespace phasor
