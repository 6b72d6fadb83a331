// infer embed: vectors in order in three formats, odd lines, interrupted runs, and disks that are
// full.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>

#include "phasor/phasor.h"
#include "phasor/safetensors.h"
#include "tests/support/expect_close.h"
#include "tests/support/infer_program.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kWidth = 128;  // of the bundled models

/// Lines that differ in length and words; `count` of them.
std::string many_lines(int count) {
  const std::vector<std::string> words = {"Tom", "bit", "a", "dog", "and", "the", "cat", "ran"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w <= i * 7 % 13; ++w) text += words[(i + w * w) % words.size()] + " ";
    text += std::to_string(i) + "\n";
  }
  return text;
}

/// The float32 values after a .npy file's header of 128 bytes, which must say [rows, width].
std::vector<float> npy_values(const fs::path& file, int64_t rows, int64_t width = kWidth) {
  const std::string bytes = read_text_file(file);
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                             std::to_string(rows) + ", " + std::to_string(width) + ", ), }";
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.substr(10, header.size()), header);
  std::vector<float> values(rows * width);
  EXPECT_EQ(bytes.size(), 128 + 4 * values.size());
  if (bytes.size() == 128 + 4 * values.size()) {
    if (rows > 0) std::memcpy(values.data(), bytes.data() + 128, 4 * values.size());
  }
  return values;
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

std::vector<float> library_vectors(const std::string& model, const std::vector<std::string>& texts,
                                   RunOptions options = {}) {
  Encoder encoder(Model::load(bundled_model(model)));
  if (!options.pooling) options.pooling = encoder.model().sentence().pooling;
  std::vector<float> values;
  for (const std::string& text : texts) {
    const Encoding encoding = encoder.encode(text, options);
    values.insert(values.end(), encoding.embedding(0).begin(), encoding.embedding(0).end());
  }
  return values;
}

std::string dogs(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "dog ";
  return text;
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CliEmbedTest, LinesOfStandardInputBecomeJsonInOrder) {
  const std::string input = many_lines(40);
  const ProgramResult result = run_infer({"embed"}, {.input = input});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<float> expected = library_vectors("sinusoidal", lines_of(input));
  expect_close<float, float>(json_values(result.out), expected, 1e-5, "vectors");
  EXPECT_TRUE(contains(result.err, "note: sentence vectors: mean, not normalised (the default"))
      << result.err;
  EXPECT_TRUE(contains(result.err, "40 lines, 128 numbers each")) << result.err;
  EXPECT_EQ(run_infer({"embed", "-q"}, {.input = input}).err, "");
}

TEST(CliEmbedTest, TextsMayBeArguments) {
  const ProgramResult result = run_infer({"embed", "-q", "Tom bit\na dog.", "[x]", ""});
  expect_close<float, float>(json_values(result.out),
                             library_vectors("sinusoidal", {"Tom bit\na dog.", "[x]", ""}), 1e-5,
                             "vectors");
  EXPECT_EQ(run_infer({"embed", "-q", "-"}, {.input = "a\nb"}).out,
            run_infer({"embed", "-q", "a", "b"}).out);
}

