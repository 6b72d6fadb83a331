// Requests to a running `infer serve` from so many clients at once, each with a connection that it
// keeps: throughput and latency. Bounded, and on this machine alone.
//
//   serve_load PORT --clients 16 --seconds 5 --words 32 --texts 1
// clang-format off
#include <utility>  // Asio 1.74 needs it, and does not include it
// clang-format on

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "infer/cli/command_line.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

struct Load {
  uint16_t port = 8080;
  int64_t clients = 16, words = 32, texts = 1;
  double seconds = 5;
  std::string path = "/embed";
  std::vector<std::string> vocabulary = {"the",  "old", "man",   "gave", "a",     "boy",
                                         "book", "and", "dog",   "bit",  "house", "in",
                                         "was",  "of",  "water", "tree"};
};

struct Results {
  std::vector<double> seconds;  // of each answer
  int64_t failures = 0;
};

/// The words of a vocab.txt that begin with a letter.
std::vector<std::string> words_of(const std::string& file) {
  std::ifstream lines(file);
  std::vector<std::string> words;
  for (std::string word; std::getline(lines, word);) {
    if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') words.push_back(std::move(word));
  }
  if (words.empty()) throw infer::UsageError("--vocabulary: no words in " + file);
  return words;
}

/// Texts of words, other ones each time.
std::string body_of(const Load& load, std::mt19937& random) {
  std::string body = R"({"inputs": [)";
  for (int64_t t = 0; t < load.texts; ++t) {
    body += t == 0 ? "\"" : ", \"";
    for (int64_t w = 0; w < load.words; ++w) {
      if (w > 0) body += ' ';
      body += load.vocabulary[random() % load.vocabulary.size()];
    }
    body += '"';
  }
  return body + "]}";
}

/// Sends a request, waits for the answer, sends the next.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(asio::io_context& io, const Load& load, Clock::time_point end, Results& results,
         uint32_t seed)
      : socket_(io), load_(load), end_(end), results_(results), random_(seed) {}

  void start() {
    socket_.async_connect({asio::ip::address_v4::loopback(), load_.port},
                          [self = shared_from_this()](auto error) {
                            if (error) return void(++self->results_.failures);
                            self->socket_.set_option(tcp::no_delay(true));
                            self->send();
                          });
  }

 private:
  void send() {
    if (Clock::now() >= end_) return;
    request_ = {http::verb::post, load_.path, 11};
    request_.set(http::field::host, "localhost");
    request_.body() = body_of(load_, random_);
    request_.prepare_payload();
    start_ = Clock::now();
    http::async_write(socket_, request_, [self = shared_from_this()](auto error, size_t) {
      if (error) return void(++self->results_.failures);
      self->receive();
    });
  }
  void receive() {
    parser_.emplace();
    parser_->body_limit(boost::none);
    http::async_read(socket_, buffer_, *parser_, [self = shared_from_this()](auto error, size_t) {
      if (error) return void(++self->results_.failures);
      const std::chrono::duration<double> took = Clock::now() - self->start_;
      if (self->parser_->get().result() == http::status::ok) {
        self->results_.seconds.push_back(took.count());
      } else {
        ++self->results_.failures;
      }
      self->send();
    });
  }

  tcp::socket socket_;
  const Load& load_;
  Clock::time_point end_, start_;
  Results& results_;
  std::mt19937 random_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  std::optional<http::response_parser<http::string_body>> parser_;
};

}  // namespace

int main(int argc, char** argv) {
  Load load;
  infer::CommandLine line("serve_load", "Measures a running infer serve.", {argv + 1, argv + argc});
  line.option("PORT", "", "of the server, on this machine", load.port);
  line.option("--clients", "N", "at once (default: 16)", load.clients, infer::Range{1, 4096});
  line.option("--seconds", "S", "how long (default: 5)", load.seconds, infer::Range{0.1, 600});
  line.option("--words", "N", "of a text (default: 32)", load.words, infer::Range{1, 100000});
  line.option("--texts", "N", "of a request (default: 1)", load.texts, infer::Range{1, 2048});
  line.option("--vocabulary", "FILE", "a vocab.txt, whose words the texts have",
              [&](const std::string& file) { load.vocabulary = words_of(file); });
  bool json = false;
  line.flag("--json", "print JSON", json);
  line.option("--path", "PATH", "what is asked for (default: /embed)", load.path);
  try {
    if (const auto done = line.parse()) return *done;
    asio::io_context io(1);
    Results results;
    const Clock::time_point start = Clock::now();
    const auto end = start + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(load.seconds));
    for (int64_t c = 0; c < load.clients; ++c)
      std::make_shared<Client>(io, load, end, results, static_cast<uint32_t>(c))->start();
    io.run();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    std::vector<double>& all = results.seconds;
    std::ranges::sort(all);
    const auto at = [&](double share) {
      return all.empty()
                 ? 0.0
                 : 1000 * all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))];
    };
    const double requests = static_cast<double>(all.size()) / took;
    if (json) {
      fmt::print(R"({{"texts_per_s": {}, "p50_ms": {}, "p99_ms": {}, "failures": {}}})"
                 "\n",
                 requests * static_cast<double>(load.texts), at(0.5), at(0.99), results.failures);
    } else {
      fmt::print(
          "clients {}, texts {}: {:.1f} requests/s, {:.1f} texts/s, p50 {:.2f} ms, p99 {:.2f} ms, "
          "failures {}\n",
          load.clients, load.texts, requests, requests * static_cast<double>(load.texts), at(0.5),
          at(0.99), results.failures);
    }
    return results.failures == 0 && !all.empty() ? 0 : 1;
  } catch (const std::exception&) {
    return infer::report_current_exception();
  }
}
