// Encoder::embed(): the pipeline of an application, against its steps one by one.
#include <latch>
#include <numeric>
#include <stop_token>

#include "tests/support/encoder_cases.h"
#include "tests/support/run_program.h"

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
                           int64_t max_tokens, const Pooling& pooling) {
  const auto ids =
      encoder.model().tokenizer().encode(prompt + text, {.max_tokens = max_tokens}).ids;
  const Encoding encoding = encoder.encode_ids(ids);
  return pool(encoding[0].hidden, encoder.model().config().d_model, pooling);
}

TEST(EmbedTest, VectorsAreThoseOfEachTextByItselfInTheirOrder) {
  const std::vector<std::string> texts = random_texts(700, 1);
  Encoder encoder(bundled(), {.threads = 2});
  const Embeddings all = encoder.embed(texts);
  ASSERT_EQ(all.size(), 700);
  EXPECT_EQ(all.width(), encoder.embedding_width());
  EXPECT_EQ(all.values().size(), 700u * 128u);
  const SentenceConfig& own = bundled()->sentence();
  for (int64_t i = 0; i < all.size(); i += 13) {
    const auto expected = by_hand(encoder, texts[i], own.prompt, 128, own.pooling);
    expect_same_bits(all[i], expected, "text " + std::to_string(i));
  }
}

TEST(EmbedTest, ABatchEndsWithTheTextThatFillsIt) {
  constexpr int64_t kTokens = 100;
  const std::vector<std::string> texts = random_texts(300, 2);
  Encoder encoder(bundled(), {.threads = 2});
  std::vector<int64_t> ends;
  const Embeddings all = encoder.embed(
      texts,
      {.progress = [&](int64_t done, int64_t) { ends.push_back(done); }, .batch_tokens = kTokens});
  const Embeddings whole = encoder.embed(texts);
  expect_same_bits(all.values(), whole.values(), "vectors");
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < all.size(); ++i) lengths.push_back(all.report(i).num_tokens);
  std::ranges::sort(lengths, std::greater());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    const auto but_last = std::accumulate(&lengths[begin], &lengths[end - 1], int64_t{0});
    EXPECT_LT(but_last, kTokens);
    EXPECT_TRUE(end == all.size() || but_last + lengths[end - 1] >= kTokens);
    begin = end;
  }
  EXPECT_EQ(begin, all.size());
  EXPECT_THROW(encoder.embed(texts, {.batch_tokens = -1}), InvalidArgument);
}

TEST(EmbedTest, OptionsReplaceWhatTheCheckpointSays) {
  Encoder encoder(bundled(), {.threads = 1});
  const Pooling pooling{.modes = {PoolingMode::kCls, PoolingMode::kMax}, .normalize = true};
  const EmbedOptions options{.pooling = pooling, .prompt = "The dog ", .max_tokens = 7};
  EXPECT_EQ(encoder.embedding_width(options), 256);
  const std::string text = "ran after the cat, and the cat ran up the tree.";
  const Embeddings one = encoder.embed(text, options);
  expect_same_bits(one[0], by_hand(encoder, text, "The dog ", 7, pooling), "vector");
  EXPECT_EQ(one.report(0).num_tokens, 7);
  const auto all = bundled()->tokenizer().encode("The dog " + text).ids;
  EXPECT_EQ(one.report(0).dropped_tokens, std::ssize(all) - 7);

  const Embeddings without = encoder.embed(text, {.positions = Positions::none()});
  const Encoding run = encoder.encode(text, {.positions = Positions::none(), .pooling = Pooling()});
  expect_same_bits(without[0], run.embedding(0), "no positions");
}

