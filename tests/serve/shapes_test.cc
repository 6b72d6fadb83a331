// infer serve: fields of requests, those beside OpenAI's, and those that nobody knows.
#include "files/json_writer.h"
#include "infer/serve/routes.h"
#include "phasor/names.h"
#include "phasor/quantize.h"
#include "tests/serve/client.h"
#include "tests/support/cases.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_model.h"

namespace infer {
namespace {

// The document and the refusal of an unknown field name the same fields: what a route asks for.
TEST(ShapesTest, TheOpenApiDocumentHasTheFieldsThatEachRouteKnows) {
  const phasor::CaseModels models;
  const Server server({.models = {models.folders().begin(), models.folders().end()}});
  const Json document = server.get("/openapi.json").json();
  const auto at = [&](const Json& reference) {
    return document.at(Json::json_pointer(std::string(reference.at("$ref")).substr(1)));
  };
  const auto post = [&](const std::string& path, const Json& body) {
    return server.post(path, body, "Content-Type: application/json\r\n");
  };
  for (const auto& [path, methods] : document.at("paths").items()) {
    if (path.ends_with('}')) continue;
    EXPECT_EQ(methods.contains("get"), server.get(path).status == 200) << path;
    if (!methods.contains("post")) continue;
    Json all = methods.at("/post/requestBody/content/application~1json/schema"_json_pointer);
    all = all.contains("anyOf") ? all["anyOf"] : Json::array({all});
    for (const Json& each : all) {
      if (path == "/" && each != all[0]) break;  // goes to the first model
      const Json schema = at(each), body = schema.at("examples").at(0);
      SCOPED_TRACE(path + body.dump());
      std::vector<std::string> required, known;
      for (const auto& [key, value] : body.items()) {
        required.push_back(key);
        const bool is_kind = key == "kind";  // another schema's without it
        Json without = body;
        without.erase(key);
        EXPECT_EQ(post(path, without).status, is_kind ? 200 : 422) << key;
      }
      EXPECT_EQ(schema.at("required"), Json(required));
      // What says nothing may have any name, and these fields of other servers are left out.
      for (const Json& more :
           {Json::object(), Json{{"no such field", nullptr}}, Json{{"no such field", ""}},
            Json{{"user", "me"}}, Json{{"parameters", Json::object()}}}) {
        Json with = body;
        with.update(more);
        EXPECT_EQ(post(path, with).status, 200) << more;
      }
      Json with = body;
      with["no such field"] = 1;
      for (const auto& property : schema.at("properties").items()) known.push_back(property.key());
      const Answer refused = post(path, with);
      EXPECT_EQ(refused.status, 422);
      EXPECT_TRUE(
          phasor::contains(refused.body, fmt::format("these are: {}\"", fmt::join(known, ", "))))
          << refused.body;
    }
  }
  Json within = document.at("/components/schemas/Similarity/examples/0"_json_pointer);
  within["inputs"]["k"] = 1;
  EXPECT_TRUE(phasor::contains(post("/similarity", within).body, "`k` is not known here"));
}

TEST(ShapesTest, TheDocumentationHasATableOfTheOptionsThatRequestsMaySay) {
  std::map<std::string, std::string> routes_of, text_of;
  for (const Route& route : routes()) {
    if (route.request.schema.empty()) continue;
    for (const Spelling& each : spellings_of(route.request)) {
      const std::string name(each.name);
      std::string& all = routes_of[name];
      const std::string path = fmt::format("`{}`", route.paths[0]);
      if (!phasor::contains(all, path)) all += (all.empty() ? "" : ", ") + path;
      const Json schema = schema_of(each);
      std::string text = schema.at("description");
      for (const Json& value : schema.value("enum", Json::array()))
        text += fmt::format("{}`{}`", text.ends_with('`') ? ", " : ": ", std::string(value));
      if (schema.contains("default")) text += fmt::format(" ({})", schema["default"].dump());
      EXPECT_EQ(text_of.try_emplace(name, text).first->second, text) << path;
    }
  }
  std::string table = "| option | of | |\n|---|---|---|\n";
  for (const auto& [name, all] : routes_of)
    table += fmt::format("| `{}` | {} | {} |\n", name, all, text_of[name]);
  const std::string page = phasor::read_text_file(PHASOR_SOURCE_DIR "/docs/serving.md");
  EXPECT_TRUE(phasor::contains(page, "\n" + table + "\n")) << "it is:\n" << table;
}

TEST(ShapesTest, FieldsBesideOpenAisChangeTheVectors) {
  const Json prompts = {{"prompts", {{"query", "Tom "}, {"document", "a "}}}};
  const phasor::TinyModel model("sinusoidal", {{"config_sentence_transformers.json", prompts}});
  const Server server({.models = {{"m", model.path()}}});
  const auto vector = [&](Json body) {
    body["input"] = "dog";
    return server.post("/v1/embeddings", body).json().at("data").at(0).at("embedding");
  };
  const auto of_text = [&](const char* text) {
    return server.post("/embed", {{"inputs", text}}).json().at(0);
  };
  EXPECT_EQ(vector({{"input_type", nullptr}}), of_text("dog"));
  EXPECT_EQ(vector({{"input_type", "query"}}), of_text("Tom dog"));
  EXPECT_EQ(vector({{"input_type", "document"}}), of_text("a dog"));
  EXPECT_EQ(vector({{"dimensions", 7}, {"output_dtype", "float"}}), vector({{"dimensions", 7}}));
  const std::vector<float> numbers = vector(Json::object());
  for (const auto type : {phasor::VectorType::kBinary, phasor::VectorType::kUbinary}) {
    const auto bits = phasor::quantize(std::span(numbers).first(20), 20, type);
    const auto bytes = std::as_bytes(std::span(bits));
    Json asked = {{"output_dtype", phasor::to_string(type)}, {"dimensions", 20}};
    const Json got = vector(asked);
    ASSERT_EQ(got.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(std::byte(got[i].get<int>() & 0xff), bits[i]);
    EXPECT_EQ(got[0] < 0, type == phasor::VectorType::kBinary && numbers[0] <= 0);
    asked["encoding_format"] = "base64";
    EXPECT_EQ(vector(asked), phasor::internal::to_base64(bytes));
  }
  for (const auto& [field, value] : {std::pair<const char*, Json>{"output_dtype", "int8"},
                                     {"input_type", "Query"},
                                     {"dimensions", 129}}) {
    const Json body = {{"input", "dog"}, {field, value}};
    expect_refused(server, "/v1/embeddings", body.dump(), 422, fmt::format("`{}`", field));
  }
  const std::string text = phasor::repeat("dog ", 500);
  EXPECT_EQ(server.post("/v1/embeddings", {{"input", text}, {"truncate", false}}).status, 422);
}

TEST(ShapesTest, EveryAnswerHasAnIdOfItsOwnOrTheRequests) {
  const Server server;
  const auto id_of = [](const Answer& answer) {
    const size_t at = answer.head.find("X-Request-Id: ") + 14;
    return answer.head.substr(at, answer.head.find('\r', at) - at);
  };
  EXPECT_EQ(id_of(server.get("/health", "x-request-id: mine-7\r\n")), "mine-7");
  const std::string first = id_of(server.get("/health")), second = id_of(server.get("/none"));
  EXPECT_FALSE(first.empty() || second.empty());
  EXPECT_NE(first, second);
  const std::string longest(128, 'x');
  EXPECT_EQ(id_of(server.get("/health", fmt::format("X-Request-Id: {}yy\r\n", longest))), longest);
}

// LangChain sends as much. The body is read, and what is in it refused.
TEST(ShapesTest, TwoThousandTextsOfTwoThousandCharactersFitIntoABody) {
  const Server server;
  const std::vector<std::string> texts(2048, std::string(2000, 'a'));
  EXPECT_EQ(server.post("/v1/embeddings", {{"input", texts}, {"dimensions", 0}}).status, 422);
}

}  // namespace
}  // namespace infer
