// infer embed: vectors in order in three formats, sparse ones and those of tokens, odd lines,
// interrupted runs, and disks that are full.
#include <sys/stat.h>

#include <chrono>
#include <csignal>

#include "files/matrix_file.h"
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

constexpr int64_t kWidth = 128;  // of the bundled models

/// Lines that differ in length and words; `count` of them.
std::string many_lines(int count) {
  const Words words = {"Tom", "bit", "a", "dog", "and", "the", "cat", "ran"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w <= i * 7 % 13; ++w) text += words[(i + w * w) % words.size()] + " ";
    text += std::to_string(i) + "\n";
  }
  return text;
}

/// "embedding" of every line of JSON, whose "line" must count from `first`.
std::vector<float> json_values(const std::string& text, int64_t first = 1) {
  std::vector<float> values;
  for (const std::string& line : lines_of(text)) {
    const json object = json::parse(line);
    EXPECT_EQ(object["line"], first++);
    EXPECT_EQ(object.size(), 2u);
    for (const json& value : object["embedding"]) values.push_back(value.get<float>());
  }
  return values;
}

std::string dogs(int count) { return repeat("dog ", count); }

TEST(CliEmbedTest, ItSaysHowVectorsAreMade) {
  expect_contains(
      run_infer({"embed"}, {.input = many_lines(40)}).err,
      {"note: sentence vectors: mean, not normalised (the default", "40 lines, 128 numbers each"});
  expect_contains(run_infer({"embed", "--pooling", "cls", "a"}).err,
                  {"sentence vectors: cls, not normalised (--pooling)"});
  expect_alike({{"embed --prefix 'query: ' Tom dog", "embed --prompt 'query: ' Tom dog"},
                {"embed --prompt -a=b Tom", "embed --prompt=-a=b Tom"},
                {"embed --prompt -a=b Tom", "embed --prompt '' -- -a=bTom"},
                {"embed Tom dog", "embed -", "Tom\ndog\n"}});
}

TEST(CliEmbedTest, WhatComparesVectorsSaysWhyAModelHasNone) {
  const BertFolder model({});
  model.write("modules.json",
              R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.LSTM", "path": "1_LSTM"}])");
  for (const char* const how :
       {" --similarity a b", " --nearest 1 a -i " PHASOR_SOURCE_DIR "/LICENSE"})
    expect_refused({{4, "embed -m " + model.path() + how, {"LSTM"}}});
}

TEST(CliEmbedTest, AllFormatsHoldTheSame) {
  const TempFolder folder;
  const std::string in = folder.write("in.txt", many_lines(700)).string();  // more than one window
  const std::vector<float> printed = json_values(run_infer({"embed", "-q", "-i", in}).out);
  ASSERT_EQ(printed.size(), 700u * kWidth);
  for (const char* const name : {"a.npy", "a.safetensors", "a.jsonl"}) {
    const fs::path file = folder / name;
    EXPECT_EQ(succeed({"embed", "-q", "-i", in, "-o", file.string()}).out, "");
    if (file.extension() == ".jsonl") {
      expect_same_bits(json_values(read_text_file(file)), printed, name);
      continue;
    }
    const internal::TableValues table = internal::read_table(file, "");
    EXPECT_EQ(table.rows, 700);
    EXPECT_EQ(table.values, std::vector<double>(printed.begin(), printed.end())) << name;
  }
  EXPECT_EQ(file_names(folder.path()), (Words{"a.jsonl", "a.npy", "a.safetensors", "in.txt"}));
}

TEST(CliEmbedTest, AFileNamesAModelInAHubsCacheAndItsRevision) {
  const TempFolder cache;
  const fs::path commit = cache / "models--an-owner--a-model/snapshots/0123abcd";
  fs::create_directories(commit.parent_path());
  fs::copy(bundled_model("sinusoidal"), commit, fs::copy_options::recursive);
  const std::string file = (cache / "a.safetensors").string();
  succeed({"embed", "-q", "-m", commit.string(), "-o", file, "Tom bit a dog."});
  EXPECT_EQ(SafetensorsFile::open(file)->metadata(),
            (std::map<std::string, std::string>{{"model", "a-model"},
                                                {"pooling", "mean, not normalised"},
                                                {"precision", "f32"},
                                                {"revision", "0123abcd"}}));
}

