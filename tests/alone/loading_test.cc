// Loading: weights read where they lie in the file, and pages let go of.
#include <csignal>

#include "tests/support/family_files.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

const std::vector<int32_t> kIds = {1, 5, 9, 2, 0, 7};

/// A BERT whose file may be shifted by `misaligned` bytes.
std::shared_ptr<const Model> load_bert(const TempFolder& folder, std::vector<TestTensor> tensors,
                                       int misaligned) {
  folder.write("config.json", bert_case().config.dump());
  std::string bytes = safetensors_bytes(tensors);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const std::string header = bytes.substr(8, length) + std::string(misaligned, ' ');
  folder.write("model.safetensors", safetensors_bytes(header, bytes.substr(8 + length)));
  return Model::load(folder.path());
}

TEST(LoadingTest, WhereTheDataLieDoesNotMatter) {
  const FamilyCase family = bert_case();
  const auto in_memory = random_model(family.meaning, 5, family.extras);
  const Encoding expected = Encoder(in_memory).encode_ids(kIds);
  for (int misaligned = 0; misaligned < 4; ++misaligned) {
    const TempFolder folder;
    const auto model = load_bert(folder, tensors_of(bert_case()), misaligned);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(model->weights().blocks[0].q.weight.data) % 4,
              static_cast<uintptr_t>(misaligned));
    expect_same_bits(hidden_of(Encoder(model).encode_ids(kIds)), expected[0].hidden,
                     std::to_string(misaligned));
  }
}

TEST(LoadingTest, ABadWeightIsFoundWhereverItLies) {
  for (int misaligned = 0; misaligned < 2; ++misaligned) {
    std::vector<TestTensor> tensors = tensors_of(bert_case());
    for (TestTensor& tensor : tensors) {
      if (!tensor.name.ends_with("layer.1.output.dense.weight")) continue;
      tensor.bytes.replace(4 * 17, 4, float_bytes({-INFINITY}));
    }
    const TempFolder folder;
    const auto model = load_bert(folder, tensors, misaligned);
    expect_error<ModelError>([&] { Encoder encoder(model); },
                             {"block 1 MLP down", "-inf", "element 17"});
  }
}

TEST(LoadingTest, PagesThatWereLetGoOfComeBack) {
  const TempFolder folder;
  const FamilyCase family = bert_case();
  for (const auto& model : {load_bert(folder, tensors_of(family), 0),
                            random_model(family.meaning, 5, family.extras)}) {  // is no file
    const std::vector<float> embedding = model->weights().token_embedding.to_float();
    Encoder encoder(model);
    const Encoding before = encoder.encode_ids(kIds);
    model->release_pages();
    expect_same_bits(model->weights().token_embedding.to_float(), embedding, "embedding");
    expect_same_bits(hidden_of(encoder.encode_ids(kIds)), before[0].hidden, "hidden");
    expect_same_bits(hidden_of(Encoder(model).encode_ids(kIds)), before[0].hidden, "another");
  }
}

TEST(LoadingTest, ACopySurvivesThatItsFileIsTruncated) {
  const TempFolder folder;
  load_bert(folder, tensors_of(bert_case()), 0);
  const auto model = Model::load(folder.path(), {.copy = true});
  Encoder encoder(model);
  const Encoding before = encoder.encode_ids(kIds);
  std::filesystem::resize_file(folder / "model.safetensors", 0);
  expect_same_bits(hidden_of(encoder.encode_ids(kIds)), before[0].hidden, "after it");
  expect_same_bits(hidden_of(Encoder(model).encode_ids(kIds)), before[0].hidden, "another encoder");
}

// Past the end of a mapped file there are no pages, and none of this file stays in memory.
TEST(LoadingTest, TruncatingAMappedFileEndsTheProcess) {
  const TempFolder folder;
  const auto model = load_bert(folder, tensors_of(bert_case()), 0);
  Encoder encoder(model);
  const auto truncate_and_encode = [&] {
    std::filesystem::resize_file(folder / "model.safetensors", 0);
    encoder.encode_ids(kIds);
  };
#if HAS_ADDRESS_SANITIZER
  EXPECT_DEATH(truncate_and_encode(), "BUS");
#else
  EXPECT_EXIT(truncate_and_encode(), testing::KilledBySignal(SIGBUS), "");
#endif
}

}  // namespace
}  // namespace phasor
