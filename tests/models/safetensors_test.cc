// Sound safetensors files are read in place; every kind of unsound one gets a sentence. Every
// float16 and bfloat16 there is, against the formula of the standard.
#include "tests/support/test.h"

namespace phasor {
namespace {

const std::string kEightZeros(8, '\0');

/// A header with one tensor "w" of two floats, one of whose keys is replaced.
std::string header_with(const std::string& key, const json& value) {
  json header = {{"w", {{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0, 8}}}}};
  header["w"][key] = value;
  return header.dump();
}

TEST(SafetensorsTest, TensorsAreReadInPlaceWhateverTheirDtypeShapeAndAlignment) {
  const TempFolder folder;
  const std::string header = R"({"__metadata__": {"format": "pt"},
      "ids": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
      "f": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
      "h": {"dtype": "F16", "shape": [1], "data_offsets": [9, 11]},
      "b": {"dtype": "BF16", "shape": [1], "data_offsets": [11, 13]},
      "scalar": {"dtype": "F32", "shape": [], "data_offsets": [13, 17]},
      "nothing": {"dtype": "F32", "shape": [0, 3], "data_offsets": [13, 13]}})";
  const std::string data =
      "x" + float_bytes({1.5f, -3.0f}) + std::string("\x00\x3e\xc0\x3f", 4) + float_bytes({0.1f});
  const auto file = folder.write("m.safetensors", safetensors_bytes(header, data));
  const auto opened = SafetensorsFile::open(file);
  fs::remove(file);
  EXPECT_EQ(opened->metadata().at("format"), "pt");
  EXPECT_EQ(opened->tensor("f").to_float(), (std::vector<float>{1.5f, -3.0f}));
  EXPECT_EQ(opened->tensor("f").shape, std::vector<int64_t>{2});
  EXPECT_EQ(opened->tensor("h").to_float(), std::vector<float>{1.5f});
  EXPECT_EQ(opened->tensor("b").to_float(), std::vector<float>{1.5f});
  EXPECT_EQ(opened->tensor("scalar").to_float(), std::vector<float>{0.1f});
  EXPECT_EQ(opened->tensor("nothing").num_elements(), 0);
  // Other dtypes may be there, but are not given out.
  EXPECT_TRUE(opened->contains("ids"));
  EXPECT_REFUSED(opened->tensor("ids"), {"ids", "U8", "F32, F16, BF16, F64"});
  EXPECT_REFUSED(opened->tensor("v"), {"'v'", "missing"});
}

struct BadFile {
  std::string bytes;
  std::vector<std::string> words;
};

/// A file of each row's bytes is a ModelError with the file's name and the words in it.
void expect_files_refused(const std::vector<BadFile>& rows) {
  const TempFolder folder;
  for (const auto& [bytes, words] : rows) {
    const std::string file = folder.write("weights.safetensors", bytes);
    std::vector<std::string> all = words;
    all.push_back(file);
    EXPECT_REFUSED(SafetensorsFile::open(file), all);
  }
}

