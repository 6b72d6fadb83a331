// infer positions: tables that equal their formula, numbers that are the library's, and every way
// to ask for what is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <set>
#include <sstream>

#include "infer/positions/claims.h"
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
  for (const char* name : {"t.npy", "t.safetensors"}) {
    const std::string file = (folder.path() / name).string();
    text_of({"learned", "--only", "values", "--save", file});
    const json table = json_of({file, "--only", "values"})["tables"][0];
    EXPECT_EQ(table["values"], saved["values"]) << name;
    EXPECT_EQ(table["kind"], "file");
    EXPECT_EQ(table["name"], name);
  }
  const auto file = SafetensorsFile::open(folder.path() / "t.safetensors");
  EXPECT_EQ(file->metadata().at("first_position"), "0");
}

TEST(CliPositionsTest, OnlyTheSectionsAskedForAreShown) {
  const std::string all = text_of({}), one = text_of({"--only", "values"});
  EXPECT_EQ(text_of({"--only", "all"}), all);
  const std::string two = text_of({"--only", "properties,map", "--only", "clock"});
  for (const std::string title : {"Values", "Image", "Properties"}) {
    EXPECT_TRUE(contains(all, "\n" + title)) << title;
    EXPECT_EQ(contains(one, "\n" + title), title == "Values");
    EXPECT_EQ(contains(two, "\n" + title), title == "Properties");
  }
  EXPECT_TRUE(all.ends_with("\n\n--html FILE draws: curves, distances, clock, map\n")) << all;
  EXPECT_FALSE(contains(one, "--html"));
  EXPECT_TRUE(two.ends_with("\n\n--html FILE draws: clock, map\n")) << two;
}

TEST(CliPositionsTest, ThePageHasEverySectionAndChangesNothingElse) {
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  const std::vector<std::string> arguments = {"positions", "paper", "learned", "--only", "map"};
  std::vector<std::string> with_page = arguments;
  with_page.insert(with_page.end(), {"--html", file});
  const ProgramResult result = run_infer(with_page);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run_infer(arguments).out);
  EXPECT_TRUE(contains(result.err, "note: wrote " + file + " (")) << result.err;

  const std::string page = read_text_file(file), mark = "id=\"data\">";
  const size_t from = page.find(mark) + mark.size();
  const json data = json::parse(page.substr(from, page.find("</script>", from) - from));
  EXPECT_EQ(data["tables"], json_of({"paper", "learned"}));
  EXPECT_TRUE(data["version"].is_string());
}

TEST(CliPositionsTest, OnAFullDiskNoHalfPageStays) {
  const TempFolder folder;
  expect_infer_fails({"positions", "--html", (folder.path() / "page.html").string()}, 3,
                     {"--html", "page.html", "File too large"}, {.file_size_limit = 100'000});
  EXPECT_TRUE(fs::is_empty(folder.path()));
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
  fails({"papr"}, 2, {"no table 'papr'", "did you mean paper?"});
  fails({"random", "--base", "10"}, 2, {"--base", "random"});
  fails({"opennmt", "--width", "5"}, 3, {"opennmt", "even", "5"});
  fails({"--base", "1"}, 3, {"--base", "1", "above 1"});
  fails({"--base", "nan"}, 2, {"--base", "nan"});
  fails({"--base", "inf"}, 3, {"--base", "inf"});
  fails({"--length", "0"}, 3, {"--length", "0", "4096"});
  fails({"--width", "-1"}, 3, {"--width", "-1", "4096"});
  fails({"--length", "4097"}, 3, {"--length", "4097"});
  fails({"--length", "many"}, 2, {"--length", "many"});
  fails({"none"}, 3, {"none", "no positions"});
  fails({"missing"}, 4, {"missing"});
  fails({"learned", "--length", "129"}, 3, {"--length", "129", "128"});
  fails({"learned", "--width", "4"}, 2, {"--width", "own"});
  fails({"learned", "--base", "4"}, 2, {"--base", "own"});
  fails({"missing.npy"}, 3, {"missing.npy", "no such file"});
  fails({folder.write("t.npz", "PK").string()}, 3, {"t.npz", ".npy nor .safetensors"});
  fails({"paper", "marian", "t2t"}, 2, {"3 tables", "paper, marian, t2t"});
  fails({"--claims", "learned"}, 2, {"--claims", "--json"});
  fails({"--claims", "--csv"}, 2, {"--claims", "--json"});
  fails({"--only", "foo"}, 2, {"foo", "values", "against"});
  fails({"--only", "against"}, 2, {"two tables"});
  fails({"--csv", "--json"}, 2, {"--csv", "--json"});
  fails({"paper", "marian", "--csv"}, 2, {"--csv", "one table"});
  fails({"--save", "t.txt"}, 2, {"t.txt", ".npy or .safetensors"});
  fails({"--html", "-"}, 2, {"--html", "'-'", "page.html"});
  fails({"--save", (folder.path() / "none" / "t.npy").string()}, 3, {"No such file"});
}

TEST(CliPositionsTest, OfARelativeBiasItSaysWhatItIs) {
  const FamilyCase family = t5_case(false);
  const auto model = random_model(family.meaning, 5, family.extras);
  const TempFolder folder;
  folder.write("config.json", family.config.dump());
  folder.write("model.safetensors", safetensors_bytes(tensors_of(family, *model)));
  expect_infer_fails({"positions", folder.path().string()}, 3,
                     {"no position vectors", "are bias (buckets)", "--only relative"});
}

}  // namespace
}  // namespace phasor
