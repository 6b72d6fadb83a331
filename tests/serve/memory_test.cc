// infer serve: what requests take is counted in bytes before it exists.
#include "tests/serve/program.h"
#include "tests/support/bert_folder.h"

namespace infer {
namespace {

Answer post(const Program& program, std::string_view path, const Json& body) {
  Client client(program.port());
  client.send("POST", path, body.dump(), "Content-Type: application/json\r\n");
  return client.receive();
}

const phasor::BertFolder& labels() {
  static const phasor::BertFolder folder([] {
    std::vector<std::string> names;
    for (int i = 0; i < 20'000; ++i) names.push_back(fmt::format("label {}", i));
    return names;
  }());
  return folder;
}

std::string model_of(const std::string& route) {
  static const phasor::SparseFolder sparse(Json{{"pooling_strategy", "max"}});
  if (route == "predict") return labels().path();
  return route == "embed_sparse" ? sparse.path() : bundled_model("sinusoidal").string();
}

/// A request to a route, of so many texts.
Json request(const std::string& route, int count) {
  const std::vector<std::string> one = {"a"};
  if (route == "predict") return {{"inputs", std::vector(count, one)}};
  const std::vector<std::string> texts(count, route == "embed" ? "a" : "Tom bit a dog.");
  if (route != "similarity") return {{"inputs", texts}};
  return {{"inputs", {{"source_sentence", "a"}, {"sentences", texts}}}};
}

class ServeMemoryTest : public testing::TestWithParam<const char*> {};

TEST_P(ServeMemoryTest, RequestsTakeNoMoreThanTheirLimit) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "a sanitizer takes more";
  constexpr int64_t kLimit = 30'000'000, kBeside = 40'000'000;  // activations, the body as JSON
  const std::string route = GetParam(), path = "/" + route;
  Program program({"-m", model_of(route), "-t", "1", "--max-memory", std::to_string(kLimit),
                   "--max-texts", "100000", "--max-body", "20000000"});
  program.ignore_log();
  const int64_t before = program.memory();
  int status = 200, answered = 0;
  for (int texts = 1; status == 200 && texts < 100'000; texts *= 2) {
    const Answer answer = post(program, path, request(route, texts));
    status = answer.status;
    answered += status == 200 ? 1 : 0;
    EXPECT_TRUE(status == 200 || contains(answer.body, "--max-memory")) << answer.body;
  }
  EXPECT_GE(answered, 1);
  EXPECT_EQ(status, 413);
  EXPECT_LT(program.most_memory() - before, kLimit + kBeside);
  EXPECT_EQ(post(program, path, request(route, 1)).status, 200);
}

INSTANTIATE_TEST_SUITE_P(Routes, ServeMemoryTest,
                         testing::Values("embed", "embed_all", "embed_sparse", "similarity",
                                         "tokenize", "predict"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace infer
