// infer serve as a program: its options, its log, and how it ends.
#include "tests/serve/program.h"

#include "infer/cli/command_line.h"

namespace infer {
namespace {

int status_of(const Program& program, std::string_view headers = {}) {
  Client client(program.port());
  client.send("POST", "/embed", R"({"inputs": "a secret"})", headers);
  return client.receive().status;
}

TEST(ServeProgramTest, ItEndsWhereMemoryHasRunOut) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "a sanitizer needs addresses";
  Program program({"-m", "sinusoidal", "-t", "1"});
  program.limit_memory(int64_t{2} << 20);
  std::list<Client> clients;
  for (int i = 0; i < 200; ++i)
    clients.emplace_back(program.port())
        .send("POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx");
  EXPECT_EQ(program.end(), kBackend);
  EXPECT_TRUE(contains(program.last_notes(), "out of memory; the server ends"));
}

TEST(ServeProgramTest, TheLastDescriptorIsForWhoeverComes) {
  if (HAS_ADDRESS_SANITIZER) GTEST_SKIP() << "UBSan opens a pipe to look at memory";
  const Program program({});
  const int64_t descriptors = program.num_descriptors();
  program.limit_descriptors(20);
  std::list<Client> busy;
  for (int i = 0; i < 19; ++i) busy.emplace_back(program.port()).send("G");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status_of(program), 200);
  EXPECT_GE(program.num_descriptors(), descriptors + 19);  // the others still had theirs
}

TEST(ServeProgramTest, LogsEachAnswerAndNoText) {
  Program program({});
  EXPECT_EQ(status_of(program), 200);
  Client client(program.port());
  client.send("GET", "/no%0Athing?secret");
  EXPECT_EQ(client.receive().status, 404);
  client.send("GET", "/%C2%9B31m" + std::string(5000, 'x'));  // begins a command to a terminal
  EXPECT_EQ(client.receive().status, 404);
  program.signal(SIGTERM);
  EXPECT_EQ(program.end(), 0);
  const std::string log = program.log();
  const std::vector<std::string> lines = phasor::lines_of(log);
  ASSERT_EQ(lines.size(), 3u);
  const Json first = Json::parse(lines[0]), second = Json::parse(lines[1]);
  Json with = first;
  with.update({{"client", "127.0.0.1"},
               {"method", "POST"},
               {"path", "/embed"},
               {"model", "sinusoidal"},
               {"status", 200},
               {"texts", 1}});
  EXPECT_EQ(first, with);
  EXPECT_GT(first["tokens"], 2);
  EXPECT_GT(first["ms"], 0.0);
  EXPECT_EQ(second["status"], 404);
  EXPECT_EQ(second["path"], "/no\nthing");
  EXPECT_EQ(log.find("secret"), log.npos);
  EXPECT_EQ(log.find('\x9b'), log.npos);
  EXPECT_LT(lines[2].size(), 500u);
}

TEST(ServeProgramTest, ALogThatNobodyTakesHoldsNothingUp) {
  for (const bool closed : {false, true}) {
    Program program({});
    if (closed) program.ignore_log();
    Client client(program.port());
    const auto lost = [&] { return metric(program.port(), "phasor_lost_log_lines_total"); };
    int more = 1000;  // requests after the first whose line is lost
    for (int i = 0; i < 25'000 && more > 0; ++i) {
      client.send("GET", "/health");
      ASSERT_EQ(client.receive().status, 200);
      if (more < 1000 || (i % 500 == 0 && lost() > 0)) --more;
    }
    EXPECT_EQ(more, 0);
    program.signal(SIGINT);
    EXPECT_EQ(program.end(), 0);
  }
}

TEST(ServeProgramTest, ASecondSignalEndsItAtOnce) {
  Program program({"--timeout", "600", "--max-batch-tokens", "64"});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<Client>(program.port()));
    clients.back()->send("POST", "/embed", long_request().dump());
  }
  phasor::wait_until([&] { return metric(program.port(), "phasor_texts_total") > 0; });
  program.signal(SIGTERM);
  phasor::wait_until([&] { return !Client(program.port()).connected(); });
  program.signal(SIGTERM);
  EXPECT_EQ(program.end(), 128 + SIGTERM);
}

