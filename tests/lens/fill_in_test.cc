// The bundled models fill masks with sensible words: a page of sentences, each with the words that
// someone called plausible who had not seen a model's answers.
#include "lens/study/text.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

/// Each with its text and the plausible words.
json sentences() {
  std::ifstream file(PHASOR_SOURCE_DIR "/models/train/fillin.json");
  return json::parse(file);
}

/// How many sentences have a plausible word among the first five.
size_t plausible_answers(const char* model, std::string& answers) {
  constexpr int64_t kTop = 5;
  Encoder encoder(Model::load(model));
  size_t count = 0;
  const json all = sentences();
  for (const json& sentence : all) {
    const auto text = sentence.at("text").get<std::string>();
    const auto words = sentence.at("plausible").get<std::set<std::string>>();
    const Encoding out = encoder.encode(text, {.parse_special = true});
    const std::vector<lens::Filler> fillers = internal::likely_fillers(encoder, out, 0, kTop);
    EXPECT_EQ(std::ssize(fillers), kTop);
    answers += "\n" + text + ":";
    bool plausible = false;
    for (const lens::Filler& filler : fillers) {
      const std::string_view space = "\u2581";
      const size_t begin = filler.piece.starts_with(space) ? space.size() : 0;
      const std::string word = filler.piece.substr(begin);
      plausible |= words.contains(word);
      answers += " " + word;
    }
    count += plausible;
  }
  return count;
}

TEST(FillInTest, TwoThirdsOfTheSentencesHaveAPlausibleWordInTheTopFive) {
  ASSERT_GE(sentences().size(), 30u);
  for (const char* const model : {"sinusoidal", "learned"}) {
    std::string answers;
    EXPECT_GE(3 * plausible_answers(model, answers), 2 * sentences().size()) << model << "\n"
                                                                             << answers;
  }
}

TEST(FillInTest, WithoutPositionsTheModelCannotTellWhichWordIsMissing) {
  std::string with_positions, without;
  EXPECT_LT(2 * plausible_answers("none", without),
            plausible_answers("sinusoidal", with_positions));
}

}  // namespace
}  // namespace phasor
