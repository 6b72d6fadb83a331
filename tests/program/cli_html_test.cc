// infer observe --html and infer compare --html: what the page is given, and what else is printed.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/infer_program.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

using nlohmann::json;

const std::string kSentences = std::string(PHASOR_SOURCE_DIR) + "/examples/sentences.txt";
const std::string kText = "Tom bit a dog.";
const std::string kOther = "The old man gave the boy a book.";

/// Runs infer with --html; the texts on the page. Nothing else may change but for a note.
json texts_on_page(std::vector<std::string> arguments) {
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  const ProgramResult without = run_infer(arguments);
  arguments.insert(arguments.begin() + 1, {"--html", file});
  const ProgramResult result = run_infer(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, without.out);
  EXPECT_NE(result.err.find("note: wrote " + file + " ("), std::string::npos) << result.err;

  const std::string page = read_text_file(file), mark = "id=\"data\">";
  const size_t from = page.find(mark) + mark.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from))["texts"];
}

/// The same but for float32's rounding: a page's texts are run one by one, others in batches, which
/// without AVX-512 moves the last bits.
void expect_same(const json& got, const json& want) {
  const json a = got.flatten(), b = want.flatten();
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [path, value] : b.items()) {
    ASSERT_TRUE(a.contains(path)) << path;
    if (value.is_number_float()) {
      EXPECT_NEAR(a[path].get<double>(), value.get<double>(),
                  1e-5 * (1 + std::abs(value.get<double>())))
          << path;
    } else {
      EXPECT_EQ(a[path], value) << path;
    }
  }
}

TEST(CliHtmlTest, ThePageOfATextHasTheNumbersOfTheJson) {
  const json texts = texts_on_page({"observe", kText, kOther});
  const std::vector<json> observed = infer_json({"observe", "-q", kText, kOther});
  ASSERT_EQ(texts.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(texts[i]["runs"].size(), 1u);
    expect_same(texts[i]["runs"][0]["observed"], observed[i]);
    EXPECT_EQ(texts[i]["runs"][0]["patterns"]["cells"], observed[i]["ids"].size());
  }
}

TEST(CliHtmlTest, AnInterventionHasTwoRunsAndWhatItMoved) {
  const std::vector<std::string> arguments = {"observe", "--cut-residual", "1.attn", kText};
  const json text = texts_on_page(arguments).at(0), object = infer_json(arguments).at(0);
  EXPECT_EQ(text["runs"][0]["label"], "before");
  EXPECT_EQ(text["runs"][0]["observed"], object["before"]);
  EXPECT_EQ(text["runs"][1]["label"], "after");
  EXPECT_EQ(text["runs"][1]["observed"], object["after"]);
  EXPECT_EQ(text["moved"], object["moved"]);
}

TEST(CliHtmlTest, AFileComesAfterTheTexts) {
  const std::vector<std::string> arguments = {"observe", "-i",     kSentences, "--only",
                                              "probe",   "--only", "effect",   kText};
  const json texts = texts_on_page(arguments);
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[1]["runs"][0]["observed"], infer_json(arguments).at(1));
  EXPECT_FALSE(texts[1]["runs"][0].contains("patterns"));
}

TEST(CliHtmlTest, AComparisonHasEveryMeasureOfBothSides) {
  const json texts = texts_on_page({"compare", "--seed", "3", "sinusoidal", "none", kText, kOther});
  ASSERT_EQ(texts.size(), 2u);
  for (size_t side = 0; side < 2; ++side) {
    const std::string model = side == 0 ? "sinusoidal" : "none";
    const std::vector<json> observed =
        infer_json({"observe", "-q", "--seed", "3", "-m", model, kText, kOther});
    for (size_t i = 0; i < 2; ++i) {
      const json& run = texts[i]["runs"][side];
      EXPECT_EQ(run["label"], model);
      expect_same(run["observed"], observed[i]);
      EXPECT_EQ(run.contains("vectors"), model != "none");
    }
  }
}

TEST(CliHtmlTest, TextsBeyondTheMostAreLeftOutWithANote) {
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  std::vector<std::string> arguments = {"observe", "--only", "effect", "--html", file};
  for (int i = 0; i < 20; ++i) arguments.push_back(kText);
  const ProgramResult result = run_infer(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("the first 16 texts, not the other 4"), std::string::npos)
      << result.err;
  arguments.insert(arguments.begin() + 1, "-q");
  EXPECT_EQ(run_infer(arguments).err, "");
}

TEST(CliHtmlTest, WhatIsNoFileIsRefused) {
  expect_infer_fails({"observe", "--html", "-", kText}, 2, {"--html", "'-'", "page.html"});
  expect_infer_fails({"observe", "--html", "", kText}, 2, {"--html", "''", "page.html"});
  expect_infer_fails({"observe", "--html", "/tmp", kText}, 3, {"--html", "/tmp"});
}

TEST(CliHtmlTest, AFullDiskLeavesNoFile) {
  const TempFolder folder;
  const ProgramResult result =
      run_infer({"compare", "-q", "--html", (folder.path() / "page.html").string(), "sinusoidal",
                 "learned", kText},
                {.file_size_limit = 100'000});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace phasor
