// infer bench: how fast a model runs here, for shapes of batches, numbers of threads and
// precisions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "infer/cli/options.h"
#include "infer/cli/progress.h"
#include "infer/commands.h"
#include "infer/commands/bench/bench_measure.h"
#include "infer/render/observed_json.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::Precision;

constexpr const char* kDescription =
    "Measures how fast a model runs: batches of token ids to hidden states, without padding.";

constexpr const char* kFooter =
    R"(The table has, for each shape, the mean cosine of a few sentences' last hidden states with
float32's (1: equal); the median and the fastest of the runs; tokens and matmul operations a
second; the most memory resident meanwhile, the model's own included; and oneDNN's
implementations. --json has them all, step by step.

Examples:
  infer bench
  infer bench -m minilm --precision f32,auto
  infer bench -m minilm --shape 32x128 --shape ragged:4-60x64 --threads 1,4 --json)";

const std::vector<std::string> kDefaultShapes = {"1x16",   "1x128", "32x32",
                                                 "32x128", "8x512", "ragged:4-60x64"};

struct BenchArguments {
  CommonOptions common;
  std::vector<std::string> shapes = kDefaultShapes;
  std::vector<std::string> threads = {"1", "all"};
  std::vector<Precision> precisions = {Precision::kFloat32};
  double seconds = 1;
};

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(int argc, char** argv, BenchArguments& arguments) {
  CommandLine line("infer bench", kDescription, kFooter);
  add_model(line, arguments.common);
  line.list("--shape", "SHAPE",
            "32x128: 32 sequences of 128 tokens; ragged:4-60x64: 64 of 4 to 60; repeatable "
            "(default: 1x16,1x128,32x32,32x128,8x512,ragged:4-60x64)",
            arguments.shapes, Commas::kYes);
  line.list("-t,--threads", "N", "numbers of threads, or all (default: 1,all)", arguments.threads,
            Commas::kYes);
  add_precisions(line, "f32 (default), bf16, int8, auto; several with commas",
                 arguments.precisions);
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
  for (const std::string& name : arguments.shapes) {
    BenchShape shape = parse_shape(name);
    if (!max_tokens || shape.max_tokens() <= *max_tokens) {
      fitting.push_back(std::move(shape));
      continue;
    }
    const std::string why = fmt::format("{} has {} tokens, but the model's positions end after {}",
                                        name, shape.max_tokens(), *max_tokens);
    if (arguments.shapes != kDefaultShapes) {
      throw phasor::InvalidArgument("--shape " + why + "; give a shorter one");
    }
    if (!arguments.common.quiet) report_note("left out: " + why);
  }
  if (fitting.empty()) {
    throw phasor::InvalidArgument(fmt::format(
        "the model's positions end after {}; give a --shape that is short enough", *max_tokens));
  }
  return fitting;
}

/// "int8", "auto (int8)".
std::string precision_of(const Measurement& m) {
  return m.asked == Precision::kAuto ? fmt::format("auto ({})", to_string(m.precision))
                                     : std::string(to_string(m.precision));
}

std::string json_row(const Measurement& m, const std::string& model) {
  nlohmann::ordered_json json = {{"model", model},
                                 {"shape", m.shape},
                                 {"tokens", m.tokens},
                                 {"threads", m.threads},
                                 {"asked", to_string(m.asked)},
                                 {"precision", to_string(m.precision)},
                                 {"mean_cosine", m.mean_cosine},
                                 {"median_ms", 1e3 * m.median},
                                 {"min_ms", 1e3 * m.fastest},
                                 {"tokens_per_s", m.tokens_per_second()},
                                 {"gflops", m.gflops()},
                                 {"rss_bytes", m.peak_bytes}};
  for (const auto& [name, implementation] : m.primitives) json["impl"][name] = implementation;
  return line(json) + "\n";
}

std::string table_head(const Output& output) {
  return output.heading(fmt::format("{:<15}{:>7}  {:<12}{:>7}{:>10}{:>10}{:>10}{:>9}{:>9}  {}",
                                    "shape", "threads", "precision", "cosine", "median ms",
                                    "min ms", "tokens/s", "GFLOP/s", "memory", "oneDNN")) +
         "\n";
}

std::string table_row(const Measurement& m) {
  std::vector<std::string> implementations;  // each once
  for (const auto& [name, implementation] : m.primitives) {
    if (std::ranges::count(implementations, implementation) == 0) {
      implementations.push_back(implementation);
    }
  }
  return fmt::format(
      "{:<15}{:>7}  {:<12}{:>7.4f}{:>10.3f}{:>10.3f}{:>10.0f}{:>9.1f}{:>6.0f} MB  {}\n", m.shape,
      m.threads, precision_of(m), m.mean_cosine, 1e3 * m.median, 1e3 * m.fastest,
      m.tokens_per_second(), m.gflops(), static_cast<double>(m.peak_bytes) / 1e6,
      fmt::join(implementations, ", "));
}

