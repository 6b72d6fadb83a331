// Every class of tokenizers on small models of the project's own: ids and pieces as
// fixtures/make_tokenizers.py finds them, and how a folder's files say which class it is.
#include <cctype>

#include "tests/support/tokenizer_folder.h"

namespace phasor {
namespace {

/// A folder's files: JSON or text as it is, and SentencePiece models by the fixture's name.
struct Files {
  json files = json::object();
  json models = json::object();
  std::string language = {};
};

std::shared_ptr<const Tokenizer> load_files(const Files& wanted) {
  const TinyModel folder("", wanted.files);
  for (const auto& [name, model] : wanted.models.items())
    fs::copy_file(fixture(model), folder / name);
  return Tokenizer::load(folder.path(), {.language = wanted.language});
}

void refuse(const Files& files, const Pieces& words) { EXPECT_REFUSED(load_files(files), words); }

json rows() { return json::parse(std::ifstream(fixture("tokenizers.json"))); }

json row_of(const std::string& name) {
  for (const json& row : rows())
    if (row["name"] == name) return row;
  throw std::runtime_error("no fixture " + name);
}

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const json& row : rows()) names.push_back(row["name"]);
  return names;
}

class TokenizerRowTest : public testing::TestWithParam<std::string> {
 protected:
  const json row = row_of(GetParam());
  const std::shared_ptr<const Tokenizer> tokenizer =
      load_files({row["files"], row["models"], row["language"]});
};

