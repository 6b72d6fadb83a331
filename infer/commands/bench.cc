// infer bench: how fast a model runs here, for shapes of batches, numbers of threads and
// precisions.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "infer/cli/options.h"
#include "infer/cli/peak_memory.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/render/json_text.h"
#include "lens/study/measures.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::KernelLibrary;
using phasor::Precision;
using Clock = std::chrono::steady_clock;
using TokenIds = std::vector<std::vector<int32_t>>;

struct BenchShape {
  std::string name;              // "32x128": 32 sequences of 128 tokens
  std::vector<int64_t> lengths;  // [B]
};

/// "32x128", or "ragged:4-60x64" for 64 sequences of 4 to 60 tokens, which are the same at every
/// call. Throws UsageError.
BenchShape parse_shape(const std::string& name) {
  constexpr int64_t kMostTokens = 1 << 20;
  static const std::regex kPattern(
      "([0-9]{1,7})x([0-9]{1,7})|ragged:([0-9]{1,7})-([0-9]{1,7})x([0-9]{1,7})");
  std::smatch match;
  const bool good = std::regex_match(name, match, kPattern);
  const auto size = [&](int plain, int ragged) {
    return good ? std::stoll(match[plain].matched ? match[plain] : match[ragged]) : 0;
  };
  const int64_t count = size(1, 5), from = size(2, 3), to = size(2, 4);
  const bool sizes = std::min({count, from, to}) >= 1 && std::max({count, from, to}) <= kMostTokens;
  if (!sizes || from > to || count * to > kMostTokens) {
    throw UsageError(fmt::format(
        "--shape '{}': sizes are whole numbers from 1 up, and a batch has at most {} tokens; write "
        "32x128 for 32 sequences of 128 tokens, ragged:4-60x64 for 64 of 4 to 60",
        name, kMostTokens));
  }
  BenchShape shape{name, std::vector<int64_t>(count, from)};
  std::mt19937_64 random(1);
  for (int64_t& length : shape.lengths) length += static_cast<int64_t>(random() % (to - from + 1));
  return shape;
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

/// How a model is run.
struct Way {
  KernelLibrary kernels = KernelLibrary::kAuto;
  Precision precision = Precision::kFloat32;
  bool operator==(const Way&) const = default;
};

struct Measurement {
  std::string shape;
  int64_t tokens = 0;
  int threads = 0;
  phasor::Precision precision = phasor::Precision::kFloat32;  // never kAuto
  double median = 0, fastest = 0;                             // seconds
  int64_t peak_bytes = 0;
  std::vector<phasor::PrimitiveInfo> primitives;
  Way asked;
  KernelLibrary kernels = KernelLibrary::kOwn;  // never kAuto
  double mean_cosine = 1;                       // with float32's states

  double tokens_per_second() const { return static_cast<double>(tokens) / median; }
};

/// Runs batches of this shape at least three times, for about so many seconds, on a replica of
/// `encoder`.
Measurement measure(const phasor::Encoder& encoder, const BenchShape& shape, double seconds) {
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  phasor::Encoder fresh = encoder.replica();  // without the scratch memory of other shapes
  // Forgets earlier peaks, where the system can: else the peak is that of the whole process.
  std::ofstream("/proc/self/clear_refs") << '5';
  const TokenIds token_ids = draw_token_ids(shape, encoder.model().config());
  fresh.encode_ids(token_ids);  // compiles, and fills the caches
  std::vector<double> times;
  for (const auto begin = Clock::now(); times.size() < 3 || since(begin) < seconds;) {
    const auto start = Clock::now();
    fresh.encode_ids(token_ids);
    times.push_back(since(start));
  }
  std::ranges::sort(times);
  return {.shape = shape.name,
          .tokens = std::accumulate(shape.lengths.begin(), shape.lengths.end(), int64_t{0}),
          .threads = encoder.threads(),
          .precision = encoder.precision(),
          .median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2,
          .fastest = times.front(),
          .peak_bytes = peak_memory(),
          .primitives = fresh.primitives(),
          .asked = {},
          .kernels = encoder.kernels()};
}

/// What lower precisions are held against in float32: a few fixed sentences, or fixed token ids
/// where the model has no tokenizer.
TokenIds reference_ids(const phasor::Model& model) {
  const int64_t most = model.max_tokens().value_or(64);
  if (!model.has_tokenizer()) {
    const int64_t length = std::min<int64_t>(most, 32);
    return draw_token_ids({"", std::vector<int64_t>(8, length)}, model.config());
  }
  TokenIds token_ids;
  for (const char* const text :
       {"Tom bit a dog.", "The committee will decide next week whether to build a new bridge.",
        "Why are there so many different kinds of apples?", "It rained, so we stayed at home.",
        "In 1905 a young clerk in Bern wrote four papers that changed physics."}) {
    token_ids.push_back(model.tokenizer().encode(text, {.ids_only = true}).ids);
    if (std::ssize(token_ids.back()) > most) token_ids.back().resize(most);
  }
  return token_ids;
}

constexpr const char* kBenchDescription =
    "Measures how fast a model runs: batches of token ids to hidden states, without padding.";

constexpr const char* kBenchFooter =
    R"(For each shape the table shows the mean cosine of a few sentences' last hidden states with
float32's (1: equal); the median and the fastest run; tokens a second, by the median; and the peak
of resident memory, with the model. --json also has the implementation of each step.

Examples:
  infer bench
  infer bench -m minilm --precision f32,auto
  infer bench -m minilm --kernels own,onednn
  infer bench -m minilm --shape 32x128 --shape ragged:4-60x64 --threads 1,4 --json)";

