// The description of the routes in OpenAPI 3.1, for those who make clients of it.
#include <fmt/format.h>

#include <array>
#include <map>

#include "files/json_writer.h"
#include "infer/serve/exchange.h"
#include "phasor/version.h"

namespace infer {
namespace {

struct Schema {
  std::string_view name, json;
};

/// A request with texts: properties of its own, and options of its call.
struct Request {
  std::string_view name, required, json;
  std::array<Spellings, 3> options = {kAllFields};
};

const Request kRequests[] = {
    {"Embeddings",
     R"("input")",
     R"json("input": {"$ref": "#/components/schemas/Texts"},
"encoding_format": {"enum": ["float", "base64"], "default": "float"},
"output_dtype": {"enum": ["float", "binary", "ubinary"], "description": "a bit for each number"})json",
     {kAllFields, kOpenAiFields}},
    {"Embed",
     R"("inputs")",
     R"json("inputs": {"$ref": "#/components/schemas/Texts"},
"kind": {"enum": ["dense", "tokens"], "default": "dense", "description": "tokens: a vector of each token; without normalize and dimensions; the prompt query: the texts are queries"})json",
     {kAllFields, kDenseFields, kPromptField}},
    {"EmbedSparse",
     R"("inputs")",
     R"json("inputs": {"$ref": "#/components/schemas/Texts"})json",
     {kAllFields, kPromptField}},
    {"EmbedAll", R"("inputs")", R"json("inputs": {"$ref": "#/components/schemas/Texts"})json"},
    {"Predict", R"("inputs")", R"json("inputs": {"anyOf": [{"$ref": "#/components/schemas/Text"},
{"$ref": "#/components/schemas/Pair"},
{"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Pair"}}]},
"raw_scores": {"type": "boolean", "default": false, "description": "logits, not probabilities"})json"},
    {"PredictTokens",
     R"("inputs")",
     R"json("inputs": {"$ref": "#/components/schemas/Texts"},
"parameters": {"type": "object", "description": "may have aggregation_strategy"})json",
     {kSpecialField, kAggregationField}},
    {"Rerank", R"("query", "texts")", R"json("query": {"$ref": "#/components/schemas/Text"},
"texts": {"$ref": "#/components/schemas/Texts"},
"raw_scores": {"type": "boolean", "default": false, "description": "logits, not probabilities"},
"return_text": {"type": "boolean", "default": false})json"},
    {"RerankV1", R"("query", "documents")", R"json("query": {"$ref": "#/components/schemas/Text"},
"documents": {"type": "array", "minItems": 1, "items": {"anyOf": [{"$ref": "#/components/schemas/Text"},
{"type": "object", "required": ["text"], "properties": {"text": {"$ref": "#/components/schemas/Text"}}}]}},
"top_n": {"type": "integer", "minimum": 1},
"return_documents": {"type": "boolean", "default": false})json"},
    {"Similarity", R"("inputs")",
     R"json("inputs": {"type": "object", "required": ["source_sentence", "sentences"],
"properties": {
"source_sentence": {"$ref": "#/components/schemas/Text"}, "sentences": {"$ref": "#/components/schemas/Texts"}}})json"},
    {"Tokenize", R"("inputs")", R"json("inputs": {"$ref": "#/components/schemas/Texts"},
"add_special_tokens": {"type": "boolean", "default": true})json"},
};

