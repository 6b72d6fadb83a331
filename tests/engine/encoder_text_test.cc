// Texts in: what the encoder asks of a tokenizer, with one whose ids are plain to see.
#include "tests/support/encoder_cases.h"
#include "tests/support/letter_tokenizer.h"
#include "tests/support/test.h"

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
  const auto model = letter_model();
  Encoder encoder(model);
  const Encoding text = encoder.encode("abz");
  EXPECT_EQ(ids_of(text, 0), (TokenIds{kFirst, 2, 3, 27, kLast}));
  EXPECT_EQ(ids_of(encoder.encode(""), 0), (TokenIds{kFirst, kLast}));
  expect_same_bits(text.hidden(0), hidden_of(encoder.encode_ids(ids_of(text, 0))), "as ids");
}

TEST(EncodeTextTest, ListsAndVectorsAreBatches) {
  const auto model = letter_model();
  Encoder encoder(model);
  const Encoding list = encoder.encode({"ab", "c"});
  const Encoding vector = encoder.encode(std::vector<std::string>{"ab", "c"});
  ASSERT_EQ(list.num_sequences(), 2);
  ASSERT_EQ(vector.num_sequences(), 2);
  EXPECT_EQ(ids_of(list, 1), (TokenIds{kFirst, 4, kLast}));
  expect_same_bits(list.hidden(0), vector.hidden(0), "list against vector");
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
