// Several threads over one Model and one Encoder, and the loops that the library runs on several. A
// program of its own, which .ci/run also runs under the thread sanitizer.
#include <chrono>

#include "tests/support/bert_folder.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

constexpr int kTeam = 4;

std::shared_ptr<const Model> shared_model() {
  ModelConfig config = small_config({.kind = PositionKind::kSinusoidal});
  config.d_model = 36;
  return random_model(config, 71, {.mlm_head = true});
}

std::vector<TokenIds> texts(const Model& model) {
  std::vector<TokenIds> texts;
  for (int64_t length = 1; length <= 20; ++length)
    texts.push_back(random_ids(model, length, length));
  return texts;
}

/// Every text by itself, then all in one batch, then scores of the last. [texts + 2]
std::vector<std::vector<float>> work(const Encoder& encoder, const std::vector<TokenIds>& texts) {
  std::vector<std::vector<float>> results;
  const auto keep = [&](std::span<const float> values) {
    results.emplace_back(values.begin(), values.end());
  };
  for (const TokenIds& ids : texts) keep(hidden_of(encoder.encode_ids(ids)));
  const Encoding batch = encoder.encode_ids(texts);
  keep(batch[batch.size() - 1].hidden);
  keep(encoder.mlm_logits(batch[0].hidden));
  return results;
}

void expect_same(const std::vector<std::vector<float>>& actual,
                 const std::vector<std::vector<float>>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    expect_same_bits(actual[i], expected[i], what + ", result " + std::to_string(i));
}

TEST(ThreadsTest, EncodersOverOneModelGiveOnManyThreadsWhatOneGives) {
  const auto model = shared_model();
  const std::vector<TokenIds> ids = texts(*model);
  for (const int threads : {1, kTeam}) {
    std::vector<Encoder> encoders;
    for (int i = 0; i < 3; ++i) encoders.emplace_back(model, EncoderOptions{.threads = threads});
    const auto expected = work(encoders[0], ids);
    on_threads(3, [&](int i) {
      for (int round = 0; round < 3; ++round)
        expect_same(work(encoders[i], ids), expected, "thread " + std::to_string(i));
    });
  }
}

TEST(ThreadsTest, ThreadsThatAskForScoresAtOnceShareOneHead) {
  const auto model = shared_model();
  const Encoder encoder(model, {.threads = 2}), other(model, {.threads = 1});
  const int64_t without = encoder.packed_bytes();
  const Encoding encoded = encoder.encode_ids(random_ids(*model, 5, 1));
  const std::vector<float> expected = other.mlm_logits(encoded[0].hidden);
  on_threads(
      4, [&](int) { expect_same_bits(encoder.mlm_logits(encoded[0].hidden), expected, "scores"); });
  const ModelConfig& config = model->config();
  EXPECT_GE(encoder.packed_bytes() - without,
            4 * config.d_model * (config.d_model + config.vocab_size));
  EXPECT_EQ(encoder.packed_bytes(), other.packed_bytes()) << "once, for all";
}

/// Keeps the states after each block, and which threads told them. At the first event it waits for
/// a while, in which the other threads come to theirs.
struct Witness : Observer {
  explicit Witness(std::chrono::milliseconds wait) : wait(wait) {}
  bool wants(Hook hook, int64_t) const override { return hook == Hook::kNormalizedResidPost; }
  void observe(const HookEvent& event) override {
    if (threads.empty()) std::this_thread::sleep_for(wait);
    threads.insert(std::this_thread::get_id());
    states[{event.sequence, event.layer}].assign(event.values.begin(), event.values.end());
  }
  std::chrono::milliseconds wait;
  std::set<std::thread::id> threads;
  std::map<std::pair<int64_t, int64_t>, std::vector<float>> states;
};

TEST(ThreadsTest, EveryThreadOfATeamTellsOneObserverOfItsGroup) {
  using std::chrono_literals::operator""ms;
  const auto model = shared_model();
  const std::vector<TokenIds> batch(kTeam, random_ids(*model, 7, 1));  // a group each
  Witness alone(0ms);
  Encoder(model, {.threads = 1}).encode_ids(batch, {.observer = &alone});
  Encoder encoder(model, {.threads = kTeam});
  size_t threads = 0;
  for (auto wait = 1ms; threads < kTeam && wait < 10'000ms; wait *= 2) {
    Witness witness(wait);
    encoder.encode_ids(batch, {.observer = &witness});
    threads = witness.threads.size();
    ASSERT_EQ(witness.states.size(), alone.states.size());
    for (const auto& [key, state] : witness.states)
      expect_same_bits(state, alone.states.at(key), "block " + std::to_string(key.second));
  }
  EXPECT_EQ(threads, size_t{kTeam});
}

