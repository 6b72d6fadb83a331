// infer positions: tables that equal their formula, numbers that are the library's, and every way
// to ask for what is not there.
#include "tests/program/program.h"
#include "tests/support/family_files.h"

namespace phasor {
namespace {

TEST(CliPositionsTest, AComputedTableTakesTheSizeOfTheOther) {
  expect_json({{"positions paper learned --only properties,against",
                R"({"tables": [{"name": "paper", "length": 128, "width": 128},
                               {"name": "learned", "length": 128, "width": 128}]})"},
               {"positions learned paper --only properties",
                R"({"tables": [{"name": "learned", "length": 128, "width": 128},
                               {"name": "paper", "length": 128, "width": 128}]})"}});
  const json cka = json_of("positions paper learned --only against")["against"]["linear_cka"];
  EXPECT_GT(cka["value"], cka["random"]);
  EXPECT_LT(cka["value"], 1);
}

TEST(CliPositionsTest, ASavedTableIsTheSameTable) {
  const TempFolder folder;
  const json saved = json_of("positions learned --only values")["tables"][0];
  for (const std::string name : {"t.npy", "t.safetensors"}) {
    const std::string file = (folder.path() / name).string();
    printed("positions learned --only values --save " + file);
    const json table = json_of("positions --only values " + file)["tables"][0];
    EXPECT_EQ(table["values"], saved["values"]) << name;
    EXPECT_EQ(table["kind"], "file");
    EXPECT_EQ(table["name"], name);
  }
  const auto file = SafetensorsFile::open(folder.path() / "t.safetensors");
  EXPECT_EQ(file->metadata().at("first_position"), "0");
  // The longer of two is cut, and it says so.
  const std::string shorter = (folder.path() / "a.npy").string();
  printed("positions --length 20 --width 8 --save " + shorter);
  expect_noted({{"positions learned --only against " + shorter,
                 {"note: learned: the first 20 of 128 positions"}}});
}

TEST(CliPositionsTest, ThePageHasEverySectionAndChangesNothingElse) {
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  const std::string line = "positions paper learned --only map";
  expect_alike({{line, line + " --html " + file}});
  expect_noted({{line + " --html " + file, {"note: wrote " + file + " ("}}});
  const json data = data_of_page(file);
  EXPECT_EQ(data["tables"], json_of("positions paper learned"));
  EXPECT_TRUE(data["version"].is_string());
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
