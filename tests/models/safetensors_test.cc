// Sound safetensors files are read in place; every kind of unsound one gets a sentence.
#include "phasor/safetensors.h"

#include <gtest/gtest.h>

#include <string>

#include "phasor/errors.h"
#include "tests/support/cpu_seconds.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

const std::string kEightZeros(8, '\0');

/// Opens a file of these bytes and expects a ModelError with the file's name and `words` in it.
void expect_file_refused(std::string_view bytes, std::vector<std::string> words) {
  const TempFolder folder;
  const auto file = folder.write("weights.safetensors", bytes);
  words.push_back(file.string());
  expect_error<ModelError>([&] { SafetensorsFile::open(file); }, words);
}

void expect_header_refused(std::string_view header, std::vector<std::string> words) {
  expect_file_refused(safetensors_bytes(header, kEightZeros), std::move(words));
}

/// A header with one tensor "w" of two floats, one of whose keys is replaced.
std::string header_with(const std::string& key, const std::string& value) {
  std::string header = "{\"w\":{";
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"dtype", "\"F32\""}, {"shape", "[2]"}, {"data_offsets", "[0,8]"}};
  for (const auto& [name, usual] : keys) {
    if (name == key && value.empty()) continue;
    if (header.back() != '{') header += ',';
    header.append("\"").append(name).append("\":").append(name == key ? value : usual);
  }
  return header + "}}";
}

TEST(SafetensorsTest, TensorsOfAllThreeDtypesAreRead) {
  const TempFolder folder;
  const auto file = folder.write(
      "m.safetensors", safetensors_bytes({{"f", {2}, "F32", float_bytes({1.5f, -3.0f})},
                                          {"h", {1}, "F16", std::string("\x00\x3e", 2)},
                                          {"b", {1}, "BF16", std::string("\xc0\x3f", 2)}}));
  const auto opened = SafetensorsFile::open(file);
  EXPECT_EQ(opened->tensor("f").to_float(), (std::vector<float>{1.5f, -3.0f}));
  EXPECT_EQ(opened->tensor("h").to_float(), std::vector<float>{1.5f});
  EXPECT_EQ(opened->tensor("b").to_float(), std::vector<float>{1.5f});
  EXPECT_EQ(opened->tensor("f").shape, std::vector<int64_t>{2});
  EXPECT_EQ(opened->metadata().at("format"), "pt");
}

TEST(SafetensorsTest, UnalignedDataScalarsAndEmptyTensorsAreRead) {
  const TempFolder folder;
  const std::string header = R"({"one":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("scalar":{"dtype":"F32","shape":[],"data_offsets":[1,5]},)"
                             R"("nothing":{"dtype":"F32","shape":[0,3],"data_offsets":[1,1]}})";
  const auto file = folder.write(
      "m.safetensors", safetensors_bytes(header, std::string("x").append(float_bytes({0.1f}))));
  const auto opened = SafetensorsFile::open(file);
  EXPECT_EQ(opened->tensor("scalar").to_float(), std::vector<float>{0.1f});
  EXPECT_EQ(opened->tensor("nothing").num_elements(), 0);
}

TEST(SafetensorsTest, OtherDtypesMayBeThereButAreNotGivenOut) {
  const TempFolder folder;
  const auto file =
      folder.write("m.safetensors", safetensors_bytes({{"position_ids", {2}, "I64"}, {"w", {1}}}));
  const auto opened = SafetensorsFile::open(file);
  EXPECT_TRUE(opened->contains("position_ids"));
  EXPECT_TRUE(opened->tensor("w").present());
  expect_error<ModelError>([&] { opened->tensor("position_ids"); },
                           {"position_ids", "I64", "F32, F16, BF16, F64"});
  expect_error<ModelError>([&] { opened->tensor("v"); }, {"'v'", "missing"});
}

TEST(SafetensorsTest, TensorsOutliveEverythingButTheFileObject) {
  const TempFolder folder;
  const auto file =
      folder.write("m.safetensors", safetensors_bytes({{"w", {1}, "F32", float_bytes({7.0f})}}));
  const auto opened = SafetensorsFile::open(file);
  std::filesystem::remove(file);
  EXPECT_EQ(opened->tensor("w").to_float(), std::vector<float>{7.0f});
}

TEST(SafetensorsTest, MissingFile) {
  expect_error<ModelError>([] { SafetensorsFile::open("/nowhere/w.safetensors"); },
                           {"/nowhere/w.safetensors", "no such file"});
}

TEST(SafetensorsTest, FolderInPlaceOfTheFile) {
  const TempFolder folder;
  expect_error<ModelError>([&] { SafetensorsFile::open(folder.path()); }, {"not a plain file"});
}

TEST(SafetensorsTest, EmptyAndAlmostEmptyFiles) {
  expect_file_refused("", {"0 bytes", "get it again"});
  expect_file_refused("1234567", {"7 bytes"});
  expect_file_refused(kEightZeros, {"header"});
}

TEST(SafetensorsTest, HeaderPastTheEndOfTheFile) {
  std::string bytes = safetensors_bytes(header_with("", ""), kEightZeros);
  bytes[0] = '\x7f';
  expect_file_refused(bytes, {"claims 127 bytes", "cut off"});
}

TEST(SafetensorsTest, HeaderLengthThatWouldOverflow) {
  expect_file_refused(std::string(8, '\xff') + "{}", {"18446744073709551615"});
}

