// A tiny classifier on disk: infer rank and infer classify run it.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// A BERT with random weights, a WordPiece vocabulary of letters, and a head with these labels.
class BertFolder {
 public:
  explicit BertFolder(const std::vector<std::string>& labels, float out_scale = 1) {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
    for (char letter = 'a'; letter <= 'z'; ++letter) {
      vocabulary += std::string(1, letter) + "\n##" + letter + "\n";
    }
    folder_.write("vocab.txt", vocabulary);
    nlohmann::json config = {
        {"model_type", "bert"},   {"architectures", {"BertForSequenceClassification"}},
        {"hidden_size", 12},      {"intermediate_size", 20},
        {"num_hidden_layers", 1}, {"num_attention_heads", 3},
        {"vocab_size", 56},       {"max_position_embeddings", 32}};
    for (size_t i = 0; i < labels.size(); ++i) config["id2label"][std::to_string(i)] = labels[i];
    folder_.write("config.json", config.dump());
    folder_.write("model.safetensors", safetensors_bytes(tensors(labels.size(), out_scale)));
  }

  std::string path() const { return folder_.path().string(); }
  const TempFolder& folder() const { return folder_; }

 private:
  static std::vector<TestTensor> tensors(size_t labels, float out_scale) {
    std::vector<TestTensor> all;
    uint32_t state = 1;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, float scale) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      std::vector<float> values(count);
      for (float& value : values) {
        state = state * 1664525 + 1013904223;
        value = scale * (static_cast<float>(state >> 8) * 0x1p-23f - 1);
      }
      all.push_back({.name = name, .shape = std::move(shape), .bytes = float_bytes(values)});
    };
    const auto linear = [&](const std::string& name, int64_t out, int64_t in, float scale) {
      add(name + ".weight", {out, in}, scale);
      add(name + ".bias", {out}, 0.1f);
    };
    const auto norm = [&](const std::string& name) {
      add(name + ".weight", {12}, 1);
      add(name + ".bias", {12}, 0.1f);
    };
    add("bert.embeddings.word_embeddings.weight", {56, 12}, 1);
    add("bert.embeddings.position_embeddings.weight", {32, 12}, 1);
    add("bert.embeddings.token_type_embeddings.weight", {2, 12}, 1);
    norm("bert.embeddings.LayerNorm");
    const std::string block = "bert.encoder.layer.0.";
    for (const char* const part : {"attention.self.query", "attention.self.key",
                                   "attention.self.value", "attention.output.dense"}) {
      linear(block + part, 12, 12, 0.5f);
    }
    norm(block + "attention.output.LayerNorm");
    linear(block + "intermediate.dense", 20, 12, 0.5f);
    linear(block + "output.dense", 12, 20, 0.5f);
    norm(block + "output.LayerNorm");
    linear("bert.pooler.dense", 12, 12, 1);
    if (labels > 0) linear("classifier", static_cast<int64_t>(labels), 12, out_scale);
    return all;
  }

  TempFolder folder_;
};

}  // namespace phasor
