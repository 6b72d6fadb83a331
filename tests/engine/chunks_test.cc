// Vectors of chunks: where texts are cut, and that they are pooled from one run of the whole text.
#include "outputs/chunks.h"

#include "tests/support/reference_encoder.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

std::vector<std::string> sentences(const std::string& text) {
  std::vector<std::string> all;
  for (const auto& [begin, end] : internal::sentences_of(text))
    all.push_back(text.substr(begin, end - begin));
  return all;
}

using Strings = std::vector<std::string>;

TEST(ChunksTest, SentencesEndAtTheirMarks) {
  EXPECT_EQ(sentences("Tom bit a dog. It ran!  Why? "),
            (Strings{"Tom bit a dog.", "It ran!", "Why?"}));
  EXPECT_EQ(sentences("\"Go!\" she said. (He went.) So..."),
            (Strings{"\"Go!\" she said.", "(He went.)", "So..."}));
  EXPECT_EQ(sentences("It is 3.5 m, i.e. long. V1.2"),
            (Strings{"It is 3.5 m, i.e. long.", "V1.2"}));
  EXPECT_EQ(sentences("a line\nof two\n \nA heading\n\n\nEnd"),
            (Strings{"a line\nof two", "A heading", "End"}));
  EXPECT_EQ(sentences("猫がいる。「犬もいる！」鳥は？"),
            (Strings{"猫がいる。", "「犬もいる！」", "鳥は？"}));
  EXPECT_EQ(sentences("Wait… “No.” Yes"), (Strings{"Wait…", "“No.”", "Yes"}));
  EXPECT_EQ(sentences(" \n\n "), Strings());
  EXPECT_EQ(sentences(""), Strings());
  EXPECT_EQ(sentences("..."), Strings{"..."});
}

/// Each chunk's vector is the mean of the states of its tokens in a run of the whole text.
void expect_chunks(Encoder& encoder, const std::string& text, const ChunkVectors& made,
                   int64_t number, const std::vector<std::pair<int64_t, int64_t>>& tokens,
                   const Strings& parts) {
  const Model& model = encoder.model();
  const int64_t width = model.config().d_model;
  const auto states = reference::encode(model, model.tokenizer().encode(text).ids).hidden;
  ASSERT_EQ(made.offsets[number + 1] - made.offsets[number], std::ssize(tokens));
  for (int64_t i = 0; i < std::ssize(tokens); ++i) {
    const TextSpan span = made.spans[made.offsets[number] + i];
    EXPECT_EQ(text.substr(span.begin, span.end - span.begin), parts[i]);
    for (int64_t c = 0; c < width; ++c) {
      double mean = 0;
      for (int64_t t = tokens[i].first; t < tokens[i].second; ++t) mean += states[t * width + c];
      mean /= static_cast<double>(std::max<int64_t>(tokens[i].second - tokens[i].first, 1));
      EXPECT_NEAR(made[number][i * width + c], mean, 1e-4);
    }
  }
}

TEST(ChunksTest, VectorsAreMeansOverStatesOfTheWholeText) {
  for (const char* const kind : {"sinusoidal", "rotary"}) {
    Encoder encoder(Model::load(kind), {.threads = 2});
    const Strings texts = {"Tom bit a dog. It ran.", "", "She sang!"};
    const auto count = [&](const std::string& text) {
      return std::ssize(encoder.model().tokenizer().encode(text).ids) - 2;
    };
    const int64_t first = count("Tom bit a dog."), all = count(texts[0]);
    const ChunkVectors made = encoder.embed_chunks(texts);
    expect_chunks(encoder, texts[0], made, 0, {{1, 1 + first}, {1 + first, 1 + all}},
                  {"Tom bit a dog.", "It ran."});
    expect_chunks(encoder, texts[1], made, 1, {}, {});
    expect_chunks(encoder, texts[2], made, 2, {{1, 1 + count(texts[2])}}, {"She sang!"});
    const ChunkVectors pairs = encoder.embed_chunks(texts[0], {.chunk_tokens = 2});
    std::vector<std::pair<int64_t, int64_t>> tokens;
    for (int64_t t = 1; t <= all; t += 2) tokens.push_back({t, std::min(t + 2, all + 1)});
    Strings parts;
    const Tokens found =
        encoder.model().tokenizer().encode(texts[0], {.offset_unit = OffsetUnit::kBytes});
    for (const auto& [begin, end] : tokens) {
      std::string part = texts[0].substr(found.offsets[begin].begin,
                                         found.offsets[end - 1].end - found.offsets[begin].begin);
      part.erase(0, part.find_first_not_of(' '));
      parts.push_back(part.substr(0, part.find_last_not_of(' ') + 1));
    }
    expect_chunks(encoder, texts[0], pairs, 0, tokens, parts);
  }
}

