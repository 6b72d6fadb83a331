// The bundled models fill masks with sensible words: a page of sentences, each with the words that
// someone called plausible who had not seen a model's answers.
#include "lens/study/fill_in.h"

#include "tests/support/test.h"

namespace phasor {
namespace {

constexpr size_t kTop = 5;

struct Sentence {
  std::string text;
  std::vector<std::string> plausible;
};

std::vector<Sentence> sentences() {
  std::ifstream file(PHASOR_SOURCE_DIR "/models/train/fillin.json");
  std::vector<Sentence> sentences;
  for (const nlohmann::json& item : nlohmann::json::parse(file)) {
    sentences.push_back({item.at("text"), item.at("plausible")});
  }
  return sentences;
}

/// The likeliest words for the one mask of `text`, best first, without the space before them.
std::vector<std::string> fill_in(Encoder& encoder, const std::string& text) {
  const std::vector<int32_t> ids =
      encoder.model().tokenizer().encode(text, {.parse_special = true}).ids;
  const Encoding out = encoder.encode_ids(ids);
  std::vector<std::string> words;
  for (const lens::Filler& filler : internal::likely_fillers(encoder, out, 0, kTop)) {
    const bool begins_word = filler.piece.starts_with("\u2581");
    words.push_back(filler.piece.substr(begins_word ? std::string("\u2581").size() : 0));
  }
  EXPECT_EQ(words.size(), kTop);
  return words;
}

bool has_plausible(const std::vector<std::string>& words, const Sentence& sentence) {
  return std::find_first_of(words.begin(), words.end(), sentence.plausible.begin(),
                            sentence.plausible.end()) != words.end();
}

/// How many sentences have a plausible word among the first five.
size_t plausible_answers(const char* model, std::string& answers) {
  Encoder encoder(Model::load(model));
  size_t count = 0;
  for (const Sentence& sentence : sentences()) {
    const std::vector<std::string> words = fill_in(encoder, sentence.text);
    const bool plausible = has_plausible(words, sentence);
    count += plausible;
    answers += (plausible ? "  + " : "  - ") + sentence.text + " ";
    for (const std::string& word : words) answers += " " + word;
    answers += "\n";
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
