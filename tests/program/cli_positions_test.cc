// infer positions: tables that equal their formula, numbers that are the library's, and every way
// to ask for what is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <set>
#include <sstream>

#include "infer/experiment/claims.h"
#include "phasor/lens/table.h"
#include "phasor/phasor.h"
#include "phasor/safetensors.h"
#include "tests/support/family_files.h"
#include "tests/support/infer_program.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string text_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "positions");
  const ProgramResult result = run_infer(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

json json_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "positions");
  const std::vector<json> lines = infer_json(arguments);
  EXPECT_EQ(lines.size(), 1u);
  return lines.at(0);
}

/// The lines of a table in text, word by word.
std::vector<std::vector<std::string>> words_of(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string& line : lines_of(text)) {
    std::istringstream stream(line);
    lines.emplace_back(std::istream_iterator<std::string>(stream),
                       std::istream_iterator<std::string>());
  }
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CliPositionsTest, PrintsTheTutorialsFourByFourTable) {
  const auto lines =
      words_of(text_of({"--length", "4", "--width", "4", "--base", "100", "--only", "values"}));
  const std::vector<std::vector<std::string>> want = {
      {"position", "0", "1", "2", "3"},
      {"0", "0.0000", "1.0000", "0.0000", "1.0000"},
      {"1", "0.8415", "0.5403", "0.0998", "0.9950"},
      {"2", "0.9093", "-0.4161", "0.1987", "0.9801"},
      {"3", "0.1411", "-0.9900", "0.2955", "0.9553"}};
  ASSERT_GE(lines.size(), want.size());
  EXPECT_EQ((std::vector(lines.end() - std::ssize(want), lines.end())), want);
}

TEST(CliPositionsTest, ValuesOfEveryLayoutAreTheFormulas) {
  for (const auto layout :
       {SinusoidalLayout::kPaper, SinusoidalLayout::kMarian, SinusoidalLayout::kT2T,
        SinusoidalLayout::kFairseq, SinusoidalLayout::kOpenNmt}) {
    const std::string name(to_string(layout));
    SCOPED_TRACE(name);
    const json table = json_of({"--layout", name, "--length", "9", "--width", "6", "--base", "50",
                                "--only", "values"})["tables"][0];
    const int64_t first = name == "fairseq" ? 2 : name == "opennmt" ? 1 : 0;
    EXPECT_EQ(table["layout"], name);
    EXPECT_EQ(table["first_position"], first);
    ASSERT_EQ(table["values"].size(), 9u);
    std::vector<double> row(6);
    for (int64_t p = 0; p < 9; ++p) {
      sinusoidal_row(layout, 50, static_cast<double>(first + p), 6, row.data());
      EXPECT_EQ(table["values"][p], row);
    }
    EXPECT_EQ(json_of({name, "--length", "9", "--width", "6", "--base", "50", "--only",
                       "values"})["tables"][0],
              table);
  }
}

TEST(CliPositionsTest, CsvHoldsAllDigits) {
  const auto lines = lines_of(text_of({"--csv", "--length", "3", "--width", "3"}));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "position,0,1,2");
  const std::vector<double> table = sinusoidal_table(SinusoidalLayout::kPaper, 3, 3);
  for (int64_t p = 0; p < 3; ++p) {
    std::istringstream line(lines[p + 1]);
    std::string cell;
    std::getline(line, cell, ',');
    EXPECT_EQ(cell, std::to_string(p));
    for (int64_t c = 0; c < 3; ++c) {
      ASSERT_TRUE(std::getline(line, cell, ','));
      EXPECT_EQ(std::stod(cell), table[3 * p + c]);
    }
  }
}

