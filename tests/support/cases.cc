#include "tests/support/cases.h"

#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

const json kPrompts = {{"prompts", {{"query", "Q: "}, {"document", "D: "}, {"other", "Say: "}}},
                       {"default_prompt_name", "other"}};

const json kTexts = {"Tom bit a dog.",
                     "The dög [MASK] ran, [SEP] and nobody saw it again; it rained on and on.",
                     "It rains."};

/// For each list of values of an option a case with each of them; "each" of kinds is all of them.
void expand(Case one, const json& options, std::vector<Case>& all) {
  for (const auto& [name, value] : options.items()) {
    if (one.options.contains(name)) continue;
    const json values = value == "each" ? json(names<VectorKind>().all) : value;
    for (const json& each : values.is_array() ? values : json::array({value})) {
      one.options[name] = each;
      expand(one, options, all);
    }
    return;
  }
  all.push_back(std::move(one));
}

/// A value of the field.
std::string some_value(const Field& field) {
  if (field.values != nullptr) return std::string(field.values().back());
  return field.type == FieldType::kCount ? "7" : field.type == FieldType::kText ? "a" : "true";
}

/// What `base` refuses of each field.
void add_refusals(const Case& base, std::vector<Case>& all) {
  const auto add = [&](const Field& field, const std::string& value, std::string_view word) {
    Case& made = all.emplace_back(base);
    made.options[std::string(field.name)] = value;
    made.error = {std::string(word)};
  };
  for (const Field& field : fields()) {
    if (field.read == nullptr) continue;
    if ((field.uses & base.uses()) == 0) {
      add(field, some_value(field), field.name);
      continue;
    }
    if (field.type != FieldType::kText) add(field, "maybe", "maybe");
    if (field.type == FieldType::kCount) add(field, "-1", field.name);
  }
}

TextOptions options_of(const Case& one) {
  TextOptions options;
  for (const auto& [name, value] : one.options) field(name).read(options, value);
  return options;
}

void add(const std::vector<ResultArray>& arrays, Answer& answer) {
  for (const ResultArray& array : arrays)
    std::visit([&](auto values) { answer.arrays[std::string(array.name)] = values; }, array.values);
}

Answer run(const Encoder& encoder, const Case& one) {
  Answer answer;
  if (one.call == "encode") {
    RunOptions how;
    for (const auto& [name, value] : one.options) {
      if (name == "overflow") how.overflow = parse<Overflow>(value);
      if (name == "parse_special") how.parse_special = value == "true";
      if (name == "positions")
        how.positions = Positions::named(value, encoder.model().config().position);
    }
    const Encoding made = encoder.encode(one.texts.get<std::vector<std::string>>(), how);
    return {{{"hidden", made.hidden},
             {"offsets", made.offsets},
             {"token_ids", made.token_ids},
             {"positions", made.positions}},
            {}};
  }
  const TextOptions how = options_of(one);
  std::vector<std::string> first, second;
  for (const json& text : one.texts) {
    first.push_back(text.is_array() ? text[0] : text);
    if (text.is_array()) second.push_back(text[1]);
  }
  if (one.call == "embed") add(encoder.embed(first, how).arrays(), answer);
  if (one.call == "label") add(encoder.label(first, how).arrays(), answer);
  if (one.call == "rank")
    add(encoder.rank(first[0], std::span(first).subspan(1), how).arrays(), answer);
  if (one.call == "classify")
    add((second.empty() ? encoder.classify(first, how) : encoder.classify(first, second, how))
            .arrays(),
        answer);
  return answer;
}

}  // namespace

uint32_t Case::uses() const {
  if (call == "encode") return 0;  // has options of its own
  if (call == "classify") return kUseClassify;
  if (call == "label") return kUseLabel;
  if (call == "rank") return kUseRank;
  const auto names = phasor::names<VectorKind>().all;
  uint32_t uses = 0;  // none, of kinds that there are not
  for (size_t i = 0; i < names.size(); ++i)
    if (contains(kinds(), std::string(names[i]))) uses |= uint32_t{1} << i;
  return uses;
}

json Case::to_json() const {
  return {
      {"model", model}, {"call", call}, {"texts", texts}, {"options", options}, {"error", error}};
}

