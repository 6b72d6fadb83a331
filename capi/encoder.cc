// Encoders and their runs.
#include <fmt/format.h>

#include <algorithm>

#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/hook_observer.h"
#include "files/refuse.h"
#include "phasor/errors.h"
#include "phasor/names.h"
#include "phasor/quantize.h"

namespace phasor::internal {
namespace {

/// What phasor_run_options say, and the observer that they need.
struct Run {
  Run(const phasor_run_options* given, const Model& model)
      : c(options_of(given, "phasor_run_options", &phasor_run_options::stop)),
        d_model(model.config().d_model),
        observer(array_at(c.hooks, c.num_hooks, "hooks"),
                 array_at(c.record, c.num_record, "recorded hooks"), model.config().num_layers) {
    options.observer = c.num_hooks + c.num_record > 0 ? &observer : nullptr;
    options.positions = positions_of(c.positions, model.config().position);
    options.overflow = overflow_of(c.overflow, Overflow::kError);
    options.cut_residuals = cuts_of(c);
    options.hidden = array_if_given(c.hidden, c.hidden_size, "floats for hidden states");
    options.token_types = array_if_given(c.token_types, c.num_token_types, "token types");
    options.stop = stop_of(c.stop);
    options.parse_special = c.parse_special != 0;
  }

  void finish(Encoding encoding, phasor_result& result) {
    const Encoding& kept = result.keep(std::move(encoding));
    const int64_t tokens = kept.offsets.back();
    result.borrow("hidden", -1, array_of(kept.hidden.data(), {tokens, d_model}));
    result.borrow("offsets", -1, array_of(kept.offsets.data(), {kept.size() + 1}));
    result.borrow("token_ids", -1, array_of(kept.token_ids.data(), {tokens}));
    result.borrow("positions", -1, array_of(kept.positions.data(), {tokens}));
    observer.finish(kept.size(), result);
  }

