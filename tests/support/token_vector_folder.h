// A tiny model of token vectors on disk.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test.h"
#include "tests/support/test_files.h"
#include "tests/support/torch_files.h"

namespace phasor {

/// A bundled model with a Dense from 128 to 3 numbers, a MultiVectorMask and a Normalize, as
/// sentence-transformers saves a MultiVectorEncoder.
class TokenVectorFolder {
 public:
  /// `options`: of sentence_bert_config.json, such as query_expansion.
  explicit TokenVectorFolder(const std::string& model = "sinusoidal",
                             const nlohmann::json& options = nlohmann::json::object(),
                             const nlohmann::json& mask = nlohmann::json::object()) {
    for (const char* const name : {"config.json", "model.safetensors", "tokenizer.model"})
      std::filesystem::copy(bundled_model(model) / name, folder_.path() / name);
    write_modules({"Transformer", "Dense", "MultiVectorMask", "Normalize"});
    const nlohmann::json dense = {{"in_features", 128},
                                  {"out_features", kWidth},
                                  {"bias", true},
                                  {"activation_function", "torch.nn.modules.activation.Tanh"},
                                  {"module_input_name", "token_embeddings"},
                                  {"module_output_name", "token_embeddings"}};
    folder_.write("1_Dense/config.json", dense.dump());
    folder_.write("1_Dense/model.safetensors",
                  safetensors_bytes({{"linear.weight", {kWidth, 128}, "F32", float_bytes(weight())},
                                     {"linear.bias", {kWidth}, "F32", float_bytes(bias())}}));
    folder_.write("2_MultiVectorMask/config.json", mask.dump());
    folder_.write("sentence_bert_config.json", options.dump());
    folder_.write("config_sentence_transformers.json",
                  nlohmann::json{{"model_type", "MultiVectorEncoder"},
                                 {"prompts", {{"query", "Q: "}, {"document", ""}}}}
                      .dump());
  }

  static constexpr int64_t kWidth = 3;
  static std::vector<float> weight() {
    std::vector<float> numbers(kWidth * 128);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i)) / 4;
    return numbers;
  }
  static std::vector<float> bias() { return {0.25F, -0.5F, 0.125F}; }
  /// The vector of a token whose state this is: Dense, then Normalize.
  static std::vector<double> vector_of(std::span<const double> state) {
    const std::vector<float> map = weight(), added = bias();
    std::vector<double> y(kWidth);
    double squares = 0;
    for (int64_t o = 0; o < kWidth; ++o) {
      double sum = added[o];
      for (int64_t c = 0; c < 128; ++c) sum += double{map[o * 128 + c]} * state[c];
      y[o] = std::tanh(sum);
      squares += y[o] * y[o];
    }
    for (double& number : y) number /= std::sqrt(squares);
    return y;
  }

  /// In the place of the modules the heads of BGE-M3, which make three kinds of vectors.
  void make_bge() const {
    std::filesystem::remove(folder_.path() / "modules.json");
    add_sparse_linear();
    folder_.write("colbert_linear.pt",
                  torch_bytes({{"weight", {kWidth, 128}, "F32", float_bytes(weight())},
                               {"bias", {kWidth}, "F32", float_bytes(bias())}}));
  }

  /// BGE-M3's head for sparse vectors.
  void add_sparse_linear() const {
    std::vector<float> line(128);
    for (size_t i = 0; i < line.size(); ++i) line[i] = std::cos(static_cast<float>(i));
    folder_.write("sparse_linear.pt", torch_bytes({{"weight", {1, 128}, "F32", float_bytes(line)},
                                                   {"bias", {1}, "F32", float_bytes({0.5F})}}));
  }

  void write_modules(const std::vector<std::string>& kinds) const {
    nlohmann::json modules = nlohmann::json::array();
    for (size_t i = 0; i < kinds.size(); ++i) {
      const std::string path = i == 0 ? "" : std::to_string(i) + "_" + kinds[i];
      modules.push_back({{"path", path}, {"type", "sentence_transformers.modules." + kinds[i]}});
    }
    folder_.write("modules.json", modules.dump());
  }
  std::string path() const { return folder_.path().string(); }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

}  // namespace phasor
