// infer rank and infer classify, and what other commands say of classification heads and pairs.
#include <charconv>

#include "tests/program/program.h"
#include "tests/support/bert_folder.h"
#include "tests/support/sanitizer.h"
#include "tests/support/shared_files.h"

namespace phasor {
namespace {

const Words kTexts = {"a dog", "the cat", "rain", "x y z", "a dog"};

TEST(CliRankTest, TextsComeBestFirstAsTheLibraryRanksThem) {
  const std::string query = "a dog bit me";
  for (const Words& labels : {Words{"relevant"}, Words{}}) {
    const BertFolder model(labels);
    const Ranking expected = Encoder(Model::load(model.path())).rank(query, kTexts);
    const Words words = Words{"rank", "-m", model.path(), query} + kTexts;
    const json all = infer_json(words).at(0);
    EXPECT_EQ(all["query"], query);
    ASSERT_EQ(all["ranking"].size(), kTexts.size());
    for (size_t i = 0; i < kTexts.size(); ++i) {
      const json& line = all["ranking"][i];
      const int64_t number = line["line"].get<int64_t>() - 1;
      EXPECT_EQ(number, expected.order[i]);
      EXPECT_EQ(line["text"], kTexts[number]);
      EXPECT_EQ(line["score"].get<float>(), expected.scores[number]);
      ASSERT_EQ(line.contains("logit"), !labels.empty());
      if (labels.empty()) continue;
      EXPECT_NEAR(line["score"].get<double>(), 1 / (1 + std::exp(-line["logit"].get<double>())),
                  1e-6);
    }
    const Words best = words + Words{"--top", "2"};
    const json two = infer_json(best).at(0)["ranking"];
    ASSERT_EQ(two.size(), 2u);
    EXPECT_EQ(two[0], all["ranking"][0]);
    const ProgramResult text = run_infer(best);
    EXPECT_EQ(contains(text.err, "no classification head"), labels.empty()) << text.err;
    EXPECT_EQ(contains(text.err, "cosine"), labels.empty()) << text.err;
    const Words lines = lines_of(text.out);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0], query);
    EXPECT_TRUE(contains(lines[1], two[0]["text"].get<std::string>())) << lines[1];
  }
}

