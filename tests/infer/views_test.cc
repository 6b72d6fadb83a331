// The table of views: that every row of it is whole, and that JSON and CSV hold what was measured.
#include "infer/cli/command_line.h"
#include "infer/cli/input_options.h"
#include "infer/render/report.h"
#include "tests/lens/observing.h"

namespace infer {
namespace {

using namespace phasor::internal;

using Json = nlohmann::ordered_json;

TEST(ViewsTest, EveryRowOfTheTableIsWhole) {
  std::set<std::string> names;
  const std::string help = views_help();
  const Json described = Json::parse(lens::views_json());
  ASSERT_EQ(described.size(), lens::views().size());
  for (size_t i = 0; i < lens::views().size(); ++i) {
    const View& view = lens::views()[i];
    SCOPED_TRACE(view.name);
    EXPECT_TRUE(names.insert(view.name).second);
    EXPECT_EQ(&phasor::internal::view(view.name), &view);
    EXPECT_TRUE(phasor::contains(help, view.name));
    EXPECT_STRNE(view.title, "");
    EXPECT_STRNE(view.hint, "");
    EXPECT_EQ(view.hint[std::strlen(view.hint) - 1], '.');
    EXPECT_EQ(std::holds_alternative<void (*)(Many&)>(measure_of(view)),
              view.needs == Needs::kManyTexts || view.needs == Needs::kFile);
    std::set<std::string> keys = {"layer", "head", view.row_name};
    size_t printed = 0;
    for (const Column& column : view.columns) {
      EXPECT_TRUE(keys.insert(column.key).second || view.columns.size() == 1) << column.key;
      std::string label = label_of(column);  // differs from the key in how it is written alone
      for (const auto& [written, key] :
           {std::pair{"MLP", "mlp"}, {"R²", "r2"}, {"−", "-"}, {"+", ""}, {" ", "_"}}) {
        for (size_t at = 0; (at = label.find(written)) != label.npos;)
          label.replace(at, std::strlen(written), key);
      }
      EXPECT_EQ(label, column.key);
      printed += column.printed ? 1 : 0;
    }
    EXPECT_EQ(described[i]["name"], view.name);
    EXPECT_EQ(described[i]["columns"].size(), printed);
    if (view.columns.empty()) continue;  // the pattern is drawn
    EXPECT_GE(view.series, 1);
    EXPECT_LE(static_cast<size_t>(view.series), printed);
    EXPECT_LT(static_cast<size_t>(view.lead), printed);
    EXPECT_EQ(view.weight != nullptr, view.rows == Rows::kHeads);
    if (view.chart != lens::Chart::kNone) {
      EXPECT_STRNE(view.unit, "");
    }
  }
  EXPECT_FALSE(names.contains("all"));  // --only all
  EXPECT_THROW(phasor::internal::view("nothing"), std::out_of_range);
}

TEST(ViewsTest, TheDocumentationHasTheirList) {
  constexpr const char* kOf[] = {"",       ", a text", ", two runs",
                                 ", `-i`", ", `-i`",   ", two runs, `-i`"};
  std::string list;
  for (const View& view : lens::views()) {
    std::string columns;
    for (const auto& [key, meaning, decimals, printed] : view.columns)
      columns += fmt::format("{}`{}` ({})", columns.empty() ? "" : ", ", key, meaning);
    if (columns.ends_with("()")) columns = "one column for each offset";
    list += fmt::format("- `{}`{}{}: {}. {}", view.name, kOf[static_cast<int>(view.needs)],
                        view.slow ? ", if asked for" : "", view.title, view.hint);
    const char* const row = view.rows == Rows::kHeads ? "layer`, `head" : view.row_name;
    list += columns.empty() ? "\n" : fmt::format(" By `{}`: {}.\n", row, columns);
  }
  const std::string page = phasor::read_text_file(PHASOR_SOURCE_DIR "/docs/reading-in-python.md");
  EXPECT_TRUE(page.find("\n\n" + list + "\n") != page.npos) << "it is:\n" << list;
}

/// Expects tables as their views describe them.
void expect_well_formed(const Observed& run) {
  for (const auto& [name, table] : run.tables) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(run.missing.contains(name));
    std::set<std::string> places;
    for (const Row& row : table.rows) {
      EXPECT_EQ(row.cells.size(), table.columns.size());
      EXPECT_TRUE(places.insert(fmt::format("{}.{}.{}", row.layer, row.head, row.label)).second);
      const Rows rows = view(name).rows;
      EXPECT_EQ(row.head > 0, rows == Rows::kHeads);
      EXPECT_EQ(row.layer >= 0, rows != Rows::kNamed);
      EXPECT_EQ(row.label.empty(), std::string_view(view(name).row_name) == "layer");
      for (const double cell : row.cells) EXPECT_FALSE(std::isinf(cell));
    }
    if (name == "offsets" || name == "relative") continue;  // have more than are printed
    std::vector<std::string> keys;
    for (const Column& column : view(name).columns) keys.emplace_back(column.key);
    EXPECT_EQ(table.columns, keys);
  }
}

/// Expects each cell in its place of the JSON, and in a line of the CSV.
void expect_rendered(const Observed& run, const Json& json, const std::set<std::string>& csv,
                     size_t& cells) {
  std::set<std::string> names;
  for (const auto& [name, table] : run.tables) {
    const Json& rows = json["views"].at(name);
    ASSERT_EQ(rows.size(), table.rows.size()) << name;
    names.insert(name);
    for (size_t r = 0; r < rows.size(); ++r) {
      const Row& row = table.rows[r];
      EXPECT_EQ(rows[r].value("layer", int64_t{-1}), row.layer);
      EXPECT_EQ(rows[r].value("head", Json()).is_number(), row.head > 0);
      if (!row.label.empty()) {
        EXPECT_EQ(rows[r][view(name).row_name], row.label);
      }
      for (size_t c = 0; c < row.cells.size(); ++c) {
        if (std::isnan(row.cells[c])) {
          EXPECT_TRUE(rows[r][table.columns[c]].is_null());
          continue;
        }
        EXPECT_EQ(rows[r][table.columns[c]], row.cells[c]);
        if (!row.intervals.empty() && !std::isnan(row.intervals[c].low)) {
          EXPECT_EQ(rows[r][table.columns[c] + "_low"], row.intervals[c].low);
          EXPECT_EQ(rows[r][table.columns[c] + "_high"], row.intervals[c].high);
          cells += 2;
        } else {
          EXPECT_FALSE(rows[r].contains(table.columns[c] + "_low"));
        }
        const std::string label = row.label.empty() ? "" : row.label + ".";
        const std::string line = fmt::format("7,{},{},{},{}.{}{},{}", run.label,
                                             row.layer < 0 ? "" : std::to_string(row.layer),
                                             row.head > 0 ? std::to_string(row.head) : "", name,
                                             label, table.columns[c], row.cells[c]);
        EXPECT_TRUE(csv.contains(line)) << line;
        ++cells;
      }
    }
  }
  EXPECT_EQ(json["views"].size(), names.size());
  EXPECT_EQ(json["missing"].size(), run.missing.size());
}

/// One or two runs of which everything is measured.
void expect_all_formats_hold_the_same(std::span<const Observed> runs) {
  const std::string text = to_csv(runs, 7);
  const std::vector<std::string> lines = phasor::lines_of(text);
  const std::set<std::string> csv(lines.begin(), lines.end());
  const Json json = Json::parse(lens::to_json(runs));
  size_t cells = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    expect_well_formed(runs[i]);
    expect_rendered(runs[i], runs.size() == 1 ? json : json["runs"][i], csv, cells);
  }
  EXPECT_EQ(lines.size(), cells);
  EXPECT_EQ(csv_head(), "text,run,layer,head,measure,value\n");
}

