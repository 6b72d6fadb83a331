#include "infer/commands/embed/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>

#include "engine/team.h"
#include "infer/cli/terminal.h"
#include "infer/files.h"
#include "infer/render/json_text.h"
#include "phasor/errors.h"
#include "phasor/quantize.h"
#include "phasor/safetensors.h"

namespace infer {
namespace {

/// Differences that make similarities of queries and saved vectors meaningless, and those that
/// hardly change them. A prompt, for example, is rightly another for queries.
constexpr std::array<std::string_view, 3> kDecide = {"pooling", "tokenizer", "weights"};
constexpr std::array<std::string_view, 3> kWorthKnowing = {"config", "libraries", "precision"};
/// So many times the lines that are asked for are found by their bits, and then compared as floats.
constexpr int64_t kRescored = 10;

/// The vectors of a file, whatever their type.
class SavedRows {
 public:
  /// Of vectors that have `width` numbers, where the file's do.
  SavedRows(const std::filesystem::path& file, int64_t width)
      : matrix_(as_input("--in: ", [&] { return MatrixFile(file, "embeddings", true); })) {
    using phasor::DType, phasor::VectorType;
    const DType dtype = matrix_.tensor().dtype;
    width_ = matrix_.columns();
    if (dtype != DType::kInt8 && dtype != DType::kUint8) return;
    if (file.extension() == ".safetensors") read_ranges(file);
    if (!ranges_.least.empty()) {
      type_ = dtype == DType::kInt8 ? VectorType::kInt8 : VectorType::kUint8;
    } else {
      type_ = dtype == DType::kInt8 ? VectorType::kBinary : VectorType::kUbinary;
      width_ = (width + 7) / 8 == width_ ? width : 8 * width_;
    }
  }

  int64_t rows() const { return matrix_.rows(); }
  int64_t width() const { return width_; }
  bool are_bits() const {
    return type_ == phasor::VectorType::kBinary || type_ == phasor::VectorType::kUbinary;
  }
  void copy(int64_t row, std::span<float> to) const {
    if (type_ == phasor::VectorType::kFloat32)
      matrix_.tensor().copy_to(to.data(), row * width_, width_);
    else
      std::ranges::copy(phasor::dequantize(bytes(row), width_, type_, ranges_), to.begin());
  }
  /// Of vectors of bits.
  std::vector<std::byte> bits(std::span<const float> vector) const {
    return phasor::quantize(vector, width_, type_);
  }
  std::span<const std::byte> bytes(int64_t row) const {
    return {matrix_.tensor().data + row * matrix_.columns(),
            static_cast<size_t>(matrix_.columns())};
  }

 private:
  void read_ranges(const std::filesystem::path& file) {
    as_input("--in: ", [&] {
      const auto opened = phasor::SafetensorsFile::open(file);
      if (!opened->entries().contains("least") || !opened->entries().contains("most")) return;
      ranges_ = {opened->tensor("least").to_float(), opened->tensor("most").to_float()};
    });
    const auto fits = [&](const std::vector<float>& numbers) {
      return std::ssize(numbers) == width_ &&
             std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
    };
    if (ranges_.least.empty() || (fits(ranges_.least) && fits(ranges_.most))) return;
    throw phasor::InvalidArgument(
        fmt::format("--in: {}: 'least' and 'most' must have a finite number for each of {} columns",
                    file.string(), width_));
  }

