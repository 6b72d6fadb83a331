// infer check: whether a model made a file of vectors, by its record, and whether it still makes
// the same, by embedding some of its lines again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "files/files.h"
#include "infer/cli/line_stream.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/embed/embed_file.h"
#include "infer/commands/embed/embedder.h"
#include "infer/files.h"
#include "infer/render/json_text.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCheckDescription =
    "Says whether a model made a file of vectors: exit code 0 where it did, 1 where it did not.";

constexpr const char* kCheckFooter = R"(
The record of the file (OUT.json beside it, or the metadata of a .safetensors file) is compared
with what infer embed would write with the same model and options. With -i FILE, the lines of
which the vectors were made, 100 rows at equal distances, or --all, are computed again, and they
decide: a model whose files or libraries have changed may still make the same vectors. Every row
is computed again where the record names other lines than those of FILE. A file without a record
can be checked by its rows alone.

On the machine that made them, rows are equal to the last bit. Another processor adds in another
order, which moves float32 vectors by about 1e-6 of their length and those of bf16 and int8 by
up to 1e-2: rows are the same that differ by at most 1e-4 in f32, and 2e-2 otherwise.

Examples:
  infer check vectors.npy -m all-MiniLM-L6-v2
  infer check vectors.npy -m all-MiniLM-L6-v2 -i sentences.txt --all)";

constexpr int64_t kSample = 100;

struct CheckArguments : VectorOptions {
  std::vector<std::string> files;
  std::string input;
  bool all = false;
};

/// How rows that were computed again differ from those of the file.
struct Comparison {
  int64_t compared = 0, equal = 0, other = 0;  // to the last bit; by more than the tolerance
  double most;                                 // the tolerance, and the largest: |a − b| / |a|
  double worst = 0;
  int64_t worst_row = 0;

  void add(std::span<const float> saved, std::span<const float> now, int64_t row) {
    double difference = 0, length = 0;
    bool same = true;
    for (size_t i = 0; i < saved.size(); ++i) {
      const double a = saved[i], b = now[i];
      same = same && a == b;
      difference += (a - b) * (a - b);
      length += a * a;
    }
    const double relative = same ? 0 : std::sqrt(difference / (length > 0 ? length : 1));
    ++compared;
    equal += same ? 1 : 0;
    other += relative <= most ? 0 : 1;  // also NaN
    if (worst_row == 0 || !(relative <= worst)) {
      worst = std::isnan(relative) ? HUGE_VAL : relative;
      worst_row = row;
    }
  }
  std::string text(int64_t rows) const {
    std::string text = compared < rows ? fmt::format("{} of its {} rows were", compared, rows)
                                       : fmt::format("all of its {} rows were", rows);
    text += fmt::format(" computed again: {} equal to the last bit", equal);
    if (equal == compared) return text;
    return text + fmt::format(
                      ", {} within {:.0e} of their length, {} further off; row {} differs most, by "
                      "{:.2g} times its length",
                      compared - equal - other, most, other, worst_row, worst);
  }
};

/// The rows of a file of any format, from the first on.
class Rows {
 public:
  explicit Rows(const std::string& file) {
    if (VectorFormat::kind_of(file, "") == VectorFormat::Kind::kJsonLines) {
      lines_.emplace(file, true);
    } else {
      matrix_.emplace(file, "embeddings");
    }
  }
  std::optional<int64_t> width() const {
    return matrix_ ? std::optional(matrix_->columns()) : std::nullopt;
  }
  /// False at the end. `row` is filled where it is `wanted`.
  bool next(bool wanted, std::vector<float>& row) {
    if (matrix_) {
      if (number_ == matrix_->rows()) return false;
      row.resize(wanted ? matrix_->columns() : 0);
      matrix_->tensor().copy_to(row.data(), number_ * matrix_->columns(), std::ssize(row));
    } else {
      const std::optional<Line> line = lines_->next();
      if (!line) return false;
      try {
        if (wanted)
          row = nlohmann::json::parse(line->text).at("embedding").get<std::vector<float>>();
      } catch (const nlohmann::json::exception&) {
        throw phasor::InvalidArgument(
            fmt::format("{}: line {} holds no \"embedding\"", lines_->name(), number_ + 1));
      }
    }
    ++number_;
    return true;
  }

