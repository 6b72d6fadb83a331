// The few fields of sentencepiece_model.proto that tests need.
#include "tests/support/tokenizer_folder.h"

namespace phasor {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  return bytes + static_cast<char>(value);
}

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

}  // namespace

std::string varint_field(uint64_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

std::string bytes_field(uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string sentencepiece_bytes(const std::vector<TestPiece>& pieces) {
  std::string model;
  const auto add = [&](const TestPiece& piece) {
    model += bytes_field(1, bytes_field(1, piece.text) + varint(2 << 3 | 5) + raw(piece.score) +
                                varint_field(3, static_cast<uint64_t>(piece.type)));
  };
  add({"<unk>", PieceType::kUnknown});
  add({"\xe2\x96\x81"});
  for (const TestPiece& piece : pieces) add(piece);
  return model;
}

std::string sentencepiece_bytes(const std::vector<TestPiece>& pieces, std::string_view charsmap) {
  return sentencepiece_bytes(pieces) + bytes_field(3, bytes_field(2, charsmap));
}

TestCharsmap make_charsmap(const std::vector<std::pair<std::string, std::string>>& rules) {
  constexpr uint32_t kNone = 0x80000000;  // the label of no byte
  constexpr size_t kBlock = 256;
  std::vector<uint32_t> units(2 * kBlock, kNone);
  std::string table;
  // The children of each node have a block to themselves.
  std::map<std::string, size_t> bases = {{"", kBlock}};
  units[0] = kBlock << 10;
  for (const auto& [from, to] : rules) {
    size_t node = 0;
    size_t base = kBlock;
    for (size_t size = 1; size <= from.size(); ++size) {
      const auto label = static_cast<uint8_t>(from[size - 1]);
      node = base ^ label;
      const auto [found, added] = bases.emplace(from.substr(0, size), units.size());
      base = found->second;
      if (!added) continue;
      units.resize(units.size() + kBlock, kNone);
      units[node] = static_cast<uint32_t>((node ^ base) << 10) | label;
    }
    units[node] |= 0x100;  // ends a rule
    units[base] = kNone | static_cast<uint32_t>(table.size());
    table += to + '\0';
  }
  return {units, table};
}

std::string TestCharsmap::bytes() const {
  std::string bytes = raw(static_cast<uint32_t>(units.size() * sizeof(uint32_t)));
  for (const uint32_t unit : units) bytes += raw(unit);
  return bytes + table;
}

}  // namespace phasor
