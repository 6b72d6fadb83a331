// infer serve: the page, and what it is fed with.
#include "tests/serve/client.h"
#include "tests/support/run_program.h"

namespace infer {
namespace {

constexpr const char* kIsJson = "Content-Type: application/json\r\n";

/// What a command puts into its page.
Json page_of(const char* command, std::vector<std::string> arguments) {
  const phasor::TempFolder folder;
  const std::string file = (folder / "page.html").string();
  arguments.insert(arguments.begin(), {INFER_BINARY, command, "-q", "--html", file});
  EXPECT_EQ(phasor::run_program(arguments).exit_code, 0);
  const std::string page = phasor::read_text_file(file), begin = "id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

Json observed(const std::vector<std::string>& arguments) { return page_of("observe", arguments); }

class ObserveTest : public testing::Test {
 protected:
  Json observe(const Json& body) const {
    const Answer answer = server_.post("/observe", body, kIsJson);
    EXPECT_EQ(answer.status, 200) << answer.body.substr(0, 200);
    return answer.json();
  }

  const Server server_{{.models = {{"sinusoidal", bundled_model("sinusoidal").string()},
                                   {"learned", bundled_model("learned").string()}}}};
};

TEST_F(ObserveTest, WhatIsObservedIsThePageOfInferObserve) {
  EXPECT_TRUE(observe({{"texts", kTexts[0]}}) == observed({kTexts[0]}));
  Json two = observe({{"texts", {kTexts[0], kTexts[1]}},
                      {"model", "learned"},
                      {"edits", {"reverse", "scale=0.5"}},
                      {"cut_residuals", {"2.attn", "1"}}});
  const Json cosines = two["cosines"];
  two.erase("cosines");
  ASSERT_EQ(cosines.size(), 2u);
  EXPECT_TRUE(cosines[0].is_number());
  EXPECT_TRUE(cosines[1].is_null()) << "no vectors are made with cut residual connections";
  EXPECT_TRUE(two == observed({kTexts[0], kTexts[1], "-m", "learned", "--edit", "reverse", "--edit",
                               "scale=0.5", "--cut-residual", "2.attn", "--cut-residual", "1"}));
  EXPECT_TRUE(observe({{"texts", {"Tom [MASK] a dog."}}, {"positions", "none"}}) ==
              observed({"Tom [MASK] a dog.", "--positions", "none"}));
  const std::string words = "Tom" + phasor::repeat(" dog", 200);
  const Json cut = observe({{"texts", words}});
  EXPECT_EQ(cut["texts"][0]["ids"].size(), 128u);
  EXPECT_EQ(cut["texts"][0]["dropped"], 203 - 128);
}

TEST_F(ObserveTest, TwoModelsOrPositionsAreThePageOfInferCompareAndTwoTextsHaveTheirCosine) {
  const std::string tom = "Tom bit a dog.", dog = "a dog bit Tom.";
  EXPECT_TRUE(observe({{"texts", tom}, {"beside", "learned"}}) ==
              page_of("compare", {"sinusoidal", "learned", tom}));
  const Json moved = observe({{"texts", {tom, dog}}, {"beside_positions", "none"}});
  for (const Json& text : moved["texts"]) {
    ASSERT_EQ(text["runs"].size(), 2u);
    EXPECT_EQ(text["runs"][0]["label"], "sinusoidal");
    EXPECT_EQ(text["runs"][1]["label"], "none");
  }
  phasor::Encoder encoder(phasor::Model::load(bundled_model("sinusoidal")));
  const std::string_view texts[] = {tom, dog};
  const phasor::Vectors vectors = encoder.embed(texts);
  EXPECT_DOUBLE_EQ(moved["cosines"][0], phasor::cosine(vectors[0], vectors[1]));
  EXPECT_NEAR(moved["cosines"][1].get<double>(), 1, 1e-6) << "the same words, in no order";
}

TEST(LiveTest, WhatCannotBeObservedHasAReason) {
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
           {{{"texts", "a"}, {"edits", {"turn"}}}, 422, "`edits`: 'turn'"},
           {{{"texts", "a"}, {"edits", Json::object()}}, 422, "list of strings"},
           {{{"texts", "a"}, {"edits", {1}}}, 422, "`edits[0]` is a number"},
           {{{"texts", "a"}, {"edits", {"swap=0,99"}}}, 422, "99"},
           {{{"texts", "a"}, {"edits", {"reverse", "table=/etc/passwd"}}}, 422, "reads no files"},
           {{{"texts", "a"}, {"edits", many}}, 413, "33 texts"},
           {{{"texts", "a"}, {"cut_residuals", {"9"}}}, 422, "no layer 9"},
           {{{"texts", "a"}, {"cut_residuals", {"first"}}}, 422, "first"},
           {{{"texts", "a"}, {"beside", "c"}}, 404, "no model"},
           {{{"texts", "a"}, {"beside_positions", "left"}}, 422, "left"},
           {{{"texts", "a"}, {"model", "b"}, {"beside", "b"}}, 422, "the same model"},
           {{{"texts", "a"}, {"beside", "b"}, {"edits", {"zero"}}}, 422, "exclude each other"}})
    expect_refused(server, "/observe", each.body.dump(), each.status, each.reason, kIsJson);
  // What a page of another site may send without asking us.
  const Json good = {{"texts", "a"}, {"edits", Json::array()}};
  EXPECT_EQ(server.post("/observe", good).status, 415);
  const Answer answer = server.post("/observe", good, kIsJson);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.head.find("Access-Control"), std::string::npos);
  EXPECT_EQ(Server({.service = {.timeout = 0ms}}).post("/observe", good, kIsJson).status, 504);
}

TEST(LiveTest, ThePageIsOpenAndHoldsNoSecrets) {
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

TEST(LiveTest, EmbeddingDoesNotWaitForObservations) {
  const Server server({.service = {.timeout = std::chrono::minutes(10)}});  // under sanitizers
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

TEST(LiveTest, FewObservationsWaitAndAbandonedOnesEnd) {
  const Server server;
  const auto wait_for = [&](const char* metric, double count) {
    phasor::wait_until([&] { return server.metric(metric) >= count; });
  };
  std::list<Client> clients;  // one is observed, eight wait, others are refused
  for (int i = 0; i < 10; ++i)
    clients.emplace_back(server.port())
        .send("POST", "/observe", long_observation().dump(), kIsJson);
  wait_for("phasor_requests_total{route=\"/observe\",model=\"sinusoidal\",status=\"429\"}", 1);
  clients.clear();
  wait_for("phasor_dropped_total", 8);
  EXPECT_EQ(server.post("/observe", {{"texts", "a"}}, kIsJson).status, 200);
}

TEST(LiveTest, AbandonedObservationsLeaveTheirPlacesToOthers) {
  Observer observer;
  const std::stop_source first, typed, last;
  const auto running = observer.enter(first.get_token());
  for (int i = 1; i < Observer::kMost; ++i) observer.enter(typed.get_token());
  EXPECT_THROW(observer.enter(last.get_token()), Refusal);
  std::stop_source(typed).request_stop();
  for (int i = 1; i < Observer::kMost; ++i) observer.enter(last.get_token());
  EXPECT_THROW(observer.enter(last.get_token()), Refusal);
  observer.leave(running);
  observer.enter(last.get_token());
}

}  // namespace
}  // namespace infer