TEST(CliPositionsTest, PropertiesAreTheLibrarys) {
  const json properties = json_of({"--length", "40", "--width", "16"})["tables"][0]["properties"];
  const std::vector<double> table = sinusoidal_table(SinusoidalLayout::kPaper, 40, 16);
  const auto expect = [&](const char* key, double value) {
    EXPECT_EQ(properties.at(key).at("value"), value) << key;
    EXPECT_TRUE(properties.at(key).at("random").is_number()) << key;
  };
  expect("toeplitz_r2", toeplitz_r2(table, 16));
  expect("locality", position_locality(table, 16));
  expect("symmetry", position_symmetry(table, 16));
  expect("stable_rank", stable_rank(table, 16));
  expect("nearest_rows", nearest_rows(table, 16).distance);
  expect("nearest_offset", static_cast<double>(nearest_rows(table, 16).offset));
  expect("first_rise", static_cast<double>(*first_rise(table, 16)));
  expect("linear_shift", linear_shift(table, 16, 1).held_out);
  expect("unmoved", linear_shift(table, 16, 1).unmoved);
  const auto share = principal_plane(table, 16).share;
  expect("plane_share", share[0] + share[1]);
  EXPECT_NEAR(properties["mean_norm"]["value"], std::sqrt(8.0), 1e-12);
  EXPECT_NEAR(properties["norm_ratio"]["value"], 1, 1e-12);
  EXPECT_NEAR(properties["toeplitz_r2"]["value"], 1, 1e-12);
  EXPECT_LT(properties["toeplitz_r2"]["random"], 0.5);
}

TEST(CliPositionsTest, WavelengthsEndBeforeTwoPiBaseButForTensor2tensor) {
  const auto longest = [](const char* layout) {
    return json_of({layout, "--width", "512", "--length", "2", "--only",
                    "properties"})["tables"][0]["properties"]["longest_wavelength"]["value"]
        .get<double>();
  };
  EXPECT_NEAR(longest("paper"), 60611.5, 0.1);
  EXPECT_NEAR(longest("t2t"), 2 * std::numbers::pi * 10000, 1e-6);
}

TEST(CliPositionsTest, ModelsShowWhatTheyAdd) {
  for (const std::string name : {"learned", "sinusoidal"}) {
    Encoder encoder(Model::load(bundled_model(name)));
    const std::vector<float> vectors = encoder.model().position_vectors(128);
    const json table = json_of({"-m", name, "--only", "values"})["tables"][0];
    EXPECT_EQ(table["kind"], name);
    ASSERT_EQ(table["length"], 128);
    ASSERT_EQ(table["width"], 128);
    for (int64_t p = 0; p < 128; ++p) {
      for (int64_t c = 0; c < 128; ++c) {
        ASSERT_EQ(table["values"][p][c], static_cast<double>(vectors[p * 128 + c]));
      }
    }
  }
}

TEST(CliPositionsTest, ClockHandsTurnWithTheFrequencyOfTheirPair) {
  for (const char* layout : {"paper", "marian", "t2t"}) {
    const json table =
        json_of({layout, "--length", "30", "--width", "8", "--only", "clock,curves"})["tables"][0];
    ASSERT_EQ(table["pairs"].size(), 4u);
    for (size_t p = 0; p < 30; ++p) {
      for (size_t k = 0; k < 4; ++k) {
        const double turned = table["pairs"][k]["frequency"].get<double>() * static_cast<double>(p);
        const double angle = table["angles"][p][k];
        EXPECT_NEAR(std::remainder(angle - turned, 2 * std::numbers::pi), 0, 1e-9);
        EXPECT_GE(angle, 0);
        EXPECT_LT(angle, 2 * std::numbers::pi);
      }
    }
  }
}

TEST(CliPositionsTest, ATableAgainstItselfIsEqual) {
  const json against = json_of({"learned", "learned", "--only", "against"})["against"];
  EXPECT_NEAR(against["linear_cka"]["value"], 1, 1e-9);
  EXPECT_NEAR(against["procrustes"]["value"], 0, 1e-9);
  EXPECT_LT(against["linear_cka"]["random"], 0.5);
}

