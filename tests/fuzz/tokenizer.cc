// The files of tokenizers, and texts for one of each kind: tokenizer.json and the JSON beside it,
// WordPiece's vocab.txt, byte-level BPE's vocab.json and merges.txt; SentencePiece's models, as
// they are, and built from pieces and normalization rules, whose tables are damaged at random.
#include "tests/fuzz/fuzz.h"
#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"
#include "tests/support/tokenizer_folder.h"

namespace phasor::fuzz {
namespace {

/// Of a call with max_tokens: the first of `all`, then the special tokens behind the text.
void require_cut(const Tokens& cut, const Tokens& all, size_t most, size_t specials) {
  const size_t size = std::min(most, all.ids.size()), left_out = all.ids.size() - size;
  require(cut.ids.size() == size && cut.pieces.size() == size, "there are as many as asked for");
  require(cut.dropped == static_cast<int64_t>(left_out), "the dropped tokens are counted");
  size_t same = 0;
  while (same < size && cut.ids[same] == all.ids[same] && cut.pieces[same] == all.pieces[same])
    ++same;
  require(same + specials >= size, "the first tokens do not depend on how many are asked for");
  for (size_t i = same; i < size; ++i)
    require(cut.ids[i] == all.ids[i + left_out] && cut.pieces[i] == all.pieces[i + left_out],
            "the special tokens at the end stay");
}

/// Encodes a text in every way; what comes out must be of the vocabulary.
void encode_all_ways(const Tokenizer& tokenizer, std::string_view text) {
  size_t specials = 0;
  survive([&] { specials = tokenizer.encode("").ids.size(); });
  for (const bool special : {false, true}) {
    const Tokens tokens = tokenizer.encode(text, {.parse_special = special});
    require(tokens.ids.size() == tokens.pieces.size(), "there is a piece for each id");
    require(tokens.dropped == 0, "no tokens are dropped unless fewer are asked for");
    for (const int32_t id : tokens.ids) {
      require(id >= 0 && id < tokenizer.vocab_size(), "an id is of the vocabulary");
      static_cast<void>(tokenizer.piece(id));
    }
    const Tokens placed =
        tokenizer.encode(text, {.parse_special = special, .offset_unit = OffsetUnit::kBytes});
    require(placed.ids == tokens.ids && placed.offsets.size() == placed.ids.size() &&
                placed.special.size() == placed.ids.size(),
            "offsets change no token");
    for (const auto& [begin, end] : placed.offsets)
      require(0 <= begin && begin <= end && end <= std::ssize(text), "a span is of the text");
    for (const size_t most : {specials + 1, tokens.ids.size() / 2, tokens.ids.size()}) {
      if (most <= specials) continue;
      const TokenizeOptions options = {.parse_special = special,
                                       .max_tokens = static_cast<int64_t>(most)};
      require_cut(tokenizer.encode(text, options), tokens, most, specials);
    }
  }
  survive([&] { static_cast<void>(tokenizer.encode_pair(text, "Tom bit a dog.")); });
}

/// Loads the tokenizer of these files, and encodes the part "text".
bool encode_in(const Folder& folder, std::string_view bytes, Names names) {
  Parts parts = parts_of(bytes, "text", names);
  folder.write(parts, names);
  return survive([&] {
    const auto tokenizer = Tokenizer::load(folder.path());
    encode_all_ways(*tokenizer, parts["text"]);
  });
}

constexpr std::string_view kTokenizerFiles[] = {"tokenizer.json",
                                                "tokenizer_config.json",
                                                "special_tokens_map.json",
                                                "added_tokens.json",
                                                "vocab.json",
                                                "merges.txt",
                                                "dict.txt",
                                                "config.json",
                                                "vocab.txt",
                                                "sentencepiece.bpe.model",
                                                "spiece.model",
                                                "source.spm"};

bool run_tokenizer(std::string_view bytes) {
  static const Folder folder;
  return encode_in(folder, bytes, kTokenizerFiles);
}

/// Each row of the tests' tokenizers, and further files.
std::vector<std::string> tokenizer_seeds() {
  std::vector<std::string> inputs;
  const auto rows = nlohmann::json::parse(read_text_file(fixture("tokenizers.json")));
  for (const auto& row : rows) {
    Parts parts = {{"text", "<s>Tom\n[MASK] caf\xc3\xa9 9,"}};
    for (const auto& [name, content] : row["files"].items())
      parts[name] = content.is_string() ? content.get<std::string>() : content.dump();
    for (const auto& [name, file] : row["models"].items())
      parts[name] = read_text_file(fixture(file.get<std::string>()));
    inputs.push_back(input_of(parts));
  }
  // tokenizer.json in the form of each model that it may hold.
  const auto seeds = nlohmann::json::parse(read_text_file(fixture("tokenizer_seeds.json")));
  for (const auto& seed : seeds) {
    std::string text = seed.dump();
    text.insert(1, R"("note": [-0, Infinity], )");  // as Python alone writes them
    inputs.push_back(input_of({{"tokenizer.json", text}, {"text", "a b ab<s>"}}));
  }
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n\xe4\xb8\xad\n";
  const Parts bpe = {{"vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5,
"\u0120": 6, "ab": 7, "\u0120ab": 8, "<mask>": 9})"},
                     {"merges.txt", "#version: 0.2\na b\n\xc4\xa0 ab\n"}};
  Parts roberta = bpe, spaced = bpe;
  roberta.insert({{"text", "ab abb<mask>"}, {"config.json", R"({"model_type": "roberta"})"}});
  spaced.insert({{"text", "ab's 12"},
                 {"tokenizer_config.json",
                  R"({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true})"}});
  for (const Parts& parts :
       {Parts{{"vocab.txt", words}, {"text", "ab [MASK]\xe4\xb8\xad"}},
        Parts{
            {"vocab.txt", words},
            {"tokenizer_config.json",
             R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false, "strip_accents": true,
"tokenize_chinese_chars": true, "model_max_length": 8})"},
            {"text", "AB \xc3\x84"}},
        roberta, spaced})
    inputs.push_back(input_of(parts));
  return inputs;
}

}  // namespace

