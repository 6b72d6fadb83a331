// Drawing models and inputs, and holding the engine against the oracle.
#include "tests/support/encoder_cases.h"

#include "tests/support/reference_encoder.h"

namespace phasor {
namespace {

/// Draws from small ranges, the same on every machine.
class Dice {
 public:
  explicit Dice(uint64_t seed) : rng_(seed) {}
  int64_t between(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(rng_() % static_cast<uint64_t>(last - first + 1));
  }
  bool coin() { return rng_() % 2 == 0; }
  template <typename Enum>
  Enum choose(Enum last) {
    return static_cast<Enum>(between(0, static_cast<int64_t>(last)));
  }

 private:
  std::mt19937_64 rng_;
};

PositionConfig drawn_position(Dice& dice, bool even_width) {
  PositionConfig position;
  position.kind = dice.choose(PositionKind::kLearned);
  position.bias = dice.choose(ScoreBias::kAlibi);
  if (position.bias == ScoreBias::kBuckets) {
    position.num_buckets = 4 * dice.between(1, 8);
    position.max_distance = position.num_buckets / 4 + dice.between(1, 30);
  }
  if (position.kind == PositionKind::kNone) return position;
  position.layout = dice.choose(SinusoidalLayout::kOpenNmt);
  if (position.layout == SinusoidalLayout::kOpenNmt && !even_width)
    position.layout = SinusoidalLayout::kPaper;
  position.base = dice.coin() ? 10000.0 : 50.0;
  position.first_position = dice.between(0, 3);
  if (position.first_position > 0 && dice.coin())
    position.uncounted_token = static_cast<int32_t>(position.first_position - 1);
  return position;
}

RotaryConfig drawn_rotary(Dice& dice, int64_t head_dim) {
  RotaryConfig rotary;
  rotary.base = dice.coin() ? 10000.0 : 50.0;
  rotary.dims = 2 * dice.between(head_dim % 2, head_dim / 2);  // 0: all of an even head
  rotary.interleaved = dice.coin();
  rotary.factor = dice.coin() ? 1.0 : 0.7;
  const int64_t turned = rotary.dims > 0 ? rotary.dims : head_dim;
  if (turned >= 4 && dice.coin()) {
    rotary.ntk_factor = dice.coin() ? 1.0 : 2.5;
    rotary.ntk_length = dice.between(1, 30);
  }
  return rotary;
}

DisentangledConfig drawn_disentangled(Dice& dice) {
  DisentangledConfig disentangled;
  disentangled.content_to_position = dice.coin();
  disentangled.position_to_content = dice.coin();
  disentangled.num_buckets = 2 * dice.between(2, 10);
  disentangled.max_distance = dice.coin() ? 0 : disentangled.num_buckets / 2 + dice.between(2, 40);
  disentangled.norm = dice.coin();
  return disentangled;
}

/// Adds what happens within attention. No model has both rotary and disentangled positions.
void draw_attention(Dice& dice, ModelConfig& config) {
  const int64_t kind = dice.between(0, 2);
  if (kind == 1 && config.head_dim() >= 2) {
    config.position.rotary = drawn_rotary(dice, config.head_dim());
  } else if (kind == 2) {
    config.position.disentangled = drawn_disentangled(dice);
  }
  if (config.norm_order == NormOrder::kPreNorm) config.first_attn_norm = dice.coin();
  if (dice.coin()) return;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    LayerAttention attention = {.window = dice.between(0, 6)};
    if (config.position.rotary && dice.coin()) attention.rotary_base = 300.0;
    config.layer_attention.push_back(attention);
  }
}

/// Adds what blocks of today have.
void draw_block(Dice& dice, ModelConfig& config) {
  if (!config.position.disentangled) {
    config.num_kv_heads = dice.between(1, 3);
    config.d_head = config.head_dim();
    config.num_heads = config.num_kv_heads * dice.between(1, 3);
  }
  config.qk_norm = dice.coin();
  config.causal = dice.coin();
  config.branch_norms = config.norm_order == NormOrder::kPreNorm && dice.coin();
  config.score_width = dice.coin() ? 0 : 7.5;
  config.score_cap = dice.coin() ? 0 : 1.5;
}

std::string describe(Hook hook, int64_t layer, int64_t sequence, int64_t first_token) {
  return hook_path(hook, layer) + " of sequence " + std::to_string(sequence) + ", window at " +
         std::to_string(first_token);
}

}  // namespace

