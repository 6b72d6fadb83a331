// infer rank and infer classify, and what other commands say of classification heads and pairs.
#include <regex>

#include "infer/cli/terminal.h"
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

TEST(CliRankTest, TextsComeBestFirstBelowTheQuery) {
  for (const Words& labels : {Words{"relevant"}, {}}) {
    const BertFolder model(labels);
    const std::string rank = "rank 'a dog bit me' 'a dog' 'the cat' rain -m " + model.path();
    const json best = json_of(rank)["ranking"][0];
    EXPECT_EQ(best.contains("logit"), !labels.empty());
    const ProgramResult text = run_infer(words_of(rank + " --top 2"));
    for (const char* const note : {"no classification head", "cosine"})
      EXPECT_EQ(contains(text.err, note), labels.empty()) << text.err;
    const Words lines = lines_of(text.out);
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0], "a dog bit me");
    expect_contains(lines[1], {best["text"]});
  }
}

TEST(CliLabelTest, SpansStandInTheTextOrInTheirPlaceTheirLabels) {
  const BertFolder model({"O", "B-X", "I-X", "B-\x1b"}, 9, true);
  const std::string text = "abc éd ef gh";
  Encoder encoder(Model::load(model.path()));
  const json hidden = infer_json({"label", "--redact", "-m", model.path(), text}).at(0);
  EXPECT_FALSE(hidden["labels"][0].contains("word"));
  std::string redacted;
  size_t done = 0;
  const Labels found = encoder.label(text);
  for (const LabelledSpan& each : found[0]) {
    const auto end = static_cast<size_t>(each.span.end);
    redacted += text.substr(done, static_cast<size_t>(each.span.begin) - done) + "[" +
                infer::printable(each.label) + "]";
    done = end;
  }
  redacted += text.substr(done);
  EXPECT_EQ(hidden["text"], redacted);
  const std::string out = run_infer({"label", "-q", "-m", model.path(), text}).out;
  EXPECT_FALSE(contains(out, "\x1b"));
  EXPECT_EQ(std::ranges::count(out, '['), std::ssize(found.labels) + std::ranges::count(text, '['));
  expect_refused(
      {{2, "label a", {"which model?"}},
       {2, "label a --aggregation some -m " + model.path(), {"average"}},
       {4, "label a -m none", {"ForTokenClassification", "infer embed"}},
       {4, "label a -m " + BertFolder({"a", "b"}).path(), {"whole texts", "infer classify"}},
       {4, "classify a -m " + model.path(), {"infer label"}}});
}

TEST(CliClassifyTest, ManyLabelsMakeWindowsOfFewLines) {
  if (HAS_ADDRESS_SANITIZER) GTEST_SKIP() << "the sanitizer has memory of its own";
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
  for (int i = 0; i < 1500; ++i)
    lines += i % 100 == 7 ? "\n" : std::string(1 + i % 9, 'a' + i % 26) + " dog\n";
  const fs::path file = model.write("lines.txt", lines);
  const std::string rank = "rank --json 'a cat' -m " + model.path();
  expect_alike({{rank + " -i " + file.string(), rank + " -i -", lines},
                {rank, rank + " -", lines},
                {"classify -m " + model.path(), "classify -i - -m " + model.path(), lines}});
  const json few = json_of(rank + " -i " + file.string())["ranking"];
  const json all = json_of(rank + " --top 5000 -i " + file.string())["ranking"];
  EXPECT_EQ(few.size(), 10u);
  EXPECT_EQ(all.size(), 1485u);  // blank lines are no candidates
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
}

TEST(CliRankTest, ALoneTextThatIsAFileIsNoted) {
  const BertFolder model({"relevant"});
  const std::string file = (model / "config.json").string();
  expect_noted({{"rank q " + file + " -m " + model.path(), {"is a file; -i"}},
                {"classify " + file + " -m " + model.path(), {"is a file; -i"}}});
}

TEST(CliRankTest, WhatCannotBeRankedIsSaidInOneLine) {
  const BertFolder one({"relevant"}), three({"no", "yes", "maybe"});
  const std::string rank = "rank -m " + one.path();
  expect_refused(
      {{2, "rank", {"query is missing"}},
       {2, rank + " ' ' a", {"query is empty"}},
       {2, "rank q a", {"rank: which model? -m DIR"}},
       {2, rank + " -i f q a", {"texts and -i"}},
       {3, rank + " -i no/such q", {"no/such"}},
       {2, rank + " --top 0 q a", {"--top", "'0'"}},
       {4, "rank q a -m " + three.path(), {"3 (no, yes, maybe)", "infer classify", "a reranker"}},
       {2, "classify", {"which model?"}}});
}

TEST(CliClassifyTest, NumbersHaveTheDigitsOfAFloat) {
  const BertFolder labels({"no", "yes", "maybe"}), relevance({"relevant"}), none({});
  const std::regex number("\"(probability|score|logit)\":([^,}]*)");
  for (const auto& [line, count] : {std::pair("classify --json 'a dog' -m " + labels.path(), 6),
                                    {"rank --json a 'a dog' -m " + relevance.path(), 2},
                                    {"rank --json a 'a dog' -m " + none.path(), 1}}) {
    const std::string out = run_infer(words_of(line)).out;
    const std::sregex_iterator numbers(out.begin(), out.end(), number), end;
    EXPECT_EQ(std::distance(numbers, end), count) << out;
    for (auto at = numbers; at != end; ++at) {
      const std::string digits = at->str(2);
      EXPECT_LE(digits.size(), fmt::format("{}", std::stof(digits)).size() + 2) << digits;
    }
  }
}

TEST(CliClassifyTest, TheLikeliestLabelStandsBeforeTheText) {
  const BertFolder model({"no", "yes", "maybe"});
  const std::string classify = "classify 'a dog' rain -m " + model.path();
  const json results = json_of(classify + " --top 2");
  const Words lines = lines_of(succeed(words_of(classify + " -q")).out);
  ASSERT_EQ(lines.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[i]["labels"].size(), 2u);
    expect_contains(lines[i], {results[i]["labels"][0]["label"].get<std::string>() + "  " +
                               results[i]["text"].get<std::string>()});
  }
  expect_alike(
      {{classify + " --json", "classify --json -i - -m " + model.path(), "a dog\nrain\n"}});
}

TEST(CliClassifyTest, APairIsAnotherInput) {
  const BertFolder model({"no", "yes"});
  const std::string at = " -m " + model.path();
  expect_json({{"tokenize a --pair b" + at,
                R"({"pieces": ["[CLS]", "a", "[SEP]", "b", "[SEP]"], "text_pair": "b",
                    "token_types": [0, 0, 0, 1, 1]})"},
               {"info" + at, R"({"classifier": {"labels": ["no", "yes"], "output": "softmax",
                                 "activation": "tanh"}, "unused_tensors": []})"}});
  EXPECT_EQ(lines_of(succeed(words_of("tokenize a --pair b" + at)).out).size(), 4u);
}

TEST(CliClassifyTest, AHeadThatCannotBeUsedIsTheReason) {
  const BertFolder model({"no", "yes"});
  json config = json::parse(read_text_file(model / "config.json"));
  config["id2label"]["2"] = "maybe";
  model.write_json("config.json", config);
  const std::string reason = "id2label names 3 labels, but its matrix has 2 rows";
  expect_infer_fails({"classify", "-m", model.path(), "q", "a"}, 4, {reason});
  expect_noted({{"rank q a -m " + model.path(), {reason, "ranked by the cosine"}}});
}

}  // namespace
}  // namespace phasor
