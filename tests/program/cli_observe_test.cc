// infer observe: its numbers are those of the library, before, after, and in every format.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <tuple>

#include "phasor/phasor.h"
#include "tests/support/infer_program.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

using nlohmann::json;

const std::string kSentences = std::string(PHASOR_SOURCE_DIR) + "/examples/sentences.txt";
const std::string kText = "Tom bit a dog.";
constexpr double kRounding = 1e-5;  // of float32, where sums depend on the batch

json observe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "observe");
  return infer_json(std::move(arguments)).at(0);
}

std::string shown(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"observe", "-q"});
  const ProgramResult result = run_infer(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return result.out;
}

Trace states_of(Encoder& encoder, const std::vector<int32_t>& ids, RunOptions options) {
  Trace trace = residual_trace();
  options.observer = &trace;
  encoder.encode_ids(ids, options);
  return trace;
}

TEST(CliObserveTest, SplitDirectPathAndEffectAreWhatTheLibrarySays) {
  const json object = observe({"-m", "learned", kText});
  Encoder encoder(Model::load(bundled_model("learned")));
  const std::vector<int32_t> ids = object["ids"];
  const std::vector<int64_t> places = object["text_tokens"];
  EXPECT_EQ(places, (std::vector<int64_t>{1, 2, 3, 4, 5}));
  const Trace with = states_of(encoder, ids, {});
  const Trace without = states_of(encoder, ids, {.positions = Positions::none()});
  const std::vector<Split> splits = latin_square_split(encoder, ids, places);
  const std::vector<PartShare> direct = direct_position_path(encoder.model(), with);
  ASSERT_EQ(object["layers"].size(), 7u);
  for (int64_t l = 0; l < 7; ++l) {
    const json& layer = object["layers"][l];
    const std::vector<float>& state = with.hidden_state(l).values;
    EXPECT_EQ(layer["layer"], l);
    EXPECT_NEAR(layer["norm"], mean_norm(state, 128), 1e-4);
    EXPECT_NEAR(layer["position_effect"],
                mean_cosine_distance(state, without.hidden_state(l).values, 128), kRounding);
    EXPECT_NEAR(layer["split"]["position"], splits[l].position, kRounding);
    EXPECT_NEAR(layer["split"]["token"], splits[l].group, kRounding);
    EXPECT_NEAR(layer["split"]["rest"], splits[l].rest, kRounding);
    EXPECT_NEAR(layer["position_matrix"]["stable_rank"], stable_rank(splits[l].position_means, 128),
                1e-3);
    EXPECT_NEAR(layer["direct_position"]["norm"], direct[l].norm, kRounding);
    EXPECT_NEAR(layer["direct_position"]["share"], direct[l].alignment, kRounding);
  }
  const std::vector<float> a = pool(with.hidden_state(6).values, 128, {});
  const std::vector<float> b = pool(without.hidden_state(6).values, 128, {});
  EXPECT_NEAR(object["pooled_effect"], mean_cosine_distance(a, b, 128), kRounding);
}

TEST(CliObserveTest, HeadsAndScoresAreWhatTheLibrarySays) {
  const json object = observe({kText});
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  const std::vector<int32_t> ids = object["ids"];
  Trace patterns{Hook::kPattern};
  encoder.encode_ids(ids, {.observer = &patterns});
  const std::vector<int64_t> special = {0, 6};
  for (int64_t l = 1; l <= 6; ++l) {
    const json& attention = object["layers"][l]["attention"];
    const std::vector<HeadProfile> heads =
        head_profiles(patterns.at(Hook::kPattern, l - 1).values, 4, 7, special);
    double distance = 0;
    for (size_t h = 0; h < 4; ++h) {
      const json& head = attention["heads"][h];
      EXPECT_EQ(head["head"], h + 1);
      EXPECT_NEAR(head["previous"], heads[h].previous, kRounding);
      EXPECT_NEAR(head["separators"], heads[h].separators, kRounding);
      EXPECT_NEAR(head["entropy"], heads[h].entropy, 1e-4);
      EXPECT_EQ(head["positional_offset"].is_null(), !heads[h].positional_offset);
      EXPECT_EQ(head["by_offset"].size(), 13u);
      distance += heads[h].mean_distance / 4;
    }
    EXPECT_NEAR(attention["distance"], distance, 1e-4);
  }
  EXPECT_TRUE(object["layers"][0]["attention"].is_null());

  ScoreTrace trace;
  encoder.encode_ids(ids, {.observer = &trace});
  const ScoreTerms terms = first_layer_scores(encoder.model(), trace);
  const json& scores = object["first_layer_scores"];
  EXPECT_NEAR(scores["position_position"], score_shares(terms).position_position, 1e-4);
  EXPECT_NEAR(scores["heads"][2]["token_position"], score_shares(terms, 2).token_position, 1e-4);
}