// What requests and answers are made of.
constexpr Schema kSchemas[] = {
    {"Text", R"json({"type": "string", "minLength": 1})json"},
    {"Texts", R"json({"anyOf": [{"$ref": "#/components/schemas/Text"},
{"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Text"}}]})json"},
    {"Pair",
     R"json({"type": "array", "minItems": 1, "maxItems": 2, "items": {"$ref": "#/components/schemas/Text"}})json"},
    {"ByKind",
     R"json({"anyOf": [{"$ref": "#/components/schemas/Embed"}, {"$ref": "#/components/schemas/Predict"},
{"$ref": "#/components/schemas/RerankAny"}, {"$ref": "#/components/schemas/Similarity"},
{"$ref": "#/components/schemas/PredictTokens"}, {"$ref": "#/components/schemas/EmbedSparse"}]})json"},
    {"RerankAny",
     R"json({"anyOf": [{"$ref": "#/components/schemas/Rerank"}, {"$ref": "#/components/schemas/RerankV1"}]})json"},
    {"RanksAny",
     R"json({"anyOf": [{"$ref": "#/components/schemas/Ranks"}, {"$ref": "#/components/schemas/Reranked"}]})json"},
    {"Observe",
     R"json({"type": "object", "required": ["texts"], "properties": {
"texts": {"anyOf": [{"$ref": "#/components/schemas/Text"},
{"type": "array", "minItems": 1, "maxItems": 2, "items": {"$ref": "#/components/schemas/Text"}}]},
"model": {"type": "string"}, "positions": {"type": "string"}, "parse_special": {"type": "boolean"},
"edits": {"$ref": "#/components/schemas/Texts"}, "cut_residuals": {"$ref": "#/components/schemas/Texts"},
"beside": {"type": "string"}, "beside_positions": {"type": "string"}}})json"},
    {"Vector", R"json({"type": "array", "items": {"type": "number"}})json"},
    {"Vectors", R"json({"type": "array", "items": {"$ref": "#/components/schemas/Vector"}})json"},
    {"SparseVector", R"json({"type": "array", "items": {"type": "object",
"required": ["index", "value"], "properties": {"index": {"type": "integer"}, "value": {"type": "number"}}}})json"},
    {"Sparse",
     R"json({"type": "array", "items": {"$ref": "#/components/schemas/SparseVector"}})json"},
    {"States", R"json({"type": "array", "items": {"$ref": "#/components/schemas/Vectors"}})json"},
    {"VectorsAny",
     R"json({"anyOf": [{"$ref": "#/components/schemas/Vectors"}, {"$ref": "#/components/schemas/States"}]})json"},
    {"Cosines", R"json({"$ref": "#/components/schemas/Vector"})json"},
    {"TextLabels",
     R"json({"type": "array", "items": {"type": "object", "required": ["score", "label"], "properties": {
"score": {"type": "number"}, "label": {"type": "string"}}}})json"},
    {"Spans",
     R"json({"type": "array", "items": {"type": "object", "required": ["score", "word", "start", "end"],
"properties": {"entity_group": {"type": "string"}, "entity": {"type": "string"}, "index": {"type": "integer"}, "score": {"type": "number"},
"word": {"type": "string"}, "start": {"type": "integer"}, "end": {"type": "integer"}}}})json"},
    {"SpansAny", R"json({"anyOf": [{"$ref": "#/components/schemas/Spans"},
{"type": "array", "items": {"$ref": "#/components/schemas/Spans"}}]})json"},
    {"Labels", R"json({"anyOf": [{"$ref": "#/components/schemas/TextLabels"},
{"type": "array", "items": {"$ref": "#/components/schemas/TextLabels"}}]})json"},
    {"Ranks",
     R"json({"type": "array", "items": {"type": "object", "required": ["index", "score"], "properties": {
"index": {"type": "integer"}, "score": {"type": "number"}, "text": {"type": "string"}}}})json"},
    {"Usage", R"json({"type": "object", "properties": {"prompt_tokens": {"type": "integer"},
"total_tokens": {"type": "integer"}}})json"},
    {"Reranked",
     R"json({"type": "object", "required": ["results"], "properties": {"model": {"type": "string"},
"usage": {"$ref": "#/components/schemas/Usage"}, "results": {"type": "array", "items": {"type": "object",
"required": ["index", "relevance_score"], "properties": {"index": {"type": "integer"},
"relevance_score": {"type": "number"}, "document": {"type": "object"}}}}}})json"},
    {"EmbeddingsAnswer",
     R"json({"type": "object", "required": ["object", "data", "model", "usage"], "properties": {
"object": {"const": "list"}, "model": {"type": "string"}, "usage": {"$ref": "#/components/schemas/Usage"},
"data": {"type": "array", "items": {"type": "object", "required": ["object", "index", "embedding"], "properties": {
"object": {"const": "embedding"}, "index": {"type": "integer"}, "embedding": {"anyOf": [
{"$ref": "#/components/schemas/Vector"}, {"type": "string", "description": "base64 of little-endian float32"}]}}}}}})json"},
    {"AnswerByKind",
     R"json({"anyOf": [{"$ref": "#/components/schemas/Vectors"}, {"$ref": "#/components/schemas/Labels"},
{"$ref": "#/components/schemas/RanksAny"}, {"$ref": "#/components/schemas/Cosines"},
{"$ref": "#/components/schemas/SpansAny"}, {"$ref": "#/components/schemas/Sparse"},
{"$ref": "#/components/schemas/States"}]})json"},
    {"TokensAnswer", R"json({"type": "array", "items": {"type": "array", "items": {"type": "object",
"required": ["id", "text", "special"], "properties": {"id": {"type": "integer"}, "text": {"type": "string"},
"special": {"type": "boolean"}, "start": {"type": ["integer", "null"]}, "stop": {"type": ["integer", "null"]}}}}})json"},
    {"Model",
     R"json({"type": "object", "required": ["id", "object"], "properties": {"id": {"type": "string"},
"object": {"const": "model"}, "created": {"type": "integer"}, "owned_by": {"type": "string"}}})json"},
    {"Models",
     R"json({"type": "object", "required": ["object", "data"], "properties": {"object": {"const": "list"},
"data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}})json"},
    {"Health",
     R"json({"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}})json"},
    {"Info",
     R"json({"type": "object", "required": ["model_id", "max_input_length", "version"]})json"},
    {"Document", R"json({"type": "object"})json"},
    {"Error",
     R"json({"type": "object", "required": ["error"], "properties": {"error": {"anyOf": [{"type": "string"},
{"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}}]},
"error_type": {"type": "string"}}})json"},
};

