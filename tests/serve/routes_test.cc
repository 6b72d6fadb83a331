// infer serve: answers are the library's, in known shapes, and mistakes have a status and a reason.
#include <boost/asio/ip/host_name.hpp>

#include "files/json_writer.h"
#include "tests/serve/client.h"
#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"

namespace infer {
namespace {

std::string base64(const std::vector<float>& values) {
  return phasor::internal::to_base64(std::as_bytes(std::span(values)));
}

TEST(RoutesTest, OpenAisShapeHoldsTheVectorsOfTheLibraryToTheLastBit) {
  const Server server({.models = {{"sinusoidal", bundled_model("sinusoidal").string()},
                                  {"other", bundled_model("learned").string()}}});
  const auto want = vectors("sinusoidal", true);
  for (const bool second : {false, true}) {
    const char* const name = second ? "other" : "sinusoidal";
    const auto of_model = vectors(second ? "learned" : "sinusoidal", true);
    const Json reply = server.post("/v1/embeddings", {{"input", kTexts}, {"model", name}}).json();
    EXPECT_EQ(reply["object"], "list");
    EXPECT_EQ(reply["model"], name);
    int64_t tokens = 0;
    for (size_t i = 0; i < kTexts.size(); ++i) {
      EXPECT_EQ(reply["data"][i]["index"], i);
      EXPECT_EQ(reply["data"][i]["object"], "embedding");
      EXPECT_TRUE(floats(reply["data"][i]["embedding"]) == of_model[i]);
      tokens += std::ssize(
          phasor::Model::load(bundled_model("learned"))->tokenizer().encode(kTexts[i]).ids);
    }
    EXPECT_EQ(reply["usage"], Json({{"prompt_tokens", tokens}, {"total_tokens", tokens}}));
  }
  const Json body = {
      {"input", kTexts[0]}, {"encoding_format", "base64"}, {"dimensions", 3}, {"user", "someone"}};
  const Json coded = server.post("/v1/embeddings", body).json();
  double squares = 0;
  for (int c = 0; c < 3; ++c) squares += static_cast<double>(want[0][c]) * want[0][c];
  std::vector<float> cut;
  for (int c = 0; c < 3; ++c) cut.push_back(static_cast<float>(want[0][c] / std::sqrt(squares)));
  EXPECT_EQ(coded["data"][0]["embedding"], base64(cut));
}

TEST(RoutesTest, Base64IsThatOfTheStandard) {
  const auto coded = [](uint32_t bits) { return base64({std::bit_cast<float>(bits)}); };
  EXPECT_EQ(coded(0x3f000000), "AAAAPw==");          // 0.5
  EXPECT_EQ(base64({0.5f, -2.0f}), "AAAAPwAAAMA=");  // checked with coreutils' base64
  EXPECT_EQ(base64({1.0f, 2.0f, 3.0f}), "AACAPwAAAEAAAEBA");
  EXPECT_EQ(base64({}), "");
}

TEST(RoutesTest, TokensHaveTheirPlacesInCharacters) {
  const Server server;
  const auto model = phasor::Model::load(bundled_model("sinusoidal"));
  const Json tokens = server.post("/tokenize", {{"inputs", kTexts}}).json();
  const Json bare =
      server.post("/tokenize", {{"inputs", kTexts[0]}, {"add_special_tokens", false}}).json();
  for (size_t i = 0; i < kTexts.size(); ++i) {
    const std::vector<int32_t> ids = model->tokenizer().encode(kTexts[i]).ids;
    ASSERT_EQ(tokens[i].size(), ids.size());
    for (size_t t = 0; t < ids.size(); ++t) {
      EXPECT_EQ(tokens[i][t]["id"], ids[t]);
      EXPECT_EQ(tokens[i][t]["special"], t == 0 || t + 1 == ids.size());
    }
  }
  EXPECT_EQ(bare[0].size(), tokens[0].size() - 2);
  EXPECT_EQ(bare[0][0]["text"], "▁Tom");
  EXPECT_TRUE(tokens[0][0]["start"].is_null() && tokens[0][0]["stop"].is_null());
  const Json places = server.post("/tokenize", {{"inputs", "É dog"}}).json()[0];
  EXPECT_EQ(places[places.size() - 2]["start"], 1);
  EXPECT_EQ(places[places.size() - 2]["stop"], 5);
}

TEST(RoutesTest, SimilaritiesAreCosines) {
  const Server server;
  const auto all = vectors("sinusoidal", true);
  const Json inputs = {{"source_sentence", kTexts[0]}, {"sentences", {kTexts[1], kTexts[0]}}};
  const Json reply = server.post("/similarity", {{"inputs", inputs}}).json();
  ASSERT_EQ(reply.size(), 2u);
  EXPECT_EQ(reply[0].get<float>(), static_cast<float>(phasor::cosine(all[0], all[1])));
  EXPECT_EQ(reply[1].get<float>(), 1);
}

TEST(RoutesTest, SpansOfTexts) {
  const phasor::BertFolder folder({"O", "B-X", "I-X"}, 9, true);
  const Server server({.models = {{"spans", folder.path()}}});
  const std::string text = "abc éd 7 ef";
  for (const char* const how : {"none", "first"}) {
    const Json parameters = {{"aggregation_strategy", how}};
    const Json one =
        server.post("/predict_tokens", {{"inputs", text}, {"parameters", parameters}}).json();
    ASSERT_FALSE(one.empty());
    for (const Json& span : one) {
      EXPECT_TRUE(phasor::contains(text, span["word"]));
      EXPECT_EQ(span.contains("index"), how == std::string("none"));
    }
    const Json both =
        server.post("/", {{"inputs", {text, "zz"}}, {"aggregation_strategy", how}}).json();
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0], one);
  }
  for (const Json& body : {Json{{"inputs", "a"}, {"parameters", {{"stride", 2}}}},
                           Json{{"inputs", "a"}, {"parameters", {{"model", "other"}}}},
                           Json{{"inputs", "a"}, {"parameters", 3}}})
    EXPECT_EQ(server.post("/predict_tokens", body).status, 422);
}

