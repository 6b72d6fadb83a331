// infer answers every case as the library does: in lines of JSON, and in files.
#include "tests/program/program.h"

#include "phasor/safetensors.h"
#include "tests/support/cases.h"

namespace phasor {
namespace {

/// "--max-tokens 5"
Words words_of_options(const Case& one) {
  Words words;
  for (const auto& [name, value] : one.options) {
    std::string option = "--" + name;
    std::ranges::replace(option, '_', '-');
    if (one.call == "encode" && name == "parse_special") option = "--special";
    const bool is_flag = name == "parse_special" || name == "normalize";
    if (value == "true") {
      words.push_back(option);
    } else if (value == "false") {
      if (name == "normalize") words.push_back("--no-normalize");  // the other is off
    } else {
      words = words + (is_flag ? Words{option + "=" + value} : Words{option, value});
    }
  }
  return words;
}

void read_embed(json line, const Case& one, Answer& answer) {
  for (const VectorKind kind : parse_list<VectorKind>(one.kinds())) {
    if (kind == VectorKind::kDense) {
      answer.add_floats("dense", line.at("embedding"));
      continue;
    }
    std::string name(to_string(kind));
    json::array_t& items = line.at(name).get_ref<json::array_t&>();
    if (name.ends_with('s')) name.pop_back();
    answer.add_count(name + "_offsets", items.size());
    std::ranges::stable_sort(items, {}, [](auto& it) { return it.value("index", int64_t{0}); });
    for (const json& item : items) {
      if (item.contains("vector")) answer.add_floats(name + "_vectors", item["vector"]);
      if (item.contains("value")) answer.add_floats(name + "_values", {item["value"]});
      if (item.contains("index")) answer.add(name + "_indices", item["index"]);
      for (const char* const end : {"start", "stop"})
        if (item.contains(end)) answer.add(name + "_spans", item[end]);
    }
  }
}

void read_label(const json& line, Answer& answer) {
  answer.add_count("offsets", line.at("labels").size());
  for (const json& span : line["labels"]) {
    answer.add("labels", span.at("label"));
    answer.add_floats("scores", {span.at("probability")});
    for (const char* const end : {"start", "end"}) answer.add("spans", span.at(end));
  }
}

/// `labels` in the head's order.
void read_classify(const json& line, const json& labels, Answer& answer) {
  for (const json& label : labels) {
    for (const json& each : line.at("labels")) {
      EXPECT_LE(each.at("logit"), line["labels"][0]["logit"]);
      if (each.at("label") != label) continue;
      answer.add_floats("probabilities", {each.at("probability")});
      answer.add_floats("logits", {each["logit"]});
    }
  }
}

void read_rank(const json& line, Answer& answer) {
  const json& ranking = line.at("ranking");
  answer.arrays = {{"scores", ranking}, {"logits", ranking}};
  for (const json& each : ranking) {
    const int64_t number = each.at("line").get<int64_t>() - 1;
    answer.add("order", number);
    answer.arrays["scores"].at(number) = each.at("score").get<float>();
    answer.arrays["logits"].at(number) =
        each.at(each.contains("logit") ? "logit" : "score").get<float>();
  }
}

/// The tensors of a file that are arrays of a result; of encode those of each text.
void read_file(const fs::path& path, Answer& answer) {
  const auto file = SafetensorsFile::open(path);
  for (const auto& each : file->entries()) {
    const SafetensorsFile::Entry& entry = each.second;
    const size_t dot = each.first.find('.');
    std::string array = each.first.substr(dot == std::string::npos ? 0 : dot + 1);
    if (array == "last_hidden_state") array = "hidden";
    if (dot != std::string::npos && array != "hidden" && array != "token_ids") continue;
    if (array == "sparse_shape") continue;
    const auto add = [&]<typename T>(std::vector<T> values) {
      std::memcpy(values.data(), entry.data, entry.num_bytes);
      for (const T value : values) answer.add("file " + array, value);
    };
    answer.list("file " + array);
    const bool has_columns = array == "dense" || array == "hidden" || array.ends_with("vectors") ||
                             array.ends_with("spans");
    EXPECT_EQ(entry.shape.size(), has_columns ? 2u : 1u) << array;
    if (entry.dtype == "F32") add(std::vector<float>(entry.num_bytes / 4));
    if (entry.dtype == "I32") add(std::vector<int32_t>(entry.num_bytes / 4));
    if (entry.dtype == "I64") add(std::vector<int64_t>(entry.num_bytes / 8));
  }
}

class ProgramCasesTest : public testing::TestWithParam<const char*> {
 protected:
  /// What infer answers. `want`: whose labels stand in the head's order.
  Answer answer(const Case& one, const Answer& want) {
    const bool encodes = one.call == "encode", embeds = one.call == "embed";
    const std::string file = folder_ / "a.safetensors";
    Words words = encodes ? Words{"--save", file} : Words{one.call, "--json"};
    words = words + Words{"-q", "-m", models_.folders().at(one.model)} + words_of_options(one);
    for (const json& text : one.texts) words.push_back(text.is_array() ? text[0] : text);
    if (const json& text = one.texts.at(0); text.is_array())
      words = words + Words{"--pair", text[1].get<std::string>()};
    ProgramResult result = run_infer(words);
    std::ranges::replace(result.err, '-', '_');  // --max-tokens is max_tokens
    if (result.exit_code != 0) {
      EXPECT_TRUE(result.exit_code <= 4 && result.out.empty()) << result.exit_code << result.out;
      EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
      return {{}, result.err};
    }
    Answer answer;
    for (int64_t number = 0; const std::string& text : lines_of(encodes ? "" : result.out)) {
      const json line = json::parse(text);
      EXPECT_EQ(line.value("line", number + 1), number + 1);  // rank has one line, without
      ++number;
      if (embeds) read_embed(line, one, answer);
      if (one.call == "label") read_label(line, answer);
      if (one.call == "classify") read_classify(line, want.arrays.at("labels"), answer);
      if (one.call == "rank") read_rank(line, answer);
    }
    const bool saves = embeds && one.options.size() <= 1;  // a file of each kind
    std::erase(words, "--json");
    if (saves) succeed(words + Words{"-o", file});
    if (saves || encodes) read_file(file, answer);
    return answer;
  }

  CaseModels models_;
  const TempFolder folder_;
};

TEST_P(ProgramCasesTest, InferAnswersAsTheLibrary) {
  for (const Case& one : cases_of(GetParam())) {
    if (one.call == "label" && one.options.contains("offset_unit") &&
        one.options.at("offset_unit") == "none")
      continue;  // infer leaves the places out
    Answer want = models_.answer(one, {{"offset_unit", "characters"}});
    const Answer got = answer(one, want);
    for (const auto& [name, values] : std::map(want.arrays)) want.arrays["file " + name] = values;
    expect_answer(one, want, got);
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, ProgramCasesTest,
                         testing::Values("embed", "classify", "label", "rank", "encode"));

}  // namespace
}  // namespace phasor
