// Several threads over one Model. A program of its own, so that it can run under the thread
// sanitizer with one OpenMP thread.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "phasor/encoder.h"
#include "tests/encoder_cases.h"
#include "tests/expect_close.h"

namespace phasor {
namespace {

// The thread sanitizer cannot see libgomp's barriers.
#ifdef __SANITIZE_THREAD__
constexpr int kTeam = 1;
#else
constexpr int kTeam = 2;
#endif

std::shared_ptr<const Model> shared_model() {
  ModelConfig config = small_config();
  config.d_model = 36;
  config.position.kind = PositionKind::kSinusoidal;
  return random_model(config, 71, {.mlm_head = true});
}

std::vector<TokenIds> texts(const Model& model) {
  std::vector<TokenIds> texts;
  for (int64_t length = 1; length <= 20; ++length) {
    texts.push_back(random_ids(model, length, length));
  }
  return texts;
}

/// Every text by itself, then all in one batch, then scores of the last. [texts + 2]
std::vector<std::vector<float>> work(Encoder& encoder, const std::vector<TokenIds>& texts) {
  std::vector<std::vector<float>> results;
  const auto keep = [&](std::span<const float> values) {
    results.emplace_back(values.begin(), values.end());
  };
  for (const TokenIds& ids : texts) keep(hidden_of(encoder.encode_ids(ids)));
  const Encoding batch = encoder.encode_ids(texts);
  keep(batch.hidden(batch.num_sequences() - 1));
  keep(encoder.mlm_logits(batch.hidden(0)));
  return results;
}

void expect_same(const std::vector<std::vector<float>>& actual,
                 const std::vector<std::vector<float>>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    expect_independent_of_batch(actual[i], expected[i], what + ", result " + std::to_string(i));
  }
}

/// Runs `encoders` at the same time, each on a thread of its own.
void expect_all_give(std::vector<Encoder>& encoders, const std::vector<TokenIds>& texts,
                     const std::vector<std::vector<float>>& expected) {
  std::vector<std::vector<std::vector<float>>> results(encoders.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < encoders.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) results[i] = work(encoders[i], texts);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < results.size(); ++i) {
    expect_same(results[i], expected, "thread " + std::to_string(i));
  }
}

TEST(ThreadsTest, EncodersOverOneModelGiveOnManyThreadsWhatOneGives) {
  const auto model = shared_model();
  const std::vector<TokenIds> ids = texts(*model);
  for (const int threads : {1, kTeam}) {
    std::vector<Encoder> encoders;
    for (int i = 0; i < 3; ++i) encoders.emplace_back(model, EncoderOptions{.threads = threads});
    const auto expected = work(encoders[0], ids);
    expect_all_give(encoders, ids, expected);
  }
}

TEST(ThreadsTest, ReplicasOverOnePackedCopyGiveOnManyThreadsWhatOneGives) {
  const auto model = shared_model();
  const std::vector<TokenIds> ids = texts(*model);
  Encoder original(model, {.threads = 1});
  const auto expected = work(original, ids);
  std::vector<Encoder> encoders;
  for (int i = 0; i < 3; ++i) encoders.push_back(original.replica());
  expect_all_give(encoders, ids, expected);
}

TEST(ThreadsTest, ReplicasThatAskForScoresAtOnceShareOneHead) {
  const auto model = shared_model();
  Encoder original(model, {.threads = 1}), other(model, {.threads = 1});
  const int64_t without = original.packed_bytes();
  const TokenIds ids = random_ids(*model, 5, 1);
  const Encoding encoded = original.encode_ids(ids);
  const std::vector<float> expected = other.mlm_logits(encoded.hidden(0));
  const ModelConfig& config = model->config();
  const int64_t head = other.packed_bytes() - without;
  EXPECT_GE(head, 4 * config.d_model * (config.d_model + config.vocab_size));

  std::vector<Encoder> replicas;
  for (int i = 0; i < 3; ++i) replicas.push_back(original.replica());
  std::vector<std::vector<float>> results(replicas.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < replicas.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = replicas[i].mlm_logits(encoded.hidden(0)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) expect_same_bits(result, expected, "scores");
  EXPECT_EQ(original.packed_bytes(), without + head) << "once, for all";
  expect_same_bits(original.mlm_logits(encoded.hidden(0)), expected, "the original's");
  EXPECT_EQ(original.packed_bytes(), without + head);
}

TEST(ThreadsTest, EncodersCanBeMadeAndDestroyedOnManyThreadsAtOnce) {
  const auto model = shared_model();
  const std::vector<TokenIds> ids = texts(*model);
  Encoder original(model, {.threads = 1});
  const auto expected = work(original, ids);
  std::vector<std::vector<std::vector<float>>> results(3);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      Encoder encoder(model, {.threads = 1});
      result = work(encoder, ids);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) expect_same(result, expected, "own encoder");
}

TEST(ThreadsTest, OneEncoderMovesBetweenThreads) {
  const auto model = shared_model();
  const std::vector<TokenIds> ids = texts(*model);
  Encoder encoder(model, {.threads = kTeam});
  const auto expected = work(encoder, ids);
  std::vector<std::vector<float>> results;
  std::thread([&] { results = work(encoder, ids); }).join();
  expect_same(results, expected, "another thread");
}

}  // namespace
}  // namespace phasor
