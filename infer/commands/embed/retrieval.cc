#include "infer/commands/embed/retrieval.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "files/json_writer.h"
#include "files/utf8.h"
#include "infer/cli/save.h"
#include "infer/cli/temporary_file.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/matrix.h"
#include "phasor/errors.h"
#include "phasor/names.h"

namespace infer {
namespace {

using phasor::internal::JsonWriter;

/// Collects what a file holds.
template <typename T>
void append(std::vector<T>& all, std::span<const T> more) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::ssize(all) + std::ssize(more) > kMost)
    throw phasor::InvalidArgument(
        fmt::format("-o: a file holds at most {} numbers; give fewer lines", kMost));
  all.insert(all.end(), more.begin(), more.end());
}

void append_spans(std::vector<int32_t>& all, std::span<const phasor::TextSpan> more) {
  for (const auto& [begin, end] : more) {
    const int32_t span[] = {static_cast<int32_t>(begin), static_cast<int32_t>(end)};
    append<int32_t>(all, span);
  }
}

/// What a .safetensors file gets; tensors are borrowed.
struct SavedVectorsFile {
  std::vector<SavedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

std::string piece_of(const phasor::Tokenizer& tokenizer, int32_t id) {
  return id < tokenizer.vocab_size() ? tokenizer.piece(id) : "";
}

/// A matrix [lines, V] as scipy.sparse.csr_matrix holds it.
class SparseMatrix {
 public:
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

  /// A member of a line's object. The largest weights first.
  void write(const phasor::SparseVector& vector, JsonWriter& json) {
    count_ += std::ssize(vector.indices);
    json.key("sparse").array(best_first(vector.values), [&](size_t w) {
      json.object("index", vector.indices[w], "value", vector.values[w], "word",
                  piece_of(tokenizer_, vector.indices[w]));
    });
  }

  void keep(const phasor::SparseVector& vector) {
    append<int32_t>(indices_, vector.indices);
    append<float>(values_, vector.values);
    indptr_.push_back(static_cast<int32_t>(indices_.size()));
    count_ = std::ssize(indices_);
  }

  void add_to(SavedVectorsFile& file) {
    const auto numbers = std::ssize(values_), lines = std::ssize(indptr_) - 1;
    shape_ = {static_cast<int32_t>(lines), static_cast<int32_t>(width_)};
    file.tensors.push_back({"shape", {2}, std::span<const int32_t>(shape_)});
    file.tensors.push_back({"indptr", {lines + 1}, std::span<const int32_t>(indptr_)});
    file.tensors.push_back({"indices", {numbers}, std::span<const int32_t>(indices_)});
    file.tensors.push_back({"values", {numbers}, std::span<const float>(values_)});
    file.metadata["format"] = "csr";
  }

 private:
  const phasor::Tokenizer& tokenizer_;
  const phasor::SparseConfig& config_;
  int64_t width_, count_ = 0;
  std::vector<int32_t> shape_, indptr_ = {0}, indices_;
  std::vector<float> values_;
};

/// Vectors [N, W]; those of line i are the rows offsets[i] to offsets[i + 1] − 1.
class VectorRows {
 protected:
  void keep_rows(const phasor::VectorLists& result, int64_t i) {
    const int64_t begin = result.offsets[i], count = result.offsets[i + 1] - begin;
    append<float>(vectors_, result[i]);
    append_spans(spans_, std::span(result.spans).subspan(begin, count));
    offsets_.push_back(static_cast<int32_t>(count_ += count));
  }

  void add_rows_to(SavedVectorsFile& file, int64_t width) const {
    const auto lines = std::ssize(offsets_) - 1;
    file.tensors.push_back({"vectors", {count_, width}, std::span<const float>(vectors_)});
    file.tensors.push_back({"offsets", {lines + 1}, std::span<const int32_t>(offsets_)});
    file.tensors.push_back({"spans", {count_, 2}, std::span<const int32_t>(spans_)});
  }

  int64_t count_ = 0;

 private:
  std::vector<float> vectors_;
  std::vector<int32_t> offsets_ = {0}, spans_;
};

class TokenRows : public VectorRows {
 public:
  explicit TokenRows(const phasor::Model& model)
      : tokenizer_(model.tokenizer()), config_(model.token_vectors()) {}

  std::string description() const {
    return fmt::format("token vectors of width {}: {}", config_.width(), config_.source);
  }
  std::string summary(int64_t lines) const {
    return fmt::format("{} vectors each", (count_ + lines / 2) / lines);
  }