TEST(CliPositionsTest, AComputedTableTakesTheSizeOfTheOther) {
  for (const std::vector<std::string>& tables :
       {std::vector<std::string>{"paper", "learned"}, {"learned", "paper"}}) {
    const json page = json_of({tables[0], tables[1], "--only", "properties,against"});
    ASSERT_EQ(page["tables"].size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(page["tables"][i]["name"], tables[i]);
      EXPECT_EQ(page["tables"][i]["length"], 128);
      EXPECT_EQ(page["tables"][i]["width"], 128);
    }
    const auto cka = page["against"]["linear_cka"]["value"].get<double>();
    EXPECT_GT(cka, page["against"]["linear_cka"]["random"]);
    EXPECT_LT(cka, 1);
  }
}

TEST(CliPositionsTest, TheLongerOfTwoTablesIsCutAndSaysSo) {
  const TempFolder folder;
  const std::string file = (folder.path() / "a.npy").string();
  text_of({"--length", "20", "--width", "8", "--save", file});
  const ProgramResult result = run_infer({"positions", file, "learned", "--only", "against"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "note: learned: the first 20 of 128 positions")) << result.err;
}

TEST(CliPositionsTest, ASavedTableIsTheSameTable) {
  const TempFolder folder;
  const json saved = json_of({"learned", "--only", "values"})["tables"][0];
  for (const char* name : {"t.npy", "t.npz", "t.safetensors"}) {
    const std::string file = (folder.path() / name).string();
    text_of({"learned", "--only", "values", "--save", file});
    const json table = json_of({"--table", file, "--only", "values"})["tables"][0];
    EXPECT_EQ(table["values"], saved["values"]) << name;
    EXPECT_EQ(table["kind"], "file");
    EXPECT_EQ(table["name"], name);
  }
  const auto file = SafetensorsFile::open(folder.path() / "t.safetensors");
  EXPECT_EQ(file->metadata().at("first_position"), "0");
}

TEST(CliPositionsTest, OnlyTheSectionsAskedForAreShown) {
  const std::vector<std::string> titles = {"Values", "Image", "Curves",    "Distances",
                                           "Clock",  "Map:",  "Properties"};
  const std::string all = text_of({});
  for (const std::string& title : titles) EXPECT_TRUE(contains(all, "\n" + title)) << title;
  const std::string some = text_of({"--only", "values,map", "--only", "clock"});
  for (const std::string& title : titles) {
    const bool asked = title == "Values" || title == "Map:" || title == "Clock";
    EXPECT_EQ(contains(some, "\n" + title), asked) << title;
  }
}

