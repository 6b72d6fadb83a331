// tokenizer.json: its components, one by one, for every kind of model, and what is refused.
#include "tests/support/run_program.h"
#include "tests/support/tokenizer_folder.h"

namespace phasor {
namespace {

std::shared_ptr<const Tokenizer> load_json(const json& root, const json& config = json::object()) {
  json files = {{"tokenizer.json", root}};
  if (!config.empty()) files["tokenizer_config.json"] = config;
  return tokenizer_of(files);
}

/// Without the special tokens of the template.
Pieces pieces_of(const json& root, std::string_view text, bool special = false) {
  return phasor::pieces_of(*load_json(root), text, special);
}

void refuse(const json& root, const std::vector<std::string>& words) {
  EXPECT_REFUSED(load_json(root), words);
}

/// Of what phasor does not follow.
void expect_refused(const json& root, const std::vector<std::string>& words) {
  refuse(root, words);
  expect_code(ErrorCode::kUnsupported, "", [&] { load_json(root); });
}

json added(const std::string& piece, int32_t id, const json& patch = json::object()) {
  json token = {{"id", id},        {"content", piece}, {"special", false},   {"single_word", false},
                {"lstrip", false}, {"rstrip", false},  {"normalized", false}};
  token.update(patch);
  return token;
}

json text_item(const std::string& id, int type = 0) {
  return {{"Sequence", {{"id", id}, {"type_id", type}}}};
}

json special_item(const std::string& id, int type = 0) {
  return {{"SpecialToken", {{"id", id}, {"type_id", type}}}};
}

/// [CLS] a [SEP] and [CLS] a [SEP] b [SEP], where the ids are 0 and 1.
json cls_template() {
  const auto special = [](const char* piece, int id) {
    return json{{"id", piece}, {"ids", {id}}, {"tokens", {piece}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", {special_item("[CLS]"), text_item("A"), special_item("[SEP]")}},
          {"pair",
           {special_item("[CLS]"), text_item("A"), special_item("[SEP]"), text_item("B", 1),
            special_item("[SEP]", 1)}},
          {"special_tokens", {{"[CLS]", special("[CLS]", 0)}, {"[SEP]", special("[SEP]", 1)}}}};
}

/// Byte-level BPE of "[CLS]", "[SEP]", "[MASK]", the letters a to h, the space, and "ab", "abc".
json bpe_json(const json& patch = json::object()) {
  json vocab = {{"[CLS]", 0}, {"[SEP]", 1}, {"[MASK]", 2}, {"Ġ", 3}, {"ab", 20}, {"abc", 21}};
  for (char c = 'a'; c <= 'h'; ++c) vocab[std::string(1, c)] = 4 + c - 'a';
  json root = {
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", cls_template()},
      {"added_tokens",
       {added("[CLS]", 0, {{"special", true}}), added("[SEP]", 1, {{"special", true}}),
        added("[MASK]", 2, {{"special", true}, {"lstrip", true}})}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocab},
        {"merges", json::parse(R"([["a", "b"], ["ab", "c"]])")}}}};
  root.merge_patch(patch);
  return root;
}

json unigram_json(const json& patch = json::object()) {
  const json vocab = json::parse(R"([["[CLS]", 0], ["[SEP]", 0], ["<unk>", 0], ["▁", -2], ["a", -3],
                                     ["▁b", -1], ["▁a▁b", -1]])");
  json root = {{"pre_tokenizer",
                {{"type", "Sequence"},
                 {"pretokenizers", {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}}}}}},
               {"post_processor", cls_template()},
               {"added_tokens",
                {added("[CLS]", 0, {{"special", true}}), added("[SEP]", 1, {{"special", true}}),
                 added("<mask>", 7, {{"special", true}, {"lstrip", true}})}},
               {"model", {{"type", "Unigram"}, {"unk_id", 2}, {"vocab", vocab}}}};
  root.merge_patch(patch);
  return root;
}

json wordpiece_json() {
  return {{"normalizer", {{"type", "BertNormalizer"}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor",
           {{"type", "RobertaProcessing"}, {"cls", {"<s>", 0}}, {"sep", {"</s>", 1}}}},
          {"added_tokens", {added("<mask>", 5, {{"special", true}}), added("qq", 6)}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"vocab", {{"<s>", 0}, {"</s>", 1}, {"[UNK]", 2}, {"a", 3}, {"##b", 4}}}}}};
}

