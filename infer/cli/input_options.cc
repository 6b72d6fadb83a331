#include "infer/cli/input_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>

#include "files/matrix_file.h"
#include "infer/cli/command_line.h"
#include "infer/cli/save.h"
#include "infer/cli/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr std::string_view kTable = "table=";

phasor::ResidualCut parse_cut(const std::string& cut, int64_t num_layers) {
  using Site = phasor::ResidualCut::Site;
  const size_t dot = cut.find('.');
  const std::string site = dot == cut.npos ? "" : cut.substr(dot + 1);
  const auto layer = parse_number<int64_t>(std::string_view(cut).substr(0, dot));
  if (!layer || (dot != cut.npos && site != "attn" && site != "mlp")) {
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

/// "5 17 9" or "5,17,9".
std::vector<int32_t> parse_ids(std::string list) {
  std::ranges::replace(list, ',', ' ');
  std::istringstream words(list);
  std::vector<int32_t> ids;
  constexpr Range kIds{0, std::numeric_limits<int32_t>::max()};
  for (std::string word; words >> word;) ids.push_back(parse_value<int32_t>("--ids", word, kIds));
  if (ids.empty()) {
    throw UsageError("--ids is empty; write at least one token id, like \"5 17 9\"");
  }
  return ids;
}

/// "2.1", or "L1H0" as TransformerLens' users write the same head.
HeadNumber parse_head(const std::string& name, const phasor::ModelConfig& config) {
  const bool from_zero = name.starts_with('L');
  const std::string_view text = std::string_view(name).substr(from_zero ? 1 : 0);
  const size_t mark = std::min(text.find(from_zero ? 'H' : '.'), text.size());
  const auto layer = parse_number<int64_t>(text.substr(0, mark));
  const auto head = parse_number<int64_t>(text.substr(std::min(mark + 1, text.size())));
  if (!layer || !head) {
    throw UsageError(fmt::format(
        "--head: '{}' is no head; write LAYER.HEAD, both counted from 1, like 2.1, or L1H0, the "
        "same head counted from 0, or all",
        name));
  }
  const int64_t first = from_zero ? 0 : 1;
  const int64_t last_layer = config.num_layers - 1 + first, last = config.num_heads - 1 + first;
  if (*layer >= first && *layer <= last_layer && *head >= first && *head <= last) {
    return {*layer + 1 - first, *head + 1 - first};
  }
  throw phasor::InvalidArgument(fmt::format("--head: there is no head {}; this model has {}", name,
                                            from_zero
                                                ? fmt::format("L0H0 to L{}H{}", last_layer, last)
                                                : fmt::format("1.1 to {}.{}", last_layer, last)));
}

}  // namespace

void add_texts(CommandLine& line, InputOptions& options) {
  line.words("TEXT", "texts; - stands for the lines of standard input", options.words);
  add_common(line, kLoad | kPrefix | kSpecial, options.common);
  add_ids(line, options);
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

void add_ids(CommandLine& line, InputOptions& options) {
  line.list("--ids", "IDS", "token ids like \"5 17 9\" instead of texts", options.ids);
}

void refuse_ids_and_texts(const InputOptions& options) {
  if (options.words.empty() || options.ids.empty()) return;
  throw UsageError(
      "--ids and texts exclude each other; give one of them, and several ids as one value: --ids "
      "5,7");
}

void take_texts(const InputOptions& options, const std::string& how) {
  refuse_ids_and_texts(options);
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

std::vector<lens::Run> before_and_after(lens::Run run, const Interventions& interventions) {
  if (!interventions.any()) return {std::move(run)};
  lens::Run after = run;
  run.label = "before";
  after.label = "after";
  after.edits = interventions.edits;
  phasor::Positions& positions = after.options.positions;
  // The table is what the other edits choose rows from, wherever it stands among them.
  for (const std::string& edit : interventions.edits) {
    if (!edit.starts_with(kTable)) continue;
    const Matrix table = phasor::internal::read_table(edit.substr(kTable.size()), "--edit table=");
    positions = phasor::Positions::table({.rows = table.rows,
                                          .d_model = table.columns,
                                          .values = {table.values.begin(), table.values.end()}});
  }
  for (const std::string& edit : interventions.edits) {
    if (edit.starts_with(kTable)) continue;
    try {
      positions = positions.edited(edit);
    } catch (const phasor::InvalidArgument& error) {
      throw UsageError(fmt::format("--edit: {} (or table=FILE)", error.what()));
    }
  }
  for (const std::string& cut : interventions.cuts)
    after.options.cut_residuals.push_back(parse_cut(cut, run.model().config().num_layers));
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

void add_views(CommandLine& line, ViewOptions& options) {
  add_only(line, "views", options.only);
  line.list("--head", "HEAD", "whose pattern and rows are shown: 2.1, L1H0 (from 0) or all",
            options.heads, Values::kCommas);
  line.option("--baseline", "KIND",
              "random[:N] or own[:N]: beside each run, 3 (or N) with random weights",
              [&](const std::string& name) {
                options.measured.baseline =
                    of_option("--baseline", [&] { return lens::baseline_of(name); });
              });
  add_html(line, options.html);
  line.flag("--csv", "print every number on a line: text,run,layer,head,measure,value",
            options.csv);
  line.option("--seed", "N", "", options.measured.seed);
  line.option("--without", "HOW", "", [&](const std::string& how) {
    if (how != "mean" && how != "zero")
      throw UsageError(fmt::format("--without: '{}' is neither mean nor zero", how));
    options.measured.without = how;
  });
}

void add_top_k(CommandLine& line, ViewOptions& options) {
  line.option("--top-k", "N", "the N most probable tokens for each [MASK] (default: 5)",
              options.measured.top_k, Range{1, 1000});
}

Shown parse_views(const ViewOptions& options, bool as_text, const phasor::ModelConfig& config,
                  const Lacks& lacks) {
  const std::vector<std::string_view> names = names_of(lens::views());
  Shown shown;
  for (const std::string& name : options.heads) {
    if (name != "all") shown.heads.push_back(parse_head(name, config));
    for (int64_t h = 0; name == "all" && h < config.num_layers * config.num_heads; ++h)
      shown.heads.push_back({h / config.num_heads + 1, h % config.num_heads + 1});
  }
  const auto why_not = [&](size_t i) {
    const char* const lack = phasor::internal::lacking(lens::views()[i].needs, lacks);
    return std::string(lack == nullptr ? "" : lack);
  };
  for (const size_t i : picked(options.only, names, why_not)) {
    const View& view = lens::views()[i];
    const bool named = !options.only.empty();
    if (!named && view.slow) continue;
    if (named) shown.names.emplace_back(view.name);
    shown.of_page.push_back(&view);
    if (named || !as_text || view.brief) shown.views.push_back(&view);
  }
  return shown;
}

std::string views_help() {
  return wrapped(fmt::format("Views (docs/reading-in-python.md#views says what each holds): {}.",
                             fmt::join(names_of(lens::views()), ", ")),
                 2, 80) +
         "\n";
}

bool Shown::has(const Row& row) const {
  return row.head == 0 || heads.empty() || std::ranges::any_of(heads, [&](HeadNumber head) {
           return head.layer == row.layer && head.head == row.head;
         });
}

}  // namespace infer
