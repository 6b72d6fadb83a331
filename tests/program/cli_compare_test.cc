// infer compare: two sides of known difference, and every way to ask for what is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>

#include "phasor/phasor.h"
#include "tests/support/infer_program.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kSentences = std::string(PHASOR_SOURCE_DIR) + "/examples/sentences.txt";
const std::string kText = "The old man gave the boy a book.";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of(std::vector<std::string> arguments, const ProgramOptions& options = {}) {
  arguments.insert(arguments.begin(), "compare");
  const ProgramResult result = run_infer(arguments, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(CliCompareTest, OfAModelWithItselfBothSidesAreEqual) {
  json object = infer_json({"compare", "learned", "learned", "-i", kSentences}).at(0);
  EXPECT_TRUE(object["same_tokens"]);
  EXPECT_EQ(object["sides"][0], object["sides"][1]);
  EXPECT_TRUE(object["sides"][0]["missing"].empty());
}

TEST(CliCompareTest, WithoutPositionsNothingIsMovedAndNothingFeelsTheOrder) {
  const json side = infer_json({"compare", "sinusoidal", "none", kText}).at(0)["sides"][1];
  ASSERT_EQ(side["layers"].size(), 7u);
  for (const json& layer : side["layers"]) {
    EXPECT_EQ(layer["position_effect"], 0.0);
    EXPECT_EQ(layer["direct_position"]["norm"], 0.0);
    for (const auto& [kind, moved] : layer["order_sensitivity"].items()) {
      EXPECT_LT(moved.get<double>(), 1e-5) << kind;
    }
  }
  EXPECT_TRUE(side["table"].is_null());
  EXPECT_EQ(side["missing"]["table"], "no positions are added");
}

TEST(CliCompareTest, WithPositionsEveryLayerIsMoved) {
  const json side = infer_json({"compare", "sinusoidal", "none", kText}).at(0)["sides"][0];
  for (const json& layer : side["layers"]) {
    EXPECT_GT(layer["position_effect"], 0.01);
    EXPECT_GT(layer["direct_position"]["norm"], 0.01);
    EXPECT_GT(layer["order_sensitivity"]["reverse"], 0.1);
    if (layer["layer"] == 0) continue;
    double sum = 0, distance = 0;
    for (const auto& [offset, share] : layer["attention_by_offset"].items()) {
      sum += share.get<double>();
      distance += share.get<double>() * std::abs(std::stoi(offset));
    }
    EXPECT_NEAR(sum, 1.0, 1e-5);
    EXPECT_NEAR(distance, layer["attention_distance"], 1e-9);
  }
  EXPECT_NEAR(side["table"]["toeplitz_r2"], 1.0, 1e-6);  // of float32 rows
  EXPECT_NEAR(side["table"]["norm"], 8.0, 1e-5);         // √(d/2)
  EXPECT_EQ(side["table"]["rows"], 128);
  EXPECT_LT(side["table"]["random"]["toeplitz_r2"], 0.1);
}

TEST(CliCompareTest, AgreesWithARunOfEachModel) {
  const json sides = infer_json({"compare", "sinusoidal", "learned", kText}).at(0)["sides"];
  for (const json& side : sides) {
    const std::string model = side["model"];
    const json run = infer_json({"-m", model, kText}).at(0);
    EXPECT_EQ(side["tokens"], run["ids"].size());
    for (size_t l = 0; l < 7; ++l) {
      for (const char* key : {"norm", "position_effect"}) {
        EXPECT_NEAR(side["layers"][l][key], run["layers"][l][key], 1e-6) << key << l;
      }
      if (l == 0) continue;
      EXPECT_NEAR(side["layers"][l]["attention_distance"], run["layers"][l]["attention_distance"],
                  1e-6);
    }
  }
}

TEST(CliCompareTest, OneModelWithTwoKindsOfPositions) {
  const json object =
      infer_json({"compare", "learned", "--positions", "own", "--positions", "none", kText}).at(0);
  EXPECT_EQ(object["sides"][0]["label"], "own");
  EXPECT_EQ(object["sides"][0]["positions"], "learned");
  EXPECT_EQ(object["sides"][1]["label"], "none");
  EXPECT_EQ(object["sides"][1]["model"], "learned");
  EXPECT_EQ(object["sides"][1]["positions"], "none");
  EXPECT_GT(object["sides"][0]["layers"][3]["position_effect"], 0.01);
  EXPECT_EQ(object["sides"][1]["layers"][3]["position_effect"], 0.0);
}

TEST(CliCompareTest, MasksDependOnTheSeedAloneAndAreTheSameForBoth) {
  const std::vector<std::string> ask = {"compare", "sinusoidal", "learned", "--only",
                                        "masked",  "-i",         kSentences};
  const json first = infer_json(ask).at(0)["sides"];
  std::vector<std::string> other_seed = ask;
  other_seed.insert(other_seed.end(), {"--seed", "2"});
  const json second = infer_json(other_seed).at(0)["sides"];
  EXPECT_EQ(first, infer_json(ask).at(0)["sides"]);
  for (const char* key : {"tokens", "masks"}) {
    EXPECT_EQ(first[0]["masked"][key], first[1]["masked"][key]);
    EXPECT_EQ(first[0]["masked"][key], second[0]["masked"][key]);  // 15 % of each text
  }
  EXPECT_NE(first[0]["masked"]["loss"], second[0]["masked"]["loss"]);
  const double share =
      first[0]["masked"]["masks"].get<double>() / first[0]["masked"]["tokens"].get<double>();
  EXPECT_NEAR(share, 0.15, 0.01);
  for (const json& side : first) {
    EXPECT_GT(side["masked"]["accuracy"], 0.15);
    EXPECT_LT(side["masked"]["loss"], 6.0);
  }
}

TEST(CliCompareTest, TheLossOfHiddenWordsIsWhatTheLibrarySays) {
  const TempFolder folder;
  const std::string file = folder.write("words.txt", "dog\nhouse\n").string();
  const json sides =
      infer_json({"compare", "sinusoidal", "learned", "-i", file, "--only", "masked"})
          .at(0)["sides"];
  for (const json& side : sides) {
    Encoder encoder(Model::load(bundled_model(side["model"])));
    double loss = 0;
    for (const char* word : {"dog", "house"}) {
      std::vector<int32_t> ids = encoder.model().tokenizer().encode(word).ids;
      ASSERT_EQ(ids.size(), 3u);
      const int32_t hidden = std::exchange(ids[1], *encoder.model().tokenizer().mask_id());
      const Encoding encoding = encoder.encode_ids(ids);
      const std::vector<float> logits = encoder.mlm_logits(encoding.hidden(0).subspan(128, 128));
      double sum = 0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
      loss += std::log(sum) - static_cast<double>(logits[hidden]);
    }
    EXPECT_NEAR(side["masked"]["loss"], loss / 2, 1e-5);
    EXPECT_EQ(side["masked"]["masks"], 2);
    EXPECT_EQ(side["masked"]["tokens"], 2);
  }
}

TEST(CliCompareTest, ReversingKeepsTheSpecialTokensInPlace) {
  const json sides =
      infer_json({"compare", "sinusoidal", "learned", kText, "--only", "order"}).at(0)["sides"];
  for (const json& side : sides) {
    Encoder encoder(Model::load(bundled_model(side["model"])));
    std::vector<int32_t> ids = encoder.model().tokenizer().encode(kText).ids;
    std::vector<int64_t> order(ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::reverse(order.begin() + 1, order.end() - 1);
    Trace before = Trace::hidden_states_and_attentions(), after = before;
    encoder.encode_ids(ids, {.observer = &before});
    std::reverse(ids.begin() + 1, ids.end() - 1);
    encoder.encode_ids(ids, {.observer = &after});
    for (int64_t l = 0; l <= 6; ++l) {
      EXPECT_NEAR(side["layers"][l]["order_sensitivity"]["reverse"],
                  order_sensitivity(before.hidden_state(l).values, after.hidden_state(l).values,
                                    order, 128),
                  1e-5);
    }
  }
}

TEST(CliCompareTest, LongPathsKeepTheColumns) {
  const TempFolder folder;
  const fs::path copy = folder.path() / std::string(60, 'x');
  fs::create_directory_symlink(bundled_model("none"), copy);
  const std::vector<std::string> lines =
      lines_of(text_of({copy.string(), "sinusoidal", "--only", "table"}));
  EXPECT_EQ(lines.at(1), "               …" + std::string(31, 'x') + "  sinusoidal");
}

TEST(CliCompareTest, LongerThanTrainedASinusoidGoesOnAndATableNeedsAPolicy) {
  const json sides =
      infer_json({"compare", "sinusoidal", "learned", "--only", "longer", "-i", kSentences})
          .at(0)["sides"];
  const auto column = [](const json& side, const char* key) {
    json values;
    for (const json& length : side["longer"]) values.push_back(length[key]);
    return values;
  };
  EXPECT_EQ(column(sides[0], "length"), (json{128, 192, 256}));
  EXPECT_EQ(column(sides[0], "overflow"), (json{nullptr, nullptr, nullptr}));
  EXPECT_EQ(column(sides[1], "length"), (json{128, 192, 192, 192, 256, 256, 256}));
  EXPECT_EQ(column(sides[1], "overflow"),
            (json{nullptr, "clamp", "interpolate", "window", "clamp", "interpolate", "window"}));
  for (const json& side : sides) {  // the same masks at every length
    for (const json& length : side["longer"]) {
      EXPECT_EQ(length["masks"], sides[0]["longer"][0]["masks"]);
      EXPECT_EQ(length["tokens"], sides[0]["longer"][0]["tokens"]);
      EXPECT_GT(length["loss"], 1.0);
    }
  }
}

TEST(CliCompareTest, ATextOfOneTokenHasNoOrder) {
  const json side = infer_json({"compare", "sinusoidal", "none", "Tom"}).at(0)["sides"][0];
  EXPECT_TRUE(side["layers"][1]["order_sensitivity"]["swap"].is_null());
  EXPECT_TRUE(contains(side["missing"]["order"], "two tokens"));
  EXPECT_TRUE(contains(text_of({"sinusoidal", "none", "Tom"}), "— no text has two tokens"));
}

TEST(CliCompareTest, TextFitsEightyColumnsAndSaysWhatIsMissing) {
  const std::string out = text_of({"sinusoidal", "none", "-i", kSentences});
  for (const std::string& line : lines_of(out)) {
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    });
    EXPECT_LE(columns, 80) << line;
  }
  EXPECT_TRUE(contains(out, "— none: no positions are added"));
  EXPECT_TRUE(contains(text_of({"sinusoidal", "none", kText}), "give a file of sentences"));
}

TEST(CliCompareTest, OnlyPicksTables) {
  const std::string out = text_of({"sinusoidal", "none", "--only", "table"});
  EXPECT_TRUE(contains(out, "Toeplitz"));
  EXPECT_FALSE(contains(out, "Moved by"));
  EXPECT_FALSE(contains(out, "Masked"));
  const json side =
      infer_json({"compare", "learned", "none", "--only", "order", "--only", "effect", kText})
          .at(0)["sides"][0];
  EXPECT_TRUE(side["layers"][0].contains("order_sensitivity"));
  EXPECT_TRUE(side["layers"][0].contains("position_effect"));
  EXPECT_FALSE(side["layers"][0].contains("direct_position"));
  EXPECT_FALSE(side.contains("masked"));
}

TEST(CliCompareTest, TextsComeFromArgumentsStandardInputIdsOrAFile) {
  const std::vector<std::string> ask = {"compare", "sinusoidal", "none", "--only", "effect"};
  const auto layers = [&](std::vector<std::string> more, const ProgramOptions& options = {}) {
    more.insert(more.begin(), ask.begin(), ask.end());
    return infer_json(more, options).at(0)["sides"][0]["layers"];
  };
  const json expected = layers({kText});
  EXPECT_EQ(layers({"-"}, {.input = kText + "\n"}), expected);
  EXPECT_EQ(layers({"-i", "-"}, {.input = "\n" + kText + "\r\n \n"}), expected);
  const json run = infer_json({kText}).at(0);
  std::string ids;
  for (const json& id : run["ids"]) ids += id.dump() + " ";
  EXPECT_EQ(layers({"--ids", ids}), expected);
}

TEST(CliCompareTest, TextsLongerThanTrainedAreCutAndItSaysSo) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "dog ";
  const ProgramResult result =
      run_infer({"compare", "--json", "sinusoidal", "learned", "--only", "effect", text});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err, "cut to 128 tokens")) << result.err;
  const json sides = json::parse(result.out)["sides"];
  for (const json& side : sides) {
    EXPECT_EQ(side["tokens"], 128);
    EXPECT_GE(side["dropped"], 74);
  }
}