TEST(RoutesTest, AModelOfSeveralKindsOfVectorsMakesTheKindThatIsAskedFor) {
  const phasor::TokenVectorFolder three;
  three.make_bge();
  const Server server(
      {.models = {{"plain", bundled_model("sinusoidal").string()}, {"three", three.path()}}});
  const auto embed = [&](Json body) {
    body["inputs"] = "a";
    return server.post("/embed", body);
  };
  EXPECT_EQ(embed({{"kind", "dense"}}).body, embed({{"model", "plain"}}).body);
  // Without a name it is the first model that makes this kind.
  EXPECT_EQ(embed({{"kind", "tokens"}}).body, embed({{"kind", "tokens"}, {"model", "three"}}).body);
  EXPECT_EQ(server.post("/", {{"inputs", "a"}, {"kind", "tokens"}, {"model", "three"}}).body,
            embed({{"kind", "tokens"}}).body);
  const char* const sparse = R"({"inputs": "a", "kind": "sparse"})";
  expect_refused(server, "/embed", sparse, 422, R"(`kind` must be "dense" or "tokens")");
  const char* const three_kinds = R"({"inputs": "a", "kind": 3})";
  expect_refused(server, "/embed", three_kinds, 422, "`kind` must be a string");
}

// By hand, for the cases read how requests say an option from the server's own rows.
TEST(RoutesTest, WordsOfTheProtocolsMeanOptionsOfTheLibrary) {
  using enum phasor::VectorKind;
  const phasor::TokenVectorFolder three;
  three.make_bge();
  three.write("config_sentence_transformers.json", R"({"prompts": {"query": "Tom "}})");
  const Server server({.models = {{"three", three.path()}}});
  phasor::Encoder encoder(phasor::Model::load(three.path()));
  const std::string text = "Tom " + phasor::repeat("dog ", 300) + "bit";
  const auto cut = [&](phasor::TruncationSide side) {
    return encoder.embed(text, {.normalize = true, .truncation_side = side}).dense;
  };
  const auto left = cut(phasor::TruncationSide::kLeft), right = cut(phasor::TruncationSide::kRight);
  EXPECT_NE(left, right);
  for (const auto& [word, want] :
       {std::pair("Left", left), {"left", left}, {"Right", right}, {"right", right}}) {
    const Json body = {{"inputs", text}, {"truncation_direction", word}};
    EXPECT_TRUE(floats(server.post("/embed", body).json().at(0)) == want) << word;
  }
  expect_refused(server, "/embed", R"({"inputs": "a", "truncation_direction": "LEFT"})", 422,
                 "`truncation_direction`");
  const auto query =
      encoder.embed("dog", {.kinds = {kSparse, kTokens}, .role = phasor::TextRole::kQuery});
  const Json asked = {{"inputs", "dog"}, {"prompt_name", "query"}, {"kind", "tokens"}};
  std::vector<float> vectors, weights;
  const Json rows = server.post("/embed", asked).json();
  for (const Json& row : rows.at(0))
    for (const float number : floats(row)) vectors.push_back(number);
  EXPECT_EQ(vectors, query.tokens.values);
  const Json sparse = {{"inputs", "dog"}, {"prompt_name", "query"}};
  const Json items = server.post("/embed_sparse", sparse).json();
  for (const Json& item : items.at(0)) weights.push_back(item.at("value").get<float>());
  EXPECT_EQ(weights, query.sparse.values);
  EXPECT_NE(encoder.embed("dog", {.kinds = {kTokens}}).tokens.values, vectors);
}