TEST(CliClassifyTest, ManyLabelsMakeWindowsOfFewLines) {
#if HAS_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
  Words labels;
  for (int i = 0; i < 20'000; ++i) labels.push_back(std::to_string(i));
  const BertFolder model(labels);
  const Words classify = {"classify", "-q", "-m", model.path(), "-i", "-"};
  const ProgramResult one = run_infer(classify, {.input = "a dog\n"});
  std::string lines, want;
  for (int i = 0; i < 1024; ++i) lines += "a dog\n", want += one.out;  // 164 MB of numbers
  const ProgramResult all = run_infer(classify, {.input = lines});
  EXPECT_EQ(all.out, want) << all.err;
  EXPECT_LT(all.peak_bytes - one.peak_bytes, int64_t{100} << 20);
}

TEST(CliRankTest, LinesOfAFileAndOfStandardInputAreTheSame) {
  const BertFolder model({"relevant"});
  std::string lines;
  for (int i = 0; i < 1500; ++i) {
    lines += i % 100 == 7 ? "\n" : std::string(1 + i % 9, 'a' + i % 26) + " dog\n";
  }
  const fs::path file = model.folder().write("lines.txt", lines);
  const Words rank = {"rank", "-m", model.path(), "a cat", "-i"}, from_file = rank + Words{file};
  const json ranking = infer_json(from_file).at(0)["ranking"];
  EXPECT_EQ(ranking.size(), 10u);
  EXPECT_EQ(infer_json(rank + Words{"-"}, {.input = lines}).at(0)["ranking"], ranking);
  const json all = infer_json(from_file + Words{"--top", "5000"}).at(0)["ranking"];
  EXPECT_EQ(all.size(), 1485u);  // blank lines are no candidates
  for (size_t i = 0; i < ranking.size(); ++i) EXPECT_EQ(all[i], ranking[i]);
}

TEST(CliRankTest, ALoneTextThatIsAFileIsNoted) {
  const BertFolder model({"relevant"});
  const std::string file = (model.folder().path() / "config.json").string();
  for (const Words& command : {Words{"rank", "q"}, Words{"classify"}}) {
    EXPECT_TRUE(contains(run_infer(command + Words{"-m", model.path(), file}).err, "is a file; -i"))
        << command[0];
  }
}

TEST(CliRankTest, SaturatedScoresAreRankedByTheirLogits) {
  const BertFolder model({"relevant"}, 1e4f);
  const json ranking =
      infer_json({"rank", "-m", model.path(), "q", "a", "b", "c", "d", "e", "f"}).at(0)["ranking"];
  for (size_t i = 1; i < ranking.size(); ++i) {
    EXPECT_GT(ranking[i - 1]["logit"].get<double>(), ranking[i]["logit"].get<double>());
  }
}

TEST(CliRankTest, WhatCannotBeRankedIsSaidInOneLine) {
  const BertFolder one({"relevant"}), three({"no", "yes", "maybe"});
  expect_infer_fails({"rank"}, 2, {"query is missing"});
  expect_infer_fails({"rank", "-m", one.path(), " ", "a"}, 2, {"query is empty"});
  for (const Words& words :
       {Words{"rank", "-m", one.path(), "q"}, Words{"classify", "-m", three.path()}}) {
    const std::string read = run_infer(words, {.input = "a dog\nno\n"}).out;
    EXPECT_NE(read, "") << words[0];
    EXPECT_EQ(read, run_infer(words + Words{"-"}, {.input = "a dog\nno\n"}).out);
  }
  expect_infer_fails({"rank", "q", "a"}, 2, {"rank: which model? -m DIR"});
  expect_infer_fails({"rank", "-m", one.path(), "-i", "f", "q", "a"}, 2, {"texts and -i"});
  expect_infer_fails({"rank", "-m", one.path(), "-i", "no/such", "q"}, 3, {"no/such"});
  expect_infer_fails({"rank", "-m", one.path(), "--top", "0", "q", "a"}, 2, {"--top", "'0'"});
  expect_infer_fails({"rank", "-m", three.path(), "q", "a"}, 4,
                     {"3 (no, yes, maybe)", "infer classify"});
}

/// Whether every number under one of `keys` has the shortest digits of a float.
void expect_short_floats(const std::string& line, const Words& keys) {
  for (const std::string& key : keys) {
    size_t found = 0;
    for (size_t at = 0; (at = line.find("\"" + key + "\":", at)) != line.npos; ++found) {
      at += key.size() + 3;
      const std::string digits = line.substr(at, line.find_first_of(",}", at) - at);
      std::array<char, 32> shortest{};
      const auto [end, problem] = std::to_chars(shortest.data(), shortest.data() + shortest.size(),
                                                std::strtof(digits.c_str(), nullptr));
      EXPECT_LE(digits.size(), static_cast<size_t>(end - shortest.data()) + 2) << key << digits;
    }
    EXPECT_GT(found, 0u) << key << " is not in " << line;
  }
}

TEST(CliClassifyTest, NumbersHaveTheDigitsOfAFloat) {
  const BertFolder model({"no", "yes", "maybe"}), reranker({"relevant"}), none({});
  expect_short_floats(run_infer({"classify", "--json", "-m", model.path(), "a dog"}).out,
                      {"probability", "logit"});
  expect_short_floats(run_infer({"rank", "--json", "-m", reranker.path(), "a", "a dog"}).out,
                      {"score", "logit"});
  expect_short_floats(run_infer({"rank", "--json", "-m", none.path(), "a", "a dog"}).out,
                      {"score"});
}

TEST(CliClassifyTest, LabelsComeWithProbabilities) {
  const BertFolder model({"no", "yes", "maybe"});
  const std::vector<json> results = infer_json({"classify", "-m", model.path(), "a dog", "rain"});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0]["text"], "a dog");
  ASSERT_EQ(results[0]["labels"].size(), 3u);
  double sum = 0;
  for (const json& label : results[0]["labels"]) sum += label["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_GE(results[0]["labels"][0]["probability"], results[0]["labels"][1]["probability"]);
  const ProgramResult text = run_infer({"classify", "-q", "-m", model.path(), "a dog", "rain"});
  const Words lines = lines_of(text.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(contains(lines[0], results[0]["labels"][0]["label"].get<std::string>() + "  a dog"));
  const auto top = infer_json({"classify", "--top", "2", "-m", model.path(), "rain"});
  EXPECT_EQ(top.at(0)["labels"].size(), 2u);
  const auto from_stdin =
      infer_json({"classify", "-m", model.path(), "-i", "-"}, {.input = "a dog\nrain\n"});
  EXPECT_EQ(from_stdin, results);
}

TEST(CliClassifyTest, APairIsAnotherInput) {
  const BertFolder model({"no", "yes"});
  const auto alone = infer_json({"classify", "-m", model.path(), "a dog"});
  const auto pair = infer_json({"classify", "-m", model.path(), "--pair", "rain", "a dog"});
  EXPECT_NE(alone.at(0)["labels"], pair.at(0)["labels"]);
  const json tokens = infer_json({"tokenize", "-m", model.path(), "--pair", "b", "a"}).at(0);
  EXPECT_EQ(tokens["pieces"], (json{"[CLS]", "a", "[SEP]", "b", "[SEP]"}));
  EXPECT_EQ(tokens["token_types"], (json{0, 0, 0, 1, 1}));
  EXPECT_EQ(tokens["text_pair"], "b");
  const ProgramResult text = run_infer({"tokenize", "-m", model.path(), "--pair", "b", "a"});
  EXPECT_EQ(lines_of(text.out).size(), 4u);
}

TEST(CliClassifyTest, AHeadThatCannotBeUsedIsTheReason) {
  const BertFolder model({"no", "yes"});
  json config = json::parse(read_text_file(model.folder().path() / "config.json"));
  config["id2label"]["2"] = "maybe";
  model.folder().write("config.json", config.dump());
  const std::string reason = "id2label names 3 labels, but its matrix has 2 rows";
  expect_infer_fails({"classify", "-m", model.path(), "q", "a"}, 4, {reason});
  const ProgramResult ranked = run_infer({"rank", "-m", model.path(), "q", "a"});
  expect_contains(ranked.err, {reason, "ranked by the cosine"});
  expect_infer_fails({"classify"}, 2, {"which model?"});
}

TEST(CliInfoTest, NamesTheHeadAndItsLabels) {
  const BertFolder model({"no", "yes"});
  const json info = infer_json({"info", model.path()}).at(0);
  EXPECT_EQ(info["classifier"]["labels"], (json{"no", "yes"}));
  EXPECT_EQ(info["classifier"]["output"], "softmax");
  EXPECT_EQ(info["classifier"]["activation"], "tanh");
  EXPECT_TRUE(info["unused_tensors"].empty());
}

/// The program's own logits for text and pair, as golden.json would have them.
void write_golden(const BertFolder& model, double logit, const json& more = json::object()) {
  json item = {{"text", "a"},
               {"text_pair", "b"},
               {"ids", {2, 4, 3, 6, 3}},
               {"token_type_ids", {0, 0, 0, 1, 1}},
               {"logits", {logit}}};
  item.update(more);
  const json golden = {{"atol", 1e-5}, {"rtol", 0}, {"items", json::array({item})}};
  model.folder().write("golden.json", golden.dump());
}

TEST(CliVerifyTest, LogitsAreComparedWithoutHiddenStates) {
  const BertFolder model({"relevant"});
  const double logit =
      infer_json({"rank", "-m", model.path(), "a", "b"}).at(0)["ranking"][0]["logit"];
  write_golden(model, logit);
  const json good = infer_json({"verify", model.path()}).at(0);
  EXPECT_EQ(good["ok"], true);
  ASSERT_EQ(good["tensors"].size(), 1u);
  EXPECT_EQ(good["tensors"][0]["tensor"], "logits");
  succeed({"verify", "--precision", "bf16", model.path()});
  write_golden(model, -logit);
  const ProgramResult opposite = run_infer({"verify", "--precision", "bf16", model.path()});
  EXPECT_EQ(opposite.exit_code, 1);
  EXPECT_TRUE(contains(opposite.out, "the mean cosine of logits is -1"));
  write_golden(model, logit + 1e-3);
  const ProgramResult other = run_infer({"verify", model.path()});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(contains(other.out, "logits of item 0 ('a') differs")) << other.out;
  write_golden(model, logit, {{"token_type_ids", {0, 0, 0, 0, 1}}});
  EXPECT_NE(run_infer({"verify", model.path()}).out.find("token types of item 0"),
            std::string::npos);
  const std::pair<json, Words> wrong[] = {
      {{{"token_type_ids", {0, 0}}}, {"token_type_ids", "each of the ids"}},
      {{{"token_type_ids", {0, 0, 0, 0, 7}}}, {"token type 7", "0 to 1"}},
      {{{"logits", json::array()}}, {"logits", "list of numbers"}},
      {{{"text_pair", 3}}, {"text_pair is 3"}}};
  for (const auto& [change, words] : wrong) {
    write_golden(model, logit, change);
    expect_infer_fails({"verify", model.path()}, 3, words);
  }
}

TEST(CliVerifyTest, ReferenceClassifiersAreRight) {
  for (const char* const name : {"bert-cross-encoder", "xlm-roberta-reranker",
                                 "distilbert-classifier", "modernbert-classifier"}) {
    PHASOR_SHARED_OR_SKIP(folder, std::string("golden2/") + name);
    const ProgramResult result = run_infer({"verify", folder});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_TRUE(contains(result.out, "logits"));
  }
}

}  // namespace
}  // namespace phasor
