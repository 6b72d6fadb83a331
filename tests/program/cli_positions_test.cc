// infer positions: tables that equal their formula, numbers that are the library's, and every way
// to ask for what is not there.
#include "infer/positions/claims.h"
#include "tests/program/program.h"
#include "tests/support/family_files.h"

namespace phasor {
namespace {

std::string text_of(const Words& arguments) {
  const ProgramResult result = succeed(Words{"positions"} + arguments);
  EXPECT_EQ(result.err, "");
  return result.out;
}

json json_of(const Words& arguments) {
  const std::vector<json> lines = infer_json(Words{"positions"} + arguments);
  EXPECT_EQ(lines.size(), 1u);
  return lines.at(0);
}

/// The lines of a table in text, word by word.
std::vector<Words> rows_of(const std::string& text) {
  std::vector<Words> lines;
  for (const std::string& line : lines_of(text)) {
    std::istringstream stream(line);
    lines.emplace_back(std::istream_iterator<std::string>(stream),
                       std::istream_iterator<std::string>());
  }
  return lines;
}

TEST(CliPositionsTest, PrintsTheTutorialsFourByFourTable) {
  const auto lines =
      rows_of(text_of({"--length", "4", "--width", "4", "--base", "100", "--only", "values"}));
  const std::vector<Words> want = {{"position", "0", "1", "2", "3"},
                                   {"0", "0.0000", "1.0000", "0.0000", "1.0000"},
                                   {"1", "0.8415", "0.5403", "0.0998", "0.9950"},
                                   {"2", "0.9093", "-0.4161", "0.1987", "0.9801"},
                                   {"3", "0.1411", "-0.9900", "0.2955", "0.9553"}};
  ASSERT_GE(lines.size(), want.size());
  EXPECT_EQ((std::vector(lines.end() - std::ssize(want), lines.end())), want);
}

TEST(CliPositionsTest, AComputedTableTakesTheSizeOfTheOther) {
  for (const Words& tables : {Words{"paper", "learned"}, {"learned", "paper"}}) {
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
  const ProgramResult result = succeed({"positions", file, "learned", "--only", "against"});
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

TEST(CliPositionsTest, ThePageHasEverySectionAndChangesNothingElse) {
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  const Words arguments = {"positions", "paper", "learned", "--only", "map"};
  Words with_page = arguments;
  with_page.insert(with_page.end(), {"--html", file});
  const ProgramResult result = succeed(with_page);
  EXPECT_EQ(result.out, run_infer(arguments).out);
  EXPECT_TRUE(contains(result.err, "note: wrote " + file + " (")) << result.err;

  const json data = data_of_page(file);
  EXPECT_EQ(data["tables"], json_of({"paper", "learned"}));
  EXPECT_TRUE(data["version"].is_string());
}

/// infer positions --claims with these models in place of the bundled ones.
ProgramResult claims_with(const fs::path& models, Words options = {}) {
  Words arguments = {"/usr/bin/env", "PHASOR_MODELS=" + models.string(), INFER_BINARY, "positions",
                     "--claims"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_program(arguments);
}

TEST(CliPositionsTest, ClaimsAreShownSourceBySourceAndAllAsExpected) {
  const std::vector<infer::Claim> claims =
      infer::tutorial_claims({.sinusoidal = Model::load(bundled_model("sinusoidal")),
                              .none = Model::load(bundled_model("none"))});
  const json object = json_of({"--claims"});
  EXPECT_EQ(object["as_expected"], true);
  const std::string text = text_of({"--claims"});
  json want = json::array();
  size_t at = 0, marked[3] = {};
  for (const infer::Claim& claim : claims) {
    want.push_back({{"source", claim.source},
                    {"text", claim.text},
                    {"holds", claim.holds ? json(*claim.holds) : json()},
                    {"computed", claim.computed},
                    {"reason", claim.reason}});
    const int mark = !claim.holds ? 0 : *claim.holds ? 1 : 2;
    ++marked[mark];
    const char* const marks[] = {"≈", "✔", "✘"};
    at = text.find(fmt::format("\n  {} {}", marks[mark], claim.text.substr(0, 12)), at);
    ASSERT_NE(at, std::string::npos) << claim.text;
    EXPECT_LT(text.find(claim.source + "\n"), at);
  }
  ASSERT_EQ(object["claims"].size(), claims.size());
  for (size_t i = 0; i < claims.size(); ++i) {
    for (const auto& [key, value] : want[i].items()) EXPECT_EQ(object["claims"][i][key], value);
  }
  expect_contains(text, {fmt::format("{} claims: {} hold (✔), {} do not (✘)", claims.size(),
                                     marked[1], marked[2])});
  EXPECT_FALSE(contains(text, "\033")) << "colours without a terminal";
}

TEST(CliPositionsTest, AClaimThatComesOutOtherwiseFailsTheCheck) {
  const TempFolder models;
  fs::create_directory_symlink(bundled_model("sinusoidal"), models.path() / "sinusoidal");
  fs::create_directory_symlink(bundled_model("sinusoidal"), models.path() / "none");
  const ProgramResult result = claims_with(models.path());
  EXPECT_EQ(result.exit_code, 1) << result.err;
  expect_contains(result.out, {"! this is not what theory gives", "are not what theory gives (!)"});
  const ProgramResult as_json = claims_with(models.path(), {"--json"});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_EQ(json::parse(as_json.out)["as_expected"], false);
}

TEST(CliPositionsTest, OfARelativeBiasItSaysWhatItIs) {
  const FamilyCase family = t5_case(false);
  const TempFolder folder;
  write_checkpoint(folder, family.config, tensors_of(family));
  expect_infer_fails({"positions", folder.path().string()}, 3,
                     {"no position vectors", "are bias (buckets)", "--only relative"});
}

}  // namespace
}  // namespace phasor
