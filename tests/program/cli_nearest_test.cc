// infer embed --nearest --in: what is nearest in a file of vectors.
#include "files/corpus/save.h"
#include "infer/files.h"
#include "phasor/names.h"
#include "phasor/quantize.h"
#include "tests/program/program.h"
#include "tests/support/draw.h"

namespace phasor {
namespace {

std::string npy_bytes(const std::vector<float>& values, int64_t width) {
  return infer::npy_header("<f4", std::array{std::ssize(values) / width, width}) +
         float_bytes(values);
}

class CliNearestTest : public testing::Test {
 protected:
  CliNearestTest() {
    std::string lines;
    for (int i = 0; i < 300; ++i) lines += "Tom bit dog number " + std::to_string(i * 37) + "\n";
    in_ = folder_.write("in.txt", lines).string();
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  void make(const std::string& name, const Words& options = {}) const {
    succeed(Words{"embed", "-q", "-i", in_, "-o", file(name)} + options);
  }
  /// The numbers of the lines in a file that are nearest to a text.
  std::vector<int64_t> nearest_in(const std::string& name, size_t most, const std::string& text,
                                  const Words& options) const {
    const Words words = {"embed", "-q", "--in", file(name), "--nearest", std::to_string(most),
                         text};
    return line_numbers(infer_json(words + options).at(0)["nearest"]);
  }

  const TempFolder folder_;
  std::string in_;
};

/// The numbers of the `most` nearest rows, the best first: brute force in double precision.
std::vector<int64_t> nearest(std::span<const float> query, const std::vector<float>& values,
                             size_t most) {
  const auto width = std::ssize(query);
  std::vector<double> cosines;
  for (int64_t row = 0; row < std::ssize(values) / width; ++row) {
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double a = query[i], b = values[row * width + i];
      ab += a * b, aa += a * a, bb += b * b;
    }
    cosines.push_back(bb > 0 ? ab / std::sqrt(aa) / std::sqrt(bb) : std::isnan(bb) ? -2 : 0);
  }
  std::vector<int64_t> rows(cosines.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::stable_sort(rows, [&](auto a, auto b) { return cosines[a] > cosines[b] + 1e-12; });
  rows.resize(std::min(most, rows.size()));
  for (int64_t& row : rows) ++row;
  return rows;
}

TEST_F(CliNearestTest, NearestInAFileIsWhatBruteForceFindsForAnyNumberOfThreads) {
  constexpr int64_t kRows = 5000, kWidth = 128;  // several blocks
  std::vector<float> values(kRows * kWidth);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) / (1 << 24) - 0.5f;
  }
  const auto copy_row = [&](int64_t from, int64_t to) {
    std::copy_n(values.begin() + from * kWidth, kWidth, values.begin() + to * kWidth);
  };
  Encoder encoder(Model::load("sinusoidal"));
  const Words queries = {"It rains.", "Tom bit a dog."};
  const Embeddings vectors = encoder.embed(queries);
  std::ranges::copy(vectors[0], values.begin() + 4321 * kWidth);
  for (const int64_t same : {7, 1500, 4999}) copy_row(4321, same);  // ties
  values[20 * kWidth + 3] = NAN;
  std::fill_n(values.begin() + 30 * kWidth, kWidth, 0.0f);
  folder_.write("v.npy", npy_bytes(values, kWidth));
  const auto search = [&](const std::string& most, const std::string& threads) {
    return infer_json({"embed", "-q", "-t", threads, "--nearest", most, "--in", file("v.npy"),
                       queries[0], queries[1]});
  };
  const json found = search("900", "1");
  for (int q = 0; q < 2; ++q) {
    EXPECT_EQ(line_numbers(found.at(q)["nearest"]), nearest(vectors[q], values, 900));
    EXPECT_FALSE(found.at(q)["nearest"][0].contains("text"));
  }
  EXPECT_EQ(found.at(0)["nearest"][1]["line"], 1501);
  for (const char* const threads : {"2", "5"}) EXPECT_EQ(search("900", threads), found);
  values.resize(950 * kWidth);
  values[40 * kWidth] = INFINITY;
  folder_.write("v.npy", npy_bytes(values, kWidth));
  const std::vector<int64_t> lines = line_numbers(search("1000", "2").at(0)["nearest"]);
  EXPECT_EQ(lines.size(), 948u) << "all that are finite";
  for (const int64_t bad : {21, 41}) EXPECT_EQ(std::ranges::count(lines, bad), 0);
  const ProgramResult noted = run_infer({"embed", "--nearest", "1", "--in", file("v.npy"), "Tom"});
  expect_contains(noted.err, {"no record says what made it", "which hold NaN or infinity: 2"});
}

TEST_F(CliNearestTest, NearestInAFileIsWhatEmbeddingItsLinesFinds) {
  const Words queries = {"Tom bit dog number 74", "a cat"};
  const auto search = [&](const Words& more) {
    return infer_json(Words{"embed", "-q", "--nearest", "400"} + more,
                      {.input = queries[0] + "\n" + queries[1] + "\n"});
  };
  const json embedded = search({"-i", in_, queries[0], queries[1]});
  EXPECT_EQ(embedded.at(0)["nearest"].size(), 300u) << "all there are";
  for (const std::string name : {"a.npy", "a.safetensors"}) {
    make(name);
    EXPECT_EQ(search({"--in", file(name), "--texts", in_, queries[0], queries[1]}), embedded);
    EXPECT_EQ(search({"--in", file(name), "--texts", in_, "-"}), embedded);
    EXPECT_EQ(search({"--in", file(name), "--texts", in_, "-i", "-"}), embedded);
  }
}

// The file is what quantize() makes of the model's vectors, whose search is that of the numbers
// that it gives back; of bits, of the 10 N with the smallest Hamming distance.
TEST_F(CliNearestTest, SmallerVectorsAreSearchedAsTheyAreStored) {
  make("f32.safetensors");
  const infer::MatrixFile whole(file("f32.safetensors"), "embeddings");
  const std::vector<float> vectors = whole.tensor().to_float();
  ColumnRanges ranges;
  ranges.add(vectors, 128);
  const std::string text = "Tom bit dog number 74";
  Encoder encoder(Model::load("sinusoidal"));
  const Embeddings embedded = encoder.embed(text);
  const std::span<const float> query = embedded[0];
  constexpr size_t kMost = 7;
  for (const std::string type : {"f16", "int8", "uint8", "binary", "ubinary"}) {
    SCOPED_TRACE(type);
    const bool has_steps = type.ends_with("int8"), are_bits = type.ends_with("binary");
    const auto kind = parse<VectorType>(type);
    const std::vector<std::byte> bytes = quantize(vectors, 128, kind, ranges);
    std::vector<float> back = dequantize(bytes, 128, kind, ranges);
    if (are_bits) {
      const int64_t row = vector_bytes(kind, 128);
      const std::vector<std::byte> bits = quantize(query, 128, kind);
      std::vector<int64_t> order(300), distance;
      std::iota(order.begin(), order.end(), 0);
      for (const int64_t i : order)
        distance.push_back(hamming_distance(bits, std::span(bytes).subspan(i * row, row)));
      std::ranges::stable_sort(order, std::less(), [&](int64_t i) { return distance[i]; });
      for (const int64_t i : std::span(order).subspan(10 * kMost))
        for (int64_t c = 0; c < 128; ++c) back[i * 128 + c] = -query[c];  // not among them
    }
    for (const std::string name : {"v.safetensors", "v.npy"}) {
      if (has_steps && name == "v.npy") continue;
      make(name, {"--quantize", type});
      const infer::MatrixFile made(file(name), "embeddings", true);
      EXPECT_TRUE(std::ranges::equal(bytes, std::span(made.tensor().data, bytes.size())));
      EXPECT_EQ(made.tensor().num_bytes(), std::ssize(bytes));
      EXPECT_FALSE(fs::exists(file(name) + ".partial"));
      EXPECT_FALSE(fs::exists(file(name) + ".partial.json"));
      EXPECT_EQ(nearest_in(name, kMost, text, {"--texts", in_}), nearest(query, back, kMost));
      // Of those that are found, the nearest by the whole vectors.
      std::vector<float> both = vectors;
      for (int64_t at = 0; at < std::ssize(both); ++at)
        if (are_bits && back[at] == -query[at % 128]) both[at] = back[at];
      EXPECT_EQ(nearest_in(name, kMost, text, {"--rescore", file("f32.safetensors")}),
                nearest(query, both, kMost));
    }
  }
  folder_.write("fewer.npy", npy_bytes(std::vector<float>(128, 1), 128));
  expect_infer_fails({"embed", "-q", "--in", file("v.npy"), "--rescore", file("fewer.npy"),
                      "--nearest", "1", "Tom"},
                     3, {"--rescore", "other lines"});
  expect_infer_fails({"embed", "--rescore", file("v.npy"), "Tom"}, 2, {"--rescore needs --in"});
  make("v.npy", {"--quantize", "ubinary", "--resume"});  // there is nothing to do
  make("v.npy", {"--quantize", "binary"});
  expect_infer_fails(
      {"embed", "-q", "-i", in_, "-o", file("v.npy"), "--quantize", "ubinary", "--resume"}, 3,
      {"vectors binary (now ubinary)"});
  expect_infer_fails({"embed", "-q", "-i", in_, "-o", file("v.npy"), "--resume"}, 3,
                     {"vectors binary"});
  for (const Words& wrong :
       {Words{"int8", "-o", file("v.npy")}, {"f16", "-o", file("v.jsonl")}, {"f16"}})
    expect_infer_fails(Words{"embed", "-i", in_, "--quantize"} + wrong, 2, {"--quantize"});
  expect_infer_fails({"embed", "-i", in_, "-o", file("v.npy"), "--quantize", "int4"}, 2,
                     {"int4", "ubinary"});
}

// Of the 10 N rows that are found, whatever blocks they lie in.
TEST_F(CliNearestTest, OtherVectorsOfTheSameLinesDecide) {
  const std::string text = "It rains.";
  const Embeddings embedded = Encoder(Model::load("sinusoidal")).embed(text);
  constexpr size_t kMost = 3;
  for (const int64_t rows : {900, 3000}) {
    const std::vector<float> first = draw(rows * 128, 1), second = draw(rows * 128, 2);
    std::vector<float> wanted(rows * 128, NAN);
    for (const int64_t line : nearest(embedded[0], first, 10 * kMost))
      std::copy_n(second.begin() + (line - 1) * 128, 128, wanted.begin() + (line - 1) * 128);
    folder_.write("a.npy", npy_bytes(first, 128));
    folder_.write("b.npy", npy_bytes(second, 128));
    const auto search = [&] {
      return nearest_in("a.npy", kMost, text, {"--rescore", file("b.npy")});
    };
    const std::vector<int64_t> want = nearest(embedded[0], wanted, kMost);
    EXPECT_EQ(search(), want);
    std::vector<float> damaged = second;
    damaged[(want[0] - 1) * 128] = NAN;
    folder_.write("b.npy", npy_bytes(damaged, 128));
    EXPECT_EQ(std::ranges::count(search(), want[0]), 0);
  }
  const auto refused = [&](const std::string& name, const Words& said) {
    expect_infer_fails(
        {"embed", "-q", "--in", file("a.npy"), "--rescore", file(name), "--nearest", "1", "Tom"}, 3,
        said);
  };
  refused("nothere.npy", {"--rescore: ", "nothere.npy"});
  folder_.write("steps.npy", infer::npy_header("|i1", std::array{int64_t{3000}, int64_t{128}}) +
                                 std::string(3000 * 128, '\1'));
  refused("steps.npy", {"--rescore: ", "steps.npy", "'least' and 'most'"});
  succeed({"embed", "-q", "-i", in_, "--chunks", "2", "-o", file("chunks.safetensors")});
  refused("chunks.safetensors", {"no vectors of lines, but chunks"});
}

TEST_F(CliNearestTest, ANumberThatFloat16HasNotEndsTheRun) {
  const TempFolder model;
  fs::copy(bundled_model("sinusoidal"), model.path() / "m");
  json modules = {{{"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
                  {{"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}},
                  {{"path", "2_Dense"}, {"type", "sentence_transformers.models.Dense"}}};
  model.write("m/modules.json", modules.dump());
  model.write("m/1_Pooling/config.json",
              R"({"word_embedding_dimension": 128, "pooling_mode_mean_tokens": true})");
  model.write("m/2_Dense/config.json", R"({"in_features": 128, "out_features": 1, "bias": true,
                                          "activation_function": "torch.nn.modules.linear.Identity"})");
  model.write("m/2_Dense/model.safetensors",
              safetensors_bytes(
                  {{"linear.weight", {1, 128}, "F32", float_bytes(std::vector<float>(128, 0))},
                   {"linear.bias", {1}, "F32", float_bytes({1e6F})}}));
  expect_infer_fails({"embed", "-q", "-m", (model.path() / "m").string(), "-i", in_, "-o",
                      file("v.npy"), "--quantize", "f16"},
                     3, {"1000000", "65504", "--resume"});
  EXPECT_FALSE(fs::exists(file("v.npy")));
}

// As after a crash between the last line and the smaller file.
TEST_F(CliNearestTest, SmallerVectorsAreMadeFromWhatIsLeft) {
  make("whole.npy", {"--quantize", "f16"});
  make("v.npy", {"--quantize", "f16"});
  const json record = json::parse(read_text_file(file("v.npy.json")));
  make("f32.npy");
  fs::rename(file("f32.npy"), file("v.npy.partial"));
  json left = json::parse(read_text_file(file("f32.npy.json")));
  left.erase("xxh64");
  left["made_with"]["vectors"] = "f16";
  folder_.write("v.npy.partial.json", left.dump());
  make("v.npy", {"--quantize", "f16", "--resume"});
  EXPECT_TRUE(read_text_file(file("v.npy")) == read_text_file(file("whole.npy")));
  EXPECT_EQ(json::parse(read_text_file(file("v.npy.json"))), record);
  EXPECT_FALSE(fs::exists(file("v.npy.partial")));
}

TEST_F(CliNearestTest, RangesThatDoNotFitAreRefused) {
  for (const auto& [size, value] : {std::pair(127, 0.0F), {128, NAN}}) {
    const std::string numbers = float_bytes(std::vector<float>(size, value));
    folder_.write("v.safetensors",
                  safetensors_bytes({{"embeddings", {2, 128}, "I8", std::string(256, '\1')},
                                     {"least", {size}, "F32", numbers},
                                     {"most", {size}, "F32", numbers}}));
    expect_infer_fails({"embed", "-q", "--in", file("v.safetensors"), "--nearest", "1", "Tom"}, 3,
                       {"v.safetensors", "'least' and 'most'", size == 127 ? "128" : "nan"});
  }
}

TEST_F(CliNearestTest, NearestRefusesVectorsOfAnotherModelAndOtherTexts) {
  make("a.npy");
  const auto refused = [&](const Words& more, int code, const Words& parts) {
    expect_infer_fails(Words{"embed", "-q", "--nearest", "3", "--in", file("a.npy"), "Tom"} + more,
                       code, parts);
  };
  refused({"-m", "learned"}, 3, {"these vectors were made with", " of sinusoidal (now", "-m"});
  refused({"--pooling", "cls"}, 3, {"pooling \"mean, not normalised\"", "--pooling"});
  refused({"--pooling", "cls,mean"}, 3, {"128 numbers", "256", "made by sinusoidal"});
  const std::string other = folder_.write("other.txt", "X" + read_text_file(in_));
  refused({"--texts", other}, 3, {"--texts", "other.txt", "not those"});
  folder_.write("a.npy", npy_bytes(std::vector<float>(128), 128));
  refused({}, 3, {"has changed since", "a.npy.json"});
  fs::remove(file("a.npy.json"));
  folder_.write("a.npy", "no matrix");
  refused({}, 3, {"a.npy", "neither .npy nor .safetensors"});
}

}  // namespace
}  // namespace phasor
