// infer serve: requests share the engine, wait within limits, and do not spoil one another.
#include <future>
#include <latch>

#include "tests/serve/client.h"
#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"

namespace infer {
namespace {

double waiting(const Server& server) {
  return server.metric("phasor_queue_requests{model=\"sinusoidal\"}");
}

TEST(QueueTest, AFullQueueSaysSoAtOnce) {
  const Server server({.service = {.queue = {.max_batch_tokens = 16, .max_queue = 1}}});
  Client busy(server.port());
  busy.send("POST", "/embed", long_request().dump());
  phasor::wait_until([&] { return waiting(server) == 1; });
  const Answer answer = server.post("/embed", {{"inputs", "a"}});
  EXPECT_EQ(answer.status, 429);
  EXPECT_NE(answer.head.find("Retry-After: 1\r\n"), std::string::npos);
  EXPECT_NE(answer.body.find("--max-queue"), std::string::npos);
  EXPECT_EQ(answer.json()["error_type"], "Overloaded");
  EXPECT_EQ(busy.receive().status, 200);
  // Who has an answer has left the queue.
  Client client(server.port());
  for (int i = 0; i < 200; ++i) {
    client.send("POST", "/embed", R"({"inputs": "a"})");
    EXPECT_EQ(client.receive().status, 200);
  }
}

TEST(QueueTest, WhoWaitsTooLongIsTold) {
  std::array<std::promise<int>, 3> statuses;
  Metrics metrics;
  ModelQueue queue("one", phasor::Model::load(bundled_model("sinusoidal")), {.threads = 1},
                   {.max_batch_tokens = 16}, metrics);
  const auto add = [&](size_t number, int texts, bool normalize, Clock::duration time) {
    Work work{.options = {.normalize = normalize},
              .texts = long_request(texts)["inputs"],
              .deadline = Clock::now() + time,
              .done = [&statuses, number](const auto&, const auto&, const Failure& failure) {
                statuses[number].set_value(failure.status);
              }};
    queue.add(std::move(work));
  };
  add(0, 32, true, 1h);  // of many batches
  add(1, 1, false, 0ms);
  add(2, 1, false, 1h);
  EXPECT_EQ(statuses[0].get_future().get(), 0);
  EXPECT_EQ(statuses[1].get_future().get(), 504);
  EXPECT_EQ(statuses[2].get_future().get(), 0);
  EXPECT_EQ(Server({.service = {.timeout = 0ms}}).post("/embed", {{"inputs", "a"}}).status, 504);
}

/// Runs everything on the calling thread, and counts how often.
class SlowExecutor : public phasor::Executor {
 public:
  int threads() const override { return 2; }
  void run(int count, const std::function<void(int)>& work) override {
    if (runs++ == 0) first.wait();
    std::this_thread::sleep_for(20ms);
    for (int i = 0; i < count; ++i) work(i);
  }

