// Tables in files of other programs: read as they were written, refused in one line otherwise.
// Files that infer writes: whole or not at all, and in the place of nothing foreign.
#include <sys/stat.h>

#include "files/matrix_file.h"
#include "infer/cli/save.h"
#include "tests/support/run_program.h"

namespace infer {
namespace {

using phasor::TempFolder;
using phasor::internal::read_table;

const std::vector<double> kValues = {0.5, -1, 3, 0.25, 7, -0.125};

template <typename T>
std::string bytes_of(const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) {
    const T number = static_cast<T>(value);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

/// As numpy.save writes it in format `version`.
std::string npy(const std::string& type, const std::string& shape, const std::string& data,
                int version = 1, const std::string& order = "False") {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", type, order, shape);
  const size_t preamble = version == 1 ? 10 : 12;
  header.resize((preamble + header.size() + 1 + 63) / 64 * 64 - preamble - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (size_t i = 0; i < preamble - 8; ++i) bytes += static_cast<char>(header.size() >> 8 * i);
  return bytes + header + data;
}

void expect_table(const std::filesystem::path& file) {
  const auto matrix = read_table(file, "");
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.columns, 3);
  EXPECT_EQ(matrix.values, kValues);
}

void expect_refused(const std::filesystem::path& file, std::vector<std::string> words) {
  words.push_back("--edit table=" + file.string() + ": ");
  const auto read = [&] { read_table(file, "--edit table="); };
  phasor::expect_error<phasor::InvalidArgument>(read, words);
}

TEST(TableFileTest, ReadsNumPysFilesOfBothWidthsAndAllVersions) {
  const TempFolder folder;
  for (const int version : {1, 2, 3}) {
    expect_table(folder.write("f.npy", npy("<f4", "(2, 3)", bytes_of<float>(kValues), version)));
    expect_table(folder.write("d.npy", npy("<f8", "(2, 3)", bytes_of<double>(kValues), version)));
  }
}

TEST(TableFileTest, ReadsWhatSaveWrites) {
  const TempFolder folder;
  const std::vector<float> values(kValues.begin(), kValues.end());
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  const std::vector<SavedTensor> tensors = {
      {"ids", {2, 2}, std::span<const int32_t>(ids)},  // no floating-point numbers
      {"any name", {2, 3}, std::span<const float>(values)},
      {"one row", {6}, std::span<const float>(values)}};  // no matrix
  save("--save", folder / "a.safetensors", tensors, {});
  expect_table(folder / "a.safetensors");
  save("--save", folder / "a.npy", std::span(tensors).subspan(1, 1), {});
  expect_table(folder / "a.npy");
}

TEST(TableFileTest, OfSeveralMatricesItReadsTheOneNamedPositions) {
  const TempFolder folder;
  const std::vector<float> values(kValues.begin(), kValues.end()), others(6, 9.0f);
  std::vector<SavedTensor> tensors = {{"another", {2, 3}, std::span<const float>(others)},
                                      {"positions", {2, 3}, std::span<const float>(values)}};
  const std::filesystem::path file = folder / "a.safetensors";
  save("--save", file, tensors, {});
  expect_table(file);
  tensors[1].name = "b";
  save("--save", file, tensors, {});
  expect_refused(file, {"2 matrices", "another, b", "positions"});
}

TEST(TableFileTest, ReadsSafetensorsInDoubleAndHalf) {
  const TempFolder folder;
  expect_table(
      folder.write("d.safetensors",
                   phasor::safetensors_bytes({{"t", {2, 3}, "F64", bytes_of<double>(kValues)}})));
  // bfloat16 is the upper half of a float32; these numbers have no lower half.
  std::string half;
  const std::string whole = bytes_of<float>(kValues);
  for (size_t i = 0; i < whole.size(); i += 4) half += whole.substr(i + 2, 2);
  expect_table(
      folder.write("h.safetensors", phasor::safetensors_bytes({{"t", {2, 3}, "BF16", half}})));
}

TEST(TableFileTest, WhatIsNoTableIsRefusedInOneLine) {
  const TempFolder folder;
  const std::string data = bytes_of<float>(kValues);
  const auto refused = [&](const std::string& name, const std::string& bytes,
                           const std::vector<std::string>& words) {
    expect_refused(folder.write(name, bytes), words);
  };
  expect_refused(folder / "none.npy", {"no such file"});
  refused("a.txt", "1 2 3", {".npy nor .safetensors"});
  refused("a.npz", "PK\x03\x04", {"zip archive"});
  refused("a.npy", "version https://git-lfs.github.com/spec/v1\noid", {"Git LFS pointer"});
  refused("a.safetensors", "\x80\x02}q", {"Python pickle"});
  refused("empty.npy", "", {".npy nor .safetensors"});
  refused("text.npy", "this is a text, and a rather long one", {".npy nor .safetensors"});
  refused("header.npy", npy("<f4", "(2, 3)", data).substr(0, 30), {"header"});
  refused("short.npy", npy("<f4", "(2, 3)", data.substr(4)), {"[2, 3]"});
  refused("long.npy", npy("<f4", "(2, 3)", data + data), {"[2, 3]"});
  refused("huge.npy", npy("<f4", "(4611686018427387904, 4611686018427387904)", data), {"461168"});
  refused("line.npy", npy("<f4", "(6,)", data), {"no matrix"});
  refused("cube.npy", npy("<f4", "(1, 2, 3)", data), {"no matrix"});
  refused("negative.npy", npy("<f4", "(-2, -3)", data), {"no matrix"});
  refused("int.npy", npy("<i4", "(2, 3)", data), {"<i4", "float32"});
  refused("big.npy", npy(">f4", "(2, 3)", data), {">f4", "big-endian"});
  refused("fortran.npy", npy("<f4", "(2, 3)", data, 1, "True"), {"column by column"});
  refused("none.npy", npy("<f4", "(0, 3)", ""), {"empty"});
  refused("nan.npy",
          npy("<f4", "(1, 2)", bytes_of<float>({1, std::numeric_limits<double>::quiet_NaN()})),
          {"row 0, column 1"});
  refused("large.npy", npy("<f8", "(1, 2)", bytes_of<double>({1e200, 1})), {"column 0", "1e+200"});
  refused("a.safetensors", "no safetensors", {"safetensors"});
  refused("b.safetensors", phasor::safetensors_bytes({{"t", {6}, "F32", data}}), {"no matrix"});
  for (const char* const pipe : {"pipe.npy", "pipe.safetensors"}) {
    mkfifo((folder / pipe).c_str(), 0600);
    expect_refused(folder / pipe, {"not a plain file"});
  }
}

TEST(TableFileTest, TooLargeTablesAndHeadersAreRefusedUnread) {
  const TempFolder folder;
  const auto sparse = [&](const std::string& name, const std::string& bytes, uintmax_t size) {
    std::filesystem::resize_file(folder.write(name, bytes), size);  // without taking room
  };
  const std::string large = npy("<f4", "(1048576, 1024)", "");
  sparse("a.npy", large, large.size() + (uintmax_t{1} << 32));
  expect_refused(folder / "a.npy", {"4294967296 bytes", "at most"});
  const std::string wide = npy("<f4", "(2, 8193)", "");
  sparse("wide.npy", wide, wide.size() + 2 * 8193 * 4);
  expect_refused(folder / "wide.npy", {"8193 columns", "8192"});
  const std::string header =
      R"({"t": {"dtype": "F32", "shape": [1048576, 1024], "data_offsets": [0, 4294967296]}})";
  const std::string file = phasor::safetensors_bytes(header, "");
  sparse("a.safetensors", file, file.size() + (uintmax_t{1} << 32));
  expect_refused(folder / "a.safetensors", {"4294967296 bytes", "268435456"});
  folder.write("b.npy", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12));
  expect_refused(folder / "b.npy", {"ends within its header"});
}

namespace fs = std::filesystem;
using phasor::read_text_file;

class MatrixFileTest : public testing::TestWithParam<const char*> {
 protected:
  /// Writes five lines of three numbers, so many at a time, to the end if `complete`.
  void write(int64_t lines_at_once, bool complete = true) const {
    const int64_t width = 3;
    std::vector<float> values(5 * width);
    std::iota(values.begin(), values.end(), 0.5f);
    MatrixFile file("-o", out_, width, {{"model", "m"}, {"pooling", "mean"}});
    for (std::span<const float> rest = values; !rest.empty();) {
      const auto size = std::min<size_t>(rest.size(), lines_at_once * width);
      file.append(rest.first(size));
      rest = rest.subspan(size);
    }
    if (complete) file.commit();
  }

  const TempFolder folder_;
  const fs::path out_ = folder_ / GetParam();
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
  const fs::path other = folder.write("other", "precious"), path = folder / "a";
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
  EXPECT_INVALID(TemporaryFile("--save", path), {"--save", path.string(), "plain file"});
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST(TemporaryFileTest, WhatAKilledProcessHasLeftIsReplacedAndWhatIsWrittenIsNot) {
  const TempFolder folder;
  const fs::path path = folder / "a";
  folder.write("a.infer-tmp", "half of a longer file");
  {
    TemporaryFile file("-o", path);
    file.write(std::as_bytes(std::span("one", 3)));
    EXPECT_INVALID(TemporaryFile("-o", path), {"-o", path.string(), "another process"});
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
