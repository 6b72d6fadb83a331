// Vectors, states and tokens of texts, in the shapes of OpenAI and text-embeddings-inference.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "files/json_writer.h"
#include "infer/serve/exchange.h"
#include "lens/study/text.h"
#include "phasor/names.h"
#include "phasor/quantize.h"

namespace infer {
namespace {

/// How many of a vector's numbers are asked for: all of them, or `dimensions`.
int64_t dimensions_of(const Fields& fields, const ModelQueue& queue) {
  const int64_t dimensions = fields.count("dimensions");
  if (dimensions > queue.vector_width())
    invalid(fmt::format("`dimensions` is {}; the model's vectors have {}", dimensions,
                        queue.vector_width()));
  return dimensions == 0 ? queue.vector_width() : dimensions;
}

/// The first `dimensions` columns, again of length 1 where the whole had that.
void cut(std::vector<TextResult>& results, int64_t dimensions, bool normalizes) {
  for (TextResult& result : results) {
    if (dimensions == std::ssize(result.values)) return;
    result.values.resize(dimensions);
    if (!normalizes) continue;
    result.values = phasor::pool(result.values, dimensions,  // the mean of one
                                 {.modes = {phasor::PoolingMode::kMean}, .normalize = true});
  }
}

/// `input_type`: what the texts are chooses one of the model's prompts.
RunKind openai_kind(const Fields& fields, const phasor::TextConfig& text) {
  RunKind kind = run_kind(fields, RunKind::Task::kEmbed);
  const std::string type = fields.text("input_type", "");
  if (type == "query")
    kind.prompt = text.query_prompt().value_or(text.prompt);
  else if (type == "document")
    kind.prompt = text.document_prompt().value_or(text.prompt);
  else if (type.empty())
    kind.prompt = text.prompt;
  else
    invalid("`input_type` must be \"query\" or \"document\"");
  return kind;
}

/// Of a token as JSON and before: {"id":250001,"text":"","special":false,"start":null,"stop":null},
int64_t token_bytes(std::string_view piece) {
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

std::string prompt_of(const Fields& fields, const phasor::TextConfig& text,
                      const std::string& fallback) {
  const std::string name = fields.text("prompt_name", "");
  const auto found = text.prompts.find(name);
  if (name.empty()) return fallback;
  if (found == text.prompts.end())
    invalid(fmt::format("the model has no prompt \"{:.100}\"", name));
  return found->second;
}

RunKind run_kind(const Fields& fields, RunKind::Task task) {
  RunKind kind{.task = task,
               .truncate = fields.flag("truncate", true),
               .parse_special = fields.flag("parse_special", false)};
  const std::string side = fields.text("truncation_direction", "");
  if (equal_letters(side, "left"))
    kind.side = phasor::TruncationSide::kLeft;
  else if (equal_letters(side, "right"))
    kind.side = phasor::TruncationSide::kRight;
  else if (!side.empty())
    invalid("`truncation_direction` must be \"Left\" or \"Right\"");
  return kind;
}

std::string base64(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  return phasor::internal::to_base64(std::as_bytes(std::span(values)));
}

void Exchange::openai_embeddings() {
  const Fields fields(body());
  ModelQueue& queue = embedder(fields);
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64")
    invalid("`encoding_format` must be \"float\" or \"base64\"");
  const std::string type_name = fields.text("output_dtype", "float");
  if (type_name != "float" && type_name != "binary" && type_name != "ubinary")
    invalid("`output_dtype` must be \"float\", \"binary\" or \"ubinary\"");
  const auto type = type_name == "float" ? phasor::VectorType::kFloat32
                                         : phasor::parse<phasor::VectorType>(type_name);
  const int64_t dimensions = dimensions_of(fields, queue);
  const RunKind kind = openai_kind(fields, queue.model().text());
  std::vector<std::string> inputs = fields.texts("input", kMostTextsOfOpenAi);
  fields.refuse_others();
  constexpr int64_t kItemBytes = 80;  // {"object":"embedding","index":0,"embedding":},
  const int64_t bytes = std::ssize(inputs) * (dimensions * kNumberBytes + kItemBytes);
  run(queue, {.kind = kind, .texts = std::move(inputs)}, bytes,
      [this, &queue, bytes, dimensions, format, type](std::vector<TextResult> results) {
        cut(results, dimensions, true);
        JsonWriter json(bytes);
        const auto write = [&](size_t i) {
          json.object([&] {
            json.member("object", "embedding", "index", i);
            json.key("embedding");
            if (type != phasor::VectorType::kFloat32) {
              const auto bits = phasor::quantize(results[i].values, dimensions, type);
              format == "base64" ? json.value(phasor::internal::to_base64(bits))
                                 : json.value(numbers_of(bits, type));
            } else {
              format == "float" ? json.value(results[i].values)
                                : json.value(base64(results[i].values));
            }
          });
        };
        json.object([&] {
          json.member("object", "list");
          json.key("data").array([&] {
            for (size_t i = 0; i < results.size(); ++i) write(i);
          });
          json.member("model", queue.name());
          json.key("usage").object("prompt_tokens", tokens, "total_tokens", tokens);
        });
        answer(json.take());
      });
}

void Exchange::embed_kind(const char* otherwise) {
  const Fields fields(body());
  const std::string name = fields.text("kind", otherwise);
  if (name == "tokens") return embed_tokens(fields);
  if (name != "dense") invalid("`kind` must be \"dense\" or \"tokens\"");
  ModelQueue& queue = embedder(fields);
  RunKind kind = run_kind(fields, Task::kEmbed);
  kind.normalize = fields.flag("normalize", true);
  kind.prompt = prompt_of(fields, queue.model().text(), queue.model().text().prompt);
  const int64_t dimensions = dimensions_of(fields, queue);
  std::vector<std::string> inputs = fields.texts("inputs", service.options_.most_texts());
  fields.refuse_others();
  const auto bytes_of = [dimensions](const TextResult&) { return dimensions * kNumberBytes + 3; };
  const int64_t bytes = std::ssize(inputs) * bytes_of({});
  run(queue, {.kind = kind, .texts = std::move(inputs)}, bytes,
      [=, this, normalize = kind.normalize](std::vector<TextResult> results) {
        cut(results, dimensions, normalize);
        answer_each(results, bytes_of,
                    [](JsonWriter& json, const TextResult& each) { json.value(each.values); });
      });
}

void Exchange::similarity() {
  const Fields fields(body()), inputs(fields.at("inputs"), "inputs");
  ModelQueue& queue = embedder(fields);
  std::vector<std::string> texts = inputs.texts("sentences", service.options_.most_texts());
  texts.insert(texts.begin(), inputs.text("source_sentence"));
  RunKind kind = run_kind(fields, Task::kEmbed);
  kind.prompt = queue.model().sentence().prompt;
  fields.refuse_others();
  inputs.refuse_others();
  const int64_t bytes = std::ssize(texts) * kNumberBytes;
  run(queue, {.kind = kind, .texts = std::move(texts)}, bytes, [this](const auto& results) {
    std::vector<float> cosines;
    for (size_t i = 1; i < results.size(); ++i)
      cosines.push_back(static_cast<float>(phasor::cosine(results[0].values, results[i].values)));
    JsonWriter json;
    json.value(cosines);
    answer(json.take());
  });
}

void Exchange::tokenize() {
  const Fields fields(body());
  ModelQueue& queue = model(fields);
  const bool specials = fields.flag("add_special_tokens", true);
  const RunKind kind = run_kind(fields, Task::kTokenize);
  std::vector<std::string> inputs = fields.texts("inputs", service.options_.most_texts());
  fields.refuse_others();
  int64_t bytes = 0;
  for (const std::string& input : inputs) bytes += std::ssize(input);
  // `bytes` are those of a copy of the texts, which are tokenized when their turn has come: beside
  // the engine. How long the answer will be is seen from the tokens.
  auto answers = [this, &queue, specials, inputs,
                  parse_special = kind.parse_special](const std::vector<TextResult>&) {
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
        invalid(error.what());
      }
      for (const std::string& piece : tokens.pieces) bytes += token_bytes(piece);
      take(before + bytes, bytes);
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
  run(queue, {.kind = kind, .texts = std::move(inputs)}, bytes, std::move(answers));
}

}  // namespace infer
