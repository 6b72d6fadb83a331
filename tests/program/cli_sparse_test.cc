// infer embed --sparse.
#include <cstring>
#include <map>

#include "phasor/safetensors.h"
#include "tests/program/program.h"
#include "tests/support/sparse_folder.h"

namespace phasor {
namespace {

TEST(CliSparseTest, WeightsAreThoseOfTheLibrary) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const Words texts = {"Tom bit a dog.", "It rains.", ""};
  const auto loaded = Model::load(model.path());
  const SparseVectors want = Encoder(loaded).embed_sparse(texts);
  const std::vector<json> lines =
      infer_json(Words{"embed", "--sparse", "-m", model.path(), "--precision", "f32"} + texts);
  ASSERT_EQ(lines.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(lines[i]["line"], i + 1);
    std::map<int32_t, float> found;
    float before = std::numeric_limits<float>::infinity();
    for (const json& each : lines[i]["sparse"]) {
      const float value = each["value"];
      EXPECT_LE(value, before);
      before = found[each["index"].get<int32_t>()] = value;
      EXPECT_EQ(each["word"], loaded->tokenizer().piece(each["index"]));
    }
    SparseVector got;
    for (const auto& [index, value] : found) {
      got.indices.push_back(index);
      got.values.push_back(value);
    }
    EXPECT_EQ(got, want.vectors[i]);
  }
}

TEST(CliSparseTest, AFileHoldsTheMatrixOfAllLines) {
  const SparseFolder model(json{{"pooling_strategy", "sum"}});
  const TempFolder folder;
  const std::string file = folder.path() / "weights.safetensors";
  std::string input;
  Words lines;
  for (int i = 0; i < 700; ++i) {
    lines.push_back("line " + std::to_string(i));
    input += lines.back() + "\n";
  }
  const ProgramResult done =
      run_infer({"embed", "--sparse", "-m", model.path(), "--precision", "f32", "-o", file},
                {.input = input});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  expect_contains(done.err, {"700 lines", "of 8192 weights each"});
  const SparseVectors want = Encoder(Model::load(model.path())).embed_sparse(lines);
  const auto saved = SafetensorsFile::open(file);
  const std::string bytes = read_text_file(file);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  const json header = json::parse(bytes.substr(8, header_size));
  const auto numbers = [&](const char* name) {
    const size_t begin = header[name]["data_offsets"][0], end = header[name]["data_offsets"][1];
    std::vector<int32_t> values((end - begin) / 4);
    std::memcpy(values.data(), bytes.data() + 8 + header_size + begin, end - begin);
    return values;
  };
  const std::vector<int32_t> indptr = numbers("indptr"), indices = numbers("indices");
  const std::vector<float> values = saved->tensor("values").to_float();
  EXPECT_EQ(numbers("shape"), (std::vector<int32_t>{700, 8192}));
  ASSERT_EQ(indptr.size(), 701u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto part = [&](const auto& all) {
      return std::remove_cvref_t<decltype(all)>(all.begin() + indptr[i],
                                                all.begin() + indptr[i + 1]);
    };
    EXPECT_EQ((SparseVector{part(indices), part(values)}), want.vectors[i]) << i;
  }
}

TEST(CliSparseTest, WhatDoesNotGoTogetherIsRefused) {
  const SparseFolder model(json{{"pooling_strategy", "max"}});
  const std::string sparse = "embed a --sparse -m " + model.path();
  expect_refused({{2, "embed a --query", {"--sparse"}},
                  {2, sparse + " --similarity", {"--similarity"}},
                  {2, sparse + " --pooling mean", {"--pooling"}},
                  {2, sparse + " -o x.npy", {".safetensors"}},
                  {4, "embed a --sparse", {"SpladePooling"}},
                  {4, "embed a -m " + model.path(), {"--sparse"}}});
}

}  // namespace
}  // namespace phasor