const std::vector<std::string> kDefaultShapes = {"1x16",   "1x128", "32x32",
                                                 "32x128", "8x512", "ragged:4-60x64"};

struct BenchArguments {
  CommonOptions common;
  std::vector<std::string> shapes = kDefaultShapes;
  std::vector<std::string> threads = {"1", "all"};
  std::vector<Precision> precisions = {Precision::kFloat32};
  std::vector<KernelLibrary> kernels = {KernelLibrary::kAuto};
  double seconds = 1;
};

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(int argc, char** argv, BenchArguments& arguments) {
  CommandLine line("infer bench", kBenchDescription, kBenchFooter);
  add_model(line, arguments.common);
  line.list("--shape", "SHAPE",
            "32x128: 32 sequences of 128 tokens; ragged:4-60x64: 64 of 4 to 60; repeatable "
            "(default: 1x16,1x128,32x32,32x128,8x512,ragged:4-60x64)",
            arguments.shapes, Values::kCommas);
  line.list("-t,--threads", "N", "thread counts, or all (default: 1,all)", arguments.threads,
            Values::kCommas);
  add_choice(line, "--precision", "P", "f32 (default), bf16, int8, auto; several with commas",
             arguments.precisions);
  add_choice(line, "--kernels", "K",
             "auto (default), own, onednn (primitives of oneDNN alone); several with commas",
             arguments.kernels);
  line.option("--seconds", "S", "how long each measurement takes (default: 1)", arguments.seconds,
              Range{0, 3600});
  add_json_and_quiet(line, arguments.common);
  return line.parse(argc, argv);
}

