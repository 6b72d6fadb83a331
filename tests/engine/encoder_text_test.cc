// Texts in: what the encoder asks of a tokenizer, with one whose ids are plain to see.
#include "tests/support/encoder_cases.h"
#include "tests/support/letter_tokenizer.h"

namespace phasor {
namespace {

constexpr int32_t kFirst = 0, kLast = 1;  // LetterTokenizer's

std::shared_ptr<const Model> letter_model(bool special_tokens = true) {
  ModelConfig config = small_config();  // 12 positions
  config.position.kind = PositionKind::kLearned;
  return random_model(config, 61, {.tokenizer = std::make_shared<LetterTokenizer>(special_tokens)});
}

TokenIds ids_of(const Encoding& encoding, int64_t i) {
  return {encoding.token_ids(i).begin(), encoding.token_ids(i).end()};
}

TEST(EncodeTextTest, GivesWhatItsTokenIdsGive) {
  Encoder encoder(letter_model());
  const Encoding texts = encoder.encode({"abz", "", "c"});
  const std::vector<TokenIds> ids = {
      {kFirst, 2, 3, 27, kLast}, {kFirst, kLast}, {kFirst, 4, kLast}};
  ASSERT_EQ(texts.num_sequences(), 3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(ids_of(texts, i), ids[i]);
  const Encoding same = encoder.encode_ids(ids);
  expect_same_bits(texts.hidden(), same.hidden(), "as ids");
}

TEST(EncodeTextTest, EmptyTextWithoutSpecialTokensIsRefusedAndTheEncoderStaysUsable) {
  Encoder encoder(letter_model(false));
  expect_error<InvalidArgument>([&] { encoder.encode(""); }, {"empty"});
  expect_error<InvalidArgument>([&] { encoder.encode({"a", ""}); }, {"empty"});
  expect_error<InvalidArgument>([&] { encoder.encode(std::vector<std::string>{}); }, {"empty"});
  EXPECT_EQ(encoder.encode("a").num_tokens(0), 1);
}

TEST(EncodeTextTest, TooLongTextIsRefusedOrTruncatedBeforeItsClosingToken) {
  Encoder encoder(letter_model());
  const std::string text = "abcdefghijklmnop";  // 18 tokens
  expect_error<InvalidArgument>([&] { encoder.encode(text); }, {"18", "12", "truncate"});
  const Encoding truncated = encoder.encode(text, {.overflow = Overflow::kTruncate});
  EXPECT_EQ(ids_of(truncated, 0), (TokenIds{kFirst, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, kLast}));
  for (const auto overflow : {Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow}) {
    EXPECT_EQ(encoder.encode(text, {.overflow = overflow}).num_tokens(0), 18);
  }
  EXPECT_EQ(encoder.encode(text, {.positions = Positions::none(), .overflow = Overflow::kTruncate})
                .num_tokens(0),
            18);
}

}  // namespace
}  // namespace phasor