 private:
  std::optional<MatrixFile> matrix_;
  std::optional<LineReader> lines_;
  int64_t number_ = 0;
};

/// What was found, as a sentence and as JSON.
struct Verdict {
  bool same = true;
  const char* sentence = "made by this model";
  std::vector<std::string> reasons;
  std::string advice;
  Json json;
};

class Check {
 public:
  explicit Check(const CheckArguments& arguments)
      : arguments_(arguments),
        file_(arguments.files[0]),
        rows_(as_input("", [&] { return std::make_unique<Rows>(file_); })),
        record_(VectorRecord::find(file_)),
        embedder_(arguments) {}

  /// Nothing where a signal came.
  std::optional<Verdict> run() {
    Verdict verdict;
    verdict.json = {{"file", file_}, {"same", false}, {"record", record_.has_value()}};
    const bool known = record_ && by_record(verdict);
    if (record_ && !known) return finished(std::move(verdict), kUnknown);
    const bool differs = !verdict.reasons.empty();
    if (const auto width = rows_->width(); width && *width != embedder_.width()) {
      verdict.reasons.push_back(fmt::format("its rows have {} numbers, and this model's vectors {}",
                                            *width, embedder_.width()));
      return finished(std::move(verdict), kNotMade);
    }
    if (!arguments_.input.empty()) return by_rows(std::move(verdict));
    if (known && !differs) return finished(std::move(verdict), kMade);
    if (!record_) verdict.reasons.emplace_back("no record says what made it");
    verdict.advice = "to compare its rows, give the lines of which it was made: -i FILE";
    return finished(std::move(verdict), kUnknown);
  }

 private:
  static constexpr const char *kMade = "made by this model", *kNotMade = "not made by this model",
                              *kUnknown = "not known to be made by this model";

  static Verdict finished(Verdict verdict, const char* sentence) {
    verdict.sentence = sentence;
    verdict.same = sentence == kMade;
    verdict.json["same"] = verdict.same;
    return verdict;
  }

  /// False where the record is another file's.
  bool by_record(Verdict& verdict) {
    const bool changed =
        std::filesystem::file_size(file_) != static_cast<uintmax_t>(record_->bytes) ||
        (!record_->xxh64.empty() &&
         as_input("", [&] { return fingerprint_of(file_); }) != record_->xxh64);
    if (changed) {
      verdict.reasons.emplace_back("it has changed since its record was written");
      return false;
    }
    const MadeWith now = embedder_.made_with();
    Json list = Json::array();
    for (const Difference& difference : differences(record_->made_with, now)) {
      list.push_back(
          {{"what", difference.what}, {"made_with", difference.before}, {"now", difference.now}});
      verdict.reasons.push_back("its record names " + text_of(difference, record_->made_with, now));
    }
    verdict.json["differences"] = list;
    return true;
  }

  std::optional<Verdict> by_rows(Verdict verdict) {
    LineReader reader(arguments_.input, true);
    if (!std::filesystem::is_regular_file(arguments_.input)) {  // it is read twice
      throw phasor::InvalidArgument(arguments_.input + ": it is not a regular file");
    }
    const auto [lines, fingerprint] = read_through(reader);
    if (reader.interrupted()) return std::nullopt;
    if (record_ && record_->lines != lines) {
      verdict.reasons.push_back(fmt::format("it was made of {} lines, and {} has {}",
                                            record_->lines, arguments_.input, lines));
      verdict.advice = "give the lines of which it was made";
      return finished(std::move(verdict), kUnknown);
    }
    const bool other_lines = record_ && record_->input != fingerprint;
    if (other_lines) {
      verdict.reasons.push_back(
          fmt::format("its record names other lines than those of {}", arguments_.input));
    }
    const bool exact = record_ && record_->made_with.contains("precision") &&
                       record_->made_with.at("precision") == "f32";
    const bool float32 = embedder_.encoder.precision() == phasor::Precision::kFloat32;
    Comparison result = {.most = exact || float32 ? 1e-4 : 2e-2};
    const std::optional<int64_t> rows = compare(lines, other_lines || arguments_.all, result);
    if (!rows) return std::nullopt;
    verdict.json["lines"] = lines;
    if (*rows != lines) {
      verdict.reasons.push_back(
          fmt::format("its rows are not as many as the {} lines of {}", lines, arguments_.input));
      return finished(std::move(verdict), kNotMade);
    }
    verdict.json["compared"] = result.compared;
    verdict.json["equal"] = result.equal;
    verdict.json["other"] = result.other;
    verdict.json["largest_difference"] = result.worst;
    verdict.reasons.insert(verdict.reasons.begin(), result.text(lines));
    return finished(std::move(verdict), result.other == 0 ? kMade
                                        : other_lines     ? kUnknown
                                                          : kNotMade);
  }

