// Reads the pairs one by one: a tree of 60000 entries would take several times as long.
#include <nlohmann/json.hpp>
#include <string_view>

#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxId = kMaxPieces - 1;

/// Called by nlohmann's parser in the order of the file.
class PairReader : public nlohmann::json_sax<json> {
 public:
  PairReader(std::string file, std::string_view text) : file_(std::move(file)), text_(text) {}

  PieceIds take_pairs() { return std::move(pairs_); }

  bool key(string_t& piece) override {
    if (std::ssize(pairs_) == kMaxPieces)
      refuse<ModelError>("{}: more than {} pieces", file_, kMaxPieces);
    pairs_.emplace_back(std::move(piece), 0);
    return true;
  }
  bool number_unsigned(number_unsigned_t id) override {
    if (!inside_ || id > kMaxId) refuse_value(id);
    pairs_.back().second = static_cast<int32_t>(id);
    return true;
  }
  bool start_object(size_t) override {
    if (inside_) refuse_value(json::object());
    return inside_ = true;
  }
  bool end_object() override { return true; }

  bool null() override { refuse_value(nullptr); }
  bool boolean(bool value) override { refuse_value(value); }
  bool number_integer(number_integer_t value) override { refuse_value(value); }
  bool number_float(number_float_t value, const string_t&) override { refuse_value(value); }
  bool string(string_t& value) override { refuse_value(value); }
  bool binary(binary_t&) override { refuse_value(nullptr); }
  bool start_array(size_t) override { refuse_value(json::array()); }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    if (const json literal = literal_at(text_, position); !literal.is_null()) refuse_value(literal);
    refuse<ModelError>("{}: not valid JSON from byte {} on", file_, position);
  }

 private:
  [[noreturn]] void refuse_value(const json& value) const {
    if (!inside_) {
      refuse<ModelError>("{}: {} where a JSON object {{\"piece\": id, …}} must be", file_,
                         value_text(value));
    }
    refuse<ModelError>("{}: {} is {}; it must be a whole number from 0 to {}", file_,
                       value_text(pairs_.back().first), value_text(value), kMaxId);
  }

  std::string file_;
  std::string_view text_;
  PieceIds pairs_;
  bool inside_ = false;
};

}  // namespace

PieceIds read_vocab_json(const ModelPath& file) {
  const std::string text = read_model_file(file);
  refuse_other_kind(text, file);
  PairReader reader(file.string(), text);
  json::sax_parse(text, &reader);
  return reader.take_pairs();
}

void for_each_line(const ModelPath& file,
                   const std::function<void(std::string_view line, int64_t number)>& visit) {
  const std::string bytes = read_model_file(file);
  refuse_other_kind(bytes, file);
  std::string_view rest = bytes;
  const std::string_view first = rest.substr(0, 2);
  if (first == "\xff\xfe" || first == "\xfe\xff" || first.find('\0') != first.npos)
    refuse<ModelError>("{}: it is in UTF-16; save it as UTF-8", file.string());
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // U+FEFF, which some programs write
  const char end_of_line = rest.find('\n') == rest.npos ? '\r' : '\n';
  for (int64_t number = 1; !rest.empty(); ++number) {
    if (number > kMaxPieces)
      refuse<ModelError>("{}: more than {} lines", file.string(), kMaxPieces);
    const size_t end = std::min(rest.find(end_of_line), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (to_valid_utf8(line).invalid_bytes > 0) {
      refuse<ModelError>("{}: line {} is not valid UTF-8; save the file as UTF-8", file.string(),
                         number);
    }
    visit(line, number);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace phasor::internal
