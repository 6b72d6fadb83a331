#include "infer/commands/embed/retrieval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "files/corpus/save.h"
#include "files/corpus/temporary_file.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/render/json_text.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// Collects what a file holds.
template <typename T>
void append(std::vector<T>& all, std::span<const T> more) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::ssize(all) + std::ssize(more) > kMost)
    throw phasor::InvalidArgument(
        fmt::format("-o: a file holds at most {} numbers; give fewer lines", kMost));
  all.insert(all.end(), more.begin(), more.end());
}

std::string piece_of(const phasor::Tokenizer& tokenizer, int32_t id) {
  return json_string(id < tokenizer.vocab_size() ? tokenizer.piece(id) : "");
}

/// A matrix [lines, V] as scipy.sparse.csr_matrix holds it.
class SparseMatrix {
 public:
  using Result = phasor::SparseVectors;

  SparseMatrix(const phasor::Model& model, bool is_query)
      : tokenizer_(model.tokenizer()), config_(model.sparse()), width_(model.config().vocab_size) {
    looks_up = is_query && !config_.query_weights.empty();
  }

  bool looks_up;  // nothing runs
  std::string description() const {
    return fmt::format("sparse vectors: {}{}", config_.source,
                       looks_up ? ", queries looked up" : "");
  }
  std::string summary(int64_t lines) const {
    return fmt::format("{} of {} weights each", (count_ + lines / 2) / lines, width_);
  }

  static Result run(phasor::Encoder& encoder, const phasor::Texts& texts,
                    const phasor::RetrievalOptions& options) {
    return encoder.embed_sparse(texts, options);
  }

  /// The largest weights first.
  std::string to_json(int64_t line, const Result& result, int64_t i) {
    const phasor::SparseVector& vector = result[i];
    count_ += std::ssize(vector.indices);
    std::vector<size_t> order(vector.indices.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t w) { return vector.values[w]; });
    std::string json = fmt::format("{{\"line\":{},\"sparse\":[", line);
    for (const size_t w : order) {
      fmt::format_to(std::back_inserter(json), R"({}{{"index":{},"value":{},"word":{}}})",
                     json.ends_with('}') ? "," : "", vector.indices[w], vector.values[w],
                     piece_of(tokenizer_, vector.indices[w]));
    }
    return json + "]}\n";
  }

  void keep(const Result& result, int64_t i) {
    append<int32_t>(indices_, result[i].indices);
    append<float>(values_, result[i].values);
    indptr_.push_back(static_cast<int32_t>(indices_.size()));
    count_ = std::ssize(indices_);
  }

  void save(const std::string& file, std::map<std::string, std::string> made_by) const {
    const auto numbers = std::ssize(values_), lines = std::ssize(indptr_) - 1;
    const int32_t shape[] = {static_cast<int32_t>(lines), static_cast<int32_t>(width_)};
    const SavedTensor tensors[] = {{"shape", {2}, std::span<const int32_t>(shape)},
                                   {"indptr", {lines + 1}, std::span<const int32_t>(indptr_)},
                                   {"indices", {numbers}, std::span<const int32_t>(indices_)},
                                   {"values", {numbers}, std::span<const float>(values_)}};
    made_by["format"] = "csr";
    infer::save(file, tensors, made_by);
  }

 private:
  const phasor::Tokenizer& tokenizer_;
  const phasor::SparseConfig& config_;
  int64_t width_, count_ = 0;
  std::vector<int32_t> indptr_ = {0}, indices_;
  std::vector<float> values_;
};

/// Vectors [N, E]; those of line i are the rows offsets[i] to offsets[i + 1] − 1.
class TokenRows {
 public:
  using Result = phasor::TokenVectors;

  TokenRows(const phasor::Model& model, bool)
      : tokenizer_(model.tokenizer()), config_(model.token_vectors()) {}

  static constexpr bool looks_up = false;
  std::string description() const {
    return fmt::format("token vectors of width {}: {}", config_.width(), config_.source);
  }
  std::string summary(int64_t lines) const {
    return fmt::format("{} vectors each", (count_ + lines / 2) / lines);
  }

  static Result run(phasor::Encoder& encoder, const phasor::Texts& texts,
                    phasor::RetrievalOptions options) {
    options.offset_unit = phasor::OffsetUnit::kCharacters;
    return encoder.embed_tokens(texts, options);
  }

  std::string to_json(int64_t line, const Result& result, int64_t i) {
    count_ += result.offsets[i + 1] - result.offsets[i];
    std::string json = fmt::format("{{\"line\":{},\"tokens\":[", line);
    for (int64_t t = result.offsets[i]; t < result.offsets[i + 1]; ++t) {
      const std::span<const float> row =
          std::span(result.values).subspan(t * result.width, result.width);
      fmt::format_to(std::back_inserter(json),
                     R"({}{{"token":{},"start":{},"stop":{},"vector":[{}]}})",
                     json.ends_with('}') ? "," : "", piece_of(tokenizer_, result.token_ids[t]),
                     result.spans[t].begin, result.spans[t].end, fmt::join(row, ","));
    }
    return json + "]}\n";
  }