TEST(CliEmbedTest, AllFormatsHoldTheSame) {
  const TempFolder folder;
  const std::string input = many_lines(700);  // more than one window
  const std::string in = folder.write("in.txt", input).string();
  for (const char* const name : {"a.npy", "a.safetensors", "a.jsonl"}) {
    const ProgramResult result =
        run_infer({"embed", "-q", "-i", in, "-o", (folder.path() / name).string()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
  }
  const std::vector<float> npy = npy_values(folder.path() / "a.npy", 700);
  expect_same_bits(json_values(read_text_file(folder.path() / "a.jsonl")), npy, "jsonl");
  const auto file = SafetensorsFile::open(folder.path() / "a.safetensors");
  ASSERT_EQ(file->entries().size(), 1u);
  EXPECT_EQ(file->entries().at("embeddings").shape, (std::vector<int64_t>{700, kWidth}));
  expect_same_bits(file->tensor("embeddings").to_float(), npy, "safetensors");
  EXPECT_EQ(file->metadata().at("model"), "sinusoidal");
  EXPECT_TRUE(contains(file->metadata().at("pooling"), "mean, not normalised"));
  EXPECT_EQ(file->metadata().at("precision"), "f32");
  expect_same_bits(json_values(run_infer({"embed", "-q", "-i", in}).out), npy, "stdout");
  EXPECT_EQ(file_names(folder.path()),
            (std::vector<std::string>{"a.jsonl", "a.jsonl.json", "a.npy", "a.npy.json",
                                      "a.safetensors", "in.txt"}));
}

TEST(CliEmbedTest, PoolingNormAndPrefixAreChosen) {
  const std::vector<std::string> texts = {"Tom bit a dog.", "Why?"};
  const auto vectors = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"embed", "-q"});
    options.insert(options.end(), texts.begin(), texts.end());
    return json_values(run_infer(options).out);
  };
  Pooling pooling{.modes = {PoolingMode::kMax, PoolingMode::kCls}, .normalize = true};
  expect_close<float, float>(vectors({"--pooling", "max,cls", "--normalize"}),
                             library_vectors("sinusoidal", texts, {.pooling = pooling}), 1e-5,
                             "cls and max");
  pooling.normalize = false;
  expect_close<float, float>(vectors({"--pooling", "max,cls", "--no-normalize"}),
                             library_vectors("sinusoidal", texts, {.pooling = pooling}), 1e-5,
                             "not normalised");
  expect_close<float, float>(
      vectors({"--prefix", "query: "}),
      library_vectors("sinusoidal", {"query: Tom bit a dog.", "query: Why?"}), 1e-5, "prefix");
  EXPECT_TRUE(contains(run_infer({"embed", "--pooling", "cls", "a"}).err,
                       "sentence vectors: cls, not normalised (--pooling)"));
}

/// A copy of a bundled model as sentence-transformers would save it.
fs::path sentence_model(const TempFolder& folder, int64_t max_tokens, const json& prompt) {
  const fs::path copy = folder.path() / "model";
  fs::copy(bundled_model("sinusoidal"), copy, fs::copy_options::recursive);
  const auto write = [&](const std::string& name, const json& content) {
    folder.write("model/" + name, content.dump());
  };
  json modules = json::array();
  for (const std::string type : {"Transformer", "Pooling", "Normalize"}) {
    modules.push_back({{"path", type == "Pooling" ? "1_Pooling" : ""},
                       {"type", "sentence_transformers.models." + type}});
  }
  write("modules.json", modules);
  write("1_Pooling/config.json",
        {{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}});
  write("sentence_bert_config.json", {{"max_seq_length", max_tokens}});
  write("config_sentence_transformers.json",
        {{"prompts", {{"query", "query: "}}}, {"default_prompt_name", prompt}});
  return copy;
}

TEST(CliEmbedTest, TheModelsOwnFilesDecide) {
  const TempFolder folder;
  const fs::path model = sentence_model(folder, 6, "query");
  const ProgramResult result =
      run_infer({"embed", "-m", model.string(), "Tom", "Tom bit a dog and ran away."});
  const auto tokenizer = Tokenizer::load(model);
  std::vector<std::vector<int32_t>> ids;
  for (const char* const text : {"query: Tom", "query: Tom bit a dog and ran away."}) {
    ids.push_back(tokenizer->encode(text, {.max_tokens = 6}).ids);
    EXPECT_EQ(ids.back().size(), 6u);
  }
  const RunOptions pooled = {.pooling = Model::load(model)->sentence().pooling};
  const Encoding expected = Encoder(Model::load(model)).encode_ids(ids, pooled);
  std::vector<float> vectors;
  for (int i = 0; i < 2; ++i) {
    vectors.insert(vectors.end(), expected.embedding(i).begin(), expected.embedding(i).end());
  }
  expect_close<float, float>(json_values(result.out), vectors, 1e-5, "vectors");
  EXPECT_TRUE(contains(result.err, "cls, normalised (1_Pooling/config.json)")) << result.err;
  EXPECT_TRUE(contains(result.err, "line 2: 8 tokens were")) << result.err;
  EXPECT_TRUE(contains(result.err, "tokens were cut off")) << result.err;
  EXPECT_TRUE(contains(result.err, "before every text: \"query: \"")) << result.err;
  const std::vector<float> without =
      json_values(run_infer({"embed", "-q", "-m", model.string(), "--prefix", "", "Tom"}).out);
  const Encoding plain = Encoder(Model::load(model)).encode("Tom", pooled);
  expect_close<float, float>(without, plain.embedding(0), 1e-5, "without the prompt");
}

