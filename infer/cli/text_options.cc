#include "infer/cli/text_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infer/commands.h"
#include "infer/experiment/subject.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"
#include "phasor/version.h"

namespace infer {
namespace {

/// The row of the first token, which --positions may have changed.
int64_t first_position(const phasor::PositionConfig& own, const phasor::Positions& positions,
                       std::span<const Recording> recordings) {
  const bool replaced = layout_name(own, positions) != layout_name(own, {});
  if (!replaced || recordings.empty()) return own.first_position;
  return std::lround(recordings.front().encoding.positions(0).front());
}

}  // namespace

void add_texts(CommandLine& line, TextOptions& options) {
  line.words("TEXT", "texts; - stands for the lines of standard input", options.words);
  add_model(line, options.common);
  add_language(line, options.common);
  add_prefix(line, options.common);
  line.option("--positions", "KIND",
              "none, sinusoidal[:LAYOUT] or learned instead of the model's own; LAYOUT is paper, "
              "marian, t2t, fairseq or opennmt",
              options.positions);
  line.list("--ids", "IDS", "token ids like \"5 17 9\" instead of texts; repeatable", options.ids);
  line.option("--overflow", "POLICY",
              "a text longer than the table of positions: error (default), truncate, clamp, "
              "interpolate or window",
              options.overflow);
}

void add_save(CommandLine& line, TextOptions& options) {
  line.option("--save", "FILE", "write all activations to .safetensors or .npz", options.save);
  line.list("--hooks", "NAMES",
            "what --save writes instead: all, or TransformerLens' names with commas, like "
            "attn.hook_pattern,blocks.0.hook_mlp_out",
            options.hooks, Commas::kYes);
}

void take_texts(TextOptions& options, const std::string& how) {
  if (!options.words.empty() && !options.ids.empty()) {
    throw UsageError("--ids and texts exclude each other; give one of them");
  }
  const bool for_texts = !options.common.language.empty() || !options.common.prefix.empty();
  if (for_texts && !options.ids.empty()) {
    throw UsageError("--lang and --prefix are for texts, not for --ids; leave them out");
  }
  if (!options.hooks.empty() && options.save.empty()) {
    throw UsageError("--hooks says what to write into a file; name it with --save");
  }
  if (!options.save.empty()) check_save_path(options.save);
  note_file_as_text(options.words, how, options.common);
}

phasor::RunOptions run_options(const TextOptions& options, const phasor::PositionConfig& own) {
  return {.positions = parse_positions(options.positions, own),
          .overflow = parse_name<phasor::Overflow>("--overflow", options.overflow)};
}

std::vector<Input> read_inputs(const phasor::Encoder& encoder, const TextOptions& options,
                               const phasor::RunOptions& run,
                               const std::vector<std::string>& more_texts) {
  const phasor::Model& model = encoder.model();
  int64_t max_tokens = options.max_tokens;
  if (max_tokens == 0 && run.overflow == phasor::Overflow::kTruncate) {
    max_tokens = encoder.model().max_tokens(run.positions).value_or(0);
  }
  std::vector<Input> inputs;
  for (const std::string& list : options.ids) {
    inputs.push_back(input_from_ids(model, parse_ids(list)));
    const int64_t tokens = std::ssize(inputs.back().token_ids);
    if (options.max_tokens > 0 && tokens > options.max_tokens) {
      keep_leading_tokens(inputs.back(), options.max_tokens);
    }
  }
  for (const std::string& text : read_texts(options.words, options.common.prefix)) {
    inputs.push_back(input_from_text(model, text, max_tokens));
  }
  for (const std::string& text : more_texts) {
    inputs.push_back(input_from_text(model, options.common.prefix + text, max_tokens));
  }
  return inputs;
}

std::map<std::string, std::string> metadata(const TextOptions& options,
                                            const phasor::Encoder& encoder,
                                            const phasor::RunOptions& run,
                                            std::span<const Recording> recordings) {
  const phasor::PositionConfig& own = encoder.model().config().position;
  return {{"model", options.common.model},
          {"layout", layout_name(own, run.positions)},
          {"first_position", fmt::format("{}", first_position(own, run.positions, recordings))},
          {"precision", std::string(phasor::to_string(encoder.precision()))},
          {"version", PHASOR_VERSION}};
}

std::vector<Recording> record_all(const TextOptions& options, phasor::Encoder& encoder,
                                  std::span<const Input> inputs, const phasor::RunOptions& run) {
  const HookTrace trace(options.hooks, encoder.model().config().num_layers);
  std::vector<Recording> recordings;
  for (const std::span<const Input> part : batches_of(inputs)) {
    recordings.push_back(record(encoder, part, run, trace));
  }
  return recordings;
}

void note_cut_texts(const CommonOptions& options, const std::string& file,
                    std::span<const Input> inputs, int64_t max_tokens) {
  const auto cut = std::count_if(inputs.begin(), inputs.end(),
                                 [](const Input& input) { return input.dropped > 0; });
  if (options.quiet || cut == 0) return;
  report_note(fmt::format("{}: {} texts were cut to {} tokens", file, cut, max_tokens));
}

void print_mask_note(const CommonOptions& options, std::span<const Input> inputs) {
  const bool any = std::ranges::any_of(inputs, [](const Input& in) { return in.mask_as_text; });
  if (options.quiet || !any) return;
  report_note("this model has no masked-language-model head: its mask was read as plain text");
}

void print_notes(const TextOptions& options, const phasor::Encoder& encoder,
                 const phasor::RunOptions& run, const Observed& text, size_t number, size_t count) {
  if (options.common.quiet) return;
  const phasor::ModelConfig& config = encoder.model().config();
  if (number == 0) {
    report_note(fmt::format("model {}: {} layers, d_model {}, {} heads, {}-norm, positions {}, {}",
                            options.common.model, config.num_layers, config.d_model,
                            config.num_heads, to_string(config.norm_order),
                            describe_positions(config.position, run.positions),
                            to_string(encoder.precision())));
    note_slow(options.common.precision);
    for (const std::string& note : encoder.model().notes()) report_note(note);
  }
  const auto note = [&](const std::string& what) {
    report_note(count > 1 ? fmt::format("text {}: {}", number + 1, what) : what);
  };
  if (text.input.invalid_bytes > 0) note(invalid_bytes_note(text.input.invalid_bytes));
  if (text.input.dropped > 0) {
    note(fmt::format("{} tokens were dropped to fit the position table", text.input.dropped));
  }
  const int64_t tokens = text.num_tokens();
  if (config.max_positions == 0 || tokens <= config.max_positions) return;
  const bool table = ends_with_table(config.position, run.positions);
  note(fmt::format("{} tokens; the model was trained on at most {}{}", tokens, config.max_positions,
                   table ? fmt::format(" (--overflow {})", to_string(run.overflow)) : ""));
}

}  // namespace infer