  void keep(const Result& result, int64_t i) {
    const int64_t begin = result.offsets[i], count = result.offsets[i + 1] - begin;
    append<float>(vectors_, result[i]);
    append<int32_t>(ids_, std::span(result.token_ids).subspan(begin, count));
    for (int64_t t = begin; t < begin + count; ++t) {
      const int32_t span[] = {static_cast<int32_t>(result.spans[t].begin),
                              static_cast<int32_t>(result.spans[t].end)};
      append<int32_t>(spans_, span);
    }
    offsets_.push_back(static_cast<int32_t>(ids_.size()));
    count_ = std::ssize(ids_);
  }

  void save(const std::string& file, std::map<std::string, std::string> made_by) const {
    const auto tokens = std::ssize(ids_), lines = std::ssize(offsets_) - 1;
    const SavedTensor tensors[] = {
        {"vectors", {tokens, config_.width()}, std::span<const float>(vectors_)},
        {"offsets", {lines + 1}, std::span<const int32_t>(offsets_)},
        {"token_ids", {tokens}, std::span<const int32_t>(ids_)},
        {"spans", {tokens, 2}, std::span<const int32_t>(spans_)}};
    made_by["format"] = "token vectors";
    made_by["similarity"] = config_.mean ? "meanmaxsim" : "maxsim";
    infer::save(file, tensors, made_by);
  }

 private:
  const phasor::Tokenizer& tokenizer_;
  const phasor::TokenVectorConfig& config_;
  int64_t count_ = 0;
  std::vector<float> vectors_;
  std::vector<int32_t> offsets_ = {0}, ids_, spans_;
};

phasor::RetrievalOptions retrieval_options(const VectorOptions& given, const phasor::Model& model,
                                           bool is_query, bool looks_up) {
  phasor::RetrievalOptions how;
  how.is_query = is_query;
  how.overflow = parse_name<phasor::Overflow>("--overflow", given.overflow);
  // The library does not know the line's number: the text is cut, and the stream refuses it.
  if (how.overflow == phasor::Overflow::kError) how.overflow = phasor::Overflow::kTruncate;
  if (looks_up && given.overflow != "truncate" && given.overflow != "error")
    throw UsageError(
        "--overflow: queries that are looked up are cut (truncate), or an error (error)");
  how.prompt = given.prefix.value_or(model.text().prompt_for(is_query));
  how.parse_special = given.common.special;
  return how;
}

/// Throws where a file cannot be written, before the work.
void check_output(const std::string& file) {
  if (!file.ends_with(".safetensors")) {
    throw UsageError(fmt::format(
        "-o: {}: --sparse and --tokens write .safetensors, or JSON lines without -o", file));
  }
  refuse_to_replace("-o", file);
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw phasor::InvalidArgument(
        fmt::format("-o: cannot write {}: there is no folder {}; make it", file, folder.string()));
  }
}

/// With the collection of one kind.
template <typename Kept>
int embed_lines(const VectorOptions& given, LineReader& lines, const std::string& output_file,
                bool is_query) {
  const bool quiet = given.common.quiet, saves = !output_file.empty();
  if (saves) check_output(output_file);
  const auto model = phasor::Model::load(given.common.model, load_options(given.common));
  Kept kept(*model, is_query);
  const phasor::RetrievalOptions how = retrieval_options(given, *model, is_query, kept.looks_up);
  phasor::Encoder encoder(model, encoder_options(given.common));
  if (!quiet) {
    report_note(fmt::format("{}, {}", kept.description(), to_string(encoder.precision())));
    note_slow(precision_of(given.common));
    if (!how.prompt->empty() && !given.prefix)
      report_note(fmt::format("before every text: \"{}\" (config_sentence_transformers.json)",
                              *how.prompt));
    for (const std::string& note : model->notes()) report_note(note);
  }
  Output output;
  int64_t written = 0;
  LineStream stream(lines, {.quiet = quiet,
                            .strict = given.strict,
                            .waits = saves,
                            .refuses_long = given.overflow == "error",
                            .line_bytes = 4096});
  const auto run = [&](auto texts, const phasor::Progress& progress, const auto& stop) {
    phasor::RetrievalOptions options = how;
    options.progress = progress;
    options.stop = stop;
    return Kept::run(encoder, texts, options);
  };
  const auto write = [&](std::span<const Line>, const typename Kept::Result& result,
                         const LinesDone& state) {
    const int64_t first = state.lines - result.size() + 1;
    for (int64_t i = 0; i < result.size() && !output.closed(); ++i) {
      ++written;
      saves ? kept.keep(result, i) : output.write(kept.to_json(first + i, result, i));
    }
    return !output.closed();
  };
  if (!stream.run<typename Kept::Result>(run, write))
    return report_error("interrupted", kBadInput);  // the signal ends the program
  if (saves) {
    kept.save(output_file, {{"model", weakly_canonical(model->folder()).filename().string()},
                            {"query", is_query ? "true" : "false"},
                            {"prefix", *how.prompt},
                            {"precision", std::string(to_string(encoder.precision()))}});
  }
  if (!quiet) report_note(stream.summary(kept.summary(std::max<int64_t>(written, 1))));
  return 0;
}

}  // namespace

int embed_for_retrieval(RetrievalKind kind, const VectorOptions& given, LineReader& lines,
                        const std::string& output, bool is_query) {
  return kind == RetrievalKind::kSparse ? embed_lines<SparseMatrix>(given, lines, output, is_query)
                                        : embed_lines<TokenRows>(given, lines, output, is_query);
}

}  // namespace infer