TEST(CliEmbedTest, OddLinesAreReportedByNumberAndCounted) {
  const std::string input = "Tom\n\nbad \xff\xfe\n" + dogs(300) + "\nlast\r\n";
  const ProgramResult result = run_infer({"embed"}, {.input = input});
  EXPECT_EQ(result.exit_code, 0);
  const std::vector<float> vectors = json_values(result.out);
  ASSERT_EQ(vectors.size(), 5u * kWidth);
  const std::vector<float> rows = library_vectors("sinusoidal", {"", "last"});
  expect_close(std::span(vectors).subspan(kWidth, kWidth), std::span(rows).first(kWidth), 1e-5,
               "the empty line");
  expect_close(std::span(vectors).subspan(4 * kWidth), std::span(rows).last(kWidth), 1e-5, "last");
  expect_contains(result.err, {"note: line 3: 2 bytes were not UTF-8",
                               "note: line 4: 174 tokens were cut off\n",
                               "too long and cut: 1; not all UTF-8: 1"});
  for (const char* const silent : {"line 1:", "line 2:", "line 5:"}) {
    EXPECT_FALSE(contains(result.err, silent)) << result.err;
  }
}

TEST(CliEmbedTest, TheFirstOddLinesAreReportedOneByOne) {
  std::string input;
  for (int i = 0; i < 30; ++i) input += dogs(127) + "\n";
  const ProgramResult result = run_infer({"embed"}, {.input = input + "bad \xff\n"});
  expect_contains(result.err,
                  {"line 5: 1 token was cut off\n", "further such lines are only counted",
                   "too long and cut: 30; not all UTF-8: 1"});
  EXPECT_FALSE(contains(result.err, "line 6:")) << result.err;
}

TEST(CliEmbedTest, AByteOrderMarkIsNoText) {
  const ProgramResult marked = run_infer({"embed", "-q"}, {.input = "\xEF\xBB\xBFTom\na\n"});
  EXPECT_EQ(marked.out, run_infer({"embed", "-q"}, {.input = "Tom\na\n"}).out);
}

TEST(CliEmbedTest, StrictAndOverflowErrorStopAtTheLine) {
  expect_infer_fails({"embed", "-q", "--strict"}, 3, {"line 2", "UTF-8", "--strict"},
                     {.input = "Tom\n\xff\n"});
  expect_infer_fails({"embed", "-q", "--strict"}, 3, {"line 1", "cut off"}, {.input = dogs(300)});
  expect_infer_fails({"embed", "-q", "--overflow", "error"}, 3, {"line 2", "tokens", "at most 128"},
                     {.input = "Tom\n" + dogs(300)});
  EXPECT_EQ(run_infer({"embed", "-q", "--overflow", "error"}, {.input = "\xff\n"}).exit_code, 0);
}

TEST(CliEmbedTest, WindowsKeepToTheCheckpointsLengthAndClampSaysThatItDoesNot) {
  const TempFolder folder;
  const std::string model = sentence_model(folder, 20, nullptr).string(), text = dogs(40);
  const auto run = [&](const std::string& policy) {
    return run_infer({"embed", "-m", model, "--overflow", policy, text});
  };
  Encoder encoder(Model::load(model));
  const Embeddings expected =
      encoder.embed(text, {.max_tokens = 20, .overflow = Overflow::kWindow});
  const ProgramResult window = run("window"), clamp = run("clamp");
  expect_close<float, float>(json_values(window.out), expected[0], 1e-5, "windows");
  EXPECT_FALSE(contains(window.err, "cut")) << window.err;
  expect_contains(clamp.err, {"--overflow clamp runs whole texts", "20 tokens"});
  EXPECT_NE(json_values(clamp.out), json_values(window.out));
}