/// Its schema.
std::string schema_of(const Request& request) {
  constexpr std::string_view kModel =
      R"("model": {"type": "string", "description": "its name; without it, the first model that can answer"})";
  JsonWriter options;
  options.object([&] {
    for (const Spellings spellings : request.options)
      for (const Spelling& each : spellings) write_schema(each, options);
  });
  return fmt::format(R"({{"type": "object", "required": [{}], "properties": {{{},{},{}}})",
                     request.required, request.json, kModel, options.take().substr(1));
}

/// {"content": {"application/json": …}} of a schema's name; of "text/html", that type.
std::string content(std::string_view schema) {
  if (schema.find('/') != schema.npos) return fmt::format(R"("content": {{"{}": {{}}}})", schema);
  return fmt::format(
      R"("content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/{}"}}}}}})",
      schema);
}

std::string operation(const Route& route, std::string_view parameter) {
  std::string json = fmt::format(R"({{"summary": {})", json_string(route.summary));
  if (!parameter.empty()) {
    json += fmt::format(
        R"(, "parameters": [{{"name": "{}", "in": "path", "required": true, "schema": {{"type": "string"}}}}])",
        parameter);
  }
  if (!route.request.empty())
    json += fmt::format(R"(, "requestBody": {{"required": true, {}}})", content(route.request));
  if (route.open) json += R"(, "security": [])";
  return json + fmt::format(R"(, "responses": {{"200": {{"description": "the answer", {}}}, )"
                            R"("default": {{"description": "an error", {}}}}}}})",
                            content(route.answer), content("Error"));
}

}  // namespace

std::string openapi_json(std::span<const Route> routes) {
  std::map<std::string, std::map<std::string, std::string>> paths;  // operations by method
  for (const Route& route : routes) {
    const bool has_more = route.path.size() > 1 && route.path.ends_with('/');
    const std::string path = std::string(route.path) + (has_more ? "{name}" : "");
    const char* const method = route.method == "GET" ? "get" : "post";
    paths[path][method] = operation(route, has_more ? "name" : "");
  }
  phasor::internal::JsonWriter json;
  json.object([&] {
    json.member("openapi", "3.1.0");
    json.key("info").object([&] {
      json.member("title", "phasor");
      json.member("version", PHASOR_VERSION);
    });
    json.key("security").raw(R"([{}, {"bearer": []}])");
    json.key("paths").object([&] {
      for (const auto& each : paths) {
        json.key(each.first).object([&] {
          for (const auto& [method, text] : each.second) json.key(method).raw(text);
        });
      }
    });
    json.key("components").object([&] {
      json.key("securitySchemes").raw(R"({"bearer": {"type": "http", "scheme": "bearer"}})");
      json.key("schemas").object([&] {
        for (const Request& request : kRequests) json.key(request.name).raw(schema_of(request));
        for (const Schema& schema : kSchemas) json.key(schema.name).raw(schema.json);
      });
    });
  });
  return json.take();
}

}  // namespace infer
