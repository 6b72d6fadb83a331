// What the terminal shows of one run and of two; heat maps: what is drawn is what was given, in the
// lines and columns there are.
#include "infer/render/observed_text.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "infer/cli/terminal.h"
#include "infer/render/heat_map.h"
#include "tests/lens/observing.h"
#include "tests/support/run_program.h"
#include "tests/support/test.h"

namespace infer {
namespace {

using namespace phasor::internal;

using phasor::contains;
using phasor::lines_of;

const int kPlain = setenv("NO_COLOR", "1", 1);

Shown shown_of(const std::vector<std::string>& names = {}) {
  Shown shown{.names = names};
  for (const View& view : lens::views()) {
    if (names.empty() || std::ranges::count(names, view.name) > 0) shown.views.push_back(&view);
  }
  return shown;
}

std::string text_of(const std::vector<Observed>& runs, const Shown& shown) {
  return to_text(runs, shown, Output());
}

/// A made-up run: rows of one view, layer by layer.
Observed run_of(const std::string& label, const char* view,
                const std::vector<std::vector<double>>& cells) {
  Observed run{.label = label};
  for (const std::vector<double>& row : cells) {
    add_row(run, view, {.layer = static_cast<int64_t>(run.tables[view].rows.size()), .cells = row});
  }
  return run;
}

/// The first line with `part` in it, and those after it.
std::vector<std::string> lines_from(const std::string& text, const std::string& part) {
  std::vector<std::string> lines = lines_of(text);
  while (!lines.empty() && lines[0].find(part) == std::string::npos) lines.erase(lines.begin());
  return lines;
}

/// Expects runs to be shown with these lines at the end.
void expect_table(const std::vector<Observed>& runs, const Shown& shown, const std::string& lines) {
  const std::string text = text_of(runs, shown);
  EXPECT_TRUE(text.ends_with(lines)) << lines << "does not end\n" << text;
}

TEST(ObservedTextTest, TablesHaveBarsAndStandSideBySideWhereTheyFit) {
  const Observed run = run_of("", "norm", {{2}, {1}, {std::nan("")}});
  expect_table({run}, shown_of({"norm"}), R"(
  layer         norm
  embed         2.00  ████████████████████
  1             1.00  ██████████
  2                —
)");
  View dots = view("norm");
  dots.chart = lens::Chart::kDots;
  EXPECT_FALSE(contains(text_of({run}, {.views = {&dots}}), "█"));
  const Observed shares =
      run_of("", "split", {{0.5, 0.2, 0.2, 0.1, 0, 1, 1}, {-0.5, 1, 0.25, 0.25, 1, 1, 1}});
  expect_table({shares}, shown_of({"split"}), R"(
  layer         position  token   both  context   edge
  embed            0.500  0.200  0.200    0.100  0.000  ██████████▒▒▒▒░░░░▓▓
  1               -0.500  1.000  0.250    0.250  1.000  ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
                █ position  ▒ token  ░ both  ▓ context
)");
  const Observed a = run_of("a", "lens", {{1, 2}, {1, 2}}), b = run_of("b", "lens", {{3, 4}});
  expect_table({a, b}, shown_of({"lens"}), R"(
              a                                 b
  layer          loss  accuracy                    loss  accuracy
  embed         1.000     2.000  ████▍            3.000     4.000  █████████████
  1             1.000     2.000  ████▍                —         —
)");
  std::vector<Observed> wide = {Observed{.label = "a"}, Observed{.label = "b"}};
  for (Observed& each : wide)
    add_row(each, "heads", {.layer = 1, .head = 1, .cells = std::vector(10, 0.5)});
  expect_table(wide, shown_of({"heads"}), R"(
              a
  head          previous  next  self  first  special  rows  distance  entropy
  1.1 (L0H0)        0.50  0.50  0.50   0.50     0.50  0.50      0.50     0.50
              b
  head          previous  next  self  first  special  rows  distance  entropy
  1.1 (L0H0)        0.50  0.50  0.50   0.50     0.50  0.50      0.50     0.50
)");
}

TEST(ObservedTextTest, ReasonsAndNotesThatBothRunsShareAreSaidOnce) {
  std::vector<Observed> runs = {run_of("a", "norm", {{1}}), run_of("b", "norm", {{1}})};
  EXPECT_FALSE(contains(text_of(runs, shown_of({"split"})), "—"));
  runs[0].missing["split"] = runs[1].missing["split"] = "no order";
  runs[1].missing["direct"] = "no vector";
  const std::string text = text_of(runs, shown_of({"split", "direct"}));
  EXPECT_TRUE(contains(text, "\n  — no order\n"));
  EXPECT_TRUE(contains(text, "\n  — b: no vector\n"));
  EXPECT_EQ(text.find("no order"), text.rfind("no order"));

  runs[0].tables["norm"].note = runs[1].tables["norm"].note = "Means.";
  EXPECT_TRUE(contains(text_of(runs, shown_of({"norm"})), "\n  Means.\n"));
  runs[1].tables["norm"].note = "Sums.";
  EXPECT_TRUE(contains(text_of(runs, shown_of({"norm"})), "\n  a: Means.\n  b: Sums.\n"));
}

TEST(ObservedTextTest, TheMostPositionalHeadsComeFirst) {
  Observed run;
  for (int64_t h = 1; h <= 12; ++h) {
    std::vector<double> cells(10, 0);
    cells[h % 2] = static_cast<double>(h) / 20;  // previous or next
    add_row(run, "heads", {.layer = 1, .head = h, .cells = cells});
  }
  EXPECT_EQ(most_positional_head(run)->head, 12);
  const std::vector<std::string> few =
      lines_from(text_of({run}, {.views = {&view("heads")}}), "  head ");
  ASSERT_EQ(few.size(), 10u);
  EXPECT_TRUE(few[1].starts_with("  1.12 (L0H11)")) << few[1];
  EXPECT_TRUE(few[8].starts_with("  1.5 (L0H4)")) << few[8];
  EXPECT_EQ(few[9], "  4 more rows: --only heads");
  EXPECT_EQ(lines_from(text_of({run}, shown_of({"heads"})), "  head ").size(), 13u);
}

TEST(ObservedTextTest, TermsOfAHeadStayTogetherAndAHeadCanBeChosen) {
  Observed run;
  const double none = std::nan("");
  for (int64_t h = 1; h <= 3; ++h) {
    const auto steep = static_cast<double>(h);
    add_row(
        run, "relative",
        {.layer = 2, .head = h, .label = "bias", .cells = {none, -steep, 0, 0, 0, -steep, none}});
    add_row(run, "relative",
            {.layer = 2, .head = h, .label = "bias sd", .cells = std::vector(7, 9.0)});
  }
  Shown shown = shown_of({"relative"});
  expect_table({run}, shown, R"(
  head                 −16     −4    −1     0    +1     +4   +16
  2.3 (L1H2) bias        —  -3.00  0.00  0.00  0.00  -3.00     —
  2.3 (L1H2) bias sd  9.00   9.00  9.00  9.00  9.00   9.00  9.00
  2.2 (L1H1) bias        —  -2.00  0.00  0.00  0.00  -2.00     —
  2.2 (L1H1) bias sd  9.00   9.00  9.00  9.00  9.00   9.00  9.00
  2.1 (L1H0) bias        —  -1.00  0.00  0.00  0.00  -1.00     —
  2.1 (L1H0) bias sd  9.00   9.00  9.00  9.00  9.00   9.00  9.00
)");
  shown.heads = {{2, 2}};
  expect_table({run}, shown, R"(
  head                 −16     −4    −1     0    +1     +4   +16
  2.2 (L1H1) bias        —  -2.00  0.00  0.00  0.00  -2.00     —
  2.2 (L1H1) bias sd  9.00   9.00  9.00  9.00  9.00   9.00  9.00
)");
}

TEST(ObservedTextTest, EveryViewFitsEightyColumns) {
  phasor::Encoder a = encoder_of("sinusoidal"), b = encoder_of("learned");
  const auto runs_of = [&](const std::string& text) {
    return observe({{.encoder = &a, .label = "before", .name = "a"},
                    {.encoder = &b, .label = std::string(50, 'x'), .name = "b"}},
                   {.text = text});
  };
  lens::ObserveOptions many = asking_for();
  many.masked = few_lines();
  const std::vector<lens::Run> subjects = {{.encoder = &a, .label = "a", .name = "a"},
                                           {.encoder = &b, .label = "b", .name = "b"}};
  const std::vector<Measured> measured = observe_all(subjects, {kText, kOther, kOther}, many);
  const std::vector<Observed> means(measured.begin(), measured.end());
  const std::vector<Observed> two = runs_of(kText);
  const std::vector<Observed> one = {observe(b, "Who was it that bit the old man on the hill?")};
  std::string all;
  for (const std::vector<Observed>& runs : {two, one, means}) {
    const std::string text = text_of(runs, shown_of()) + to_overview(two, shown_of(), Output());
    for (const std::string& line : lines_of(text)) {
      EXPECT_LE(display_width(line), 80) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    EXPECT_FALSE(contains(text, "\033"));
    all += text;
  }
  for (const View& view : lens::views()) EXPECT_TRUE(contains(all, view.title)) << view.title;
  EXPECT_TRUE(contains(all, "…" + std::string(31, 'x'))) << "a long label is cut";
}

using Sentences = std::vector<std::string>;

/// A text in one line, whose words have a blank between them.
std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// What is concluded, each as it stands in a terminal that is wide enough.
Sentences said_of(std::span<const Observed> runs, const Shown& shown) {
  Sentences said;
  for (const auto& [sentence, views, advice] : conclusions(runs, shown.views)) {
    std::string names;
    for (const View* view : views) names += (names.empty() ? "" : ",") + std::string(view->name);
    said.push_back(sentence + (names.empty() ? "" : " [" + names + "]") +
                   (advice.empty() ? "" : " | " + advice));
  }
  return said;
}

TEST(ObservedTextTest, OfOneRunTheTerminalAndTheJsonHaveTheSameSentences) {
  phasor::Encoder encoder = encoder_of();
  const std::vector<std::string> names = {"effect", "split", "heads"};
  Observed run = observe(encoder, kText);
  keep_views(run, names);
  const Shown shown = shown_of(names);
  const Sentences said = said_of({&run, 1}, shown);
  ASSERT_EQ(said.size(), 4u);
  const auto [layer, head] = *most_positional_head(run);
  EXPECT_TRUE(contains(said[2], fmt::format("head, {}.{},", layer, head))) << said[2];
  EXPECT_TRUE(contains(said[3], "This is one text")) << said[3];
  const std::string text = in_one_line(to_text({&run, 1}, shown, Output()));
  const auto json = nlohmann::json::parse(lens::to_json({&run, 1}));
  for (const auto& each : json["conclusions"]) {
    EXPECT_TRUE(contains(text, each["sentence"].get<std::string>())) << each;
    EXPECT_EQ(each["views"].size(), each == json["conclusions"].back() ? 0u : 1u);
  }
  EXPECT_EQ(json["conclusions"].size(), 4u);
  EXPECT_FALSE(contains(text, "(--only")) << "its tables stand below";
}

TEST(ObservedTextTest, ASentenceThatSaysNothingTakesNoPlace) {
  Observed run = run_of("a", "sources", {});
  add_row(run, "sources", {.layer = 1, .cells = std::vector<double>(12, std::nan(""))});
  EXPECT_EQ(said_of({&run, 1}, shown_of({"sources"})), Sentences());
}

TEST(ObservedTextTest, OfTwoRunsItConcludes) {
  std::vector<Observed> runs = {run_of("a", "norm", {{1}, {5}}), run_of("b", "norm", {{1}, {4}})};
  const std::string one =
      "This is one text: others may show other numbers. | "
      "-i FILE gives means over the lines of a file, with intervals.";
  EXPECT_EQ(
      said_of(runs, shown_of({"norm"})),
      (Sentences{"Above the embedding they differ most in Norm of the states, norm in layer 1: "
                 "a 5.00, b 4.00. [norm]",
                 one + " --baseline random shows how far random weights differ."}));
  EXPECT_EQ(said_of(std::vector{runs[0], runs[0]}, shown_of({"norm"})),
            (Sentences{"The same but for rounding. [norm]", one}));
  for (Observed& run : runs) add_row(run, "moved", {.layer = 1, .cells = {0, 0, 0, 0, 1}});
  runs[0].tables.erase("moved");
  EXPECT_EQ(said_of(runs, shown_of()).at(0), "The last states of a and b are the same. [moved]");
  const std::string overview = to_overview(runs, shown_of({"norm", "moved"}), Output());
  EXPECT_TRUE(contains(in_one_line(overview), "of a and b are the same (--only moved)."))
      << overview;
  const std::vector<std::string> rows = lines_from(overview, "  Norm of the states    ");
  ASSERT_FALSE(rows.empty()) << overview;
  std::istringstream cells(rows[0].substr(40));
  std::string first, second, layer;
  cells >> first >> second >> layer;
  EXPECT_EQ(first + " " + second + " " + layer, "3.00 2.50 1");
}

TEST(ObservedTextTest, OfTwoRunsItSaysWhatIsAlikeAndWhatDiffersAboveTheEmbedding) {
  const std::vector<Observed> runs = {run_of("a", "effect", {{0.9, 80}, {0.5, 59}, {0.3, 45}}),
                                      run_of("b", "effect", {{0.1, 25}, {0.5, 58}, {0.2, 36}})};
  const Sentences said = said_of(runs, shown_of({"effect"}));
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(
      said[0],
      "Alike above the embedding: in both, Effect of positions is largest in layer 1 (59° and "
      "58°). [effect]");
  EXPECT_EQ(said[1],
            "Above the embedding they differ most in Effect of positions, 1 − cosine in layer 2: a "
            "0.300 (45°), b 0.200 (36°). [effect]");
}

TEST(ObservedTextTest, OfOneRunItSaysTheAngle) {
  const auto said = [](const std::vector<std::vector<double>>& cells) {
    const Observed run = run_of("a", "effect", cells);
    return said_of({&run, 1}, shown_of({"effect"})).at(0);
  };
  EXPECT_EQ(
      said({{0, 0}, {0.5, 59}, {0.002, 3.6}}),
      "Positions turn the tokens' states most in layer 1, by 59° (1 − cosine 0.50), and by 4° in "
      "the last layer. [effect]");
  EXPECT_EQ(
      said({{0, 0}, {0.2, 36}, {1, 89}}),
      "Positions turn the tokens' states most in layer 2, by 89° (1 − cosine 1.00). [effect]");
  EXPECT_EQ(said({{0, 0}, {0, 0}}), "Positions change no hidden state. [effect]");
}

TEST(ObservedTextTest, ADifferenceCountsOnlyBeyondThatOfRandomWeights) {
  std::vector<Observed> runs = {run_of("a", "norm", {{5}, {9}}), run_of("b", "norm", {{4}, {3}}),
                                run_of("a (untrained)", "norm", {{2}, {1}}),
                                run_of("b (untrained)", "norm", {{2.5}, {8}})};
  for (Observed& run : runs) add_row(run, "lens", {.layer = 1, .cells = {1.0, 0}});
  runs[1].tables["lens"].rows[0].cells[0] = 1.5;
  runs[3].tables["lens"].rows[0].cells[0] = 1.5;
  const Sentences said = said_of(runs, shown_of({"norm", "lens"}));
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0],
            "Norm of the states, norm in the embedding: a 5.00, b 4.00; with random weights 2.00 "
            "and 2.50. [norm]")
      << "in layer 1 random weights differ more";
  EXPECT_EQ(said[1], "No further apart than random weights are. [lens]");
  EXPECT_FALSE(contains(said[2], "--baseline"));
}

TEST(ObservedTextTest, OfManyTextsADifferenceCountsWhereIntervalsAreApart) {
  std::vector<Observed> runs(2);
  runs[0].label = "a", runs[1].label = "b";
  for (size_t side = 0; side < 2; ++side) {
    runs[side].means = true, runs[side].num_texts = 9;
    const double norm = side == 0 ? 1 : 2;
    const auto add = [&](const char* view, double reach) {
      Row row{.layer = 1, .cells = {}};
      add_cell(row, norm, {norm - reach, norm + reach});
      for (size_t c = 1; c < phasor::internal::view(view).columns.size(); ++c) add_cell(row, 0);
      add_row(runs[side], view, row);
    };
    add("norm", 0.4), add("lens", 0.6);
  }
  EXPECT_EQ(
      said_of(runs, shown_of({"norm", "lens"})),
      (Sentences{"Above the embedding they differ most in Norm of the states, norm in layer 1: a "
                 "1.00, b 2.00. [norm]",
                 "Not told apart: the 95 % intervals of both overlap, or there are none. [lens]",
                 " | --baseline random shows how far random weights differ."}));
}

/// Means of a view with a row of halves.
Observed means_of(const char* name, bool has_intervals, int64_t untrained = 0) {
  Observed means{.label = "a", .untrained = untrained};
  means.means = true;
  means.file = "f.txt", means.num_texts = 2, means.num_tokens = 20;
  Row row{.layer = 1, .head = view(name).rows == Rows::kHeads ? 1 : 0, .cells = {}};
  for (size_t c = 0; c < view(name).columns.size(); ++c)
    has_intervals ? add_cell(row, 0.5, {0.25, 0.75}) : add_cell(row, 0.5);
  add_row(means, name, std::move(row));
  return means;
}

TEST(ObservedTextTest, ErrorsAreExplainedWhereTheyAreShown) {
  const auto said = [&](const std::vector<Observed>& runs, const std::string& name) {
    const std::string text = text_of(runs, shown_of({name}));
    return std::pair(contains(text, "bootstrap"), contains(text, "range."));
  };
  const Observed with = means_of("norm", true), without = means_of("norm", false);
  const Observed other = means_of("lens", true), heads = means_of("heads", true);
  EXPECT_EQ(said({with}, "norm"), std::pair(true, false));
  EXPECT_EQ(said({without}, "norm"), std::pair(false, false));
  EXPECT_EQ(said({with}, "lens"), std::pair(false, false));
  EXPECT_EQ(said({heads}, "heads"), std::pair(false, false)) << "there is no room for them";
  EXPECT_EQ(said({other, with}, "norm"), std::pair(true, false)) << "as of moved";
  const Observed least_to_most = means_of("norm", true, 2);
  EXPECT_EQ(said({without, least_to_most}, "norm"), std::pair(false, true));
  EXPECT_EQ(said({with, least_to_most}, "norm"), std::pair(true, true));
  EXPECT_EQ(said({with, least_to_most}, "lens"), std::pair(false, false));
}

TEST(ObservedTextTest, WhereColumnsContinueTheFirstHaveTheirErrors) {
  expect_table({means_of("reading", true)}, shown_of({"reading"}), R"(
  layer          left         random         left less random
  1             0.500 ±0.250   0.500 ±0.250             0.500 ±0.250
  layer         shuffled         later         sufficient  needed  present
  1                0.500 ±0.250  0.500 ±0.250       0.500   0.500    0.500
)");
  expect_table({means_of("reading", false)}, shown_of({"reading"}), R"(
  layer          left  random  left less random  shuffled  later  sufficient
  1             0.500   0.500             0.500     0.500  0.500       0.500
  layer         needed  present
  1              0.500    0.500
)");
}

TEST(ObservedTextTest, OffsetsThatOnlyOneRunHasAreNotCompared) {
  phasor::Encoder encoder = encoder_of();
  std::vector<Observed> runs = {observe(encoder, kOther), observe_ids(encoder, {5})};
  EXPECT_FALSE(contains(to_overview(runs, shown_of({"offsets"}), Output()), "Attention by offset"));
  EXPECT_TRUE(contains(text_of(runs, shown_of({"offsets"})), " —"));
}

TEST(ObservedTextTest, ShowsThePatternOfTheHeadThatIsAskedFor) {
  phasor::Encoder encoder = encoder_of();
  const lens::ObserveOptions request = asking_for({"pattern", "heads"});
  Shown shown = shown_of({"pattern"});
  const Observed text = observe(encoder, kText, request);
  const HeadNumber most = *most_positional_head(text);
  EXPECT_TRUE(contains(text_of({text}, shown), "  head " + name_of(most) + "\n"));
  shown.heads = {{6, 4}, {1, 2}};
  EXPECT_TRUE(contains(text_of({text}, shown), "  head 6.4 (L5H3)\n"));
  EXPECT_TRUE(contains(text_of({text}, shown), "  head 1.2 (L0H1)\n"));
  const Observed longer = observe_ids(encoder, std::vector<int32_t>(40, 7), request);
  EXPECT_TRUE(contains(text_of({longer}, shown), "  the first 32 tokens of 40\n"));
  // One token sees itself alone: every head is as positional as any other.
  EXPECT_EQ(most_positional_head(observe_ids(encoder, {5}, request))->head, 1);
}

TEST(ObservedTextTest, AShortTextHasALineForEveryLayer) {
  phasor::Encoder encoder = encoder_of();
  const Observed text = observe(encoder, "Tom [MASK] a dog.", asking_for({"effect", "attention"}));
  const std::vector<std::string> lines = lines_of(to_short_text({&text, 1}, {}, Output()));
  EXPECT_EQ(lines.at(0), "Tom [MASK] a dog.");
  EXPECT_TRUE(lines.at(1).starts_with("  position  0")) << lines[1];
  EXPECT_TRUE(contains(lines.at(2), "▁Tom")) << lines[2];
  EXPECT_TRUE(lines.at(5).starts_with("  Positions turn the tokens' states most in ")) << lines[5];
  for (int64_t l = 0; l <= 6; ++l) {  // text, 3 rows, blank, 2 of a sentence, blank, header
    std::istringstream row(lines.at(9 + l));
    std::string name, bar;
    double length = 0, effect = 0, reach = 0;
    row >> name >> length >> effect >> bar >> reach;
    EXPECT_EQ(name, l == 0 ? "embed" : std::to_string(l));
    EXPECT_NEAR(length, number(text, "norm", l, "norm"), 0.00501);
    EXPECT_NEAR(effect, number(text, "effect", l, "effect"), 0.000501);
    if (l > 0) {
      EXPECT_NEAR(reach, number(text, "attention", l, "distance"), 0.00501);
    }
  }
  EXPECT_EQ(lines.at(17), "  most probable tokens for the mask at position 2");
  EXPECT_TRUE(contains(lines.at(18), text.fillers[0].piece)) << lines[18];
}

/// 0, 1, 2, … in rows.
Matrix counting(int64_t rows, int64_t columns) {
  Matrix matrix{.values = {}, .rows = rows, .columns = columns};
  for (int64_t i = 0; i < rows * columns; ++i) matrix.values.push_back(static_cast<double>(i));
  return matrix;
}

Range zero_to_largest(std::span<const double> cells) {
  Range range;
  for (const double cell : cells) range.high = std::fmax(range.high, cell);
  return range;
}

/// The cells' lines and the key, in a terminal of 22 columns.
std::vector<std::string> cells_of(const Matrix& matrix, RangeOf range_of = zero_to_largest) {
  return phasor::lines_of(heat_map(matrix, {}, 22, range_of));
}

TEST(HeatMapTest, ShadesGrowWithTheNumbers) {
  EXPECT_EQ(heat_map(counting(1, 5), {}, 22, zero_to_largest), "    ░░▒▒▓▓██\n  0  ░▒▓█ 4\n");
}

TEST(HeatMapTest, ColumnsOfDifferentPhaseHaveNoMeanInCommon) {
  for (const int64_t columns : {40, 41, 57, 128, 201}) {
    Matrix stripes{.values = {}, .rows = 2, .columns = columns};
    for (int64_t i = 0; i < 2 * columns; ++i) {
      stripes.values.push_back(static_cast<double>(i % columns % 2));
    }
    const std::string map = heat_map(stripes, {}, 22, zero_to_largest, 2);
    const std::string line = phasor::lines_of(map).at(0).substr(2);
    EXPECT_LE(display_width(line), 20) << columns;
    for (size_t at = 0; !line.substr(at).empty(); at += std::string(" █").size()) {
      const std::string pair = line.substr(at, 4);  // the last may be a sine alone
      EXPECT_TRUE(pair == " █" || pair == " ") << columns << ": " << line;
    }
    EXPECT_NE(map.find("sines apart"), std::string::npos) << columns;
  }
}

TEST(HeatMapTest, AMatrixThatJustFitsIsNotAveraged) {
  const auto fits = cells_of(counting(3, 10)), narrow = cells_of(counting(3, 20));
  for (const auto& lines : {fits, narrow}) {
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(display_width(lines[0]), 22);
    EXPECT_EQ(lines[3].find("mean"), std::string::npos);
  }
}

TEST(HeatMapTest, NoLineIsWiderThanTheTerminal) {
  for (const int64_t columns : {1, 7, 39, 40, 41, 79, 80, 81, 128, 512, 1000}) {
    for (const int64_t rows : {1, 5, 33, 100, 513}) {
      const std::vector<std::string> labels(static_cast<size_t>(rows), "日本語");
      auto lines = phasor::lines_of(heat_map(counting(rows, columns), labels, 80, zero_to_largest));
      EXPECT_LE(display_width(lines.back()), 80);
      lines.pop_back();
      EXPECT_LE(lines.size(), 32u);
      for (const std::string& line : lines) {
        EXPECT_LE(display_width(line), 80) << rows << " x " << columns;
        EXPECT_TRUE(line.starts_with("  日本語"));
      }
    }
  }
}

TEST(HeatMapTest, LargerMatricesShowMeansAndSayOfHowManyCells) {
  // Each block of 4 × 2 has one mean, whatever is inside: a checkerboard is uniform.
  Matrix board{.values = {}, .rows = 40, .columns = 40};
  for (int64_t i = 0; i < 1600; ++i) board.values.push_back((i / 40 + i % 40) % 2 == 0 ? 1 : -1);
  const auto lines = cells_of(board, [](auto) { return Range{-1, 1}; });
  ASSERT_EQ(lines.size(), 11u);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(lines[i].find_first_not_of(" ▒"), std::string::npos);
  EXPECT_NE(lines[10].find("mean of 4 × 2"), std::string::npos) << lines[10];
}

TEST(HeatMapTest, ASymmetricRangeReachesAsFarBelowZeroAsAbove) {
  const Range range = symmetric_range(std::vector<double>{-1, 0, 3});
  EXPECT_EQ(range.low, -3);
  EXPECT_EQ(range.high, 3);
}

TEST(HeatMapTest, NumbersThatAreNoneAndMatricesOfOneNumberAreShown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(cells_of({{0, nan, 1}, 1, 3})[0], "    ··██");
  EXPECT_EQ(cells_of({{0, 0}, 1, 2})[0], "  ▒▒▒▒");
}

TEST(HeatMapTest, BlockMeansLeaveOutWhatIsNoNumber) {
  Matrix matrix{.values = std::vector<double>(80, 1), .rows = 2, .columns = 40};
  for (int i = 0; i < 80; i += 2) matrix.values[i] = std::nan("");
  matrix.values[41] = 0;
  const auto lines = cells_of(matrix);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].find("·"), std::string::npos) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("   █")) << lines[1];
}

}  // namespace
}  // namespace infer
