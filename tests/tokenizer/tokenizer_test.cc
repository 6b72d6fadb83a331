// Tokenizers: ids and pieces against references, special tokens, limits, and bad files.
#include "files/utf8.h"
#include "tests/support/tokenizer_folder.h"

namespace phasor {
using namespace internal;

namespace {

std::shared_ptr<const Tokenizer> bundled() { return Tokenizer::load(bundled_model("none")); }

/// A folder with the bundled SentencePiece model under another name, and other files.
std::shared_ptr<const Tokenizer> load_as(const std::string& model_file, const json& files) {
  const TinyModel folder("", files);
  if (!model_file.empty())
    fs::copy_file(bundled_model("none") / "tokenizer.model", folder / model_file);
  return Tokenizer::load(folder.path());
}

void expect_refused_as(const std::string& model_file, const json& files,
                       const std::vector<std::string>& words) {
  EXPECT_REFUSED(load_as(model_file, files), words);
}

/// Every text of a golden.json has these ids; and these pieces, where the file has them. There
/// "(special)" stands for a special token of any name, and the bundled models' files give the
/// unknown piece by its name, "<unk>", where phasor says what the text said.
void expect_golden(const fs::path& folder, bool bundled = false) {
  const auto tokenizer = Tokenizer::load(folder);
  std::ifstream file(folder / "golden.json");
  const json golden = json::parse(file);
  for (const json& item : golden.value("special_items", json::array())) {
    const auto text = item["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = true}).ids, item["ids"].get<Ids>()) << text;
  }
  const int32_t unk = 1;  // of the bundled models
  int64_t texts = 0;
  for (const json& item : golden.at("items")) {
    if (!item["text"].is_string()) continue;
    const auto text = item["text"].get<std::string>();
    const auto ids = item["ids"].get<Ids>();
    if (ids.empty()) continue;  // an empty text without special tokens; see below
    const json pair = item.value("text_pair", json());
    const Tokens tokens = pair.is_null() ? tokenizer->encode(text)
                                         : tokenizer->encode_pair(text, pair.get<std::string>());
    EXPECT_EQ(tokens.ids, ids) << text;
    if (const json types = item.value("token_type_ids", json()); !types.is_null()) {
      const Ids zeros(ids.size(), 0);
      EXPECT_EQ(tokens.token_types.empty() ? zeros : tokens.token_types, types.get<Ids>()) << text;
    }
    EXPECT_EQ(tokens.invalid_bytes, 0) << text;
    ASSERT_EQ(tokens.pieces.size(), tokens.ids.size()) << text;
    ++texts;
    if (!item.contains("pieces")) continue;
    const auto pieces = item["pieces"].get<Pieces>();
    ASSERT_EQ(pieces.size(), ids.size()) << text;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i] == "(special)") continue;
      if (bundled && ids[i] == unk) continue;
      EXPECT_EQ(tokens.pieces[i], pieces[i]) << text;
    }
  }
  EXPECT_GE(texts, 3) << folder;
}

TEST(TokenizerTest, BundledModelsMatchTheirReferences) {
  for (const char* const name : {"sinusoidal", "learned", "none", "rotary", "relative", "alibi"})
    expect_golden(bundled_model(name), true);
}

TEST(TokenizerTest, ReferenceTokenizersMatch) {
  int64_t folders = 0;
  for (const char* const name : {"golden", "tokenizers", "golden2", "tokenizers2", "golden3"}) {
    PHASOR_SHARED_OR_SKIP(parent, name);
    for (const auto& entry : fs::directory_iterator(parent)) {
      if (entry.path().filename() == "bart-ids") continue;  // has no texts
      if (!fs::exists(entry.path() / "golden.json")) continue;
      expect_golden(entry.path());
      ++folders;
    }
  }
  EXPECT_GE(folders, 72);
}

