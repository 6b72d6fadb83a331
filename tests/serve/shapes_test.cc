// infer serve: fields of requests, those beside OpenAI's, and those that nobody knows.
#include "files/json_writer.h"
#include "phasor/names.h"
#include "phasor/quantize.h"
#include "tests/serve/client.h"
#include "tests/support/bert_folder.h"
#include "tests/support/bundled_folder.h"
#include "tests/support/run_program.h"
#include "tests/support/test_files.h"

namespace infer {
namespace {

// The document and the refusal of an unknown field name the same fields: what a route asks for.
TEST(ShapesTest, TheOpenApiDocumentHasTheFieldsThatEachRouteKnows) {
  const phasor::BertFolder three({"yes", "no", "maybe"}), one({"relevant"}), spans({"O"}, 1, true);
  const phasor::SparseFolder sparse(Json{{"pooling_strategy", "max"}});
  const phasor::TokenVectorFolder tokens;
  const Server server({.models = {{"vectors", bundled_model("sinusoidal").string()},
                                  {"spans", spans.path()},
                                  {"labels", three.path()},
                                  {"ranks", one.path()},
                                  {"sparse", sparse.path()},
                                  {"tokens", tokens.path()}}});
  const Json document = server.get("/openapi.json").json();
  const Json texts = {{"inputs", "a"}}, rank = {{"query", "a"}, {"documents", {"b"}}};
  const std::map<std::string, Json> bodies = {
      {"/v1/embeddings", {{"input", "a"}}},
      {"/embed", texts},
      {"/embed_all", texts},
      {"/embed_sparse", texts},
      {"/predict", texts},
      {"/predict_tokens", texts},
      {"/rerank", {{"query", "a"}, {"texts", {"b"}}}},
      {"/v1/rerank", rank},
      {"/similarity", {{"inputs", {{"source_sentence", "a"}, {"sentences", {"b"}}}}}},
      {"/tokenize", texts},
      {"/observe", {{"texts", {"a"}}}}};
  const auto schema_of = [&](const Json& content) {
    const std::string name = content.at("/content/application~1json/schema/$ref"_json_pointer);
    return document.at(Json::json_pointer(name.substr(1)));
  };
  const auto first_of = [&](const Json& schema) {
    if (!schema.contains("anyOf")) return schema;
    return document.at(Json::json_pointer(std::string(schema["anyOf"][0]["$ref"]).substr(1)));
  };
  const auto post = [&](const std::string& path, const Json& body) {
    return server.post(path, body, "Content-Type: application/json\r\n");
  };
  for (const auto& [path, methods] : document.at("paths").items()) {
    if (path.ends_with('}')) continue;
    EXPECT_EQ(methods.contains("get"), server.get(path).status == 200) << path;
    if (!methods.contains("post")) continue;
    const Json schema = schema_of(methods.at("post").at("requestBody"));
    if (!bodies.contains(path)) {  // another name of one, or one of several by the model's kind
      EXPECT_TRUE(path == "/embeddings" || path == "/v2/rerank" || schema.contains("anyOf"))
          << path;
      continue;
    }
    Json body = bodies.at(path);
    // What says nothing may have any name, and these fields of other servers are left out.
    for (const Json& more :
         {Json::object(), Json{{"no such field", nullptr}}, Json{{"no such field", ""}},
          Json{{"user", "me"}}, Json{{"parameters", Json::object()}}}) {
      Json with = body;
      with.update(more);
      EXPECT_EQ(post(path, with).status, 200) << path << more;
    }
    body["no such field"] = 1;
    std::vector<std::string> known;
    const Json properties = first_of(schema).at("properties");
    for (const auto& property : properties.items()) known.push_back(property.key());
    const Answer refused = post(path, body);
    EXPECT_EQ(refused.status, 422) << path;
    const std::string& message = refused.body;
    EXPECT_NE(message.find(fmt::format("these are: {}\"", fmt::join(known, ", "))),
              std::string::npos)
        << path << ": " << message;
  }
  Json within = bodies.at("/similarity");
  within["inputs"]["k"] = 1;
  EXPECT_TRUE(phasor::contains(post("/similarity", within).body, "`k` is not known here"));
}

TEST(ShapesTest, FieldsBesideOpenAisChangeTheVectors) {
  const phasor::TempFolder folder;
  const auto model = folder.path() / "model";
  std::filesystem::copy(bundled_model("sinusoidal"), model,
                        std::filesystem::copy_options::recursive);
  folder.write("model/config_sentence_transformers.json",
               R"({"prompts": {"query": "Tom ", "document": "a "}})");
  const Server server({.models = {{"m", model.string()}}});
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
                                     {"input_type", "other"},
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