  phasor_run_options c;
  int64_t d_model;
  HookObserver observer;
  RunOptions options = {};
};

/// Embeddings or a Classification.
template <typename Reported>
void add_reports(const Reported& reported, phasor_result& result) {
  std::vector<int64_t> tokens, dropped, invalid;
  for (int64_t i = 0; i < reported.size(); ++i) {
    const TextReport& report = reported.report(i);
    tokens.push_back(report.num_tokens);
    dropped.push_back(report.dropped_tokens);
    invalid.push_back(report.invalid_bytes);
  }
  result.own("num_tokens", std::move(tokens));
  result.own("dropped_tokens", std::move(dropped));
  result.own("invalid_bytes", std::move(invalid));
}

/// Empty: the checkpoint's own.
std::optional<std::string> prompt_of(const char* prompt, int64_t size) {
  if (size < 0) throw InvalidArgument(fmt::format("the prompt is {} bytes long", size));
  if (size > 0) require(prompt, "the prompt");
  if (prompt == nullptr) return std::nullopt;
  return size > 0 ? std::string(prompt, size) : std::string(prompt);
}

EmbedOptions embed_options(const phasor_embed_options* given, const Model& model,
                           Overflow otherwise = Overflow::kTruncate) {
  const phasor_embed_options c =
      options_of(given, "phasor_embed_options", &phasor_embed_options::stop);
  EmbedOptions options;
  if (c.pooling != nullptr) {
    options.pooling = (model.has_sentence() ? model.sentence().pooling : Pooling())
                          .with_modes(parse_pooling_modes(c.pooling));
  } else if (c.normalize != 0) {
    options.pooling = model.sentence().pooling;
  }
  if (c.normalize != 0) options.pooling->normalize = c.normalize > 0;
  options.prompt = prompt_of(c.prompt, c.prompt_size);
  options.max_tokens = c.max_tokens;
  options.overflow = overflow_of(c.overflow, otherwise);
  options.positions = positions_of(c.positions, model.config().position);
  options.output = array_at(c.output, c.output_size, "floats for vectors");
  options.progress = progress_of(c.progress, c.user);
  options.stop = stop_of(c.stop);
  options.parse_special = c.parse_special != 0;
  options.truncation_side = side_of(c.truncation_side);
  return options;
}

RetrievalOptions retrieval_options(const phasor_retrieval_options* given) {
  const phasor_retrieval_options c =
      options_of(given, "phasor_retrieval_options", &phasor_retrieval_options::stop);
  return {.is_query = c.is_query != 0,
          .offset_unit = unit_of(c.offset_unit),
          .prompt = prompt_of(c.prompt, c.prompt_size),
          .max_tokens = c.max_tokens,
          .overflow = overflow_of(c.overflow, Overflow::kTruncate),
          .progress = progress_of(c.progress, c.user),
          .stop = stop_of(c.stop),
          .parse_special = c.parse_special != 0,
          .truncation_side = side_of(c.truncation_side)};
}

/// Those of each text, from [N, 2] and [B + 1].
std::vector<std::vector<TextSpan>> spans_of(const int64_t* spans, const int64_t* span_offsets,
                                            int64_t num_texts) {
  const std::span offsets = array_at(span_offsets, num_texts + 1, "the spans' offsets");
  constexpr int64_t kMost = int64_t{1} << 60;
  if (offsets[0] != 0 || !std::ranges::is_sorted(offsets) || offsets.back() > kMost)
    throw InvalidArgument("the spans' offsets must begin with 0 and rise");
  const std::span numbers = array_at(spans, 2 * offsets.back(), "the spans");
  std::vector<std::vector<TextSpan>> all(num_texts);
  for (int64_t i = 0; i < num_texts; ++i) {
    for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k)
      all[i].push_back({numbers[2 * k], numbers[2 * k + 1]});
  }
  return all;
}

std::vector<int64_t> numbers_of(const std::vector<TextSpan>& spans) {
  std::vector<int64_t> numbers;
  for (const auto& [begin, end] : spans) numbers.insert(numbers.end(), {begin, end});
  return numbers;
}

/// The arrays of phasor_embed_sparse(), whose names get a prefix.
void add_sparse(const SparseVectors& made, const std::string& prefix, phasor_result& filled) {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> indices;
  std::vector<float> values;
  for (const SparseVector& each : made.vectors) {
    indices.insert(indices.end(), each.indices.begin(), each.indices.end());
    values.insert(values.end(), each.values.begin(), each.values.end());
    offsets.push_back(std::ssize(values));
  }
  filled.own(prefix + "offsets", std::move(offsets));
  filled.own(prefix + "indices", std::move(indices));
  filled.own(prefix + "values", std::move(values));
}

/// Those of phasor_embed_tokens().
void add_tokens(TokenVectors made, const std::string& prefix, OffsetUnit unit,
                phasor_result& filled) {
  const auto count = std::ssize(made.token_ids);
  filled.own(prefix + "vectors", std::move(made.values), {count, made.width});
  filled.own(prefix + "offsets", std::move(made.offsets));
  filled.own(prefix.empty() ? "token_ids" : prefix + "ids", std::move(made.token_ids));
  if (unit != OffsetUnit::kNone) filled.own(prefix + "spans", numbers_of(made.spans), {count, 2});
}

ClassifyOptions classify_options(const phasor_classify_options* given) {
  const phasor_classify_options c =
      options_of(given, "phasor_classify_options", &phasor_classify_options::stop);
  return {.max_tokens = c.max_tokens,
          .overflow = overflow_of(c.overflow, Overflow::kTruncate),
          .progress = progress_of(c.progress, c.user),
          .stop = stop_of(c.stop),
          .parse_special = c.parse_special != 0,
          .truncation_side = side_of(c.truncation_side)};
}

/// `alone`: the names of arrays have no prefix.
phasor_status embed_all(phasor_encoder* encoder, const phasor_texts* texts, int32_t kinds,
                        const phasor_retrieval_options* options, bool alone,
                        phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    constexpr int32_t kAll = PHASOR_DENSE_VECTORS | PHASOR_SPARSE_VECTORS | PHASOR_TOKEN_VECTORS;
    if (kinds < 0 || kinds > kAll) {
      refuse<InvalidArgument>("the kinds of vectors are {}; they must be a sum of PHASOR_…_VECTORS",
                              kinds);
    }
    const RetrievalOptions how = retrieval_options(options);
    AllVectors made = encoder->encoder.embed_all(texts_of(texts, "texts"),
                                                 {.dense = (kinds & PHASOR_DENSE_VECTORS) != 0,
                                                  .sparse = (kinds & PHASOR_SPARSE_VECTORS) != 0,
                                                  .tokens = (kinds & PHASOR_TOKEN_VECTORS) != 0},
                                                 how);
    add_reports(made, filled);
    if (made.dense) {
      filled.borrow("vectors", -1,
                    array_of(filled.keep(*made.dense).values().data(),
                             {made.dense->size(), made.dense->width()}));
    }
    if (made.sparse) add_sparse(*made.sparse, alone ? "" : "sparse_", filled);
    if (made.tokens)
      add_tokens(std::move(*made.tokens), alone ? "" : "token_", how.offset_unit, filled);
  });
}

}  // namespace
}  // namespace phasor::internal

