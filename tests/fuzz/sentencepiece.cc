// SentencePiece's models: bytes as they are, and models built from pieces and normalization rules,
// whose tables are damaged at random.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenize.h"
#include "tests/support/run_program.h"
#include "tests/support/sentencepiece_files.h"

namespace phasor::fuzz {
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
  for (const char* const name : {"albert.model", "fairseq.model", "t5.model"}) {
    inputs.push_back(input_of(
        {{"text", "Tom bit 9, dogs."}, {"tokenizer.model", read_text_file(fixture(name))}}));
  }
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

}  // namespace phasor::fuzz
