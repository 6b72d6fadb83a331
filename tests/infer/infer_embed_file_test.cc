// The files of infer embed -o: nothing foreign is written or waited for, and --resume goes on only
// from what an earlier run wrote.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/corpus/temporary_file.h"
#include "infer/commands/embed/embed_file.h"
#include "tests/support/run_program.h"
#include "tests/support/test.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using phasor::read_text_file;
using phasor::TempFolder;

constexpr int64_t kWidth = 3, kLines = 5;  // of a run that is interrupted

void expect_refused(const std::function<void()>& run, const std::vector<std::string>& words) {
  phasor::expect_error<phasor::InvalidArgument>(run, words);
}

class PartialFileTest : public testing::TestWithParam<const char*> {
 protected:
  PartialFileTest()
      : format_{.kind = VectorFormat::kind_of(GetParam()),
                .width = kWidth,
                .made_with = {{"model", "m"}, {"pooling", "mean"}}} {}

  fs::path out() const { return folder_.path() / GetParam(); }
  fs::path partial() const { return out() += ".partial"; }
  fs::path record() const { return out() += ".partial.json"; }

  void append(PartialFile& file, int64_t lines) const {
    std::vector<float> values(lines * kWidth);
    LinesDone state = file.state();
    std::iota(values.begin(), values.end(), static_cast<float>(state.lines * kWidth));
    state.lines += lines;
    state.input = "of the input";
    file.append(values, state);
  }
  /// Writes some lines in two windows and ends without commit().
  void interrupted() const {
    PartialFile file(out(), format_, false);
    append(file, 2);
    append(file, kLines - 2);
  }
  /// Goes on to 7 lines; gives the whole file's bytes.
  std::string resumed() const {
    PartialFile file(out(), format_, true);
    append(file, 7 - file.state().lines);
    file.commit();
    return read_text_file(out());
  }
  void expect_not_resumed(const std::vector<std::string>& words) const {
    const std::string before = read_text_file(partial());
    expect_refused([&] { resumed(); }, words);
    EXPECT_TRUE(read_text_file(partial()) == before);
    EXPECT_FALSE(fs::exists(out()));
  }

  TempFolder folder_;
  VectorFormat format_;
};

TEST_P(PartialFileTest, WhatIsGoneOnFromGivesTheSameBytes) {
  const std::string whole = resumed();
  fs::remove(out());
  interrupted();
  EXPECT_TRUE(resumed() == whole);
}

TEST_P(PartialFileTest, ChangedNumbersOfTheRecordAreRefused) {
  interrupted();
  const json good = json::parse(read_text_file(record()));
  const int64_t bytes = good["bytes"], header = std::ssize(format_.header(0));
  const int64_t row = (bytes - header) / kLines;
  const auto refused = [&](const json& changes) {
    SCOPED_TRACE(changes.dump());
    json changed = good;
    changed.update(changes);
    folder_.write(record().filename(), changed.dump());
    expect_not_resumed({record().string()});
  };
  for (const json& number : {json(-1), json(1.5), json(1e300), json(true), json("5"), json(),
                             json(UINT64_MAX), json(INT64_MAX), json(INT64_MAX / 4 + 2)}) {
    refused({{"lines", number}});
    refused({{"bytes", number}});
  }
  refused({{"bytes", bytes + 1}});
  refused({{"input", 5}});
  for (const int64_t lines : {0, 4, 6}) refused({{"lines", lines}});
  for (const int64_t number : {bytes - row, bytes - 1, header, int64_t{0}}) {
    refused({{"bytes", number}});
  }
  folder_.write(record().filename(), good.dump());
  resumed();
}

TEST_P(PartialFileTest, WhatIsNotInTheRecordIsWrittenAgain) {
  const std::string whole = resumed();
  fs::remove(out());
  interrupted();
  folder_.write(partial().filename(), read_text_file(partial()) + "half a vec");
  EXPECT_TRUE(resumed() == whole);
  fs::remove(out());
  interrupted();
  fs::resize_file(partial(), fs::file_size(partial()) - 1);
  expect_not_resumed({partial().string(), "bytes"});
}