/// Sends what clients send, good and bad, one after the other; `number` decides what.
void send_something(const Program& program, std::optional<Client>& kept, int number) {
  if (!kept || !kept->connected()) kept.emplace(program.port());
  const std::string good = R"({"inputs": ["Tom bit a dog.", "It rained."]})";
  switch (number % 8) {
    case 0:
    case 1:
    case 2:
      kept->send("POST", "/embed", good);
      EXPECT_EQ(kept->receive().status, 200);
      break;
    case 3:
      kept->send("POST", "/v1/embeddings", R"({"input": "a", "encoding_format": "base64"})");
      EXPECT_EQ(kept->receive().status, 200);
      break;
    case 4:
      kept->send("POST", "/tokenize", R"({"inputs": 7})");
      EXPECT_EQ(kept->receive().status, 422);
      break;
    case 5:
      kept->send("GET", fmt::format("/{}", number));
      EXPECT_EQ(kept->receive().status, 404);
      break;
    case 6:  // leaves before its answer
      kept->send("POST", "/embed", good);
      number % 16 == 6 ? kept->reset() : kept->close();
      kept.reset();
      break;
    case 7: {  // leaves in its request
      Client other(program.port());
      other.send("POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
    }
  }
}

// PHASOR_SOAK_REQUESTS says how many; each of them could lose 100 bytes, and it would be seen.
TEST(ServeProgramTest, MemoryDoesNotGrowWithRequests) {
#if HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER
  GTEST_SKIP() << "the sanitizer keeps what is freed";
#endif
  const char* const wanted = std::getenv("PHASOR_SOAK_REQUESTS");
  const int requests = wanted != nullptr ? std::stoi(wanted) : 24'000;
  Program program({});
  program.ignore_log();
  const auto send = [&](int count) {
    std::vector<std::thread> clients;
    for (int c = 0; c < 4; ++c) {
      clients.emplace_back([&, c] {
        std::optional<Client> kept;
        for (int i = 0; i < count / 4; ++i) send_something(program, kept, c + i);
      });
    }
    for (std::thread& client : clients) client.join();
  };
  const auto settled = [&] {
    return metric(program.port(), "phasor_queue_requests{model=\"sinusoidal\"}") == 0;
  };
  send(requests / 2);
  phasor::wait_until(settled);
  const int64_t memory = program.memory(), descriptors = program.num_descriptors();
  send(requests);
  phasor::wait_until(settled);
  EXPECT_LT(program.memory() - memory, int64_t{100} * requests);
  phasor::wait_until([&] { return program.num_descriptors() <= descriptors + 4; });
  program.signal(SIGTERM);
  EXPECT_EQ(program.end(), 0);
}

TEST(ServeProgramTest, TenThousandConnectionsKeepNobodyWaiting) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kOthers = 200;
  const auto count = std::min<rlim_t>(10'000, limit.rlim_max - kOthers);
  {
    const Program program({});
    const int64_t memory = program.memory();
    std::list<Client> clients;
    for (rlim_t i = 0; i < count; ++i) {
      Client& client = clients.emplace_back(program.port());
      ASSERT_TRUE(client.connected()) << i;
      if (i % 2 == 0 && i + 1 < count)
        client.send("POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Len");
    }
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(status_of(program), 200);
      clients.back().send("GET", "/health");
      EXPECT_EQ(clients.back().receive().status, 200);
    }
    if (!HAS_THREAD_SANITIZER) {  // which has four bytes of its own for each
      EXPECT_LT(program.memory() - memory, static_cast<int64_t>(count) * 20'000);
    }
  }
  limit.rlim_cur = before;
  setrlimit(RLIMIT_NOFILE, &limit);
}

using Statuses = std::vector<std::pair<std::string, int>>;  // of keys

void expect_statuses(const Program& program, const Statuses& statuses) {
  for (const auto& [key, status] : statuses)
    EXPECT_EQ(status_of(program, "Authorization: Bearer " + key + "\r\n"), status) << key;
}

TEST(ServeProgramTest, KeysAreLinesOfAFileOrOfTheEnvironment) {
  const phasor::TempFolder folder;
  const auto keys = folder.write("keys", "\xef\xbb\xbf# of two clients\r\n one \r\n\n\ttwo#\n#no");
  setenv("PHASOR_API_KEY", " of-the-environment\n", 1);
  expect_statuses(Program({}), {{"of-the-environment", 200}, {"", 401}});
  expect_statuses(Program({"--api-key-file", keys.string()}), {{"one", 200},
                                                               {"two#", 200},
                                                               {"", 401},
                                                               {"#no", 401},
                                                               {"no", 401},
                                                               {"# of two clients", 401},
                                                               {"of-the-environment", 401}});
  setenv("PHASOR_API_KEY", "", 1);  // a mistake, which must not open the server
  const phasor::ProgramResult empty = phasor::run_program({INFER_BINARY, "serve", "--port", "0"});
  unsetenv("PHASOR_API_KEY");
  EXPECT_NE(empty.exit_code, 0);
  EXPECT_TRUE(contains(empty.err, "PHASOR_API_KEY holds no key")) << empty.err;
}

TEST(ServeProgramTest, AnOpenServerWithoutKeysIsNoted) {
  const phasor::TempFolder folder;
  const std::string file = folder.write("keys", "key").string();
  EXPECT_TRUE(contains(Program({"--host", "0.0.0.0"}).notes(), "no key is set"));
  EXPECT_FALSE(
      contains(Program({"--host", "0.0.0.0", "--api-key-file", file}).notes(), "no key is set"));
  for (const char* host : {"127.0.0.2", "localhost"})
    EXPECT_FALSE(contains(Program({"--host", host}).notes(), "no key is set"));
}

TEST(ServeProgramTest, AModelsNameIsItsFoldersOrItsOwn) {
  const phasor::TempFolder folder;
  const auto odd = folder / "odd=name";
  std::filesystem::create_directory_symlink(bundled_model("none"), odd);
  const Program program(
      {"-m", "learned", "-m", "other=" + bundled_model("none").string(), "-m", odd.string() + "/"});
  Client client(program.port());
  client.send("GET", "/v1/models");
  const Json models = client.receive().json()["data"];
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0]["id"], "learned");
  EXPECT_EQ(models[1]["id"], "other");
  EXPECT_EQ(models[2]["id"], "odd=name");
  client.send("GET", "/v1/models/odd%3Dname");
  EXPECT_EQ(client.receive().json(), models[2]);
  client.send("GET", "/v1/models/third");
  EXPECT_EQ(client.receive().status, 404);
}

