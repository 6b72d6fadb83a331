// No key of a folder's JSON files is passed over: those that Transformers and sentence-transformers
// write are read or known to change nothing, and any other is named.
#include "models/config_keys.h"
#include "models/model_config.h"
#include "tests/support/test.h"

namespace phasor {
using namespace internal;

namespace {

/// tests/fixtures/keys_written.py says where it comes from.
json keys_written() { return json::parse(std::ifstream(fixture("keys_written.json"))); }

TEST(KnownKeysTest, EveryKeyThatTransformersWritesIntoAConfigIsReadOrChangesNothing) {
  const json written = keys_written(), configs = written.at("config.json");
  ASSERT_GE(configs.size(), 19u);
  for (const auto& [type, own] : configs.items()) {
    json config = written.at("every type");
    config.update(own);
    const TempFolder folder;
    folder.write("config.json", config.dump());
    ModelFolder files(folder.path());
    read_model_config(files);
    std::vector<std::string> unused, notes;
    report_others(files, unused, notes);
    EXPECT_TRUE(notes.empty()) << type << ": " << notes.front();
    EXPECT_FALSE(unused.empty());
  }
}

/// A small BERT with the files of sentence-transformers, all with the keys that are written.
class WrittenFolderTest : public testing::Test {
 protected:
  WrittenFolderTest() {
    write_checkpoint(folder_);
    folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    const json written = keys_written();
    for (const char* const name :
         {"tokenizer_config.json", "special_tokens_map.json", "sentence_bert_config.json",
          "config_sentence_transformers.json"}) {
      files_[name] = written.at(name);
    }
    files_["modules.json"] = json::parse(R"([
      {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    ])");
    files_["1_Pooling/config.json"] = written.at("1_Pooling/config.json");
    for (const char* const width : {"embedding_dimension", "word_embedding_dimension"}) {
      files_["1_Pooling/config.json"][width] = small_config_json()["d_model"];
    }
  }

  std::shared_ptr<const Model> load() const {
    for (const auto& [name, content] : files_) folder_.write(name, content.dump());
    return Model::load(folder_.path());
  }

  TempFolder folder_;
  std::map<std::string, json> files_;
};

TEST_F(WrittenFolderTest, EveryKeyIsReadOrChangesNothing) {
  const auto model = load();
  EXPECT_TRUE(model->has_sentence());
  EXPECT_FALSE(mentions(model->notes(), "does not know")) << testing::PrintToString(model->notes());
  EXPECT_TRUE(
      mentions(model->unused_keys(), "tokenizer_config.json: clean_up_tokenization_spaces"));
}

TEST_F(WrittenFolderTest, AKeyThatNobodyKnowsIsNamedInEveryFile) {
  files_["config.json"] = small_config_json();
  files_["config.json"]["position"]["bass"] = 500;
  for (const auto& [name, content] : std::map(files_)) {
    const auto before = files_;
    if (name == "special_tokens_map.json") {  // is read where there is no such list
      files_["tokenizer_config.json"].erase("added_tokens_decoder");
    }
    json& file = files_[name];
    (file.is_array() ? file[0] : file)["unheard_of"] = 1;
    const auto model = load();
    EXPECT_TRUE(mentions(model->notes(), name + ": phasor does not know")) << name;
    EXPECT_TRUE(mentions(model->notes(), "unheard_of")) << name;
    EXPECT_TRUE(mentions(model->notes(), "position.bass")) << name;
    files_ = before;
  }
}

TEST_F(WrittenFolderTest, KeysInsideAnObjectAreNamedWithIt) {
  files_["sentence_bert_config.json"]["modality_config"]["text"]["rounding"] = "up";
  EXPECT_TRUE(mentions(load()->notes(), "modality_config.text.rounding"));
}

TEST_F(WrittenFolderTest, WhatChangesTheTokensOfEveryTextIsRefused) {
  const auto expect_refused = [&](const char* key, const json& value) {
    const json before = std::exchange(files_["sentence_bert_config.json"][key], value);
    const auto model = load();
    EXPECT_FALSE(model->has_sentence()) << key;
    expect_error<ModelError>([&] { model->text(); }, {"sentence_bert_config.json", key});
    files_["sentence_bert_config.json"][key] = before;
  };
  expect_refused("config_kwargs", {{"num_hidden_layers", 1}});
  expect_refused("tokenizer_args", {{"do_lower_case", false}});
  expect_refused("processing_kwargs", {{"text", {{"truncation", false}}}});
  expect_refused("processing_kwargs", {{"text", {{"is_split_into_words", true}}}});
  expect_refused("transformer_task", "retrieval");
  expect_refused("modality_config", {{"text", {{"method", "get_text_features"}}}});
}

TEST_F(WrittenFolderTest, AnAdapterIsRefused) {
  load();
  folder_.write("adapter_config.json", "{}");
  expect_error<ModelError>([&] { load(); }, {"adapter_config.json", "merge"});
}

}  // namespace
}  // namespace phasor