TEST(ViewsTest, EveryViewOfATextHasRowsAndAllFormatsHoldThem) {
  phasor::Encoder encoder = encoder_of();
  const Observed text = observe(encoder, kText);
  expect_all_formats_hold_the_same(std::span(&text, 1));
  for (const View& view : lens::views()) {
    if (view.needs != Needs::kNothing) continue;
    ASSERT_NE(text.table(view.name), nullptr) << view.name;
    EXPECT_FALSE(text.table(view.name)->rows.empty()) << view.name;
    if (view.sentence != nullptr) {
      EXPECT_NE(view.sentence(*text.table(view.name)), "");
    }
  }
}

TEST(ViewsTest, EveryViewOfTwoRunsOfAFileHasRowsAndAllFormatsHoldThem) {
  phasor::Encoder encoder = encoder_of();
  lens::ObserveOptions request = asking_for();
  request.masked = few_lines();
  const std::vector<Measured> measured =
      observe_all({{.encoder = &encoder, .label = "a", .name = "a"},
                   {.encoder = &encoder,
                    .label = "b",
                    .name = "a",
                    .options = {.positions = phasor::Positions().edited("scale=0.5")}}},
                  {kText, kOther, kOther}, request);
  const std::vector<Observed> runs(measured.begin(), measured.end());
  expect_all_formats_hold_the_same(runs);
  for (const View& view : lens::views()) {
    if (view.columns.empty()) continue;
    EXPECT_NE(runs[1].table(view.name), nullptr) << view.name;
    const bool of_two = view.needs == Needs::kTwoRuns || view.needs == Needs::kTwoRunsOfFile;
    EXPECT_EQ(runs[0].table(view.name) == nullptr, of_two) << view.name;
  }
}