TEST(CliEmbedTest, ItSaysWhatTheModelsFilesDecide) {
  const SentenceFolder model(6, "query");
  const ProgramResult result =
      succeed({"embed", "-m", model.path(), "Tom", "Tom bit a dog and ran away."});
  expect_contains(result.err, {"cls, normalised (1_Pooling/config.json)", "line 2: 8 tokens were",
                               "tokens were cut off", "before every text: \"query: \""});
}

TEST(CliEmbedTest, OddLinesAreReportedByNumberAndCounted) {
  const std::string input = "Tom\n\nbad \xff\xfe\n" + dogs(300) + "\nlast\r\n";
  const ProgramResult result = succeed({"embed"}, {.input = input});
  EXPECT_EQ(json_values(result.out).size(), 5u * kWidth);
  expect_contains(result.err, {"note: line 3: 2 bytes were not UTF-8",
                               "note: line 4: 174 tokens were cut off\n",
                               "too long and cut: 1; not all UTF-8: 1"});
  const auto many = run_infer({"embed"}, {.input = repeat(dogs(127) + "\n", 30) + "bad \xff\n"});
  expect_contains(many.err, {"line 5: 1 token was cut off\n", "further such lines are only counted",
                             "too long and cut: 30; not all UTF-8: 1"});
  for (const char* const silent : {"line 1:", "line 2:", "line 5:"})
    EXPECT_FALSE(contains(result.err, silent)) << result.err;
  EXPECT_FALSE(contains(many.err, "line 6:")) << many.err;
}

TEST(CliEmbedTest, StrictAndOverflowErrorStopAtTheLine) {
  expect_infer_fails({"embed", "-q", "--strict"}, 3, {"line 2", "UTF-8", "--strict"},
                     {.input = "Tom\n\xff\n"});
  expect_infer_fails({"embed", "-q", "--strict"}, 3, {"line 1", "cut off"}, {.input = dogs(300)});
  expect_infer_fails({"embed", "-q", "--overflow", "error"}, 3, {"line 2", "tokens", "at most 128"},
                     {.input = "Tom\n" + dogs(300)});
  succeed({"embed", "-q", "--overflow", "error"}, {.input = "\xff\n"});
}

TEST(CliEmbedTest, WindowsKeepToTheCheckpointsLengthAndClampSaysThatItDoesNot) {
  const SentenceFolder model(20, nullptr);
  const std::string text = dogs(40);
  const auto said = [&](const std::string& policy) {
    return run_infer({"embed", "-m", model.path(), "--overflow", policy, text}).err;
  };
  EXPECT_FALSE(contains(said("window"), "cut"));
  expect_contains(said("clamp"), {"--overflow clamp runs whole texts", "20 tokens"});
}

TEST(CliEmbedTest, ALengthThatSpecialTokensExceedIsTheModelsFault) {
  const SentenceFolder model(1, nullptr);
  expect_infer_fails({"embed", "-q", "-m", model.path(), "Tom"}, 4, {"max_seq_length", "is 1"});
}

