// infer serve: answers are those of the library, mistakes have a status of their own, and nothing
// that a client does keeps others from their answers.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <future>
#include <latch>
#include <list>
#include <nlohmann/json.hpp>
#include <thread>

#include "infer/commands.h"
#include "infer/serve/routes.h"
#include "phasor/phasor.h"
#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"
#include "tests/support/test_files.h"

namespace infer {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
using phasor::bundled_model;

struct Answer {
  int status = 0;  // 0: the connection ended
  std::string head, body;

  Json json() const { return Json::parse(body); }
};

/// A connection, and what a careful or careless client does with it.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    connected_ = ::connect(socket_, at, sizeof address) == 0;
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  /// Sends no more, but reads.
  void end() const { shutdown(socket_, SHUT_WR); }
  /// Closes with a reset, as the system does for a program that ends with unread bytes.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void send(std::string_view method, std::string_view path, std::string_view body = {},
            std::string_view headers = {}) {
    send(fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{}", method,
                     path, body.size(), headers, body));
  }

  Answer receive(bool has_body = true) {
    Answer answer;
    while (received_.find("\r\n\r\n") == std::string::npos) {
      if (!more()) return answer;
    }
    const size_t end = received_.find("\r\n\r\n") + 4;
    answer.head = received_.substr(0, end);
    received_.erase(0, end);
    answer.status = std::stoi(answer.head.substr(9, 3));
    if (answer.status == 100 && has_body) return receive();  // which may always be sent
    const size_t length = answer.head.find("Content-Length: ");
    if (!has_body || length == std::string::npos) return answer;
    const size_t size = std::stoul(answer.head.substr(length + 16));
    while (received_.size() < size) {
      if (!more()) return {};
    }
    answer.body = received_.substr(0, size);
    received_.erase(0, size);
    return answer;
  }
  /// Whether the server ends the connection, and sends nothing before.
  bool is_closed() { return received_.empty() && !more(); }

 private:
  bool more() {
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) received_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }

  int socket_;
  bool connected_ = false;
  std::string received_;
};

struct Given {
  std::vector<std::pair<std::string, std::string>> models = {
      {"sinusoidal", bundled_model("sinusoidal").string()}};
  ServiceOptions service = {};
  HttpOptions http = {};
  bool ready = true;
};

/// A server on a port that was free.
class Server {
 public:
  explicit Server(const Given& given = {})
      : service_(given.service, metrics_), http_(http_options(given), [this](auto&&... request) {
          service_.serve(std::move(request)...);
        }) {
    for (const auto& [name, folder] : given.models) {
      service_.add_model(std::make_unique<ModelQueue>(name, phasor::Model::load(folder),
                                                      phasor::EncoderOptions{.threads = 2},
                                                      given.service.queue, metrics_));
    }
    if (given.ready) service_.ready();
    port_ = http_.port();
    thread_ = std::thread([this] { http_.run(); });
  }
  ~Server() {
    if (!thread_.joinable()) return;
    http_.stop();
    thread_.join();
  }

  uint16_t port() const { return port_; }
  Service& service() { return service_; }
  void drain() {
    service_.drain();
    http_.drain();
  }
  void join() { thread_.join(); }

  Answer post(std::string_view path, const Json& body, std::string_view headers = {}) const {
    return post_text(path, body.dump(), headers);
  }
  Answer post_text(std::string_view path, std::string_view body,
                   std::string_view headers = {}) const {
    Client client(port_);
    client.send("POST", path, body, headers);
    return client.receive();
  }
  Answer get(std::string_view path, std::string_view headers = {}) const {
    Client client(port_);
    client.send("GET", path, {}, headers);
    return client.receive();
  }
  /// A number of /metrics.
  double metric(const std::string& name) const {
    const std::string text = get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size() + 2));
  }

 private:
  static HttpOptions http_options(const Given& given) {
    HttpOptions options = given.http;
    options.port = 0;
    return options;
  }

  Metrics metrics_;
  Service service_;
  HttpServer http_;
  uint16_t port_ = 0;
  std::thread thread_;
};

const std::vector<std::string> kTexts = {"Tom bit a dog.", "It rained. We stayed at home!",
                                         "Hello"};

std::vector<std::vector<float>> vectors(const std::string& model, bool normalize,
                                        const std::vector<std::string>& texts = kTexts) {
  phasor::Encoder encoder(phasor::Model::load(bundled_model(model)));
  phasor::Pooling pooling = encoder.model().sentence().pooling;
  pooling.normalize = normalize;
  const phasor::Embeddings embeddings = encoder.embed(texts, {.pooling = pooling});
  std::vector<std::vector<float>> all;
  for (int64_t i = 0; i < embeddings.size(); ++i)
    all.emplace_back(embeddings[i].begin(), embeddings[i].end());
  return all;
}

/// The float32 nearest to each number of a list.
std::vector<float> floats(const Json& list) {
  std::vector<float> all;
  for (const Json& number : list) all.push_back(number.get<float>());
  return all;
}