TEST(CliEmbedTest, ALengthThatSpecialTokensExceedIsTheModelsFault) {
  const TempFolder folder;
  const std::string model = sentence_model(folder, 1, nullptr).string();
  expect_infer_fails({"embed", "-q", "-m", model, "Tom"}, 4, {"max_seq_length", "is 1"});
}

TEST(CliEmbedTest, ALineWithoutEndIsReadUpToALimit) {
  const std::string endless(3 << 20, 'x');
  const ProgramResult result = run_infer({"embed"}, {.input = endless + "\nTom\n"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json_values(result.out).size(), 2u * kWidth);
  EXPECT_TRUE(contains(result.err, "line 1: its end, 2097152 bytes, was left out")) << result.err;
}

TEST(CliEmbedTest, NoLinesGiveAnEmptyMatrix) {
  const TempFolder folder;
  const fs::path npy = folder.path() / "none.npy";
  EXPECT_EQ(run_infer({"embed", "-q", "-o", npy.string()}).exit_code, 0);
  EXPECT_TRUE(npy_values(npy, 0).empty());
  const fs::path safetensors = folder.path() / "none.safetensors";
  EXPECT_EQ(run_infer({"embed", "-q", "-o", safetensors.string()}).exit_code, 0);
  EXPECT_EQ(SafetensorsFile::open(safetensors)->entries().at("embeddings").shape,
            (std::vector<int64_t>{0, kWidth}));
  EXPECT_EQ(run_infer({"embed", "-q"}).out, "");
}

TEST(CliEmbedTest, SimilarityIsTheCosineOfTheVectors) {
  const std::vector<std::string> texts = {"Tom bit a dog.", "A dog bit Tom.", "It rains."};
  const json object = infer_json({"embed", "--similarity", texts[0], texts[1], texts[2]}).at(0);
  EXPECT_EQ(object["texts"], texts);
  const std::vector<float> vectors = library_vectors("sinusoidal", texts);
  const auto row = [&](int i) { return std::span(vectors).subspan(i * kWidth, kWidth); };
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      EXPECT_NEAR(object["cosines"][i][j].get<double>(), cosine(row(i), row(j)), 1e-5);
    }
  }
  const ProgramResult table =
      run_infer({"embed", "-q", "--similarity", "東京" + std::string(200, 'x'), "A dog bit Tom."});
  const std::vector<std::string> lines = lines_of(table.out);
  ASSERT_EQ(lines.size(), 3u);
  expect_contains(lines[1], {"1.000", "  東京xxx", "x…"});
  EXPECT_LE(lines[1].size(), 100u + 6) << "2 wide characters and … take 6 bytes more than columns";
  EXPECT_TRUE(lines[2].ends_with("A dog bit Tom.")) << table.out;
}

TEST(CliEmbedTest, SimilarityIsThatOfTheModelsFiles) {
  const TempFolder folder;
  const std::string model = sentence_model(folder, 64, nullptr).string();
  const std::vector<std::string> texts = {"Tom bit a dog.", "A dog bit Tom.", "It rains."};
  Encoder encoder(Model::load(model));
  const Embeddings vectors = encoder.embed(texts);
  for (const std::string_view name : names<Similarity>().all) {
    const auto kind = parse<Similarity>(name);
    folder.write("model/config_sentence_transformers.json",
                 json{{"similarity_fn_name", name}}.dump());
    EXPECT_EQ(infer_json({"info", model}).at(0)["sentence"]["similarity"], name);
    const json table =
        infer_json({"embed", "-m", model, "--similarity", texts[0], texts[1], texts[2]}).at(0);
    const json& values = table[kind == Similarity::kCosine ? "cosines" : std::string(name)];
    EXPECT_NEAR(values.at(0).at(2).get<double>(), similarity(vectors[0], vectors[2], kind), 1e-5);
    const json found = infer_json({"embed", "-m", model, "--nearest", "2", texts[0]},
                                  {.input = texts[2] + "\n" + texts[1] + "\n"})
                           .at(0)["nearest"];
    for (const json& line : found) {
      const int64_t text = 3 - line["line"].get<int64_t>();
      EXPECT_NEAR(line[std::string(name)].get<double>(),
                  similarity(vectors[0], vectors[text], kind), 1e-5);
    }
    EXPECT_GE(found.at(0)[std::string(name)], found.at(1)[std::string(name)]);
    const Ranking ranking = Encoder(Model::load(model)).rank(texts[0], texts);
    EXPECT_NEAR(ranking.scores.at(1), similarity(vectors[0], vectors[1], kind), 1e-5);
  }
}