ModelConfig small_config(const PositionConfig& position) {
  ModelConfig config;
  config.family = "random";
  config.d_model = 15;
  config.d_ff = 22;
  config.num_layers = 2;
  config.num_heads = 3;
  config.vocab_size = 41;
  config.max_positions = 12;
  config.position = position;
  return config;
}

ModelConfig sinusoidal_config(NormOrder order) {
  ModelConfig config = small_config({.kind = PositionKind::kSinusoidal});
  config.norm_order = order;
  return config;
}

std::shared_ptr<const Model> drawn_model(uint64_t seed) {
  Dice dice(seed);
  ModelConfig config = small_config();
  config.num_heads = dice.between(1, 5);
  config.d_model = config.num_heads * dice.between(3, 21);
  config.d_ff = dice.between(1, 77);
  config.num_layers = dice.between(1, 3);
  config.max_positions = 40;
  config.norm_order = dice.choose(NormOrder::kPostNorm);
  config.activation = dice.choose(Activation::kSilu);
  config.norm_eps = dice.coin() ? 1e-5f : 1e-2f;
  config.embedding_scale = dice.coin() ? 1.0f : 5.5f;
  config.embedding_norm = dice.coin();
  config.final_norm = dice.coin();
  config.norm = dice.choose(NormKind::kRmsNorm);
  config.d_head = dice.coin() ? 0 : dice.between(1, 17);
  config.d_embedding = dice.coin() ? 0 : dice.between(2, 80);
  config.num_layer_groups = dice.between(0, config.num_layers);
  config.gated_mlp = dice.coin();
  config.linear_bias = dice.coin();
  config.scale_scores = dice.coin();
  config.position = drawn_position(dice, config.embedding_width() % 2 == 0);
  RandomModelExtras extras;
  extras.token_types = dice.between(0, 2);
  extras.store_position_table = dice.coin();
  if (seed >= kFirstScorePositionsSeed) draw_attention(dice, config);
  if (seed >= kFirstBlocksSeed) draw_block(dice, config);
  return random_model(config, seed, extras);
}

TokenIds random_ids(const Model& model, int64_t count, uint64_t seed) {
  Dice dice(seed);
  TokenIds ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(dice.between(0, model.config().vocab_size - 1));
  return ids;
}

PositionTable drawn_table(int64_t rows, uint64_t seed) {
  return {.rows = rows, .d_model = kTableWidth, .values = draw(rows * kTableWidth, seed)};
}

bool Recorder::wants(Hook hook, int64_t) const {
  return hooks_.empty() || std::find(hooks_.begin(), hooks_.end(), hook) != hooks_.end();
}

void Recorder::observe(const HookEvent& event) {
  events_.push_back({.hook = event.hook,
                     .layer = event.layer,
                     .sequence = event.sequence,
                     .first_token = event.first_token,
                     .shape = {event.shape.begin(), event.shape.end()},
                     .values = {event.values.begin(), event.values.end()}});
}

const std::vector<float>& Recorder::values(Hook hook, int64_t layer, int64_t sequence) const {
  for (const Event& event : events_)
    if (event.hook == hook && event.layer == layer && event.sequence == sequence)
      return event.values;
  ADD_FAILURE() << "nothing recorded at " << hook_path(hook, layer);
  static const std::vector<float> kNothing;
  return kNothing;
}

void Editor::observe(const HookEvent&) { ADD_FAILURE() << "nothing is wanted"; }