extern "C" {

using namespace phasor::internal;  // NOLINT

phasor_status phasor_encoder_create(const phasor_model* model,
                                    const phasor_encoder_options* options,
                                    phasor_encoder** encoder) {
  return guarded([&] {
    require(model, "the model");
    require(encoder, "the place for the encoder");
    const phasor_encoder_options how =
        options_of(options, "phasor_encoder_options", &phasor_encoder_options::precision);
    *encoder = new phasor_encoder{
        phasor::Encoder(model->model, {.threads = how.threads,
                                       .precision = value_of<phasor::Precision>(how.precision),
                                       .kernels = value_of<phasor::KernelLibrary>(how.kernels)})};
  });
}

phasor_status phasor_encoder_replica(const phasor_encoder* encoder, phasor_encoder** replica) {
  return guarded([&] {
    require(encoder, "the encoder");
    require(replica, "the place for the replica");
    *replica = new phasor_encoder{encoder->encoder.replica()};
  });
}

int32_t phasor_encoder_threads(const phasor_encoder* encoder) {
  return encoder != nullptr ? encoder->encoder.threads() : 0;
}

int32_t phasor_encoder_kernels(const phasor_encoder* encoder) {
  return encoder != nullptr ? static_cast<int32_t>(encoder->encoder.kernels()) : 0;
}

int32_t phasor_encoder_precision(const phasor_encoder* encoder) {
  return encoder != nullptr ? static_cast<int32_t>(encoder->encoder.precision()) : 0;
}

const char* phasor_faster_than_float32(void) { return made_once<phasor::faster_than_float32>(""); }

void phasor_encoder_free(phasor_encoder* encoder) { delete encoder; }

phasor_status phasor_encode(phasor_encoder* encoder, const phasor_texts* texts,
                            const phasor_run_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(encoder, "the encoder");
    Run run(options, encoder->encoder.model());
    run.finish(encoder->encoder.encode(texts_of(texts, "texts"), run.options), made);
  });
}

phasor_status phasor_encode_ids(phasor_encoder* encoder, const int32_t* token_ids,
                                const int64_t* offsets, int64_t num_texts,
                                const phasor_run_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    require(encoder, "the encoder");
    require(offsets, "offsets");
    check_count("texts", offsets, num_texts);
    const auto places = array_at(offsets, num_texts + 1, "offsets");
    Run run(options, encoder->encoder.model());
    const auto ids = array_at(token_ids, places.back(), "token ids");
    run.finish(encoder->encoder.encode_ids(ids, places, run.options), made);
  });
}