/// Whether a list of lists has these rows, to the last bit.
bool are(const Json& lists, const std::vector<std::vector<float>>& rows) {
  return std::ranges::equal(lists, rows,
                            [](const Json& list, const auto& row) { return floats(list) == row; });
}

TEST(ServeTest, VectorsAreThoseOfTheLibraryToTheLastBit) {
  const Server server({.models = {{"sinusoidal", bundled_model("sinusoidal").string()},
                                  {"other", bundled_model("learned").string()}}});
  const auto want = vectors("sinusoidal", true);
  EXPECT_TRUE(are(server.post("/embed", {{"inputs", kTexts}}).json(), want));
  EXPECT_TRUE(are(server.post("/embed", {{"inputs", kTexts[2]}}).json(), {want[2]}));
  EXPECT_TRUE(are(server.post("/embed", {{"inputs", kTexts}, {"normalize", false}}).json(),
                  vectors("sinusoidal", false)));

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
  const Json coded = server
                         .post("/v1/embeddings", {{"input", kTexts[0]},
                                                  {"encoding_format", "base64"},
                                                  {"dimensions", 3},
                                                  {"user", "someone"}})
                         .json();
  double squares = 0;
  for (int c = 0; c < 3; ++c) squares += static_cast<double>(want[0][c]) * want[0][c];
  std::vector<float> cut;
  for (int c = 0; c < 3; ++c) cut.push_back(static_cast<float>(want[0][c] / std::sqrt(squares)));
  EXPECT_EQ(coded["data"][0]["embedding"], base64(cut));
}

TEST(ServeTest, Base64IsThatOfTheStandard) {
  const auto coded = [](uint32_t bits) { return base64({std::bit_cast<float>(bits)}); };
  EXPECT_EQ(coded(0x3f000000), "AAAAPw==");          // 0.5
  EXPECT_EQ(base64({0.5f, -2.0f}), "AAAAPwAAAMA=");  // checked with coreutils' base64
  EXPECT_EQ(base64({1.0f, 2.0f, 3.0f}), "AACAPwAAAEAAAEBA");
  EXPECT_EQ(base64({}), "");
}

TEST(ServeTest, KeysAreComparedWhole) {
  EXPECT_TRUE(equal_keys("secret", "secret"));
  for (const char* given : {"", "s", "secre", "secrets", "Secret", "secretsecret"})
    EXPECT_FALSE(equal_keys(given, "secret")) << given;
  EXPECT_FALSE(equal_keys("a", ""));
}

TEST(ServeTest, StatesOfEveryTokenAndTokens) {
  const Server server;
  phasor::Encoder encoder(phasor::Model::load(bundled_model("sinusoidal")));
  const phasor::Encoding encoding = encoder.encode(kTexts);
  const Json states = server.post("/embed_all", {{"inputs", kTexts}}).json();
  const Json tokens = server.post("/tokenize", {{"inputs", kTexts}}).json();
  const Json bare =
      server.post("/tokenize", {{"inputs", kTexts[0]}, {"add_special_tokens", false}}).json();
  for (int64_t i = 0; i < std::ssize(kTexts); ++i) {
    ASSERT_EQ(std::ssize(states[i]), encoding.num_tokens(i));
    std::vector<float> all;
    for (const Json& row : states[i]) {
      for (const Json& number : row) all.push_back(number.get<float>());
    }
    EXPECT_TRUE(std::ranges::equal(all, encoding.hidden(i)));
    ASSERT_EQ(std::ssize(tokens[i]), encoding.num_tokens(i));
    for (int64_t t = 0; t < encoding.num_tokens(i); ++t) {
      EXPECT_EQ(tokens[i][t]["id"], encoding.token_ids(i)[t]);
      EXPECT_EQ(tokens[i][t]["special"], t == 0 || t + 1 == encoding.num_tokens(i));
    }
  }
  EXPECT_EQ(bare[0].size(), tokens[0].size() - 2);
  EXPECT_EQ(bare[0][0]["text"], "▁Tom");
}

TEST(ServeTest, SimilaritiesAreCosines) {
  const Server server;
  const auto all = vectors("sinusoidal", true);
  const Json reply =
      server
          .post(
              "/similarity",
              {{"inputs", {{"source_sentence", kTexts[0]}, {"sentences", {kTexts[1], kTexts[0]}}}}})
          .json();
  ASSERT_EQ(reply.size(), 2u);
  EXPECT_EQ(reply[0].get<float>(), static_cast<float>(phasor::cosine(all[0], all[1])));
  EXPECT_EQ(reply[1].get<float>(), 1);
}