struct Thrower : Observer {
  bool wants(Hook, int64_t) const override { return true; }
  void observe(const HookEvent&) override {
    ++calls;
    throw std::logic_error("enough");
  }
  int calls = 0;
};

/// Calls its own encoder at every event.
struct Nested : Observer {
  Nested(const Encoder& encoder, const TokenIds& ids, std::span<const float> expected)
      : encoder(encoder), ids(ids), expected(expected) {}
  bool wants(Hook hook, int64_t) const override { return hook == Hook::kNormalizedResidPost; }
  void observe(const HookEvent& event) override {
    if (event.sequence == 0)
      expect_same_bits(hidden_of(encoder.encode_ids(ids)), expected, "within");
  }
  const Encoder& encoder;
  const TokenIds& ids;
  std::span<const float> expected;
};

/// One of many callers of an encoder: its runs are observed, throw, call again, and are cancelled.
void call_at_random(const Encoder& encoder, const std::vector<TokenIds>& ids,
                    const std::vector<std::vector<float>>& expected, uint32_t seed) {
  std::mt19937 random(seed);
  const int64_t top = encoder.model().config().num_layers - 1;
  for (int call = 0; call < 30; ++call) {
    const size_t i = random() % ids.size();
    switch (random() % 6) {
      case 0:
        expect_same_bits(encoder.mlm_logits(expected[0]), expected.back(), "scores");
        break;
      case 1: {
        Thrower thrower;
        EXPECT_THROW(encoder.encode_ids(ids, {.observer = &thrower}), std::logic_error);
        break;
      }
      case 2: {
        std::stop_source stop;
        std::thread stopper([&] { stop.request_stop(); });
        try {
          const Encoding all = encoder.encode_ids(ids, {.stop = stop.get_token()});
          expect_same_bits(all[static_cast<int64_t>(i)].hidden, expected[i], "before the stop");
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kCancelled);
        }
        stopper.join();
        break;
      }
      case 3: {
        Nested nested(encoder, ids[i], expected[i]);
        encoder.encode_ids(ids, {.observer = &nested});
        break;
      }
      default: {
        Witness witness(std::chrono::milliseconds(0));
        encoder.encode_ids(ids, {.observer = &witness});
        expect_same_bits(witness.states.at({static_cast<int64_t>(i), top}), expected[i], "seen");
      }
    }
    expect_same_bits(hidden_of(encoder.encode_ids(ids[i])), expected[i], "again");
  }
}

TEST(ThreadsTest, SixteenCallersOfOneEncoderDisturbNobody) {
  const auto model = shared_model();
  const std::vector<TokenIds> ids = texts(*model);
  for (const KernelLibrary kernels : kKernels) {
    const Encoder encoder(model, {.threads = kTeam, .kernels = kernels});
    const auto expected = work(encoder, ids);
    on_threads(16, [&](int caller) {
      call_at_random(encoder, ids, expected, static_cast<uint32_t>(caller));
    });
    expect_same(work(encoder, ids), expected, "afterwards");
  }
}