TEST(CliEmbedTest, NearestLinesComeFirstWithNumberAndCosine) {
  const TempFolder folder;
  const std::string input = many_lines(600) + "It rains.\nA dog bit Tom.\n";  // two windows
  const std::string file = folder.write("in.txt", input).string();
  const std::vector<std::string> lines = lines_of(input);
  const std::vector<json> found =
      infer_json({"embed", "-i", file, "--nearest", "3", "It rains.", "Tom bit a dog."});
  ASSERT_EQ(found.size(), 2u);
  Encoder encoder(Model::load("sinusoidal"));
  const Embeddings vectors = encoder.embed(lines),
                   queries = encoder.embed({"It rains.", "Tom bit a dog."});
  for (int q = 0; q < 2; ++q) {
    std::vector<double> cosines;
    for (int64_t i = 0; i < vectors.size(); ++i) cosines.push_back(cosine(queries[q], vectors[i]));
    std::ranges::sort(cosines, std::greater());
    ASSERT_EQ(found[q]["nearest"].size(), 3u);
    for (int n = 0; n < 3; ++n) {
      const json& line = found[q]["nearest"][n];
      EXPECT_NEAR(line["cosine"].get<double>(), cosines[n], 1e-5);
      EXPECT_EQ(line["text"], lines.at(line["line"].get<size_t>() - 1));
    }
  }
  EXPECT_EQ(found[0]["query"], "It rains.");
  EXPECT_EQ(found[0]["nearest"][0]["line"], 601);
  const ProgramResult table =
      run_infer({"embed", "-q", "--nearest", "9", "It rains."}, {.input = "Tom\nIt rains.\n"});
  EXPECT_EQ(lines_of(table.out).size(), 3u) << "all lines there are";
  EXPECT_EQ(lines_of(table.out).at(1), "   1.000  line 2       It rains.");
}

TEST(CliEmbedTest, NearestUsesTheModelsPromptsForQueriesAndDocuments) {
  const TempFolder folder;
  const std::string model = sentence_model(folder, 64, nullptr).string();
  folder.write("model/config_sentence_transformers.json",
               R"({"prompts": {"query": "query: ", "passage": "passage: "}})");
  const auto cosine_of = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"embed", "-m", model, "--nearest", "1", "Tom"});
    const json found = infer_json(options, {.input = "A dog\n"}).at(0);
    return found["nearest"][0]["cosine"].get<double>();
  };
  Encoder encoder(Model::load(model));
  const auto expected = [&](const char* query, const char* line) {
    const Embeddings vectors = encoder.embed({query, line});
    return cosine(vectors[0], vectors[1]);
  };
  EXPECT_NEAR(cosine_of({}), expected("query: Tom", "passage: A dog"), 1e-5);
  EXPECT_NEAR(cosine_of({"--prefix", "", "--query-prefix", "q "}), expected("q Tom", "A dog"),
              1e-5);
}