TEST(ServeTest, LabelsAndRanks) {
  const phasor::BertFolder three({"yes", "no", "maybe"}), one({"relevant"});
  const Server labels({.models = {{"labels", three.path()}}});
  phasor::Encoder encoder(phasor::Model::load(three.path()));
  const phasor::Classification want = encoder.classify({"a b", "c d e"});
  const Json both = labels.post("/predict", {{"inputs", {{"a b"}, {"c d e"}}}}).json();
  ASSERT_EQ(both.size(), 2u);
  for (int64_t i = 0; i < 2; ++i) {
    ASSERT_EQ(both[i].size(), 3u);
    float before = 2;
    for (const Json& item : both[i]) {
      const auto& names = encoder.model().weights().classifier->labels;
      const auto l = std::ranges::find(names, item["label"].get<std::string>()) - names.begin();
      EXPECT_EQ(item["score"].get<float>(), want.probabilities(i)[l]);
      EXPECT_LE(item["score"].get<float>(), before);
      before = item["score"].get<float>();
    }
  }
  EXPECT_EQ(labels.post("/predict", {{"inputs", "a b"}}).json(), both[0]);
  const Json raw = labels.post("/predict", {{"inputs", "a b"}, {"raw_scores", true}}).json();
  EXPECT_EQ(raw[0]["score"].get<float>(), *std::ranges::max_element(want.logits(0)));
  // A flat pair is one pair.
  const phasor::Classification pair = encoder.classify({"a b"}, {"c d e"});
  EXPECT_EQ(labels.post("/predict", {{"inputs", {"a b", "c d e"}}}).json()[0]["score"].get<float>(),
            *std::ranges::max_element(pair.probabilities(0)));
  EXPECT_EQ(labels.post("/predict", {{"inputs", {{"a", "b"}, {"c", "d"}}}}).json().size(), 2u);
  EXPECT_EQ(labels.post("/rerank", {{"query", "a"}, {"texts", {"b"}}}).status, 422);

  const Server ranks({.models = {{"ranks", one.path()}}});
  phasor::Encoder reranker(phasor::Model::load(one.path()));
  const std::vector<std::string> documents = {"a b c", "d e", "x y z", "a"};
  const phasor::Ranking ranking = reranker.rank("a d", documents);
  const Json tei =
      ranks.post("/rerank", {{"query", "a d"}, {"texts", documents}, {"return_text", true}}).json();
  const Json cohere =
      ranks
          .post(
              "/v1/rerank",
              {{"model", "any"},
               {"query", "a d"},
               {"documents", {documents[0], documents[1], {{"text", documents[2]}}, documents[3]}},
               {"top_n", 2},
               {"return_documents", true}})
          .json();
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

TEST(ServeTest, AMistakeHasAStatusAndAReason) {
  const Server server({.models = {{"a", bundled_model("sinusoidal").string()},
                                  {"b", bundled_model("learned").string()}}});
  struct Case {
    const char* path;
    std::string body;
    int status;
    const char* reason;
  };
  const std::string many = Json{{"inputs", std::vector<std::string>(33, "a")}}.dump();
  for (const Case& each : std::vector<Case>{
           {"/embed", "", 400, "JSON"},
           {"/embed", "{\"inputs\": \"a\"", 400, "JSON"},
           {"/embed", "{\"inputs\": \"\xff\"}", 400, "JSON"},
           {"/embed", std::string(100'000, '['), 400, ""},
           {"/embed", "[1]", 422, "object"},
           {"/embed", "{}", 422, "`inputs` is missing"},
           {"/embed", R"({"inputs": null})", 422, "`inputs` is missing"},
           {"/embed", R"({"inputs": []})", 400, "empty"},
           {"/embed", R"({"inputs": ""})", 400, "empty"},
           {"/embed", R"({"inputs": ["a", ""]})", 400, "empty"},
           {"/embed", R"({"inputs": 3})", 422, "string"},
           {"/embed", R"({"inputs": ["a", 3]})", 422, "token ids"},
           {"/embed", R"({"inputs": [[1, 2]]})", 422, "token ids"},
           {"/embed", R"({"inputs": [true]})", 422, "string"},
           {"/embed", many, 413, "33 texts"},
           {"/embed", R"({"inputs": "a", "normalize": "yes"})", 422, "`normalize`"},
           {"/embed", R"({"inputs": "a", "prompt_name": "query"})", 422, "prompt"},
           {"/embed", R"({"inputs": "a", "dimensions": 0})", 422, "`dimensions`"},
           {"/embed", R"({"inputs": "a", "dimensions": 129})", 422, "`dimensions`"},
           {"/embed", R"({"inputs": "a", "dimensions": 1e99})", 422, "`dimensions`"},
           {"/embed", R"({"inputs": "a", "truncation_direction": "left"})", 422, "truncation"},
           {"/v1/embeddings", R"({"input": []})", 400, "empty"},
           {"/v1/embeddings", R"({"input": [1, 2, 3]})", 422, "check_embedding_ctx_length"},
           {"/v1/embeddings", R"({"input": "a", "encoding_format": "hex"})", 422,
            "encoding_format"},
           {"/v1/embeddings", R"({"input": "a", "model": "c"})", 404, "no model"},
           {"/v1/embeddings", R"({"input": "a", "model": 7})", 422, "`model`"},
           {"/predict", R"({"inputs": "a"})", 422, "classification head"},
           {"/v1/rerank", R"({"query": "a", "documents": ["b"]})", 422, "classification head"},
           {"/similarity", R"({"inputs": {"sentences": ["b"]}})", 422, "source_sentence"},
           {"/similarity", R"({"inputs": "a"})", 422, "object"},
           {"/nothing", "{}", 404, "/nothing"},
           {"/health", "{}", 405, "POST"},
       }) {
    SCOPED_TRACE(std::string(each.path) + " " + each.body.substr(0, 60));
    const Answer answer = server.post_text(each.path, each.body);
    EXPECT_EQ(answer.status, each.status);
    const Json json = answer.json();
    const bool openai = std::string(each.path).starts_with("/v1/");
    const std::string said = openai ? json["error"]["message"] : json["error"];
    EXPECT_NE(said.find(each.reason), std::string::npos) << said;
    EXPECT_TRUE(openai ? json["error"]["type"].is_string() : json["error_type"].is_string());
  }
  EXPECT_EQ(server.post_text("/embed", "{}", "Content-Encoding: gzip\r\n").status, 415);
  EXPECT_EQ(server.get("/embed").status, 405);
  EXPECT_EQ(server.get("/health?deep=1").status, 200);
  // Too long, where it may not be cut; and as long as may be.
  std::string words = "a";
  for (int i = 0; i < 200; ++i) words += " dog";
  for (const char* route : {"/embed", "/embed_all"}) {
    for (const char* fits : {"a", words.c_str()}) {
      const bool is_long = fits == words;
      EXPECT_EQ(server.post(route, {{"inputs", fits}}).status, 200);
      const Answer whole = server.post(route, {{"inputs", fits}, {"truncate", false}});
      EXPECT_EQ(whole.status, is_long ? 422 : 200) << route;
      if (is_long) {
        EXPECT_NE(whole.body.find("128"), std::string::npos) << whole.body;
      }
    }
  }
  EXPECT_EQ(server.post("/embed_all", {{"inputs", words}}).json()[0].size(), 128u);
  EXPECT_EQ(server.get("/info").json()["max_input_length"], 128);
}

TEST(ServeTest, KeysAreAskedFor) {
  const Server server({.service = {.keys = {"one", "two"}}});
  const Json body = {{"inputs", "a"}};
  for (const char* header : {"", "Authorization: Bearer three\r\n", "Authorization: one\r\n",
                             "Authorization: Basic one\r\n", "Authorization: Bearer \r\n"}) {
    const Answer answer = server.post("/embed", body, header);
    EXPECT_EQ(answer.status, 401) << header;
    EXPECT_NE(answer.head.find("WWW-Authenticate: Bearer"), std::string::npos);
    EXPECT_EQ(server.get("/nothing", header).status, 401);
  }
  EXPECT_EQ(server.post("/embed", body, "Authorization: Bearer one\r\n").status, 200);
  EXPECT_EQ(server.post("/embed", body, "Authorization: bEARER one\r\n").status, 200);
  Client trailing(server.port());
  trailing.send("POST /embed HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n"
                "\r\nf\r\n{\"inputs\": \"a\"}\r\n0\r\nAuthorization: Bearer one\r\n\r\n");
  EXPECT_EQ(trailing.receive().status, 401);
  EXPECT_EQ(server.post("/embed", body, "Authorization: Bearer two\r\n").status, 200);
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(ServeTest, HttpIsReadAndRefusedAsItShould) {
  const Server server({.http = {.max_body = 1000, .max_header = 2000}});
  const std::string ok = R"({"inputs": "a"})", large(2000, ' ');
  {  // one after the other, and at once
    Client client(server.port());
    for (int i = 0; i < 3; ++i) {
      client.send("POST", "/embed", ok);
      EXPECT_EQ(client.receive().status, 200);
    }
    client.send("GET", "/health");
    client.send("POST", "/embed", ok);
    client.send("GET", "/nothing");
    EXPECT_EQ(client.receive().status, 200);
    EXPECT_EQ(client.receive().status, 200);
    EXPECT_EQ(client.receive().status, 404);
    client.send("HEAD", "/health");
    EXPECT_EQ(client.receive(false).status, 200);
    client.send("GET", "/health", {}, "Connection: close\r\n");
    EXPECT_EQ(client.receive().status, 200);
    EXPECT_TRUE(client.is_closed());
  }
  {  // in pieces
    Client client(server.port());
    const std::string request =
        fmt::format("POST /embed HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", ok.size(), ok);
    for (const char byte : request) client.send(std::string_view(&byte, 1));
    EXPECT_EQ(client.receive().status, 200);
    client.send("POST /embed HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char byte : ok) client.send(fmt::format("1\r\n{}\r\n", byte));
    client.send("0\r\n\r\n");
    EXPECT_EQ(client.receive().status, 200);
  }
  {  // a client that asks first
    Client client(server.port());
    client.send(fmt::format(
        "POST /embed HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n", ok.size()));
    EXPECT_EQ(client.receive(false).status, 100);
    client.send(ok);
    EXPECT_EQ(client.receive().status, 200);
    client.send("POST /embed HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n");
    EXPECT_EQ(client.receive().status, 413);
  }
  const auto refused = [&](std::string_view bytes) {
    Client client(server.port());
    client.send(bytes);
    const int status = client.receive().status;
    EXPECT_TRUE(client.is_closed());
    return status;
  };
  EXPECT_EQ(refused("POST /embed HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + large), 413);
  EXPECT_EQ(refused("POST /embed HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + large),
            413);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nX: " + std::string(3000, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nX: " + std::string(300'000, 'x')), 431);
  const std::string ext = "POST /embed HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;";
  EXPECT_EQ(refused(ext + std::string(300'000, 'x')), 431);
  EXPECT_EQ(refused("nonsense\r\n\r\n"), 400);
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, chunked", "identity"}) {
    EXPECT_EQ(refused(fmt::format("POST /embed HTTP/1.1\r\nTransfer-Encoding: {}\r\n\r\n0\r\n\r\n",
                                  coding)),
              400)
        << coding;
  }
  EXPECT_EQ(refused("POST /embed HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n0\r\n\r\n"),
            400);
  EXPECT_EQ(refused("POST /embed HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(refused(std::string("\0\1\2\3\r\n\r\n", 8)), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 400);
  {  // HTTP/1.0 is answered in HTTP/1.0
    Client client(server.port());
    client.send("GET /health HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_TRUE(client.receive().head.starts_with("HTTP/1.0 200"));
    EXPECT_TRUE(client.is_closed());
  }
  // What could not be read has the shape of its route, and is counted with it.
  Client client(server.port());
  client.send("POST /v1/embeddings HTTP/1.1\r\nContent-Length: 5000\r\n\r\n");
  EXPECT_EQ(client.receive().json()["error"]["type"], "invalid_request_error");
  EXPECT_EQ(server.metric("phasor_requests_total{route=\"/v1/embeddings\",status=\"413\"}"), 1);
  // A path may come as proxies have it, or escaped.
  EXPECT_EQ(server.get("http://a:1/health?b").status, 200);
  EXPECT_EQ(server.get("/%68ealth").status, 200);
  for (const char* path : {"/%6", "/%zz", "/%", "health", "*", "http://a"})
    EXPECT_EQ(server.get(path).status, 404) << path;
  EXPECT_NE(server.get("/embed").head.find("Allow: POST\r\n"), std::string::npos);
}

TEST(ServeTest, SlowClientsAreToldAndLetGo) {
  const Server server({.http = {.head_time = 200ms, .body_time = 200ms, .idle_time = 200ms}});
  Client idle(server.port()), head(server.port()), body(server.port());
  head.send("POST /embed HTT");
  body.send("POST /embed HTTP/1.1\r\nContent-Length: 15\r\n\r\n{\"inputs\"");
  EXPECT_EQ(head.receive().status, 408);
  EXPECT_EQ(body.receive().status, 408);
  EXPECT_TRUE(head.is_closed());
  EXPECT_TRUE(body.is_closed());
  EXPECT_TRUE(idle.is_closed());
  EXPECT_EQ(server.get("/health").status, 200);
}

/// A request that keeps the engine busy for a while.
Json long_request() {
  std::string text = "Tom";
  for (int i = 0; i < 1500; ++i) text += " dog";
  return {{"inputs", std::vector<std::string>(32, text)}};
}

TEST(ServeTest, AFullQueueSaysSo) {
  const Server server({.service = {.queue = {.max_batch_tokens = 16, .max_queue = 1}}});
  Client busy(server.port());
  busy.send("POST", "/embed", long_request().dump());
  int refused = 0;
  for (int i = 0; i < 1000 && refused == 0; ++i) {
    const Answer answer = server.post("/embed", {{"inputs", "a"}});
    if (answer.status != 429) continue;
    ++refused;
    EXPECT_NE(answer.head.find("Retry-After: 1"), std::string::npos);
    EXPECT_EQ(answer.json()["error_type"], "Overloaded");
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(busy.receive().status, 200);
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 200);
}

/// A text that is cut to 128 tokens, `count` times.
Json long_request(int count) {
  return {{"inputs", std::vector<std::string>(count, long_request()["inputs"][0])}};
}

TEST(ServeTest, WhoWaitsTooLongIsTold) {
  const Server server({.service = {.timeout = 60ms, .max_texts = 1000},
                       .http = {.max_body = 1 << 24}});
  Client busy(server.port());
  busy.send("POST", "/embed", long_request(512).dump());  // some batches, each longer than that
  std::this_thread::sleep_for(30ms);
  const Answer late = server.post("/embed", {{"inputs", "a"}});
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(late.json()["error_type"], "Timeout");
  EXPECT_EQ(server.metric("phasor_dropped_total"), 1);
  EXPECT_EQ(busy.receive().status, 200);  // what has begun is ended
}

TEST(ServeTest, WhoHasGoneLeavesTheQueue) {
  const Server server({.service = {.queue = {.max_batch_tokens = 16}}});
  // By closing; with a byte more than the request before; with a reset.
  for (int i = 0; i < 3; ++i) {
    Client client(server.port());
    client.send("POST", "/embed", long_request().dump());
    std::this_thread::sleep_for(20ms);
    if (i == 1) client.send("G");
    if (i > 0) client.reset();
  }  // closes
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (server.metric("phasor_dropped_total") < 3 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(server.metric("phasor_dropped_total"), 3);
  EXPECT_EQ(server.metric("phasor_requests_total{route=\"/embed\",status=\"499\"}"), 3);
  EXPECT_LT(server.metric("phasor_texts_total"), 96);
  EXPECT_EQ(server.metric("phasor_queue_requests{model=\"sinusoidal\"}"), 0);
}

TEST(ServeTest, AClientThatOnlyEndsItsOwnSideGetsItsAnswer) {
  const Server server({.service = {.queue = {.max_batch_tokens = 16}}});
  const Json large = long_request();
  for (const Json& body : {large, Json{{"inputs", "a"}}}) {
    Client client(server.port());
    client.send("POST", "/embed", body.dump());
    client.end();
    const Answer answer = client.receive();
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(answer.head.find("Connection: close"), std::string::npos);
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(ServeTest, WhatIsSentWhileARequestIsComputedComesNext) {
  const Server server;
  Client client(server.port());
  client.send("POST", "/embed", long_request().dump());
  std::this_thread::sleep_for(20ms);
  client.send("GET /heal");
  std::this_thread::sleep_for(20ms);
  client.send("th HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.receive().json().size(), 32u);
  EXPECT_EQ(client.receive().body, "{\"status\":\"ok\"}");
}

TEST(ServeTest, AnswersThatNobodyTakesEndInRefusals) {
  const Server server({.http = {.max_body = 1 << 24, .max_unsent = 1 << 20}});
  std::list<Client> clients;  // each is sent 32·128·128 numbers, and reads none
  for (int i = 0; i < 4; ++i)
    clients.emplace_back(server.port()).send("POST", "/embed_all", long_request().dump());
  Answer answer;
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (answer.status != 503 && std::chrono::steady_clock::now() < end)
    answer = server.post("/embed", {{"inputs", "a"}});
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.head.find("Retry-After"), std::string::npos);
  EXPECT_EQ(answer.json()["error_type"], "Http");
  for (Client& client : clients) EXPECT_EQ(client.receive().json().size(), 32u);
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 200);
}

TEST(ServeTest, TheLongestIdleConnectionMakesRoom) {
  const Server server({.http = {.max_connections = 3}});
  Client first(server.port()), second(server.port()), third(server.port());
  for (Client* const client : {&second, &first, &third}) {
    client->send("GET", "/health");
    EXPECT_EQ(client->receive().status, 200);
  }
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_TRUE(second.is_closed());
  for (Client* const client : {&first, &third}) {
    client->send("GET", "/health");
    EXPECT_EQ(client->receive().status, 200);
  }
}

TEST(ServeTest, TheQueueIsBoundedInBytes) {
  const Server server({.service = {.queue = {.max_queue_bytes = 1 << 20}},
                       .http = {.max_body = 1 << 24}});
  const std::string large(3 << 20, 'a');
  Client busy(server.port());
  busy.send("POST", "/embed", Json{{"inputs", large}}.dump());  // alone it may be larger
  Answer answer;
  for (int i = 0; i < 1000 && answer.status != 429; ++i)
    answer = server.post("/embed", {{"inputs", "a"}});
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(busy.receive().status, 200);
  // The query counts once for each document.
  const phasor::BertFolder one({"relevant"});
  const Server ranks({.models = {{"ranks", one.path()}}});
  const Json rerank = {{"query", std::string(40'000, 'a')},
                       {"documents", std::vector<std::string>(2048, "b")}};
  EXPECT_EQ(ranks.post("/v1/rerank", rerank).status, 413);
}

TEST(ServeTest, ASmallRequestDoesNotWaitForALargeOne) {
  const Server server({.service = {.max_texts = 1000, .queue = {.max_batch_tokens = 2048}},
                       .http = {.max_body = 1 << 24}});
  const std::string dogs = long_request()["inputs"][0];
  const Json large = {{"inputs", std::vector<std::string>(256, dogs)}};
  std::atomic<bool> ended = false;
  std::thread waits([&] {
    EXPECT_EQ(server.post("/embed", large).status, 200);
    ended = true;
  });
  while (server.metric("phasor_batch_texts_count") == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 200);
  EXPECT_FALSE(ended);
  waits.join();
}

TEST(ServeTest, ManyClientsGetTheirOwnAnswersAndAMistakeIsItsOwn) {
  const Server server({.models = {{"learned", bundled_model("learned").string()}}});
  std::string long_text = "Tom";
  for (int i = 0; i < 200; ++i) long_text += " dog";
  std::vector<std::string> texts;
  for (int i = 0; i < 24; ++i)
    texts.push_back(fmt::format("Tom bit {} dogs and {} cats.", i, i * i));
  const auto want = vectors("learned", true, texts);
  std::latch start(24);
  std::vector<std::thread> clients;
  for (size_t c = 0; c < 24; ++c) {
    clients.emplace_back([&, c] {
      start.arrive_and_wait();
      Client client(server.port());
      for (size_t i = 0; i < 8; ++i) {
        // The same kind as the others', so that they share batches.
        const bool wrong = (c + i) % 5 == 0;
        const Json body = {{"inputs", wrong ? long_text : texts[(c + i) % 24]},
                           {"truncate", false}};
        client.send("POST", "/embed", body.dump());
        const Answer answer = client.receive();
        EXPECT_EQ(answer.status, wrong ? 422 : 200);
        if (wrong) continue;
        EXPECT_TRUE(are(answer.json(), {want[(c + i) % 24]}));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LT(server.metric("phasor_batch_texts_count"), 192);  // some were run together
}

TEST(ServeTest, BeforeItIsReadyAndWhileItGoesDown) {
  Server server({.service = {.queue = {.max_batch_tokens = 16}}, .ready = false});
  EXPECT_EQ(server.get("/health").status, 503);
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 503);
  server.service().ready();
  EXPECT_EQ(server.get("/health").status, 200);
  Client idle(server.port()), busy(server.port()), half(server.port());
  idle.send("GET", "/health");
  EXPECT_EQ(idle.receive().status, 200);
  busy.send("POST", "/embed", long_request().dump());
  half.send("POST /embed HTTP/1.1\r\nContent-Le");
  while (server.metric("phasor_batch_texts_count") == 0) std::this_thread::sleep_for(1ms);
  server.drain();
  EXPECT_TRUE(idle.is_closed());
  half.send("ngth: 15\r\n\r\n{\"inputs\": \"a\"}");
  EXPECT_EQ(half.receive().status, 503);
  const Answer answer = busy.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("Connection: close"), std::string::npos);
  server.join();
  EXPECT_FALSE(Client(server.port()).connected());
}

TEST(ServeTest, OpenAisAndCoheresClients) {
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

constexpr const char* kIsJson = "Content-Type: application/json\r\n";

/// What infer observe puts into its page.
Json observed(std::vector<std::string> arguments) {
  const phasor::TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  arguments.insert(arguments.begin(), {"infer", "observe", "-q", "--html", file});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_command(static_cast<int>(argv.size()), argv.data()), 0);
  testing::internal::GetCapturedStdout();
  const std::string page = phasor::read_text_file(file), begin = "id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(ServeTest, WhatIsObservedIsThePageOfInferObserve) {
  const Server server({.models = {{"sinusoidal", bundled_model("sinusoidal").string()},
                                  {"learned", bundled_model("learned").string()}}});
  const auto observe = [&](const Json& body) {
    const Answer answer = server.post("/observe", body, kIsJson);
    EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 200);
    return answer.json();
  };
  EXPECT_TRUE(observe({{"texts", kTexts[0]}}) == observed({kTexts[0]}));
  EXPECT_TRUE(observe({{"texts", {kTexts[0], kTexts[1]}},
                       {"model", "learned"},
                       {"edits", {"reverse", "scale=0.5"}},
                       {"cut_residuals", {"2.attn", "1"}}}) ==
              observed({kTexts[0], kTexts[1], "-m", "learned", "--edit", "reverse", "--edit",
                        "scale=0.5", "--cut-residual", "2.attn", "--cut-residual", "1"}));
  EXPECT_TRUE(observe({{"texts", {"Tom [MASK] a dog."}}, {"positions", "none"}}) ==
              observed({"Tom [MASK] a dog.", "--positions", "none"}));
  std::string words = "Tom";
  for (int i = 0; i < 200; ++i) words += " dog";
  const Json cut = observe({{"texts", words}});
  EXPECT_EQ(cut["texts"][0]["runs"][0]["observed"]["ids"].size(), 128u);
  EXPECT_EQ(cut["texts"][0]["runs"][0]["observed"]["dropped"], 203 - 128);
}

TEST(ServeTest, WhatCannotBeObservedHasAReason) {
  const Server server({.models = {{"a", bundled_model("sinusoidal").string()},
                                  {"b", bundled_model("learned").string()}}});
  const std::vector<std::string> many(33, "reverse");
  struct Case {
    Json body;
    int status;
    const char* reason;
  };
  for (const Case& each : std::vector<Case>{
           {{{"text", "a"}}, 422, "`texts` is missing"},
           {{{"texts", {"a", ""}}}, 400, "empty"},
           {{{"texts", {"a", "b", "c"}}}, 413, "3 texts"},
           {{{"texts", std::string(10'001, 'a')}}, 422, "10001 bytes"},
           {{{"texts", "a"}, {"model", "c"}}, 404, "no model"},
           {{{"texts", "a"}, {"positions", "left"}}, 422, "left"},
           {{{"texts", "a"}, {"positions", "learned"}}, 422, "no position table"},
           {{{"texts", "a"}, {"edits", {"turn"}}}, 422, "turn"},
           {{{"texts", "a"}, {"edits", {"swap=0,99"}}}, 422, "99"},
           {{{"texts", "a"}, {"edits", {"reverse", "table=/etc/passwd"}}}, 422, "reads no files"},
           {{{"texts", "a"}, {"edits", many}}, 413, "33 texts"},
           {{{"texts", "a"}, {"cut_residuals", {"9"}}}, 422, "no layer 9"},
           {{{"texts", "a"}, {"cut_residuals", {"first"}}}, 422, "first"},
       }) {
    SCOPED_TRACE(each.body.dump().substr(0, 80));
    const Answer answer = server.post("/observe", each.body, kIsJson);
    EXPECT_EQ(answer.status, each.status);
    const std::string said = answer.json()["error"];
    EXPECT_NE(said.find(each.reason), std::string::npos) << said;
  }
  // What a page of another site may send without asking us.
  const Json good = {{"texts", "a"}, {"edits", Json::array()}};
  for (const char* type :
       {"", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"})
    EXPECT_EQ(server.post("/observe", good, type).status, 415) << type;
  const Answer answer = server.post("/observe", good, kIsJson);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.head.find("Access-Control"), std::string::npos);
  EXPECT_EQ(Server({.service = {.timeout = 0ms}}).post("/observe", good, kIsJson).status, 504);
}

TEST(ServeTest, ThePageIsOpenAndHoldsNoSecrets) {
  const Server server({.models = {{"<script>alert(1)</script>", bundled_model("none").string()}},
                       .service = {.keys = {"open sesame"}}});
  const Answer page = server.get("/");
  EXPECT_EQ(page.status, 200);
  for (const char* header : {"Content-Type: text/html", "X-Content-Type-Options: nosniff",
                             "Referrer-Policy: no-referrer", "frame-ancestors 'none'"})
    EXPECT_NE(page.head.find(header), std::string::npos) << header;
  EXPECT_EQ(page.body.find("sesame"), std::string::npos);
  EXPECT_EQ(page.body.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(page.body.find("connect-src 'self'"), std::string::npos);
  const Json body = {{"texts", "a"}};
  EXPECT_EQ(server.post("/observe", body, kIsJson).status, 401);
  const std::string key = "Authorization: Bearer open sesame\r\n";
  EXPECT_EQ(server.post("/observe", body, kIsJson + key).status, 200);
}

/// An observation that takes a second or more.
Json long_observation() {
  const std::string text = long_request()["inputs"][0].get<std::string>().substr(0, 2000);
  return {{"texts", {text, text}}, {"edits", {"reverse"}}};
}

TEST(ServeTest, EmbeddingDoesNotWaitForObservations) {
  const Server server;
  const auto want = vectors("sinusoidal", true);
  std::atomic<bool> ended = false;
  std::thread waits([&] {
    EXPECT_EQ(server.post("/observe", long_observation(), kIsJson).status, 200);
    ended = true;
  });
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(are(server.post("/embed", {{"inputs", kTexts}}).json(), want));
  EXPECT_FALSE(ended);
  waits.join();
}

TEST(ServeTest, FewObservationsWaitAndAbandonedOnesEnd) {
  const Server server;
  const auto reaches = [&](const char* metric, double count) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (server.metric(metric) < count && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(10ms);
    return server.metric(metric) >= count;
  };
  std::list<Client> clients;  // one is observed, eight wait, others are refused
  for (int i = 0; i < 10; ++i)
    clients.emplace_back(server.port())
        .send("POST", "/observe", long_observation().dump(), kIsJson);
  EXPECT_TRUE(reaches("phasor_requests_total{route=\"/observe\",status=\"429\"}", 1));
  clients.clear();
  EXPECT_TRUE(reaches("phasor_dropped_total", 8));
  EXPECT_EQ(server.post("/observe", {{"texts", "a"}}, kIsJson).status, 200);
}

TEST(ServeTest, MetricsCountRequests) {
  const Server server;
  for (int i = 0; i < 3; ++i) server.post("/embed", {{"inputs", kTexts}});
  server.post("/embed", {{"inputs", ""}});
  const std::string text = server.get("/metrics").body;
  for (const char* line :
       {"phasor_requests_total{route=\"/embed\",status=\"200\"} 3\n",
        "phasor_requests_total{route=\"/embed\",status=\"400\"} 1\n",
        "phasor_request_seconds_count{route=\"/embed\"} 4\n",
        "phasor_request_seconds_bucket{route=\"/embed\",le=\"+Inf\"} 4\n",
        "phasor_batch_texts_count 3\n", "phasor_batch_texts_sum 9\n", "phasor_texts_total 9\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

}  // namespace
}  // namespace infer
