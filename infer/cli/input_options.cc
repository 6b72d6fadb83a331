#include "infer/cli/input_options.h"

#include <fmt/format.h>

#include <string_view>

#include "files/matrix_file.h"
#include "infer/cli/command_line.h"
#include "infer/cli/save.h"
#include "infer/cli/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::Positions;

Positions edited(const Positions& positions, const std::string& edit) {
  try {
    return positions.edited(edit);
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(fmt::format("--edit: {} (or table=FILE)", error.what()));
  }
}

constexpr std::string_view kTable = "table=";

phasor::ResidualCut parse_cut(const std::string& cut, int64_t num_layers) {
  using Site = phasor::ResidualCut::Site;
  const size_t dot = cut.find('.');
  const std::string site = dot == cut.npos ? "" : cut.substr(dot + 1);
  const auto layer = parse_number<int64_t>(std::string_view(cut).substr(0, dot));
  const bool known = dot == cut.npos || site == "attn" || site == "mlp";
  if (!layer || !known) {
    throw UsageError(fmt::format(
        "--cut-residual: '{}' is no layer; write 1, 1.attn or 1.mlp for the first", cut));
  }
  if (*layer < 1 || *layer > num_layers) {
    throw phasor::InvalidArgument(
        fmt::format("--cut-residual: there is no layer {}; this model's are 1 to {}",
                    cut.substr(0, dot), num_layers));
  }
  return {.layer = *layer - 1,
          .site = site.empty() ? Site::kBoth : (site == "attn" ? Site::kAttention : Site::kMlp)};
}

}  // namespace

void add_texts(CommandLine& line, InputOptions& options) {
  line.words("TEXT", "texts; - stands for the lines of standard input", options.words);
  add_common(line, kLoad | kPrefix | kSpecial, options.common);
  line.list("--ids", "IDS", "token ids like \"5 17 9\" instead of texts", options.ids);
  line.option("--positions", "KIND",
              "own (default), none, sinusoidal[:LAYOUT], learned, rotary[:BASE] or alibi",
              options.positions);
  line.option("--mask", "MASK",
              "which tokens a token sees: causal (up to itself), none (all) or own", options.mask);
  line.option("--overflow", "POLICY", "", options.overflow);
}

void add_save(CommandLine& line, InputOptions& options) {
  line.option("--save", "FILE", "write all activations to a .safetensors file", options.save);
  line.list("--hooks", "NAMES", "", options.hooks, Values::kCommas);
}

void take_texts(InputOptions& options, const std::string& how) {
  if (!options.words.empty() && !options.ids.empty()) {
    throw UsageError("--ids and texts exclude each other; give one of them");
  }
  const bool for_texts =
      !options.common.language.empty() || !options.common.prefix.empty() || options.common.special;
  if (for_texts && !options.ids.empty()) {
    throw UsageError("--lang, --prefix and --special are for texts, not for --ids; leave them out");
  }
  if (!options.hooks.empty() && options.save.empty()) {
    throw UsageError("--hooks says what to write into a file; name it with --save");
  }
  if (!options.save.empty()) check_save_path(options.save, false);
  note_file_as_text(options.words, how, options.common);
  note_models_as_texts(options.words, options.common);
}

phasor::RunOptions run_options(const InputOptions& options, const phasor::PositionConfig& own) {
  return {.positions = parse_positions(options.positions, own, options.mask),
          .overflow = options.overflow};
}

void add_interventions(CommandLine& line, Interventions& interventions) {
  line.list("--edit", "EDIT",
            "before and after a change of positions: zero, mean, scale=X, shift=N, swap=I,J, "
            "reverse, shuffle=SEED, repeat or table=FILE; several in order",
            interventions.edits);
  line.list("--cut-residual", "L", "the same for a residual connection: LAYER[.attn|.mlp]",
            interventions.cuts);
}

phasor::RunOptions intervened(const phasor::RunOptions& run, const Interventions& interventions,
                              const phasor::ModelConfig& config) {
  phasor::RunOptions options = run;
  // The table is what the other edits choose rows from, wherever it stands among them.
  for (const std::string& edit : interventions.edits) {
    if (!edit.starts_with(kTable)) continue;
    const Matrix table = phasor::internal::read_table(edit.substr(kTable.size()), "--edit table=");
    options.positions = Positions::table({.rows = table.rows,
                                          .d_model = table.columns,
                                          .values = {table.values.begin(), table.values.end()}});
  }
  for (const std::string& edit : interventions.edits) {
    if (!edit.starts_with(kTable)) options.positions = edited(options.positions, edit);
  }
  for (const std::string& cut : interventions.cuts) {
    options.cut_residuals.push_back(parse_cut(cut, config.num_layers));
  }
  return options;
}

std::vector<lens::Run> before_and_after(lens::Run run, const Interventions& interventions) {
  if (!interventions.any()) return {std::move(run)};
  lens::Run after = run;
  run.label = "before";
  after.label = "after";
  after.options = intervened(run.options, interventions, run.model().config());
  after.edits = interventions.edits;
  return {std::move(run), std::move(after)};
}

std::vector<lens::Text> make_texts(std::span<const std::string> ids,
                                   std::span<const std::string> texts) {
  std::vector<lens::Text> all;
  for (const std::string& list : ids) all.push_back({.token_ids = parse_ids(list)});
  for (const std::string& text : texts) all.push_back({.text = text});
  return all;
}

void note_texts(const std::string& what, const Observed& means, int64_t max_tokens) {
  if (means.num_cut > 0) {
    report_note(fmt::format("{}: {} {} cut to {} tokens, {} fewer in all", what, means.num_cut,
                            means.num_cut == 1 ? "text was" : "texts were", max_tokens,
                            means.tokens.dropped));
  }
  if (means.tokens.invalid_bytes > 0)
    report_note(what + ": " + invalid_bytes_note(means.tokens.invalid_bytes));
}

void print_mask_note(const CommonOptions& options) {
  if (options.quiet) return;
  report_note("this model has no masked-language-model head: its mask was read as plain text");
}

void print_notes(const InputOptions& options, const phasor::Encoder& encoder,
                 const phasor::RunOptions& run, const Observed& text, size_t number, size_t count) {
  if (options.common.quiet) return;
  const phasor::ModelConfig& config = encoder.model().config();
  if (number == 0) {
    report_note(fmt::format("model {}: {} layers, d_model {}, {} heads, {}-norm, positions {}, {}",
                            options.common.model, config.num_layers, config.d_model,
                            config.num_heads, to_string(config.norm_order),
                            phasor::internal::describe_positions(config.position, run.positions),
                            to_string(encoder.precision())));
    note_slow(precision_of(options.common));
    for (const std::string& note : encoder.model().notes()) report_note(note);
  }
  const auto note = [&](const std::string& what) {
    report_note(count > 1 ? fmt::format("text {}: {}", number + 1, what) : what);
  };
  if (text.tokens.invalid_bytes > 0) note(invalid_bytes_note(text.tokens.invalid_bytes));
  if (text.tokens.dropped > 0) {
    note(fmt::format("{} tokens were dropped to fit the position table", text.tokens.dropped));
  }
  const int64_t tokens = text.num_tokens;
  if (config.max_positions == 0 || tokens <= config.max_positions) return;
  const bool table = phasor::internal::ends_with_table(config.position, run.positions);
  note(fmt::format("{} tokens; the model was trained on at most {}{}", tokens, config.max_positions,
                   table ? fmt::format(" (--overflow {})", to_string(run.overflow)) : ""));
}

}  // namespace infer
