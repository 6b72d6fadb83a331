// Files that infer writes: whole or not at all, and in the place of nothing foreign.
#include <sys/stat.h>

#include "infer/cli/save.h"
#include "tests/support/run_program.h"
#include "tests/support/test.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using phasor::read_text_file;
using phasor::TempFolder;

void expect_refused(const std::function<void()>& run, const std::vector<std::string>& words) {
  phasor::expect_error<phasor::InvalidArgument>(run, words);
}

class MatrixFileTest : public testing::TestWithParam<const char*> {
 protected:
  /// Writes five lines of three numbers, so many at a time, to the end if `complete`.
  void write(int64_t lines_at_once, bool complete = true) const {
    const int64_t width = 3;
    std::vector<float> values(5 * width);
    std::iota(values.begin(), values.end(), 0.5f);
    MatrixFile file("-o", out_, "dense", width, {{"model", "m"}, {"pooling", "mean"}});
    for (std::span<const float> rest = values; !rest.empty();) {
      const auto size = std::min<size_t>(rest.size(), lines_at_once * width);
      file.append(rest.first(size));
      rest = rest.subspan(size);
    }
    if (complete) file.commit();
  }

  const TempFolder folder_;
  const fs::path out_ = folder_.path() / GetParam();
};

TEST_P(MatrixFileTest, IsTheSameHoweverManyLinesComeAtOnce) {
  write(5);
  const std::string whole = read_text_file(out_);
  for (const int64_t lines : {1, 2, 4}) {
    write(lines);
    EXPECT_TRUE(read_text_file(out_) == whole);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_P(MatrixFileTest, IsTheOldOneOrNoneUntilItIsComplete) {
  write(2, false);
  EXPECT_TRUE(fs::is_empty(folder_.path()));
  folder_.write(GetParam(), "old");
  write(2, false);
  EXPECT_EQ(read_text_file(out_), "old");
}

INSTANTIATE_TEST_SUITE_P(Formats, MatrixFileTest, testing::Values("a.npy", "a.safetensors"),
                         [](const auto& info) { return std::string(info.param).substr(2); });

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