TEST(ServeProgramTest, SaysWhyItCannotServe) {
  const phasor::TempFolder folder;
  const std::string empty = folder.write("keys", "\n# none\n").string();
  const Program taken({});
  const std::string port = std::to_string(taken.port());
  for (const auto& [arguments, reason] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"-m", "learned", "-m", "x=learned", "-m", "learned"},
            "two models are called \"learned\""},
           {{"-m", "x="}, "NAME=DIR"},
           {{"-m", "=learned"}, "NAME=DIR"},
           {{"-m", "no-such-model"}, "no-such-model"},
           {{"--api-key-file", empty}, "holds no key"},
           {{"--api-key-file", "/nowhere"}, "/nowhere"},
           {{"--port", port},
            "127.0.0.1:" + port + ": Address already in use; choose another --port"},
           {{"--port", "70000"}, "--port"},
           {{"--host", "nobody.invalid"}, "nobody.invalid"},
           {{"--timeout", "0"}, "--timeout"},
           {{"--max-memory", "400"}, "--max-memory"},  // MB, it was thought
           {{"--allow-host", "a b"}, "'a b' is no name"},
           {{"--allow-host", ""}, "'' is no name"}}) {
    std::vector<std::string> command = {INFER_BINARY, "serve"};
    if (arguments[0] != "--port") command.insert(command.end(), {"--port", "0"});
    command.insert(command.end(), arguments.begin(), arguments.end());
    const phasor::ProgramResult result = phasor::run_program(command);
    EXPECT_NE(result.exit_code, 0) << arguments[0];
    EXPECT_LT(result.exit_code, 128) << arguments[0];
    EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace infer