TEST(RoutesTest, LabelsAndRanks) {
  const phasor::BertFolder three({"yes", "no", "maybe"}), one({"relevant"});
  const Server labels({.models = {{"labels", three.path()}}});
  const auto predict = [&](const Json& inputs) {
    return labels.post("/predict", {{"inputs", inputs}}).json();
  };
  EXPECT_EQ(predict("a b"), predict({{"a b"}, {"c d e"}})[0]);
  EXPECT_EQ(predict({"a b", "c d e"}), predict(Json::array({{"a b", "c d e"}}))[0]);  // one pair
  EXPECT_EQ(labels.post("/predict", {{"inputs", {{"a", "b"}, {"c", "d"}}}}).json().size(), 2u);
  const Server ranks({.models = {{"ranks", one.path()}}});
  phasor::Encoder reranker(phasor::Model::load(one.path()));
  const std::vector<std::string> documents = {"a b c", "d e", "x y z", "a"};
  const phasor::Ranking ranking = reranker.rank("a d", documents);
  const Json tei =
      ranks.post("/rerank", {{"query", "a d"}, {"texts", documents}, {"return_text", true}}).json();
  const Json mixed = {documents[0], documents[1], {{"text", documents[2]}}, documents[3]};
  const Json body = {{"model", "any"},
                     {"query", "a d"},
                     {"documents", mixed},
                     {"top_n", 2},
                     {"return_documents", true}};
  const Json cohere = ranks.post("/v1/rerank", body).json();
  ASSERT_EQ(tei.size(), 4u);
  ASSERT_EQ(cohere["results"].size(), 2u);
  for (size_t i = 0; i < 4; ++i) {
    const auto number = static_cast<size_t>(ranking.order[i]);
    EXPECT_EQ(tei[i]["index"], number);
    EXPECT_EQ(tei[i]["score"].get<float>(), ranking.scores[number]);
    EXPECT_EQ(tei[i]["text"], documents[number]);
    if (i >= 2) continue;
    EXPECT_EQ(cohere["results"][i]["index"], number);
    EXPECT_EQ(cohere["results"][i]["relevance_score"].get<float>(), ranking.scores[number]);
    EXPECT_EQ(cohere["results"][i]["document"]["text"], documents[number]);
  }
  EXPECT_EQ(ranks.get("/info").json()["model_type"]["reranker"]["id2label"]["0"], "relevant");
}

TEST(RoutesTest, SeveralPathsAnswerAlikeAndARequestWithoutAModelGoesToTheFirstThatSuits) {
  const phasor::BertFolder three({"yes", "no", "maybe"}), one({"relevant"});
  const Server server({.models = {{"ranks", one.path()},
                                  {"vectors", bundled_model("sinusoidal").string()},
                                  {"labels", three.path()}}});
  const Json rerank = {{"query", "a"}, {"texts", {"b", "c d"}}};
  const Json cohere = {{"query", "a"}, {"documents", {"b", "c d"}}};
  const Json similarity = {{"inputs", {{"source_sentence", "a"}, {"sentences", {"b"}}}}};
  struct Route {
    std::vector<std::string> paths;
    std::string model;
    Json body;
  };
  for (const auto& [paths, model, body] :
       std::vector<Route>{{{"/embed", "/"}, "vectors", {{"inputs", kTexts}}},
                          {{"/v1/embeddings", "/embeddings"}, "vectors", {{"input", kTexts}}},
                          {{"/similarity", "/"}, "vectors", similarity},
                          {{"/predict"}, "labels", {{"inputs", "a b"}}},
                          {{"/rerank", "/"}, "ranks", rerank},
                          {{"/v1/rerank", "/v2/rerank", "/rerank"}, "ranks", cohere}}) {
    const Answer want = server.post(paths[0], body);
    EXPECT_EQ(want.status, 200) << paths[0];
    Json named = body;
    named["model"] = model;
    for (const std::string& path : paths) {
      EXPECT_EQ(server.post(path, body).body, want.body) << path;
      EXPECT_EQ(server.post(path, named).body, want.body) << path;
    }
  }
  // What "/" answers depends on the model's kind.
  const Json predict = {{"inputs", "a b"}, {"model", "labels"}};
  EXPECT_EQ(server.post("/", predict).json()[0], server.post("/predict", predict).json());
  EXPECT_EQ(server.get("/ping").status, 200);
  // Scores are no vectors.
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}, {"model", "ranks"}}).status, 422);
  EXPECT_EQ(server.post("/rerank", {{"query", "a"}, {"texts", {"b"}}, {"model", "labels"}}).status,
            422);
}