TEST(SafetensorsTest, TruncatedData) {
  const std::string bytes = safetensors_bytes(header_with("", ""), kEightZeros);
  expect_file_refused(bytes.substr(0, bytes.size() - 1),
                      {"\"w\"", "[0, 8]", "7 bytes of data", "the file is cut off, get it again"});
}

TEST(SafetensorsTest, HeaderThatIsNoJson) {
  expect_header_refused("{\"w\":", {"header", "not valid JSON"});
  expect_header_refused("[1, 2]", {"[1,2]", "object"});
  expect_header_refused("{\"w\xff\":1}", {"not valid JSON"});
}

TEST(SafetensorsTest, DuplicateNames) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_header_refused("{\"w\":" + entry + ",\"w\":" + entry + "}", {"\"w\"", "twice"});
}

TEST(SafetensorsTest, DuplicateKeysWithinATensor) {
  expect_header_refused(R"({"w":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})",
                        {"\"shape\"", "twice"});
}

TEST(SafetensorsTest, EntryThatIsNoObject) { expect_header_refused("{\"w\":3}", {"\"w\"", "3"}); }

TEST(SafetensorsTest, MissingKeysOfATensor) {
  for (const char* const key : {"dtype", "shape", "data_offsets"}) {
    expect_header_refused(header_with(key, ""), {"\"w\"", key, "missing"});
  }
}

TEST(SafetensorsTest, UnknownDtype) {
  expect_header_refused(header_with("dtype", "\"F31\""), {"\"w\"", "F31"});
  expect_header_refused(header_with("dtype", "32"), {"\"w\"", "32"});
}

TEST(SafetensorsTest, OffsetsOutOfOrderOrRange) {
  expect_header_refused(header_with("data_offsets", "[8,0]"), {"\"w\"", "[8, 0]"});
  expect_header_refused(header_with("data_offsets", "[4,12]"), {"\"w\"", "[4, 12]", "8 bytes"});
  expect_header_refused(header_with("data_offsets", "[0]"), {"\"w\"", "[0]"});
  expect_header_refused(header_with("data_offsets", "[9223372036854775807,9223372036854775807]"),
                        {"9223372036854775807"});
}

TEST(SafetensorsTest, AMessageAboutAHugeListIsShort) {
  std::string list = "[0";
  for (int i = 0; i < 100'000; ++i) list += ",0";
  for (const char* const key : {"shape", "data_offsets"}) {
    const TempFolder folder;
    const auto file =
        folder.write("w.safetensors", safetensors_bytes(header_with(key, list + "]"), kEightZeros));
    try {
      SafetensorsFile::open(file);
      FAIL() << key;
    } catch (const ModelError& error) {
      EXPECT_LT(std::string_view(error.what()).size(), 400u);
    }
  }
}

TEST(SafetensorsTest, ManyEmptyTensorsTakeTheTimeOfReadingThem) {
  std::string header;
  for (int i = 0; i < 100'000; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  const TempFolder folder;
  const auto file = folder.write("w.safetensors", safetensors_bytes("{" + header + "}", ""));
  // Minutes where each looks through all others.
  expect_cpu_seconds_below(
      10, [&] { EXPECT_EQ(SafetensorsFile::open(file)->entries().size(), 100'000u); });
}

TEST(SafetensorsTest, NumbersThatAreNegativeFractionsOrTooLarge) {
  expect_header_refused(header_with("data_offsets", "[-8,0]"), {"\"w\"", "[-8,0]"});
  expect_header_refused(header_with("data_offsets", "[0.0,8.0]"), {"\"w\"", "[0.0,8.0]"});
  expect_header_refused(header_with("shape", "[-2]"), {"\"w\"", "[-2]"});
  expect_header_refused(header_with("shape", "[\"2\"]"), {"\"w\"", "[\"2\"]"});
  expect_header_refused(header_with("shape", "[18446744073709551615]"), {"18446744073709551615"});
  expect_header_refused(header_with("shape", "2"), {"\"w\"", "2"});
}

TEST(SafetensorsTest, ShapeThatOverflows) {
  expect_header_refused(header_with("shape", "[4294967296,4294967296]"), {"\"w\"", "4294967296"});
  expect_header_refused(header_with("shape", "[2305843009213693952,8]"), {"2305843009213693952"});
}

TEST(SafetensorsTest, ShapeThatDoesNotFitTheData) {
  expect_header_refused(header_with("shape", "[3]"), {"\"w\"", "8 bytes", "[3]", "12"});
  expect_header_refused(header_with("shape", "[1,1,1,1,1,1,1,1,2]"), {"\"w\"", "9 dimensions"});
}

TEST(SafetensorsTest, OverlappingTensors) {
  expect_header_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                        R"("b":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})",
                        {"\"a\"", "\"b\"", "overlap"});
}

TEST(SafetensorsTest, MetadataThatIsNoObject) {
  expect_header_refused(R"({"__metadata__":7})", {"__metadata__", "7"});
}

TEST(SafetensorsTest, OtherKindsOfFilesAreNamed) {
  expect_file_refused("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", {"Git LFS"});
  expect_file_refused("<!DOCTYPE html><html><body>Not found</body></html>", {"HTML"});
  expect_file_refused("\n<html>404 and more</html>", {"HTML"});
  expect_file_refused(std::string("PK\x03\x04\x00\x00\x08\x08\x00\x00", 10), {"zip"});
  expect_file_refused(std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9", 9), {"pickle"});
}

TEST(SafetensorsTest, NamesInMessagesStayOnOneLine) {
  expect_header_refused("{\"a\\nb\":3}", {"\"a\\nb\""});
}

}  // namespace
}  // namespace phasor
