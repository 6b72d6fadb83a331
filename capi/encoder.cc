// Encoders, and what they make of texts.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "capi/boundary.h"
#include "files/refuse.h"
#include "phasor/quantize.h"

namespace phasor::internal {
namespace {

/// Adds arrays and strings, borrowed from what the result keeps.
void fill(phasor_result& result, const std::vector<ResultArray>& arrays) {
  for (const ResultArray& array : arrays) {
    const std::string name(array.name);
    std::visit(
        [&]<typename T>(std::span<const T> values) {
          const auto size = std::ssize(values);
          if constexpr (std::is_same_v<T, std::string>)
            result.strings[name] = {values.begin(), values.end()};
          else if (array.columns == 0)
            result.borrow(name, -1, array_of(values.data(), {size}));
          else
            result.borrow(name, -1, array_of(values.data(), {size / array.columns, array.columns}));
        },
        array.values);
  }
}

/// What a call on texts makes, `call(encoder, texts, options)`, becomes a result.
template <typename Call>
phasor_status run(phasor_encoder* encoder, const phasor_texts* texts,
                  const phasor_text_options* options, phasor_result** result, Call call) {
  const auto fill_in = [&](phasor_result& filled) {
    require(encoder, "the encoder");
    Encoder& inside = encoder->encoder;
    const TextOptions how = text_options_of(options, inside.model().config().position);
    const float* const output = how.output.data();
    if (output == nullptr) require(result, "the place for the result");
    const auto given = texts_of(texts, "texts");
    if (!given.empty()) check_given("floats for vectors", output, std::ssize(how.output));
    const auto& made = filled.keep(std::invoke(call, inside, given, how));
    fill(filled, made.arrays());
    if constexpr (requires { made.dense; }) {
      if (output != nullptr)
        filled.borrow("dense", -1, array_of(output, {made.size(), made.width}));
    }
  };
  return make_result(result, fill_in, true);
}

phasor_encoder* encoder_of(Encoder encoder) {
  std::string info = fmt::format(
      R"({{"threads":{},"precision":"{}","kernels":"{}","max_tokens":{}}})", encoder.threads(),
      to_string(encoder.precision()), to_string(encoder.kernels()), encoder.max_tokens());
  return new phasor_encoder{std::move(encoder), std::move(info)};
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
        options_of(options, "phasor_encoder_options", &phasor_encoder_options::reserved);
    *encoder = encoder_of(phasor::Encoder(
        model->model, {.threads = how.threads,
                       .precision = value_of(how.precision, phasor::Precision::kFloat32),
                       .kernels = value_of(how.kernels, phasor::KernelLibrary::kAuto)}));
  });
}

const char* phasor_encoder_info(const phasor_encoder* encoder) {
  return encoder != nullptr ? encoder->info.c_str() : nullptr;
}

void phasor_encoder_free(phasor_encoder* encoder) { delete encoder; }

phasor_status phasor_embed(phasor_encoder* encoder, const phasor_texts* texts,
                           const phasor_text_options* options, phasor_result** result) {
  return run(encoder, texts, options, result, &phasor::Encoder::embed);
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
      refuse<phasor::InvalidArgument>(
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
                              const phasor_texts* second, const phasor_text_options* options,
                              phasor_result** result) {
  return run(
      encoder, first, options, result, [&](auto& inside, const auto& given, const auto& how) {
        return second == nullptr ? inside.classify(given, how)
                                 : inside.classify(given, texts_of(second, "second texts"), how);
      });
}

phasor_status phasor_label(phasor_encoder* encoder, const phasor_texts* texts,
                           const phasor_text_options* options, phasor_result** result) {
  return run(encoder, texts, options, result, &phasor::Encoder::label);
}

phasor_status phasor_rank(phasor_encoder* encoder, const phasor_texts* query,
                          const phasor_texts* documents, const phasor_text_options* options,
                          phasor_result** result) {
  return run(encoder, documents, options, result,
             [&](auto& inside, const auto& given, const auto& how) {
               const auto queries = texts_of(query, "queries");
               if (queries.size() != 1) {
                 refuse<phasor::InvalidArgument>("documents are ranked for one query, not {}",
                                                 queries.size());
               }
               return inside.rank(queries[0], given, how);
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
      refuse<phasor::InvalidArgument>("the memory for logits has {} floats; {} states take {} each",
                                      logits_size, n, vocabulary);
    }
    const std::vector<float> made =
        encoder->encoder.mlm_logits(array_at(hidden, n * d_model, "states"));
    std::copy(made.begin(), made.end(), places.begin());
  });
}

}  // extern "C"
