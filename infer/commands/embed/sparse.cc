#include "infer/commands/embed/sparse.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
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

/// A matrix [lines, V] as scipy.sparse.csr_matrix holds it.
class SparseMatrix {
 public:
  void add(const phasor::SparseVector& row) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (std::ssize(indices_) + std::ssize(row.indices) > kMost) {
      throw phasor::InvalidArgument(
          fmt::format("--sparse: a file holds at most {} weights; give fewer lines", kMost));
    }
    indices_.insert(indices_.end(), row.indices.begin(), row.indices.end());
    values_.insert(values_.end(), row.values.begin(), row.values.end());
    indptr_.push_back(static_cast<int32_t>(indices_.size()));
  }

  /// What made the matrix.
  struct Maker {
    std::string model, prefix, precision;
    bool is_query;
  };
  void save(const std::string& file, int64_t width, const Maker& maker) const {
    const auto numbers = std::ssize(values_), lines = std::ssize(indptr_) - 1;
    const int32_t shape[] = {static_cast<int32_t>(lines), static_cast<int32_t>(width)};
    const SavedTensor tensors[] = {{"shape", {2}, std::span<const int32_t>(shape)},
                                   {"indptr", {lines + 1}, std::span<const int32_t>(indptr_)},
                                   {"indices", {numbers}, std::span<const int32_t>(indices_)},
                                   {"values", {numbers}, std::span<const float>(values_)}};
    infer::save(file, tensors,
                {{"format", "csr"},
                 {"model", maker.model},
                 {"query", maker.is_query ? "true" : "false"},
                 {"prefix", maker.prefix},
                 {"precision", maker.precision}});
  }

 private:
  std::vector<int32_t> indptr_ = {0}, indices_;
  std::vector<float> values_;
};

/// The largest weights first.
std::string to_json(int64_t line, const phasor::SparseVector& vector,
                    const phasor::Tokenizer& tokenizer) {
  std::vector<size_t> order(vector.indices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return vector.values[i]; });
  std::string json = fmt::format("{{\"line\":{},\"sparse\":[", line);
  for (const size_t i : order) {
    const int32_t id = vector.indices[i];
    const std::string piece = id < tokenizer.vocab_size() ? std::string(tokenizer.piece(id)) : "";
    fmt::format_to(std::back_inserter(json), R"({}{{"index":{},"value":{},"word":{}}})",
                   json.ends_with('}') ? "," : "", id, vector.values[i], json_string(piece));
  }
  return json + "]}\n";
}

phasor::RetrievalOptions sparse_options(const VectorOptions& given, const phasor::Model& model,
                                        bool is_query) {
  phasor::RetrievalOptions how;
  how.is_query = is_query;
  how.overflow = parse_name<phasor::Overflow>("--overflow", given.overflow);
  // The library does not know the line's number: the text is cut, and the stream refuses it.
  if (how.overflow == phasor::Overflow::kError) how.overflow = phasor::Overflow::kTruncate;
  const bool looks_up = is_query && !model.sparse().query_weights.empty();
  if (looks_up && given.overflow != "truncate" && given.overflow != "error")
    throw UsageError(
        "--overflow: queries that are looked up are cut (truncate), or an error (error)");
  const phasor::TextConfig& text = model.text();
  const auto named = is_query ? text.query_prompt() : text.document_prompt();
  how.prompt = given.prefix.value_or(named.value_or(text.prompt));
  how.parse_special = given.common.special;
  return how;
}

}  // namespace

int embed_sparse(const VectorOptions& given, LineReader& lines, const std::string& output_file,
                 bool is_query) {
  const bool quiet = given.common.quiet, saves = !output_file.empty();
  if (saves && !output_file.ends_with(".safetensors"))
    throw UsageError(
        fmt::format("-o: {}: --sparse writes .safetensors, or JSON lines without -o", output_file));
  if (saves) {
    refuse_to_replace("-o", output_file);
    const std::filesystem::path folder = std::filesystem::path(output_file).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder)) {
      throw phasor::InvalidArgument(fmt::format(
          "-o: cannot write {}: there is no folder {}; make it", output_file, folder.string()));
    }
  }
  const auto model = phasor::Model::load(given.common.model, load_options(given.common));
  const phasor::SparseConfig& config = model->sparse();
  const phasor::Tokenizer& tokenizer = model->tokenizer();
  const phasor::RetrievalOptions how = sparse_options(given, *model, is_query);
  phasor::Encoder encoder(model, encoder_options(given.common));
  if (!quiet) {
    const bool looks_up = is_query && !config.query_weights.empty();
    report_note(fmt::format("sparse vectors: {}{}, {}", config.source,
                            looks_up ? ", queries looked up" : "", to_string(encoder.precision())));
    note_slow(precision_of(given.common));
    if (!how.prompt->empty() && !given.prefix)
      report_note(fmt::format("before every text: \"{}\" (config_sentence_transformers.json)",
                              *how.prompt));
    for (const std::string& note : model->notes()) report_note(note);
  }
  Output output;
  SparseMatrix matrix;
  int64_t weights = 0, written = 0;
  LineStream stream(lines, {.quiet = quiet,
                            .strict = given.strict,
                            .waits = saves,
                            .refuses_long = given.overflow == "error",
                            .line_bytes = 4096});
  const auto run = [&](auto texts, const phasor::Progress& progress, const auto& stop) {
    phasor::RetrievalOptions options = how;
    options.progress = progress;
    options.stop = stop;
    return encoder.embed_sparse(texts, options);
  };
  const auto write = [&](std::span<const Line>, const phasor::SparseVectors& result,
                         const LinesDone& state) {
    const int64_t first = state.lines - result.size() + 1;
    for (int64_t i = 0; i < result.size() && !output.closed(); ++i) {
      weights += std::ssize(result[i].indices);
      ++written;
      if (saves)
        matrix.add(result[i]);
      else
        output.write(to_json(first + i, result[i], tokenizer));
    }
    return !output.closed();
  };
  if (!stream.run<phasor::SparseVectors>(run, write))
    return report_error("interrupted", kBadInput);  // the signal ends the program
  if (saves) {
    matrix.save(output_file, model->config().vocab_size,
                {.model = weakly_canonical(model->folder()).filename().string(),
                 .prefix = *how.prompt,
                 .precision = std::string(to_string(encoder.precision())),
                 .is_query = is_query});
  }
  if (quiet) return 0;
  const int64_t done = std::max<int64_t>(written, 1);
  report_note(stream.summary(fmt::format("{} of {} weights each", (weights + done / 2) / done,
                                         model->config().vocab_size)));
  return 0;
}

}  // namespace infer
