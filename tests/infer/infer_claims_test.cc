// The tutorials' claims: the verdicts of the design, and that a wrong table or model is noticed.
#include "infer/positions/claims.h"
#include "tests/support/tables.h"
#include "tests/support/test.h"

namespace phasor {
using namespace infer;
namespace {

using enum SinusoidalLayout;

std::shared_ptr<const Model> load(const std::string& name) {
  return Model::load(PHASOR_SOURCE_DIR "/models/" + name);
}

ClaimModels bundled() { return {.sinusoidal = load("sinusoidal"), .none = load("none")}; }

TEST(ClaimsTest, AllAreAsExpectedAndTheseDoNotHoldOrAreAMatterOfHowMuch) {
  std::vector<std::string> wrong = {"Positions k run over 0 ≤ k < L/2",
                                    "Each position k corresponds to a different sinusoid",
                                    "fulfils all four criteria",
                                    "Early dimensions have low frequencies",
                                    "increase monotonically up to position 250",
                                    "geometric progression from π",
                                    "Only even widths",
                                    "varying sequence lengths"};
  std::vector<std::string> measured = {
      "geometric progression from 2π to 2πn", "geometric progression from 2π to 10000 · 2π",
      "residual connections", "sequences of different lengths", "ability to extrapolate"};
  const auto take = [](std::vector<std::string>& words, const std::string& text) {
    return std::erase_if(words, [&](const auto& w) { return text.find(w) != text.npos; }) == 1;
  };
  std::vector<std::string> sources;
  for (const Claim& claim : tutorial_claims(bundled())) {
    SCOPED_TRACE(claim.text);
    EXPECT_TRUE(claim.as_expected) << claim.source << ": " << claim.computed;
    EXPECT_FALSE(claim.computed.empty());
    EXPECT_TRUE(claim.holds.value_or(false) || !claim.reason.empty());
    EXPECT_EQ(take(wrong, claim.text), claim.holds == false);
    EXPECT_EQ(take(measured, claim.text), !claim.holds);
    if (sources.empty() || sources.back() != claim.source) sources.push_back(claim.source);
  }
  EXPECT_EQ(sources.size(), 5u);  // in one piece each
  EXPECT_EQ(wrong, std::vector<std::string>());
  EXPECT_EQ(measured, std::vector<std::string>());
}

/// Changes every value v, of row r, of what sinusoidal_table() gives.
TableSource changed(double (*change)(double, double, double)) {
  return [change](auto layout, int64_t rows, int64_t d_model, double base, int64_t first) {
    std::vector<double> table = sinusoidal_table(layout, rows, d_model, base, first);
    for (int64_t i = 0; i < rows * d_model; ++i) table[i] = change(table[i], i / d_model, rows);
    return table;
  };
}

/// sinusoidal_table() of other arguments.
TableSource of(void (*change)(SinusoidalLayout&, double&, int64_t&)) {
  return [change](auto layout, int64_t rows, int64_t d_model, double base, int64_t first) {
    change(layout, base, first);
    return sinusoidal_table(layout, rows, d_model, base, first);
  };
}

std::map<std::string, TableSource> wrong_tables() {
  return {
      {"another base", of([](auto&, auto& base, auto&) { base *= 1.01; })},
      {"another layout", of([](auto& layout, auto&, auto&) { layout = kMarian; })},
      {"the next position", of([](auto&, auto&, auto& first) { first += 1; })},
      {"values moved to [0, 1]", changed([](double v, double, double) { return (v + 1) / 2; })},
      {"float32",
       changed([](double v, double, double) -> double { return static_cast<float>(v); })},
      {"the share of the length", changed([](double, double r, double rows) { return r / rows; })},
      {"every other row negated",
       changed([](double v, double r, double) { return std::fmod(r, 2) == 0 ? v : -v; })},
  };
}

TEST(ClaimsTest, AWrongTableIsNoticedByEveryClaimAboutTables) {
  std::set<std::string> blind;  // claims that no wrong table has moved yet
  for (const Claim& claim : tutorial_claims()) blind.insert(claim.text);
  for (const auto& [name, table] : wrong_tables()) {
    int64_t noticed = 0;
    for (const Claim& claim : tutorial_claims({}, table)) {
      if (claim.as_expected) continue;
      ++noticed;
      blind.erase(claim.text);
    }
    EXPECT_GT(noticed, 0) << name;
  }
  EXPECT_EQ(blind, std::set<std::string>());
}

TEST(ClaimsTest, AnotherModelIsNoticed) {
  const ClaimModels right = bundled();
  const auto unexpected = [](const ClaimModels& models) {
    std::vector<std::string> texts;
    for (const Claim& claim : tutorial_claims(models)) {
      if (!claim.as_expected) texts.push_back(claim.text.substr(0, 9));
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(unexpected({load("learned"), right.none}), Texts{"The table"});
  EXPECT_EQ(unexpected({right.sinusoidal, right.sinusoidal}), Texts{"Without p"});
  EXPECT_THROW(unexpected({right.none, right.none}), InvalidArgument);

  ModelConfig config = right.sinusoidal->config();
  config.embedding_scale *= 1000;  // positions are lost beside the tokens
  const auto louder = Model::create(config, right.sinusoidal->weights(), right.sinusoidal,
                                    {right.sinusoidal, &right.sinusoidal->tokenizer()});
  const Texts texts = unexpected({louder, right.none});
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "Positions"), 1);
}

TEST(ClaimsTest, WithoutModelsTheOthersAreTheSame) {
  const std::vector<Claim> all = tutorial_claims(bundled()), some = tutorial_claims();
  EXPECT_EQ(all.size(), some.size() + 3);
  for (const Claim& claim : some) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Claim& other) {
      return other.text == claim.text && other.computed == claim.computed;
    })) << claim.text;
  }
}

TEST(ClaimsTest, ATableOfTheWrongSizeIsRefused) {
  const auto short_table = [](SinusoidalLayout layout, int64_t rows, int64_t d_model, double base,
                              int64_t first) {
    return sinusoidal_table(layout, rows - 1, d_model, base, first);
  };
  EXPECT_THROW(tutorial_claims({}, short_table), InvalidArgument);
}

}  // namespace
}  // namespace phasor
