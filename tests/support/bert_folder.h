// A tiny classifier on disk: infer rank and infer classify run it.
#pragma once

#include "tests/support/family_files.h"
#include "tests/support/tiny_model.h"

namespace phasor {

/// A BERT with random weights, a WordPiece vocabulary of letters, and a head with these labels.
class BertFolder : public TinyModel {
 public:
  /// `of_tokens`: the head labels tokens.
  explicit BertFolder(const std::vector<std::string>& labels, float out_scale = 1,
                      bool of_tokens = false)
      : TinyModel("") {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
    for (char letter = 'a'; letter <= 'z'; ++letter)
      vocabulary += std::string(1, letter) + "\n##" + letter + "\n";
    write("vocab.txt", vocabulary);
    FamilyCase bert = all_classifiers().front();
    bert.config["vocab_size"] = bert.meaning.vocab_size = 56;
    bert.config["max_position_embeddings"] = bert.meaning.max_positions = 32;
    bert.config["num_hidden_layers"] = bert.meaning.num_layers = 1;
    bert.config.erase("id2label");
    for (size_t i = 0; i < labels.size(); ++i)
      bert.config["id2label"][std::to_string(i)] = labels[i];
    bert.extras.classifier->labels = labels;
    if (labels.empty()) bert.extras.classifier.reset();
    if (of_tokens) bert.config["architectures"] = {"BertForTokenClassification"};
    bert.extras.classifier_scale = out_scale;
    write_checkpoint(*this, bert.config, tensors_of(bert));
  }
};

}  // namespace phasor
