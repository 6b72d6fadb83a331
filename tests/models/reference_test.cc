// Hidden states and attention patterns beside those that another implementation computed from the
// same weights: golden.json has the ids and tolerances, golden.safetensors the tensors under the
// names of `infer --save`. The ids of their texts are compared in
// tests/tokenizer/tokenizer_test.cc, logits in tests/engine/classify_test.cc.
#include "tests/support/shared_files.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

class ReferenceTest : public testing::TestWithParam<std::string> {
 protected:
  /// The folders of a group that have references: of models/, or of one beside the repository.
  void SetUp() override {
    fs::path group = PHASOR_SOURCE_DIR "/models";
    if (GetParam() != "models") {
      PHASOR_SHARED_OR_SKIP(shared, GetParam());
      group = shared;
    }
    for (const auto& entry : fs::directory_iterator(group)) {
      if (fs::exists(entry.path() / "golden.safetensors")) folders_.push_back(entry.path());
    }
    ASSERT_FALSE(folders_.empty());
  }

  std::vector<fs::path> folders_;
};
INSTANTIATE_TEST_SUITE_P(, ReferenceTest,
                         testing::Values("models", "golden", "golden2", "golden3", "real"),
                         [](const auto& info) { return info.param; });

/// Element by element as close as golden.json says; of a lower precision, the last states' mean
/// cosine.
void expect_reference(const fs::path& folder, const EncoderOptions& options) {
  SCOPED_TRACE(fmt::format("{} {} {}", folder.string(), to_string(options.precision),
                           to_string(options.kernels)));
  const json golden = json::parse(std::ifstream(folder / "golden.json"));
  const auto tensors = SafetensorsFile::open(folder / "golden.safetensors");
  Encoder encoder(Model::load(folder), options);
  const int64_t layers = encoder.model().config().num_layers;
  double distances = 0, tokens = 0;
  ASSERT_GT(golden["items"].size(), 0u);
  for (size_t i = 0; i < golden["items"].size(); ++i) {
    const std::vector<int32_t> ids = golden["items"][i]["ids"];
    const auto state = [&](int64_t l) { return fmt::format("{}.hidden_states.{}", i, l); };
    const auto pattern = [&](int64_t l) { return fmt::format("{}.attentions.{}", i, l); };
    Trace trace = Trace::hidden_states_and_attentions();
    encoder.encode_ids(ids, {.observer = &trace});
    const auto expect = [&](const std::string& name, const Trace::Entry& got) {
      const std::vector<float> want = tensors->tensor(name).to_float();
      ASSERT_EQ(tensors->tensor(name).shape, got.shape) << name;
      if (options.precision != Precision::kFloat32) {
        const int64_t width = got.shape.back();
        distances += mean_cosine_distance(got.values, want, width) * got.shape[0];
        tokens += got.shape[0];
        return;
      }
      const double atol = golden["atol"], rtol = golden["rtol"];
      for (size_t e = 0; e < want.size(); ++e)
        ASSERT_NEAR(got.values[e], want[e], atol + rtol * std::abs(want[e])) << name << " " << e;
    };
    EXPECT_FALSE(tensors->contains(state(layers + 1)));
    expect(fmt::format("{}.last_hidden_state", i), trace.hidden_state(layers));
    for (int64_t l = 0; l <= layers && options.precision == Precision::kFloat32; ++l) {
      expect(state(l), trace.hidden_state(l));
      if (tensors->contains(pattern(l))) expect(pattern(l), trace.at(Hook::kPattern, l));
    }
  }
  EXPECT_EQ(tokens > 0, options.precision != Precision::kFloat32);
  EXPECT_LE(distances, 0.01 * tokens);
}

TEST_P(ReferenceTest, StatesAndPatternsAreThoseOfTheReference) {
  for (const fs::path& folder : folders_) {
    const std::string name = folder.filename();
    if (name == "privacy-filter" || name == "embeddinggemma2-text") continue;  // no family of ours
    if (fs::exists(folder / "expect.json")) {  // a pickle that must not be read
      expect_error<ModelError>([&] { Model::load(folder); }, {"pytorch_model.bin: "});
      continue;
    }
    for (const KernelLibrary kernels : {KernelLibrary::kOwn, KernelLibrary::kOneDnn})
      expect_reference(folder, {.threads = 2, .kernels = kernels});
    for (const Precision precision : {Precision::kBfloat16, Precision::kInt8})
      expect_reference(folder, {.threads = 2, .precision = precision});
  }
}

}  // namespace
}  // namespace phasor