TEST(CliObserveTest, OrdersAreThoseOfTheSeed) {
  const json object = observe({"--seed", "5", "--only", "order", kText});
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  const std::vector<int32_t> ids = object["ids"];
  const std::vector<int64_t> places = object["text_tokens"];
  const std::map<std::string, std::vector<int64_t>> orders = {
      {"swap", swapped_order(7, places, 5)},
      {"ngrams", shuffled_ngrams_order(7, places, 2, 5)},
      {"reverse", reversed_order(7, places)},
      {"shuffle", shuffled_order(7, places, 5)}};
  const Trace states = states_of(encoder, ids, {});
  for (const auto& [kind, order] : orders) {
    const Trace moved = states_of(encoder, reordered(ids, order), {});
    for (int64_t l = 0; l <= 6; ++l) {
      EXPECT_NEAR(object["layers"][l]["order_sensitivity"][kind],
                  order_sensitivity(states.hidden_state(l).values, moved.hidden_state(l).values,
                                    order, 128),
                  kRounding)
          << kind << l;
    }
  }
  EXPECT_TRUE(object["layers"][3]["split"].is_null());
  EXPECT_TRUE(object["layers"][3]["attention"].is_null());
}

/// What the library makes of a run, beside what the program says of it.
void expect_after(const json& pair, Encoder& encoder, const RunOptions& options) {
  const std::vector<int32_t> ids = pair["before"]["ids"];
  const Trace before = states_of(encoder, ids, {});
  const Trace after = states_of(encoder, ids, options);
  for (int64_t l = 0; l <= 6; ++l) {
    const std::vector<float>& state = after.hidden_state(l).values;
    EXPECT_NEAR(pair["after"]["layers"][l]["norm"], mean_norm(state, 128), 1e-4);
    EXPECT_NEAR(1 - pair["moved"][l]["mean_cosine"].get<double>(),
                mean_cosine_distance(state, before.hidden_state(l).values, 128), kRounding);
    EXPECT_EQ(pair["moved"][l]["layer"], l);
  }
}

TEST(CliObserveTest, EveryEditIsTheRunThatTheLibraryMakesOfIt) {
  Encoder encoder(Model::load(bundled_model("learned")));
  const std::vector<std::pair<std::vector<std::string>, Positions>> edits = {
      {{"zero"}, Positions().scaled(0)},
      {{"scale=0.5"}, Positions().scaled(0.5f)},
      {{"shift=3"}, Positions().shifted(3)},
      {{"swap=1,4"}, Positions().swapped(1, 4)},
      {{"reverse"}, Positions().reversed()},
      {{"shuffle=7"}, Positions().shuffled(7)},
      {{"repeat"}, Positions().repeated()},
      {{"swap=0,2", "shift=1", "reverse"}, Positions().swapped(0, 2).shifted(1).reversed()}};
  for (const auto& [words, positions] : edits) {
    std::vector<std::string> arguments = {"-m", "learned", "--only", "moved", kText};
    for (const std::string& word : words) arguments.insert(arguments.end(), {"--edit", word});
    const json pair = observe(arguments);
    SCOPED_TRACE(words.front());
    EXPECT_EQ(pair["after"]["edits"], words);
    EXPECT_EQ(pair["before"]["edits"], json::array());
    expect_after(pair, encoder, {.positions = positions});
    EXPECT_LT(pair["moved"][6]["mean_cosine"], 1.0 - 1e-4);
  }
}

TEST(CliObserveTest, ATableFromAFileReplacesThePositions) {
  const TempFolder folder;
  std::vector<float> values(16 * 128);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const std::string file =
      folder
          .write("table.safetensors",
                 safetensors_bytes({{"positions", {16, 128}, "F32", float_bytes(values)}}))
          .string();
  const json pair = observe({"--edit", "reverse", "--edit", "table=" + file, kText});
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  const PositionTable table{.rows = 16, .d_model = 128, .values = values};
  EXPECT_EQ(pair["before"]["positions"], "sinusoidal (paper)");
  EXPECT_EQ(pair["after"]["positions"], "table");
  expect_after(pair, encoder, {.positions = Positions::table(table).reversed()});
}

TEST(CliObserveTest, ACutResidualConnectionEndsTheDirectPath) {
  const json pair = observe({"--cut-residual", "2.attn", kText});
  EXPECT_EQ(pair["after"]["cut_residuals"], json::array({"2.attn"}));
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  expect_after(pair, encoder,
               {.cut_residuals = {{.layer = 1, .site = ResidualCut::Site::kAttention}}});
  for (int64_t l = 0; l <= 6; ++l) {
    const double before = pair["before"]["layers"][l]["direct_position"]["norm"];
    const double after = pair["after"]["layers"][l]["direct_position"]["norm"];
    EXPECT_GT(before, 0.01);
    EXPECT_EQ(after, l < 2 ? before : 0.0);
  }
  for (const auto& [word, site] :
       {std::pair{"1", ResidualCut::Site::kBoth}, std::pair{"1.mlp", ResidualCut::Site::kMlp}}) {
    expect_after(observe({"--cut-residual", word, "--only", "moved", kText}), encoder,
                 {.cut_residuals = {{.layer = 0, .site = site}}});
  }
}

