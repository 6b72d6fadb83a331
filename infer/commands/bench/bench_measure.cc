#include "infer/commands/bench/bench_measure.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>

#include "infer/cli/command_line.h"
#include "infer/commands.h"
#include "infer/experiment/deviation.h"

namespace infer {
namespace {

using Clock = std::chrono::steady_clock;
using TokenIds = std::vector<std::vector<int32_t>>;

constexpr std::string_view kRagged = "ragged:";
constexpr int64_t kMostTokens = 1 << 20;

/// A whole number from 1 to kMostTokens.
std::optional<int64_t> parse_size(std::string_view text) {
  const auto size = parse_number<int64_t>(text);
  return size && *size >= 1 && *size <= kMostTokens ? size : std::nullopt;
}

/// The parts round the first `separator`; the second is empty where there is none.
std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw UsageError(
      fmt::format("--shape '{}': {}; write 32x128 for 32 sequences of 128 tokens, "
                  "ragged:4-60x64 for 64 of 4 to 60",
                  name, why));
}

/// Ids of the vocabulary, the same at every call, as they occur in texts: none that the model does
/// not count as a position.
TokenIds draw_token_ids(const BenchShape& shape, const phasor::ModelConfig& config) {
  std::mt19937_64 random(2);
  TokenIds sequences;
  for (const int64_t length : shape.lengths) {
    for (int32_t& id : sequences.emplace_back(length)) {
      do id = static_cast<int32_t>(random() % config.vocab_size);
      while (id == config.position.uncounted_token && config.vocab_size > 1);
    }
  }
  return sequences;
}

/// Seconds of each run, ascending: at least three, for about as long as was asked for.
std::vector<double> time_runs(phasor::Encoder& encoder, const TokenIds& token_ids, double seconds) {
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  encoder.encode_ids(token_ids);  // compiles, and fills the caches
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 3 || since(begin) < seconds) {
    const auto start = Clock::now();
    encoder.encode_ids(token_ids);
    times.push_back(since(start));
  }
  std::ranges::sort(times);
  return times;
}

/// Multiplications and additions, each counted as one, of a run's linear maps, of attention's
/// scores and of its mixing of the values.
double matmul_operations(const phasor::ModelConfig& config, const std::vector<int64_t>& lengths) {
  const auto layers = static_cast<double>(config.num_layers);
  const auto width = static_cast<double>(config.attention_width());
  const auto d_model = static_cast<double>(config.d_model);
  const double layer = d_model * (4 * width + (config.gated_mlp ? 3.0 : 2.0) * config.d_ff);
  const double token = layers * layer + d_model * static_cast<double>(config.d_embedding);
  double multiplications = 0;
  for (const int64_t n : lengths) {
    multiplications += static_cast<double>(n) * (token + 2 * layers * width * n);
  }
  return 2 * multiplications;
}

/// Forgets earlier peaks, where the system can: else the peak is that of the whole process.
void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << '5'; }

/// The most memory resident since then, in bytes.
int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return 1024 * kilobytes;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024 * int64_t{usage.ru_maxrss};
}

}  // namespace

BenchShape parse_shape(const std::string& name) {
  const bool ragged = name.starts_with(kRagged);
  const auto [left, right] = split(std::string_view(name).substr(ragged ? kRagged.size() : 0), 'x');
  const auto [shortest, longest] = split(ragged ? left : right, '-');
  const auto count = parse_size(ragged ? right : left);
  const auto from = parse_size(shortest);
  const auto to = ragged ? parse_size(longest) : from;
  if (!count || !from || !to || (!ragged && right != shortest)) {
    refuse(name, fmt::format("sizes are whole numbers from 1 to {}", kMostTokens));
  }
  if (*from > *to) refuse(name, fmt::format("{} is more than {}", *from, *to));
  if (*count * *to > kMostTokens) {
    refuse(name, fmt::format("a batch has at most {} tokens", kMostTokens));
  }
  BenchShape shape{name, std::vector<int64_t>(*count, *from)};
  std::mt19937_64 random(1);
  for (int64_t& length : shape.lengths) {
    length += static_cast<int64_t>(random() % (*to - *from + 1));
  }
  return shape;
}

Measurement measure(const phasor::Encoder& encoder, const BenchShape& shape, double seconds) {
  const phasor::ModelConfig& config = encoder.model().config();
  phasor::Encoder fresh = encoder.replica();  // without the scratch memory of other shapes
  reset_peak_memory();
  const std::vector<double> times = time_runs(fresh, draw_token_ids(shape, config), seconds);
  return {.shape = shape.name,
          .tokens = std::accumulate(shape.lengths.begin(), shape.lengths.end(), int64_t{0}),
          .threads = encoder.threads(),
          .precision = encoder.precision(),
          .median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2,
          .fastest = times.front(),
          .operations = matmul_operations(config, shape.lengths),
          .peak_bytes = peak_memory(),
          .primitives = fresh.primitives()};
}

Accuracy::Accuracy(const std::shared_ptr<const phasor::Model>& model) {
  const int64_t most = model->max_tokens().value_or(64);
  if (model->has_tokenizer()) {
    for (const char* const text :
         {"Tom bit a dog.", "The committee will decide next week whether to build a new bridge.",
          "Why are there so many different kinds of apples?", "It rained, so we stayed at home.",
          "In 1905 a young clerk in Bern wrote four papers that changed physics."}) {
      token_ids_.push_back(model->tokenizer().encode(text).ids);
      if (std::ssize(token_ids_.back()) > most) token_ids_.back().resize(most);
    }
  } else {
    const int64_t length = std::min<int64_t>(most, 32);
    token_ids_ = draw_token_ids({"", std::vector<int64_t>(8, length)}, model->config());
  }
  phasor::Encoder exact(model);
  const phasor::Encoding encoding = exact.encode_ids(token_ids_);
  states_.assign(encoding.hidden().begin(), encoding.hidden().end());
}

double Accuracy::mean_cosine(phasor::Encoder& encoder) const {
  Deviation deviation;
  const phasor::Encoding encoding = encoder.encode_ids(token_ids_);
  deviation.add(encoding.hidden(), states_, encoder.model().config().d_model);
  return deviation.mean_cosine();
}

}  // namespace infer