TEST(CliPositionsTest, EverySizeDownToOneIsShownIn100Columns) {
  for (const char* width : {"1", "2", "3", "7", "300"}) {
    for (const char* length : {"1", "2", "3", "5", "200"}) {
      SCOPED_TRACE(std::string(length) + " x " + width);
      const std::string text = text_of({"--length", length, "--width", width});
      for (const std::string& line : lines_of(text)) {
        const auto columns = std::ranges::count_if(
            line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
        EXPECT_LE(columns, 100) << line;
      }
      EXPECT_FALSE(contains(text, "nan")) << text;
      EXPECT_FALSE(contains(text, "inf")) << text;
      json_of({"--length", length, "--width", width});
    }
  }
}

TEST(CliPositionsTest, FiguresAreWrittenAndNamed) {
  const TempFolder folder;
  const fs::path figures = folder.path() / "new" / "figures";
  const ProgramResult result =
      run_infer({"positions", "--length", "6", "--width", "4", "--svg", figures.string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(figures)) {
    names.insert(entry.path().filename().string());
    EXPECT_TRUE(contains(result.err, "wrote " + entry.path().string())) << result.err;
  }
  EXPECT_EQ(names, (std::set<std::string>{"clock.svg", "curves.svg", "distances.svg", "image.svg",
                                          "map.svg", "offsets.svg", "rows.svg"}));
  // Few cells are rectangles that carry their numbers.
  const std::string image = read_text_file(figures / "image.svg");
  const std::vector<double> table = sinusoidal_table(SinusoidalLayout::kPaper, 6, 4);
  for (int64_t i = 0; i < 24; ++i) {
    std::ostringstream cell;
    cell << "<title>" << i / 4 << ", " << i % 4 << ": " << table[i] << "</title>";
    EXPECT_TRUE(contains(image, cell.str())) << cell.str();
  }
}

TEST(CliPositionsTest, OnAFullDiskNoHalfFigureStays) {
  const TempFolder folder;
  expect_infer_fails({"positions", "--only", "image", "--svg", folder.path().string()}, 3,
                     {"--svg", "image.svg", "File too large"}, {.file_size_limit = 1000});
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(CliPositionsTest, ALongTableIsCutUnlessItsLengthIsAskedFor) {
  const TempFolder folder;
  const std::string file = (folder.path() / "long.npy").string();
  text_of({"--length", "600", "--width", "2", "--only", "values", "--save", file});
  EXPECT_TRUE(contains(text_of({file, "--only", "values"}), "512 positions × 2 columns"));
  EXPECT_TRUE(contains(text_of({file, "--only", "values"}), ", the first 512 of 600\n"));
  const json all = json_of({file, "--only", "values", "--length", "600"})["tables"][0];
  EXPECT_EQ(all["length"], 600);
  ASSERT_EQ(all["values"].size(), 600u);
  EXPECT_EQ(all["values"][599][0], static_cast<double>(static_cast<float>(std::sin(599.0))));
}

TEST(CliPositionsTest, FiguresOfTwoTablesHaveNamesOfTheirOwnAndTheSameBytesEachTime) {
  const TempFolder folder;
  std::vector<std::string> bytes[2];
  for (auto& run : bytes) {
    const fs::path figures = folder.path() / "f";
    text_of({"paper", "learned", "-q", "--only", "image,properties", "--svg", figures.string()});
    for (const char* name : {"1-paper-image.svg", "2-learned-image.svg", "offsets.svg"}) {
      run.push_back(read_text_file(figures / name));
      EXPECT_TRUE(run.back().ends_with("</svg>\n")) << name;
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(figures), {}), 3);
  }
  EXPECT_TRUE(bytes[0] == bytes[1]);
}

/// infer positions --claims with these models in place of the bundled ones.
ProgramResult claims_with(const fs::path& models, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments = {"/usr/bin/env", "PHASOR_MODELS=" + models.string(),
                                        INFER_BINARY, "positions", "--claims"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_program(arguments);
}

TEST(CliPositionsTest, ClaimsAreShownSourceBySourceAndAllAsExpected) {
  const std::vector<infer::Claim> claims =
      infer::tutorial_claims({.sinusoidal = Model::load(bundled_model("sinusoidal")),
                              .learned = Model::load(bundled_model("learned")),
                              .none = Model::load(bundled_model("none"))});
  const json object = json_of({"--claims"});
  EXPECT_EQ(object["as_expected"], true);
  ASSERT_EQ(object["claims"].size(), claims.size());
  const std::string text = text_of({"--claims"});
  size_t at = 0, right = 0, wrong = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    const json& shown = object["claims"][i];
    EXPECT_EQ(shown["source"], claims[i].source);
    EXPECT_EQ(shown["text"], claims[i].text);
    EXPECT_EQ(shown["computed"], claims[i].computed);
    EXPECT_EQ(shown["reason"], claims[i].reason);
    EXPECT_EQ(shown["holds"], claims[i].holds ? json(*claims[i].holds) : json());
    if (i == 0 || claims[i].source != claims[i - 1].source) {
      at = text.find(claims[i].source + "\n", at);
      ASSERT_NE(at, std::string::npos) << claims[i].source;
    }
    const std::string mark = !claims[i].holds ? "≈" : *claims[i].holds ? "✔" : "✘";
    at = text.find("\n  " + mark + " " + claims[i].text.substr(0, 12), at);
    ASSERT_NE(at, std::string::npos) << mark << " " << claims[i].text;
    right += claims[i].holds == true ? 1 : 0;
    wrong += claims[i].holds == false ? 1 : 0;
  }
  EXPECT_TRUE(contains(text, std::to_string(claims.size()) + " claims: " + std::to_string(right) +
                                 " hold (✔), " + std::to_string(wrong) + " do not (✘)"))
      << text;
  EXPECT_FALSE(contains(text, "\033")) << "colours without a terminal";
}

TEST(CliPositionsTest, AClaimThatComesOutOtherwiseFailsTheCheck) {
  const TempFolder models;
  fs::create_directory_symlink(bundled_model("sinusoidal"), models.path() / "sinusoidal");
  fs::create_directory_symlink(bundled_model("learned"), models.path() / "learned");
  fs::create_directory_symlink(bundled_model("sinusoidal"), models.path() / "none");
  const ProgramResult result = claims_with(models.path());
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_TRUE(contains(result.out, "! this is not what theory gives")) << result.out;
  EXPECT_TRUE(contains(result.out, "are not what theory gives (!)")) << result.out;
  const ProgramResult as_json = claims_with(models.path(), {"--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_EQ(json::parse(as_json.out)["as_expected"], false);
}

TEST(CliPositionsTest, WhatCannotBeShownIsSaidInOneLine) {
  const TempFolder folder;
  const auto fails = [](std::vector<std::string> arguments, int exit_code,
                        const std::vector<std::string>& words) {
    arguments.insert(arguments.begin(), "positions");
    expect_infer_fails(arguments, exit_code, words);
  };
  fails({"--layout", "foo"}, 2, {"--layout", "foo", "paper, marian, t2t, fairseq, opennmt"});
  fails({"--kind", "learned"}, 2, {"--kind", "learned", "name its model"});
  fails({"--kind", "random", "--layout", "paper"}, 2, {"--layout"});
  fails({"random", "--base", "10"}, 2, {"--base", "random"});
  fails({"--layout", "opennmt", "--width", "5"}, 3, {"opennmt", "even", "5"});
  fails({"--base", "1"}, 3, {"--base", "1", "above 1"});
  fails({"--base", "nan"}, 3, {"--base", "nan"});
  fails({"--base", "inf"}, 3, {"--base", "inf"});
  fails({"--length", "0"}, 3, {"--length", "0", "4096"});
  fails({"--width", "-1"}, 3, {"--width", "-1", "4096"});
  fails({"--length", "4097"}, 3, {"--length", "4097"});
  fails({"--length", "many"}, 2, {"--length", "many"});
  fails({"-m", "none"}, 3, {"none", "no positions"});
  fails({"-m", "missing"}, 4, {"missing"});
  fails({"learned", "--length", "129"}, 3, {"--length", "129", "128"});
  fails({"learned", "--width", "4"}, 2, {"--width", "own"});
  fails({"learned", "--base", "4"}, 2, {"--base", "own"});
  fails({"--table", "missing.npy"}, 3, {"missing.npy"});
  fails({"paper", "marian", "t2t"}, 2, {"3 tables", "paper, marian, t2t"});
  fails({"--claims", "learned"}, 2, {"--claims", "--json"});
  fails({"--claims", "--csv"}, 2, {"--claims", "--json"});
  fails({"--only", "foo"}, 2, {"foo", "values", "against"});
  fails({"--only", "against"}, 2, {"two tables"});
  fails({"--csv", "--json"}, 2, {"--csv", "--json"});
  fails({"paper", "marian", "--csv"}, 2, {"--csv", "one table"});
  fails({"--save", "t.txt"}, 2, {"t.txt", ".npz"});
  const std::string file = folder.write("file", "").string();
  fails({"--svg", file}, 3, {"--svg", file});
  fails({"--save", (folder.path() / "none" / "t.npy").string()}, 3, {"No such file"});
}

TEST(CliPositionsTest, OfARelativeBiasItSaysWhatItIs) {
  const FamilyCase family = t5_case(false);
  const auto model = random_model(family.meaning, 5, family.extras);
  const TempFolder folder;
  folder.write("config.json", family.config.dump());
  folder.write("model.safetensors", safetensors_bytes(tensors_of(family, *model)));
  expect_infer_fails({"positions", "-m", folder.path().string()}, 3,
                     {"no position vectors", "bias on the attention scores",
                      std::to_string(family.meaning.position.num_buckets) + " buckets"});
}

}  // namespace
}  // namespace phasor