phasor_status phasor_embed(phasor_encoder* encoder, const phasor_texts* texts,
                           const phasor_embed_options* options, phasor_result** result) {
  return make_result_if_wanted(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    const phasor::EmbedOptions how = embed_options(options, encoder->encoder.model());
    if (how.output.data() == nullptr) require(result, "the place for the result");
    const auto all = texts_of(texts, "texts");
    if (!all.empty()) check_given("floats for vectors", how.output.data(), std::ssize(how.output));
    const phasor::Embeddings made = encoder->encoder.embed(all, how);
    if (result == nullptr) return;
    filled.borrow("vectors", -1,
                  array_of(filled.keep(made).values().data(), {made.size(), made.width()}));
    add_reports(made, filled);
  });
}

phasor_status phasor_embedding_width(const phasor_encoder* encoder,
                                     const phasor_embed_options* options, int64_t* width) {
  return guarded([&] {
    require(encoder, "the encoder");
    require(width, "the place for the width");
    const phasor::Encoder& inside = encoder->encoder;
    *width = inside.embedding_width(embed_options(options, inside.model()));
  });
}

phasor_status phasor_embed_sparse(phasor_encoder* encoder, const phasor_texts* texts,
                                  const phasor_retrieval_options* options, phasor_result** result) {
  return embed_all(encoder, texts, PHASOR_SPARSE_VECTORS, options, true, result);
}

phasor_status phasor_embed_tokens(phasor_encoder* encoder, const phasor_texts* texts,
                                  const phasor_retrieval_options* options, phasor_result** result) {
  return embed_all(encoder, texts, PHASOR_TOKEN_VECTORS, options, true, result);
}

phasor_status phasor_embed_all(phasor_encoder* encoder, const phasor_texts* texts, int32_t kinds,
                               const phasor_retrieval_options* options, phasor_result** result) {
  return embed_all(encoder, texts, kinds, options, false, result);
}

phasor_status phasor_embed_chunks(phasor_encoder* encoder, const phasor_texts* texts,
                                  int64_t chunk_tokens, const int64_t* spans,
                                  const int64_t* span_offsets, int32_t offset_unit,
                                  const phasor_embed_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    phasor::ChunkOptions how;
    how.chunk_tokens = chunk_tokens;
    const auto all = texts_of(texts, "texts");
    if (span_offsets == nullptr)
      check_given("spans", spans, 0);
    else
      how.spans = spans_of(spans, span_offsets, std::ssize(all));
    how.offset_unit = unit_of(offset_unit);
    how.embed = embed_options(options, encoder->encoder.model(), phasor::Overflow::kWindow);
    phasor::ChunkVectors made = encoder->encoder.embed_chunks(all, how);
    const auto count = std::ssize(made.spans);
    add_reports(made, filled);
    filled.own("vectors", std::move(made.values), {count, made.width});
    filled.own("offsets", std::move(made.offsets));
    filled.own("spans", numbers_of(made.spans), {count, 2});
  });
}

phasor_status phasor_quantize(const float* vectors, int64_t count, int64_t width, const char* type,
                              const float* least, const float* most, void* output,
                              int64_t output_size) {
  return guarded([&] {
    require(type, "the type");
    const auto of = phasor::parse<phasor::VectorType>(type);
    const int64_t bytes = phasor::vector_bytes(of, width);  // or it is no width
    constexpr int64_t kMost = int64_t{1} << 62;
    if (count < 0 || count > kMost / (4 * width) || output_size != count * bytes) {
      phasor::internal::refuse<phasor::InvalidArgument>(
          "{} vectors of {} bytes do not fill the {} bytes of the output", count, bytes,
          output_size);
    }
    phasor::ColumnRanges ranges;
    for (const auto& [given, kept] : {std::pair(least, &ranges.least), {most, &ranges.most}})
      if (given != nullptr) kept->assign(given, given + width);
    const auto made =
        phasor::quantize(array_at(vectors, count * width, "the vectors"), width, of, ranges);
    std::ranges::copy(made,
                      array_at(static_cast<std::byte*>(output), output_size, "the output").begin());
  });
}