TEST_P(PartialFileTest, WhatWasMadeWithSomethingElseIsRefused) {
  interrupted();
  format_.made_with["model"] = "the same files under another name";
  format_.made_with["pooling"] = "cls";
  expect_not_resumed({record().string(), "pooling mean (now cls)"});
}

TEST_P(PartialFileTest, VectorsOfAnotherWidthAreRefused) {
  if (format_.kind == VectorFormat::Kind::kJsonLines) return;  // has no width
  interrupted();
  format_.width = 4;
  expect_not_resumed({partial().string(), "5 vectors of 4 numbers"});
}

TEST_P(PartialFileTest, NothingIsWrittenThroughLinks) {
  const fs::path other = folder_.write("other", "precious");
  fs::create_symlink(other, partial());
  expect_refused([&] { interrupted(); }, {partial().string(), "symbolic link"});
  fs::remove(partial());
  fs::create_hard_link(other, partial());
  expect_refused([&] { interrupted(); }, {partial().string(), "another name"});
  fs::remove(partial());
  for (const bool hard : {false, true}) {
    for (const char* const end : {"", ".infer-tmp"}) {
      const fs::path link = record() += end;
      hard ? fs::create_hard_link(other, link) : fs::create_symlink(other, link);
    }
    interrupted();
    EXPECT_FALSE(fs::is_symlink(record()));
    fs::remove(record());
  }
  EXPECT_EQ(read_text_file(other), "precious");
}

TEST_P(PartialFileTest, AnotherUsersFileIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  interrupted();
  ASSERT_EQ(chown(partial().c_str(), 4711, 4711), 0);
  expect_not_resumed({partial().string(), "another user"});
  ASSERT_EQ(chown(folder_.path().c_str(), 4711, 4711), 0);  // who can put any file there
  resumed();
}

TEST_P(PartialFileTest, PipesFoldersAndDevicesAreRefusedAtOnce) {
  const auto refused = [&](const fs::path& at, bool resume, const std::vector<std::string>& words) {
    expect_refused([&] { PartialFile(out(), format_, resume); }, words);
    EXPECT_TRUE(fs::exists(at));
    fs::remove_all(at);
  };
  mkfifo(partial().c_str(), 0600);
  refused(partial(), false, {partial().string(), "not a plain file"});
  mkfifo(out().c_str(), 0600);
  refused(out(), false, {out().string(), "not a plain file"});
  fs::create_directory(partial());
  refused(partial(), false, {partial().string(), "Is a directory"});
  fs::create_directory(record());
  refused(record(), false, {record().string(), "Is a directory"});
  interrupted();
  fs::remove(record());
  mkfifo(record().c_str(), 0600);
  refused(record(), true, {record().string(), "not a plain file"});
  folder_.write(record().filename(), "{");
  fs::resize_file(record(), uintmax_t{1} << 40);  // without taking room
  refused(record(), true, {record().string(), "1099511627776 bytes"});
}

INSTANTIATE_TEST_SUITE_P(Formats, PartialFileTest,
                         testing::Values("a.npy", "a.safetensors", "a.jsonl"),
                         [](const auto& info) { return std::string(info.param).substr(2); });

TEST(FingerprintTest, DependsOnEveryByteAndOnWherePiecesEnd) {
  const auto of = [](const std::vector<std::string>& pieces) {
    Fingerprint fingerprint;
    for (const std::string& piece : pieces) fingerprint.add_piece(piece);
    return fingerprint.text();
  };
  const std::string zero(1, '\0');
  const std::vector<std::vector<std::string>> inputs = {{},
                                                        {""},
                                                        {"", ""},
                                                        {zero},
                                                        {"ab", "c"},
                                                        {"a", "bc"},
                                                        {"abc"},
                                                        {"abc" + zero},
                                                        {"12345678"},
                                                        {"12345678", "9"},
                                                        {"123456789"},
                                                        {"123456780"}};
  std::set<std::string> texts;
  for (const auto& input : inputs) texts.insert(of(input));
  EXPECT_EQ(texts.size(), inputs.size());
  EXPECT_EQ(of({"ab", "c"}), of({"ab", "c"}));
}