TEST(EmbedTest, ThePromptIsLeftOutOfThePoolingIfThePoolingSaysSo) {
  Encoder encoder(bundled(), {.threads = 1});
  const int64_t d_model = bundled()->config().d_model;
  const std::string prompt = "The dog ";
  const int64_t prompt_tokens = std::ssize(bundled()->tokenizer().encode(prompt).ids) - 1;  // [SEP]
  const std::vector<PoolingMode> of_all = {PoolingMode::kMean, PoolingMode::kWeightedMean};
  for (const std::vector<PoolingMode>& modes : {of_all, {PoolingMode::kCls}}) {
    const Pooling pooling{.modes = modes, .include_prompt = false};
    for (const std::string text : {"ran after the cat.", "", "and the cat ran up the tree."}) {
      const Encoding run = encoder.encode(prompt + text);
      const Embeddings one = encoder.embed(text, {.pooling = pooling, .prompt = prompt});
      expect_same_bits(one[0], pool(run[0].hidden, d_model, pooling, prompt_tokens), text);
      const Embeddings plain = encoder.embed(prompt + text, {.pooling = pooling});
      expect_same_bits(plain[0], pool(run[0].hidden, d_model, {.modes = modes}), text);
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
          const EmbedOptions options{.pooling = pooling, .max_tokens = 300};
          for (const auto& given : {texts, {texts.back()}}) {
            const Embeddings all = encoder.embed(given, options);
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
  const Embeddings expected = encoder.embed(strings);
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  const std::list<std::string> list(strings.begin(), strings.end());
  for (const Texts& texts : {Texts(views), Texts(std::span(strings)), Texts(list),
                             Texts{"Tom bit a dog.", "It rains."}, Texts{strings[0], strings[1]}}) {
    const Embeddings got = encoder.embed(texts);
    expect_same_bits(got.values(), expected.values(), "the same texts");
  }
  const Embeddings one = encoder.embed("It rains.");
  expect_same_bits(one[0], expected[1], "one text");
  EXPECT_EQ(encoder.embed(std::vector<std::string>()).size(), 0);
}

TEST(EmbedTest, VectorsGoToTheCallersMemory) {
  Encoder encoder(bundled(), {.threads = 1});
  const std::vector<std::string> texts = random_texts(5, 2);
  const Embeddings own = encoder.embed(texts);
  std::vector<float> memory(5 * 128, -7.0f);
  const Embeddings given = encoder.embed(texts, {.output = memory});
  EXPECT_EQ(given.values().data(), memory.data());
  expect_same_bits(memory, own.values(), "the caller's memory");
  std::vector<float> small(5 * 128 - 1);
  expect_error<InvalidArgument>([&] { encoder.embed(texts, {.output = small}); },
                                {"639", "640", "5"});
}

TEST(EmbedTest, OddTextsAreReportedAndLongOnesRefusedWhereAskedFor) {
  Encoder encoder(bundled(), {.threads = 1});
  const std::string long_text = repeat("dog ", 300);
  const Embeddings out = encoder.embed({"Tom", "bad \xff byte", long_text, ""});
  EXPECT_EQ(out.report(0).invalid_bytes, 0);
  EXPECT_EQ(out.report(1).invalid_bytes, 1);
  EXPECT_EQ(out.report(2).num_tokens, 128);
  EXPECT_EQ(out.report(2).dropped_tokens, 300 + 2 - 128);
  EXPECT_EQ(out.report(3).num_tokens, 2);
  expect_error<std::out_of_range>([&] { out[4]; }, {"the result has no vector 4; they are 0 to 3"});
  EXPECT_THROW(out.report(4), std::out_of_range);
  EXPECT_THROW(out[-1], std::out_of_range);
  expect_code(ErrorCode::kTooLong, "text 1: 302 tokens", [&] {
    encoder.embed({"Tom", long_text}, {.overflow = Overflow::kError});
  });
  EXPECT_THROW(encoder.embed("a", {.max_tokens = -1}), InvalidArgument);
  for (const int64_t out : {int64_t{-1}, int64_t{1} << 40}) {
    const Pooling absurd{.steps = {Projection{.in = 128, .out = out}}};
    EXPECT_THROW(encoder.embed("a", {.pooling = absurd}), InvalidArgument);
  }
  EXPECT_THROW(encoder.embed("a", {.pooling = Pooling{.modes = {}}}), InvalidArgument);
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

TEST(EncodeTest, AStopRequestedBeforeARunEndsItBeforeItsFirstBlock) {
  Encoder encoder(random_model(small_config(), 5));
  std::stop_source stop;
  stop.request_stop();
  expect_code(ErrorCode::kCancelled, "", [&] {
    encoder.encode_ids(TokenIds{1, 2}, {.stop = stop.get_token()});
  });
}

TEST(EncodeTest, FlatIdsWithOffsetsAreTheSameAsSequencesByThemselves) {
  const auto model = random_model(small_config(), 6);
  Encoder encoder(model, {.threads = 2});
  std::vector<TokenIds> sequences;
  TokenIds flat;
  std::vector<int64_t> offsets = {0};
  for (int i = 1; i < 20; ++i) {
    sequences.push_back(random_ids(*model, i, i));
    flat.insert(flat.end(), sequences.back().begin(), sequences.back().end());
    offsets.push_back(std::ssize(flat));
  }
  const Encoding expected = encoder.encode_ids(sequences);
  std::vector<float> memory(flat.size() * 15);
  const Encoding got = encoder.encode_ids(flat, offsets, {.hidden = memory});
  EXPECT_EQ(got.hidden.data(), memory.data());
  expect_same_bits(got.hidden, expected.hidden, "hidden");
  EXPECT_TRUE(std::ranges::equal(got.offsets(), offsets));
  EXPECT_TRUE(std::ranges::equal(got.token_ids(), flat));
  EXPECT_EQ(got[7].hidden.data(), got.hidden.data() + offsets[7] * 15);
  expect_error<InvalidArgument>(
      [&] { encoder.encode_ids(flat, offsets, {.hidden = std::span(memory).first(10)}); },
      {"10 floats", std::to_string(flat.size() * 15)});
}

TEST(EncodeTest, OffsetsThatDoNotDivideTheIdsAreRefused) {
  Encoder encoder(random_model(small_config(), 6));
  const TokenIds ids = {1, 2, 3, 4};
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  using Offsets = std::vector<int64_t>;
  for (const Offsets& offsets :
       {Offsets{}, Offsets{0}, Offsets{0, 3}, Offsets{1, 4}, Offsets{0, 2, 2, 4},
        Offsets{0, 3, 2, 4}, Offsets{0, 5, 4}, Offsets{0, -1, 4}, Offsets{0, 5}, Offsets{kLeast, 4},
        Offsets{0, kMost, 4}, Offsets{0, kLeast, 4}}) {
    EXPECT_THROW(encoder.encode_ids(ids, offsets), InvalidArgument);
  }
}

// Holds a run at its first event until it is let go.
class Holding : public Observer {
 public:
  bool wants(Hook hook, int64_t) const override { return hook == Hook::kFullEmbed; }
  void observe(const HookEvent&) override {
    entered.count_down();
    leave.wait();
  }
  std::latch entered{1}, leave{1};
};

TEST(EncoderTest, WhileACallRunsAnotherIsRefusedWhateverItAsksFor) {
  const auto model = bundled();
  Encoder encoder(model, {.threads = 1});
  const TokenIds ids = {5, 6, 7};
  const std::vector<float> expected = hidden_of(encoder.encode_ids(ids));
  Holding observer;
  std::vector<float> held;
  std::thread other([&] { held = hidden_of(encoder.encode_ids(ids, {.observer = &observer})); });
  observer.entered.wait();
  const std::vector<std::function<void()>> calls = {[&] { encoder.encode_ids(ids); },
                                                    [&] { encoder.encode("Tom"); },
                                                    [&] { encoder.embed("Tom"); },
                                                    [&] { encoder.mlm_logits(expected); },
                                                    [&] { encoder.classifier_logits(expected); },
                                                    [&] { encoder.primitives(); }};
  for (const auto& call : calls) expect_code(ErrorCode::kBusy, "", call);
  observer.leave.count_down();
  other.join();
  expect_same_bits(held, expected, "the run that was there first");
  expect_same_bits(hidden_of(encoder.encode_ids(ids)), expected, "afterwards");

  int64_t done = 0;  // its own thread, within a call
  encoder.embed("Tom", {.progress = [&](int64_t, int64_t) {
                  ++done;
                  expect_code(ErrorCode::kBusy, "", calls.front());
                }});
  EXPECT_EQ(done, 1);
}

/// A model whose tokenizer puts no special tokens round a text.
std::shared_ptr<const Model> bare_model(const TempFolder& folder) {
  const std::filesystem::path from = bundled_model("learned");
  nlohmann::json config = nlohmann::json::parse(read_text_file(from / "config.json"));
  config["tokenizer"]["prefix"] = config["tokenizer"]["suffix"] = nlohmann::json::array();
  folder.write("config.json", config.dump());
  for (const char* const name : {"model.safetensors", "tokenizer.model"}) {
    std::filesystem::copy_file(from / name, folder.path() / name);
  }
  return Model::load(folder.path());
}

TEST(EmbedTest, ATextWithoutATokenHasAVectorOfZerosAndIsCounted) {
  const TempFolder folder;
  Encoder encoder(bare_model(folder), {.threads = 1});
  std::vector<float> memory(3 * 128, 7.0f);
  int64_t last = 0;
  const Embeddings out = encoder.embed(
      {"", "Tom", ""}, {.output = memory, .progress = [&](int64_t n, int64_t) { last = n; }});
  EXPECT_EQ(last, 3);
  EXPECT_EQ(out.report(0).num_tokens, 0);
  EXPECT_GT(out.report(1).num_tokens, 0);
  const Embeddings alone = encoder.embed("Tom");
  expect_same_bits(out[1], alone[0], "Tom");
  for (const int64_t i : {0, 2}) {
    EXPECT_TRUE(std::ranges::all_of(out[i], [](float value) { return value == 0; }));
  }
  expect_code(ErrorCode::kEmptyText, "", [&] { encoder.encode(""); });
}

TEST(EmbedTest, OtherPoliciesRunAWholeTextAsEncodeDoesUnlessALengthIsGiven) {
  Encoder encoder(Model::load(bundled_model("learned")), {.threads = 1});
  const std::string text = repeat("dog ", 200);
  for (const auto overflow : {Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow}) {
    const std::string name(to_string(overflow));
    const Embeddings all = encoder.embed(text, {.overflow = overflow});
    EXPECT_EQ(all.report(0).num_tokens, 202) << name;
    const Encoding run = encoder.encode(text, {.overflow = overflow, .pooling = Pooling()});
    expect_same_bits(all[0], run.embedding(0), name);
    if (overflow == Overflow::kWindow) continue;
    const Embeddings cut = encoder.embed(text, {.max_tokens = 50, .overflow = overflow});
    EXPECT_EQ(cut.report(0).num_tokens, 50) << name;
    EXPECT_EQ(cut.report(0).dropped_tokens, 152) << name;
  }
  EXPECT_THROW(encoder.embed(text, {.max_tokens = 1}), InvalidArgument);
}

// The mean of the windows' states, where two windows overlap the mean of both: as encode() does it
// with a position table of that length.
TEST(EmbedTest, WindowsAreAsLongAsATextMayBe) {
  const auto model = Model::load(bundled_model("learned"));
  Encoder encoder(model, {.threads = 1});
  std::string text;
  for (int i = 0; i < 70; ++i) text += i % 3 == 0 ? "dog " : "cat ";
  for (const int64_t length : {50, 72, 500}) {  // 72 tokens, 128 positions
    const int64_t rows = std::min<int64_t>(length, 128);
    const PositionTable table{rows, 128, model->position_vectors(rows)};
    const Encoding run = encoder.encode(text, {.positions = Positions::table(table),
                                               .overflow = Overflow::kWindow,
                                               .pooling = Pooling()});
    const Embeddings vectors =
        encoder.embed(text, {.max_tokens = length, .overflow = Overflow::kWindow});
    EXPECT_EQ(vectors.report(0).num_tokens, 72);
    EXPECT_EQ(vectors.report(0).dropped_tokens, 0);
    expect_same_bits(vectors[0], run.embedding(0), std::to_string(length));
  }
  Encoder endless(Model::load(bundled_model("sinusoidal")), {.threads = 1});
  const Embeddings windows = endless.embed(text, {.max_tokens = 50, .overflow = Overflow::kWindow});
  const Embeddings whole = endless.embed(text, {.max_tokens = 80, .overflow = Overflow::kWindow});
  EXPECT_NE(windows[0][0], whole[0][0]);
}

}  // namespace
}  // namespace phasor