  MatrixFile matrix_;
  phasor::VectorType type_ = phasor::VectorType::kFloat32;  // of bytes; others are read as they are
  phasor::ColumnRanges ranges_;
  int64_t width_ = 0;
};

/// Keeps of what was found the `most` lines that are nearest by these vectors.
void compare_again(const SavedRows& rows, phasor::Similarity kind, int64_t most,
                   std::vector<Query>& queries) {
  std::vector<float> row(rows.width());
  for (Query& query : queries) {
    Ranking nearest;
    for (const RankedLine& line : query.nearest) {
      rows.copy(line.number - 1, row);
      const double key = similarity(query.vector, row, kind);
      if (std::isfinite(key)) add({key, line.number, ""}, most, nearest);
    }
    query.nearest = std::move(nearest);
  }
}

}  // namespace

void add_line(std::span<const float> vector, int64_t number, const std::string& text,
              phasor::Similarity kind, int64_t most, std::vector<Query>& queries) {
  for (Query& query : queries) {
    add({similarity(query.vector, vector, kind), number, text}, most, query.nearest);
  }
}

void print_nearest(const std::vector<Query>& queries, phasor::Similarity kind, bool json,
                   bool has_texts) {
  Output output;
  for (const Query& query : queries) {
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    std::string text =
        (&query == &queries.front() ? "" : "\n") + output.heading(printable(query.text)) + "\n";
    for (const RankedLine& line : query.nearest) {
      lines.push_back({{"line", line.number}, {std::string(to_string(kind)), line.key}});
      if (has_texts) lines.back()["text"] = line.text;
      const std::string label = fmt::format("  {:6.3f}  line {:<7} ", line.key, line.number);
      text += has_texts ? output.labelled(label, line.text) : trimmed(label);
    }
    output.write(json ? one_line({{"query", query.text}, {"nearest", lines}}) + "\n" : text);
  }
}

// Blocks are searched one by one, so that memory stays bounded. Which lines are the best, and in
// which order, depends on no order of the blocks, since of equal lines the first is the better.
void SavedVectors::search(const Embedder& embedder, int64_t most, int threads, bool quiet,
                          std::vector<Query>& queries) const {
  const SavedRows saved(file, embedder.width());
  const int64_t rows = saved.rows();
  const std::optional<VectorRecord> record = checked_record(embedder, saved.width(), quiet);
  const phasor::Similarity kind = embedder.similarity();
  if (saved.are_bits() && rescore.empty() && kind != phasor::Similarity::kCosine &&
      kind != phasor::Similarity::kDot) {
    throw phasor::InvalidArgument(
        fmt::format("--in: {}: vectors of bits have no {} distance; name others with --rescore",
                    file.string(), to_string(kind)));
  }
  const int64_t kept = saved.are_bits() || !rescore.empty() ? kRescored * most : most;
  std::vector<std::vector<std::byte>> bits;
  for (const Query& query : queries)
    if (saved.are_bits()) bits.push_back(saved.bits(query.vector));
  constexpr int64_t kBlock = 1024;
  std::atomic<int64_t> left_out = 0;
  std::mutex mutex;
  const auto search_block = [&](int64_t block) {
    std::vector<Query> found;
    for (const Query& query : queries) found.push_back({.text = {}, .vector = query.vector});
    std::vector<float> row(saved.width());
    for (int64_t r = block * kBlock; r < std::min(rows, (block + 1) * kBlock); ++r) {
      for (size_t q = 0; q < bits.size(); ++q) {
        const int64_t distance = phasor::hamming_distance(bits[q], saved.bytes(r));
        add({-static_cast<double>(distance), r + 1, ""}, kept, found[q].nearest);
      }
      if (saved.are_bits()) continue;
      saved.copy(r, row);
      if (std::ranges::all_of(row, [](float value) { return std::isfinite(value); })) {
        add_line(row, r + 1, "", kind, most, found);
      } else {
        ++left_out;
      }
    }
    const std::lock_guard lock(mutex);
    for (size_t q = 0; q < queries.size(); ++q) {
      for (const RankedLine& line : found[q].nearest) add(line, kept, queries[q].nearest);
    }
  };
  phasor::internal::parallel_for((rows + kBlock - 1) / kBlock, phasor::internal::team_size(threads),
                                 search_block);
  if (!rescore.empty()) {
    const SavedRows others(rescore, embedder.width());
    const auto other =
        SavedVectors{.file = rescore}.checked_record(embedder, others.width(), quiet);
    if (others.rows() != rows || (record && other && record->input != other->input)) {
      throw phasor::InvalidArgument(fmt::format(
          "--rescore: {} has the vectors of other lines than {}", rescore.string(), file.string()));
    }
    compare_again(others, kind, most, queries);
  } else if (saved.are_bits()) {
    compare_again(saved, kind, most, queries);
  }
  if (left_out > 0 && !quiet) {
    report_note(fmt::format("{}: rows left out, which hold NaN or infinity: {}", file.string(),
                            left_out.load()));
  }
  if (!texts.empty()) add_texts(rows, record, queries);
}

std::optional<VectorRecord> SavedVectors::checked_record(const Embedder& embedder, int64_t width,
                                                         bool quiet) const {
  const std::optional<VectorRecord> record = VectorRecord::find(file);
  const auto refuse = [&](const std::string& why) {
    throw phasor::InvalidArgument(fmt::format("--in: {}: {}", file.string(), why));
  };
  const auto made_by = [&](const char* what) {
    const auto found = record ? record->made_with.find(what) : MadeWith::const_iterator();
    return record && found != record->made_with.end() ? found->second : "?";
  };
  if (width != embedder.width()) {
    const std::string maker = record ? fmt::format("these vectors were made by {}, pooling {}",
                                                   made_by("model"), made_by("pooling"))
                                     : "no record says what made it";
    refuse(
        fmt::format("its rows have {} numbers, and this model's vectors {}; {}; name the model "
                    "that made it with -m",
                    width, embedder.width(), maker));
  }
  if (!record) {
    if (!quiet) {
      report_note(fmt::format("{}: no record says what made it", file.string()));
    }
    return record;
  }
  std::error_code ignored;
  if (std::filesystem::file_size(file, ignored) != static_cast<uintmax_t>(record->bytes)) {
    refuse(fmt::format("it has changed since {} was written; make it anew, or remove the record",
                       record_beside(file).string()));
  }
  const MadeWith now = embedder.made_with();
  for (const Difference& difference : differences(record->made_with, now)) {
    const std::string text = text_of(difference, record->made_with, now);
    if (std::ranges::find(kDecide, difference.what) != kDecide.end()) {
      refuse(
          fmt::format("these vectors were made with {}; choose what made them with -m and "
                      "--pooling, or embed the texts again",
                      text));
    }
    const bool known = std::ranges::find(kWorthKnowing, difference.what) != kWorthKnowing.end();
    if (known && !quiet) report_note(fmt::format("{}: made with {}", file.string(), text));
  }
  const std::optional<std::string> prompt = embedder.model->text().document_prompt();
  if (prompt && made_by("prefix") != fmt::format("\"{}\"", *prompt) && !quiet) {
    report_note(
        fmt::format("{}: made with the prefix {}, not the model's prompt for documents; "
                    "embed -o with --prefix \"{}\" uses it",
                    file.string(), made_by("prefix"), *prompt));
  }
  return record;
}

void SavedVectors::add_texts(int64_t rows, const std::optional<VectorRecord>& record,
                             std::vector<Query>& queries) const {
  std::map<int64_t, std::string> wanted;
  for (const Query& query : queries) {
    for (const RankedLine& line : query.nearest) wanted[line.number];
  }
  LineReader reader(texts, true);
  Fingerprint input;
  int64_t count = 0;
  while (std::optional<Line> line = reader.next()) {
    input.add_piece(line->text);
    if (const auto found = wanted.find(++count); found != wanted.end()) {
      found->second = std::move(line->text);
    }
  }
  if (count != rows || (record && record->input != input.text())) {
    throw phasor::InvalidArgument(fmt::format(
        "--texts: the {} lines of {} are not those of which the {} rows of {} were made; name the "
        "file that they were made of",
        count, texts, rows, file.string()));
  }
  for (Query& query : queries) {
    Ranking named;
    for (RankedLine line : query.nearest) {
      line.text = wanted[line.number];
      named.insert(std::move(line));
    }
    query.nearest = std::move(named);
  }
}

}  // namespace infer