Fuzzer tokenizer_fuzzer() {
  return {.name = "tokenizer", .run = run_tokenizer, .seeds = tokenizer_seeds, .words = words(R"(
===\stokenizer.json\n ===\stokenizer_config.json\n ===\stext\n ===\sspecial_tokens_map.json\n
===\sadded_tokens.json\n ===\svocab.txt\n ===\svocab.json\n ===\smerges.txt\n ===\sconfig.json\n
"BertTokenizer" "RobertaTokenizer" "do_lower_case" "model_type" [UNK]\n ## #version:\s0.2\n "type" "BPE" "Unigram" "WordPiece" "vocab" "merges" "added_tokens"
"content" "lstrip" "rstrip" "single_word" "normalized" "Sequence" "normalizers" "pretokenizers"
"Replace" "pattern" "Regex" "Prepend" "NFKC" "StripAccents" "Lowercase" "Precompiled"
"precompiled_charsmap" "Split" "behavior" "Digits" "byte_fallback" "unk_id" "tokenizer_class"
"model_max_length" "added_tokens_decoder" "ByteLevel" "single" "pair" "ignore_merges" "dropout"
2147483647 -1 16777215 NaN Infinity -Infinity -0)")};
}

namespace {

constexpr std::string_view kSentencepieceFiles[] = {"tokenizer.model", "tokenizer_config.json"};

/// A model that an input describes.
std::string built(Choices choices) {
  std::vector<TestPiece> pieces;
  for (size_t count = choices.below(40); count > 0; --count) {
    const auto type = static_cast<PieceType>(choices.below(8));
    pieces.push_back({choices.text(), type, static_cast<float>(choices.number())});
  }
  if (!choices.coin()) return sentencepiece_bytes(pieces);
  std::vector<std::pair<std::string, std::string>> rules;
  for (size_t count = choices.below(6); count > 0; --count) {
    std::string from = choices.text();
    std::erase(from, '\0');
    if (!from.empty()) rules.emplace_back(from, choices.text());
  }
  TestCharsmap charsmap = make_charsmap(rules);
  for (size_t damage = choices.below(4); damage > 0; --damage) {
    const size_t place = choices.byte() * 256u + choices.byte();
    charsmap.units[place % charsmap.units.size()] = static_cast<uint32_t>(choices.number());
  }
  if (choices.coin()) charsmap.table += choices.text();
  if (choices.coin()) charsmap.units.resize(choices.byte() * 16u);
  return sentencepiece_bytes(pieces, charsmap.bytes());
}

bool run_sentencepiece(std::string_view bytes) {
  constexpr std::string_view kBuilt = "BUILT";
  static const Folder folder;
  if (!bytes.starts_with(kBuilt)) return encode_in(folder, bytes, kSentencepieceFiles);
  Choices choices(bytes.substr(kBuilt.size()));
  const std::string text = choices.text();
  return encode_in(folder, input_of({{"text", text}, {"tokenizer.model", built(choices)}}),
                   kSentencepieceFiles);
}

std::vector<std::string> sentencepiece_seeds() {
  std::vector<std::string> inputs = {std::string("BUILT\3abc\2\1\1a\1\1\2bc\1\1\1\1\1a\1b", 25)};
  for (const char* const name : {"albert.model", "fairseq.model", "t5.model"})
    inputs.push_back(input_of(
        {{"text", "Tom bit 9, dogs."}, {"tokenizer.model", read_text_file(fixture(name))}}));
  const TestCharsmap rules = make_charsmap({{"a", "b"}, {"\xc3\xa9", "e"}, {"ab", ""}});
  inputs.push_back(input_of(
      {{"text", "ab\xc3\xa9"},
       {"tokenizer.model",
        sentencepiece_bytes({{"<s>", PieceType::kControl}, {"b"}, {"ab", PieceType::kUserDefined}},
                            rules.bytes())}}));
  return inputs;
}

}  // namespace

Fuzzer sentencepiece_fuzzer() {
  return {.name = "sentencepiece",
          .run = run_sentencepiece,
          .seeds = sentencepiece_seeds,
          .words = words(R"(
===\stext\n ===\stokenizer.model\n BUILT \xe2\x96\x81 <unk> <s> <0x41> \x18\x01 \x18\x02 \x18\x03
\x18\x04 \x18\x06)"),
          .refused = {"BUILT"}};
}

namespace {

std::vector<std::shared_ptr<const Tokenizer>> tokenizers() {
  const TempFolder bytes;
  std::string vocabulary = R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4)";
  int id = 5;
  for (const char* const piece : {"a", "b", "ab", "\\u0120", "\\u0120a", "1", "'", "s"})
    vocabulary += std::string(", \"") + piece + "\": " + std::to_string(id++);
  bytes.write("vocab.json", vocabulary + "}");
  bytes.write("merges.txt", "#version: 0.2\na b\n\xc4\xa0 a\n");
  bytes.write("config.json", R"({"model_type": "roberta"})");
  // Where there are no sources, as under OSS-Fuzz, the bundled models lie beside the program.
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "models/sinusoidal";
  return {Tokenizer::load(exists(beside) ? beside : bundled_model("sinusoidal")),
          Tokenizer::load(BertFolder({}).path()), Tokenizer::load(bytes.path())};
}

/// The tokens of a text do not depend on an earlier one.
bool run_text(std::string_view text) {
  static const auto all = tokenizers();
  for (const auto& tokenizer : all) {
    encode_all_ways(*tokenizer, text);
    const Tokens whole = tokenizer->encode(text), again = tokenizer->encode(text);
    require(whole.ids == again.ids && whole.pieces == again.pieces, "a text has the same tokens");
  }
  return true;
}

}  // namespace

Fuzzer text_fuzzer() {
  return {.name = "text",
          .run = run_text,
          .seeds = []() -> std::vector<std::string> {
            return {"Tom bit a dog.",
                    "ab's 11 <mask> [MASK]",
                    "caf\xc3\xa9 \xe4\xb8\xad\xe2\x80\x8d",
                    "\xff\xc0\x80\xed\xa0\x80",
                    "\xe2\x96\x81 a\n\tb\r\n",
                    std::string("a\0b", 3)};
          },
          .words = words(R"(
<s> </s> <mask> [MASK] [SEP] \xe2\x96\x81 \xe2\x80\x8b \xef\xbb\xbf \xcc\x81 \xf0\x9f\x98\x80
\xed\xa0\x80 \xef\xbf\xbd \xea\xb0\x80 's \xc2\xa0)")};
}

}  // namespace phasor::fuzz
