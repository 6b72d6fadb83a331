// Probes recover what is there, find nothing where nothing is, and solve the normal equations.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

/// 0, 1, …, period − 1, again and again.
std::vector<double> places(int64_t count, int64_t period) {
  std::vector<double> targets(count);
  for (int64_t i = 0; i < count; ++i) targets[i] = static_cast<double>(i % period);
  return targets;
}

/// Solves A w = b by elimination; A [n, n] is symmetric and positive definite.
std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
  const int64_t n = std::ssize(b);
  for (int64_t p = 0; p < n; ++p) {
    for (int64_t r = p + 1; r < n; ++r) {
      const double factor = a[r * n + p] / a[p * n + p];
      for (int64_t c = p; c < n; ++c) a[r * n + c] -= factor * a[p * n + c];
      b[r] -= factor * b[p];
    }
  }
  for (int64_t p = n - 1; p >= 0; --p) {
    for (int64_t c = p + 1; c < n; ++c) b[p] -= a[p * n + c] * b[c];
    b[p] /= a[p * n + p];
  }
  return b;
}

/// A w = b with A = XᵀX + λI and b = Xᵀ(y − ȳ), from centred states.
struct NormalEquations {
  NormalEquations(const std::vector<float>& states, const std::vector<double>& targets, int64_t C,
                  double lambda)
      : a(C * C), b(C) {
    const int64_t n = std::ssize(targets);
    std::vector<double> mean(C);
    double target_mean = 0;
    for (int64_t i = 0; i < n; ++i) {
      target_mean += targets[i] / static_cast<double>(n);
      for (int64_t c = 0; c < C; ++c) mean[c] += states[i * C + c] / static_cast<double>(n);
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < C; ++c) {
        const double x = states[i * C + c] - mean[c];
        b[c] += x * (targets[i] - target_mean);
        for (int64_t d = 0; d < C; ++d) a[c * C + d] += x * (states[i * C + d] - mean[d]);
      }
    }
    for (int64_t c = 0; c < C; ++c) a[c * C + c] += lambda;
  }

  std::vector<double> solution() const { return solve(a, b); }

  /// A w
  std::vector<double> left(const std::vector<double>& w) const {
    std::vector<double> product(b.size());
    for (size_t i = 0; i < a.size(); ++i) product[i / w.size()] += a[i] * w[i % w.size()];
    return product;
  }

  std::vector<double> a, b;
};

TEST(ProbeTest, SolvesTheNormalEquationsWithMoreStatesThanColumnsAndWithFewer) {
  constexpr int64_t kWidth = 6;
  for (const int64_t count : {40, 7, 6, 4}) {
    const std::vector<float> states = draw(count * kWidth, 3);
    const std::vector<double> targets = places(count, 9);
    const Probe probe = fit_probe({states, targets, {}}, kWidth);
    ASSERT_GT(probe.lambda, 0.0);
    const NormalEquations equations(states, targets, kWidth, probe.lambda);
    expect_close<double, double>(equations.left(probe.weights), equations.b, 1e-9,
                                 std::to_string(count) + " states");
    if (count < 40) continue;  // where little is left of the others' digits
    expect_close<double, double>(probe.weights, equations.solution(), 1e-9, "weights");
  }
}

/// Of a probe that two in three texts were fitted to with this λ, on the third, by the normal
/// equations; a text has `length` states.
double choosing_error(const ProbeData& data, int64_t C, int64_t length, double lambda) {
  ProbeData fitting, choosing;
  for (int64_t i = 0; i < std::ssize(data.targets); ++i) {
    ProbeData& part = i / length % 3 == 2 ? choosing : fitting;
    part.states.insert(part.states.end(), &data.states[i * C], &data.states[i * C] + C);
    part.targets.push_back(data.targets[i]);
  }
  Probe probe = fit_probe(fitting, C);  // for its means
  probe.weights = NormalEquations(fitting.states, fitting.targets, C, lambda).solution();
  double squares = 0;
  for (int64_t i = 0; i < std::ssize(choosing.targets); ++i) {
    const double y = probe.predict(std::span(choosing.states).subspan(i * C, C));
    squares += std::pow(y - choosing.targets[i], 2);
  }
  return squares;
}

double mean_eigenvalue(const std::vector<float>& states, int64_t C) {
  const NormalEquations equations(states, std::vector<double>(states.size() / C), C, 0);
  double trace = 0;
  for (int64_t c = 0; c < C; ++c) trace += equations.a[c * C + c] / static_cast<double>(C);
  return trace;
}