TEST(ThreadsTest, AChildCanUseAnEncoderWhateverOtherThreadsDid) {
  // The thread sanitizer starts no threads in the child of several. The address sanitizer keeps in
  // the child what it knew of the stacks of the parent's threads, whose pages are mapped again.
  if (HAS_THREAD_SANITIZER || HAS_ADDRESS_SANITIZER) GTEST_SKIP() << "not under this sanitizer";
  const auto model = shared_model();
  const std::vector<TokenIds> ids = texts(*model);
  const Encoder own(model, {.threads = 2});
  const Encoder onednn(model, {.threads = 2, .kernels = KernelLibrary::kOneDnn});
  const auto expected = work(own, ids), of_onednn = work(onednn, ids);
  std::atomic<bool> end = false;
  std::vector<std::jthread> others;
  for (uint32_t caller = 0; caller < 4; ++caller) {
    others.emplace_back([&, caller] {
      for (uint32_t round = 0; !end; ++round) {
        const Encoder fresh(model, {.threads = 2});  // compiles and packs
        call_at_random(round % 2 == 0 ? own : fresh, ids, expected, caller + 4 * round);
        call_at_random(onednn, ids, of_onednn, caller + 4 * round);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(in_child([&] {
                std::atomic<int> same = 0;
                on_threads(2, [&](int) {
                  same += work(own, ids) == expected && work(onednn, ids) == of_onednn;
                });
                return same == 2 ? 0 : 1;
              }),
              0);
  }
  end = true;
}

TEST(ThreadsTest, ProbesOfAllLayersOnAllThreadsAreThoseOfOne) {
  ModelConfig config = small_config({.kind = PositionKind::kSinusoidal});
  config.num_layers = 7;
  const auto model = random_model(config, 73);
  std::vector<ProbeText> texts(60, {.token_ids = {}, .places = {1, 2, 3, 4, 5, 6, 7, 8}});
  for (size_t i = 0; i < texts.size(); ++i) texts[i].token_ids = random_ids(*model, 9, i);
  Encoder alone(model, {.threads = 1}), encoder(model, {.threads = kTeam});
  const auto expected = probe_positions(alone, texts, texts);
  const auto reports = probe_positions(encoder, texts, texts);
  ASSERT_EQ(reports.size(), 8u);
  for (size_t l = 0; l < reports.size(); ++l)
    EXPECT_EQ(reports[l].held_out.r2, expected[l].held_out.r2);
}

/// SentencePiece, WordPiece and byte-level BPE.
std::vector<std::shared_ptr<const Tokenizer>> tokenizers() {
  const BertFolder wordpiece({"label"});
  const TempFolder bpe;
  nlohmann::json vocabulary = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}};
  int32_t id = 4;
  for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary[std::string(1, letter)] = id++;
  for (const char* const piece : {"Ġ", "th", "the", "Ġa", "og"}) vocabulary[piece] = id++;
  bpe.write_json("vocab.json", vocabulary);
  bpe.write("merges.txt", "#version: 0.2\nt h\nth e\nĠ a\no g\n");
  bpe.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  return {Tokenizer::load(bundled_model("sinusoidal")), Tokenizer::load(wordpiece.path()),
          Tokenizer::load(bpe.path())};
}

std::vector<std::string> many_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i)
    texts.push_back("the dog " + std::string(i % 7 + 1, static_cast<char>('a' + i % 26)) +
                    " bit Zoë, [MASK] and 犬\xff");
  return texts;
}

TEST(ThreadsTest, OneTokenizerGivesOnManyThreadsWhatItGivesOnOne) {
  const std::vector<std::string> texts = many_texts();
  for (const auto& tokenizer : tokenizers()) {
    const auto all = [&] {
      std::vector<std::vector<std::string>> pieces;
      for (const std::string& text : texts)
        pieces.push_back(tokenizer->encode(text, {.parse_special = true}).pieces);
      return pieces;
    };
    const auto expected = all();
    EXPECT_GT(expected.front().size(), 5u) << tokenizer->description();
    std::vector<std::vector<std::vector<std::string>>> results(kTeam);
    on_threads(kTeam, [&](int i) { results[i] = all(); });
    for (const auto& result : results) EXPECT_EQ(result, expected) << tokenizer->description();
  }
}

TEST(ThreadsTest, TextsTokenizedOnAllThreadsAreThoseOfOne) {
  const auto model = Model::load(bundled_model("none"));
  Encoder alone(model, {.threads = 1}), encoder(model, {.threads = kTeam});
  const std::vector<std::string> texts = many_texts();
  const Encoding expected = alone.encode(texts), encoded = encoder.encode(texts);
  ASSERT_TRUE(std::ranges::equal(encoded.offsets, expected.offsets));
  expect_same_bits(encoded.hidden, expected.hidden, "encode");
  const Vectors one = alone.embed(texts), all = encoder.embed(texts);
  expect_same_bits(all.dense, one.dense, "embed");
}

TEST(ThreadsTest, OfManyTextsThatCannotBeTokenizedTheFirstIsNamed) {
  const auto model = Model::load(bundled_model("learned"));
  Encoder encoder(model, {.threads = kTeam});
  std::vector<std::string> texts = many_texts();
  for (const size_t i : {21, 25, 70, 99})
    for (int word = 0; word < 2000; ++word) texts[i] += " dog";
  EXPECT_INVALID(encoder.embed(texts, {.overflow = Overflow::kError}), {"text 21:"});
}

}  // namespace
}  // namespace phasor
