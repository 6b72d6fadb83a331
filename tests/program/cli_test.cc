// The command line as its users meet it: texts in, tables and JSON out.
#include "tests/program/program.h"

namespace phasor {
namespace {

TEST(CliTest, ATextGivesTokensAndALineForEveryLayer) {
  const ProgramResult result = succeed({"Tom bit a dog."});
  const Words lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 13u) << result.out;  // text, 3 rows, blank, header, embed, 6 layers
  EXPECT_EQ(lines[0], "Tom bit a dog.");
  EXPECT_TRUE(lines[1].starts_with("  position  0")) << lines[1];
  EXPECT_TRUE(contains(lines[2], "▁Tom")) << lines[2];
  EXPECT_TRUE(lines[6].starts_with("  embed ")) << lines[6];
  for (int layer = 1; layer <= 6; ++layer) {
    EXPECT_TRUE(lines[6 + layer].starts_with("      " + std::to_string(layer) + "  "));
    EXPECT_TRUE(lines[6 + layer].ends_with(" tokens")) << lines[6 + layer];
  }
  EXPECT_TRUE(result.err.starts_with("note: model sinusoidal: 6 layers")) << result.err;
}

TEST(CliTest, EveryTextIsOneJsonLineInOrderAndAsIfAlone) {
  const std::vector<json> both = infer_json({"-q", "Tom bit a dog.", "Why?"});
  ASSERT_EQ(both.size(), 2u);
  const json alone = infer_json({"-q", "Why?"}).at(0);
  EXPECT_EQ(both[1]["ids"], alone["ids"]);
  for (size_t l = 0; l < alone["views"]["norm"].size(); ++l) {
    EXPECT_NEAR(both[1]["views"]["norm"][l]["norm"].get<double>(),
                alone["views"]["norm"][l]["norm"].get<double>(), 1e-5);
  }
}

TEST(CliTest, AMaskGetsItsLikeliestFillers) {
  EXPECT_EQ(infer_json({"-q", "Tom [MASK] a dog."}).at(0)["masks"][0]["fillers"].size(), 5u);
  const json mask = infer_json({"-q", "--top-k", "2", "Tom [MASK] a dog."}).at(0)["masks"].at(0);
  EXPECT_EQ(mask["token"], 2);
  ASSERT_EQ(mask["fillers"].size(), 2u);
  for (const char* key : {"id", "piece", "probability"})
    EXPECT_TRUE(mask["fillers"][0].contains(key));
  EXPECT_TRUE(contains(run_infer({"-q", "Tom [MASK] a dog."}).out,
                       mask["fillers"][0]["piece"].get<std::string>()));
}

TEST(CliTest, JsonHoldsWhatWasRun) {
  struct Row {
    std::string line, where;
    json value;
  };
  for (const Row& row : std::vector<Row>{
           {"[MASK]", "/pieces", {"[CLS]", "[MASK]", "[SEP]"}},
           {"[a,b]", "/text", "[a,b]"},
           {"'Tom [MASK] a dog.'", "/masks/0/token", 2},
           {"--ids '5 17,9'", "/text", nullptr},
           {"--ids '5 17,9'", "/ids", {5, 17, 9}},
           {"--ids '5 17,9'", "/position_ids", {0, 1, 2}},
           {"--ids 4", "/masks/0/token", 0},  // 4 is the mask
           {"-m learned --positions sinusoidal Tom", "/position_ids", {0, 1, 2}},
           {"-m learned --positions sinusoidal:fairseq Tom", "/position_ids", {2, 3, 4}},
           {"-m learned --positions sinusoidal:opennmt Tom", "/position_ids", {1, 2, 3}},
           {"tokenize --special 'a [MASK]'", "/pieces", {"[CLS]", "▁a", "[MASK]", "[SEP]"}},
           {"tokenize [x]", "/text", "[x]"},
           {"tokenize --prefix 'query: ' Tom", "/text", "query: Tom"},
           {"info none", "/position", {{"kind", "none"}, {"trained_length", 128}}},
           {"info learned", "/classifier", false},
           {"info", "/notes", json::array()},
       }) {
    const json object = infer_json(words_of(row.line)).at(0);
    EXPECT_EQ(object.at(json::json_pointer(row.where)), row.value) << row.line;
  }
  const auto states = [](const std::string& line) {
    return infer_json(words_of(line)).at(0)["views"];
  };
  EXPECT_EQ(states("-m learned --positions learned Tom"), states("-m learned Tom"));
  EXPECT_EQ(states("--positions sinusoidal:paper Tom"), states("Tom"));
}

TEST(CliTest, SpecialTokensStayTextWithoutAMask) {
  const json object = infer_json({"-q", "a [SEP] b"}).at(0);
  EXPECT_EQ(std::count(object["pieces"].begin(), object["pieces"].end(), "[SEP]"), 1);
}

TEST(CliTest, ATextTooLongForTheTableNeedsAPolicy) {
  const std::string text = repeat("the ", 300);
  expect_infer_fails({"-m", "learned", text}, 3, {"128", "truncate", "window"});
  const json cut = infer_json({"-q", "-m", "learned", "--overflow", "truncate", text}).at(0);
  EXPECT_EQ(cut["ids"].size(), 128u);
  EXPECT_EQ(cut["pieces"].back(), "[SEP]");
  EXPECT_EQ(cut["dropped"], 174);
  const json clamp = infer_json({"-q", "-m", "learned", "--overflow", "clamp", text}).at(0);
  EXPECT_EQ(clamp["position_ids"].back(), 127);
  EXPECT_EQ(clamp["position_ids"][200], 127);
  const json bend = infer_json({"-q", "-m", "learned", "--overflow", "interpolate", text}).at(0);
  EXPECT_NEAR(bend["position_ids"][1].get<double>(), 127.0 / 301, 1e-6);
  EXPECT_EQ(bend["position_ids"].back(), 127);
  const json window = infer_json({"-q", "-m", "learned", "--overflow", "window", text}).at(0);
  EXPECT_EQ(window["ids"].size(), 302u);
  EXPECT_EQ(window["views"]["norm"].size(), 7u);
  const json endless = infer_json({"-q", text}).at(0);
  EXPECT_EQ(endless["position_ids"].back(), 301);
}

TEST(CliTest, TruncatedIdsAreReportedAsTheyWereRun) {
  std::string ids;
  for (int i = 0; i < 140; ++i) ids += std::to_string(5 + i) + " ";
  const json object =
      infer_json({"-q", "-m", "learned", "--overflow", "truncate", "--ids", ids}).at(0);
  EXPECT_EQ(object["ids"].size(), 128u);
  EXPECT_EQ(object["pieces"].size(), 128u);
  EXPECT_EQ(object["dropped"], 12);
}

TEST(CliTest, LongerThanTrainedIsSaid) {
  const ProgramResult result = run_infer({repeat("the ", 200)});
  EXPECT_TRUE(contains(result.err, "trained on at most 128")) << result.err;
  EXPECT_EQ(run_infer({"-q", repeat("the ", 200)}).err, "");
}

TEST(CliTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_FALSE(contains(run_infer({"red \033[31m\a\r\n text"}).out, "\033"));
  EXPECT_EQ(lines_of(run_infer({"-q", "a\nb"}).out)[0], "a b");
}

TEST(CliTest, WhatATerminalObeysIsEscapedInJsonAndLeftOutOfText) {
  // DEL, CSI, a line's end, and what turns the direction of writing
  const std::string text = "a\x7f\u009b\u061c\u200e\u200f\u2028\u202e\u2066é\u200d";
  const std::string json = run_infer({"tokenize", "--json", text}).out;
  EXPECT_TRUE(contains(json, R"(a\u007f\u009b\u061c\u200e\u200f\u2028\u202e\u2066é)"
                             "\u200d"))
      << json;
  EXPECT_EQ(nlohmann::json::parse(json)["text"], text);
}

TEST(CliTest, WideCharactersKeepColumnsAligned) {
  const Words lines = lines_of(run_infer({"-q", "日本語の文 and x"}).out);
  // Both rows put the closing token in the same column: 5 characters that are 2 wide, 3 bytes each.
  const size_t token = lines[2].find("[SEP]"), id = lines[3].rfind(' ') + 1;
  const auto columns = [](const std::string& text) {
    int count = 0;
    for (const unsigned char byte : text) count += (byte & 0xc0) != 0x80;
    return count;
  };
  EXPECT_EQ(columns(lines[2].substr(0, token)) + 5, static_cast<int>(id)) << lines[2];
}

TEST(CliTest, StandardInputHasATextALine) {
  std::string many_lines;  // more than one batch holds
  for (int i = 0; i < 70; ++i) many_lines += std::to_string(i) + "\n";
  const std::vector<json> objects =
      infer_json({"-q", "before", "-", "after"}, {.input = many_lines});
  Words texts, want = {"before"};
  for (const json& object : objects) texts.push_back(object["text"]);
  for (int i = 0; i < 70; ++i) want.push_back(std::to_string(i));
  want.emplace_back("after");
  EXPECT_EQ(texts, want);
}

TEST(CliTest, OnlyTheFirstWordIsASubcommand) {
  Words texts;
  for (const json& object : infer_json({"-q", "Tom", "info", "tokenize"})) {
    texts.push_back(object["text"]);
  }
  EXPECT_EQ(texts, (Words{"Tom", "info", "tokenize"}));
  EXPECT_EQ(infer_json({"-q", "--", "tokenize"}).at(0)["text"], "tokenize");
  EXPECT_EQ(infer_json({"-q", "--", "-m", "--ids"}).at(1)["text"], "--ids");
}

TEST(CliTest, WorksFromAnyFolder) {
  const TempFolder folder;
  const ProgramResult here = run_infer({"-q", "Tom"});
  const ProgramResult there = succeed({"-q", "Tom"}, {.directory = folder.path()});
  EXPECT_EQ(there.out, here.out);
}

TEST(CliTest, OptionsMayStandBeforeTheCommand) {
  const ProgramResult result = run_infer({"-q", "-m", "none", "embed", "Tom"});
  EXPECT_EQ(result.out, run_infer({"embed", "-q", "-m", "none", "Tom"}).out);
  EXPECT_EQ(result.err, "");
}

TEST(CliTest, HelpAndVersionGoToStandardOutput) {
  for (const Words& arguments :
       {Words{"--help"}, {"tokenize", "--help"}, {"info", "-h"}, {"verify", "--help"}}) {
    const ProgramResult result = succeed(arguments);
    expect_contains(result.out, {"\nUsage: infer", "\nExamples:\n  infer"});
    EXPECT_EQ(result.err, "");
  }
  for (const char* option : {"--model", "--positions", "--ids", "--threads", "--save", "--overflow",
                             "--json", "--quiet", "--version", "tokenize", "Examples:"}) {
    EXPECT_TRUE(contains(run_infer({"--help"}).out, option)) << option;
  }
  EXPECT_EQ(run_infer({"help"}).out, run_infer({"--help"}).out);
  EXPECT_EQ(run_infer({"help", "observe"}).out, run_infer({"observe", "--help"}).out);
  const std::string version = run_infer({"--version"}).out;
  EXPECT_TRUE(contains(version, "phasor " PHASOR_VERSION ", oneDNN ")) << version;
}

}  // namespace
}  // namespace phasor
