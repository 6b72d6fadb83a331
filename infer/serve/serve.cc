// infer serve: embeddings, rerankers and classifiers behind HTTP.
#include "infer/serve/serve.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "files/files.h"
#include "files/json_writer.h"
#include "infer/cli/command_line.h"
#include "infer/cli/input_options.h"
#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "infer/serve/routes.h"
#include "infer/serve/service.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr int64_t kMostKeyBytes = int64_t{1} << 20;

constexpr const char* kFooter = R"(
Each request is logged as a line of JSON on standard output, without its texts. After
SIGTERM or SIGINT what has been accepted is answered, then the server ends; a second
signal ends it at once.

Examples:
  infer serve -m all-MiniLM-L6-v2
  infer serve -m small=all-MiniLM-L6-v2 -m rank=ms-marco-MiniLM-L6-v2 --port 9000
  curl localhost:8080/v1/embeddings -d '{"input": "Tom bit a dog."}')";

std::string footer() {
  std::string text = "Routes (GET /openapi.json and docs/serving.md say what each takes):\n";
  for (const std::string_view method : {"GET", "POST"}) {
    std::vector<std::string> paths;
    for (const Route& route : routes()) {
      const std::string_view path = route.paths[0];
      if (route.method == method && route_of(method, path) == &route)
        paths.push_back(fmt::format("{}{}", path, route.is_prefix(path) ? "NAME" : ""));
    }
    const std::string list = fmt::format("{}", fmt::join(paths, ", "));
    text += fmt::format("  {:<5}{}\n", method, wrapped(list, 7, 80));
  }
  return text + kFooter;
}

struct ServeArguments {
  std::vector<std::string> models;
  HttpOptions http;
  ServiceOptions service;
  std::string key_file;
  double timeout = 60;
  CommonOptions common;
};

struct NamedModel {
  std::string name;
  std::string folder;
};

/// Of "name=folder", or of a folder, whose name is the model's. Throws UsageError.
std::vector<NamedModel> named_models(const std::vector<std::string>& models) {
  std::vector<NamedModel> named;
  for (const std::string& model : models) {
    const size_t equals = std::filesystem::exists(model) ? model.npos : model.find('=');
    const bool has_name = equals != model.npos;
    if (has_name && (equals == 0 || equals + 1 == model.size()))
      throw UsageError(fmt::format("-m: '{}' lacks one half of NAME=DIR", model));
    named.push_back({has_name ? model.substr(0, equals) : short_name(model),
                     has_name ? model.substr(equals + 1) : model});
    const std::string& name = named.back().name;
    if (std::ranges::count(named, name, &NamedModel::name) > 1)
      throw UsageError(
          fmt::format("two models are called \"{}\"; give one another name: -m NAME=DIR", name));
  }
  return named;
}

std::string url_of(const std::string& host, uint16_t port) {
  const bool is_ipv6 = host.find(':') != host.npos;
  return fmt::format("http://{}:{}", is_ipv6 ? "[" + host + "]" : host, port);
}

/// Of a text with one key a line; `source` is named where it has none.
std::vector<std::string> keys_of(std::string text, const std::string& source) {
  constexpr std::string_view kMark = "\xef\xbb\xbf", kSpace = " \t\r";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  std::istringstream lines(text);
  std::vector<std::string> keys;
  for (std::string key; std::getline(lines, key);) {
    key.erase(key.find_last_not_of(kSpace) + 1);
    key.erase(0, std::min(key.find_first_not_of(kSpace), key.size()));
    if (!key.empty() && key[0] != '#') keys.push_back(std::move(key));
  }
  if (keys.empty())
    throw phasor::InvalidArgument(fmt::format("{} holds no key; write one a line", source));
  return keys;
}

/// Of the file, else of the environment; none: whoever reaches the server may ask.
std::vector<std::string> read_keys(const std::string& file) {
  if (!file.empty()) {
    const std::string text = phasor::internal::as_input(
        "--api-key-file: ", [&] { return phasor::internal::read_file(file, kMostKeyBytes); });
    return keys_of(text, "--api-key-file: " + file);
  }
  const char* const text = std::getenv("PHASOR_API_KEY");
  return text == nullptr ? std::vector<std::string>() : keys_of(text, "PHASOR_API_KEY");
}

/// As many descriptors as the system allows: each connection takes one.
void raise_descriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Whether a write of up to PIPE_BUF bytes would not wait: false for a pipe that is full.
bool can_write(int descriptor) {
  pollfd end{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return poll(&end, 1, 0) == 1;
}

/// The server goes on without somebody to tell.
void note(const std::string& text) {
  if (can_write(STDERR_FILENO)) report_note(text);
}

/// Of an answer, as JSON on standard output. False where it was not written. A full pipe delays no
/// request; a slow disk does.
bool log_line(const Served& served) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string line =
      phasor::internal::json_object(
          "time", fmt::format("{:%FT%TZ}", fmt::gmtime(now)), "id", served.id, "client",
          served.client, "method", served.method.substr(0, 16), "path", served.path.substr(0, 256),
          "model", served.model, "status", served.status, "ms",
          std::round(served.seconds * 1e5) / 100, "texts", served.texts, "tokens", served.tokens) +
      "\n";
  return line.size() <= PIPE_BUF && can_write(STDOUT_FILENO) &&
         write(STDOUT_FILENO, line.data(), line.size()) == std::ssize(line);
}

