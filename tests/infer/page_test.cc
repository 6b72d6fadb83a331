// The page of --html: what is in the file, how large it is, and when it is there.
#include <nlohmann/json.hpp>

#include "infer/render/report.h"
#include "tests/support/run_program.h"
#include "tests/support/test.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using phasor::read_text_file;
using Json = nlohmann::ordered_json;

/// A text of so many tokens in a model of 12 layers and 12 heads, 768 wide; each head spreads its
/// attention round the diagonal, more widely than the one before.
Observed observed_text(int64_t tokens) {
  constexpr int64_t kLayers = 12, kHeads = 12, kWidth = 768;
  Observed observed{.model = "made-up", .positions = "sinusoidal (paper)", .precision = "f32"};
  observed.text = "made up";
  observed.num_tokens = tokens;
  observed.num_heads = kHeads;
  observed.d_model = kWidth;
  for (int64_t t = 0; t < tokens; ++t) {
    observed.tokens.ids.push_back(static_cast<int32_t>(t));
    observed.tokens.pieces.push_back("▁word");
    observed.position_ids.push_back(static_cast<float>(t));
    for (int64_t c = 0; c < kWidth; ++c) {
      observed.position_vectors.push_back(std::sin(static_cast<float>(t * (c + 1))));
    }
  }
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    std::vector<float>& pattern = observed.patterns.emplace_back();  // [H, T, T]
    for (int64_t i = 0; i < kHeads * tokens * tokens; ++i) {
      const int64_t head = i / (tokens * tokens);
      const int64_t offset = std::abs(i / tokens % tokens - i % tokens);
      pattern.push_back(std::exp(-static_cast<float>(offset) / static_cast<float>(1 + head)));
    }
    observed.heads.push_back(phasor::head_profiles(pattern, kHeads, tokens));
    phasor::internal::add_row(observed, "norm", {.layer = layer, .cells = {1}});
  }
  return observed;
}

/// What stands between the page's data marks.
std::string data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

std::string page_of(std::span<const Observed> runs, size_t texts = 1) {
  const phasor::TempFolder folder;
  CommonOptions common;
  common.quiet = true;
  ViewOptions options;
  options.html = folder.path() / "page.html";
  const Shown shown;
  Report report(common, options, shown);
  for (size_t i = 0; i < texts; ++i) report.add_to_page(runs);
  report.finish();
  return read_text_file(folder.path() / "page.html");
}

/// The page's only run.
Json run_of(const Observed& observed) {
  return Json::parse(data_of(page_of({&observed, 1})))["texts"][0];
}

TEST(PageTest, PageIsTheTemplateWithTheJsonInIt) {
  std::vector<Observed> runs = {observed_text(5), observed_text(5)};
  runs[1].label = "after";
  runs[1].position_vectors.clear();
  const std::string page = page_of(runs), data = data_of(page);
  const Json json = Json::parse(data);
  EXPECT_EQ(json["version"], PHASOR_VERSION);
  EXPECT_EQ(json["views"], Json::parse(lens::views_json()));
  EXPECT_EQ(json["texts"][0], Json::parse(lens::to_json(runs, true)));
  for (size_t i = 0; i < 2; ++i) {
    Json run = json["texts"][0]["runs"][i];
    EXPECT_EQ(run.erase("patterns") + run.erase("profiles"), 2u);
    EXPECT_EQ(run.erase("vectors"), i == 0 ? 1u : 0u);
    Json alone = Json::parse(lens::to_json({&runs[i], 1}));
    EXPECT_EQ(alone.erase("conclusions"), 1u) << "what both tell stands beside them";
    EXPECT_EQ(run, alone);
  }
  std::string built = read_text_file(fs::path(PHASOR_SOURCE_DIR) / "infer/page/report.html");
  EXPECT_EQ(page, built.replace(built.find("REPORT_DATA"), 11, data));
}

