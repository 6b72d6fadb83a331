// The tables of infer positions, their numbers, and the sections: text, JSON and CSV of one table.
#include "infer/cli/save.h"
#include "infer/commands/positions/report.h"
#include "tests/support/run_program.h"

namespace infer {
namespace {

using phasor::TempFolder;
using Json = nlohmann::ordered_json;

/// The sections that can be shown, or those of these names.
std::vector<TableSection> sections_of(size_t tables, const std::set<std::string_view>& only = {}) {
  std::vector<TableSection> sections;
  for (const TableSection& section : table_sections()) {
    const bool wanted = only.empty() || only.contains(section.name);
    if (wanted && (!section.of_two || tables == 2)) sections.push_back(section);
  }
  return sections;
}

PositionsReport report_of(const NamedTables& tables) {
  const phasor::internal::Stages progress{};
  return measure(sections_of(tables.size()), tables, progress);
}

Json json_of(const NamedTables& tables) {
  return Json::parse(to_json(report_of(tables), sections_of(tables.size())));
}

TEST(PositionsTest, ValuesOfEveryLayoutAreTheFormulasInJsonAndCsv) {
  for (const std::string name : {"paper", "marian", "t2t", "fairseq", "opennmt"}) {
    SCOPED_TRACE(name);
    const NamedTable table = find_table(name, {.length = 9, .width = 6, .base = 50});
    const Json json = json_of({table})["tables"][0];
    const int64_t first = name == "fairseq" ? 2 : name == "opennmt" ? 1 : 0;
    EXPECT_EQ(json["layout"], name);
    EXPECT_EQ(json["first_position"], first);
    ASSERT_EQ(json["values"].size(), 9u);
    const std::vector<std::string> lines = phasor::lines_of(to_csv(table));
    ASSERT_EQ(lines.size(), 10u);
    EXPECT_EQ(lines[0], "position,0,1,2,3,4,5");
    std::vector<double> row(6);
    for (int64_t p = 0; p < 9; ++p) {
      phasor::sinusoidal_row(phasor::parse<phasor::SinusoidalLayout>(name), 50,
                             static_cast<double>(first + p), 6, row.data());
      EXPECT_EQ(json["values"][p], Json(row));
      std::istringstream line(lines[p + 1]);
      std::vector<double> cells;
      for (std::string cell; std::getline(line, cell, ',');) cells.push_back(std::stod(cell));
      row.insert(row.begin(), static_cast<double>(first + p));
      EXPECT_EQ(cells, row);
      row.erase(row.begin());
    }
  }
}

TEST(PositionsTest, ModelsShowWhatTheyAddAndUpTo512RowsAreShownUnasked) {
  for (const std::string name : {"learned", "sinusoidal"}) {
    const std::string folder = PHASOR_SOURCE_DIR "/models/" + name;
    const NamedTable table = find_table(folder, {});
    const std::vector<float> vectors = phasor::Model::load(folder)->position_vectors(128);
    EXPECT_EQ(table.kind, name);
    EXPECT_EQ(table.width(), 128);
    EXPECT_EQ(table.values.values, std::vector<double>(vectors.begin(), vectors.end()));
  }
  const TempFolder folder;
  const std::string file = (folder / "long.npy").string();
  const std::vector<float> values(1200, 0.5f);
  const SavedTensor tensor("positions", {600, 2}, std::span<const float>(values));
  save("--save", file, std::span(&tensor, 1), {});
  EXPECT_EQ(find_table(file, {}).rows(), 512);
  EXPECT_TRUE(find_table(file, {}).description.ends_with(", the first 512 of 600"));
  EXPECT_EQ(find_table(file, {.length = 600}).rows(), 600);
}

TEST(PositionsTest, PropertiesAreTheLenssBesideThoseOfRandomRows) {
  const NamedTable table = find_table("paper", {.length = 40, .width = 16});
  const Json properties = json_of({table})["tables"][0]["properties"];
  const std::vector<double>& rows = table.values.values;
  const auto expect = [&](const char* key, double value) {
    EXPECT_NEAR(properties.at(key).at("value").get<double>(), value, 1e-12) << key;
    EXPECT_TRUE(properties.at(key).at("random").is_number()) << key;
  };
  expect("toeplitz_r2", phasor::toeplitz_r2(rows, 16));
  expect("neighbour_likeness", phasor::neighbour_likeness(rows, 16));
  expect("mirror_likeness", phasor::mirror_likeness(rows, 16));
  expect("stable_rank", phasor::stable_rank(rows, 16));
  expect("nearest_rows", phasor::nearest_rows(rows, 16).distance);
  expect("nearest_offset", static_cast<double>(phasor::nearest_rows(rows, 16).offset));
  expect("first_rise", static_cast<double>(*phasor::first_rise(rows, 16)));
  expect("linear_shift", phasor::linear_shift(rows, 16, 1).held_out);
  expect("unmoved", phasor::linear_shift(rows, 16, 1).unmoved);
  const auto share = phasor::principal_plane(rows, 16).share;
  expect("plane_share", share[0] + share[1]);
  expect("mean_norm", std::sqrt(8.0));
  expect("norm_ratio", 1);
  expect("toeplitz_r2", 1);
  EXPECT_LT(properties["toeplitz_r2"]["random"], 0.5);
  const double least = phasor::column_pairs(phasor::SinusoidalLayout::kPaper, 16).back().frequency;
  EXPECT_NEAR(properties["longest_wavelength"]["value"], 2 * std::numbers::pi / least, 1e-6);
}

TEST(PositionsTest, InTheStrongestFrequencyEachColumnCountsByItsVariance) {
  // A sine of amplitude 2 (share 1) beside one split in two equal ones (share 1/2) of variance 1/2.
  NamedTable table = find_table("random", {.length = 16, .width = 3});
  for (int64_t p = 0; p < 16; ++p) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(p) / 16;
    table.values.values[p * 3] = 2 * std::sin(3 * turn);
    table.values.values[p * 3 + 1] = std::sin(turn) + 1.0000001 * std::sin(5 * turn);
    table.values.values[p * 3 + 2] = 0.1;
  }
  const Json peak = json_of({table})["tables"][0]["properties"]["column_peak"];
  EXPECT_NEAR(peak["value"], (2 * 1 + 1 * 0.5) / 3, 1e-6);
}

TEST(PositionsTest, SmoothIsTheMeanOfEightStationaryTables) {
  const NamedTable table = find_table("paper", {.length = 20, .width = 8});
  const NamedTable other = find_table("random", {.length = 20, .width = 6});
  const Json json = json_of({other, table});
  std::vector<double> r2, cka;
  for (const std::vector<double>& drawn : phasor::stationary_tables(table.values.values, 8, 8)) {
    r2.push_back(phasor::toeplitz_r2(drawn, 8));
    cka.push_back(phasor::linear_cka(other.values.values, 6, drawn, 8));
  }
  const auto expect = [](const Json& property, const std::vector<double>& draws) {
    double mean = 0, squares = 0;
    for (const double x : draws) mean += x / 8;
    for (const double x : draws) squares += (x - mean) * (x - mean) / 7;
    EXPECT_NEAR(property["smooth"].get<double>(), mean, 1e-12);
    EXPECT_NEAR(property["smooth_sd"].get<double>(), std::sqrt(squares), 1e-12);
  };
  expect(json["tables"][1]["properties"]["toeplitz_r2"], r2);
  expect(json["against"]["linear_cka"], cka);
}

TEST(PositionsTest, ClockHandsTurnWithTheFrequencyOfTheirPair) {
  for (const char* layout : {"paper", "marian", "t2t"}) {
    const NamedTable table = find_table(layout, {.length = 30, .width = 8});
    const std::vector<double> angles = phasor::clock_angles(table.values.values, 8, table.pairs);
    ASSERT_EQ(angles.size(), 30u * 4);
    for (int64_t p = 0; p < 30; ++p) {
      for (int64_t k = 0; k < 4; ++k) {
        const double angle = angles[p * 4 + k];
        const double turned = table.pairs[k].frequency * static_cast<double>(p);
        EXPECT_NEAR(std::remainder(angle - turned, 2 * std::numbers::pi), 0, 1e-9);
        EXPECT_GE(angle, 0);
        EXPECT_LT(angle, 2 * std::numbers::pi);
      }
    }
  }
}

TEST(PositionsTest, EverySectionIsShownUnderItsTitleAndKeyAlone) {
  const NamedTables tables = {find_table("paper", {}), find_table("random", {})};
  const PositionsReport report = report_of(tables);
  for (const TableSection& section : table_sections()) {
    SCOPED_TRACE(section.name);
    const auto one = sections_of(2, {section.name});
    const std::string text = to_text(report, one, Output());
    for (const TableSection& other : table_sections()) {
      const std::string shown =
          other.title.empty() ? "draws: " + std::string(other.name) : std::string(other.title);
      EXPECT_EQ(text.find(shown + "\n") != text.npos, other.name == section.name);
    }
    Json json = Json::parse(to_json(report, one));
    EXPECT_EQ((section.of_two ? json : json["tables"][1]).count(section.key), 1u);
    EXPECT_EQ(json["tables"][1].size(), section.of_two ? 7u : 8u);
  }
}

TEST(PositionsTest, EverySizeDownToOneIsShownInTheColumnsThereAre) {
  const Output output;
  for (const int64_t width : {1, 2, 3, 7, 130}) {
    for (const int64_t length : {1, 2, 3, 5, 100}) {
      SCOPED_TRACE(testing::Message() << length << " x " << width);
      const NamedTables tables = {find_table("paper", {.length = length, .width = width}),
                                  find_table("random", {.length = length, .width = width})};
      const PositionsReport report = report_of(tables);
      const std::string text = to_text(report, sections_of(2), output);
      for (const std::string& line : phasor::lines_of(text))
        EXPECT_LE(display_width(line), output.width()) << line;
      EXPECT_EQ(text.find("nan"), text.npos) << text;
      EXPECT_EQ(text.find("inf"), text.npos) << text;
      EXPECT_EQ(Json::parse(to_json(report, sections_of(2))).size(), 2u);
    }
  }
}

TEST(PositionsTest, SizesThatATableCannotHaveAreRefused) {
  const auto refused = [](const char* name, const TableSize& size) {
    EXPECT_THROW(find_table(name, size), phasor::InvalidArgument);
  };
  refused("opennmt", {.width = 5});
  refused(PHASOR_SOURCE_DIR "/models/learned", {.length = 129});
  refused(PHASOR_SOURCE_DIR "/models/none", {});
}

}  // namespace
}  // namespace infer