TEST(TokenizerTest, APieceAndItsIdBelongTogetherAndALimitBelowTheSpecialTokensIsRefused) {
  const auto tokenizer = bundled();
  const Tokens tokens = tokenizer->encode("Tom bit a dog.");
  for (size_t i = 0; i < tokens.ids.size(); ++i)
    EXPECT_EQ(tokenizer->piece(tokens.ids[i]), tokens.pieces[i]);
  EXPECT_EQ(tokens.pieces.front(), "[CLS]");
  EXPECT_EQ(tokens.pieces.back(), "[SEP]");
  EXPECT_EQ(tokenizer->piece(*tokenizer->mask_id()), "[MASK]");
  EXPECT_EQ(tokenizer->vocab_size(), 8192);
  EXPECT_INVALID(tokenizer->piece(8192), {"8192", "0 to 8191"});
  EXPECT_INVALID(tokenizer->piece(-1), {"-1"});
  EXPECT_INVALID(bundled()->encode("a", {.max_tokens = 1}), {"max_tokens is 1", "2"});
  EXPECT_INVALID(bundled()->encode("a", {.max_tokens = -3}), {"-3"});
}

TEST(TokenizerTest, AnEmptyTextIsItsSpecialTokensOrRefusedWhereThereAreNone) {
  EXPECT_EQ(bundled()->encode("").pieces, (Pieces{"[CLS]", "[SEP]"}));
  EXPECT_EQ(bundled()->encode("   ").pieces, (Pieces{"[CLS]", "[SEP]"}));
  const auto plain = load_as("any.model", json::object());
  EXPECT_INVALID(plain->encode(""), {"empty"});
  EXPECT_FALSE(plain->encode("a").ids.empty());
  EXPECT_EQ(plain->mask_id(), std::nullopt);
}

TEST(TokenizerTest, SpecialTokensInATextArePlainTextUnlessAskedFor) {
  const auto tokenizer = bundled();
  const int32_t mask = *tokenizer->mask_id();
  for (const int32_t id : tokenizer->encode("a [MASK] b").ids) EXPECT_NE(id, mask);
  // A mask stands for one piece with the space before it.
  for (const auto& [text, pieces] : std::vector<std::pair<std::string, Pieces>>{
           {"Tom [MASK] at", {"▁Tom", "[MASK]", "▁at"}},
           {"a [MASK].", {"▁a", "[MASK]", "."}},
           {"[MASK] at", {"[MASK]", "▁at"}},
           {"[MASK]", {"[MASK]"}},
           {"[MASK]   at  ", {"[MASK]", "▁at"}},
           {"[MASK] [MASK][MASK]", {"[MASK]", "[MASK]", "[MASK]"}},
           {"a [MASK]日 b", {"▁a", "[MASK]", "日", "▁b"}}})
    EXPECT_EQ(pieces_of(*tokenizer, text, true), pieces) << text;
  for (const std::string text : {"", "Tom bit a dog.", "  spaces  ", "[MAS K]", "[["})
    EXPECT_EQ(tokenizer->encode(text).ids, tokenizer->encode(text, {.parse_special = true}).ids);
}

TEST(TokenizerTest, RulesThatDropOrLengthenAreFollowedAfterASpecialToken) {
  const TempFolder folder;
  const TestCharsmap charsmap = make_charsmap({{"\x01", ""}, {"Ⅷ", "baa"}});
  folder.write("any.model", sentencepiece_bytes({{"a"}, {"b"}}, charsmap.bytes()));
  const auto tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(parsed(*tokenizer, "a<unk>\x01"), (Pieces{"▁", "a", "<unk>"}));
  EXPECT_EQ(parsed(*tokenizer, "<unk>\x01?"), (Pieces{"<unk>", "?"}));
  EXPECT_EQ(parsed(*tokenizer, "<unk>Ⅷ"), (Pieces{"<unk>", "b", "a", "a"}));
}