void Editor::change(const HookEvent& event, std::span<float> values) {
  ++calls;
  EXPECT_EQ(values.data(), event.values.data());
  EXPECT_EQ(values.size(), event.values.size());
  edit_(event, values);
}

std::vector<std::pair<std::string, std::shared_ptr<const Model>>> exact_models() {
  std::vector<std::pair<std::string, std::shared_ptr<const Model>>> models;
  for (uint64_t seed = 1; seed < kFirstBlocksSeed + 30; ++seed)
    models.emplace_back("seed " + std::to_string(seed), drawn_model(seed));
  for (const char* const name : {"sinusoidal", "learned", "none", "rotary", "relative", "alibi"})
    models.emplace_back(name, Model::load(name));
  return models;
}

namespace {

/// Every event has its counterpart in the oracle's windows, and the other way round.
void expect_same_events(const Recorder& recorder, const std::vector<reference::Result>& results) {
  std::map<std::tuple<Hook, int64_t, int64_t, int64_t>, const reference::Array*> expected;
  for (size_t i = 0; i < results.size(); ++i) {
    for (const reference::WindowResult& window : results[i].windows)
      for (const auto& [where, array] : window.activations)
        expected[{where.first, where.second, static_cast<int64_t>(i), window.first_token}] = &array;
  }
  for (const Recorder::Event& event : recorder.events()) {
    const std::string what = describe(event.hook, event.layer, event.sequence, event.first_token);
    const auto found = expected.find({event.hook, event.layer, event.sequence, event.first_token});
    ASSERT_NE(found, expected.end()) << what << " was not expected, or came twice";
    EXPECT_EQ(event.shape, found->second->shape) << what;
    expect_close<float, double>(event.values, found->second->values, 1e-4, what);
    expected.erase(found);
  }
  for (const auto& [missing, array] : expected)
    ADD_FAILURE() << std::apply(describe, missing) << " never came";
}

/// Each token's position in the first window that covers it. [T]
std::vector<double> first_positions(const reference::Result& result) {
  std::vector<double> positions;
  for (const reference::WindowResult& window : result.windows) {
    const auto covered = static_cast<int64_t>(positions.size()) - window.first_token;
    positions.insert(positions.end(), window.positions.begin() + covered, window.positions.end());
  }
  return positions;
}

}  // namespace

void expect_matches_reference(const std::shared_ptr<const Model>& model,
                              const std::vector<TokenIds>& sequences, RunOptions options) {
  const std::span<const int32_t> all_types = options.token_types;
  std::vector<reference::Result> results;
  RunOptions own = options;
  for (const TokenIds& ids : sequences) {
    if (!options.token_types.empty()) {
      own.token_types = options.token_types.first(ids.size());
      options.token_types = options.token_types.subspan(ids.size());
    }
    results.push_back(reference::encode(*model, ids, own));
  }
  options.token_types = all_types;
  for (const KernelLibrary kernels : kKernels) {
    SCOPED_TRACE(to_string(kernels));
    Recorder recorder;
    options.observer = &recorder;
    Encoder encoder(model, {.threads = 2, .kernels = kernels});
    const Encoding encoding = encoder.encode_ids(sequences, options);
    ASSERT_EQ(encoding.size(), static_cast<int64_t>(sequences.size()));
    for (int64_t i = 0; i < encoding.size(); ++i) {
      const reference::Result& expected = results[i];
      const std::string where = " of sequence " + std::to_string(i);
      const auto ids = encoding[i].token_ids;
      ASSERT_EQ(TokenIds(ids.begin(), ids.end()), expected.token_ids);
      expect_close<float, double>(encoding[i].hidden, expected.hidden, 1e-4, "hidden" + where);
      expect_close<float, double>(encoding[i].positions, first_positions(expected), 1e-6,
                                  "positions" + where);
    }
    expect_same_events(recorder, results);
  }
}

}  // namespace phasor