phasor_status phasor_classify(phasor_encoder* encoder, const phasor_texts* first,
                              const phasor_texts* second, const phasor_classify_options* options,
                              phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    const phasor::ClassifyOptions how = classify_options(options);
    phasor::Encoder& inside = encoder->encoder;
    const auto texts = texts_of(first, "texts");
    const phasor::Classification made =
        second == nullptr ? inside.classify(texts, how)
                          : inside.classify(texts, texts_of(second, "second texts"), how);
    const phasor::Classification& kept = filled.keep(made);
    const std::vector<int64_t> shape = {kept.size(), kept.num_labels()};
    filled.borrow("logits", -1, array_of(kept.logits().data(), shape));
    filled.borrow("probabilities", -1, array_of(kept.probabilities().data(), shape));
    filled.strings["labels"] = inside.model().weights().classifier->labels;
    add_reports(kept, filled);
  });
}

phasor_status phasor_label_tokens(phasor_encoder* encoder, const phasor_texts* texts,
                                  const phasor_label_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    const auto given =
        options_of(options, "phasor_label_options", &phasor_label_options::aggregation);
    phasor::LabelOptions how = {.aggregation = aggregation_of(given.aggregation),
                                .max_tokens = given.max_tokens,
                                .parse_special = given.parse_special != 0,
                                .progress = progress_of(given.progress, given.user),
                                .stop = stop_of(given.stop)};
    if (given.offset_unit != PHASOR_NO_OFFSETS) how.offset_unit = unit_of(given.offset_unit);
    phasor::LabelledTexts made = encoder->encoder.label_tokens(texts_of(texts, "texts"), how);
    std::vector<int64_t> offsets = {0}, spans, tokens;
    std::vector<float> scores;
    std::vector<std::string>& labels = filled.strings["labels"];
    for (phasor::LabelledText& text : made.texts) {
      for (phasor::LabelledSpan& each : text.spans) {
        labels.push_back(std::move(each.label));
        scores.push_back(each.score);
        spans.insert(spans.end(), {each.span.begin, each.span.end});
        tokens.insert(tokens.end(), {each.tokens.begin, each.tokens.end});
      }
      offsets.push_back(std::ssize(scores));
    }
    const std::vector<int64_t> shape = {std::ssize(scores), 2};
    filled.own("offsets", std::move(offsets));
    filled.own("spans", std::move(spans), shape);
    filled.own("tokens", std::move(tokens), shape);
    filled.own("scores", std::move(scores));
    add_reports(made, filled);
  });
}

phasor_status phasor_rank(phasor_encoder* encoder, const phasor_texts* query,
                          const phasor_texts* documents, const phasor_classify_options* options,
                          phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    const phasor::ClassifyOptions how = classify_options(options);
    const auto queries = texts_of(query, "queries");
    if (queries.size() != 1) {
      throw phasor::InvalidArgument(
          fmt::format("documents are ranked for one query, not {}", queries.size()));
    }
    const auto texts = texts_of(documents, "documents");
    phasor::Ranking ranking = encoder->encoder.rank(queries[0], texts, how);
    filled.own("order", std::move(ranking.order));
    filled.own("scores", std::move(ranking.scores));
  });
}

phasor_status phasor_mlm_logits(phasor_encoder* encoder, const float* hidden, int64_t n,
                                float* logits, int64_t logits_size) {
  return guarded([&] {
    require(encoder, "the encoder");
    const phasor::ModelConfig& config = encoder->encoder.model().config();
    const int64_t d_model = config.d_model, vocabulary = config.vocab_size;
    const auto places = array_at(logits, logits_size, "floats for logits");
    if (n < 0 || logits_size / vocabulary != n || logits_size % vocabulary != 0) {
      throw phasor::InvalidArgument(
          fmt::format("the memory for logits has {} floats; {} states take {} each", logits_size, n,
                      vocabulary));
    }
    const std::vector<float> made =
        encoder->encoder.mlm_logits(array_at(hidden, n * d_model, "states"));
    std::copy(made.begin(), made.end(), places.begin());
  });
}

}  // extern "C"