TEST(PageTest, ALargeModelAndALongTextAreAFewMegabytes) {
  const Observed sentence = observed_text(64), page = observed_text(200), text = observed_text(512);
  EXPECT_LT(page_of({&sentence, 1}).size(), 2'000'000u);
  EXPECT_LT(page_of({&page, 1}).size(), 4'000'000u);
  EXPECT_LT(page_of({&text, 1}).size(), 6'000'000u);
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

TEST(PageTest, EightBitsKeepEveryWeightToOnePart250) {
  const Observed observed = observed_text(7);
  const auto bytes = decoded(run_of(observed)["patterns"]["values"]);
  const size_t size = observed.patterns[0].size();
  ASSERT_EQ(bytes.size(), observed.patterns.size() * size);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_NEAR(std::pow(bytes[i] / 255.0, 2), observed.patterns[i / size][i % size], 0.004);
  }
}

TEST(PageTest, ALongTextIsShownAsMeansOfBlocks) {
  Observed observed = observed_text(200);
  for (auto& layer : observed.patterns) std::fill(layer.begin(), layer.end(), 0.25f);
  const Json patterns = run_of(observed)["patterns"];
  EXPECT_EQ(patterns["cells"], 102);  // 102² weights of 144 heads are less than 1.5 million
  const auto bytes = decoded(patterns["values"]);
  ASSERT_EQ(bytes.size(), 12u * 12 * 102 * 102);
  for (const uint8_t byte : bytes) ASSERT_EQ(byte, 128);  // √0.25 · 255, rounded
}

std::vector<float> floats(const std::string& text) {
  const std::vector<uint8_t> bytes = decoded(text);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

TEST(PageTest, PositionVectorsComeBackBitForBit) {
  const Observed observed = observed_text(3);
  const Json vectors = run_of(observed)["vectors"];
  EXPECT_EQ(vectors["columns"], 768);
  EXPECT_EQ(floats(vectors["values"]), observed.position_vectors);
}

TEST(PageTest, ProfilesAreWeightsByOffset) {
  for (const int64_t tokens : {1, 5, 50}) {
    const Observed observed = observed_text(tokens);
    const Json profiles = run_of(observed)["profiles"];
    const int64_t farthest = std::min<int64_t>(tokens - 1, 32), width = 2 * farthest + 1;
    EXPECT_EQ(profiles["offsets"], farthest);
    const std::vector<float> values = floats(profiles["values"]);
    ASSERT_EQ(std::ssize(values), 12 * 12 * width);
    for (int64_t head = 0; head < 144; ++head) {
      const phasor::HeadProfile& want = observed.heads[head / 12][head % 12];
      const float* const self = &values[head * width + farthest];
      EXPECT_FLOAT_EQ(self[0], static_cast<float>(want.self));
      if (tokens == 1) continue;
      EXPECT_FLOAT_EQ(self[-1], static_cast<float>(want.previous));
      EXPECT_FLOAT_EQ(self[1], static_cast<float>(want.next));
    }
  }
}

TEST(PageTest, NoTextEndsTheScriptItStandsIn) {
  Observed observed = observed_text(2);
  observed.text = "</script><!--<b> \"\\ مرحبا 👋🏽 \xff";
  observed.tokens.pieces = {"<", "</script>"};
  const std::string data = data_of(page_of({&observed, 1}));
  EXPECT_EQ(data.find('<'), std::string::npos);
  const Json json = Json::parse(data)["texts"][0];
  EXPECT_EQ(json["text"], "</script><!--<b> \"\\ مرحبا 👋🏽 \uFFFD");
  EXPECT_EQ(json["pieces"][1], "</script>");
}

TEST(PageTest, MeansHaveNoArrays) {
  Observed observed = observed_text(2);
  observed.means = true;
  observed.num_texts = 2, observed.num_tokens = 4;
  for (const char* array : {"patterns", "profiles", "vectors"})
    EXPECT_FALSE(run_of(observed).contains(array));
}

}  // namespace
}  // namespace infer