TEST(ChunksTest, GivenSpansAreTheChunks) {
  Encoder encoder(Model::load("sinusoidal"));
  const std::string text = "Öl? Tom bit a dog. It ran.", first = "Öl?";
  const auto count = [&](const std::string& part) {
    return std::ssize(encoder.model().tokenizer().encode(part).ids) - 2;
  };
  const int64_t a = 1 + count(first), b = a + count("Tom bit a dog."), all = 1 + count(text);
  // A token of a space alone stands before Ö, where the text has none. In any order, overlapping,
  // with spaces, with the end of a character alone, and empty.
  const std::vector<TextSpan> bytes = {{19, 27}, {0, 19}, {4, 19}, {4, 5}, {27, 27}, {0, 27}};
  const ChunkVectors made =
      encoder.embed_chunks(std::vector<std::string>{text, ""}, {.spans = {bytes, {{0, 0}}}});
  expect_chunks(encoder, text, made, 0, {{b, all}, {2, b}, {a, b}, {a, a}, {a, a}, {2, all}},
                {" It ran.", "Öl? Tom bit a dog.", " Tom bit a dog.", " ", "", text});
  EXPECT_EQ(made.offsets, (std::vector<int64_t>{0, 6, 7}));
  EXPECT_EQ(made[1][0], 0);
  std::vector<TextSpan> characters = bytes;
  for (auto& [begin, end] : characters) begin -= begin > 0, end -= end > 0;
  const ChunkVectors same =
      encoder.embed_chunks(text, {.spans = {characters}, .offset_unit = OffsetUnit::kCharacters});
  EXPECT_EQ(same.spans, characters);
  EXPECT_TRUE(std::ranges::equal(same[0], made[0]));
}

TEST(ChunksTest, LongTextsRunInWindowsAndSpansCountWhatIsAskedFor) {
  Encoder encoder(Model::load("sinusoidal"));
  const std::string text = "Ünter. " + repeat("Tom bit a dog. ", 100) + "Ende.";
  const ChunkVectors made = encoder.embed_chunks(text, {.offset_unit = OffsetUnit::kCharacters});
  ASSERT_EQ(made.offsets[1], 102);
  EXPECT_EQ(made.spans[0], (TextSpan{0, 6}));
  EXPECT_EQ(made.spans[101], (TextSpan{7 + 1500, 7 + 1505}));
  ChunkOptions cut;
  cut.embed.overflow = Overflow::kTruncate;
  const ChunkVectors fewer = encoder.embed_chunks(text, cut);
  EXPECT_LT(fewer.offsets[1], 40);
  EXPECT_GT(fewer.report(0).dropped_tokens, 100);
}

TEST(ChunksTest, OptionsThatMakeNoSenseAreRefused) {
  Encoder encoder(Model::load("none"));
  const auto refused = [&](const ChunkOptions& options, std::initializer_list<std::string> words) {
    expect_error<InvalidArgument>([&] { encoder.embed_chunks("a", options); }, words);
  };
  refused({.chunk_tokens = -1}, {"chunk_tokens is -1"});
  refused({.chunk_tokens = 2, .spans = {{{0, 1}}}}, {"not both"});
  refused({.spans = {{{0, 1}}, {}}}, {"1 texts", "of 2"});
  for (const TextSpan span : {TextSpan{0, 2}, TextSpan{-1, 0}, TextSpan{1, 0}})
    refused({.spans = {{span}}}, {"text 0", "not in its 1 bytes"});
  refused({.offset_unit = OffsetUnit::kNone}, {"bytes or characters"});
  refused({.embed = {.pooling = Pooling{.modes = {PoolingMode::kCls}}}}, {"cls", "mean"});
  std::vector<float> output(128);
  refused({.embed = {.output = output}}, {"output"});
}

}  // namespace
}  // namespace phasor