TEST(SafetensorsTest, FilesThatAreRefused) {
  EXPECT_REFUSED(SafetensorsFile::open("/nowhere/w.safetensors"),
                 {"/nowhere/w.safetensors", "no such file"});
  const TempFolder folder;
  EXPECT_REFUSED(SafetensorsFile::open(folder.path()), {"not a plain file"});
  const std::string good = safetensors_bytes(header_with("dtype", "F32"), kEightZeros);
  const std::string zeros(600, '\0');
  expect_files_refused(
      {{"", {"0 bytes", "get it again"}},
       {"1234567", {"7 bytes"}},
       {kEightZeros, {"header"}},
       {"\x7f" + good.substr(1), {"claims 127 bytes", "cut off"}},
       {std::string(8, '\xff') + "{}", {"18446744073709551615"}},
       {good.substr(0, good.size() - 1),
        {"\"w\"", "[0, 8]", "7 bytes of data", "the file is cut off, get it again"}},
       {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", {"git lfs pull"}},
       {"<!DOCTYPE html><html><body>Not found</body></html>", {"HTML"}},
       {"\n<html>404 and more</html>", {"HTML"}},
       {"PK\x03\x04" + zeros, {"zip archive"}},
       {"PK\x03\x04" + zeros.substr(300) + "/data.pkl", {"pickle"}},
       {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9", {"pickle"}},
       {"\x80\x02}q" + zeros, {"pickle"}},
       {"GGUF\x03" + zeros, {"llama.cpp"}},
       {"\x08\x07\x12\x07pytorch\x1a\x05" + zeros, {"ONNX"}},
       {"\x89HDF\r\n\x1a\n" + zeros, {"TensorFlow"}}});
}

TEST(SafetensorsTest, HeadersThatAreRefused) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  std::vector<BadFile> rows = {
      {"{\"w\":", {"header", "not valid JSON"}},
      {"[1, 2]", {"[1,2]", "object"}},
      {"{\"w\xff\":1}", {"not valid JSON"}},
      {"{\"w\":" + entry + ",\"w\":" + entry + "}", {"\"w\"", "twice"}},
      {R"({"w":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})",
       {"\"shape\"", "twice"}},
      {"{\"w\":3}", {"\"w\"", "3"}},
      {"{\"a\\nb\":3}", {"\"a\\nb\""}},  // on one line
      {R"({"__metadata__":7})", {"__metadata__", "7"}},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}})",
       {"\"a\"", "\"b\"", "overlap"}}};
  const auto with = [&](const char* key, const char* value, std::vector<std::string> words) {
    rows.push_back({header_with(key, json::parse(value)), std::move(words)});
  };
  for (const char* const key : {"dtype", "shape", "data_offsets"})
    with(key, "null", {"\"w\"", key, "missing"});
  with("dtype", "\"F31\"", {"\"w\"", "F31"});
  with("dtype", "32", {"\"w\"", "32"});
  with("data_offsets", "[8,0]", {"\"w\"", "[8, 0]"});
  with("data_offsets", "[4,12]", {"\"w\"", "[4, 12]", "8 bytes"});
  with("data_offsets", "[0]", {"\"w\"", "[0]"});
  with("data_offsets", "[9223372036854775807,9223372036854775807]", {"9223372036854775807"});
  with("data_offsets", "[-8,0]", {"\"w\"", "[-8,0]"});
  with("data_offsets", "[0.0,8.0]", {"\"w\"", "[0.0,8.0]"});
  with("shape", "[-2]", {"\"w\"", "[-2]"});
  with("shape", "[\"2\"]", {"\"w\"", "[\"2\"]"});
  with("shape", "[18446744073709551615]", {"18446744073709551615"});
  with("shape", "2", {"\"w\"", "2"});
  with("shape", "[4294967296,4294967296]", {"\"w\"", "4294967296"});  // overflows
  with("shape", "[2305843009213693952,8]", {"2305843009213693952"});
  with("shape", "[3]", {"\"w\"", "8 bytes", "[3]", "12"});
  with("shape", "[1,1,1,1,1,1,1,1,2]", {"\"w\"", "9 dimensions"});
  for (BadFile& row : rows) row.bytes = safetensors_bytes(row.bytes, kEightZeros);
  expect_files_refused(rows);
}

