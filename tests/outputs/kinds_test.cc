// The kinds of vectors: several come from one run with the bits of each alone; prompts and roles;
// and each token's last states.
#include "tests/support/arrays.h"
#include "tests/support/bundled_folder.h"
#include "tests/support/reference_encoder.h"

namespace phasor {
namespace {

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
      encoder_->embed(texts, {.kinds = all_kinds(),
                              .role = TextRole::kQuery,
                              .progress = [&](int64_t done, int64_t) { told = done; },
                              .offset_unit = OffsetUnit::kBytes});
  EXPECT_EQ(told, std::ssize(texts));
  std::map<unsigned, size_t> arrays;  // but the reports
  for (unsigned some = 1; some < 1U << all_kinds().size(); ++some) {
    TextOptions how = {.role = TextRole::kQuery};
    size_t of_each = 0;
    for (const VectorKind kind : all_kinds()) {
      const unsigned bit = some & 1U << static_cast<int>(kind);
      if (bit != 0) how.kinds.push_back(kind);
      of_each += arrays[bit];
    }
    if ((field("offset_unit").uses & some) != 0) how.offset_unit = OffsetUnit::kBytes;
    const Vectors made = encoder_->embed(texts, how);
    expect_arrays_in(all.arrays(), made.arrays());
    arrays[some] = made.arrays().size() - 3;
    EXPECT_TRUE(how.kinds.size() == 1 ? arrays[some] > 0 : arrays[some] == of_each) << some;
  }
  const Vectors repeated = encoder_->embed(
      texts, {.kinds = {VectorKind::kDense, VectorKind::kDense}, .role = TextRole::kQuery});
  expect_arrays_in(all.arrays(), repeated.arrays());
}

TEST_F(KindsTest, ThePromptIsTheOneThatIsNamedOrElseThatOfTheRole) {
  for (const VectorKind kind : all_kinds()) {
    const bool in_retrieval = kind == VectorKind::kSparse || kind == VectorKind::kTokens;
    const auto expect_prompt = [&](TextOptions how, const std::string& prompt) {
      SCOPED_TRACE(prompt);
      how.kinds = {kind};
      const Vectors made = encoder_->embed({"Tom bit a dog.", "It rains."}, how);
      const Vectors want =
          encoder_->embed({"Tom bit a dog.", "It rains."}, {.kinds = {kind}, .prompt = prompt});
      expect_arrays_in(want.arrays(), made.arrays());
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

/// States and vectors are those of a run of the text's ids.
void expect_states(Encoder& encoder, TextOptions how) {
  how.kinds = {VectorKind::kDense, VectorKind::kStates};
  how.pooling = {PoolingMode::kCls, PoolingMode::kMean};
  how.normalize = true;
  const std::vector<std::string> texts = {"Tom bit a dög and ran.", "", repeat("dog ", 200)};
  const Vectors made = encoder.embed(texts, how);
  const TokenRows& states = made.states;
  const Model& model = encoder.model();
  const auto overflow = how.overflow.value_or(Overflow::kTruncate);
  const bool truncates = overflow == Overflow::kTruncate, windows = overflow == Overflow::kWindow;
  RunOptions run = {.positions = how.positions, .overflow = overflow};
  if (windows) {  // as with a table of that length
    const int64_t rows = how.max_tokens > 0 ? how.max_tokens : 128;
    run.positions = Positions::table({rows, 128, model.position_vectors(rows)});
  }
  const std::string prompt = how.prompt.value_or("");
  const bool counts_bytes = how.offset_unit == OffsetUnit::kBytes;
  const int64_t length = prompt.empty() ? 0 : counts_bytes ? 5 : 4;
  for (int64_t i = 0; i < 3; ++i) {
    const Tokens tokens = model.tokenizer().encode(
        prompt + texts[i], {.max_tokens = windows                            ? 0
                                          : truncates && how.max_tokens == 0 ? 128
                                                                             : how.max_tokens,
                            .truncation_side = how.truncation_side,
                            .offset_unit = how.offset_unit.value_or(OffsetUnit::kNone)});
    EXPECT_EQ(made.reports[i].num_tokens, std::ssize(tokens.ids));
    EXPECT_EQ(made.reports[i].dropped_tokens, tokens.dropped);
    const auto begin = states.offsets[i], count = states.offsets[i + 1] - begin;
    EXPECT_TRUE(std::ranges::equal(std::span(states.ids).subspan(begin, count), tokens.ids));
    const Encoding encoding = encoder.encode_ids(tokens.ids, run);
    expect_same_bits(states[i], encoding.hidden, texts[i]);
    expect_same_bits(made[i], pool(encoding.hidden, 128, {.modes = how.pooling, .normalize = true}),
                     texts[i]);
    for (size_t t = 0; t < tokens.offsets.size(); ++t) {
      const TextSpan want = {std::max<int64_t>(tokens.offsets[t].begin - length, 0),
                             std::max<int64_t>(tokens.offsets[t].end - length, 0)};
      EXPECT_EQ(states.spans[begin + static_cast<int64_t>(t)], want) << texts[i] << " " << t;
    }
  }
  EXPECT_EQ(states.spans.empty(), !how.offset_unit);
}

TEST(StatesTest, TheyAreThoseOfTheTextsIdsWithTheirPlaces) {
  for (const char* const name : {"learned", "sinusoidal"}) {
    Encoder encoder(Model::load(name));
    for (const TextOptions& how : std::vector<TextOptions>{
             {},
             {.prompt = "Öl: ", .offset_unit = OffsetUnit::kCharacters},
             {.prompt = "Öl: ",
             .max_tokens = 8,
             .truncation_side = TruncationSide::kRight,
             .offset_unit = OffsetUnit::kBytes},
             {.max_tokens = 7, .truncation_side = TruncationSide::kLeft},
             {.positions = Positions::none()},
             {.overflow = Overflow::kClamp},
             {.max_tokens = 150, .overflow = Overflow::kInterpolate},
             {.overflow = Overflow::kWindow, .offset_unit = OffsetUnit::kBytes},
             {.max_tokens = 50, .overflow = Overflow::kWindow}})
      expect_states(encoder, how);
    EXPECT_THROW(encoder.embed("a b c", {.max_tokens = 1}), InvalidArgument);
  }
}

TEST(StatesTest, OfALongTextTheyAreTheMeansOfItsWindows) {
  const auto model = Model::load("learned");
  Encoder encoder(model);
  const std::string text = repeat("dog ", 128 + 6 * 64);
  const std::vector<int32_t> ids = model->tokenizer().encode(text).ids;
  const auto want = reference::encode(*model, ids, {.overflow = Overflow::kWindow});
  EXPECT_EQ(want.windows.size(), 8u);
  const Vectors made =
      encoder.embed({text, "Tom"}, {.kinds = {VectorKind::kStates}, .overflow = Overflow::kWindow});
  expect_close<float, double>(made.states[0], want.hidden, 1e-4, "means of windows");
}

}  // namespace
}  // namespace phasor