TEST(CliEmbedTest, AFifoThatNobodyWritesIntoCanBeInterrupted) {
  const TempFolder folder;
  const std::string fifo = (folder.path() / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const auto start = std::chrono::steady_clock::now();
  const auto later = [&] {
    return std::chrono::steady_clock::now() - start > std::chrono::seconds(1);
  };
  const ProgramResult result =
      run_infer({"embed", "-q", "-i", fifo}, {.signal = SIGINT, .when = later});
  EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
}

TEST(CliEmbedTest, WhatDoesNotFitTogetherIsAUsageError) {
  expect_infer_fails({"embed", "-i", "a.txt", "Tom"}, 2, {"-i exclude"});
  expect_infer_fails({"embed", "--normalize", "--no-normalize", "a"}, 2, {"exclude"});
  expect_infer_fails({"embed", "--prefix", "a\xFF", "Tom"}, 2, {"--prefix", "not valid UTF-8"});
  expect_infer_fails({"embed", "--resume"}, 2, {"--resume", "-o"});
  expect_infer_fails({"embed", "--resume", "-o", "a.npy", "Tom"}, 2, {"--resume", "-i"});
  expect_infer_fails({"embed", "--similarity"}, 2, {"--similarity", "give texts"});
  expect_infer_fails({"embed", "--similarity", "-i", "a.txt"}, 2, {"--similarity", "--nearest 3"});
  expect_infer_fails({"embed", "--nearest", "3", "-i", "a.txt"}, 2, {"--nearest", "give texts"});
  expect_infer_fails({"embed", "--nearest", "3", "-o", "a.npy", "a"}, 2, {"--nearest", "-o"});
  expect_infer_fails({"embed", "--nearest", "3", "-"}, 2, {"--nearest", "standard input"});
  expect_infer_fails({"embed", "--query-prefix", "q", "a"}, 2, {"--query-prefix", "--nearest"});
  expect_infer_fails({"embed", "-o", "a.txt"}, 2, {"a.txt", ".safetensors"});
  expect_infer_fails({"embed", "--pooling", "average", "a"}, 2,
                     {"--pooling", "average", "lasttoken"});
  expect_infer_fails({"embed", "--overflow", "wrap", "a"}, 2, {"--overflow", "wrap", "window"});
}

TEST(CliEmbedTest, FilesThatCannotBeReadOrWrittenAreNamed) {
  const TempFolder folder;
  const std::string path = folder.path().string();
  expect_infer_fails({"embed", "-q", "-i", path + "/none.txt"}, 3, {"none.txt", "no such file"});
  expect_infer_fails({"embed", "-q", "-i", path}, 3, {path, "Is a directory"});
  expect_infer_fails({"embed", "-q", "-o", path + "/none/a.npy"}, 3,
                     {"a.npy", "there is no folder " + path + "/none"});
  fs::create_directory(folder.path() / "b.npy");
  expect_infer_fails({"embed", "-q", "-o", path + "/b.npy"}, 3, {"b.npy", "Is a directory"});
  EXPECT_EQ(file_names(folder.path()), std::vector<std::string>{"b.npy"});
}

/// What is the same for every format is tested with one; PartialFileTest has all.
class EmbedFileTest : public testing::Test {
 protected:
  static constexpr const char* kName = "a.npy";
  EmbedFileTest() : in_(folder_.write("in.txt", many_lines(2600))) {}

  std::string out() const { return (folder_.path() / kName).string(); }
  fs::path partial() const { return out() + ".partial"; }
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"embed", "-t", "1", "-i", in_.string(), "-o", out()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// What an uninterrupted run writes.
  std::string whole() const {
    const TempFolder elsewhere;
    const std::string file = (elsewhere.path() / kName).string();
    EXPECT_EQ(run_infer({"embed", "-q", "-t", "1", "-i", in_.string(), "-o", file}).exit_code, 0);
    return read_text_file(file);
  }
  /// Runs until some lines are done, then sends the signal.
  ProgramResult interrupt(int signal, const std::vector<std::string>& more = {}) const {
    const fs::path record = out() + ".partial.json";
    const auto some_done = [&] {
      return fs::exists(record) && json::parse(std::ifstream(record))["lines"] > 0;
    };
    return run_infer(arguments(more), {.signal = signal, .when = some_done});
  }

  TempFolder folder_;
  fs::path in_;
};

TEST_F(EmbedFileTest, ARunThatIsKilledAndResumedGivesTheSameBytes) {
  const std::string expected = whole();
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    const ProgramResult killed = interrupt(signal);
    ASSERT_EQ(killed.exit_code, 128 + signal) << killed.err;
    EXPECT_FALSE(fs::exists(out()));
    ASSERT_TRUE(fs::exists(partial()));
    if (signal != SIGKILL) {
      EXPECT_TRUE(contains(killed.err, "--resume continues there")) << killed.err;
    }
    const ProgramResult resumed = run_infer(arguments({"--resume"}));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(contains(resumed.err, "resuming after line ")) << resumed.err;
    EXPECT_FALSE(contains(resumed.err, "2600 lines, ")) << "nothing was resumed: " << resumed.err;
    EXPECT_TRUE(read_text_file(out()) == expected);
    EXPECT_EQ(file_names(folder_.path()),
              (std::vector<std::string>{kName, std::string(kName) + ".json", "in.txt"}));
    fs::remove(out());
  }
}

