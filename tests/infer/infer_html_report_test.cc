// The page of --html: what is in the file, how large it is, and when it is there.
#include <gtest/gtest.h>

#include <cmath>

#include "infer/render/html_report.h"
#include "phasor/errors.h"
#include "tests/support/run_program.h"
#include "tests/support/test_files.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using phasor::read_text_file;

/// A text of so many tokens in a model of 12 layers and 12 heads, 768 wide; each head spreads its
/// attention round the diagonal, more widely than the one before.
Observed observed_text(int64_t tokens) {
  constexpr int64_t kLayers = 12, kHeads = 12, kWidth = 768;
  Observed observed{.model = "made-up", .positions = "sinusoidal (paper)", .precision = "f32"};
  observed.input.text = "made up";
  observed.num_heads = kHeads;
  observed.d_model = kWidth;
  for (int64_t t = 0; t < tokens; ++t) {
    observed.input.token_ids.push_back(static_cast<int32_t>(t));
    observed.input.pieces.push_back("▁word");
    observed.position_ids.push_back(static_cast<float>(t));
    for (int64_t c = 0; c < kWidth; ++c) {
      observed.position_vectors.push_back(std::sin(static_cast<float>(t * (c + 1))));
    }
  }
  observed.layers.resize(kLayers + 1);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    std::vector<float>& pattern = observed.patterns.emplace_back();  // [H, T, T]
    for (int64_t i = 0; i < kHeads * tokens * tokens; ++i) {
      const int64_t head = i / (tokens * tokens);
      const int64_t offset = std::abs(i / tokens % tokens - i % tokens);
      pattern.push_back(std::exp(-static_cast<float>(offset) / static_cast<float>(1 + head)));
    }
  }
  return observed;
}

/// What stands between the page's data marks.
std::string data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

std::string page_of(const Observed& observed) {
  const phasor::TempFolder folder;
  HtmlReport report(folder.path() / "page.html");
  report.add_run(0, "first", observed);
  report.write(true);
  return read_text_file(folder.path() / "page.html");
}

TEST(HtmlReportTest, PageIsTheTemplateWithTheJsonInIt) {
  const Observed observed = observed_text(5);
  const std::string page = page_of(observed), data = data_of(page);
  const auto json = nlohmann::ordered_json::parse(data);
  EXPECT_EQ(json["texts"][0]["runs"][0]["label"], "first");
  EXPECT_EQ(json["texts"][0]["runs"][0]["observed"], to_json(observed));

  std::string built = read_text_file(fs::path(PHASOR_SOURCE_DIR) / "infer/page/report.html");
  EXPECT_EQ(page, built.replace(built.find("REPORT_DATA"), 11, data));
}

TEST(HtmlReportTest, ALargeModelAndASentenceTakeLessThanThreeMegabytes) {
  EXPECT_LT(page_of(observed_text(64)).size(), 3'000'000u);
}

TEST(HtmlReportTest, FiveHundredTokensTakeLessThanTenMegabytes) {
  const auto json = nlohmann::json::parse(data_of(page_of(observed_text(512))));
  EXPECT_EQ(json["texts"][0]["runs"][0]["patterns"]["cells"], 128);
  EXPECT_LT(json.dump().size(), 10'000'000u);
}

/// The bytes that a base64 text stands for.
std::vector<uint8_t> decoded(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0, count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> count));
  }
  return bytes;
}

TEST(HtmlReportTest, EightBitsKeepEveryWeightToOnePart250) {
  const Observed observed = observed_text(7);
  const auto json = nlohmann::json::parse(data_of(page_of(observed)));
  const auto bytes = decoded(json["texts"][0]["runs"][0]["patterns"]["values"]);
  const size_t size = observed.patterns[0].size();
  ASSERT_EQ(bytes.size(), observed.patterns.size() * size);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_NEAR(std::pow(bytes[i] / 255.0, 2), observed.patterns[i / size][i % size], 0.004);
  }
}

TEST(HtmlReportTest, ALongTextIsShownAsMeansOfBlocks) {
  Observed observed = observed_text(200);
  for (auto& layer : observed.patterns) std::fill(layer.begin(), layer.end(), 0.25f);
  const auto json = nlohmann::json::parse(data_of(page_of(observed)));
  const auto bytes = decoded(json["texts"][0]["runs"][0]["patterns"]["values"]);
  ASSERT_EQ(bytes.size(), 12u * 12 * 128 * 128);
  for (const uint8_t byte : bytes) ASSERT_EQ(byte, 128);  // √0.25 · 255, rounded
}

TEST(HtmlReportTest, PositionVectorsComeBackBitForBit) {
  const Observed observed = observed_text(3);
  const auto json = nlohmann::json::parse(data_of(page_of(observed)));
  const auto bytes = decoded(json["texts"][0]["runs"][0]["vectors"]["values"]);
  const auto want = std::as_bytes(std::span(observed.position_vectors));
  ASSERT_EQ(bytes.size(), want.size());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), want.begin(),
                         [](uint8_t a, std::byte b) { return a == std::to_integer<uint8_t>(b); }));
}

TEST(HtmlReportTest, NoTextEndsTheScriptItStandsIn) {
  Observed observed = observed_text(2);
  observed.input.text = "</script><!--<b> \"\\ مرحبا 👋🏽 \xff";
  observed.input.pieces = {"<", "</script>"};
  const std::string data = data_of(page_of(observed));
  EXPECT_EQ(data.find('<'), std::string::npos);
  const auto json = nlohmann::json::parse(data)["texts"][0]["runs"][0]["observed"];
  EXPECT_EQ(json["text"], "</script><!--<b> \"\\ مرحبا 👋🏽 \uFFFD");
  EXPECT_EQ(json["pieces"][1], "</script>");
}

TEST(HtmlReportTest, TheFileIsAsItWasUntilThePageIsWhole) {
  const phasor::TempFolder folder;
  const fs::path file = folder.write("page.html", "before");
  {
    HtmlReport report(file);
    report.add_run(0, "", observed_text(2));
    EXPECT_EQ(read_text_file(file), "before");
  }
  EXPECT_EQ(read_text_file(file), "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(HtmlReportTest, WhereNothingCanBeWrittenItSaysSoAtOnce) {
  try {
    HtmlReport report("/nowhere/page.html");
    FAIL() << "it must throw";
  } catch (const phasor::InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "--html: cannot write /nowhere/page.html: No such file or directory");
  }
}

TEST(HtmlReportTest, TextsBeyondTheMostAreLeftOut) {
  const phasor::TempFolder folder;
  HtmlReport report(folder.path() / "page.html");
  const Observed observed = observed_text(1);
  for (size_t i = 0; i < HtmlReport::kMostTexts + 3; ++i) report.add_run(i, "", observed);
  report.write(true);
  const auto json = nlohmann::json::parse(data_of(read_text_file(folder.path() / "page.html")));
  EXPECT_EQ(json["texts"].size(), HtmlReport::kMostTexts);
}

}  // namespace
}  // namespace infer
