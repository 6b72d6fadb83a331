// The kinds of vectors: several come from one run with the bits of each alone; prompts and roles;
// and each token's last states.
#include "tests/support/parts.h"
#include "tests/support/reference_encoder.h"
#include "tests/support/token_vector_folder.h"

namespace phasor {
namespace {

constexpr VectorKind kAllKinds[] = {VectorKind::kDense, VectorKind::kSparse, VectorKind::kTokens,
                                    VectorKind::kStates};

/// A model that makes all kinds, with three prompts.
class KindsTest : public testing::Test {
 protected:
  KindsTest() {
    folder_.make_bge();
    folder_.folder().write("config_sentence_transformers.json",
                           R"({"prompts": {"query": "Q: ", "document": "D: ", "other": "Öl: "},
            "default_prompt_name": "other"})");
    encoder_.emplace(folder_.load(), EncoderOptions{.threads = 2});
  }

  TokenVectorFolder folder_;
  std::optional<Encoder> encoder_;
};

TEST_F(KindsTest, OneRunGivesTheSameBitsAsEachAlone) {
  std::vector<std::string> texts = {"Tom bit a dog.", "", "It rains."};
  for (int i = 0; i < 50; ++i) texts.push_back(repeat("a dog ", i % 31) + std::to_string(i));
  int64_t told = 0;
  const Vectors all =
      encoder_->embed(texts, {.kinds = {std::begin(kAllKinds), std::end(kAllKinds)},
                              .role = TextRole::kQuery,
                              .progress = [&](int64_t done, int64_t) { told = done; },
                              .offset_unit = OffsetUnit::kBytes});
  EXPECT_EQ(told, std::ssize(texts));
  EXPECT_EQ(all.parts().size(), 1 + 3 + 4 + 4 + 3u);
  for (unsigned some = 1; some < 16; ++some) {
    TextOptions how = {.role = TextRole::kQuery};
    for (const VectorKind kind : kAllKinds) {
      if ((some >> static_cast<int>(kind) & 1) != 0) how.kinds.push_back(kind);
    }
    if (some > 3) how.offset_unit = OffsetUnit::kBytes;
    const Vectors made = encoder_->embed(texts, how);
    expect_parts_in(all.parts(), made.parts());
    EXPECT_EQ(made.dense.empty(), some % 2 == 0);
    EXPECT_EQ(made.sparse.width > 0, (some & 2) != 0);
    EXPECT_EQ(made.tokens.width > 0, (some & 4) != 0);
    EXPECT_EQ(made.states.width > 0, (some & 8) != 0);
  }
  const Vectors repeated = encoder_->embed(
      texts, {.kinds = {VectorKind::kDense, VectorKind::kDense}, .role = TextRole::kQuery});
  expect_parts_in(all.parts(), repeated.parts());
}

TEST_F(KindsTest, ThePromptIsTheOneThatIsNamedOrElseThatOfTheRole) {
  for (const VectorKind kind : kAllKinds) {
    const bool in_retrieval = kind == VectorKind::kSparse || kind == VectorKind::kTokens;
    const auto expect_prompt = [&](TextOptions how, const std::string& prompt) {
      SCOPED_TRACE(prompt);
      how.kinds = {kind};
      const Vectors made = encoder_->embed({"Tom bit a dog.", "It rains."}, how);
      const Vectors want =
          encoder_->embed({"Tom bit a dog.", "It rains."}, {.kinds = {kind}, .prompt = prompt});
      expect_parts_in(want.parts(), made.parts());
    };
    expect_prompt({}, in_retrieval ? "D: " : "Öl: ");
    expect_prompt({.role = TextRole::kQuery}, "Q: ");
    expect_prompt({.role = TextRole::kDocument}, "D: ");
    expect_prompt({.prompt_name = "query"}, "Q: ");
    expect_prompt({.role = TextRole::kQuery, .prompt_name = "document"}, "D: ");
    expect_prompt({.role = TextRole::kQuery, .prompt = "Say: "}, "Say: ");
    expect_prompt({.role = TextRole::kQuery, .prompt = ""}, "");
  }
  expect_error<InvalidArgument>([&] { encoder_->embed("a", {.prompt_name = "queries"}); },
                                {"\"queries\"", "document, other, query"});
  Encoder plain(Model::load("sinusoidal"));
  expect_error<InvalidArgument>([&] { plain.embed("a", {.prompt_name = "query"}); },
                                {"\"query\"", "it has none"});
}

TEST_F(KindsTest, StatesAreThoseOfTheTextsIdsWithTheirPlaces) {
  const std::vector<std::string> texts = {"Tom bit a dög and ran.", "", "It rains; it pours."};
  struct Row {
    std::string prompt;
    int64_t max_tokens;
    TruncationSide side;
    OffsetUnit unit;
  };
  for (const auto& [prompt, max_tokens, side, unit] :
       {Row{"", 0, TruncationSide::kTokenizer, OffsetUnit::kBytes},
        Row{"Öl: ", 0, TruncationSide::kTokenizer, OffsetUnit::kCharacters},
        Row{"Öl: ", 8, TruncationSide::kRight, OffsetUnit::kBytes},
        Row{"Öl: ", 7, TruncationSide::kLeft, OffsetUnit::kCharacters}}) {
    const Vectors made = encoder_->embed(texts, {.kinds = {VectorKind::kStates},
                                                 .prompt = prompt,
                                                 .max_tokens = max_tokens,
                                                 .truncation_side = side,
                                                 .offset_unit = unit});
    const TokenRows& states = made.states;
    const int64_t length = prompt.empty() ? 0 : unit == OffsetUnit::kBytes ? 5 : 4;
    for (int64_t i = 0; i < 3; ++i) {
      const Tokens tokens = encoder_->model().tokenizer().encode(
          prompt + texts[i],
          {.max_tokens = max_tokens, .truncation_side = side, .offset_unit = unit});
      EXPECT_EQ(made.reports[i].dropped_tokens, tokens.dropped);
      const auto begin = states.offsets[i], count = states.offsets[i + 1] - begin;
      EXPECT_TRUE(std::ranges::equal(std::span(states.ids).subspan(begin, count), tokens.ids));
      expect_same_bits(states[i], hidden_of(encoder_->encode_ids(tokens.ids)), texts[i]);
      for (int64_t t = 0; t < count; ++t) {
        const TextSpan want = {std::max<int64_t>(tokens.offsets[t].begin - length, 0),
                               std::max<int64_t>(tokens.offsets[t].end - length, 0)};
        EXPECT_EQ(states.spans[begin + t], want) << texts[i] << " " << t;
      }
    }
  }
  const Vectors without = encoder_->embed("Tom", {.kinds = {VectorKind::kStates}});
  EXPECT_TRUE(without.states.spans.empty());
}

TEST(StatesTest, OfALongTextTheyAreTheMeansOfItsWindows) {
  const auto model = Model::load("learned");
  Encoder encoder(model);
  std::string text;
  std::vector<int32_t> ids;
  reference::Result want;
  for (int i = 0; want.windows.size() < 8; ++i) {
    text += repeat(i % 3 == 0 ? "dog " : "cat ", 60);
    ids = model->tokenizer().encode(text).ids;
    if (ids.size() > 8 * 64) want = reference::encode(*model, ids, {.overflow = Overflow::kWindow});
  }
  EXPECT_EQ(want.windows.size(), 8u);
  const Vectors made = encoder.embed({text, "Tom"}, {.kinds = {VectorKind::kStates},
                                                     .overflow = Overflow::kWindow,
                                                     .offset_unit = OffsetUnit::kBytes});
  EXPECT_EQ(made.states.offsets[1], std::ssize(ids));
  expect_close<float, double>(made.states[0], want.hidden, 1e-4, "means of windows");
  expect_same_bits(made.states[0],
                   hidden_of(encoder.encode_ids(ids, {.overflow = Overflow::kWindow})), "windows");
  std::vector<TextSpan> spans =
      model->tokenizer().encode(text, {.offset_unit = OffsetUnit::kBytes}).offsets;
  EXPECT_TRUE(std::ranges::equal(spans, std::span(made.states.spans).first(ids.size())));
}

TEST(KindsOfOneModelTest, WhatItDoesNotMakeOrRunsOtherwiseIsRefused) {
  Encoder plain(Model::load("sinusoidal"));
  for (const VectorKind kind : {VectorKind::kSparse, VectorKind::kTokens}) {
    expect_error<ModelError>([&] { plain.embed("a", {.kinds = {VectorKind::kDense, kind}}); }, {});
  }
  const TokenVectorFolder longer("sinusoidal", {{"document_length", 9}});
  longer.add_sparse_linear();
  Encoder colbert(longer.load());
  const TextOptions both = {.kinds = {VectorKind::kSparse, VectorKind::kTokens}};
  expect_error<InvalidArgument>([&] { colbert.embed("a", both); }, {"one run", "length"});
  TextOptions queries = both;
  queries.role = TextRole::kQuery;
  EXPECT_GT(colbert.embed("a", queries).tokens.width, 0);
  EXPECT_GT(colbert.embed("a", {.kinds = {VectorKind::kTokens}}).tokens.width, 0);
}

}  // namespace
}  // namespace phasor