std::vector<Case> cases_of(const std::string& call) {
  std::vector<Case> all;
  for (const std::string& line :
       lines_of(read_text_file(fmt::format("{}/tests/cases/{}.jsonl", PHASOR_SOURCE_DIR, call)))) {
    const json read = json::parse(line);
    std::vector<Case> made;
    expand({.model = read.at("model"),
            .call = call,
            .texts = read.value("texts", kTexts),
            .options = {},
            .error = read.value("error", std::vector<std::string>())},
           read.value("options", json::object()), made);
    all.insert(all.end(), made.begin(), made.end());
    if (!read.value("refusals", false)) continue;
    for (const Case& base : made) add_refusals(base, all);
  }
  return all;
}

struct CaseModels::Folders {
  Folders() {
    sentences.write_modules({"Transformer", "Pooling", "Normalize"});
    kinds.make_bge();
    colbert.add_sparse_linear();
    kinds.write_json("config_sentence_transformers.json", kPrompts);
    labels.write_json("config_sentence_transformers.json", kPrompts);
  }

  const json length = {{"max_seq_length", 12}};
  const TinyModel sentences{"sinusoidal",
                            {{"1_Pooling/config.json", {{"pooling_mode_cls_token", true}}},
                             {"sentence_bert_config.json", length},
                             {"config_sentence_transformers.json", kPrompts}}};
  const TokenVectorFolder kinds{"learned", length};
  const TokenVectorFolder colbert{"rotary",
                                  {{"query_expansion", {{"strategy", "fixed"}, {"length", 16}}}}};
  const SparseFolder splade{json{{"pooling_strategy", "max"}}};
  const BertFolder labels{{"no", "yes", "maybe"}}, relevance{{"relevant"}};
  const BertFolder certain{{"relevant"}, 1e4F};  // scores, but not logits, are 0 or 1
  const BertFolder spans{{"O", "B-X", "I-X"}, 9, true};
  const std::map<std::string, std::string> paths = {{"sentences", sentences.path()},
                                                    {"kinds", kinds.path()},
                                                    {"colbert", colbert.path()},
                                                    {"splade", splade.path()},
                                                    {"labels", labels.path()},
                                                    {"relevance", relevance.path()},
                                                    {"certain", certain.path()},
                                                    {"spans", spans.path()},
                                                    {"sinusoidal", bundled_model("sinusoidal")},
                                                    {"learned", bundled_model("learned")}};
};

CaseModels::CaseModels() : folders_(std::make_unique<Folders>()) {}
CaseModels::~CaseModels() = default;

const std::map<std::string, std::string>& CaseModels::folders() const { return folders_->paths; }

Answer CaseModels::answer(Case one, const std::map<std::string, std::string>& presets) {
  for (const auto& [name, value] : presets)
    if ((field(name).uses & one.uses()) != 0) one.options.emplace(name, value);
  const auto found = encoders_.find(one.model);
  const Encoder& encoder =
      found != encoders_.end()
          ? found->second
          : encoders_.emplace(one.model, Encoder(Model::load(folders().at(one.model))))
                .first->second;
  try {
    return run(encoder, one);
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

void expect_answer(const Case& one, const Answer& want, const Answer& got,
                   const std::vector<std::string>& words, float error) {
  SCOPED_TRACE(one.to_json().dump() + " answers " + got.error);
  EXPECT_EQ(got.error.empty(), want.error.empty()) << want.error;
  const auto says = [&](const std::string& word) { return contains(got.error, word); };
  EXPECT_TRUE(std::ranges::all_of(one.error, says) || std::ranges::any_of(words, says));
  if (!want.error.empty() || !got.error.empty()) return;
  EXPECT_FALSE(got.arrays.empty());
  for (const auto& [name, values] : got.arrays) {
    ASSERT_TRUE(want.arrays.contains(name)) << name;
    if (error > 0 && values.is_array() && !values.empty() && values[0].is_number_float()) {
      expect_close<float, float>(values.get<std::vector<float>>(),
                                 want.arrays.at(name).get<std::vector<float>>(), error,
                                 name.c_str());
    } else {
      EXPECT_TRUE(values == want.arrays.at(name)) << name << "\n" << values;
    }
  }
}

}  // namespace phasor
