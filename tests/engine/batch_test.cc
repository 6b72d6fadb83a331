// A sequence's result does not depend on its batch: thousands of random batches against the same
// sequences alone.
#include "tests/support/encoder_cases.h"
#include "tests/support/sanitizer.h"

namespace phasor {
namespace {

enum class BatchKind { kPostNorm, kPreNorm, kRelativeBias, kWide };
constexpr const char* kKindNames[] = {"PostNorm", "PreNorm", "RelativeBias", "Wide"};

std::shared_ptr<const Model> model_of(BatchKind kind) {
  ModelConfig config = small_config();
  config.num_heads = 4;
  config.d_model =
      kind == BatchKind::kPostNorm ? 36 : 64;  // rows at odd addresses, and at even ones
  config.d_ff = 3 * config.d_model;
  config.norm_order = kind == BatchKind::kPostNorm ? NormOrder::kPostNorm : NormOrder::kPreNorm;
  config.position.kind = PositionKind::kSinusoidal;
  if (kind == BatchKind::kPreNorm) config.d_embedding = 20;
  if (kind == BatchKind::kRelativeBias) {  // as T5
    config.position = {.bias = ScoreBias::kBuckets};
    config.norm = NormKind::kRmsNorm;
    config.gated_mlp = true;
  }
  if (kind == BatchKind::kWide) {  // enough work for all threads to share one sequence
    config.d_model = 256;
    config.d_ff = 1024;
    config.num_layers = 1;
  }
  return random_model(config, 17);
}

using Case = std::tuple<BatchKind, Precision, KernelLibrary>;
class BatchTest : public testing::TestWithParam<Case> {
 protected:
  /// Of 1 to 280 tokens, most of them short.
  TokenIds draw_sequence() {
    const int64_t most = std::vector<int64_t>{12, 40, 280}[random_() % 3];
    return random_ids(*model_, 1 + static_cast<int64_t>(random_() % most), random_());
  }

  /// Numbers of 1 to 40 sequences out of `count`; some come twice.
  std::vector<size_t> draw_batch(size_t count) {
    std::vector<size_t> batch(1 + random_() % (random_() % 8 == 0 ? 40 : 7));
    for (size_t& sequence : batch) sequence = random_() % count;
    return batch;
  }

  std::mt19937_64 random_{23};
  std::shared_ptr<const Model> model_ = model_of(std::get<BatchKind>(GetParam()));
};

TEST_P(BatchTest, ASequenceHasTheSameBitsAloneAndInAnyBatchOnAnyThreads) {
  const auto precision = std::get<Precision>(GetParam());
  std::vector<Encoder> encoders;
  for (const int threads : {1, 2, 5, 16}) {
    encoders.emplace_back(model_, EncoderOptions{.threads = threads,
                                                 .precision = precision,
                                                 .kernels = std::get<KernelLibrary>(GetParam())});
  }
  std::vector<TokenIds> sequences;
  std::vector<Encoding> alone;
  for (int i = 0; i < 40; ++i) {
    sequences.push_back(draw_sequence());
    alone.push_back(encoders[i % 2].encode_ids(sequences.back()));
  }
  // Every length comes often enough for what a sanitizer sees.
  constexpr int kRounds = HAS_ADDRESS_SANITIZER ? 100 : 300;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const std::vector<size_t> batch = draw_batch(sequences.size());
    std::vector<TokenIds> ids;
    for (const size_t sequence : batch) ids.push_back(sequences[sequence]);
    Encoder& encoder = encoders[random_() % encoders.size()];
    const Encoding together = encoder.encode_ids(ids);
    for (size_t i = 0; i < batch.size() && !HasFailure(); ++i) {
      const std::string what = std::to_string(i) + " of " + std::to_string(batch.size()) + ", of " +
                               std::to_string(ids[i].size()) + " tokens, on " +
                               std::to_string(encoder.threads()) + " threads";
      const Encoding& expected = alone[batch[i]];
      expect_same_bits(together[i].hidden, expected[0].hidden, what);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , BatchTest,
    testing::Combine(testing::Values(BatchKind::kPostNorm, BatchKind::kPreNorm,
                                     BatchKind::kRelativeBias, BatchKind::kWide),
                     testing::Values(Precision::kFloat32, Precision::kBfloat16, Precision::kInt8),
                     testing::ValuesIn(kKernels)),
    [](const testing::TestParamInfo<Case>& info) {
      return std::string(kKindNames[static_cast<int>(std::get<BatchKind>(info.param))]) + "_" +
             std::string(to_string(std::get<Precision>(info.param))) + "_" +
             std::string(to_string(std::get<KernelLibrary>(info.param)));
    });

}  // namespace
}  // namespace phasor