  void write(const phasor::TokenVectors& result, int64_t i, JsonWriter& json) {
    count_ += result.offsets[i + 1] - result.offsets[i];
    json.key("tokens").array([&] {
      for (int64_t t = result.offsets[i]; t < result.offsets[i + 1]; ++t) {
        json.object("token", piece_of(tokenizer_, result.token_ids[t]), "start",
                    result.spans[t].begin, "stop", result.spans[t].end, "vector",
                    std::span(result.values).subspan(t * result.width, result.width));
      }
    });
  }

  void keep(const phasor::TokenVectors& result, int64_t i) {
    const int64_t begin = result.offsets[i], count = result.offsets[i + 1] - begin;
    append<int32_t>(ids_, std::span(result.token_ids).subspan(begin, count));
    keep_rows(result, i);
  }

  void add_to(SavedVectorsFile& file) const {
    add_rows_to(file, config_.width());
    file.tensors.push_back({"token_ids", {count_}, std::span<const int32_t>(ids_)});
    file.metadata["format"] = "token vectors";
    file.metadata["similarity"] = config_.mean ? "meanmaxsim" : "maxsim";
  }

 private:
  const phasor::Tokenizer& tokenizer_;
  const phasor::TokenVectorConfig& config_;
  std::vector<int32_t> ids_;
};

/// A sparse vector of each line or a vector of each of its tokens; with both, also one vector of
/// the line.
class KindRows {
 public:
  using Result = phasor::AllVectors;

  KindRows(const RetrievalArguments& arguments, const phasor::Model& model) {
    if (arguments.sparse) sparse_.emplace(model, arguments.query);
    if (arguments.tokens) tokens_.emplace(model);
    if (!sparse_ || !tokens_) return;
    width_ = model.sentence().pooling.width(model.config().d_model);
    pooling_ = to_string(model.sentence().pooling);
  }

  bool looks_up() const { return sparse_ && sparse_->looks_up; }
  std::string description() const {
    if (!tokens_) return sparse_->description();
    if (!sparse_) return tokens_->description();
    return fmt::format("vectors of width {}; {}; {}", width_, sparse_->description(),
                       tokens_->description());
  }
  std::string summary(int64_t lines) const {
    if (!tokens_) return sparse_->summary(lines);
    if (!sparse_) return tokens_->summary(lines);
    return fmt::format("{} numbers, {}, {}", width_, sparse_->summary(lines),
                       tokens_->summary(lines));
  }

  Result run(phasor::Encoder& encoder, const phasor::Texts& texts,
             phasor::RetrievalOptions options) const {
    options.offset_unit = phasor::OffsetUnit::kCharacters;
    return {
        encoder.embed_all(texts, {width_ > 0, sparse_.has_value(), tokens_.has_value()}, options)};
  }

  void write(const Result& result, int64_t i, const std::string&, JsonWriter& json) {
    if (result.dense) json.member("embedding", (*result.dense)[i]);
    if (sparse_) sparse_->write((*result.sparse)[i], json);
    if (tokens_) tokens_->write(*result.tokens, i, json);
  }

  void keep(const Result& result, int64_t i) {
    if (result.dense) append<float>(vectors_, (*result.dense)[i]);
    if (sparse_) sparse_->keep((*result.sparse)[i]);
    if (tokens_) tokens_->keep(*result.tokens, i);
  }

  void add_to(SavedVectorsFile& file) {
    if (width_ > 0) {
      const int64_t lines = std::ssize(vectors_) / width_;
      file.metadata["pooling"] = pooling_;
      file.tensors.push_back({"embeddings", {lines, width_}, std::span<const float>(vectors_)});
    }
    if (sparse_) sparse_->add_to(file);
    if (tokens_) tokens_->add_to(file);
    if (width_ > 0) file.metadata["format"] = "embeddings, csr, token vectors";
  }

 private:
  std::optional<SparseMatrix> sparse_;
  std::optional<TokenRows> tokens_;
  int64_t width_ = 0;  // of the vector of a line; 0: there is none
  std::string pooling_;
  std::vector<float> vectors_;
};

class ChunkRows : public VectorRows {
 public:
  using Result = phasor::ChunkVectors;

  ChunkRows(phasor::EmbedOptions how, int64_t chunk_tokens, int64_t d_model)
      : width_(how.pooling->width(d_model)) {
    options_.chunk_tokens = chunk_tokens;
    options_.offset_unit = phasor::OffsetUnit::kCharacters;
    options_.embed = std::move(how);
  }

