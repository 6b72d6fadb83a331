// Vectors, states and tokens of texts, in the shapes of OpenAI and text-embeddings-inference.
#include <algorithm>
#include <bit>
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

/// Of a token as JSON and before: {"id":250001,"text":"","special":false,"start":null,"stop":null},
int64_t token_bytes(std::string_view piece) {
  constexpr int64_t kCharBytes = 6;  // the longest escape of a byte in JSON
  constexpr int64_t kBeside = 80 + sizeof(std::string) + sizeof(int32_t) + sizeof(phasor::TextSpan);
  int64_t bytes = kBeside + std::ssize(piece);
  for (const char c : piece) {
    const bool is_plain = c >= ' ' && c < '\x7f';
    bytes += !is_plain ? kCharBytes : c == '"' || c == '\\' ? 2 : 1;
  }
  return bytes;
}

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

std::string base64(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  return phasor::internal::to_base64(std::as_bytes(std::span(values)));
}

void Exchange::openai_embeddings() {
  const Fields fields(body());
  ModelQueue& queue = embedder(fields);
  const std::string format = fields.one_of("encoding_format", {"float", "base64"});
  const std::string type_name = fields.one_of("output_dtype", {"float", "binary", "ubinary"});
  const auto type = type_name == "float" ? phasor::VectorType::kFloat32
                                         : phasor::parse<phasor::VectorType>(type_name);
  Work work{.options = options_of(fields, kTasks.embed)};
  const Dense dense(queue, work.options);
  work.texts = fields.texts("input", kMostTextsOfOpenAi);
  fields.refuse_others();
  run(queue, std::move(work), [this, &queue, dense, format, type](const Columns& results) {
    JsonWriter json(share.bytes());
    const auto write = [&](int64_t i) {
      const std::vector<float> vector = dense.cut(results.row<float>("dense", i));
      json.object([&] {
        json.member("object", "embedding", "index", i);
        json.key("embedding");
        if (type != phasor::VectorType::kFloat32) {
          const auto bits = phasor::quantize(vector, dense.width, type);
          format == "base64" ? json.value(phasor::internal::to_base64(bits))
                             : json.value(numbers_of(bits, type));
        } else {
          format == "float" ? json.value(vector) : json.value(base64(vector));
        }
      });
    };
    json.object([&] {
      json.member("object", "list");
      json.key("data").array([&] {
        for (int64_t i = 0; i < texts; ++i) write(i);
      });
      json.member("model", queue.name());
      json.key("usage").object("prompt_tokens", tokens, "total_tokens", tokens);
    });
    answer(json.take());
  });
}

void Exchange::embed() {
  const Fields fields(body());
  if (fields.one_of("kind", {"dense", "tokens"}) == "tokens") return as(&Exchange::embed_tokens);
  ModelQueue& queue = embedder(fields);
  Work work = work_of(fields, kTasks.embed);
  const Dense dense(queue, work.options);
  run(queue, std::move(work), [this, dense](const Columns& results) {
    answer_each([&](JsonWriter& json, int64_t i) {
      json.value(dense.cut(results.row<float>("dense", i)));
    });
  });
}

void Exchange::similarity() {
  const Fields fields(body()), inputs(fields.at("inputs"), "inputs");
  ModelQueue& queue = embedder(fields);
  std::vector<std::string> texts = inputs.texts("sentences", service.options_.most_texts());
  texts.push_back(inputs.text("source_sentence"));  // last, so that sentences keep their numbers
  phasor::TextOptions options = options_of(fields, kTasks.embed);
  fields.refuse_others();
  inputs.refuse_others();
  run(queue, {.options = std::move(options), .texts = std::move(texts)},
      [this](const Columns& results) {
        const auto vector = [&](int64_t i) { return results.row<float>("dense", i); };
        std::vector<float> cosines;
        for (int64_t i = 0; i + 1 < this->texts; ++i)
          cosines.push_back(static_cast<float>(phasor::cosine(vector(this->texts - 1), vector(i))));
        JsonWriter json;
        json.value(cosines);
        answer(json.take());
      });
}

void Exchange::tokenize() {
  const Fields fields(body());
  ModelQueue& queue = model(fields);
  const bool specials = fields.flag("add_special_tokens", true);
  Work work = work_of(fields, kTasks.tokenize);
  // A copy of the texts is tokenized when their turn has come: beside the engine. How long the
  // answer will be is seen from the tokens.
  auto answers = [this, &queue, specials, inputs = work.texts,
                  parse_special = work.options.parse_special](const Columns&) {
    const phasor::Tokenizer& tokenizer = queue.model().tokenizer();
    const int64_t before = share.bytes();
    int64_t bytes = 0;
    JsonWriter json;
    const auto write = [&](const std::string& input) {
      phasor::Tokens tokens;
      try {
        tokens = tokenizer.encode(input, {.parse_special = parse_special,
                                          .offset_unit = phasor::OffsetUnit::kCharacters});
      } catch (const phasor::ModelError& error) {  // this text's pieces are out of proportion
        invalid("{}", error.what());
      }
      for (const std::string& piece : tokens.pieces) bytes += token_bytes(piece);
      take(before + bytes);
      this->tokens += std::ssize(tokens.ids);
      const std::vector<int64_t> places = phasor::internal::text_places(queue.model(), tokens.ids);
      json.array([&] {
        for (int64_t t = 0; t < std::ssize(tokens.ids); ++t) {
          const bool special = !std::ranges::binary_search(places, t);
          if (special && !specials) continue;
          const auto& [begin, end] = tokens.offsets[t];
          json.object("id", tokens.ids[t], "text", tokens.pieces[t], "special", special, "start",
                      special ? std::nullopt : std::optional(begin), "stop",
                      special ? std::nullopt : std::optional(end));
        }
      });
    };
    json.array(inputs, write);
    answer(json.take());
  };
  run(queue, std::move(work), std::move(answers));
}

}  // namespace infer