TEST(CliCompareTest, ModelsWithoutHeadOrTokenizerAnswerWhatTheyCan) {
  const TempFolder folder;
  folder.write("config.json", small_config_json().dump());
  folder.write("model.safetensors", safetensors_bytes(small_tensors()));
  const std::string small = folder.path().string();
  const json object =
      infer_json({"compare", small, "none", "--ids", "1 2 3", "-i", kSentences}).at(0);
  EXPECT_FALSE(object["same_tokens"]);
  EXPECT_GT(object["sides"][0]["layers"][1]["norm"], 0.0);
  EXPECT_TRUE(object["sides"][0]["masked"].is_null());
  EXPECT_TRUE(contains(object["sides"][0]["missing"]["masked"], "head"));
  EXPECT_FALSE(object["sides"][1]["masked"].is_null());
  expect_infer_fails({"compare", small, "none", kText}, 4, {"token ids"});
}

TEST(CliCompareTest, WhatItCannotCompareIsOneSentence) {
  const TempFolder folder;
  folder.write("empty.txt", "\n  \n");
  expect_infer_fails({"compare"}, 2, {"two models"});
  expect_infer_fails({"compare", "sinusoidal"}, 2, {"two models", "--positions"});
  expect_infer_fails({"compare", "learned", "--positions", "none", kText}, 2, {"twice"});
  expect_infer_fails({"compare", "learned", "--positions", "none", "--positions", "rotary"}, 2,
                     {"rotary"});
  expect_infer_fails({"compare", "sinusoidal", kText}, 4, {kText, "two models"});
  expect_infer_fails({"compare", "no-such-model", "none", kText}, 4, {"no-such-model"});
  expect_infer_fails({"compare", "sinusoidal", "none", "--only", "colour"}, 2, {"colour", "order"});
  expect_infer_fails({"compare", "sinusoidal", "none", "--ids", "1", kText}, 2, {"--ids"});
  expect_infer_fails({"compare", "sinusoidal", "none", "--ids", "9000"}, 3, {"9000"});
  expect_infer_fails({"compare", "sinusoidal", "none", "-i", "no-such-file"}, 3, {"no-such-file"});
  expect_infer_fails({"compare", "sinusoidal", "none", "-i", folder.path().string()}, 3,
                     {folder.path().string()});
  expect_infer_fails(
      {"compare", "sinusoidal", "none", "-i", (folder.path() / "empty.txt").string()}, 3,
      {"empty.txt", "no text"});
  expect_infer_fails({"compare", "sinusoidal", "none", "-"}, 3, {"standard input"});
  expect_infer_fails({"compare", "sinusoidal", "none", "--html", "/nowhere/page.html"}, 3,
                     {"--html", "/nowhere/page.html", "No such file"});
  expect_infer_fails({"compare", "sinusoidal", "--positions", "learned", "--positions", "none"}, 3,
                     {"position table"});
}

}  // namespace
}  // namespace phasor
