// infer serve: what requests take is counted in bytes before it exists.
#include <gtest/gtest.h>

#include <functional>

#include "tests/serve/program.h"
#include "tests/support/bert_folder.h"
#include "tests/support/sanitizer.h"

namespace infer {
namespace {

Answer post(const Program& program, std::string_view path, const Json& body) {
  Client client(program.port());
  client.send("POST", path, body.dump(), "Content-Type: application/json\r\n");
  return client.receive();
}

struct Case {
  std::string path;
  std::function<Json(int)> body;  // of so many texts
  std::string model = bundled_model("sinusoidal").string();
};

class ServeMemoryTest : public testing::TestWithParam<Case> {};

TEST_P(ServeMemoryTest, RequestsTakeNoMoreThanTheirLimit) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "a sanitizer takes more";
  constexpr int64_t kLimit = 30'000'000, kBeside = 40'000'000;  // activations, the body as JSON
  Program program({"-m", GetParam().model, "-t", "1", "--max-memory", std::to_string(kLimit),
                   "--max-texts", "100000", "--max-body", "20000000"});
  program.ignore_log();
  const int64_t before = program.memory();
  int status = 200, answered = 0;
  for (int texts = 1; status == 200 && texts < 100'000; texts *= 2) {
    const Answer answer = post(program, GetParam().path, GetParam().body(texts));
    status = answer.status;
    answered += status == 200 ? 1 : 0;
    EXPECT_TRUE(status == 200 || contains(answer.body, "--max-memory")) << answer.body;
  }
  EXPECT_GE(answered, 1);
  EXPECT_EQ(status, 413);
  EXPECT_LT(program.most_memory() - before, kLimit + kBeside);
  EXPECT_EQ(post(program, GetParam().path, GetParam().body(1)).status, 200);
}

std::vector<std::string> texts(int count, const std::string& text = "Tom bit a dog.") {
  return std::vector<std::string>(count, text);
}

const phasor::BertFolder& labels() {
  static const phasor::BertFolder folder([] {
    std::vector<std::string> names;
    for (int i = 0; i < 20'000; ++i) names.push_back(fmt::format("label {}", i));
    return names;
  }());
  return folder;
}

INSTANTIATE_TEST_SUITE_P(
    Routes, ServeMemoryTest,
    testing::Values(
        Case{"/embed",
             [](int n) {
               return Json{{"inputs", texts(n, "a")}};
             }},
        Case{"/embed_all",
             [](int n) {
               return Json{{"inputs", texts(n)}};
             }},
        Case{"/similarity",
             [](int n) {
               return Json{{"inputs", {{"source_sentence", "a"}, {"sentences", texts(n, "b")}}}};
             }},
        Case{"/tokenize",
             [](int n) {
               return Json{{"inputs", texts(n)}};
             }},
        Case{"/predict",
             [](int n) {
               return Json{{"inputs", std::vector(n, texts(1, "a"))}};
             },
             labels().path()}),
    [](const auto& info) { return info.param.path.substr(1); });

TEST(ServeMemoryTest, AnAnswerHasALimit) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "a sanitizer takes more";
  const Program program(
      {"-m", labels().path(), "--max-texts", "1000", "--max-memory", "1000000000"});
  const Answer answer = post(program, "/predict", {{"inputs", std::vector(500, texts(1, "a"))}});
  EXPECT_EQ(answer.status, 413);
  EXPECT_TRUE(contains(answer.body, "an answer has at most 256 MB")) << answer.body;
}

}  // namespace
}  // namespace infer