  std::latch first{1};  // may go on
  std::atomic<int> runs = 0;
};

/// How often the engine has run when it has answered a request, and then requests of these texts,
/// which came while it ran that; and how many got 504.
std::pair<int, int> runs_and_late(const std::vector<std::vector<std::string>>& requests,
                                  std::chrono::milliseconds max_run) {
  const auto executor = std::make_shared<SlowExecutor>();
  std::atomic<int> late = 0;
  Metrics metrics;
  {
    ModelQueue queue("one", phasor::Model::load(bundled_model("sinusoidal")),
                     {.executor = executor}, {.max_run = max_run}, metrics);
    const auto add = [&](const std::vector<std::string>& texts, bool normalize) {
      queue.add({.options = {.normalize = normalize},
                 .texts = texts,
                 .deadline = Clock::now() + 1h,
                 .done = [&late](const auto&, const auto&, const Failure& failure) {
                   late += failure.status == kLate.status ? 1 : 0;
                 }});
    };
    add(long_request(1)["inputs"], false);  // of another kind
    phasor::wait_until([&] { return executor->runs > 0; });
    for (const auto& texts : requests) add(texts, true);
    executor->first.count_down();
  }
  return {executor->runs.load(), late.load()};
}

TEST(QueueTest, ABatchThatRanOutOfTimeIsNotRunAgain) {
  const std::vector<std::string> texts = long_request(1)["inputs"];
  const auto one = runs_and_late({texts}, 10ms), eight = runs_and_late({8, texts}, 10ms);
  EXPECT_EQ(one.second, 2);
  EXPECT_EQ(eight.second, 9);
  EXPECT_LT(eight.first, 2 * one.first);
}

TEST(QueueTest, WhatWaitsIsRunTogether) {
  const std::string text = long_request()["inputs"][0];
  EXPECT_EQ(runs_and_late({8, {text, text}}, 1h), runs_and_late({{16, text}}, 1h));
}

TEST(QueueTest, WhoHasGoneLeavesTheQueue) {
  const Server server({.service = {.max_texts = 1000, .queue = {.max_batch_tokens = 16}},
                       .http = {.max_body = 1 << 24}});
  // By closing; with a byte more than the request before; with a reset.
  for (int i = 0; i < 3; ++i) {
    Client client(server.port());
    client.send("POST", "/embed", long_request(500).dump());
    phasor::wait_until([&] { return waiting(server) > 0; });
    if (i == 1) client.send("G");
    if (i == 2) client.reset();
    client.close();
    phasor::wait_until([&] { return waiting(server) == 0; });
  }
  EXPECT_EQ(server.metric("phasor_dropped_total"), 3);
  phasor::wait_until([&] {
    return server.metric(
               "phasor_requests_total{route=\"/embed\",model=\"sinusoidal\","
               "status=\"499\"}") == 3;
  });
  EXPECT_LT(server.metric("phasor_texts_total"), 1500);
}

TEST(QueueTest, RequestsAreBoundedInBytes) {
  const Server server(
      {.service = {
           .max_memory = 20'000'000, .max_texts = 10'000, .queue = {.max_batch_tokens = 16}}});
  // A text of a byte counts with 128 floats, twice on their way and once as text: 3.3 kB.
  const auto texts = [](size_t count) { return std::vector<std::string>(count, "a"); };
  Client busy(server.port()), waits(server.port());
  busy.send("POST", "/embed", Json{{"inputs", texts(5000)}}.dump());
  phasor::wait_until([&] { return waiting(server) == 1; });
  waits.send("POST", "/embed", Json{{"inputs", texts(700)}, {"normalize", false}}.dump());
  phasor::wait_until([&] { return waiting(server) == 2; });
  EXPECT_EQ(server.post("/embed", {{"inputs", texts(700)}}).status, 429);
  const Answer too_large = server.post("/embed", {{"inputs", texts(6500)}});
  EXPECT_EQ(too_large.status, 413);
  EXPECT_NE(too_large.body.find("--max-memory"), std::string::npos);
  for (Client* const client : {&busy, &waits}) EXPECT_EQ(client->receive().status, 200);
  // What may come of a text counts as well: here 128 tokens of 128 floats.
  const Server small({.service = {.max_memory = 400'000}});
  const std::vector<std::string> four(4, long_request()["inputs"][0].get<std::string>());
  EXPECT_EQ(small.post("/embed", {{"inputs", four}}).status, 200);
  EXPECT_EQ(small.post("/embed_all", {{"inputs", four}}).status, 413);
  // The query counts once for each document.
  const phasor::BertFolder one({"relevant"});
  const Server ranks({.models = {{"ranks", one.path()}}});
  const Json rerank = {{"query", std::string(200'000, 'a')},
                       {"documents", std::vector<std::string>(2048, "b")}};
  EXPECT_EQ(ranks.post("/v1/rerank", rerank).status, 413);
}

TEST(QueueTest, ASmallRequestDoesNotWaitForLargeOnesWhoseTextsFillABatch) {
  const Server server({.service = {.max_texts = 1000, .queue = {.max_batch_tokens = 64}},
                       .http = {.max_body = 1 << 24}});
  const std::string dogs = long_request()["inputs"][0];
  const std::string large = Json{{"inputs", std::vector<std::string>(256, dogs)}}.dump();
  Client first(server.port()), second(server.port());
  for (Client* const client : {&first, &second}) client->send("POST", "/embed", large);
  phasor::wait_until([&] { return waiting(server) == 2; });
  EXPECT_EQ(server.post("/embed", {{"inputs", "a"}}).status, 200);
  EXPECT_EQ(waiting(server), 2);
  for (Client* const client : {&first, &second}) EXPECT_EQ(client->receive().status, 200);
}

TEST(QueueTest, WhoHasGoneGivesBackItsBytes) {
  const Server server({.service = {.max_memory = 400'000, .queue = {.max_batch_tokens = 16}}});
  for (int i = 0; i < 10; ++i) {
    Client client(server.port());
    client.send("POST", "/embed", long_request(16).dump());
    phasor::wait_until([&] { return waiting(server) > 0; });
    client.close();
    phasor::wait_until([&] { return waiting(server) == 0; });
  }
  EXPECT_EQ(server.post("/embed", {{"inputs", std::string(190'000, 'a')}}).status, 200);
}

TEST(QueueTest, LargeRequestsEndOneAfterTheOther) {
  constexpr int64_t kRequests = 8, kTexts = 60;
  Metrics metrics;
  std::array<std::promise<int64_t>, kRequests> texts_run;  // of all, when each has its answer
  {
    ModelQueue queue("one", phasor::Model::load(bundled_model("sinusoidal")), {.threads = 1},
                     {.max_batch_tokens = 512}, metrics);
    for (auto& run : texts_run) {
      queue.add({.texts = long_request(kTexts)["inputs"],
                 .deadline = Clock::now() + 1h,
                 .done = [&](const auto&, const auto&, const Failure&) {
                   const std::string text = metrics.text({}), name = "\nphasor_texts_total ";
                   run.set_value(std::stoll(text.substr(text.find(name) + name.size())));
                 }});
    }
  }
  // Half of each batch is the oldest's. Shared equally, the first would end with the last.
  EXPECT_LT(texts_run.front().get_future().get(), 3 * kTexts);
  EXPECT_EQ(texts_run.back().get_future().get(), kRequests * kTexts);
}

TEST(QueueTest, ALargeRequestGoesOnWhileSmallOnesWithLongTextsCome) {
  Metrics metrics;
  std::vector<int> order;  // of the answers: how many texts each request had
  {
    ModelQueue queue("one", phasor::Model::load(bundled_model("sinusoidal")), {.threads = 1},
                     {.max_batch_tokens = 16}, metrics);
    for (int i = 0; i < 17; ++i) {
      const int texts = i == 0 ? 4 : 1;
      queue.add({.texts = long_request(texts)["inputs"],
                 .deadline = Clock::now() + 1h,
                 .done = [&order, texts](const auto&, const auto&, const Failure&) {
                   order.push_back(texts);
                 }});
    }
  }
  EXPECT_EQ(order.size(), 17u);
  EXPECT_LT(std::ranges::find(order, 4) - order.begin(), 8);
}

TEST(QueueTest, ManyClientsGetTheirOwnAnswersAndAMistakeIsItsOwn) {
  const Server server({.models = {{"learned", bundled_model("learned").string()}}});
  const std::string longer = "Tom" + phasor::repeat(" dog", 200);
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
        const Json body = {{"inputs", wrong ? longer : texts[(c + i) % 24]}, {"truncate", false}};
        client.send("POST", "/embed", body.dump());
        const Answer answer = client.receive();
        EXPECT_EQ(answer.status, wrong ? 422 : 200);
        if (wrong) continue;
        EXPECT_TRUE(are(answer.json(), {want[(c + i) % 24]}));
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace infer
