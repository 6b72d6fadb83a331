// all-MiniLM-L6-v2 itself: reference.py wrote what transformers and sentence-transformers make of
// the texts in minilm.jsonl, and says what a line holds. The other ways in are tested in Python.
#include "tests/support/run_program.h"

namespace phasor {
namespace {

using nlohmann::json;

/// Skips where the checkpoint cannot be downloaded.
class RealCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    const ProgramResult fetched = run_program({PHASOR_SOURCE_DIR "/tests/real/fetch", "minilm"});
    if (fetched.exit_code == 77) GTEST_SKIP() << fetched.err;
    ASSERT_EQ(fetched.exit_code, 0) << fetched.err;
    folder_ = lines_of(fetched.out).at(0);
    const std::string file = read_text_file(PHASOR_SOURCE_DIR "/tests/real/minilm.jsonl");
    for (const std::string& line : lines_of(file)) {
      lines_.push_back(json::parse(line));
      texts_.push_back(lines_.back().at("text"));
    }
    ASSERT_EQ(lines_.size(), 200u);
  }

  Vectors embed(Precision precision) const {
    return Encoder(Model::load(folder_), {.precision = precision}).embed(texts_);
  }

  std::string folder_;
  std::vector<json> lines_;
  std::vector<std::string> texts_;
};

TEST_F(RealCheckpointTest, TokenIdsAreThoseOfTransformers) {
  const auto tokenizer = Tokenizer::load(folder_);
  for (const json& line : lines_) {
    const std::string text = line["text"];
    const std::vector<int32_t> plain = line["ids"], special = line.value("special_ids", plain);
    EXPECT_EQ(tokenizer->encode(text).ids, plain) << text;
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = true}).ids, special) << text;
  }
}

/// Of numbers of unit vectors, and of their cosines with float32's, as docs/reliability.md
/// promises.
struct Bound {
  Precision precision;
  double difference;
  double cosine;
};

TEST_F(RealCheckpointTest, VectorsAreThoseOfSentenceTransformers) {
  const Vectors exact = embed(Precision::kFloat32);
  for (const auto& [precision, difference, least] :
       {Bound{Precision::kFloat32, 1e-6, 0.999999}, Bound{Precision::kBfloat16, 0.003, 0.9999},
        Bound{Precision::kInt8, 0.07, 0.95}}) {
    const Vectors found = embed(precision);
    for (size_t i = 0; i < lines_.size(); ++i) {
      SCOPED_TRACE(std::string(to_string(precision)) + ": " + texts_[i]);
      const std::vector<double> wanted = lines_[i]["vector"];
      ASSERT_EQ(found.width, std::ssize(wanted) * 12);
      for (size_t k = 0; k < wanted.size(); ++k)
        ASSERT_NEAR(found[i][i % 12 + 12 * k], wanted[k], difference);
      ASSERT_GE(cosine(found[i], exact[i]), least);
    }
  }
}

}  // namespace
}  // namespace phasor