  static bool looks_up() { return false; }
  std::string description() const {
    return fmt::format("vectors of chunks: {}", to_string(*options_.embed.pooling));
  }
  std::string summary(int64_t lines) const {
    return fmt::format("{:.1f} chunks each", static_cast<double>(count_) / lines);
  }

  Result run(phasor::Encoder& encoder, const phasor::Texts& texts,
             const phasor::RetrievalOptions& options) const {
    phasor::ChunkOptions how = options_;
    how.embed.progress = options.progress;
    how.embed.stop = options.stop;
    return encoder.embed_chunks(texts, how);
  }

  void write(const Result& result, int64_t i, const std::string& text, JsonWriter& json) {
    const std::string valid = phasor::internal::to_valid_utf8(text).text;
    const std::vector<int64_t> bytes = phasor::internal::starts_of_characters(valid);
    count_ += result.offsets[i + 1] - result.offsets[i];
    json.key("chunks").array([&] {
      for (int64_t c = result.offsets[i]; c < result.offsets[i + 1]; ++c) {
        const auto [begin, end] = result.spans[c];
        json.object("start", begin, "stop", end, "text",
                    std::string_view(valid).substr(bytes[begin], bytes[end] - bytes[begin]),
                    "vector", std::span(result.values).subspan(c * result.width, result.width));
      }
    });
  }

  void keep(const Result& result, int64_t i) { keep_rows(result, i); }

  void add_to(SavedVectorsFile& file) const {
    add_rows_to(file, width_);
    file.metadata["format"] = "chunks";
    file.metadata["chunks"] =
        options_.chunk_tokens > 0 ? std::to_string(options_.chunk_tokens) : "sentences";
    file.metadata["pooling"] = to_string(*options_.embed.pooling);
    file.metadata["overflow"] = to_string(options_.embed.overflow);
  }

 private:
  phasor::ChunkOptions options_;
  int64_t width_;
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
        "-o: {}: --sparse, --tokens and --chunks write .safetensors, or JSON lines without -o",
        file));
  }
  refuse_to_replace("-o", file);
}

/// With the collection of one kind.
template <typename Kept>
int embed_lines(const RetrievalArguments& arguments, const VectorOptions& given,
                const std::shared_ptr<const phasor::Model>& model, LineReader& lines,
                const std::string& output_file, Kept kept) {
  const bool quiet = given.common.quiet, saves = !output_file.empty();
  const phasor::RetrievalOptions how =
      retrieval_options(given, *model, arguments.query, kept.looks_up());
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
    return kept.run(encoder, texts, options);
  };
  const auto write = [&](std::span<const Line> window, const typename Kept::Result& result) {
    for (int64_t i = 0; i < result.size() && !output.closed(); ++i) {
      ++written;
      if (saves) {
        kept.keep(result, i);
        continue;
      }
      JsonWriter json;
      json.object([&] {
        json.member("line", window[i].number);
        kept.write(result, i, window[i].text, json);
      });
      output.write(json.take() + "\n");
    }
    return !output.closed();
  };
  if (!stream.run<typename Kept::Result>(run, write))
    return report_error("interrupted", kBadInput);  // the signal ends the program
  if (saves) {
    SavedVectorsFile file = {.tensors = {}, .metadata = model_metadata(encoder)};
    file.metadata["query"] = arguments.query ? "true" : "false";
    kept.add_to(file);
    save("-o", output_file, file.tensors, file.metadata);
  }
  if (!quiet) report_note(stream.summary(kept.summary(std::max<int64_t>(written, 1))));
  return 0;
}

}  // namespace

int embed_for_retrieval(const RetrievalArguments& arguments, const VectorOptions& given,
                        LineReader& lines, const std::string& output) {
  if (!output.empty()) check_output(output);
  const auto model = phasor::Model::load(given.common.model, load_options(given.common));
  const auto embed = [&](auto kept) {
    return embed_lines(arguments, given, model, lines, output, std::move(kept));
  };
  if (arguments.chunk_tokens) {
    phasor::EmbedOptions how = embed_options(given, *model);
    how.prompt = given.prefix.value_or(model->text().prompt_for(false));
    if (how.overflow == phasor::Overflow::kError) how.overflow = phasor::Overflow::kTruncate;
    return embed(ChunkRows(std::move(how), *arguments.chunk_tokens, model->config().d_model));
  }
  return embed(KindRows(arguments, *model));
}

}  // namespace infer