/// 0 for all.
std::vector<int> parse_threads(const std::vector<std::string>& list) {
  constexpr int kMost = 1024;
  std::vector<int> numbers;
  for (const std::string& word : list) {
    const auto number = word == "all" ? std::optional(0) : parse_number<int>(word);
    if (!number || *number < 0 || *number > kMost) {
      throw UsageError(fmt::format(
          "--threads: '{}' is neither all nor a number from 1 to {}; write it like 1,4 or 1,all",
          word, kMost));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

/// The shapes that are no longer than the model's positions, with a note on the others; but what
/// the user asked for has to fit.
std::vector<BenchShape> fitting_shapes(const BenchArguments& arguments,
                                       std::optional<int64_t> max_tokens) {
  std::vector<BenchShape> fitting;
  std::string why;
  for (const std::string& name : arguments.shapes) {
    BenchShape shape = parse_shape(name);
    const int64_t longest = std::ranges::max(shape.lengths);
    if (!max_tokens || longest <= *max_tokens) {
      fitting.push_back(std::move(shape));
      continue;
    }
    why = fmt::format("{} has {} tokens, but the model's positions end after {}", name, longest,
                      *max_tokens);
    if (arguments.shapes != kDefaultShapes) break;
    if (!arguments.common.quiet) report_note("left out: " + why);
  }
  if (fitting.empty() || (!why.empty() && arguments.shapes != kDefaultShapes)) {
    throw phasor::InvalidArgument("--shape " + why + "; give a shorter one");
  }
  return fitting;
}

/// "int8", "auto (int8)", "onednn int8".
std::string name_of(const Measurement& m) {
  const std::string kernels =
      m.asked.kernels == KernelLibrary::kAuto ? "" : fmt::format("{} ", to_string(m.asked.kernels));
  return kernels + (m.asked.precision == Precision::kAuto
                        ? fmt::format("auto ({})", to_string(m.precision))
                        : std::string(to_string(m.precision)));
}

std::string json_row(const Measurement& m, const std::string& model) {
  nlohmann::ordered_json json = {{"model", model},
                                 {"shape", m.shape},
                                 {"tokens", m.tokens},
                                 {"threads", m.threads},
                                 {"asked", to_string(m.asked.precision)},
                                 {"precision", to_string(m.precision)},
                                 {"kernels", to_string(m.kernels)},
                                 {"mean_cosine", m.mean_cosine},
                                 {"median_ms", 1e3 * m.median},
                                 {"min_ms", 1e3 * m.fastest},
                                 {"tokens_per_s", m.tokens_per_second()},
                                 {"rss_bytes", m.peak_bytes}};
  for (const auto& [name, implementation] : m.primitives) json["impl"][name] = implementation;
  return one_line(json) + "\n";
}

std::string table_head(const Output& output) {
  return output.heading(fmt::format("{:<15}{:>7}  {:<12}{:>7}{:>10}{:>10}{:>10}{:>9}", "shape",
                                    "threads", "precision", "cosine", "median ms", "min ms",
                                    "tokens/s", "memory")) +
         "\n";
}

std::string table_row(const Measurement& m) {
  return fmt::format("{:<15}{:>7}  {:<12}{:>7.4f}{:>10.3f}{:>10.3f}{:>10.0f}{:>6.0f} MB\n", m.shape,
                     m.threads, name_of(m), m.mean_cosine, 1e3 * m.median, 1e3 * m.fastest,
                     m.tokens_per_second(), static_cast<double>(m.peak_bytes) / 1e6);
}

/// How many times faster one way is than another: the geometric mean over the shapes and threads of
/// both.
double speedup(const std::vector<Measurement>& rows, const Way& asked, const Way& base) {
  double logarithms = 0, count = 0;
  for (const Measurement& row : rows) {
    const auto other = std::ranges::find_if(rows, [&](const Measurement& r) {
      return r.asked == base && r.shape == row.shape && r.threads == row.threads;
    });
    if (row.asked != asked || other == rows.end()) continue;
    logarithms += std::log(other->median / row.median);
    ++count;
  }
  return std::exp(logarithms / count);
}

/// Which of the ways to take, in a sentence; empty where there is nothing to choose from. Where
/// only one was measured, a note says what else could be, unless `quiet`.
std::string advice(const std::vector<Measurement>& rows, bool quiet) {
  const auto float32 = std::ranges::find(rows, Precision::kFloat32, &Measurement::precision);
  const Measurement& first = float32 == rows.end() ? rows.front() : *float32;
  const Way base = first.asked;
  const Measurement& best = *std::ranges::max_element(
      rows, {}, [&](const Measurement& row) { return speedup(rows, row.asked, base); });
  const bool one_way = std::ranges::all_of(rows, [&](const Measurement& row) {
    return row.precision == best.precision && row.kernels == best.kernels;
  });
  if (one_way) {
    const Precision fastest = phasor::fastest_precision();
    const KernelLibrary kernels = best.asked.kernels;
    if (best.precision == Precision::kFloat32 && fastest != Precision::kFloat32 && !quiet) {
      report_note(fmt::format(
          "{0} may be faster here; compare: infer bench --precision f32,{0}{1}", to_string(fastest),
          kernels == KernelLibrary::kAuto ? "" : fmt::format(" --kernels {}", to_string(kernels))));
    }
    return "";
  }
  const std::string name = name_of(first) == "f32" ? "float32" : name_of(first);
  if (best.asked == base) return fmt::format("fastest: {}\n", name);
  return fmt::format(
      "fastest: {}, {:.1f} times {}; its states have mean cosine {:.4f} with float32's\n",
      name_of(best), speedup(rows, best.asked, base), name, best.mean_cosine);
}

}  // namespace

int bench(int argc, char** argv) {
  BenchArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const CommonOptions& common = arguments.common;
  const std::vector<int> threads = parse_threads(arguments.threads);
  for (const std::string& name : arguments.shapes) parse_shape(name);

  const auto model = phasor::Model::load(common.model, load_options(common));
  const std::vector<BenchShape> shapes = fitting_shapes(arguments, model->max_tokens());
  Output output;
  if (!common.json) output.show(table_head(output));
  ProgressLine progress(common.quiet);
  TokenIds reference;
  std::optional<phasor::Encoding> exact;
  std::set<std::tuple<KernelLibrary, Precision, int>> seen;
  std::vector<Way> ways;
  for (const Precision precision : arguments.precisions) {
    for (const KernelLibrary kernels : arguments.kernels) ways.push_back({kernels, precision});
  }
  std::vector<Measurement> rows;
  int64_t done = 0;
  for (const Way& way : ways) {
    if (!common.quiet && way.kernels == ways.front().kernels) note_slow(way.precision);
    for (const int wanted : threads) {
      phasor::Encoder encoder(
          model, {.threads = wanted, .precision = way.precision, .kernels = way.kernels});
      if (!seen.emplace(way.kernels, way.precision, encoder.threads()).second) {
        continue;  // "all" may be one
      }
      phasor::internal::Deviation deviation;
      if (encoder.precision() != Precision::kFloat32) {
        if (!exact) {
          reference = reference_ids(*model);
          exact = phasor::Encoder(model).encode_ids(reference);
        }
        const phasor::Encoding states = encoder.encode_ids(reference);
        deviation.add(states.hidden(), exact->hidden(), model->config().d_model);
      }
      for (const BenchShape& shape : shapes) {
        progress.show("measuring " + shape.name, ++done,
                      std::ssize(ways) * std::ssize(threads) * std::ssize(shapes));
        const auto same = std::ranges::find_if(rows, [&](const Measurement& row) {
          return row.shape == shape.name && row.threads == encoder.threads() &&
                 row.precision == encoder.precision() && row.kernels == encoder.kernels();
        });
        rows.push_back(same != rows.end() ? Measurement(*same)
                                          : measure(encoder, shape, arguments.seconds));
        rows.back().asked = way;
        rows.back().mean_cosine = deviation.mean_cosine();
        progress.clear();
        common.json ? output.write(json_row(rows.back(), common.model))
                    : output.show(table_row(rows.back()));
        if (output.closed()) return 0;
      }
    }
  }
  if (!common.json) output.show(advice(rows, common.quiet));
  return 0;
}

}  // namespace infer
