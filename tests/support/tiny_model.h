// Tiny models on disk.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// sentence-transformers' modules of these kinds, in the folders 1_Pooling, 2_Dense, …
inline json modules_of(const std::vector<std::string>& kinds,
                       const std::string& of = "sentence_transformers.models.") {
  json modules = json::array();
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::string path = i == 0 ? "" : std::to_string(i) + "_" + kinds[i];
    modules.push_back(
        {{"idx", i}, {"name", std::to_string(i)}, {"path", path}, {"type", of + kinds[i]}});
  }
  return modules;
}

/// A folder of a tiny model: the checkpoint of `model`, and files by name, which are JSON, or text
/// as it is. `model` is "small", for small_tensors(), the name of a bundled one, or "" for none.
class TinyModel : public TempFolder {
 public:
  explicit TinyModel(const std::string& model, const json& files = json::object()) {
    if (model == "small") {
      write_checkpoint(*this);
    } else if (!model.empty()) {
      for (const char* const name : {"config.json", "model.safetensors", "tokenizer.model"})
        fs::copy(bundled_model(model) / name, *this / name);
    }
    write_files(files);
  }

  void write_modules(const std::vector<std::string>& kinds,
                     const std::string& of = "sentence_transformers.modules.") const {
    write_json("modules.json", modules_of(kinds, of));
  }
  std::string path() const { return TempFolder::path().string(); }
  std::shared_ptr<const Model> load() const { return Model::load(path()); }
};

/// A bundled model, whose masked-language-model head has 8192 pieces, with a SpladePooling.
class SparseFolder : public TinyModel {
 public:
  explicit SparseFolder(const json& pooling)
      : TinyModel("sinusoidal", {{"1_SpladePooling/config.json", pooling}}) {
    write_modules({"MLMTransformer", "SpladePooling"},
                  "sentence_transformers.sparse_encoder.models.");
  }
};

/// A bundled model with a Dense from 128 to 3 numbers, a MultiVectorMask and a Normalize, as
/// sentence-transformers saves a MultiVectorEncoder.
class TokenVectorFolder : public TinyModel {
 public:
  /// `options`: of sentence_bert_config.json, such as query_expansion.
  explicit TokenVectorFolder(const std::string& model = "sinusoidal",
                             const json& options = json::object(),
                             const json& mask = json::object())
      : TinyModel(model, {{"2_MultiVectorMask/config.json", mask},
                          {"sentence_bert_config.json", options},
                          {"config_sentence_transformers.json",
                           {{"model_type", "MultiVectorEncoder"},
                            {"prompts", {{"query", "Q: "}, {"document", ""}}}}}}) {
    write_modules({"Transformer", "Dense", "MultiVectorMask", "Normalize"});
    const json dense = {{"in_features", 128},
                        {"out_features", kWidth},
                        {"bias", true},
                        {"activation_function", "torch.nn.modules.activation.Tanh"},
                        {"module_input_name", "token_embeddings"},
                        {"module_output_name", "token_embeddings"}};
    write_json("1_Dense/config.json", dense);
    write("1_Dense/model.safetensors",
          safetensors_bytes({{"linear.weight", {kWidth, 128}, "F32", float_bytes(weight())},
                             {"linear.bias", {kWidth}, "F32", float_bytes(bias())}}));
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
    fs::remove(*this / "modules.json");
    add_sparse_linear();
    write("colbert_linear.pt", torch_bytes({{"weight", {kWidth, 128}, "F32", float_bytes(weight())},
                                            {"bias", {kWidth}, "F32", float_bytes(bias())}}));
  }

  /// BGE-M3's head for sparse vectors.
  void add_sparse_linear() const {
    std::vector<float> line(128);
    for (size_t i = 0; i < line.size(); ++i) line[i] = std::cos(static_cast<float>(i));
    write("sparse_linear.pt", torch_bytes({{"weight", {1, 128}, "F32", float_bytes(line)},
                                           {"bias", {1}, "F32", float_bytes({0.5F})}}));
  }
};

}  // namespace phasor