TEST(CliEmbedTest, TablesOfSimilaritiesAndOfTheNearestLines) {
  const std::string input = many_lines(600) + "It rains.\nA dog bit Tom.\n";  // two windows
  const json found = json_of("embed --nearest 3 'It rains.' 'Tom bit a dog.'", {.input = input});
  EXPECT_TRUE(holds(found, json::parse(R"([
      {"query": "It rains.", "nearest": [{"line": 601, "text": "It rains."}, {}, {}]},
      {"query": "Tom bit a dog.", "nearest": [{"text": "A dog bit Tom."}, {}, {}]}])")))
      << found;
  const ProgramResult nearest =
      run_infer({"embed", "-q", "--nearest", "9", "It rains."}, {.input = "Tom\nIt rains.\n"});
  EXPECT_EQ(lines_of(nearest.out).size(), 3u) << "all lines there are";
  EXPECT_EQ(lines_of(nearest.out).at(1), "   1.000  line 2       It rains.");
  const std::string wide = "東京" + std::string(200, 'x');
  const Words lines = lines_of(run_infer({"embed", "-q", "--similarity", wide, "A dog."}).out);
  ASSERT_EQ(lines.size(), 3u);
  expect_contains(lines[1], {"1.000", "  東京xxx", "x…"});
  EXPECT_LE(lines[1].size(), 100u + 6) << "2 wide characters and … take 6 bytes more than columns";
  EXPECT_TRUE(lines[2].ends_with("A dog.")) << lines[2];
}

TEST(CliEmbedTest, SimilarityIsThatOfTheModelsFiles) {
  const SentenceFolder folder(64, nullptr);
  const std::string model = folder.path();
  const Words texts = {"Tom bit a dog.", "A dog bit Tom.", "It rains."};
  Encoder encoder(folder.load());
  const Vectors vectors = encoder.embed(texts);
  for (const std::string_view name : names<Similarity>().all) {
    const auto kind = parse<Similarity>(name);
    folder.write("config_sentence_transformers.json", json{{"similarity_fn_name", name}}.dump());
    EXPECT_EQ(json_of("info " + model)["sentence"]["similarity"], name);
    const json table = infer_json(Words{"embed", "-m", model, "--similarity"} + texts).at(0);
    EXPECT_EQ(table["texts"], texts);
    const json& values = table[kind == Similarity::kCosine ? "cosines" : std::string(name)];
    for (int i = 0; i < 9; ++i)
      EXPECT_NEAR(values.at(i / 3).at(i % 3).get<double>(),
                  similarity(vectors[i / 3], vectors[i % 3], kind), 1e-5);
    const json found = infer_json({"embed", "-m", model, "--nearest", "2", texts[0]},
                                  {.input = texts[2] + "\n" + texts[1] + "\n"})
                           .at(0)["nearest"];
    for (const json& line : found)
      EXPECT_NEAR(line[std::string(name)].get<double>(),
                  similarity(vectors[0], vectors[3 - line["line"].get<int64_t>()], kind), 1e-5);
    EXPECT_GE(found.at(0)[std::string(name)], found.at(1)[std::string(name)]);
  }
}

TEST(CliEmbedTest, NearestUsesTheModelsPromptsForQueriesAndDocuments) {
  const SentenceFolder folder(64, nullptr);
  const std::string model = folder.path();
  folder.write("config_sentence_transformers.json",
               R"({"prompts": {"query": "query: ", "passage": "passage: "}})");
  Encoder encoder(Model::load(model));
  const auto expect_cosine = [&](const std::string& options, const char* query, const char* line) {
    const json found =
        json_of("embed --nearest 1 Tom -m " + model + options, {.input = "A dog\n"})["nearest"];
    const Vectors vectors = encoder.embed({query, line});
    EXPECT_NEAR(found[0]["cosine"].get<double>(), cosine(vectors[0], vectors[1]), 1e-5) << options;
  };
  expect_cosine("", "query: Tom", "passage: A dog");
  expect_cosine(" --prefix '' --query-prefix 'q '", "q Tom", "A dog");
}

TEST(CliEmbedTest, AFifoThatNobodyWritesIntoCanBeInterrupted) {
  const TempFolder folder;
  const std::string fifo = (folder / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto begun = std::chrono::steady_clock::now();
  const auto later = [&] {
    return std::chrono::steady_clock::now() - begun > std::chrono::seconds(1);
  };
  const auto result = run_infer({"embed", "-q", "-i", fifo}, {.signal = SIGINT, .when = later});
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
}

class EmbedFileTest : public testing::Test {
 protected:
  std::string out() const { return (folder_ / "a.npy").string(); }
  Words arguments() const {
    return {"embed", "-q", "-t", "1", "-m", bert_.path(), "-i", in_.string(), "-o", out()};
  }

  const TempFolder folder_;
  const BertFolder bert_{{}};
  const fs::path in_ = folder_.write("in.txt", many_lines(20'000));  // some time
};

TEST_F(EmbedFileTest, AFullDiskOrASignalLeavesTheOldFileOrNone) {
  const auto writes = [&] { return fs::exists(out() + ".infer-tmp"); };
  for (const Words& before : {Words{"in.txt"}, {"a.npy", "in.txt"}}) {
    if (before.size() > 1) folder_.write("a.npy", "old");
    const ProgramResult full = run_infer(arguments(), {.file_size_limit = 300'000});
    EXPECT_EQ(full.exit_code, 3);
    expect_contains(full.err, {"-o: cannot write ", "a.npy: File too large"});
    EXPECT_EQ(file_names(folder_.path()), before);
    const ProgramResult stopped = run_infer(arguments(), {.signal = SIGTERM, .when = writes});
    EXPECT_EQ(stopped.exit_code, 128 + SIGTERM) << stopped.err;
    EXPECT_EQ(file_names(folder_.path()), before);
  }
  EXPECT_EQ(read_text_file(out()), "old");
}

TEST_F(EmbedFileTest, AfterAKillTheNextRunWritesTheSameBytesAndLeavesNothingElse) {
  succeed(arguments());
  const std::string whole = read_text_file(out());
  fs::remove(out());
  const auto writes = [&] { return fs::exists(out() + ".infer-tmp"); };
  const ProgramResult killed = run_infer(arguments(), {.signal = SIGKILL, .when = writes});
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
  EXPECT_EQ(file_names(folder_.path()), (Words{"a.npy.infer-tmp", "in.txt"}));
  succeed(arguments());
  EXPECT_TRUE(read_text_file(out()) == whole);
  EXPECT_EQ(file_names(folder_.path()), (Words{"a.npy", "in.txt"}));
}

TEST_F(EmbedFileTest, TheInputIsNoFileThatIsWritten) {
  for (const char* extension : {"", ".infer-tmp"}) {
    const fs::path input = folder_.write(std::string("a.npy") + extension, "Tom bit.\n");
    expect_infer_fails({"embed", "-i", input.string(), "-o", out()}, 2,
                       {input.string(), "is the input"});
    EXPECT_EQ(read_text_file(input), "Tom bit.\n");
    fs::remove(input);
  }
}

TEST(CliSparseTest, ALineShowsPiecesTheLargestWeightFirst) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const auto tokenizer = Model::load(model.path());
  const json weights = json_of("embed --sparse 'It rains.' -m " + model.path())["sparse"];
  ASSERT_GT(weights.size(), 1u);
  for (size_t w = 0; w < weights.size(); ++w) {
    EXPECT_GE(weights[0]["value"], weights[w]["value"]);
    EXPECT_EQ(weights[w]["word"], tokenizer->tokenizer().piece(weights[w]["index"]));
  }
}

TEST(CliAllVectorsTest, KindsHaveOlderNames) {
  const TokenVectorFolder model;
  model.make_bge();
  const std::string embed = "embed 'Tom bit a dog.' -m " + model.path();
  expect_alike({{embed + " --sparse", embed + " --kinds sparse"},
                {embed + " --tokens --query", embed + " --kinds tokens --role query"},
                {embed + " --sparse --tokens", embed + " --kinds dense,sparse,tokens"}});
  const std::string file = model / "a.safetensors";
  expect_noted({{embed + " It --tokens -o " + file, {"2 lines", "vectors each"}}});
}

TEST(CliSparseTest, WhatDoesNotGoTogetherIsRefused) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const std::string sparse = "embed a --sparse -m " + model.path();
  const std::string no_model = "embed a -m none ";
  const std::string nearest = "embed a --nearest 1 -m " + model.path() + " -i " + __FILE__;
  const TokenVectorFolder colbert;
  expect_refused({{2, no_model + "--sparse --similarity", {"--similarity"}},
                  {2, no_model + "--kinds dense --tokens", {"--kinds", "--tokens"}},
                  {2, sparse + " -o x.npy", {".safetensors"}},
                  {4, sparse + " --tokens", {"--sparse"}},
                  {3, sparse + " -o no/such/x.safetensors", {"no folder"}},
                  {4, "embed a --tokens", {"ColBERT"}},
                  {4, "embed a --sparse", {"SpladePooling"}},
                  {4, "embed a -m " + model.path(), {"--sparse"}},
                  {4, nearest, {"--nearest", "--sparse -o"}},
                  {4, "embed a --similarity -m " + colbert.path(), {"--similarity", "infer rank"}},
                  {4, "rank a b -m " + model.path(), {"--sparse", "a reranker"}},
                  {4, "classify a -m " + model.path(), {"infer embed --sparse"}}});
}

}  // namespace
}  // namespace phasor