TEST_F(EmbedFileTest, ANameThatIsNotUtf8CanBeResumedWith) {
  const fs::path model = folder_.path() / "model\xFF";
  fs::copy(PHASOR_SOURCE_DIR "/models/sinusoidal", model);
  interrupt(SIGINT, {"-m", model.string()});
  const ProgramResult resumed = run_infer(arguments({"-m", model.string(), "--resume"}));
  EXPECT_TRUE(contains(resumed.err, "resuming after line ")) << resumed.err;
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(EmbedFileTest, ARunWithoutResumeBeginsAgain) {
  interrupt(SIGINT);
  ASSERT_TRUE(fs::exists(partial()));
  const ProgramResult result = run_infer(arguments());
  EXPECT_TRUE(contains(result.err, "2600 lines, ")) << result.err;
  EXPECT_TRUE(read_text_file(out()) == whole());
  EXPECT_FALSE(fs::exists(partial()));
}

TEST_F(EmbedFileTest, ResumingWithOtherOptionsOrInputSaysWhatDiffers) {
  interrupt(SIGINT);
  const std::string before = read_text_file(partial());
  const auto refused = [&](const std::vector<std::string>& more,
                           const std::vector<std::string>& words) {
    std::vector<std::string> all = arguments({"-q", "--resume"});
    all.insert(all.end(), more.begin(), more.end());
    expect_infer_fails(all, 3, words);
    EXPECT_TRUE(read_text_file(partial()) == before);
  };
  refused({"--pooling", "cls"}, {"pooling \"mean, not normalised\" (now \"cls"});
  refused({"--normalize"}, {"(now \"mean, normalised"});
  refused({"-m", "learned"}, {" of sinusoidal (now ", " of learned)"});
  refused({"--prefix", "query: "}, {"prefix", "\"query: \""});
  refused({"--overflow", "clamp"}, {"overflow truncate", "clamp"});
  refused({"--precision", "bf16"}, {"precision f32", "bf16"});
  std::string changed = read_text_file(in_);
  changed[0] = 'X';
  folder_.write("in.txt", changed);
  refused({}, {"the first", "lines of", "are not those"});
  folder_.write("in.txt", "Tom\n");
  refused({}, {"has 1 lines, and ", "was made from "});
  folder_.write(fs::path(out()).filename().string() + ".partial.json", "{");
  refused({}, {"damaged"});
  const std::string deep =
      "{\"lines\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  folder_.write(fs::path(out()).filename().string() + ".partial.json", deep);
  refused({}, {"damaged"});
}

TEST_F(EmbedFileTest, AFileWithHolesIsNotReadToItsEnd) {
  const std::string name = (folder_.path() / "v.jsonl").string();
  const std::vector<std::string> command = {"embed",    "-q", "-i", in_.string(),
                                            "--resume", "-o", name};
  ASSERT_EQ(run_infer(command, {.file_size_limit = 3'000'000}).exit_code, 3);
  json record = json::parse(read_text_file(name + ".partial.json"));
  record["bytes"] = int64_t{1} << 38;
  folder_.write("v.jsonl.partial.json", record.dump());
  fs::resize_file(name + ".partial", int64_t{1} << 38);
  expect_infer_fails(command, 3, {"--resume", "274877906944 bytes", "are not"});
}

TEST_F(EmbedFileTest, TheInputIsNoFileThatIsWritten) {
  for (const char* extension : {"", ".json", ".partial", ".partial.json", ".partial.json.tmp"}) {
    const fs::path input = folder_.write(std::string(kName) + extension, "Tom bit.\n");
    expect_infer_fails({"embed", "-i", input.string(), "-o", out()}, 2,
                       {input.string(), "is the input"});
    EXPECT_EQ(read_text_file(input), "Tom bit.\n");
    fs::remove(input);
  }
}

TEST_F(EmbedFileTest, AFullDiskLeavesNoFileOfThatNameAndCanBeResumed) {
  const std::string expected = whole();
  // Room for one window of 1024 lines, not for two.
  const ProgramResult full = run_infer(arguments({"-q"}), {.file_size_limit = 800000});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_EQ(lines_of(full.err).size(), 1u) << full.err;
  EXPECT_TRUE(contains(full.err, "File too large") && contains(full.err, "--resume")) << full.err;
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_EQ(run_infer(arguments({"-q", "--resume"})).exit_code, 0);
  EXPECT_TRUE(read_text_file(out()) == expected);
}

TEST_F(EmbedFileTest, AFullDiskBeforeTheFirstLinesLeavesNothing) {
  const ProgramResult full = run_infer(arguments({"-q"}), {.file_size_limit = 2000});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_EQ(file_names(folder_.path()), std::vector<std::string>{"in.txt"});
}

TEST_F(EmbedFileTest, ResumingBeginsWhatWasNeverBegunAndLeavesWhatIsComplete) {
  const ProgramResult begun = run_infer(arguments({"--resume"}));
  EXPECT_TRUE(contains(begun.err, "nothing to resume; beginning with line 1")) << begun.err;
  EXPECT_TRUE(read_text_file(out()) == whole());
  const ProgramResult complete = run_infer(arguments({"--resume"}));
  EXPECT_EQ(complete.exit_code, 0);
  EXPECT_TRUE(complete.err.ends_with("note: nothing to resume: " + out() + " is complete\n"));
  EXPECT_TRUE(read_text_file(out()) == whole());
}

TEST_F(EmbedFileTest, ResumingAFileThatIsCompleteRefusesWhatWouldMakeAnother) {
  ASSERT_EQ(run_infer(arguments({"-q"})).exit_code, 0);
  const std::string made = read_text_file(out()), record = read_text_file(out() + ".json");
  const auto refused = [&](const std::vector<std::string>& more,
                           const std::vector<std::string>& words) {
    std::vector<std::string> all = arguments({"-q", "--resume"});
    all.insert(all.end(), more.begin(), more.end());
    expect_infer_fails(all, 3, words);
  };
  refused({"--pooling", "cls"}, {"is complete", "pooling \"mean, not normalised\"", "now \"cls"});
  refused({"-m", "learned"}, {"is complete", "weights", " of learned)"});
  const std::string lines = read_text_file(in_);
  for (const std::string& other : {lines + "one more\n", "X" + lines, std::string("Tom\n")}) {
    folder_.write("in.txt", other);
    refused({}, {"is complete", "made from 2600 lines"});
  }
  folder_.write("in.txt", lines);
  EXPECT_TRUE(read_text_file(out()) == made);
  // Its last step may be all that is left.
  fs::rename(out() + ".json", out() + ".partial.json");
  EXPECT_EQ(run_infer(arguments({"-q", "--resume"})).exit_code, 0);
  EXPECT_EQ(read_text_file(out() + ".json"), record);
  std::string changed = made;
  changed.back() ^= 1;
  folder_.write(kName, changed);
  refused({}, {"has changed"});
  fs::remove(out() + ".json");
  refused({}, {"no record"});
}

TEST_F(EmbedFileTest, AFileThatIsNoRecordIsNotReplacedByOne) {
  folder_.write(std::string(kName) + ".json", R"({"mine": 1})");
  expect_infer_fails(arguments({"-q"}), 3, {out() + ".json", "would be replaced"});
  EXPECT_EQ(file_names(folder_.path()),
            (std::vector<std::string>{std::string(kName) + ".json", "in.txt"}));
}

}  // namespace
}  // namespace phasor