// SentencePiece alone takes the square of such a run's length, a minute for this one.
TEST(TokenizerTest, AnyNumberOfUnknownCharactersIsOneTokenInLittleTime) {
  const auto tokenizer = bundled();
  const std::string run(HAS_ADDRESS_SANITIZER ? 200'000 : 2'000'000, '1');
  const Tokens few = tokenizer->encode("Tom 11 bit"),
               many = tokenizer->encode("Tom " + run + " bit");
  EXPECT_EQ(many.ids, few.ids);
  const auto unknown = std::ranges::find(few.ids, 1) - few.ids.begin();
  ASSERT_LT(unknown, std::ssize(few.ids));
  EXPECT_TRUE(many.pieces[unknown] == run);
  // What no model takes for a space ends no word.
  std::string mixed;
  while (mixed.size() < run.size())
    mixed += std::string(60'000, '~') + (mixed.size() % 2 ? '\t' : '\x01');
  EXPECT_LE(tokenizer->encode(mixed).ids.size(), 100u);
}

TEST(TokenizerTest, AWordIsCutOnlyWhereItIsTooLong) {
  const auto tokenizer = bundled();
  std::string word;  // with characters of two bytes
  while (word.size() < 65'500) word += "dog\xc3\xa9";
  const Tokens one = tokenizer->encode(word), two = tokenizer->encode(word + word);
  std::string all;
  for (size_t t = 1; t + 1 < two.pieces.size(); ++t) all += two.pieces[t];
  EXPECT_TRUE(all == "\xe2\x96\x81" + word + word);
  const auto equal = std::ranges::mismatch(one.ids, two.ids).in1 - one.ids.begin();
  EXPECT_GT(equal, std::ssize(one.ids) - 4);
}

TEST(TokenizerTest, InvalidUtf8BecomesReplacementCharactersAndIsCounted) {
  const auto tokenizer = bundled();
  const Tokens bad = tokenizer->encode("Tom \xff\xc3 bit");
  EXPECT_EQ(bad.invalid_bytes, 2);
  EXPECT_EQ(bad.ids, tokenizer->encode("Tom \xef\xbf\xbd\xef\xbf\xbd bit").ids);
  EXPECT_EQ(tokenizer->encode("Tom \xef\xbf\xbd bit").invalid_bytes, 0);
  EXPECT_EQ(tokenizer->encode(std::string_view("a\0b", 3)).invalid_bytes, 0);
}

TEST(Utf8Test, EveryCodePointIsValidButTheSurrogates) {
  for (uint32_t c = 0; c <= 0x110000; ++c) {
    std::string text;
    if (c < 0x80) {
      text = {static_cast<char>(c)};
    } else if (c < 0x800) {
      text = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text = {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
              static_cast<char>(0x80 | (c & 63))};
    } else {
      text = {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
              static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    const bool valid = !(c >= 0xd800 && c < 0xe000) && c < 0x110000;
    const ValidText result = to_valid_utf8(text);
    ASSERT_EQ(result.invalid_bytes, valid ? 0 : static_cast<int64_t>(text.size())) << c;
    ASSERT_EQ(result.text == text, valid) << c;
  }
}

TEST(Utf8Test, OverlongAndCutOffFormsAreInvalid) {
  for (const std::string text : {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xf0\x80\x80\x80",
                                 "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x99", "\x80"})
    EXPECT_EQ(to_valid_utf8(text).invalid_bytes, static_cast<int64_t>(text.size()));
  EXPECT_EQ(to_valid_utf8("\xe2\x82z").text, "\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST(TokenizerTest, FilesThatAreNoTokenizersPrintNothing) {
  std::ifstream file(bundled_model("none") / "tokenizer.model", std::ios::binary);
  std::string cut_off(100000, '\0');
  file.read(cut_off.data(), static_cast<std::streamsize>(cut_off.size()));
  const json phasor = {{"tokenizer", {{"type", "sentencepiece"}, {"file", "t.model"}}}};
  testing::internal::CaptureStderr();
  for (const auto& [bytes, words] : std::vector<std::pair<std::string, Pieces>>{
           {"garbage", {"not a SentencePiece model"}},
           {"", {"not a SentencePiece model"}},
           {std::string(1000, '\xff'), {"not a SentencePiece model"}},
           {cut_off, {"not a SentencePiece model", "100000 bytes"}},
           {"<html>", {"HTML"}},
           {"version https://git-lfs", {"Git LFS"}}}) {
    expect_refused_as("", {{"config.json", phasor}, {"t.model", bytes}}, {"t.model"});
    expect_refused_as("", {{"config.json", phasor}, {"t.model", bytes}}, words);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  expect_refused_as("", {{"config.json", phasor}}, {"t.model", "no such file"});
}

TEST(TokenizerTest, FilesThatNoTokenizerIsMadeOf) {
  const auto named = [](const char* name) { return json{{"tokenizer_class", name}}; };
  const json unigram = {{"model", {{"type", "Unigram"}, {"vocab", json::array()}}}};
  for (const auto& [files, words] : std::vector<std::pair<json, Pieces>>{
           {json::object(), {"no tokenizer files", "vocab.txt", "SentencePiece"}},
           {{{"vocab.json", "{}"}, {"merges.txt", ""}}, {"byte-level BPE", "--ids"}},
           {{{"tokenizer_config.json", named("RobertaTokenizer")},
             {"vocab.json", json::object()},
             {"merges.txt", ""}},
            {"byte-level BPE", "--ids"}},
           {{{"tokenizer.json", {{"model", {{"type", "BPE"}}}}}}, {"BPE", "--ids"}},
           {{{"tokenizer_config.json", named("XLMRobertaTokenizer")}, {"tokenizer.json", unigram}},
            {"Unigram", "tokenizer.json", "Metaspace"}},
           {{{"tokenizer_config.json", named("TokenizersBackend")}, {"tokenizer.json", unigram}},
            {"Unigram", "tokenizer.json", "Metaspace"}},
           {{{"tokenizer_config.json", named("T5Tokenizer")}},
            {"spiece.model", "no such file", "T5Tokenizer"}},
           {{{"tokenizer_config.json", named("LlamaTokenizer")}},
            {"\"LlamaTokenizer\"", "MarianTokenizer", "BertTokenizer", "--ids"}}})
    expect_no_tokenizer(files, words);
  for (const json& model : {json(), json(7), json::object(), json{{"type", 3}}, json::array()})
    expect_no_tokenizer({{"tokenizer.json", {{"model", model}}}}, {"unknown kind"});
  EXPECT_REFUSED(Tokenizer::load("/nowhere"), {"/nowhere", "cannot be read"});
}

TEST(TokenizerTest, ConfigurationsThatDoNotFitTheModel) {
  const json good = {{"type", "sentencepiece"}, {"file", "t.model"}, {"prefix", {"[CLS]"}}};
  EXPECT_NO_THROW(load_as("t.model", {{"config.json", {{"tokenizer", good}}}}));
  for (const auto& [pointer, value, words] :
       std::vector<Refusal>{{"/type", "bpe", {"type", "\"bpe\""}},
                            {"/prefix", "[CLS]", {"prefix", "\"[CLS]\"", "list"}},
                            {"/prefix", {"[BEGIN]"}, {"[BEGIN]", "8192"}},
                            {"/mask", "<mask>", {"<mask>"}},
                            {"/unk", "[UNK]", {"[UNK]"}},
                            {"/file", "../t.model", {"file", "../t.model"}}})
    expect_refused_as("t.model", {{"config.json", {{"tokenizer", with(good, pointer, value)}}}},
                      words);
}

TEST(TokenizerTest, VocabulariesWithImpossibleIds) {
  const auto refuse_ids = [](const json& vocabulary, const Pieces& words) {
    expect_refused_as("source.spm", {{"vocab.json", vocabulary}}, words);
  };
  refuse_ids({{"</s>", -1}}, {"vocab.json", "</s>", "-1"});
  refuse_ids({{"</s>", 4000000000}}, {"4000000000"});
  refuse_ids({{"</s>", "0"}}, {"\"0\""});
  refuse_ids({{"</s>", 0}}, {"<unk>", "vocabulary"});
  refuse_ids({{"</s>", {{"id", 0}}}}, {"vocab.json", "</s>", "{}"});
  refuse_ids({{"</s>", 0.5}}, {"vocab.json", "</s>", "0.5"});
  refuse_ids({{"</s>", nullptr}}, {"vocab.json", "</s>", "null"});
  refuse_ids({{"</s>", json::array()}}, {"vocab.json", "</s>", "[]"});
  refuse_ids(json::array({1}), {"vocab.json", "[]", "object"});
  refuse_ids(7, {"vocab.json", "7", "object"});
  refuse_ids("{\"</s>\": 0", {"vocab.json", "not valid JSON", "byte"});
  refuse_ids("version https://git-lfs", {"vocab.json", "Git LFS"});
}

TEST(TokenizerTest, TwoPiecesMayHaveOneId) {
  const json vocabulary = {{"</s>", 0}, {"<unk>", 1}, {"<pad>", 2}, {"▁Tom", 3}, {"▁bit", 3}};
  const auto tokenizer = load_as("source.spm", {{"vocab.json", vocabulary}});
  EXPECT_EQ(tokenizer->encode("Tom bit").ids, (Ids{3, 3, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 4);
}

}  // namespace
}  // namespace phasor