TEST(RoutesTest, PagesOfOtherSitesMayNotAsk) {
  const Server server({.service = {.hosts = {"http://Phasor.example/"}}});
  const auto status = [&](const std::string& host, const std::string& headers,
                          const std::string& line = "GET /info") {
    Client client(server.port());
    client.send(line + " HTTP/1.1\r\nHost: " + host + "\r\n" + headers + "\r\n");
    return client.receive(!line.starts_with("HEAD")).status;
  };
  const auto of_page = [&](const std::string& host, const std::string& origin) {
    return status(host, "Origin: " + origin + "\r\n");
  };
  // A name that its owner has pointed at this machine.
  EXPECT_EQ(of_page("evil.example:8080", "http://evil.example:8080"), 403);
  EXPECT_EQ(of_page("127.0.0.1.evil.example", "http://127.0.0.1.evil.example"), 403);
  EXPECT_EQ(of_page("localhost.evil.example", "http://localhost.evil.example"), 403);
  // Another site, another port of this machine, a file or a sandbox.
  for (const char* origin :
       {"http://evil.example", "http://localhost:8081", "http://localhost", "http://127.0.0.1:8080",
        "null", "file://", "http://", "localhost:8080"})
    EXPECT_EQ(of_page("localhost:8080", origin), 403) << origin;
  for (const char* host :
       {"localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST:1", "localhost."})
    EXPECT_EQ(of_page(host, std::string("http://") + host), 200) << host;
  EXPECT_EQ(of_page("localhost:80", "http://localhost"), 200);
  EXPECT_EQ(of_page("localhost:443", "https://localhost"), 200);
  EXPECT_EQ(of_page("localhost", "capacitor://localhost"), 403);  // an app's page
  // A name that is allowed, also where a proxy sends its own as the host.
  EXPECT_EQ(of_page("phasor.example:443", "https://phasor.example"), 200);
  EXPECT_EQ(of_page("localhost:8080", "https://phasor.example"), 200);
  EXPECT_EQ(of_page("localhost:8080", "https://phasor.example.evil"), 403);
  // What sends no origin, such as an image or a form: but a link to the page is followed.
  const std::string cross = "Sec-Fetch-Site: cross-site\r\n", link = "Sec-Fetch-Mode: navigate\r\n";
  EXPECT_EQ(status("localhost", cross), 403);
  EXPECT_EQ(status("localhost", cross + link), 403);
  EXPECT_EQ(status("localhost", cross, "GET /"), 403);
  EXPECT_EQ(status("localhost", cross + link, "GET /"), 200);
  EXPECT_EQ(status("localhost", cross + link, "POST /"), 403);
  EXPECT_EQ(status("localhost", "Sec-Fetch-Site: same-origin\r\n"), 200);
  EXPECT_EQ(status("localhost", "Sec-Fetch-Site: none\r\n"), 200);
  for (const char* line : {"GET /", "HEAD /health", "GET /metrics", "GET /v1/models/sinusoidal",
                           "POST /", "POST /v1/embeddings", "POST /observe", "GET /nothing"})
    EXPECT_EQ(status("localhost", "Origin: http://evil.example\r\n", line), 403) << line;
}