TEST(ProbeTest, ChoosesTheLambdaThatServesEveryThirdTextBest) {
  constexpr int64_t kWidth = 5, kLength = 4;
  std::set<int> exponents;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const int64_t count = (seed % 2 == 0 ? 12 : 6) * kLength;
    ProbeData data{draw(count * kWidth, seed), {}, {}};
    const std::vector<float> noise = draw(count, 100 + seed);
    std::vector<float> fitting;
    for (int64_t i = 0; i < count; ++i) {
      const float* state = &data.states[i * kWidth];
      data.targets.push_back(0.3 * state[0] + noise[i]);
      data.texts.push_back(i / kLength);
      if (i / kLength % 3 != 2) fitting.insert(fitting.end(), state, state + kWidth);
    }
    const double chosen = fit_probe(data, kWidth).lambda / mean_eigenvalue(data.states, kWidth);
    exponents.insert(static_cast<int>(std::lround(std::log10(chosen))));
    const double unit = mean_eigenvalue(fitting, kWidth);
    const double least = choosing_error(data, kWidth, kLength, chosen * unit);
    for (int exponent = -8; exponent <= 4; ++exponent) {
      const double lambda = std::pow(10.0, exponent) * unit;
      EXPECT_LE(least, choosing_error(data, kWidth, kLength, lambda) * (1 + 1e-9)) << exponent;
    }
  }
  EXPECT_GT(exponents.size(), 2u);
}

TEST(ProbeTest, RandomStatesTellNothingAboutHeldOutOnes) {
  for (const int64_t width : {10, 300}) {  // fewer than the states, and more
    const ProbeData train{draw(200 * width, 7), places(200, 20), {}};
    const ProbeData held_out{draw(100 * width, 8), places(100, 20), {}};
    const ProbeReport report = probe_positions(train, held_out, width);
    EXPECT_LT(report.held_out.r2, 0.1) << width;
    EXPECT_GT(report.held_out.r2, -0.5) << width;
    EXPECT_LT(report.shuffled.r2, 0.1) << width;
    EXPECT_NEAR(report.mean.r2, 0.0, 1e-12);  // both means are 9.5
    EXPECT_NEAR(report.mean.mean_absolute_error, 5.0, 1e-12);
    EXPECT_EQ(report.num_train, 200);
    EXPECT_EQ(report.num_held_out, 100);
  }
}

TEST(ProbeTest, TheSameSeedShufflesTheSameWay) {
  const ProbeData train{draw(60 * 4, 1), places(60, 6), {}};
  const ProbeData held_out{draw(30 * 4, 2), places(30, 6), {}};
  const auto shuffled = [&](uint64_t seed) {
    return probe_positions(train, held_out, 4, seed).shuffled.mean_absolute_error;
  };
  EXPECT_EQ(shuffled(3), shuffled(3));
  EXPECT_NE(shuffled(3), shuffled(4));
}

TEST(ProbeTest, TextsThatKnowThemselvesDoNotMislead) {
  // A state is its text's own random vector, and a little noise: nothing in it tells the place.
  constexpr int64_t kWidth = 40, kLength = 10;
  const auto texts_from = [&](int64_t num_texts, uint64_t seed) {
    ProbeData data{draw(num_texts * kLength * kWidth, seed), {}, {}};
    const std::vector<float> texts = draw(num_texts * kWidth, seed + 1);
    for (int64_t i = 0; i < num_texts * kLength; ++i) {
      for (int64_t c = 0; c < kWidth; ++c) {
        data.states[i * kWidth + c] *= 0.01f;
        data.states[i * kWidth + c] += texts[i / kLength * kWidth + c];
      }
      data.targets.push_back(static_cast<double>(i % kLength));
      data.texts.push_back(i / kLength);
    }
    return data;
  };
  const ProbeReport report = probe_positions(texts_from(12, 1), texts_from(8, 9), kWidth);
  EXPECT_LT(report.held_out.r2, 0.1);
  EXPECT_GT(report.held_out.r2, -0.2);
}