TEST(FingerprintTest, OfAModelAreThoseOfItsPlainFilesByWhatTheyDecide) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("1_Pooling/config.json", "{}");
  const MadeWith before = model_fingerprints(folder.path());
  const auto in = [&](const std::string& name) { return folder.path() / name; };
  fs::create_symlink("loop.json", in("loop.json"));
  fs::create_symlink("nothing", in("nothing.json"));
  fs::create_directory_symlink(".", in("self"));
  fs::create_directory_symlink("..", in("1_Pooling/parent.json"));
  fs::create_symlink("loop.safetensors", in("loop.safetensors"));
  for (const char* const name : {"folder.json", "folder.safetensors"})
    fs::create_directory(in(name));
  for (const char* const name : {"pipe.json", "pipe.safetensors"}) mkfifo(in(name).c_str(), 0600);
  fs::create_symlink("/proc/self/pagemap", in("outside.json"));  // it has no end
  EXPECT_EQ(model_fingerprints(folder.path()), before);
  const std::pair<const char*, const char*> parts[] = {{"1_Pooling/config.json", "config"},
                                                       {"modules.json", "config"},
                                                       {"sentence_bert_config.json", "config"},
                                                       {"pytorch_model.bin", "weights"},
                                                       {"2_Dense/pytorch_model.bin", "weights"},
                                                       {"model.safetensors", "weights"},
                                                       {"2_Dense/model.safetensors", "weights"},
                                                       {"pytorch_model.bin", ""},  // not read now
                                                       {"2_Dense/pytorch_model.bin", ""},
                                                       {"vocab.txt", "tokenizer"},
                                                       {"spiece.model", "tokenizer"},
                                                       {"tokenizer_config.json", "tokenizer"},
                                                       {"README.md", ""}};
  int written = 0;
  for (const auto& [name, part] : parts) {
    const MadeWith then = model_fingerprints(folder.path());
    folder.write(name, "another " + std::to_string(++written));
    const std::vector<Difference> found = differences(then, model_fingerprints(folder.path()));
    ASSERT_EQ(found.size(), *part == '\0' ? 0u : 1u) << name;
    for (const Difference& difference : found) EXPECT_EQ(difference.what, part) << name;
  }
}

TEST(TemporaryFileTest, NothingIsWrittenThroughLinksOrInThePlaceOfAPipe) {
  const TempFolder folder;
  const fs::path other = folder.write("other", "precious"), path = folder.path() / "a";
  const std::string temporary = path.string() + ".infer-tmp";
  for (const fs::path& link : {fs::path(temporary), path}) {
    fs::create_symlink(other, link);
    TemporaryFile file("--save", path);
    file.write(std::as_bytes(std::span("new", 3)));
    file.commit();
    EXPECT_EQ(read_text_file(path), "new");
    EXPECT_FALSE(fs::is_symlink(path));
    fs::remove(path);
  }
  EXPECT_EQ(read_text_file(other), "precious");
  mkfifo(path.c_str(), 0600);
  expect_refused([&] { TemporaryFile("--save", path); }, {"--save", path.string(), "plain file"});
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST(TemporaryFileTest, WhatAKilledProcessHasLeftIsReplacedAndWhatIsWrittenIsNot) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a";
  folder.write("a.infer-tmp", "half of a longer file");
  {
    TemporaryFile file("-o", path);
    file.write(std::as_bytes(std::span("one", 3)));
    expect_refused([&] { TemporaryFile("-o", path); }, {"-o", path.string(), "another process"});
    file.commit();
  }
  EXPECT_EQ(read_text_file(path), "one");
  { const TemporaryFile not_committed("-o", path); }
  EXPECT_EQ(read_text_file(path), "one");
  fs::remove(path);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace infer