/// How much faster one precision is than another, over the shapes and threads of both.
struct Speedup {
  double mean = 1, least = 1, most = 1;
};

Speedup speedup(const std::vector<Measurement>& rows, Precision asked, Precision base) {
  Speedup speedup{.mean = 0, .least = INFINITY, .most = 0};
  int count = 0;
  for (const Measurement& row : rows) {
    const auto other = std::ranges::find_if(rows, [&](const Measurement& r) {
      return r.asked == base && r.shape == row.shape && r.threads == row.threads;
    });
    if (row.asked != asked || other == rows.end()) continue;
    const double times = other->median / row.median;
    speedup.mean += std::log(times);
    speedup.least = std::min(speedup.least, times);
    speedup.most = std::max(speedup.most, times);
    ++count;
  }
  speedup.mean = std::exp(speedup.mean / count);
  return speedup;
}

/// Which of the precisions to take, in a sentence; empty where there is nothing to choose from.
std::string advice(const std::vector<Measurement>& rows, const std::vector<Precision>& asked) {
  const Measurement* best = nullptr;
  const bool has_float32 = std::ranges::count(asked, Precision::kFloat32) > 0;
  const Precision base = has_float32 ? Precision::kFloat32 : asked.front();
  Speedup gain;
  for (const Measurement& row : rows) {
    const Speedup own = speedup(rows, row.asked, base);
    if (best != nullptr && own.mean <= gain.mean) continue;
    best = &row;
    gain = own;
  }
  const bool one = std::ranges::all_of(
      rows, [&](const Measurement& row) { return row.precision == best->precision; });
  if (one) {
    const Precision fastest = phasor::fastest_precision();
    if (best->precision != Precision::kFloat32 || fastest == Precision::kFloat32) return "";
    return fmt::format("{} may be faster here; compare: infer bench --precision f32,{}\n",
                       to_string(fastest), to_string(fastest));
  }
  const std::string name(base == Precision::kFloat32 ? "float32" : to_string(base));
  if (best->asked == base) return fmt::format("fastest: {}\n", name);
  std::string text =
      fmt::format("fastest: {}, {:.1f} times {}", precision_of(*best), gain.mean, name);
  if (gain.most - gain.least > 0.1) {
    text += fmt::format(" ({:.1f} to {:.1f}, by shape and threads)", gain.least, gain.most);
  }
  return text +
         fmt::format("; its states have mean cosine {:.4f} with float32's\n", best->mean_cosine);
}

}  // namespace

int bench(int argc, char** argv) {
  BenchArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const CommonOptions& common = arguments.common;
  const std::vector<int> threads = parse_threads(arguments.threads);
  for (const std::string& name : arguments.shapes) parse_shape(name);

  const auto model = phasor::Model::load(common.model);
  const std::vector<BenchShape> shapes = fitting_shapes(arguments, model->max_tokens());
  Output output;
  if (!common.json) output.write(table_head(output));
  Progress progress(common.quiet);
  std::optional<Accuracy> accuracy;
  std::set<std::pair<Precision, int>> seen;
  std::vector<Measurement> rows;
  int64_t done = 0;
  for (const Precision precision : arguments.precisions) {
    if (!common.quiet) note_slow(precision);
    for (const int wanted : threads) {
      phasor::Encoder encoder(model, {.threads = wanted, .precision = precision});
      if (!seen.emplace(precision, encoder.threads()).second) continue;  // "all" may be one
      double mean_cosine = 1;
      if (encoder.precision() != Precision::kFloat32) {
        if (!accuracy) accuracy.emplace(model);
        mean_cosine = accuracy->mean_cosine(encoder);
      }
      for (const BenchShape& shape : shapes) {
        progress.show("measuring " + shape.name, ++done,
                      std::ssize(arguments.precisions) * std::ssize(threads) * std::ssize(shapes));
        const auto same = std::ranges::find_if(rows, [&](const Measurement& row) {
          return row.shape == shape.name && row.threads == encoder.threads() &&
                 row.precision == encoder.precision();
        });
        rows.push_back(same != rows.end() ? Measurement(*same)
                                          : measure(encoder, shape, arguments.seconds));
        rows.back().asked = precision;
        rows.back().mean_cosine = mean_cosine;
        progress.clear();
        output.write(common.json ? json_row(rows.back(), common.model) : table_row(rows.back()));
        if (output.closed()) return 0;
      }
    }
  }
  if (!common.json) output.write(advice(rows, arguments.precisions));
  return 0;
}

}  // namespace infer