TEST(CliObserveTest, TheTutorialsSentenceIsOneCommand) {
  const std::string text = shown({"--cut-residual", "1.attn", "--only", "direct", kText});
  EXPECT_NE(text.find("before"), std::string::npos);
  EXPECT_NE(text.find("of the state's length before, nothing after."), std::string::npos) << text;
  EXPECT_EQ(text.find("Moved by"), std::string::npos);
}

TEST(CliObserveTest, BeforeIsTheRunWithoutInterventions) {
  const json alone = observe({kText});
  EXPECT_EQ(observe({"--edit", "shift=1", "--cut-residual", "3", kText})["before"], alone);
}

/// Every number below `object`, by (layer, head, path): what a line of CSV is about.
using Numbers = std::map<std::tuple<std::string, std::string, std::string>, double>;

void flatten(const json& object, const std::string& layer, const std::string& head,
             const std::string& path, Numbers& numbers) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : object.items()) {
    if (key == "heads") {
      for (const json& profile : value) {
        flatten(profile, layer, profile["head"].dump(), below("heads"), numbers);
      }
    } else if (value.is_object()) {
      flatten(value, layer, head, below(key), numbers);
    } else if (value.is_number() && key != "layer" && key != "head" && key != "positional_offset") {
      numbers[{layer, head, below(key)}] = value;
    }
  }
}

Numbers numbers_of(const json& text) {
  Numbers numbers;
  for (const json& layer : text["layers"]) flatten(layer, layer["layer"].dump(), "", "", numbers);
  flatten({{"pooled_effect", text["pooled_effect"]},
           {"first_layer_scores", text["first_layer_scores"]}},
          "", "", "", numbers);
  return numbers;
}

TEST(CliObserveTest, CsvHasTheNumbersOfTheJson) {
  const std::vector<std::string> ask = {"--edit", "reverse", kText};
  const json pair = observe(ask);
  std::map<std::string, Numbers> want = {{"before", numbers_of(pair["before"])},
                                         {"after", numbers_of(pair["after"])}};
  for (const json& moved : pair["moved"]) {
    flatten(moved, moved["layer"].dump(), "", "moved", want["after"]);
  }
  std::vector<std::string> csv = ask;
  csv.insert(csv.begin(), "--csv");
  const std::vector<std::string> lines = lines_of(shown(csv));
  ASSERT_EQ(lines.at(0), "text,run,layer,head,measure,value");
  std::map<std::string, Numbers> got;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::istringstream line(lines[i]);
    std::array<std::string, 6> cells;
    for (std::string& cell : cells) std::getline(line, cell, ',');
    EXPECT_EQ(cells[0], "1");
    got[cells[1]][{cells[2], cells[3], cells[4]}] = std::stod(cells[5]);
  }
  EXPECT_EQ(got["before"], want["before"]);
  EXPECT_EQ(got["after"], want["after"]);
  EXPECT_GT(want["before"].size(), 300u);
}

TEST(CliObserveTest, OnlyPicksViewsAndNothingElseIsMeasured) {
  const std::string text = shown({"--only", "effect", kText});
  EXPECT_NE(text.find("Moved by positions"), std::string::npos);
  for (const char* other : {"What states are made of", "Attention", "scores", "own part"}) {
    EXPECT_EQ(text.find(other), std::string::npos) << other;
  }
  const json object = observe({"--only", "effect", kText});
  EXPECT_TRUE(object["layers"][1]["split"].is_null());
  EXPECT_TRUE(object["first_layer_scores"].is_null());
  EXPECT_TRUE(object["layers"][1]["position_effect"].is_number());
}

TEST(CliObserveTest, FitsEightyColumnsWithoutColours) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--cut-residual", "1", "--edit", "reverse", kText},
        {"-i", kSentences, "--max-tokens", "12"},
        {"-m", "learned", kText, "Who was it that bit the old man on the hill near the river?"}}) {
    const std::string text = shown(arguments);
    EXPECT_EQ(text.find('\033'), std::string::npos);
    for (const std::string& line : lines_of(text)) {
      int64_t columns = 0;  // no wide characters here
      for (const char byte : line) columns += (byte & 0xc0) != 0x80 ? 1 : 0;
      EXPECT_LE(columns, 80) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(CliObserveTest, ShowsThePatternOfTheHeadThatIsAskedFor) {
  EXPECT_NE(shown({"--only", "pattern", "--head", "6.4", kText}).find("Attention of head 6.4"),
            std::string::npos);
  // Two tokens that see each other alike: every head is as positional as any other.
  EXPECT_NE(shown({"--only", "pattern", "--ids", "5"}).find("Attention of head 1.1"),
            std::string::npos);
}

}  // namespace
}  // namespace phasor
