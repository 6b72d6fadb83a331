// The description of the routes in OpenAPI 3.1, for those who make clients of it.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "infer/serve/routes.h"
#include "phasor/version.h"

namespace infer {
namespace {

using nlohmann::json;

/// What requests and answers are made of, in short: "number" is a type and "#Text" the schema of
/// that name; [x] is a list of x, and [x, y] one or the other; any other object has these
/// properties, of which "x!" must be there.
constexpr std::pair<const char*, const char*> kSchemas[] = {
    {"Text", R"({"type": "string", "minLength": 1})"},
    {"Texts", R"(["#Text", {"type": "array", "minItems": 1, "items": "#Text"}])"},
    {"Pair", R"({"type": "array", "minItems": 1, "maxItems": 2, "items": "#Text"})"},
    {"Documents", R"({"type": "array", "minItems": 1, "items": ["#Text", {"text!": "#Text"}]})"},
    {"Count", R"({"type": "integer", "minimum": 1})"},
    {"Encoding", R"({"enum": ["float", "base64"], "default": "float"})"},
    {"VectorType",
     R"({"enum": ["float", "binary", "ubinary"], "description": "a bit for each number"})"},
    {"Logits",
     R"({"type": "boolean", "default": false, "description": "logits, not probabilities"})"},
    {"Parameters", R"({"type": "object", "description": "may have aggregation_strategy"})"},
    {"Vector", R"(["number"])"},
    {"Vectors", R"(["#Vector"])"},
    {"States", R"(["#Vectors"])"},
    {"Sparse", R"([[{"index!": "integer", "value!": "number"}]])"},
    {"TextLabels", R"([{"score!": "number", "label!": "string"}])"},
    {"Labels", R"(["#TextLabels", ["#TextLabels"]])"},
    {"Spans", R"([{"entity_group": "string", "entity": "string", "index": "integer",
"score!": "number", "word!": "string", "start!": "integer", "end!": "integer"}])"},
    {"AnySpans", R"(["#Spans", ["#Spans"]])"},
    {"Ranks", R"([{"index!": "integer", "score!": "number", "text": "string"}])"},
    {"Usage", R"({"prompt_tokens": "integer", "total_tokens": "integer"})"},
    {"Reranked", R"({"model": "string", "usage": "#Usage", "results!": [
{"index!": "integer", "relevance_score!": "number", "document": "object"}]})"},
    {"EmbeddingsAnswer", R"({"object!": {"const": "list"}, "model!": "string", "usage!": "#Usage",
"data!": [{"object!": {"const": "embedding"}, "index!": "integer",
"embedding!": ["#Vector", {"type": "string", "description": "base64 of little-endian float32"}]}]})"},
    {"AllTokens", R"([[{"id!": "integer", "text!": "string", "special!": "boolean",
"start": ["integer", "null"], "stop": ["integer", "null"]}]])"},
    {"Model",
     R"({"id!": "string", "object!": {"const": "model"}, "created": "integer", "owned_by": "string"})"},
    {"Models", R"({"object!": {"const": "list"}, "data!": ["#Model"]})"},
    {"Health", R"({"status!": {"const": "ok"}})"},
    {"Info", R"({"model_id!": "string", "max_input_length!": "integer", "version!": "string"})"},
    {"Document", R"("object")"},
    {"Error", R"({"error!": ["string", {"message!": "string"}], "error_type": "string"})"},
};

/// The JSON Schema of what is written in short.
json schema_of(const json& brief) {
  if (brief.is_string()) {
    const std::string name = brief;
    return name[0] == '#' ? json{{"$ref", "#/components/schemas/" + name.substr(1)}}
                          : json{{"type", name}};
  }
  json made;
  if (brief.is_array() && brief.size() == 1) {
    made = {{"type", "array"}, {"items", schema_of(brief[0])}};
  } else if (brief.is_array()) {
    for (const json& each : brief) made["anyOf"].push_back(schema_of(each));
  } else if (brief.contains("type") || brief.contains("enum") || brief.contains("const")) {
    made = brief;
    if (made.contains("items")) made["items"] = schema_of(made["items"]);
  } else {
    made["type"] = "object";
    for (const auto& [key, value] : brief.items()) {
      const std::string name = key.substr(0, key.find('!'));
      made["properties"][name] = schema_of(value);
      if (name != key) made["required"].push_back(name);
    }
  }
  return made;
}

json schema_of(const Request& request) {
  json made = schema_of(json::parse(request.properties));
  json& properties = made["properties"];
  properties["model"] = {{"type", "string"},
                         {"description", "its name; without it, the first model that can answer"}};
  for (const Spelling& each : spellings_of(request))
    properties[std::string(each.name)] = schema_of(each);
  made["examples"] = json::array({json::parse(request.example)});
  return made;
}

/// To the schemas of which a body may be one; "text/html" is its type.
void add_schema(std::string_view name, json& body) {
  json& content = body["content"];
  if (name.find('/') != name.npos) {
    content[std::string(name)] = json::object();
    return;
  }
  json& schema = content["application/json"]["schema"];
  const json added = schema_of("#" + std::string(name));
  if (schema.is_null())
    schema = added;
  else if (schema.contains("anyOf"))
    schema["anyOf"].push_back(added);
  else
    schema = {{"anyOf", {schema, added}}};
}

}  // namespace

std::string openapi_json() {
  json document = json::parse(R"({"openapi": "3.1.0", "info": {"title": "phasor"},
"security": [{}, {"bearer": []}],
"components": {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}}})");
  document["info"]["version"] = PHASOR_VERSION;
  json& schemas = document["components"]["schemas"];
  for (const auto& [name, brief] : kSchemas) schemas[name] = schema_of(json::parse(brief));
  for (const Route& route : routes()) {
    const std::string request(route.request.schema);
    if (!request.empty()) schemas[request] = schema_of(route.request);
    for (const std::string_view path : route.paths) {
      if (path.empty()) continue;
      const bool has_more = Route::is_prefix(path);
      json& operation = document["paths"][std::string(path) + (has_more ? "{name}" : "")]
                                [route.method == "GET" ? "get" : "post"];
      if (operation.is_null()) {  // of the route that is asked first
        operation = json::parse(R"({"responses": {
"200": {"description": "the answer"}, "default": {"description": "an error"}}})");
        operation["summary"] = route.summary;
        add_schema("Error", operation["responses"]["default"]);
        if (route.is(Route::kOpen)) operation["security"] = json::array();
        if (has_more)
          operation["parameters"] = json::parse(
              R"([{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}])");
      }
      if (!route.answer.empty()) add_schema(route.answer, operation["responses"]["200"]);
      if (request.empty()) continue;
      operation["requestBody"]["required"] = true;
      add_schema(request, operation["requestBody"]);
    }
  }
  return document.dump();
}

}  // namespace infer