TEST(ViewsTest, JsonOfARunSaysWhatWasRun) {
  phasor::Encoder encoder = encoder_of("learned");
  std::vector<int32_t> ids(130, 5);
  Observed text =
      observe_ids(encoder, ids, {.views = {"norm"}}, {.overflow = phasor::Overflow::kInterpolate});
  text.text = "</b> \xff";
  add_row(text, "effect", {.layer = 0, .cells = {std::nan(""), std::nan("")}});
  const Json json = Json::parse(lens::to_json({&text, 1}));
  EXPECT_EQ(json["model"], "it");
  EXPECT_EQ(json["positions"], "learned");
  EXPECT_EQ(json["precision"], "f32");
  EXPECT_EQ(json["edits"], Json::array());
  EXPECT_EQ(json["text"], "</b> \uFFFD");
  EXPECT_EQ(json["ids"], ids);
  EXPECT_EQ(json["position_ids"][0], 0);
  EXPECT_NEAR(json["position_ids"][1], 127.0 / 129, 1e-6);
  EXPECT_TRUE(json["views"]["effect"][0]["effect"].is_null());
  EXPECT_EQ(to_csv(std::span(&text, 1), 1).find("effect"), std::string::npos);
  EXPECT_EQ(json["num_layers"], 6);
  EXPECT_FALSE(json.contains("label"));
  EXPECT_FALSE(json.contains("file"));
  text.means = true;
  text.file = "f.txt", text.num_texts = 3, text.num_tokens = 20;
  const Json many = Json::parse(lens::to_json({&text, 1}));
  EXPECT_EQ(many["file"], "f.txt");
  EXPECT_EQ(many["texts"], 3);
  EXPECT_FALSE(many.contains("ids"));
}

/// The views that --only shows where something is lacking.
std::vector<std::string> shown(const std::vector<std::string>& only, const Lacks& lacks) {
  ViewOptions options;
  options.only = only;
  const auto model = phasor::Model::load(phasor::bundled_model("none"));
  std::vector<std::string> names;
  for (const View* view : parse_views(options, true, model->config(), lacks).views)
    names.emplace_back(view->name);
  return names;
}

TEST(ViewsTest, OnlyPicksViewsInTheirOrder) {
  const Lacks second_run{.second_run = "run it twice"}, lines{.lines = "give lines"};
  const Lacks all{"a text", "run it twice", "give texts", "give lines"};
  EXPECT_EQ(shown({"norm", "effect"}, all), (std::vector<std::string>{"effect", "norm"}));
  size_t brief = 0, of_one_run = 0;
  for (const View& view : lens::views()) {
    const bool two = view.needs == Needs::kTwoRuns || view.needs == Needs::kTwoRunsOfFile;
    brief += view.brief && !view.slow && !two ? 1 : 0;
    of_one_run += two ? 0 : 1;
  }
  EXPECT_EQ(shown({}, second_run).size(), brief);
  EXPECT_EQ(shown({"all"}, second_run).size(), of_one_run);
  using phasor::expect_error;
  const struct {
    const char* view;
    Lacks lacks;
    const char* what;
  } refused[] = {{"pattern", all, "a text"},       {"moved", all, "run it twice"},
                 {"patched", all, "run it twice"}, {"patched", lines, "give lines"},
                 {"corpus", all, "give texts"},    {"masked", all, "give texts"},
                 {"masked", lines, "give lines"}};
  for (const auto& row : refused) {
    expect_error<UsageError>([&] { shown({row.view}, row.lacks); }, {row.view, row.what});
  }
  for (const std::vector<std::string>& only :
       {std::vector<std::string>{"slpit"}, {"all", "slpit"}}) {
    expect_error<UsageError>([&] { shown(only, all); }, {"slpit", "norm", "did you mean split?"});
  }
}

TEST(ViewsTest, HeadsAreCountedFromOne) {
  const auto model = phasor::Model::load(phasor::bundled_model("none"));
  const auto heads = [&](const std::string& head) {
    ViewOptions options;
    options.heads = {head};
    return parse_views(options, true, model->config(), {}).heads;
  };
  EXPECT_EQ(heads("6.4").at(0).layer, 6);
  EXPECT_EQ(heads("6.4").at(0).head, 4);
  EXPECT_EQ(heads("all").size(), 24u);
  for (const char* none : {"2", "2.", "two.1", "2.1x", ""}) {
    phasor::expect_error<UsageError>([&] { heads(none); }, {"--head", "2.1"});
  }
  for (const char* none : {"2.5", "0.1", "7.1", "1.0"}) {
    phasor::expect_error<phasor::InvalidArgument>([&] { heads(none); }, {none, "1.1 to 6.4"});
  }
}

}  // namespace
}  // namespace infer