TEST_P(TokenizerRowTest, MatchesItsReference) {
  EXPECT_EQ(tokenizer->vocab_size(), row["vocab_size"]);
  EXPECT_EQ(tokenizer->mask_id().value_or(-1),
            row["mask_id"].is_null() ? json(-1) : row["mask_id"]);
  EXPECT_EQ(tokenizer->notes(), Pieces{});
  ASSERT_GE(row["items"].size(), 15u);
  for (const json& item : row["items"]) {
    const auto text = item["text"].get<std::string>();
    const Tokens tokens = tokenizer->encode(text);
    EXPECT_EQ(tokens.ids, item["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokens.pieces, item["pieces"].get<Pieces>()) << text;
    const Tokens ids = tokenizer->encode(text, {.ids_only = true, .max_tokens = 5});
    EXPECT_EQ(ids.ids, tokenizer->encode(text, {.max_tokens = 5}).ids) << text;
    EXPECT_TRUE(ids.pieces.empty());
  }
}

TEST_P(TokenizerRowTest, ItsMaskCanBeFilled) {
  if (row["mask_id"].is_null()) return;
  const int32_t mask = tokenizer->mask_id().value();
  const std::string text = "tom " + tokenizer->piece(mask) + " dog";
  const Ids plain = tokenizer->encode(text).ids;
  const Ids special = tokenizer->encode(text, {.parse_special = true}).ids;
  EXPECT_EQ(std::ranges::count(plain, mask), 0);
  EXPECT_EQ(std::ranges::count(special, mask), 1);
  // What stands on either side is cut as it is alone.
  const Ids before = tokenizer->encode("tom").ids, alone = tokenizer->encode("dog").ids;
  const Ids after(std::ranges::find(special, mask) + 1, special.end());
  EXPECT_TRUE(std::equal(after.rbegin(), after.rend(), alone.rbegin()));
  EXPECT_EQ(special.size(), before.size() + 1 + alone.size() - tokenizer->encode("").ids.size());
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TokenizerRowTest, testing::ValuesIn(row_names()), test_name);

/// The row of this name, with files of `patch` more or instead; null takes one away.
Files files_of(const std::string& name, const json& patch = json::object()) {
  const json row = row_of(name);
  Files files{row["files"], row["models"], ""};
  for (const auto& [file, content] : patch.items()) {
    files.files[file] = content;
    if (content.is_null()) files.files.erase(file);
  }
  return files;
}

TEST(TokenizerFamiliesTest, PairsWhereTheClassHasThem) {
  const auto pieces = [](const std::string& row) {
    return load_files(files_of(row))->encode_pair("x", "x").pieces;
  };
  EXPECT_EQ(pieces("XLM-R"), (Pieces{"<s>", "▁", "x", "</s>", "</s>", "▁", "x", "</s>"}));
  EXPECT_EQ(pieces("ALBERT"), (Pieces{"[CLS]", "▁", "x", "[SEP]", "▁", "x", "[SEP]"}));
  EXPECT_EQ(pieces("T5"), (Pieces{"▁", "x", "</s>", "▁", "x", "</s>"}));
  EXPECT_EQ(load_files(files_of("ALBERT"))->encode_pair("x", "x").token_types,
            (Ids{0, 0, 0, 0, 1, 1, 1}));
  EXPECT_TRUE(load_files(files_of("XLM-R"))->encode_pair("x", "").token_types.empty());
  EXPECT_INVALID(pieces("NLLB"), {"pair"});
}

TEST(TokenizerFamiliesTest, TokensOfTheirTrainingHaveTheirPlaces) {
  const auto t5 = load_files(files_of("T5")), pegasus = load_files(files_of("Pegasus"));
  const auto end = static_cast<int32_t>(t5->vocab_size());  // counted down to the vocabulary
  EXPECT_EQ(t5->piece(end - 1), "<extra_id_0>");
  EXPECT_EQ(t5->piece(end - 100), "<extra_id_99>");
  EXPECT_EQ(parsed(*t5, "a <extra_id_7>"), (Pieces{"▁a", "<extra_id_7>", "</s>"}));
  EXPECT_EQ(pegasus->piece(2), "<mask_1>");
  EXPECT_EQ(pegasus->piece(4), "<unk_2>");
  EXPECT_EQ(pegasus->piece(104), "<unk_102>");
  EXPECT_EQ(pegasus->piece(105), "<unk>");
}

TEST(TokenizerFamiliesTest, TheLanguageAskedForGoesBeforeThatOfTheFiles) {
  Files files = files_of("mBART src_lang");
  EXPECT_EQ(load_files(files)->encode("Tom").pieces.back(), "ro_RO");
  files.language = "fr_XX";
  EXPECT_EQ(load_files(files)->encode("Tom").pieces.back(), "fr_XX");
  files = files_of("M2M100");
  EXPECT_EQ(load_files(files)->encode("Tom").pieces.front(), "__zu__");
  for (const char* const written : {"fr", "__fr__"}) {
    files.language = written;
    EXPECT_EQ(load_files(files)->encode("Tom").pieces.front(), "__fr__");
  }
  files = files_of("Marian");
  EXPECT_EQ(load_files(files)->encode("Tom").pieces, (Pieces{"<unk>", "</s>"}));
  files.language = ">>fra<<";
  EXPECT_EQ(load_files(files)->encode("Tom").pieces.front(), ">>fra<<");
  // Without one M2M100's is English, and Marian's that of the text, if it is one of the vocabulary.
  files = files_of("M2M100", {{"tokenizer_config.json", {{"tokenizer_class", "M2M100Tokenizer"}}}});
  EXPECT_EQ(load_files(files)->encode("Tom").pieces.front(), "__en__");
  const auto marian = load_files(files_of("Marian"));
  EXPECT_EQ(marian->encode(">>fra<<Tom").ids, marian->encode(">>fra<< Tom").ids);
  EXPECT_EQ(marian->encode(">>xyz<< Tom").pieces.front(), "<unk>");
  EXPECT_NE(marian->encode("Tom >>fra<<").pieces.front(), ">>fra<<");
}

TEST(TokenizerFamiliesTest, APieceUnknownToSentencePieceMayBeInVocabJson) {
  for (const std::string row : {"Marian", "M2M100"}) {
    const Tokens before = load_files(files_of(row))->encode("日本語 日 naïve");
    json vocabulary = files_of(row).files["vocab.json"];
    const auto id = static_cast<int32_t>(vocabulary.size());
    vocabulary["日本語"] = id;
    vocabulary["▁日"] = id + 1;  // SentencePiece knows the space, which is a piece by itself
    const auto tokenizer = load_files(files_of(row, {{"vocab.json", vocabulary}}));
    const Tokens after = tokenizer->encode("日本語 日 naïve");
    EXPECT_EQ(tokenizer->text_vocab_size(), id + 2) << row;
    // Unknown characters in a row make one piece.
    const auto found = std::find(after.ids.begin(), after.ids.end(), id) - after.ids.begin();
    ASSERT_LT(found, std::ssize(after.ids)) << row;
    EXPECT_EQ(after.pieces[found], "日本語") << row;
    EXPECT_EQ(before.pieces.at(found), "<unk>") << row;
    EXPECT_EQ(std::count(after.ids.begin(), after.ids.end(), id + 1), 0) << row;
    EXPECT_EQ(after.ids.size(), before.ids.size()) << row;
    EXPECT_EQ(std::count(after.pieces.begin(), after.pieces.end(), "<unk>") + 1,
              std::count(before.pieces.begin(), before.pieces.end(), "<unk>"))
        << row;
  }
}

TEST(TokenizerFamiliesTest, AnUnknownPieceIsNoSpecialTokenOfVocabJson) {
  const TempFolder folder;
  folder.write("source.spm", sentencepiece_bytes({{"a"}}));
  folder.write("vocab.json", R"({"</s>": 0, "<unk>": 1, "<pad>": 2, "▁": 3, "a": 4, "<b>": 5})");
  const auto tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer->encode("<b>").ids, (Ids{3, 5, 0}));
  EXPECT_EQ(tokenizer->encode("</s>").ids, (Ids{3, 1, 0}));
  EXPECT_EQ(tokenizer->encode("<pad>").ids, (Ids{3, 1, 4, 1, 0}));
  EXPECT_EQ(tokenizer->encode("</s>", {.parse_special = true}).ids, (Ids{0, 0}));
}

TEST(TokenizerFamiliesTest, LettersThatOpusMtKnowsInVocabJsonAlone) {
  PHASOR_SHARED_OR_SKIP(folder, "tokenizers/opus-mt-uk-en");
  const auto tokenizer = Tokenizer::load(folder);
  for (const auto& [text, piece, id] : std::vector<std::tuple<const char*, const char*, int32_t>>{
           {"Ī", "Ī", 61428}, {"Ṣ", "Ṣ", 61454}, {"ď", "ď", 61152}, {"Ǆ", "Ž", 61111}}) {
    const Tokens tokens = tokenizer->encode(text);
    EXPECT_EQ(tokens.ids.at(tokens.ids.size() - 2), id) << text;
    EXPECT_EQ(tokens.pieces.at(tokens.ids.size() - 2), piece) << text;
    EXPECT_EQ(tokenizer->piece(id), piece);
  }
  EXPECT_EQ(tokenizer->encode("ĪĪ").pieces, (Pieces{"▁", "<unk>", "</s>"}));
}

TEST(TokenizerFamiliesTest, ALanguageThatIsNotThereIsRefusedWithSomethingLikeIt) {
  const auto expect_refused = [](const std::string& row, const std::string& language,
                                 const std::vector<std::string>& words) {
    Files files = files_of(row);
    files.language = language;
    EXPECT_INVALID(load_files(files), words);
  };
  expect_refused("NLLB", "fr", {"'fr'", "fra_Latn", "202 in all"});
  expect_refused("M2M100", "fra_Latn", {"'fra_Latn'", "fr, ", "100 in all"});
  expect_refused("mBART", "en", {"'en'", "en_XX"});
  expect_refused("Marian", "fr", {"'fr'", "deu, fra"});
  expect_refused("XLM-R", "fr", {"XLM-R", "no languages", "'fr'"});
  expect_refused("BERT uncased", "en", {"no languages", "'en'"});
  // In the files it is their fault.
  const json config = {{"tokenizer_class", "NllbTokenizer"}, {"src_lang", "en"}};
  refuse(files_of("NLLB", {{"tokenizer_config.json", config}}),
         {"tokenizer_config.json", "src_lang", "\"en\"", "eng_Latn"});
}

TEST(TokenizerFamiliesTest, OptionsThatWouldChangeTheIdsAreRefused) {
  const auto refuse_option = [](const std::string& row, json config, const std::string& key) {
    config["tokenizer_class"] = files_of(row).files["tokenizer_config.json"]["tokenizer_class"];
    refuse(files_of(row, {{"tokenizer_config.json", config}}), {"tokenizer_config.json", key});
  };
  refuse_option("Pegasus", {{"offset", 0}}, "offset");
  refuse_option("M2M100", {{"language_codes", "wmt21"}}, "language_codes");
  refuse_option("T5", {{"extra_ids", -1}}, "extra_ids");
  refuse_option("ALBERT", {{"do_lower_case", "yes"}}, "do_lower_case");
  for (const char* const key : {"do_lower_case", "split_by_punct"}) {
    const json config = {{"tokenizer_class", "DebertaV2Tokenizer"}, {key, true}};
    refuse({{{"tokenizer_config.json", config}, {"spm.model", ""}}, json::object(), ""},
           {"tokenizer_config.json", key});
  }
}

TEST(TokenizerFamiliesTest, TheModelTypeDecidesWhereTheTokenizersFilesDoNot) {
  const auto kind = [](const std::string& row, const std::string& model_type) {
    const Files files = files_of(
        row, {{"tokenizer_config.json", nullptr}, {"config.json", {{"model_type", model_type}}}});
    return load_files(files)->description();
  };
  EXPECT_TRUE(kind("T5", "t5").starts_with("T5 "));
  EXPECT_TRUE(kind("Pegasus", "pegasus").starts_with("Pegasus "));
  EXPECT_TRUE(kind("ALBERT", "albert").starts_with("ALBERT "));
  EXPECT_TRUE(kind("CamemBERT", "camembert").starts_with("CamemBERT "));
  EXPECT_TRUE(kind("mBART", "mbart").starts_with("mBART "));
  EXPECT_TRUE(kind("NLLB", "m2m_100").starts_with("NLLB "));
  EXPECT_TRUE(kind("M2M100", "m2m_100").starts_with("M2M100 "));
  EXPECT_REFUSED(kind("T5", "bert"), {"nothing that says", "tokenizer_class"});
}

TEST(TokenizerFamiliesTest, TheTokenizersOwnFilesGoBeforeTheModelTypeAndAnAssumptionIsSaid) {
  const json bert = {{"model_type", "bert"}};
  const auto own = load_files(files_of("XLM-R", {{"config.json", bert}}));
  EXPECT_TRUE(own->description().starts_with("XLM-R "));
  const json named = {{"model_type", "mbart"}, {"tokenizer_class", "MBart50Tokenizer"}};
  const auto of_class =
      load_files(files_of("mBART", {{"config.json", named}, {"tokenizer_config.json", nullptr}}));
  EXPECT_TRUE(of_class->description().starts_with("mBART-50 "));
  const auto assumed =
      load_files(files_of("XLM-R", {{"tokenizer_config.json", nullptr}, {"config.json", bert}}));
  EXPECT_EQ(assumed->description(), "XLM-R (SentencePiece, sentencepiece.bpe.model)");
  expect_one_note(assumed->notes(), {"XLM-R's is assumed"});
  EXPECT_EQ(assumed->encode("Tom").ids, own->encode("Tom").ids);
}

TEST(TokenizerFamiliesTest, TokensThatFilesAddAreCheckedAgainstTheVocabulary) {
  const auto notes_with = [](const json& decoder) {
    const json config = {{"tokenizer_class", "XLMRobertaTokenizer"},
                         {"added_tokens_decoder", decoder}};
    return load_files(files_of("XLM-R", {{"tokenizer_config.json", config}}))->notes();
  };
  const json known = {{"0", {{"content", "<s>"}}},
                      {"108", {{"content", "<mask>"}, {"lstrip", true}}}};
  EXPECT_EQ(notes_with(known), Pieces{});
  json more = known;
  more["109"] = {{"content", "<answer>"}};
  more["2"] = {{"content", "<s>"}};
  expect_one_note(notes_with(more), {"'<s>' (2)"});
  EXPECT_FALSE(mentions(notes_with(more), "<answer>"));
  EXPECT_REFUSED(notes_with({{"one", {{"content", "a"}}}}), {"\"one\""});
}

/// A model with `rows` rows in its embedding and a tokenizer of T5's class.
std::shared_ptr<const Model> model_with_vocabulary(int64_t rows) {
  const json t5 = {{"tokenizer_class", "T5Tokenizer"}};
  const TinyModel folder("", {{"tokenizer_config.json", t5}});
  json config = small_config_json();
  config["vocab_size"] = rows;
  std::vector<TestTensor> tensors = small_tensors();
  tensors.at(0) = {"token_embedding.weight", {rows, 4}};
  write_checkpoint(folder, config, tensors);
  fs::copy_file(fixture("t5.model"), folder / "spiece.model");
  return folder.load();
}

TEST(TokenizerFamiliesTest, ATokenizerWithMoreTextIdsThanTheEmbeddingHasRowsIsAnotherModels) {
  const auto tokenizer = load_files(files_of("T5"));
  const int64_t text_ids = tokenizer->text_vocab_size();
  EXPECT_EQ(text_ids, tokenizer->vocab_size() - 100);
  EXPECT_EQ(model_with_vocabulary(text_ids + 100)->notes(), Pieces{});
  // Without rows for the extra ids, texts are still read.
  const auto without_extra_ids = model_with_vocabulary(text_ids);
  EXPECT_EQ(without_extra_ids->tokenizer().encode("Tom").pieces, (Pieces{"▁Tom", "</s>"}));
  expect_one_note(without_extra_ids->notes(), {"'<extra_id_99>'"});
  const auto of_another = model_with_vocabulary(text_ids - 1);
  EXPECT_FALSE(of_another->has_tokenizer());
  EXPECT_REFUSED(of_another->tokenizer(), {"T5", std::to_string(text_ids) + " ids", "rows",
                                           "different models", "token ids"});
}

}  // namespace
}  // namespace phasor
