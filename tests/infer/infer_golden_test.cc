// golden.json: what verify takes as reference, and what it refuses.
#include <sys/stat.h>

#include "infer/commands/verify/golden.h"
#include "tests/support/test.h"

namespace infer {
namespace {

using phasor::expect_error;
using phasor::TempFolder;

std::string with_item(const std::string& item) {
  return R"({"atol": 1e-5, "rtol": 0, "items": [{"ids": [1]}, )" + item + "]}";
}

void expect_refused(const std::string& text, std::vector<std::string> words) {
  const TempFolder folder;
  folder.write("golden.json", text);
  folder.write("golden.safetensors", phasor::safetensors_bytes("{}", ""));
  words.push_back((folder.path() / "golden.json").string());
  expect_error<phasor::InvalidArgument>([&] { load_golden(folder.path()); }, words);
}

TEST(GoldenTest, ItemsHaveIdsAndMayHaveATextAndMore) {
  const TempFolder folder;
  folder.write("golden.json", with_item(R"({"text": "a", "ids": [0, 2147483647], "more": {}})"));
  folder.write("golden.safetensors", phasor::safetensors_bytes("{}", ""));
  const Golden golden = load_golden(folder.path());
  EXPECT_EQ(golden.atol, 1e-5);
  EXPECT_EQ(golden.rtol, 0);
  ASSERT_EQ(golden.items.size(), 2u);
  EXPECT_FALSE(golden.items[0].text);
  EXPECT_EQ(golden.items[1].text, "a");
  EXPECT_EQ(golden.items[1].ids, (std::vector<int32_t>{0, 2147483647}));
}

TEST(GoldenTest, AnIdThatIsNoTokenIdIsNamedAndNotNarrowed) {
  for (const char* const id :
       {"4294967301", "2147483648", "-1", "1.5", "\"5\"", "null", "[5]", "18446744073709551615"}) {
    expect_refused(with_item(std::string(R"({"ids": [3, )") + id + "]}"),
                   {"item 1", id, "from 0 to 2147483647"});
  }
}

TEST(GoldenTest, TolerancesAreNumbersFromZeroUp) {
  for (const char* const key : {"atol", "rtol"}) {
    for (const char* const value : {"-0.5", "\"0\"", "null", "[]"}) {
      const std::string other = *key == 'a' ? "rtol" : "atol";
      expect_refused(
          "{\"" + other + "\": 1, \"" + key + "\": " + value + R"(, "items": [{"ids": [1]}]})",
          {key, value, "from 0 up"});
    }
  }
  expect_refused(R"({"atol": 1e999, "rtol": 1, "items": [{"ids": [1]}]})", {"not valid JSON"});
}

TEST(GoldenTest, WhatIsNoListOfItemsIsRefused) {
  for (const char* const items : {"3", "{}", "[]", "null", "\"x\""}) {
    expect_refused(std::string(R"({"atol": 1, "rtol": 1, "items": )") + items + "}", {"items"});
  }
  for (const char* const item : {"3", "[]", "null", "\"x\""}) {
    expect_refused(with_item(item), {"item 1", item, "object"});
  }
  expect_refused(with_item("{}"), {"item 1", "ids is missing"});
  expect_refused(with_item(R"({"ids": {"0": 1}})"), {"item 1", "ids is"});
  expect_refused(with_item(R"({"text": 3, "ids": [1]})"), {"item 1", "text is 3"});
  expect_refused(with_item(R"({"text_pair": 3, "ids": [1]})"), {"item 1", "text_pair is 3"});
  expect_refused(with_item(R"({"text": ")" + std::string(1'048'577, 'a') + R"(", "ids": [1]})"),
                 {"text has 1048577 bytes"});
  expect_refused(with_item(R"({"ids": [1], "token_type_ids": [0, 0]})"),
                 {"token_type_ids", "each of the ids"});
  expect_refused(with_item(R"({"ids": [1], "logits": []})"), {"logits", "list of numbers"});
  expect_refused("[]", {"object"});
  expect_refused(std::string(100'000, '['), {"64 deep"});
}

TEST(GoldenTest, NothingWaitsForAFifo) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder.path() / "golden.json").c_str(), 0600), 0);
  expect_error<phasor::InvalidArgument>([&] { load_golden(folder.path()); }, {"golden.json"});
}

}  // namespace
}  // namespace infer
