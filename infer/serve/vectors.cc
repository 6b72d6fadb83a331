// Vectors, states and tokens of texts, in the shapes of OpenAI and text-embeddings-inference.
#include <algorithm>
#include <utility>

#include "files/json_writer.h"
#include "infer/serve/exchange.h"
#include "lens/study/text.h"
#include "phasor/names.h"
#include "phasor/quantize.h"

namespace infer {
namespace {

/// How vectors of texts are made, and how many of their numbers are asked for. These are cut behind
/// the run, which requests that differ in it share.
struct Dense {
  Dense(const ModelQueue& queue, phasor::TextOptions& options)
      : width(std::exchange(options.dimensions, 0)), normalizes(options.normalize.value_or(false)) {
    if (width > queue.vector_width())
      invalid("`dimensions` is {}; the model's vectors have {}", width, queue.vector_width());
    if (width == 0) width = queue.vector_width();
  }

  /// A vector's first `width` numbers, again of length 1 where the whole has that.
  std::vector<float> cut(std::span<const float> vector) const {
    const auto first = vector.first(width);
    if (!normalizes || width == std::ssize(vector)) return {first.begin(), first.end()};
    return phasor::pool(first, width,  // the mean of one
                        {.modes = {phasor::PoolingMode::kMean}, .normalize = true});
  }

