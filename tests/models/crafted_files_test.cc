// Model folders whose files are made to hang, crash or exhaust a program that reads them.
#include <sys/stat.h>

#include "files/file_kinds.h"
#include "files/files.h"
#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"
#include "tests/support/tokenizer_folder.h"
#include "tokenizer/files/readers.h"

namespace phasor {
using namespace internal;

namespace {

/// Nobody writes to it: who opens it to read waits for ever.
fs::path make_fifo(const fs::path& file) {
  fs::create_directories(file.parent_path());
  EXPECT_EQ(mkfifo(file.c_str(), 0600), 0) << file;
  return file;
}

TEST(PlainFileTest, NothingWaitsForAFifoOrReadsADevice) {
  const TempFolder folder;
  const fs::path fifo = make_fifo(folder / "fifo");
  const fs::path zero = folder / "zero";
  fs::create_symlink("/dev/zero", zero);
  for (const fs::path& file : {fifo, zero, folder.path()}) {
    EXPECT_REFUSED(read_file(file), {file.string(), "not a plain file"});
    EXPECT_REFUSED(read_json_object(file), {file.string()});  // the link, too
    EXPECT_EQ(file_head(file), "");
  }
  EXPECT_REFUSED(find_model(fifo), {"not a folder"});
}

TEST(PlainFileTest, AFifoIsNotWaitedFor) {
  const auto load_with_fifo = [](const char* name) {
    const BertFolder bert{{}};
    const fs::path file = bert / name;
    fs::remove(file);
    make_fifo(file);
    const auto model = Model::load(bert.path());
    model->sentence();
    model->tokenizer();
  };
  for (const char* const name :
       {"config.json", "model.safetensors", "tokenizer_config.json", "tokenizer.json", "vocab.txt",
        "modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"})
    EXPECT_REFUSED(load_with_fifo(name), {name});
  // Not read beside the others.
  for (const char* const name :
       {"snapshots/a/config.json", "vocab.json", "tokenizer.model", "model.safetensors.index.json"})
    EXPECT_NO_THROW(load_with_fifo(name)) << name;
}

TEST(PlainFileTest, AFilePastTheLimitIsNotRead) {
  const TempFolder folder;
  const fs::path file = folder.write("config.json", "{}");
  fs::resize_file(file, kMaxConfig + 1);  // takes no room
  EXPECT_REFUSED(read_json_object(file), {"16777217 bytes", "16777216"});
  fs::resize_file(file, int64_t{1} << 40);
  EXPECT_REFUSED(read_file(file), {"1099511627776 bytes"});
}

TEST(PlainFileTest, LinksInALoopAreAFileThatCannotBeRead) {
  const TempFolder folder;
  fs::create_symlink("config.json", folder / "config.json");
  fs::create_directory_symlink(".", folder / "self");
  EXPECT_REFUSED(read_file(folder / "config.json"), {"config.json", "symbolic links"});
  EXPECT_REFUSED(Model::load(folder.path()), {"config.json", "symbolic links"});
  EXPECT_REFUSED(Model::load(folder / "config.json"), {"config.json"});
}

TEST(ParseJsonTest, ManyObjectsTakeTheTimeOfReadingThem) {
  const std::string text = "[" + repeat("{},", 400'000) + "{}]";
  // A minute and more where each looks through all others.
  expect_cpu_seconds_below(10, [&] { EXPECT_EQ(parse_json(text, "it")->size(), 400'001u); });
}

TEST(ParseJsonTest, DepthAndTheNumberOfValuesAreBounded) {
  for (const int64_t most : {2, 1000}) {
    const auto parse = [&](int64_t zeros) {
      parse_json("[" + repeat("0,", zeros - 1) + "0]", "it", most);
    };
    EXPECT_NO_THROW(parse(most - 1));  // besides the list itself
    EXPECT_REFUSED(parse(most), {"it: ", std::to_string(most)});
  }
  const TempFolder folder;
  const fs::path file = folder.write("config.json", "[" + repeat("0,", kMaxConfigValues) + "0]");
  EXPECT_REFUSED(read_json(file), {"config.json: ", std::to_string(kMaxConfigValues)});
  for (const auto& brackets : {std::pair("[", "]"), {"{\"k\":", "}"}}) {
    const char *const open = brackets.first, *const close = brackets.second;
    const std::string core = *open == '[' ? "" : "0";
    const auto nested = [&](int64_t depth) {
      return repeat(open, depth) + core + repeat(close, depth);
    };
    EXPECT_EQ(parse_json(nested(64), "it")->dump(), nested(64));
    for (const int64_t depth : {int64_t{65}, int64_t{100'000}, int64_t{3'000'000}})
      EXPECT_REFUSED(parse_json(nested(depth), "it"), {"it: ", "64 deep"});
    EXPECT_REFUSED(parse_json(repeat(open, 1'000'000), "it"), {"64 deep"});
  }
}

TEST(ParseJsonTest, WhatIsNoJsonAndAKeyThatIsThereTwiceIsAModelError) {
  for (const char* const text : {"", "{", "{}{}", "[1] 2", "1e999", "[-1e999]", "{\"a\" 1}",
                                 "\"\xff\"", "{\"\xff\":1}", "nul", "\x01"})
    EXPECT_REFUSED(parse_json(text, "it"), {"it: ", "not valid JSON"});
  for (const char* const text :
       {R"({"a": 1, "a": 1})", R"([{"b": {"a": 1, "c": {}, "a": 2}}])", R"([[{"a": [], "a": []}]])",
        R"({"x": {"a": 1}, "a": {}, "y": [], "a": 3})"})
    EXPECT_REFUSED(parse_json(text, "it"), {"the key \"a\" is there twice"});
  EXPECT_NO_THROW(parse_json(R"([{"a": 1}, {"a": {"a": 1}, "b": {"a": 2}}])", "it"));
}

TEST(ReadJsonTest, NumbersThatPythonAloneWritesHaveNoTypeButAName) {
  const TempFolder folder;
  const auto read = [&](const std::string& text) {
    return read_json(folder.write("config.json", text)).take();
  };
  const json list =
      read("[-0, NaN, -0.0, 0,\n\"NaN \\\" -Infinity\", -0, Infinity\r\n, [-Infinity]]");
  EXPECT_EQ(list[0], 0);
  EXPECT_TRUE(list[0].is_number_integer());
  EXPECT_EQ(value_text(list[1]), "NaN (line 1)");
  EXPECT_TRUE(list[1].is_binary());
  EXPECT_EQ(list[2], -0.0);
  EXPECT_EQ(list[3], 0);
  EXPECT_EQ(list[4], "NaN \" -Infinity");
  EXPECT_TRUE(list[5].is_number_integer());
  EXPECT_EQ(value_text(list[6]), "Infinity (line 2)");
  EXPECT_EQ(value_text(list[7]), "[-Infinity (line 3)]");
  const json behind_floats = read("[1e-05, 1E-0, -0e0, NaN, -0, Infinity]");
  EXPECT_EQ(behind_floats[0], 1e-05);
  EXPECT_EQ(value_text(behind_floats[3]), "NaN (line 1)");
  EXPECT_EQ(behind_floats[4], 0);
  EXPECT_EQ(value_text(behind_floats[5]), "Infinity (line 1)");
  const std::string many = "[" + repeat("-0,", 300'000) + "NaN]";
  expect_cpu_seconds_below(5, [&] { EXPECT_EQ(read(many).size(), 300'001u); });
  for (const std::string text : {"[NaN", "[NaNs]", "[1NaN]", "[--Infinity]", "[-NaN]", "[+NaN]",
                                 "{NaN: 1}", "[NaN NaN]", "nan", "[inf]", "[\"NaN]", "[-01, NaN]"})
    EXPECT_REFUSED(read(text), {"config.json: not valid JSON from byte "});
  EXPECT_REFUSED(read("[NaN, 1, }"), {"byte 10"});
  EXPECT_REFUSED(read("[" + repeat("NaN,", kMaxConfigValues) + "0]"),
                 {std::to_string(kMaxConfigValues)});
  for (const char* const strict : {"NaN", "[Infinity]"})
    EXPECT_REFUSED(parse_json(strict, "it"), {"it: not valid JSON"});
}

TEST(ModelFolderTest, ANumberThatJsonDoesNotHaveIsNamedWhereItDecidesAndReadWhereItDoesNot) {
  const BertFolder bert{{"bad", "good"}};
  bert.write_files(
      {{"modules.json", modules_of({"Transformer", "Pooling"})},
       {"1_Pooling/config.json",
        {{"word_embedding_dimension", 12}, {"pooling_mode_cls_token", true}}},
       {"sentence_bert_config.json", {{"max_seq_length", 12}}},
       {"config_sentence_transformers.json", {{"prompts", {{"query", "a"}}}}},
       {"tokenizer_config.json", {{"do_lower_case", true}, {"model_max_length", 16}}}});
  const auto vector = [&] {
    return Encoder(Model::load(bert.path()), {.threads = 1}).embed("a b").dense;
  };
  const std::vector<float> expected = vector();
  int64_t refused = 0;
  for (const std::string name :
       {"config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json",
        "config_sentence_transformers.json", "tokenizer_config.json"}) {
    const std::string good = read_text_file(bert / name);
    json root = json::parse(good);
    if (root.is_object()) root["time_step_limit"] = {0, 1};  // decides nothing
    refused += expect_literals_named(root, name, "Infinity", [&](const std::string& text) {
      bert.write(name, text);
      EXPECT_EQ(vector(), expected);
    });
    bert.write(name, good);
  }
  EXPECT_GE(refused, 15);
}

/// A value and those within it are quoted by the beginning of their JSON.
void expect_quoted(const json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  EXPECT_EQ(value_text(value), text);
  if (value.is_structured()) std::ranges::for_each(value, expect_quoted);
}

TEST(ParseJsonTest, EveryValueIsReadAsItIsAndQuotedByTheBeginningOfItsJson) {
  for (const char* const file : {"added_tokens.json", "keys_written.json", "tokenizers.json"}) {
    const std::string text = read_text_file(fixture(file));
    const json value = json::parse(text);
    EXPECT_EQ(*parse_json(text, "it"), value) << file;
    EXPECT_EQ(*parse_json(value.dump(2), "it"), value) << file;
    expect_quoted(value);
  }
  expect_quoted(json::parse(R"([-7, 4e-300, 18446744073709551615, "\"\u00e9\n", [[]], {"": {}}])"));
}

TEST(ValueTextTest, ALargeValueCostsNoMoreThanASmallOne) {
  json large = json::array();
  for (int i = 0; i < 100'000; ++i) large.push_back({{"key", std::string(20, 'x')}});
  const json text(std::string(1'000'000, 'x'));
  expect_cpu_seconds_below(5, [&] {
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(value_text(large).size(), 60u);
      ASSERT_EQ(value_text(text).size(), 60u);
    }
  });
}

TEST(VocabJsonTest, OnlyOneFlatObjectOfIdsIsRead) {
  const TempFolder folder;
  const auto read = [&](std::string_view text) {
    return read_vocab_json(folder.write("vocab.json", text));
  };
  EXPECT_EQ(read(R"({"": 0, "a": 1})").size(), 2u);
  EXPECT_EQ(read(R"({"a": 4194303})")[0].second, 4194303);
  for (const std::string& text :
       {std::string(R"({"a": 4194304})"), std::string(R"({"a": 4294967297})"),
        std::string(R"({"a": 1} {"b": 2})"), std::string(R"({"a": 1} 3)"),
        std::string(R"({"a": {}})"), std::string(R"({"a": -1})"), std::string(R"({"a": 1e999})"),
        std::string("[]"), repeat("[", 1'000'000), repeat("{\"a\":", 1'000'000), std::string()})
    EXPECT_REFUSED(read(text), {"vocab.json"});
  EXPECT_REFUSED(read("{" + repeat("\"\":1,", 1 << 22) + "\"\":1}"), {"vocab.json", "4194304"});
}

constexpr const char* kModelFiles[] = {"config.json", "model.safetensors", "tokenizer.model"};

/// A model whose file `name` is a link to `target`; everything that is read of it.
void load_with_link(const char* name, const fs::path& target, bool follow_links = true) {
  const TinyModel folder("learned");
  fs::create_directory(folder / "below");
  fs::rename(folder / name, folder / "below" / name);
  fs::create_symlink(target, folder / name);
  Model::load(folder.path(), {.follow_links = follow_links})->tokenizer();
}

TEST(ModelFolderTest, ALinkThatLeavesItIsRefusedAndTheFoldersOfModulesAreItsOwn) {
  const TinyModel outside("learned");
  for (const char* const name : kModelFiles) {
    EXPECT_REFUSED(load_with_link(name, outside / name, false),
                   {name, "link", outside.path(), "follow_links", "--follow-links"});
    EXPECT_NO_THROW(load_with_link(name, fs::path("below") / name, false)) << name;
  }
  const TinyModel folder("learned");
  const TempFolder pooling;
  pooling.write("config.json", R"({"word_embedding_dimension": 128, "pooling_mode": "mean"})");
  fs::create_directory_symlink(pooling.path(), folder / "1_Pooling");
  EXPECT_REFUSED(Model::load(folder.path())->sentence(), {"1_Pooling", "link", pooling.path()});
  folder.write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  EXPECT_REFUSED(Model::load(folder.path())->sentence(), {"1_Pooling", "link", pooling.path()});
}

TEST(ModelFolderTest, AHubsCacheIsReadThroughItsLinks) {
  const TempFolder cache;
  fs::copy(TinyModel("learned").path(), cache / "blobs", fs::copy_options::recursive);
  const fs::path snapshot = cache / "snapshots" / "0123abcd";
  fs::create_directories(snapshot);
  for (const char* const name : kModelFiles)
    fs::create_symlink(fs::path("../../blobs") / name, snapshot / name);
  EXPECT_TRUE(Model::load(snapshot)->has_tokenizer());
  cache.write("blobs/pooling", R"({"word_embedding_dimension": 128, "pooling_mode": "max"})");
  fs::create_directory(snapshot / "1_Pooling");
  fs::create_symlink("../../../blobs/pooling", snapshot / "1_Pooling/config.json");
  EXPECT_EQ(Model::load(snapshot)->sentence().pooling.modes, std::vector{PoolingMode::kMax});
  // The folder itself may be reached by a link.
  const TempFolder elsewhere;
  fs::create_directory_symlink(snapshot, elsewhere / "model");
  EXPECT_TRUE(Model::load(elsewhere / "model")->has_tokenizer());
}

TEST(FollowedLinksTest, AFolderOfLinksIsWhatItsLinksLeadTo) {
  const json max = {{"word_embedding_dimension", 128}, {"pooling_mode", "max"}};
  const TinyModel outside("learned", {{"1_Pooling/config.json", max}});
  const TempFolder folder;
  for (const char* const name : kModelFiles) fs::create_symlink(outside / name, folder / name);
  fs::create_directory_symlink(outside / "1_Pooling", folder / "1_Pooling");
  EXPECT_REFUSED(Model::load(folder.path()), {"config.json", "link"});
  EXPECT_REFUSED(Tokenizer::load(folder.path()), {"config.json", "link"});
  const auto model = Model::load(folder.path(), {.follow_links = true});
  const auto original = Model::load(outside.path());
  EXPECT_EQ(model->num_parameters(), original->num_parameters());
  EXPECT_EQ(model->sentence().pooling.modes, std::vector{PoolingMode::kMax});
  const std::string text = "Tom bit a dog.";
  const std::vector<int32_t> ids = original->tokenizer().encode(text).ids;
  EXPECT_EQ(model->tokenizer().encode(text).ids, ids);
  EXPECT_EQ(Tokenizer::load(folder.path(), {.follow_links = true})->encode(text).ids, ids);
}

TEST(FollowedLinksTest, EveryTokenizersFilesAreFollowed) {
  const json vocab = {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"a", 3}};
  for (const std::string name : {"vocab.txt", "tokenizer.json", "tokenizer_config.json"}) {
    const BertFolder bert{{}};  // whose vocab.txt is not needed beside tokenizer.json
    if (name == "tokenizer.json") bert.write(name, bert_json(vocab).dump());
    bert.write("tokenizer_config.json", "{}");
    const TempFolder outside;
    fs::rename(bert / name, outside / name);
    fs::create_symlink(outside / name, bert / name);
    EXPECT_REFUSED(Tokenizer::load(bert.path()), {name, "--follow-links"});
    EXPECT_NO_THROW(Tokenizer::load(bert.path(), {.follow_links = true})) << name;
  }
}

TEST(FollowedLinksTest, WhatIsNoPlainFileIsStillRefused) {
  const TempFolder outside;
  make_fifo(outside / "fifo");
  fs::create_directory(outside / "folder");
  for (const char* const name : kModelFiles) {
    for (const fs::path& target :
         {fs::path("/dev/zero"), fs::path("/dev/null"), outside / "fifo", outside / "folder"})
      EXPECT_REFUSED(load_with_link(name, target), {});
  }
}

TEST(FollowedLinksTest, NothingLeadsThroughProc) {
  const TinyModel outside("learned");
  for (const char* const name : kModelFiles) {
    const fs::path good = outside / name;
    EXPECT_NO_THROW(load_with_link(name, good));
    const PlainFile opened(good);
    fs::copy_file(good, outside / "removed");
    const PlainFile nameless(outside / "removed");
    fs::remove(outside / "removed");
    const TempFolder between;
    const std::string number = std::to_string(opened.descriptor());
    fs::create_symlink("/proc/self/fd", between / "fd");
    fs::create_symlink("fd/" + number, between / "file");
    for (const fs::path& target :
         {fs::path("/proc/self/fd/" + number), fs::path("/dev/fd/" + number),
          fs::path("/proc/self/fd/" + std::to_string(nameless.descriptor())), between / "file",
          between / "fd" / number, fs::path("/proc/self/root" + fs::canonical(good).string()),
          fs::path("/proc/version")})
      for (const bool follow_links : {true, false})
        EXPECT_REFUSED(load_with_link(name, target, follow_links), {name, "link into /proc"});
  }
}

/// Makes folders in one another, 3600 bytes in all, goes to the innermost, and gives its path.
fs::path enter_deep(char letter) {
  fs::path deep;
  for (int i = 0; i < 18; ++i) {
    const std::string name(200, letter);
    fs::create_directory(name);
    fs::current_path(name);
    deep /= name;
  }
  return deep;
}

TEST(ModelFolderTest, ALinkWhosePathIsTooLongIsRefused) {
  // The system follows config.json -> a…/on/up, on -> b…, up -> secret: each link is short enough.
  const TempFolder outside, folder;
  outside.write("secret", "{}");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const fs::path first = enter_deep('a');
  fs::current_path(folder / first);
  const fs::path second = enter_deep('b');
  fs::create_symlink(outside / "secret", "up");
  fs::current_path(folder / first);
  fs::create_symlink(second, "on");
  fs::current_path(before);
  const fs::path file = folder / "config.json";
  fs::create_symlink(first / "on" / "up", file);
  EXPECT_EQ(std::ifstream(file).get(), '{');
  for (const bool follow_links : {true, false}) {
    const ModelPath link = {file, follow_links};
    EXPECT_REFUSED(read_model_file(link, 1 << 20), {"config.json", "leads"});
  }
}

TEST(ModelFolderTest, NothingInItIsRun) {
  const BertFolder bert{{}};
  const auto add = [&](const char* name, const char* key, const json& value) {
    const fs::path file = bert / name;
    json keys = fs::exists(file) ? json::parse(std::ifstream(file)) : json::object();
    keys[key] = value;
    std::ofstream(file) << keys;
  };
  const std::string text = "relevant";
  const std::vector<int32_t> ids = Model::load(bert.path())->tokenizer().encode(text).ids;
  // Each would make this file: as Python, as a template, as a pickle.
  const fs::path made = bert / "made";
  const std::string make = fmt::format("open('{}', 'w')", made.string());
  add("config.json", "auto_map", {{"AutoModel", "modeling.Model"}});
  add("tokenizer_config.json", "auto_map", {{"AutoTokenizer", {"modeling.Tokenizer", nullptr}}});
  add("tokenizer_config.json", "chat_template",
      fmt::format("{{{{ cycler.__init__.__globals__.__builtins__.{} }}}}", make));
  std::ofstream(bert / "modeling.py") << make << "\n";
  std::ofstream(bert / "pytorch_model.bin") << fmt::format("cbuiltins\nexec\n(V{}\ntR.", make);
  const auto model = Model::load(bert.path());
  EXPECT_EQ(model->tokenizer().encode(text).ids, ids);
  EXPECT_FALSE(fs::exists(made));
  EXPECT_NE(std::ranges::find(model->unused_keys(), "tokenizer_config.json: chat_template"),
            model->unused_keys().end());
}

/// Texts with one std::hash: libstdc++'s is MurmurHash64A, of which each block of eight bytes can
/// take back what the one before it changed.
std::vector<std::string> with_one_hash(size_t count) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  uint64_t inverse = kMultiplier;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kMultiplier * inverse;
  const auto mix = [](uint64_t v, uint64_t factor) {
    v *= factor;
    return (v ^ v >> 47) * factor;
  };
  constexpr size_t kBytes = 32;
  uint64_t hash = 0xc70f6907 ^ (kBytes * kMultiplier);
  std::mt19937_64 random(1);
  std::vector<std::string> halves[2];
  for (auto& half : halves) {  // of 16 bytes, after which the hash is the same
    const uint64_t both = random();
    while (half.size() * half.size() < count) {
      std::string text(16, ' ');
      uint64_t block = random();
      for (int i = 0; i < 8; ++i) text[i] = static_cast<char>('!' + (block >> 8 * i & 0xff) % 94);
      std::memcpy(&block, text.data(), 8);
      block = mix(((hash ^ mix(block, kMultiplier)) * kMultiplier) ^ both, inverse);
      std::memcpy(&text[8], &block, 8);
      if (std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; }))
        half.push_back(text);
    }
    hash = both * kMultiplier;
  }
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i)
    texts.push_back(halves[0][i % halves[0].size()] + halves[1][i / halves[0].size()]);
  return texts;
}

TEST(CraftedTokenizerTest, PiecesThatAreMadeToHaveOneHashTakeNoLongerThanOthers) {
  const std::vector<std::string> pieces = with_one_hash(250'000);
  const std::hash<std::string> hash;
  if (hash(pieces.front()) != hash(pieces.back())) GTEST_SKIP() << "another std::hash";
  const auto model = [&](PieceType type, uint64_t model_type) {
    std::vector<TestPiece> all;
    for (const std::string& piece : pieces) all.push_back({piece, type});
    return sentencepiece_bytes(all) + bytes_field(2, varint_field(3, model_type));
  };
  std::string lines = "[CLS]\n[SEP]\n[UNK]\n";
  for (const std::string& piece : pieces) lines += piece + "\n";
  const std::string text = pieces[0] + " " + pieces[1];
  for (const auto& [name, bytes] :
       {std::pair("any.model", model(PieceType::kNormal, 1)),
        std::pair("any.model", model(PieceType::kNormal, 2)),
        std::pair("any.model", model(PieceType::kUnused, 2)),
        std::pair("any.model", model(PieceType::kControl, 3)), std::pair("vocab.txt", lines)}) {
    const TempFolder folder;
    folder.write(name, bytes);
    // Minutes where each is compared with all others.
    expect_cpu_seconds_below(10, [&] { Tokenizer::load(folder.path())->encode(text); });
  }
}

TEST(SentenceFilesTest, ALinkToNothingIsNoMissingFile) {
  for (const char* const name :
       {"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"}) {
    const TinyModel folder("learned");
    EXPECT_TRUE(Model::load(folder.path())->has_sentence());
    fs::create_symlink("../blobs/gone", folder / name);
    EXPECT_REFUSED(Model::load(folder.path())->sentence(), {name});
  }
}

TEST(CheckpointTest, ManyEncodersInAFileAreRefusedInLinearTime) {
  const json config = json::parse(R"({"model_type": "bert", "hidden_size": 4, "vocab_size": 8,
      "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
      "max_position_embeddings": 8, "type_vocab_size": 2})");
  std::vector<TestTensor> tensors;
  for (int i = 0; i < 20'000; ++i) {
    tensors.push_back({.name = repeat("x", 500) + std::to_string(i) +
                               ".encoder.layer.0.attention.self.query.weight",
                       .shape = {0}});
  }
  const TempFolder folder;
  write_checkpoint(folder, config, tensors);
  expect_cpu_seconds_below(5, [&] { EXPECT_REFUSED(Model::load(folder.path()), {"encoders"}); });
}

TEST(ModelFolderTest, ManySpecialTokensAroundATextAreRefused) {
  const TinyModel folder("learned");
  json config = json::parse(std::ifstream(bundled_model("learned") / "config.json"));
  config["tokenizer"]["prefix"] = std::vector<std::string>(17, "[CLS]");
  folder.write_json("config.json", config);
  EXPECT_REFUSED(Model::load(folder.path())->tokenizer(), {"18", "16"});
}

}  // namespace
}  // namespace phasor