  /// The number of rows, or one that `lines` is not; nothing where a signal came.
  std::optional<int64_t> compare(int64_t lines, bool all, Comparison& result) {
    std::set<int64_t> sample;
    for (int64_t i = 0; i < kSample; ++i) {
      sample.insert(static_cast<int64_t>(static_cast<double>(i) * static_cast<double>(lines - 1) /
                                         (kSample - 1)));
    }
    LineReader reader(arguments_.input, true);
    ProgressLine progress(arguments_.common.quiet);
    std::vector<Line> window;
    std::vector<std::vector<float>> saved;
    std::vector<int64_t> numbers;
    const auto compare_window = [&] {
      const std::vector<std::string_view> texts = views_of(window);
      const phasor::Embeddings vectors = embedder_.run(texts, {}, {});
      for (int64_t i = 0; i < vectors.size(); ++i) {
        if (std::ssize(saved[i]) != embedder_.width()) return false;
        result.add(saved[i], vectors[i], numbers[i] + 1);
      }
      window.clear(), saved.clear(), numbers.clear();
      progress.show(fmt::format("{} rows compared", result.compared));
      return true;
    };
    constexpr size_t kWindow = 256;
    int64_t number = 0;
    std::vector<float> row;
    while (std::optional<Line> line = reader.next()) {
      const bool wanted = all || sample.contains(number);
      if (!rows_->next(wanted, row)) return -1;
      if (wanted) {
        window.push_back(std::move(*line));
        saved.push_back(row);
        numbers.push_back(number);
      }
      ++number;
      if (window.size() == kWindow && !compare_window()) return -1;
    }
    if (reader.interrupted()) return std::nullopt;
    if (!window.empty() && !compare_window()) return -1;
    return rows_->next(false, row) ? -1 : number;
  }

  static std::vector<std::string_view> views_of(const std::vector<Line>& lines) {
    std::vector<std::string_view> texts;
    for (const Line& line : lines) texts.push_back(line.text);
    return texts;
  }

  const CheckArguments& arguments_;
  const std::string file_;
  const std::unique_ptr<Rows> rows_;
  const std::optional<VectorRecord> record_;
  Embedder embedder_;
};

}  // namespace

int check_vectors(int argc, char** argv) {
  CheckArguments arguments;
  CommandLine line("infer check", kCheckDescription, kCheckFooter);
  line.words("VECTORS", "a file of infer embed -o, or from elsewhere", arguments.files);
  line.option("-i,--input", "FILE", "the lines of which the vectors were made, to compare rows",
              arguments.input);
  line.flag("--all", "compare every row, not a sample of 100", arguments.all);
  add_model(line, arguments.common);
  add_vector_options(line, arguments);
  add_run(line, arguments.common);
  if (const auto done = line.parse(argc, argv)) return *done;
  if (arguments.files.size() != 1) throw UsageError("check: name one file of vectors");
  if (arguments.all && arguments.input.empty()) {
    throw UsageError("--all compares rows with the lines of a file; give it with -i FILE");
  }
  const std::optional<Verdict> verdict = Check(arguments).run();
  if (!verdict) return report_error("interrupted", kBadInput);
  if (arguments.common.json) {
    Json json = verdict->json;
    json["reasons"] = verdict->reasons;
    Output().write(one_line(json) + "\n");
  } else {
    const std::string details = fmt::format("{}", fmt::join(verdict->reasons, "; "));
    Output().write(printable(fmt::format("{}: {}{}{}", arguments.files[0], verdict->sentence,
                                         details.empty() ? "" : ": ", details)) +
                   "\n");
    if (!verdict->advice.empty()) report_note(verdict->advice);
  }
  return verdict->same ? 0 : kCheckFailed;
}

}  // namespace infer