TEST(ProbeTest, WhereNothingVariesButRoundingTheMeanIsPredicted) {
  const ProbeData equal{std::vector<float>(5 * 3, 2.0f), places(5, 5), {}};
  const Probe probe = fit_probe(equal, 3);
  EXPECT_EQ(probe.weights, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(probe.predict(std::vector<float>{9, 9, 9}), 2.0);
  EXPECT_EQ(score_probe(probe, equal).r2, 0.0);
  const ProbeData single{{1, 2}, {4}, {}};
  const Probe one = fit_probe(single, 2);
  EXPECT_EQ(one.predict(std::vector<float>{5, 6}), 4.0);
  EXPECT_EQ(score_probe(one, single).r2, 0.0);
  for (const int count : {3, 7, 1000}) {
    ProbeData data{draw(count * 2, 3), std::vector<double>(count, 0.1), {}};
    const Probe probe{.weights = {1, 2}, .mean = {0, 0}};
    EXPECT_EQ(score_probe(probe, data).r2, 0) << count;
  }
  ProbeData data;
  for (int i = 0; i < 30; ++i) {  // the target is in the state's last bit
    data.states.insert(data.states.end(), {i % 2 == 0 ? 3.0f : std::nextafter(3.0f, 4.0f), 5.0f});
    data.targets.push_back(i % 2);
  }
  const Probe rounded = fit_probe(data, 2);
  EXPECT_EQ(rounded.weights, std::vector<double>(2));
  EXPECT_NEAR(score_probe(rounded, data).r2, 0, 1e-12);
}

TEST(ProbeTest, SizesThatDoNotFitAreRefused) {
  const std::vector<float> states(6, 1.0f);
  EXPECT_THROW(fit_probe({states, places(2, 2), {}}, 2), InvalidArgument);
  EXPECT_THROW(fit_probe({states, places(3, 3), {0, 1}}, 2), InvalidArgument);
  EXPECT_THROW(fit_probe({states, places(3, 3), {}}, 4), InvalidArgument);
  EXPECT_THROW(fit_probe({}, 2), InvalidArgument);
  const std::vector<double> infinite(3, std::numeric_limits<double>::infinity());
  EXPECT_THROW(fit_probe({states, infinite, {}}, 2), InvalidArgument);
  EXPECT_THROW(probe_positions({states, places(3, 3), {}}, ProbeData(), 2), InvalidArgument);
}

std::vector<ProbeText> texts_of(const Model& model, int count, int64_t num_tokens, uint64_t seed) {
  std::vector<ProbeText> texts;
  for (int i = 0; i < count; ++i) {
    ProbeText text{random_ids(model, num_tokens, seed + i), {}};
    for (int64_t t = 1; t < num_tokens; ++t) text.places.push_back(t);
    texts.push_back(text);
  }
  return texts;
}

TEST(ProbePositionsTest, ReadPositionsOffStatesAndNothingWithoutThem) {
  ModelConfig config = small_config();
  config.d_model = 48;
  config.position.kind = PositionKind::kSinusoidal;
  const auto model = random_model(config, 2);
  const std::vector<ProbeText> train = texts_of(*model, 120, 12, 1),
                               held_out = texts_of(*model, 40, 12, 1000);
  Encoder encoder(model, {.threads = 2});
  std::vector<int64_t> done;
  const auto progress = [&](int64_t count, int64_t) { done.push_back(count); };
  const auto with = probe_positions(encoder, train, held_out, {}, 1, progress);
  const auto without = probe_positions(encoder, train, held_out, {.positions = Positions::none()});
  ASSERT_EQ(with.size(), 3u);
  EXPECT_EQ(done.back(), 160);
  EXPECT_EQ(with[0].num_train, 120 * 11);
  EXPECT_GT(with[0].held_out.r2, 0.9);
  EXPECT_GT(with[0].held_out.r2, with[2].held_out.r2);
  for (const ProbeReport& report : with) EXPECT_LT(report.shuffled.r2, 0.05);
  for (const ProbeReport& report : without) EXPECT_LT(report.held_out.r2, 0.05);
}

TEST(ProbePositionsTest, TheTokensEmbeddingsScoreAsALayerThatIsNothingElse) {
  // Without positions, token types and a norm, the first state is s·E[id].
  ModelConfig config = small_config();
  config.embedding_scale = 3;
  const auto model = random_model(config, 2);
  std::vector<ProbeText> train = texts_of(*model, 60, 8, 1),
                         held_out = texts_of(*model, 20, 8, 500);
  for (auto* texts : {&train, &held_out}) {  // token 3 at place 1 of every second text
    for (size_t i = 0; i < texts->size(); i += 2) (*texts)[i].token_ids[1] = 3;
  }
  Encoder encoder(model);
  const ProbeReport layer = probe_positions(encoder, train, held_out).front();
  const ProbeScore token = probe_token_embeddings(*model, train, held_out);
  EXPECT_EQ(token.r2, layer.held_out.r2);
  EXPECT_EQ(token.mean_absolute_error, layer.held_out.mean_absolute_error);
  EXPECT_GT(token.r2, 0.02);
  EXPECT_LT(token.r2, 0.9);
}

TEST(ProbePositionsTest, WhereEveryWordHasItsPlaceTheWordTellsItExactly) {
  ModelConfig config = small_config();
  config.d_model = 48;
  config.position.kind = PositionKind::kSinusoidal;  // has no say
  const auto model = random_model(config, 3);
  std::vector<ProbeText> texts(6);
  for (ProbeText& text : texts) text = {.token_ids = {7, 3, 9, 1, 4}, .places = {0, 1, 2, 3, 4}};
  const std::span<const ProbeText> all(texts);
  EXPECT_NEAR(probe_token_embeddings(*model, all, all).r2, 1, 1e-6);
  for (ProbeText& text : texts) std::fill(text.token_ids.begin(), text.token_ids.end(), 7);
  EXPECT_EQ(probe_token_embeddings(*model, all, all).r2, 0);
}

// A state that is the word alone learns the control task by heart, and one that is the place alone
// does not; one that is the place at the edges alone says nothing of the interior.
TEST(ProbePositionsTest, TheControlTaskIsOfWordsAndTheInteriorIsWithoutEdges) {
  constexpr int64_t kWords = 5, kPlaces = 10;
  std::mt19937_64 random(1);
  const auto data_of = [&](auto value) {
    ProbeData data;
    for (int64_t i = 0; i < 400; ++i) {
      const auto id = static_cast<int32_t>(random() % kWords);
      const int64_t place = i % kPlaces;
      const bool edge = place < 2 || place >= kPlaces - 2;
      std::vector<float> state(kWords);
      value(state, id, place, edge);
      data.states.insert(data.states.end(), state.begin(), state.end());
      data.targets.push_back(static_cast<double>(place));
      data.texts.push_back(i / kPlaces);
      data.token_ids.push_back(id);
      data.at_edges.push_back(edge);
    }
    return data;
  };
  const auto report = [&](auto value) {
    return probe_positions(data_of(value), data_of(value), kWords);
  };
  const auto word = report([](auto& state, int32_t id, int64_t, bool) { state[id] = 1; });
  EXPECT_NEAR(word.control.r2, 1, 1e-5);
  EXPECT_LT(word.held_out.r2, 0.1);
  const auto place = report(
      [](auto& state, int32_t, int64_t place, bool) { state[0] = static_cast<float>(place); });
  EXPECT_LT(place.control.r2, 0.1);
  EXPECT_NEAR(place.interior.r2, 1, 1e-5);
  const auto edges = report([](auto& state, int32_t, int64_t place, bool edge) {
    if (edge) state[0] = static_cast<float>(place) - 4.5F;
  });
  EXPECT_NEAR(edges.interior.r2, 0, 0.01);
  EXPECT_GT(edges.held_out.r2, 0.7);
  ProbeData bare = data_of([](auto& state, int32_t id, int64_t, bool) { state[id] = 1; });
  bare.token_ids.clear();
  bare.at_edges.assign(bare.targets.size(), true);
  const ProbeReport none = probe_positions(bare, bare, kWords);
  EXPECT_TRUE(std::isnan(none.control.r2));
  EXPECT_TRUE(std::isnan(none.interior.r2));
  for (const size_t size : {size_t{1}, bare.targets.size() + 1}) {
    ProbeData odd = bare;
    odd.token_ids.resize(size);
    EXPECT_THROW(fit_probe(odd, kWords), InvalidArgument);
    odd = bare;
    odd.at_edges.resize(size);
    EXPECT_THROW(fit_probe(odd, kWords), InvalidArgument);
  }
}

TEST(ProbePositionsTest, APlaceOutsideItsTextIsRefused) {
  const auto model = random_model(small_config(), 2);
  Encoder encoder(model);
  const std::vector<ProbeText> texts = {{.token_ids = {1, 2}, .places = {2}}};
  EXPECT_THROW(probe_positions(encoder, texts, texts), InvalidArgument);
  EXPECT_THROW(probe_positions(encoder, {}, {}), InvalidArgument);
  EXPECT_THROW(probe_token_embeddings(*model, texts, texts), InvalidArgument);
  const std::vector<ProbeText> unknown = {{.token_ids = {1, 2000000}, .places = {1}}};
  EXPECT_THROW(probe_token_embeddings(*model, unknown, unknown), InvalidArgument);
  EXPECT_THROW(probe_token_embeddings(*model, {}, {}), InvalidArgument);
}

}  // namespace
}  // namespace phasor
