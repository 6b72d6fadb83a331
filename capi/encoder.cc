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
    const float* const hidden = c.hidden != nullptr ? c.hidden : kept.hidden.data();
    result.borrow("hidden", -1, array_of(hidden, {tokens, d_model}));
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

/// Their arrays and strings under their names without `prefix`. The result keeps what they are of.
void fill(phasor_result& result, const std::vector<Part>& parts, std::string_view prefix = "") {
  for (const Part& part : parts) {
    std::string name(part.name);
    if (!prefix.empty() && part.name.starts_with(prefix) && part.name != "token_ids")
      name.erase(0, prefix.size());
    if (name == "dense") name = "vectors";
    std::visit(
        [&]<typename T>(std::span<const T> values) {
          const auto size = std::ssize(values);
          if constexpr (std::is_same_v<T, std::string>)
            result.strings[name] = {values.begin(), values.end()};
          else if (part.columns == 0)
            result.borrow(name, -1, array_of(values.data(), {size}));
          else
            result.borrow(name, -1, array_of(values.data(), {size / part.columns, part.columns}));
        },
        part.values);
  }
}

/// Of what a call made, which the result keeps.
template <typename Made>
const Made& take(phasor_result& result, Made made, std::string_view prefix = "") {
  const Made& kept = result.keep(std::move(made));
  fill(result, kept.parts(), prefix);
  return kept;
}

/// Empty: the checkpoint's own.
std::optional<std::string> prompt_of(const char* prompt, int64_t size) {
  if (size < 0) throw InvalidArgument(fmt::format("the prompt is {} bytes long", size));
  if (size > 0) require(prompt, "the prompt");
  if (prompt == nullptr) return std::nullopt;
  return size > 0 ? std::string(prompt, size) : std::string(prompt);
}

std::optional<Overflow> overflow_or_default(int32_t overflow) {
  if (overflow == PHASOR_OVERFLOW_DEFAULT) return std::nullopt;
  return overflow_of(overflow, Overflow::kError);
}

/// What all options of texts have.
template <typename Options>
TextOptions shared_options(const Options& c) {
  TextOptions options;
  options.max_tokens = c.max_tokens;
  options.progress = progress_of(c.progress, c.user);
  options.stop = stop_of(c.stop);
  options.parse_special = c.parse_special != 0;
  if constexpr (requires { c.truncation_side; })
    options.truncation_side = side_of(c.truncation_side);
  if constexpr (requires { c.overflow; }) options.overflow = overflow_or_default(c.overflow);
  if constexpr (requires { c.prompt; }) options.prompt = prompt_of(c.prompt, c.prompt_size);
  if constexpr (requires { c.offset_unit; }) {
    if (c.offset_unit != PHASOR_NO_OFFSETS) options.offset_unit = unit_of(c.offset_unit);
  }
  return options;
}

TextOptions embed_options(const phasor_embed_options* given, const Model& model) {
  const phasor_embed_options c =
      options_of(given, "phasor_embed_options", &phasor_embed_options::stop);
  TextOptions options = shared_options(c);
  if (c.pooling != nullptr) options.pooling = parse_pooling_modes(c.pooling);
  if (c.normalize != 0) options.normalize = c.normalize > 0;
  options.positions = positions_of(c.positions, model.config().position);
  options.output = array_at(c.output, c.output_size, "floats for vectors");
  return options;
}

TextOptions classify_options(const phasor_classify_options* given) {
  return shared_options(
      options_of(given, "phasor_classify_options", &phasor_classify_options::stop));
}

/// `prefix`: what the names of arrays leave out.
phasor_status embed_all(phasor_encoder* encoder, const phasor_texts* texts, int32_t kinds,
                        const phasor_retrieval_options* given, std::string_view prefix,
                        phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    constexpr int32_t kMost = 15;
    if (kinds < 1 || kinds > kMost) {
      refuse<InvalidArgument>("the kinds of vectors are {}; they must be a sum of PHASOR_…_VECTORS",
                              kinds);
    }
    const phasor_retrieval_options c =
        options_of(given, "phasor_retrieval_options", &phasor_retrieval_options::stop);
    TextOptions options = shared_options(c);
    options.role = c.is_query != 0 ? TextRole::kQuery : TextRole::kDocument;
    for (int32_t kind = 0; kind < 4; ++kind) {
      if ((kinds & (1 << kind)) != 0) options.kinds.push_back(static_cast<VectorKind>(kind));
    }
    take(filled, encoder->encoder.embed(texts_of(texts, "texts"), options), prefix);
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
    const phasor::TextOptions how = embed_options(options, encoder->encoder.model());
    if (how.output.data() == nullptr) require(result, "the place for the result");
    const auto all = texts_of(texts, "texts");
    if (!all.empty()) check_given("floats for vectors", how.output.data(), std::ssize(how.output));
    const phasor::Vectors& made = take(filled, encoder->encoder.embed(all, how));
    if (how.output.data() != nullptr) {
      const float* const output = how.output.data();
      filled.borrow("vectors", -1, array_of(output, {made.size(), made.width}));
    }
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
  return embed_all(encoder, texts, PHASOR_SPARSE_VECTORS, options, "sparse_", result);
}

phasor_status phasor_embed_tokens(phasor_encoder* encoder, const phasor_texts* texts,
                                  const phasor_retrieval_options* options, phasor_result** result) {
  return embed_all(encoder, texts, PHASOR_TOKEN_VECTORS, options, "token_", result);
}

phasor_status phasor_embed_all(phasor_encoder* encoder, const phasor_texts* texts, int32_t kinds,
                               const phasor_retrieval_options* options, phasor_result** result) {
  return embed_all(encoder, texts, kinds, options, "", result);
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
    const phasor::TextOptions how = classify_options(options);
    phasor::Encoder& inside = encoder->encoder;
    const auto texts = texts_of(first, "texts");
    take(filled, second == nullptr ? inside.classify(texts, how)
                                   : inside.classify(texts, texts_of(second, "second texts"), how));
  });
}

phasor_status phasor_label_tokens(phasor_encoder* encoder, const phasor_texts* texts,
                                  const phasor_label_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    const auto given =
        options_of(options, "phasor_label_options", &phasor_label_options::aggregation);
    phasor::TextOptions how = shared_options(given);
    how.aggregation = aggregation_of(given.aggregation);
    take(filled, encoder->encoder.label(texts_of(texts, "texts"), how));
  });
}

phasor_status phasor_rank(phasor_encoder* encoder, const phasor_texts* query,
                          const phasor_texts* documents, const phasor_classify_options* options,
                          phasor_result** result) {
  return make_result(result, [&](phasor_result& filled) {
    require(encoder, "the encoder");
    const phasor::TextOptions how = classify_options(options);
    const auto queries = texts_of(query, "queries");
    if (queries.size() != 1) {
      throw phasor::InvalidArgument(
          fmt::format("documents are ranked for one query, not {}", queries.size()));
    }
    const auto texts = texts_of(documents, "documents");
    take(filled, encoder->encoder.rank(queries[0], texts, how));
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