TEST(RoutesTest, ALocalServerWithoutKeysIsAskedByItsOwnNamesAlone) {
  const auto ask = [](const Server& server, const std::string& line, const std::string& host,
                      const std::string& headers = {}) {
    Client client(server.port());
    client.send(fmt::format("{} HTTP/1.1\r\nHost: {}\r\n{}\r\n", line, host, headers));
    return client.receive(!line.starts_with("HEAD"));
  };
  const std::string key = "Authorization: Bearer key\r\n", evil = "evil.example:8080";
  const std::vector<std::string> hosts = {"Phasor.example"};
  const Server local({.service = {.hosts = hosts}}), named({.http = {.host = "localhost"}}),
      odd({.http = {.host = "0x7f000001"}}), keyed({.service = {.keys = {"key"}}}),
      wide({.http = {.host = "0.0.0.0"}});
  for (const std::string& host :
       {std::string("localhost"), std::string("LOCALHOST.:80"), std::string("127.0.0.1:8080"),
        std::string("[::1]:8080"), std::string("192.168.1.2"), std::string("phasor.example:443"),
        std::string(), boost::asio::ip::host_name()})
    EXPECT_EQ(ask(local, "GET /info", host).status, 200) << host;
  for (const char* line : {"GET /", "GET /info", "GET /health", "HEAD /ping", "GET /openapi.json",
                           "POST /embed", "OPTIONS /embed", "DELETE /", "GET /nothing"}) {
    const Answer refused = ask(local, line, evil);
    EXPECT_EQ(refused.status, 403) << line;
    EXPECT_EQ(ask(named, line, evil).status, 403) << line;
    EXPECT_TRUE(std::string(line).starts_with("HEAD") ||
                phasor::contains(refused.body, "--allow-host evil.example allows"))
        << refused.body;
  }
  for (const char* host : {"127.0.0.1.evil.example", "localhost.evil.example", "[::1", ":80", "a",
                           "0x7f000001", "phasor.example.evil.example"})
    EXPECT_EQ(ask(local, "GET /info", host).status, 403) << host;
  EXPECT_EQ(ask(odd, "GET /info", "0X7f000001:80").status, 200);  // what --host calls it
  EXPECT_EQ(ask(odd, "GET /info", "0x7f000001", "Origin: http://0x7f000001\r\n").status, 200);
  EXPECT_EQ(ask(local, "GET http://evil.example/info", "localhost").status, 403);
  EXPECT_EQ(ask(local, "GET http://localhost/info", evil).status, 200);
  Client old(local.port());
  old.send("GET /info HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.receive().status, 200);
  // Elsewhere containers and clusters give it names, and only what a page sends is compared.
  EXPECT_EQ(ask(keyed, "GET /info", evil, key).status, 200);
  EXPECT_EQ(ask(wide, "GET /info", evil).status, 200);
  for (const Server* server : {&keyed, &wide})
    EXPECT_EQ(ask(*server, "GET /info", evil, key + "Origin: http://" + evil + "\r\n").status, 403);
}

TEST(RoutesTest, ABodyOfAnotherSiteIsNotRead) {
  const Server server;
  Client client(server.port());
  client.send(
      "POST /embed HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
      "Content-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(client.receive().status, 403);  // before the body has come
}

TEST(RoutesTest, AMistakeHasAStatusAndAReason) {
  const Server server({.models = {{"a", bundled_model("sinusoidal").string()},
                                  {"b", bundled_model("learned").string()}}});
  struct Case {
    const char* path;
    std::string body;
    int status;
    const char* reason;
  };
  const std::string many = Json{{"inputs", std::vector<std::string>(513, "a")}}.dump();
  for (const Case& each : std::vector<Case>{
           {"/embed", "", 400, "the body is empty"},
           {"/embed", "{\"inputs\": \"a\"", 400, "JSON"},
           {"/embed", "{\"inputs\": \"\xff\"}", 400, "JSON"},
           {"/embed", std::string(100'000, '['), 400, ""},
           {"/embed", "[1]", 422, "object"},
           {"/embed", "{}", 422, "`inputs` is missing"},
           {"/embed", R"({"inputs": null})", 422, "`inputs` is missing"},
           {"/embed", R"({"inputs": []})", 400, "empty"},
           {"/embed", R"({"inputs": ""})", 400, "empty"},
           {"/embed", R"({"inputs": ["a", ""]})", 400, "empty"},
           {"/embed", R"({"inputs": ["a", 3]})", 422, "must be a string"},
           {"/embed", R"({"inputs": [[1, 2]]})", 422, "token ids"},
           {"/embed", R"({"inputs": [["a"]]})", 422,
            "`inputs` holds a list in a list; send one list of strings"},
           {"/embed", R"({"inputs": ["a", ["b"]]})", 422, "a list in a list"},
           {"/embed", R"({"inputs": {"a": 1}})", 422, "a list of strings, not an object"},
           {"/embed", R"({"inputs": ["a", null]})", 422, "`inputs[1]` is null"},
           {"/embed", R"({"inputs": ["a", ""]})", 400, "`inputs[1]` is empty"},
           {"/embed", R"("a")", 422, "a JSON object, not a string"},
           {"/embed", many, 413, "513 texts; a request may have 512 (--max-texts)"},
           {"/embed", R"({"inputs": "a", "dimensions": 0})", 422, "`dimensions`"},
           {"/embed", R"({"inputs": "a", "dimensions": 1e99})", 422, "`dimensions`"},
           {"/v1/embeddings", R"({"input": [1, 2, 3]})", 422, "check_embedding_ctx_length"},
           {"/v1/embeddings", R"({"input": "a", "encoding_format": "hex"})", 422,
            "encoding_format"},
           {"/v1/embeddings", R"({"input": "a", "model": "c"})", 404, "no model"},
           {"/v1/embeddings", R"({"input": "a", "model": 7})", 422, "`model`"},
           {"/v1/rerank", R"({"query": "a", "documents": ["b"]})", 422, "no reranker"},
           {"/similarity", R"({"inputs": {"sentences": ["b"]}})", 422, "source_sentence"},
           {"/similarity", R"({"inputs": "a"})", 422,
            "`inputs` must be a JSON object, not a string"},
           {"/similarity", R"({"inputs": {"source_sentence": ["a"], "sentences": "b"}})", 422,
            "`source_sentence` must be a string, not a list"},
           {"/similarity", R"({"inputs": {"source_sentence": "a", "sentences": [["b"]]}})", 422,
            "`sentences` holds a list in a list"},
           {"/embed", std::string("{\"inputs\": \"a\"}\0 ", 18), 400, "zero byte"},
           {"/nothing", "{}", 404, "/nothing"},
           {"/health", "{}", 405, "POST"}})
    expect_refused(server, each.path, each.body, each.status, each.reason);
  EXPECT_EQ(server.get("/embed").status, 405);
  EXPECT_EQ(server.get("/health?deep=1").status, 200);
  // Too long, where it may not be cut; and as long as may be.
  const std::string words = "a" + phasor::repeat(" dog", 200);
  for (const char* route : {"/embed", "/embed_all"}) {
    EXPECT_EQ(server.post(route, {{"inputs", "a"}, {"truncate", false}}).status, 200);
    const Json whole = {{"inputs", words}, {"truncate", false}};
    for (const char* said : {"text 0 has 203 tokens, more than 128", "leave out `truncate`"})
      expect_refused(server, route, whole.dump(), 422, said);
  }
  std::vector<std::string> texts(300, words.substr(0, 400));  // of several batches
  texts[290] = words;
  const std::string refused = server.post("/embed", {{"inputs", texts}, {"truncate", false}}).body;
  EXPECT_NE(refused.find("text 290 has"), std::string::npos) << refused;
  const Json similar = {{"truncate", false},
                        {"inputs", {{"source_sentence", "a"}, {"sentences", {"b", words}}}}};
  expect_refused(server, "/similarity", similar.dump(), 422, "text 1 has");
  EXPECT_EQ(server.post("/embed_all", {{"inputs", words}}).json()[0].size(), 128u);
  EXPECT_EQ(server.get("/info").json()["max_input_length"], 128);
}

TEST(RoutesTest, ItSaysWhatStandsWhereATextBelongs) {
  const phasor::BertFolder labels({"no", "yes"}), ranks({"relevant"});
  const Server server({.models = {{"labels", labels.path()}, {"ranks", ranks.path()}}});
  for (const auto& [path, body, words] : std::vector<std::array<std::string, 3>>{
           {"/predict", R"({"inputs": 3})", "it holds a number"},
           {"/predict", R"({"inputs": [[["a"]]]})", "it holds a list in place of a text"},
           {"/predict", R"({"inputs": ["a", ["b"]]})", "it holds a list in place of a text"},
           {"/predict", R"({"inputs": [["a", "b", "c"]]})", "it holds a list of 3"},
           {"/predict", R"({"inputs": [["a", null]]})", "it holds null in place of a text"},
           {"/predict", R"({"inputs": [[1, 2]]})", "`inputs` holds token ids"},
           {"/rerank", R"({"query": "a", "texts": [["b"]]})", "`texts` holds a list in a list"},
           {"/rerank",
            Json({{"query", phasor::repeat("a ", 200)}, {"texts", {"b"}}, {"truncate", false}})
                .dump(),
            "pair 0 has"},
           {"/rerank", R"({"query": ["a"], "texts": ["b"]})", "a string, not a list"},
           {"/v1/rerank", R"({"query": "a", "documents": "b"})", "a list, not a string"},
           {"/v1/rerank", R"({"query": "a", "documents": [["b"]]})", "not a list"},
           {"/v1/rerank", R"({"query": "a", "documents": [[1]]})", "token ids"},
           {"/v1/rerank", R"({"query": "a", "documents": [{"title": "b"}]})", "without one"},
           {"/v1/rerank", R"({"query": "a", "documents": [{"text": 3}]})", "without one"},
           {"/v1/rerank", R"({"query": "a", "documents": [null]})", "with a string `text`"}})
    expect_refused(server, path, body, 422, words);
}

TEST(RoutesTest, WhatTheHeadersSayOfABodyIsDecidedBeforeItIsRead) {
  const Server server({.http = {.max_body = 1000}});
  const std::string type = "Content-Type: application/json\r\n";
  struct Case {
    int status;
    std::string headers, words;
  };
  const std::vector<Case> cases = {
      {415, type + "Content-Encoding: gzip\r\n", "encoded as gzip"},
      {415, type + "Content-Encoding: GZIP\r\n", "encoded as GZIP"},
      {415, type + "Content-Encoding: identity, br\r\n", "encoded as identity, br"},
      {415, type + "Content-Encoding: identity\r\nContent-Encoding: zstd\r\n", "identity, zstd"},
      {415, "Content-Type: Multipart/form-data; boundary=a\r\n", "type is Multipart/form-data"}};
  const std::vector<std::string> bodies = {R"({"inputs": "a"})", "", "{",
                                           std::string("\x1f\x8b\x08\0", 4)};
  const Json paths = server.get("/openapi.json").json()["paths"];
  int routes = 0;
  for (const auto& [path, methods] : paths.items()) {
    if (!methods.contains("post")) continue;
    ++routes;
    const auto heads = [&, path = path](const std::string& headers, const char* version = "1.1") {
      Client client(server.port());
      client.send(
          fmt::format("POST {} HTTP/{}\r\nHost: localhost\r\n{}\r\n", path, version, headers));
      return client.receive();
    };
    for (const auto& [status, headers, words] : cases) {
      SCOPED_TRACE(path + " " + headers);
      const Answer early = heads(headers + "Content-Length: 900\r\n");
      EXPECT_EQ(early.status, status);
      EXPECT_TRUE(phasor::contains(early.body, words)) << early.body;
      EXPECT_TRUE(phasor::contains(early.head, "Accept-Encoding: identity\r\n"));
      EXPECT_EQ(heads(headers + "Transfer-Encoding: chunked\r\n").status, status);
      for (const std::string& body : bodies)
        EXPECT_EQ(server.post_text(path, body, headers).status, status) << body;
    }
    EXPECT_EQ(heads(type).status, 411) << path;
    EXPECT_EQ(heads(type, "1.0").status, 411) << path;
    EXPECT_EQ(heads(type + "Content-Length: 1001\r\n").status, 413) << path;
    for (const char* coding : {"", "Content-Encoding: \r\n", "Content-Encoding: Identity\r\n"}) {
      EXPECT_EQ(server.post_text(path, "{", type + coding).status, 400) << path << coding;
      EXPECT_EQ(server.post_text(path, "", type + coding).status, 400) << path << coding;
    }
    for (const auto& [other, is_json] : std::vector<std::pair<const char*, bool>>{
             {"application/JSON;charset=utf-8", true},
             {"application/json ; charset=utf-8", true},
             {"application/jsonp", false},
             {"application/x-www-form-urlencoded", false},  // curl's
             {"text/plain", false}}) {
      const auto header = fmt::format("Content-Type: {}\r\n", other);
      const int status = path == "/observe" && !is_json ? 415 : 400;
      EXPECT_EQ(server.post_text(path, "{", header).status, status) << path << other;
    }
  }
  EXPECT_GE(routes, 14);
}

TEST(RoutesTest, EscapesOfLoneSurrogatesAreReadAsTheReplacementCharacter) {
  const Server server;
  const auto answer = [&](const char* path, std::string body, const std::string& escape) {
    for (size_t at = 0; (at = body.find('~', at)) != std::string::npos;)
      body.replace(at, 1, escape);
    return server.post_text(path, body, "Content-Type: application/json\r\n");
  };
  for (const auto& [path, body] : std::vector<std::pair<const char*, const char*>>{
           {"/embed", R"({"inputs": ["a~", "~"], "user": {"~": ["~~"]}})"},
           {"/tokenize", R"({"inputs": "~\\ude00 \"~\" ~n"})"},
           {"/observe", R"({"texts": ["a ~ dog"]})"}}) {
    const Answer want = answer(path, body, "\\ufffd");
    EXPECT_EQ(want.status, 200) << path << want.body;
    for (const char* escape : {"\\ud83d", "\\uDE00", "\\ud800", "\\uDFFF"})
      EXPECT_EQ(answer(path, body, escape).body, want.body) << path << escape;
  }
  const auto tokens = [&](const std::string& text) {
    return server.post_text("/tokenize", R"({"inputs": ")" + text + "\"}").body;
  };
  EXPECT_EQ(tokens(R"(\ud83d\ude00)"), tokens("\xF0\x9F\x98\x80"));  // a pair
  EXPECT_EQ(tokens(R"(\ud83d\ud83d\ude00)"), tokens("\xEF\xBF\xBD\xF0\x9F\x98\x80"));
  EXPECT_NE(tokens(R"(\\ud83d)"), tokens(R"(\ufffd)"));  // a backslash, and letters
  // What else is wrong stays so, at its byte.
  for (const auto& [body, byte] : std::vector<std::pair<const char*, const char*>>{
           {R"({"inputs": "\ud83d", x)", "byte 22 "},
           {R"({"inputs": "\ud83d\ud83g"})", "byte 24 "},
           {R"({"inputs": "\ud83)", "byte 18 "},
           {"{\"inputs\": \"\xED\xA0\xBD\"}", "byte 14 "},
           {"{\"inputs\": \"caf\xE9\"}", "not in UTF-8"}}) {
    const Answer refused = server.post_text("/embed", body);
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.body.find(byte), std::string::npos) << body << refused.body;
  }
}

TEST(RoutesTest, KeysAreAskedFor) {
  const Server server({.service = {.keys = {"one", "two"}}});
  const Json body = {{"inputs", "a"}};
  for (const char* header : {"", "Authorization: Bearer three\r\n", "Authorization: one\r\n",
                             "Authorization: Basic one\r\n", "Authorization: Bearer \r\n",
                             "Authorization: Bearer on\r\n", "Authorization: Bearer ones\r\n",
                             "Authorization: Bearer One\r\n"}) {
    const Answer answer = server.post("/embed", body, header);
    EXPECT_EQ(answer.status, 401) << header;
    EXPECT_NE(answer.head.find("WWW-Authenticate: Bearer"), std::string::npos);
    EXPECT_EQ(server.get("/nothing", header).status, 401);
  }
  EXPECT_EQ(server.post("/embed", body, "Authorization: Bearer one\r\n").status, 200);
  EXPECT_EQ(server.post("/embed", body, "Authorization: bEARER one\r\n").status, 200);
  Client trailing(server.port());
  trailing.send(
      "POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: "
      "Authorization\r\n"
      "\r\nf\r\n{\"inputs\": \"a\"}\r\n0\r\nAuthorization: Bearer one\r\n\r\n");
  EXPECT_EQ(trailing.receive().status, 401);
  Client waiting(server.port());  // is told before it sends the body
  waiting.send("POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(waiting.receive().status, 401);
  EXPECT_EQ(server.post("/embed", body, "Authorization: Bearer two\r\n").status, 200);
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(RoutesTest, OpenAisAndCoheresClients) {
  const phasor::BertFolder relevance({"relevant"});
  const Server embedder({.service = {.keys = {"key"}}}),
      reranker({.models = {{"relevance", relevance.path()}}});
  const std::string folder = fmt::format("{}/clients", PHASOR_BINARY_DIR);
  const phasor::ProgramResult result =
      phasor::run_program({fmt::format("{}/tests/serve/clients/run", PHASOR_SOURCE_DIR), folder,
                           std::to_string(embedder.port()), std::to_string(reranker.port())});
  if (result.exit_code == 77) GTEST_SKIP() << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST(RoutesTest, MetricsCountRequests) {
  const Server server;
  for (int i = 0; i < 3; ++i) server.post("/embed", {{"inputs", kTexts}});
  server.post("/embed", {{"inputs", ""}});
  const std::string text = server.get("/metrics").body;
  for (const char* line :
       {"phasor_requests_total{route=\"/embed\",model=\"sinusoidal\",status=\"200\"} 3\n",
        "phasor_requests_total{route=\"/embed\",model=\"\",status=\"400\"} 1\n",
        "phasor_request_seconds_count{route=\"/embed\",model=\"sinusoidal\"} 3\n",
        "phasor_request_seconds_bucket{route=\"/embed\",model=\"sinusoidal\",le=\"+Inf\"} 3\n",
        "phasor_texts_total 9\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

}  // namespace
}  // namespace infer
