// infer serve: requests are read as the standard has them, and no connection keeps others waiting.
#include "tests/serve/client.h"
#include "tests/support/run_program.h"

namespace infer {
namespace {

const std::string kGet = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
const std::string kPost = "POST /embed HTTP/1.1\r\nHost: localhost\r\n";

TEST(HttpTest, HttpIsReadAsTheStandardHasIt) {
  const Server server({.http = {.max_body = 1000, .max_header = 2000}});
  const std::string ok = R"({"inputs": "a"})";
  {  // one after the other, and at once
    Client client(server.port());
    for (int i = 0; i < 3; ++i) {
      client.send("POST", "/embed", ok);
      EXPECT_EQ(client.receive().status, 200);
    }
    client.send("GET", "/health");
    client.send("POST", "/embed", ok);
    client.send("GET", "/nothing");
    for (const int status : {200, 200, 404}) EXPECT_EQ(client.receive().status, status);
    client.send("HEAD", "/health");
    EXPECT_EQ(client.receive(false).status, 200);
    client.send("GET", "/health", {}, "Connection: close\r\n");
    EXPECT_EQ(client.receive().status, 200);
    EXPECT_TRUE(client.is_closed());
  }
  {  // with empty lines before and between them, as some clients send it
    Client client(server.port());
    const std::string get = kGet + "\r\n";
    client.send("\r\n\r\n" + get + "\r\n" + get);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(client.receive().status, 200);
    const std::string lines = phasor::repeat("\r\n", 50'000);
    for (const size_t cut : {size_t{2}, size_t{1}, lines.size() - 1}) {
      client.send(lines.substr(0, cut));
      std::this_thread::sleep_for(20ms);
      client.send(lines.substr(cut) + get);
      EXPECT_EQ(client.receive().status, 200);
    }
  }
  {  // in pieces
    Client client(server.port());
    const auto request = fmt::format("{}Content-Length: {}\r\n\r\n{}", kPost, ok.size(), ok);
    for (const char byte : request) client.send(std::string_view(&byte, 1));
    EXPECT_EQ(client.receive().status, 200);
    client.send(kPost + "Transfer-Encoding: chunked\r\n\r\n");
    for (const char byte : ok) client.send(fmt::format("1\r\n{}\r\n", byte));
    client.send("0\r\n\r\n");
    EXPECT_EQ(client.receive().status, 200);
  }
  {  // a client that asks first
    Client client(server.port());
    const std::string asks = kPost + "Expect: 100-continue\r\nContent-Length: ";
    client.send(fmt::format("{}{}\r\n\r\n", asks, ok.size()));
    EXPECT_EQ(client.receive(false).status, 100);
    client.send(ok);
    EXPECT_EQ(client.receive().status, 200);
    client.send(asks + "5000\r\n\r\n");
    EXPECT_EQ(client.receive().status, 413);
  }
}

TEST(HttpTest, WhatItRefusesHasAStatusAndEndsTheConnection) {
  const Server server({.http = {.max_body = 1000, .max_header = 2000}});
  const std::string chunked = kPost + "Transfer-Encoding: chunked\r\n\r\n", end = "\r\n\r\n";
  const std::string body = R"({"inputs": "a"})", large(2000, ' '), endless(300'000, 'x');
  const std::string short_headers =
      phasor::repeat("X:\r\n", 100);  // each takes more than its bytes
  std::vector<std::pair<int, std::string>> rows = {
      {413, kPost + "Content-Length: 2000\r\n\r\n" + large},
      {413, chunked + "7d0\r\n" + large},
      {431, kGet + "X: " + std::string(3000, 'x') + end},
      {431, kGet + "X: " + endless},
      {431, chunked + "1;" + endless},
      {431, kPost + "Content-Length: 10\r\n" + short_headers + "\r\n"},
      {400, chunked + "f;a=\"\n\"\r\n" + body + "\r\n0\r\n\r\n"},
      {400, chunked + "f;a=\"\nGET /health HTTP/1.1\"\r\n" + body + "\r\n0\r\n\r\n"},
      {400, "nonsense\r\n\r\n"},
      {400, "\x16\x03\x01\x02"},  // TLS: at once, though no line has ended
      {400, std::string("\0\1\2\3\r\n\r\n", 8)},
      {400, "SSH-2.0-OpenSSH_9.2\r\n"},
      {400, "GET /health HTTP/1.1\nHost: localhost\n\n"},
      {400, kGet + "X: a\n\n"},
      {400, "GET /health HTTP/1.1\r\n\r\n"},
      {400, kGet + "Host: b\r\n\r\n"},
      {400, "GET /health HTTP/1.0\r\nHost: localhost\r\nHost: b\r\n\r\n"},
      {400, kGet + "Origin: \r\nOrigin: http://b\r\n\r\n"},
      {400, kGet + "Authorization: a\r\nAuthorization: b\r\n\r\n"},
      {400, kGet + "Content-Length: -1\r\n\r\n"},
      {400, kGet + "Content-Length: 99999999999999999999\r\n\r\n"},
      {400, kPost + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {400, "POST /embed HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}};
  for (const char* coding : {"gzip", "gzip, chunked", "chunked, chunked", "identity"})
    rows.emplace_back(400, fmt::format("{}Transfer-Encoding: {}{}0{}", kPost, coding, end, end));
  // A header on two lines, which a proxy may read as two.
  for (const char* fold : {"X: a\r\n b", "X: a\r\n\tb", "X:\r\n \r\n b", "X: a\n b", "Host : a",
                           " Host: a", "X: a\rb", "X\n: a"}) {
    rows.emplace_back(400, kGet + fold + end);
    rows.emplace_back(400, fmt::format("GET /health HTTP/1.1\r\n{}\r\nHost: a{}", fold, end));
  }
  for (const auto& [status, bytes] : rows) {
    Client client(server.port());
    client.send(bytes);
    EXPECT_EQ(client.receive().status, status) << bytes.substr(0, 200);
    EXPECT_TRUE(client.is_closed()) << bytes.substr(0, 200);
  }
}

TEST(HttpTest, HeadsAndPathsComeInManyForms) {
  const Server server({.http = {.max_body = 1000}});
  {  // HTTP/1.0 is answered in HTTP/1.0
    Client client(server.port());
    client.send("GET /health HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_TRUE(client.receive().head.starts_with("HTTP/1.0 200"));
    EXPECT_TRUE(client.is_closed());
  }
  // What could not be read has the shape of its route, and is counted with it.
  Client client(server.port());
  client.send("POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n");
  EXPECT_EQ(client.receive().json()["error"]["type"], "invalid_request_error");
  EXPECT_EQ(
      server.metric("phasor_requests_total{route=\"/v1/embeddings\",model=\"\",status=\"413\"}"),
      1);
  // A path may come as proxies have it, or escaped.
  EXPECT_EQ(server.get("http://localhost:1/health?b").status, 200);
  EXPECT_EQ(server.get("http://localhost:1").body, server.get("/").body);
  EXPECT_EQ(server.get("http://localhost:1?b=/health").body, server.get("/").body);
  EXPECT_EQ(server.get("/%68ealth").status, 200);
  for (const char* path : {"/%6", "/%zz", "/%", "health", "*"})
    EXPECT_EQ(server.get(path).status, 404) << path;
  EXPECT_NE(server.get("/embed").head.find("Allow: POST\r\n"), std::string::npos);
  EXPECT_NE(server.post("/health", {}).head.find("Allow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_NE(server.get("/health").head.find(" GMT\r\n"), std::string::npos);  // Date
}

TEST(HttpTest, SlowClientsAreLetGo) {
  // In a server each, so that a client that the machine holds up meets no other limit than its own.
  const Server no_idling({.http = {.idle_time = 1s}}), short_heads({.http = {.head_time = 1s}}),
      short_bodies({.http = {.body_time = 1s}});
  Client idle(no_idling.port()), head(short_heads.port()), body(short_bodies.port());
  head.send("POST /embed HTT");
  body.send(kPost + "Content-Length: 15\r\n\r\n{\"inputs\"");
  for (Client* const client : {&idle, &head, &body}) EXPECT_TRUE(client->is_closed());
  EXPECT_EQ(short_bodies.get("/health").status, 200);
}

TEST(HttpTest, AClientMaySendMoreWhileARequestIsComputed) {
  const Server server({.service = {.queue = {.max_batch_tokens = 16}}});
  Client client(server.port());
  client.send("POST", "/embed", long_request().dump());
  std::this_thread::sleep_for(20ms);
  client.send("GET /heal");
  std::this_thread::sleep_for(20ms);
  client.send("th HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.receive().json().size(), 32u);
  EXPECT_EQ(client.receive().body, "{\"status\":\"ok\"}");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += kGet + "\r\n";
  client.send("POST", "/embed", long_request().dump());
  client.send(many);
  EXPECT_EQ(client.receive().json().size(), 32u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.receive().status, 200);
}

TEST(HttpTest, ClientsThatHaveEndedLeaveTheirPlaces) {
  const Server server({.http = {.max_connections = 4, .idle_time = std::chrono::minutes(10)}});
  for (int i = 0; i < 40; ++i) {
    Client client(server.port());
    client.send("POST", "/embed", i % 2 == 0 ? R"({"in)" : R"({"inputs": "a"})");
    client.end();
    client.receive();
  }
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 200);
}

TEST(HttpTest, EndsWhileARequestWaitsAndNothingMoreIsRead) {
  std::optional<Server> server(std::in_place, Given{.http = {.max_body = 1 << 24}});
  Client client(server->port());
  client.send("POST", "/embed", long_request(400).dump());
  client.send(std::string(32'768, '\n'));  // more than is read ahead
  phasor::wait_until(
      [&] { return server->metric("phasor_queue_requests{model=\"sinusoidal\"}") == 1; });
  server.reset();
  EXPECT_EQ(client.receive().status, 0);
}

TEST(HttpTest, AnswersThatNobodyTakesKeepTheirMemoryForTheirTime) {
  const Server server({.service = {.max_memory = 50'000'000, .max_texts = 1000},
                       .http = {.max_body = 1 << 24, .write_time = 3s}});
  // Is sent 100·128·128 numbers, some 18 MB, and reads none; another would be counted with 40 MB.
  Client client(server.port());
  client.send("POST", "/embed_all", long_request(100).dump());
  phasor::wait_until([&] { return server.metric("phasor_texts_total") == 100; });
  EXPECT_EQ(server.post("/embed_all", long_request(100)).status, 429);
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 200);
  phasor::wait_until([&] { return server.post("/embed_all", long_request(100)).status == 200; });
  EXPECT_EQ(client.receive().status, 0);
}

TEST(HttpTest, TheSlowestClientMakesRoomForAnAnswer) {
  const Server server({.service = {.max_memory = 70'000'000, .max_texts = 1000},
                       .http = {.max_body = 1 << 24, .write_time = std::chrono::minutes(10)}});
  Client client(server.port());  // two answers of some 18 MB are more than half of the memory
  client.send("POST", "/embed_all", long_request(100).dump());
  phasor::wait_until([&] { return server.metric("phasor_texts_total") == 100; });
  phasor::wait_until([&] { return server.post("/embed_all", long_request(100)).status == 200; });
  EXPECT_EQ(client.receive().status, 0);
  EXPECT_EQ(server.metric("phasor_requests_total{route=\"/embed_all\",model=\"sinusoidal\","
                          "status=\"499\"}"),
            1);
}

TEST(HttpTest, WhereAllMemoryIsTakenTheServerStillSaysHowItIs) {
  Server server;
  Budget& budget = server.service().budget();
  Budget::Share all;
  ASSERT_TRUE(budget.resize(all, budget.limit()));
  EXPECT_EQ(server.get("/openapi.json").status, 429);
  EXPECT_EQ(server.get("/health").status, 200);
  const Answer metrics = server.get("/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_GT(metrics.body.size(), 1024u) << "such an answer is sent in any case";
}

TEST(HttpTest, BodiesThatDoNotEndHaveALimit) {
  Server server({.service = {.max_memory = 200'000}});  // half of it for bodies
  const std::string begun(45'000, ' '), large(30'000, ' ');
  std::list<Client> clients;
  for (const char* head :
       {"Content-Length: 50000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nffff\r\n"})
    clients.emplace_back(server.port()).send(fmt::format("{}{}{}", kPost, head, begun));
  phasor::wait_until([&] { return server.service().budget().used() == 2 * std::ssize(begun); });
  const Answer answer = server.post_text("/embed", large);
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.head.find("Retry-After"), std::string::npos);
  EXPECT_EQ(answer.json()["error_type"], "Http");
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 200);  // a small one has room
  clients.clear();
  phasor::wait_until([&] { return server.post_text("/embed", large).status == 400; });
  // Alone it would never fit.
  const Answer larger = server.post_text("/embed", std::string(150'000, ' '));
  EXPECT_EQ(larger.status, 413);
  EXPECT_NE(larger.body.find("--max-memory"), std::string::npos);
  const Server of_large_bodies({.http = {.max_body = 80 << 20}});
  EXPECT_EQ(of_large_bodies.post_text("/embed", std::string(70 << 20, ' ')).status, 400);
}

TEST(HttpTest, BeyondTheLimitOfConnectionsTheNextWaits) {
  const Server server({.http = {.max_connections = 3, .idle_time = 2s}});
  Client first(server.port()), second(server.port()), third(server.port());
  for (Client* const client : {&first, &second, &third}) {
    client->send("GET", "/health");
    EXPECT_EQ(client->receive().status, 200);
  }
  second.close();
  EXPECT_EQ(server.get("/health").status, 200);
  Client fourth(server.port()), fifth(server.port());
  EXPECT_EQ(server.get("/health").status, 200);  // when the first is idle no more
  EXPECT_TRUE(first.is_closed());
}

TEST(HttpTest, ARefusedClientThatStaysDoesNotHoldUpTheEnd) {
  Server server;
  Client refused(server.port());
  refused.send("xx\r\n\r\n");
  EXPECT_EQ(refused.receive().status, 400);
  const auto start = std::chrono::steady_clock::now();
  server.drain();
  server.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 8s);  // its two seconds, not the last ten
}

TEST(HttpTest, BeforeItIsReadyAndWhileItGoesDown) {
  Server server({.service = {.max_texts = 1000, .queue = {.max_batch_tokens = 16}},
                 .http = {.max_body = 1 << 24},
                 .ready = false});
  EXPECT_EQ(server.get("/health").status, 503);
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 503);
  server.service().ready();
  EXPECT_EQ(server.get("/health").status, 200);
  Client idle(server.port()), busy(server.port()), half(server.port()), begun(server.port());
  idle.send("GET", "/health");
  EXPECT_EQ(idle.receive().status, 200);
  busy.send("POST", "/embed", long_request(500).dump());
  half.send(kPost + "Content-Length: 15\r\n\r\n{\"inputs");
  begun.send("G");
  phasor::wait_until([&] { return server.metric("phasor_texts_total") > 0; });
  server.drain();
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(begun.is_closed());
  half.send("\": \"a\"}");
  EXPECT_EQ(half.receive().status, 503);
  const Answer answer = busy.receive();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("Connection: close"), std::string::npos);
  server.join();
  EXPECT_FALSE(Client(server.port()).connected());
}

}  // namespace
}  // namespace infer