/// Of exceptions that nothing has caught: without memory a server cannot answer, and whoever
/// supervises it starts another.
[[noreturn]] void end_without_memory() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    write_stderr("infer: out of memory; the server ends\n");
    _exit(kBackend);
  } catch (...) {
  }
  std::abort();
}

}  // namespace

int serve(CommandLine& line) {
  ServeArguments arguments;
  line.footer(footer());
  line.list("-m,--model", "DIR",
            "a folder, or NAME=DIR; what names no model goes to the first that can answer",
            arguments.models);
  line.option("--host", "ADDRESS", "where to listen (default: 127.0.0.1, this machine alone)",
              arguments.http.host);
  line.option("--port", "N", "the port (default: 8080; 0: any that is free)", arguments.http.port,
              Range{0, 65535});
  line.option("--api-key-file", "FILE",
              "keys, one a line; requests must have one (default: those in the environment "
              "variable PHASOR_API_KEY, else none is asked for)",
              arguments.key_file);
  line.list("--allow-host", "NAME",
            "a name by which the server may be asked, and whose web pages may ask, such as that "
            "of a proxy (default: this machine's name and addresses)",
            arguments.service.hosts);
  line.option("--timeout", "SECONDS",
              "how long a request may wait for the engine, and a batch may take (default: 60)",
              arguments.timeout, Range{0.001, 86400});
  line.option("--max-batch-tokens", "N", "tokens that run in one batch, about (default: 4096)",
              arguments.service.queue.max_batch_tokens, Range{1, 1 << 30});
  line.option("--max-memory", "BYTES",
              "of all requests' bodies, texts, results and answers (default: 400000000, 400 MB)",
              arguments.service.max_memory, Range{1'000'000, int64_t{1} << 40});
  line.option("--max-queue", "N", "requests that may wait, for each model (default: 512)",
              arguments.service.queue.max_queue, Range{1, 1 << 20});
  line.option("--max-texts", "N",
              "texts in a request of text-embeddings-inference's routes (default: 512)",
              arguments.service.max_texts, Range{1, 1 << 20});
  line.option("--max-body", "BYTES", "the largest body (default: 8388608)", arguments.http.max_body,
              Range{1, 1 << 30});
  add_common(line, kLinks | kLanguage | kThreads | kPrecision | kKernels, arguments.common);
  line.flag("-q,--quiet", "no log and no notes", arguments.common.quiet);
  if (const auto done = line.parse()) return *done;
  if (arguments.models.empty()) arguments.models = {arguments.common.model};
  const std::vector<NamedModel> models = named_models(arguments.models);
  if (arguments.http.host.empty()) throw UsageError("--host: the address is empty");
  for (const std::string& name : arguments.service.hosts) {
    if (name.empty() || name.find_first_of(" \t,") != name.npos)
      throw UsageError(
          fmt::format("--allow-host: '{}' is no name; give the option once for each", name));
  }
  arguments.service.keys = read_keys(arguments.key_file);
  arguments.service.timeout = std::chrono::milliseconds(std::llround(arguments.timeout * 1000));
  arguments.service.queue.max_run = arguments.service.timeout;
  raise_descriptors();
  std::set_terminate(end_without_memory);

  std::signal(SIGPIPE, SIG_IGN);  // of who reads the log

  Metrics metrics;
  std::mutex one_line;
  std::function<void(const Served&)> log = [&](const Served& served) {
    const std::lock_guard lock(one_line);
    if (!log_line(served)) metrics.lost_line();
  };
  Service service(arguments.service, metrics, arguments.common.quiet ? nullptr : log);
  HttpServer server(arguments.http, service.budget(), std::bind_front(&Service::serve, &service),
                    std::bind_front(&Service::accepts, &service));
  const uint16_t port = server.port();
  if (!server.is_loopback() && arguments.service.keys.empty())  // with --quiet, too
    note(
        fmt::format("whoever reaches {} may ask: no key is set; give --api-key-file FILE or "
                    "PHASOR_API_KEY",
                    url_of(arguments.http.host, port)));
  server.on_signals([&, count = 0](int signal) mutable {
    if (++count > 1) _exit(128 + signal);  // as the system would have ended it
    if (!service.is_ready()) _exit(0);     // nothing has been accepted
    service.drain();
    server.drain();
    if (!arguments.common.quiet) note("shutting down; accepted requests are answered first");
  });
  std::thread loop([&] { server.run(); });
  try {
    phasor::EncoderOptions options = encoder_options(arguments.common);
    options.executor = phasor::make_executor(options.threads);
    for (const auto& [name, folder] : models) {
      const auto loaded = phasor::Model::load(folder, load_options(arguments.common));
      loaded->tokenizer();  // without one it could answer nothing: throws
      service.add_model(
          std::make_unique<ModelQueue>(name, loaded, options, arguments.service.queue, metrics));
    }
    service.ready();
    if (!arguments.common.quiet) {
      std::vector<std::string> names;
      for (const NamedModel& model : models) names.push_back(model.name);
      note(fmt::format("serving {} on {}", fmt::join(names, ", "),
                       url_of(arguments.http.host, port)));
      const bool read_by_people = isatty(STDERR_FILENO) != 0;
      for (const std::string& text : {phasor::why_slow(precision_of(arguments.common)),
                                      read_by_people ? faster_note(arguments.common) : ""}) {
        if (!text.empty()) note(text);
      }
    }
    loop.join();
  } catch (...) {
    server.stop();
    loop.join();
    throw;
  }
  return 0;
}

}  // namespace infer