  int64_t width;
  bool normalizes;
};

/// Of a token in memory, and {"id":1996,"text":"the","special":false,"start":0,"stop":3},
constexpr int64_t kTokenBytes = 144;

/// Bytes of bits, as numbers.
std::vector<int> numbers_of(std::span<const std::byte> bits, phasor::VectorType type) {
  std::vector<int> numbers;
  for (const std::byte byte : bits) {
    const auto number = std::to_integer<uint8_t>(byte);
    numbers.push_back(type == phasor::VectorType::kUbinary ? number : static_cast<int8_t>(number));
  }
  return numbers;
}

}  // namespace

void Exchange::openai_embeddings() {
  ModelQueue& queue = embedder();
  const std::string format = fields->one_of("encoding_format", {"float", "base64"});
  const std::string type_name = fields->one_of("output_dtype", {"float", "binary", "ubinary"});
  const bool is_float = type_name == "float", is_base64 = format == "base64";
  const auto type =
      is_float ? phasor::VectorType::kFloat32 : phasor::parse<phasor::VectorType>(type_name);
  Work work{.options = options_of(kTasks.embed)};
  const Dense dense(queue, work.options);
  work.texts = fields->texts("input", kMostTextsOfOpenAi);
  fields->refuse_others();
  run(queue, std::move(work),
      [=, this, &queue](JsonWriter& json, const Columns& results, const Work&) {
        const auto write = [&](int64_t i) {
          const std::vector<float> vector = dense.cut(results.row<float>("dense", i));
          json.object([&] {
            json.member("object", "embedding", "index", i);
            json.key("embedding");
            if (is_float && !is_base64) return json.value(vector);
            const auto bytes = phasor::quantize(vector, dense.width, type);
            is_base64 ? json.value(phasor::internal::to_base64(bytes))
                      : json.value(numbers_of(bytes, type));
          });
        };
        json.object([&] {
          json.member("object", "list");
          write_each(json.key("data"), texts, write);
          json.member("model", queue.name());
          json.key("usage").object("prompt_tokens", tokens, "total_tokens", tokens);
        });
      });
}

void Exchange::embed() {
  if (fields->one_of("kind", {"dense", "tokens"}) == "tokens") return as(&Exchange::embed_tokens);
  ModelQueue& queue = embedder();
  Work work = work_of(kTasks.embed);
  const Dense dense(queue, work.options);
  run(queue, std::move(work), [=, this](JsonWriter& json, const Columns& results, const Work&) {
    write_each(json, texts,
               [&](int64_t i) { json.value(dense.cut(results.row<float>("dense", i))); });
  });
}

void Exchange::run_rows(ModelQueue& queue, Work work, const char* array, size_t width) {
  run(queue, std::move(work), [=, this](JsonWriter& json, const Columns& results, const Work&) {
    write_each(json, texts, [&](int64_t i) {
      const auto values = results.row<float>(array, i);
      json.array([&] {
        for (size_t row = 0; row < values.size(); row += width)
          json.value(values.subspan(row, width));
      });
    });
  });
}

void Exchange::embed_all() {
  ModelQueue& queue = model();
  Work work = work_of(kTasks.states);
  work.options.prompt = "";
  run_rows(queue, std::move(work), "state_vectors", queue.model().config().d_model);
}

void Exchange::embed_tokens() {
  fields->one_of("kind", {"tokens", "dense"});
  ModelQueue& queue = model(&ModelQueue::makes_token_vectors, "makes no vector of each token");
  run_rows(queue, work_of(kTasks.tokens), "token_vectors", queue.model().token_vectors().width());
}

void Exchange::embed_sparse() {
  ModelQueue& queue = model(&ModelQueue::makes_sparse_vectors, "makes no sparse vectors");
  run(queue, work_of(kTasks.sparse), [this](JsonWriter& json, const Columns& results, const Work&) {
    write_each(json, texts, [&](int64_t i) {
      const auto indices = results.row<int32_t>("sparse_indices", i);
      const auto values = results.row<float>("sparse_values", i);
      json.array([&] {
        for (size_t k = 0; k < indices.size(); ++k)
          json.object("index", indices[k], "value", values[k]);
      });
    });
  });
}

void Exchange::similarity() {
  const Fields inputs(fields->at("inputs"), "inputs");
  ModelQueue& queue = embedder();
  Work work{.options = options_of(kTasks.embed)};
  work.texts = inputs.texts("sentences", service.options_.most_texts());
  work.texts.push_back(inputs.text("source_sentence"));  // last: sentences keep their numbers
  fields->refuse_others();
  inputs.refuse_others();
  run(queue, std::move(work), [this](JsonWriter& json, const Columns& results, const Work&) {
    const auto vector = [&](int64_t i) { return results.row<float>("dense", i); };
    std::vector<float> cosines;
    for (int64_t i = 0; i + 1 < texts; ++i)
      cosines.push_back(static_cast<float>(phasor::cosine(vector(texts - 1), vector(i))));
    json.value(cosines);
  });
}

/// Texts are tokenized when their turn has come: beside the engine.
void Exchange::tokenize() {
  ModelQueue& queue = model();
  const bool specials = fields->flag("add_special_tokens", true);
  run(queue, work_of(kTasks.tokenize),
      [=, this, &queue](JsonWriter& json, const Columns&, const Work& work) {
        const auto write = [&](int64_t i) {
          phasor::Tokens made;
          try {
            made = queue.model().tokenizer().encode(
                work.texts[i], {.parse_special = work.options.parse_special,
                                .offset_unit = phasor::OffsetUnit::kCharacters});
          } catch (const phasor::ModelError& error) {  // this text's pieces are out of proportion
            invalid("{}", error.what());
          }
          add_room(kTokenBytes * std::ssize(made.ids));
          tokens += std::ssize(made.ids);
          const std::vector<int64_t> places =
              phasor::internal::text_places(queue.model(), made.ids);
          json.array([&] {
            for (int64_t t = 0; t < std::ssize(made.ids); ++t) {
              const bool special = !std::ranges::binary_search(places, t);
              if (special && !specials) continue;
              const auto& [begin, end] = made.offsets[t];
              json.object("id", made.ids[t], "text", made.pieces[t], "special", special, "start",
                          special ? std::nullopt : std::optional(begin), "stop",
                          special ? std::nullopt : std::optional(end));
            }
          });
        };
        write_each(json, texts, write);
      });
}

}  // namespace infer