TEST(SafetensorsTest, AMessageAboutAHugeListIsShort) {
  const json list = std::vector<int>(100'000);
  for (const char* const key : {"shape", "data_offsets"}) {
    const TempFolder folder;
    const auto file =
        folder.write("w.safetensors", safetensors_bytes(header_with(key, list), kEightZeros));
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
  for (int i = 0; i < 100'000; ++i)
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  const TempFolder folder;
  const auto file = folder.write("w.safetensors", safetensors_bytes("{" + header + "}", ""));
  // Minutes where each looks through all others.
  expect_cpu_seconds_below(
      10, [&] { EXPECT_EQ(SafetensorsFile::open(file)->entries().size(), 100'000u); });
}

/// IEEE 754: (−1)^sign · mantissa · 2^exponent, from the fields, by ldexp.
double value_of(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  const int implied = exponent == 0 ? 0 : 1 << mantissa_bits;
  return sign * std::ldexp(mantissa + implied, std::max(exponent, 1) - bias - mantissa_bits);
}

void expect_all_values(DType dtype, int exponent_bits) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const Tensor tensor{
      .dtype = dtype, .shape = {65536}, .data = reinterpret_cast<const std::byte*>(all.data())};
  const std::vector<float> floats = tensor.to_float();
  ASSERT_EQ(floats.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const double expected = value_of(all[i], exponent_bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(floats[i])) << i;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(floats[i]),
                std::bit_cast<uint32_t>(static_cast<float>(expected)))
          << i << ": " << floats[i] << " is not " << expected;
    }
  }
}

TEST(TensorTest, EveryFloat16IsConvertedExactly) { expect_all_values(DType::kFloat16, 5); }
TEST(TensorTest, EveryBFloat16IsConvertedExactly) { expect_all_values(DType::kBFloat16, 8); }

TEST(TensorTest, AFloat64BecomesTheNearestFloat32) {
  const float most = std::numeric_limits<float>::max(), least = 0x1p-149f, inf = INFINITY;
  // Ties go to even, as 1 + 0x1p-24.
  const std::vector<std::pair<double, float>> all = {{0.1, 0.1f},
                                                     {-0.0, -0.0f},
                                                     {1 + 0x1p-24, 1},
                                                     {1 + 0x3p-24, 1 + 0x1p-22f},
                                                     {1 + 0x1p-24 + 0x1p-50, 1 + 0x1p-23f},
                                                     {0x1p-149, least},
                                                     {0x1.8p-150, least},
                                                     {0x1p-150, 0},
                                                     {double{most}, most},
                                                     {0x1.ffffffp127 - 0x1p90, most},
                                                     {0x1.ffffffp127, inf},
                                                     {-1e300, -inf},
                                                     {NAN, NAN}};
  std::vector<std::byte> bytes(8 * all.size() + 1);  // unaligned
  for (size_t i = 0; i < all.size(); ++i) std::memcpy(bytes.data() + 1 + 8 * i, &all[i].first, 8);
  const Tensor tensor{
      .dtype = DType::kFloat64, .shape = {std::ssize(all)}, .data = bytes.data() + 1};
  EXPECT_EQ(tensor.num_bytes(), 8 * std::ssize(all));
  const std::vector<float> floats = tensor.to_float();
  for (size_t i = 0; i + 1 < all.size(); ++i)
    EXPECT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(all[i].second)) << i;
  EXPECT_TRUE(std::isnan(floats.back()));
}

TEST(TensorTest, CopiesTheElementsAskedForAndRefusesThoseBeyondTheEnd) {
  const std::vector<float> values = {1.0f, 2.0f};
  const Tensor tensor{.shape = {2}, .data = reinterpret_cast<const std::byte*>(values.data())};
  std::vector<float> out(4);
  EXPECT_INVALID(tensor.copy_to(out.data(), 1, 2), {"1 to 3", "has 2"});
  EXPECT_INVALID(tensor.copy_to(out.data(), -1, 1), {"-1"});
  EXPECT_INVALID(Tensor().copy_to(out.data(), 0, 1), {"absent"});
  const std::vector<uint16_t> halves = {0x3c00, 0x4000, 0x4200, 0x4400};  // 1, 2, 3, 4
  const Tensor four{.dtype = DType::kFloat16,
                    .shape = {4},
                    .data = reinterpret_cast<const std::byte*>(halves.data())};
  std::vector<float> two(3, -1.0f);
  four.copy_to(two.data(), 1, 2);
  EXPECT_EQ(two, (std::vector<float>{2.0f, 3.0f, -1.0f}));
  EXPECT_FALSE(Tensor().present());
  EXPECT_TRUE(Tensor().to_float().empty());
  EXPECT_EQ(Tensor().num_bytes(), 0);
}

}  // namespace
}  // namespace phasor
