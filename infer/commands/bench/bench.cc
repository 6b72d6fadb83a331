// infer bench: how fast a model runs here, for shapes of batches, numbers of threads and
// precisions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "infer/cli/options.h"
#include "infer/cli/progress.h"
#include "infer/commands.h"
#include "infer/commands/bench/bench_measure.h"
#include "infer/commands/bench/bench_shape.h"
#include "infer/commands/bench/matmul_limit.h"
#include "infer/render/terminal.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kDescription =
    "Measures how fast a model runs: batches of token ids to hidden states, without padding.";

constexpr const char* kFooter =
    R"(The table has, for each shape, the median and the fastest of the runs; tokens and matmul
operations a second; limit, the time that the matmuls alone would take at oneDNN's best rate
here, measured beforehand, as a share of the median; the most memory resident meanwhile, the
model's own included; and oneDNN's implementations. --json has them all, step by step.

Examples:
  infer bench
  infer bench -m minilm --shape 32x128 --shape ragged:4-60x64 --threads 1,4 --json)";

const std::vector<std::string> kDefaultShapes = {"1x16",   "1x128", "32x32",
                                                 "32x128", "8x512", "ragged:4-60x64"};

struct BenchArguments {
  CommonOptions common;
  std::vector<std::string> shapes = kDefaultShapes;
  std::vector<std::string> threads = {"1", "all"};
  std::vector<phasor::Precision> precisions = {phasor::Precision::kFloat32};
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
    int number = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, problem] = std::from_chars(word.data(), end, number);
    const bool good = problem == std::errc() && rest == end && number >= 0 && number <= kMost;
    if (!good && word != "all") {
      throw UsageError(fmt::format(
          "--threads: '{}' is neither all nor a number from 1 to {}; write it like 1,4 or 1,all",
          word, kMost));
    }
    numbers.push_back(good ? number : 0);
  }
  return numbers;
}

/// The shapes that are no longer than the model's positions, with a note on the others; but what
/// the user asked for has to fit.
std::vector<BenchShape> fitting_shapes(const std::vector<BenchShape>& shapes,
                                       std::optional<int64_t> max_tokens,
                                       const BenchArguments& arguments) {
  std::vector<BenchShape> fitting;
  for (const BenchShape& shape : shapes) {
    if (!max_tokens || shape.max_tokens() <= *max_tokens) {
      fitting.push_back(shape);
      continue;
    }
    const std::string why = fmt::format("{} has {} tokens, but the model's positions end after {}",
                                        shape.name, shape.max_tokens(), *max_tokens);
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

}  // namespace

int bench(int argc, char** argv) {
  BenchArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const CommonOptions& common = arguments.common;
  const std::vector<int> threads = parse_threads(arguments.threads);
  std::vector<BenchShape> shapes;
  for (const std::string& name : arguments.shapes) shapes.push_back(parse_shape(name));

  const auto model = phasor::Model::load(common.model);
  Output output;
  Progress progress(common.quiet);
  std::set<std::pair<phasor::Precision, int>> seen;
  int64_t done = 0;
  for (const phasor::Precision precision : arguments.precisions) {
    if (!common.quiet) note_slow(precision);
    for (const int wanted : threads) {
      const phasor::Encoder encoder(model, {.threads = wanted, .precision = precision});
      if (seen.empty()) {
        shapes = fitting_shapes(shapes, encoder.model().max_tokens(), arguments);
        if (!common.json) output.write(table_head(output));
      }
      if (!seen.emplace(encoder.precision(), encoder.threads()).second)
        continue;  // "all" may be one
      const MatmulLimit limit(
          model->config(),
          {.threads = wanted, .precision = precision, .seconds = std::min(arguments.seconds, 0.5)});
      for (const BenchShape& shape : shapes) {
        progress.show("measuring " + shape.name, ++done,
                      std::ssize(arguments.precisions) * std::ssize(threads) * std::ssize(shapes));
        const Measurement m = measure(encoder, limit, shape, arguments.seconds);
        progress.clear();
        output.write(common.json ? to_json(m, common.model) : table_row(m));
        if (output.closed()) return 0;
      }
    }
  }
  return 0;
}

}  // namespace infer