json with_added(const json& token, const json& patch = json::object()) {
  json root = bpe_json(patch);
  root["added_tokens"].push_back(token);
  return root;
}

TEST(TokenizerJsonTest, BpeHasItsTemplateAndItsConfigSaysWhetherASpaceIsPutBeforeTheText) {
  const auto tokenizer = load_json(bpe_json());
  EXPECT_EQ(tokenizer->encode("abc ab").ids, (Ids{0, 21, 3, 20, 1}));
  EXPECT_EQ(tokenizer->mask_id(), 2);
  EXPECT_EQ(tokenizer->description(), "Byte-level BPE (tokenizer.json)");
  const Tokens pair = tokenizer->encode_pair("abc", "a");
  EXPECT_EQ(pair.ids, (Ids{0, 21, 1, 4, 1}));
  EXPECT_EQ(pair.token_types, (Ids{0, 0, 0, 1, 1}));
  EXPECT_EQ(tokenizer->encode_pair("", "").ids, (Ids{0, 1, 1}));
  json root = bpe_json();
  EXPECT_EQ(load_json(root, {{"add_prefix_space", true}})->encode("a").ids, (Ids{0, 3, 4, 1}));
  root["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(load_json(root)->encode("a").ids, (Ids{0, 3, 4, 1}));
  EXPECT_EQ(load_json(root, {{"add_prefix_space", false}})->encode("a").ids, (Ids{0, 4, 1}));
}

// As Python writes them where a number is missing.
TEST(TokenizerJsonTest, ANumberThatJsonDoesNotHaveIsNamedWhereItDecidesAndReadWhereItDoesNot) {
  for (json root : {bpe_json(), unigram_json(), wordpiece_json()}) {
    root["truncation"] = {{"max_length", 5}};
    const auto ids = load_json(root)->encode("a ab", {.parse_special = true}).ids;
    for (const std::string literal : {"NaN", "-Infinity"}) {
      const auto read = [&](const std::string& text) {
        EXPECT_EQ(tokenizer_of({{"tokenizer.json", text}})->encode("a ab").ids, ids);
      };
      EXPECT_GT(expect_literals_named(root, "tokenizer.json: ", literal, read), 10);
    }
  }
  const json files = {{"merges.txt", "a b\n"},
                      {"tokenizer_config.json", {{"tokenizer_class", "RobertaTokenizer"}}},
                      {"vocab.json", "{\"a\": 0,\n\"b\": -Infinity}"}};
  expect_no_tokenizer(files, {"vocab.json: \"b\" is -Infinity (line 2); it must be"});
}

TEST(TokenizerJsonTest, MergesAreTextsOrListsAndMayBeIgnoredForAWholeWord) {
  EXPECT_EQ(pieces_of(bpe_json({{"model", {{"merges", {"a b", "ab c"}}}}}), "abc"),
            (Pieces{"abc"}));
  for (const auto& [merges, words] :
       std::vector<std::pair<json, Pieces>>{{{"a b", "abc"}, {"merge 2", "\"abc\""}},
                                            {json::array(), {"tokenizer.json", "no merge", "BPE"}},
                                            {{"c d"}, {"merge 1", "not in the vocabulary"}}})
    refuse(bpe_json({{"model", {{"merges", merges}}}}), words);
  json root = bpe_json({{"model", {{"merges", json::parse(R"([["a", "b"]])")}}}});
  EXPECT_EQ(pieces_of(root, "abc"), (Pieces{"ab", "c"}));
  root["model"]["ignore_merges"] = true;
  EXPECT_EQ(pieces_of(root, "abc"), (Pieces{"abc"}));
}

TEST(TokenizerJsonTest, AddedTokensHaveRulesAndMayNotContradictTheVocabulary) {
  const auto body = [](const json& token, std::string_view text,
                       const json& patch = json::object()) {
    return pieces_of(with_added(token, patch), text);
  };
  EXPECT_EQ(body(added("bc", 22), "abc"), (Pieces{"a", "bc"}));
  EXPECT_EQ(body(added("h", 11), "ah"), (Pieces{"a", "h"}));  // as in the vocabulary
  EXPECT_EQ(body(added("  ", 22), "a     b"), (Pieces{"a", "  ", "  ", "Ġ", "b"}));
  EXPECT_EQ(body(added("d", 7, {{"lstrip", true}, {"rstrip", true}}), "a \u3000d\t b"),
            (Pieces{"a", "d", "b"}));
  EXPECT_EQ(body(added("ab", 20, {{"single_word", true}}), "ab abé fab"),
            (Pieces{"ab", "Ġ", "ab", "Ġ", "f", "ab"}));
  const json lower = {{"normalizer", {{"type", "Lowercase"}}}};
  EXPECT_EQ(body(added("BC", 22, {{"normalized", true}}), "aBc", lower), (Pieces{"a", "BC"}));
  EXPECT_EQ(body(added("BC", 22), "aBc", lower), (Pieces{"abc"}));
  EXPECT_EQ(body(added("BC", 22), "aBC", lower), (Pieces{"a", "BC"}));
  EXPECT_EQ(pieces_of(bpe_json(), "a [MASK] b", true), (Pieces{"a", "[MASK]", "Ġ", "b"}));
  EXPECT_EQ(load_json(with_added(added("bc", 22)))->text_vocab_size(), 22);
  json root = bpe_json({{"normalizer", {{"type", "Lowercase"}}}});
  for (const auto& [piece, id] : {std::pair("GH", 23), {"Gh", 22}, {"gH", 24}})
    root["added_tokens"].push_back(added(piece, id, {{"normalized", true}}));
  EXPECT_EQ(pieces_of(root, "gh"), (Pieces{"GH"}));
  for (const json& token : {added("ab", 22), added("zz", 20), added("", 22)})
    refuse(with_added(token), {"added token", "tokenizer.json"});
  refuse(with_added(added("far", 1 << 21)), {"far", "2097152"});
  refuse(with_added(added(std::string(1025, 'x'), 22)), {"1025 bytes"});
}

TEST(TokenizerJsonTest, RepeatedAddedTokensTakeNoTime) {
  json root = bpe_json();
  for (int i = 0; i < 50'000; ++i) root["added_tokens"].push_back(added("ga", 22));
  const auto tokenizer = load_json(root);
  const std::string text = repeat("gb", 200'000);
  // Far more where each copy is tried.
  expect_cpu_seconds_below(5, [&] { EXPECT_EQ(tokenizer->encode(text).ids.size(), 400'002u); });
}

TEST(TokenizerJsonTest, SpellingsThatTheNormalizerMakesLongAreRefused) {
  const json grow = {
      {"type", "Replace"}, {"pattern", {{"String", "x"}}}, {"content", std::string(16, 'a')}};
  const json root =
      with_added(added(std::string(65, 'x'), 22, {{"normalized", true}}), {{"normalizer", grow}});
  refuse(root, {"tokenizer.json", "1040 bytes"});
  const json pattern = {{"String", std::string(65, 'a')}};
  refuse(with(bpe_json({{"normalizer", grow}}), "/normalizer/pattern", pattern),
         {"normalizer", "65", "64"});
  json many = bpe_json({{"normalizer", grow}});
  for (int i = 0; i < 20'000; ++i) {
    const std::string piece = std::string(56, 'x') + std::to_string(10'000'000 + i);
    many["added_tokens"].push_back(added(piece, 22 + i, {{"normalized", true}}));
  }
  refuse(many, {"tokenizer.json", "16777216 bytes in all"});
}

TEST(TokenizerJsonTest, OtherPostProcessors) {
  const auto with = [](const char* type) {
    return bpe_json(
        {{"post_processor",
          {{"type", type}, {"single", nullptr}, {"cls", {"[CLS]", 0}}, {"sep", {"[SEP]", 1}}}}});
  };
  EXPECT_EQ(load_json(with("BertProcessing"))->encode_pair("a", "b").token_types,
            (Ids{0, 0, 0, 1, 1}));
  EXPECT_EQ(load_json(with("RobertaProcessing"))->encode_pair("a", "b").ids,
            (Ids{0, 4, 1, 1, 5, 1}));
  json root = bpe_json({{"post_processor", nullptr}});
  EXPECT_EQ(load_json(root)->encode("a").ids, (Ids{4}));
  EXPECT_INVALID(load_json(root)->encode_pair("a", "b"), {"pair"});
  root["post_processor"] = {{"type", "Sequence"},
                            {"processors", {{{"type", "ByteLevel"}}, cls_template()}}};
  EXPECT_EQ(load_json(root)->encode("a").ids, (Ids{0, 4, 1}));
}

TEST(TokenizerJsonTest, ATemplateOfAnotherVocabularyIsRefused) {
  json root = bpe_json();
  root["post_processor"]["special_tokens"].erase("[SEP]");
  refuse(root, {"special_tokens", "[SEP]"});
  refuse(with(bpe_json(), "/post_processor/special_tokens/[SEP]/ids", {2}),
         {"post_processor", "[SEP]", "2"});
  for (const char* const id : {"AB", "", "C"}) {
    refuse(
        with(bpe_json(), "/post_processor/pair", {text_item("A"), text_item(id), text_item("B")}),
        {"pair 1", "Sequence", json(id).dump()});
  }
}

TEST(TokenizerJsonTest, ComponentsThatAreNotFollowedAreNamed) {
  const auto sequence = [](const json& first, const json& second) {
    return json{{"type", "Sequence"}, {"pretokenizers", {first, second}}};
  };
  const auto split = [](const char* regex, const char* behavior) {
    return json{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", behavior}};
  };
  const json replace = {{"type", "Replace"}, {"pattern", {{"Regex", "[ab]+"}}}, {"content", "a"}};
  const json bytes = {{"type", "ByteLevel"}}, space = {{"type", "Metaspace"}};
  const json a = text_item("A"), b = text_item("B");
  for (const auto& [pointer, value, words] : std::vector<Refusal>{
           {"/normalizer", {{"type", "Nmt"}}, {"normalizer", "\"Nmt\"", "NFC", "--ids"}},
           {"/normalizer", {{"type", "BertNormalizer"}}, {"normalizer", "BertNormalizer"}},
           {"/normalizer", replace, {"normalizer", "pattern", "[ab]+"}},
           {"/pre_tokenizer/type", "Whitespace", {"pre_tokenizer", "\"Whitespace\""}},
           {"/pre_tokenizer/type", "WhitespaceSplit", {"pre_tokenizer", "ByteLevel"}},
           {"/pre_tokenizer", sequence(bytes, space), {"pre_tokenizer", "Metaspace alone"}},
           {"/pre_tokenizer", sequence(bytes, bytes), {"only one ByteLevel"}},
           {"/pre_tokenizer", split("\\b.", "Isolated"), {"pre_tokenizer", "but not \\b"}},
           {"/pre_tokenizer", split("a", "Removed"), {"behavior", "Isolated"}},
           {"/post_processor", {{"type", "Other"}}, {"post_processor", "\"Other\""}},
           {"/post_processor/single", {a, a}, {"post_processor", "single"}},
           {"/post_processor/pair", {b, a}, {"post_processor", "pair", "AB"}},
           {"/model/byte_fallback", true, {"byte_fallback"}},
           {"/model/fuse_unk", true, {"fuse_unk"}},
           {"/model/dropout", 0.1, {"dropout"}},
           {"/model/end_of_word_suffix", "</w>", {"end_of_word_suffix"}},
           {"/model/type", "WordLevel", {"unknown kind"}}})
    expect_refused(with(bpe_json(), pointer, value), words);
  const json rule = {{"type", "Precompiled"}, {"precompiled_charsmap", ""}};
  for (const auto& [pointer, value, words] : std::vector<Refusal>{
           {"/pre_tokenizer", bytes, {"Metaspace"}},
           {"/pre_tokenizer", sequence(space, space), {"only one Metaspace"}},
           {"/pre_tokenizer", sequence(space, {{"type", "WhitespaceSplit"}}), {"only before"}},
           {"/normalizer",
            {{"type", "Sequence"}, {"normalizers", {rule, rule}}},
            {"only one Precompiled"}},
           {"/model/byte_fallback", true, {"byte_fallback"}},
           {"/model/unk_id", nullptr, {"unk_id"}}})
    expect_refused(with(unigram_json(), pointer, value), words);
  for (const auto& [pointer, value, words] :
       std::vector<Refusal>{{"/model/unk_id", 7, {"0 to 6"}},
                            {"/model/vocab", json::array(), {"vocab"}},
                            {"/model/vocab", {1, 2, 3}, {"entry 0"}},
                            {"/model/vocab/4/1", 1e300, {"score"}},
                            {"/model/vocab/4/0", std::string(2000, 'a'), {"2000 bytes"}}})
    refuse(with(unigram_json(), pointer, value), words);
  const json bert = {{"type", "BertNormalizer"}};
  expect_refused(
      with(wordpiece_json(), "/normalizer", {{"type", "Sequence"}, {"normalizers", {bert, bert}}}),
      {"only one BertNormalizer"});
}

TEST(TokenizerJsonTest, ANormalizerThatMakesTextsMuchLongerIsStopped) {
  const json grow = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(16, 'a')}};
  const json root = bpe_json(
      {{"normalizer", {{"type", "Sequence"}, {"normalizers", json::array({grow, grow, grow})}}}});
  const auto tokenizer = load_json(root);
  EXPECT_REFUSED(tokenizer->encode("aaaa"), {"tokenizer.json", "normalizer"});
  const auto once = load_json(bpe_json({{"normalizer", grow}}));
  EXPECT_GT(once->encode(std::string(1000, 'a')).ids.size(), 1000u);
  EXPECT_REFUSED(once->encode(std::string(200'000, 'a')), {"1848576 bytes", "200000"});
  json spaces = grow;  // each is three bytes where it becomes U+2581
  spaces["content"] = std::string(8, ' ');
  const auto longer = load_json(bpe_json({{"normalizer", spaces}}));
  EXPECT_REFUSED(longer->encode(std::string(1000, 'a')), {"tokenizer.json", "normalizer"});
}

TEST(TokenizerJsonTest, ValuesOfOtherTypesAreRefused) {
  for (const char* const key : {"normalizer", "pre_tokenizer", "post_processor", "added_tokens"}) {
    for (const json& value : {json(7), json("x"), json{{"type", 3}}, json::array({1})}) {
      json root = bpe_json();
      root[key] = value;
      refuse(root, {key});
    }
  }
  for (const char* const key : {"vocab", "merges", "unk_token", "ignore_merges"}) {
    json root = bpe_json();
    root["model"][key] = json::array({json::array({json::object()})});
    refuse(root, {"tokenizer.json"});
  }
}

TEST(TokenizerJsonTest, UnigramWithItsTemplate) {
  const auto tokenizer = load_json(unigram_json());
  EXPECT_EQ(tokenizer->encode(" a \t b\n").pieces, (Pieces{"[CLS]", "▁", "a", "▁b", "[SEP]"}));
  EXPECT_EQ(tokenizer->encode("z").ids, (Ids{0, 3, 2, 1}));
  EXPECT_EQ(tokenizer->encode("b <mask>b", {.parse_special = true}).ids, (Ids{0, 5, 7, 5, 1}));
  const Tokens pair = tokenizer->encode_pair("b", "a b");
  EXPECT_EQ(pair.ids, (Ids{0, 5, 1, 3, 4, 5, 1}));
  EXPECT_EQ(pair.token_types, (Ids{0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(tokenizer->encode_pair("b", "").ids, (Ids{0, 5, 1, 1}));
  EXPECT_EQ(tokenizer->mask_id(), 7);
  EXPECT_EQ(tokenizer->description(), "Unigram (SentencePiece, tokenizer.json)");
}

TEST(TokenizerJsonTest, UnigramKeepsSpacesThatNothingCollapsesAndFindsAddedTokensInNormalizedText) {
  const json plain = {{"pre_tokenizer", {{"type", "Metaspace"}, {"pretokenizers", nullptr}}}};
  EXPECT_EQ(pieces_of(unigram_json(plain), "b  b "), (Pieces{"▁b", "▁", "▁b", "▁"}));
  EXPECT_EQ(pieces_of(unigram_json(plain), " b"), (Pieces{"▁b"}));
  json first = unigram_json(plain);
  first["pre_tokenizer"]["prepend_scheme"] = "first";
  const auto tokenizer = load_json(first);
  EXPECT_EQ(tokenizer->encode("b<mask>a b", {.parse_special = true}).pieces,
            (Pieces{"[CLS]", "▁b", "<mask>", "a", "▁b", "[SEP]"}));
  json never = unigram_json(plain);
  never["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_EQ(pieces_of(never, "a"), (Pieces{"a"}));
  json whole = unigram_json(plain);
  whole["pre_tokenizer"]["split"] = false;
  EXPECT_EQ(pieces_of(whole, "a b"), (Pieces{"▁a▁b"}));
  json root =
      unigram_json({{"normalizer", {{"type", "Lowercase"}}},
                    {"pre_tokenizer", {{"type", "Metaspace"}, {"pretokenizers", nullptr}}}});
  root["added_tokens"].push_back(added("Foo", 8, {{"normalized", true}}));
  EXPECT_EQ(pieces_of(root, "afoo b"), (Pieces{"▁", "a", "Foo", "▁b"}));
  EXPECT_EQ(pieces_of(root, "a FOOb"), (Pieces{"▁", "a", "▁", "Foo", "▁b"}));
}

std::string base64(std::string_view bytes) {
  constexpr auto kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[bits >> shift & 63];
  }
  const size_t padding = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - padding, padding, padding, '=');
}

TEST(TokenizerJsonTest, UnigramHasTheRulesOfItsNormalizer) {
  const auto with = [](const std::string& charsmap) {
    return unigram_json(
        {{"normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", charsmap}}}});
  };
  TestCharsmap rules = make_charsmap({{"B", "b"}, {"\xc3\xa4", "a"}});
  EXPECT_EQ(pieces_of(with(base64(rules.bytes())), "B ä"), (Pieces{"▁b", "▁", "a"}));
  refuse(with("!!!!"), {"precompiled_charsmap", "base64"});
  rules.table.back() = 'x';
  refuse(with(base64(rules.bytes())), {"precompiled_charsmap"});
  json root = with(base64(make_charsmap({{"B", "b"}}).bytes()));
  // It is a step like any other, in its place.
  const json rule = root["normalizer"], lower = {{"type", "Lowercase"}};
  const json b_is_z = {{"type", "Replace"}, {"pattern", {{"String", "b"}}}, {"content", "z"}};
  root["normalizer"] = {{"type", "Sequence"}, {"normalizers", {lower, rule, b_is_z}}};
  EXPECT_EQ(pieces_of(root, "AB"), (Pieces{"▁", "a", "z"}));
  root["normalizer"]["normalizers"] = {b_is_z, rule, lower};
  EXPECT_EQ(pieces_of(root, "AB bB"), (Pieces{"▁", "a", "b", "▁", "zb"}));
}

/// A Unigram without unknown characters among these, so that its pieces show the normalized text.
std::string normalized_by(const json& steps, std::string_view text) {
  json vocab = json::parse(R"([["<unk>", 0], ["▁", -1]])");
  for (const char* const piece :
       {"a", "b", "é", "e", "x", "m", "t", "\u0301", "\u0e01", "\u00a0", "\u2003", "|", " "})
    vocab.push_back(json::array({piece, -1}));
  const json root = {{"normalizer", {{"type", "Sequence"}, {"normalizers", steps}}},
                     {"pre_tokenizer", {{"type", "Metaspace"}, {"prepend_scheme", "never"}}},
                     {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}};
  std::string joined;
  const Tokens tokens = load_json(root)->encode(text);
  for (const std::string& piece : tokens.pieces) joined += piece;
  return joined;
}

// Expected: tokenizers 0.23.3.
TEST(TokenizerJsonTest, StepsOfNormalizersMakeTheTextsOfTokenizers) {
  const auto replace = [](const char* pattern, const char* content) {
    return json{{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", content}};
  };
  const auto one = [](const char* type) { return json{{"type", type}}; };
  const json left = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  const json x_is_ab = {{"type", "Replace"}, {"pattern", {{"String", "x"}}}, {"content", "ab"}};
  const auto precompiled = [](const std::vector<std::pair<std::string, std::string>>& rules) {
    return json{{"type", "Precompiled"},
                {"precompiled_charsmap", base64(make_charsmap(rules).bytes())}};
  };
  const json strip = {{"type", "Strip"}, {"strip_left", false}};
  // Clusters first, and then characters.
  const json clusters = json::array({precompiled({{"a", "x"},
                                                  {"a\u0301", "y"},
                                                  {"e\u0301", "é"},
                                                  {"\r", " "},
                                                  {"\n", " "},
                                                  {"\u0e33", "m"},
                                                  {"zz", "t"}})});
  const json deberta = {replace("\\s{2,}|[\\n\\r\\t]", " "), {{"type", "NFC"}}, strip};
  const json spaces = precompiled({{"\t", " "}, {"\u3000", " "}});
  const json to_one = replace(" {2,}", "\u2581");
  for (const auto& [steps, text, expected] :
       std::vector<std::tuple<json, std::string, std::string>>{
           {json::array({one("Lowercase")}), "ABX", "abx"},
           {json::array({one("NFKC")}), "ａｂ", "ab"},
           {{one("NFD"), one("StripAccents")}, "àb", "ab"},
           {json::array({left}), " \u3000a ", "a▁"},
           {json::array({x_is_ab}), "xax", "abaab"},
           {json::array({replace(" {2,}", " ")}), "a   b e", "a▁b▁e"},
           {clusters, "a\u0301", "x"},
           {clusters, "be\u0301", "bé"},
           {clusters, "e\u0301\u0301", "é"},
           {clusters, "e\u0301\u0301\u0301", "e\u0301\u0301\u0301"},
           {clusters, "a\u0301\u0301\u0301", "x\u0301\u0301\u0301"},
           {clusters, "\r\n|\n\r", "▁|▁▁"},
           {clusters, "zz", "zz"},
           {clusters, "\u0e33\u0e01\u0e33", "m\u0e01m"},
           {deberta, "a  b", "a▁b"},
           {deberta, "a\u00a0b", "a\u00a0b"},
           {deberta, "a\tb", "a▁b"},
           {deberta, "a \u3000\u0085b\n", "a▁b"},
           {deberta, "\u2003x", "\u2003x"},
           {deberta, "a\u0085\u0085b", "a▁b"},
           {deberta, "\n e\u0301 ", "▁é"},
           {json::array({replace("\\n", " ")}), "a\n\nb", "a▁▁b"},  // a Pegasus without rules
           {{spaces, strip, to_one}, " a\t \u3000b\t", "▁a▁b"},
           {{spaces, to_one}, "a \u3000b \t", "a▁b▁"},  // Pegasus
           {{strip, spaces, to_one}, "a\t\tb\t", "a▁b"}})
    EXPECT_EQ(normalized_by(steps, text), expected) << json(text);
}

TEST(TokenizerJsonTest, WordPieceHasItsTemplateAndAddedTokensAndMPNetIsKnownByItsModelType) {
  const auto tokenizer = load_json(wordpiece_json(), {{"mask_token", "<mask>"}});
  EXPECT_EQ(tokenizer->encode("ab qqa x").ids, (Ids{0, 3, 4, 6, 3, 2, 1}));
  EXPECT_EQ(tokenizer->encode("a <mask>", {.parse_special = true}).ids, (Ids{0, 3, 5, 1}));
  EXPECT_EQ(tokenizer->encode_pair("a", "ab").ids, (Ids{0, 3, 1, 1, 3, 4, 1}));
  EXPECT_EQ(tokenizer->encode_pair("a", "").ids, (Ids{0, 3, 1}));  // as in Transformers
  json root = wordpiece_json();
  root["added_tokens"].push_back(added("ÉcoleQ", 7, {{"normalized", true}}));
  const auto with_added = load_json(root);
  EXPECT_EQ(with_added->encode("AécoleQA ECOLEQ qq x").ids, (Ids{0, 3, 7, 3, 7, 6, 2, 1}));
  root = wordpiece_json();
  root.erase("post_processor");
  const auto mpnet =
      tokenizer_of({{"tokenizer.json", root}, {"config.json", {{"model_type", "mpnet"}}}});
  EXPECT_EQ(mpnet->mask_id(), 5);
  EXPECT_EQ(mpnet->encode_pair("a", "ab").ids, (Ids{0, 3, 1, 1, 3, 4, 1}));
}

TEST(TokenizerJsonTest, ItIsReadForClassesThatPhasorDoesNotKnow) {
  const json config = {{"tokenizer_class", "NewTokenizer"}};
  EXPECT_EQ(load_json(bpe_json(), config)->encode("a").ids, (Ids{0, 4, 1}));
  EXPECT_EQ(
      load_json(unigram_json(), {{"tokenizer_class", "XLMRobertaTokenizer"}})->encode("b").ids,
      (Ids{0, 5, 1}));
}

}  // namespace
}  // namespace phasor
