// infer serve answers every case as the library does, or refuses by name what no request can say.
#include "infer/serve/routes.h"
#include "tests/serve/client.h"
#include "tests/support/cases.h"

namespace infer {
namespace {

using phasor::Case;
constexpr uint32_t kDense = phasor::kUseDense, kSparse = phasor::kUseSparse,
                   kTokens = phasor::kUseTokens, kStates = phasor::kUseStates,
                   kClassify = phasor::kUseClassify, kLabel = phasor::kUseLabel;

/// What makes what the case asks for; of several kinds of vectors, which none does, any.
const Route& route_for(const Case& one) {
  const uint32_t uses = one.uses() | (one.call == "rank" ? kClassify : 0);
  for (const Route& each : routes())
    if (!each.request.schema.empty() && each.request.uses == uses) return each;
  return *route_of("POST", "/embed");
}

/// How a request says an option: {"truncate", "true"}; none: the rest is the operator's.
std::optional<std::pair<std::string, std::string>> said(const Case& one, const std::string& name,
                                                        const std::string& value) {
  for (const Spelling& each : spellings_of(route_for(one).request)) {
    for (const auto& [said, means, field] : each.values)
      if (name == (field.empty() ? each.field : field) && means == value)
        return {{std::string(each.name), std::string(said)}};
    const bool takes_all = each.values.empty() || each.field == "prompt_name";
    if (name == each.field && takes_all) return {{std::string(each.name), value}};
  }
  return {};
}

/// Whether it is said by the route.
bool is_route(const Case& one, const std::string& name) {
  const auto kinds = phasor::names<phasor::VectorKind>().all;
  return name == "kinds" && one.call == "embed" && std::ranges::count(kinds, one.kinds()) == 1 &&
         route_for(one).request.uses == one.uses();
}

Json request_of(const Case& one) {
  Json body = Json::parse(route_for(one).request.example), texts = one.texts;
  body["model"] = one.model;
  for (const auto& [name, value] : one.options) {
    if (is_route(one, name)) continue;
    const auto& [key, text] = said(one, name, value).value_or(std::pair(name, value));
    body[key] = Json::accept(text) ? Json::parse(text) : Json(text);
  }
  if (one.call == "rank") {
    body["query"] = texts[0];
    texts.erase(0);
  }
  if (one.call == "classify" && texts[0].is_string())
    for (Json& text : texts) text = Json::array({text});
  body[one.call == "rank" ? "texts" : "inputs"] = texts;
  return body;
}

/// What an answer says of a text. `labels` in the head's order; `raw` has logits.
void read_text(uint32_t uses, const Json& text, const Json& raw, const Json& labels,
               phasor::Answer& answer) {
  if (uses == kDense) return answer.add_floats("dense", text);
  for (const Json& label : labels) {
    for (const auto& [array, list] : {std::pair("probabilities", text), {"logits", raw}})
      for (const Json& each : list)
        if (each.at("label") == label) answer.add_floats(array, {each.at("score")});
  }
  if (uses == kClassify) return;
  const std::string kind = uses == kSparse   ? "sparse_"
                           : uses == kTokens ? "token_"
                           : uses == kStates ? "state_"
                                             : "";
  answer.add_count(kind + "offsets", text.size());
  for (const Json& each : text) {
    if (uses == kTokens || uses == kStates) answer.add_floats(kind + "vectors", each);
    if (uses == kSparse) answer.add("sparse_indices", each.at("index"));
    if (uses == kSparse) answer.add_floats("sparse_values", {each.at("value")});
    if (uses != kLabel) continue;
    answer.add("labels", each.contains("entity") ? each["entity"] : each.at("entity_group"));
    answer.add_floats("scores", {each.at("score")});
    for (const char* const end : {"start", "end"}) answer.add("spans", each.at(end));
  }
}

void read_ranking(const Json& ranking, const Json& raw, phasor::Answer& answer) {
  answer.arrays = {{"scores", ranking}, {"logits", ranking}};
  for (const auto& [array, list] : {std::pair("scores", ranking), {"logits", raw}})
    for (const Json& each : list)
      answer.arrays[array].at(each.at("index").get<size_t>()) = each.at("score").get<float>();
  for (const Json& each : ranking) answer.add("order", each["index"]);
}

class ServeCasesTest : public testing::TestWithParam<const char*> {
 protected:
  /// What the library answers with what requests have by default, or why they cannot say the case.
  phasor::Answer want(Case& one) {
    const uint32_t uses = one.uses();
    if (std::ranges::count(one.texts, "") > 0) {
      one.error = {"is empty"};
      return {{}, "not taken"};
    }
    for (const auto& [name, value] : one.options) {
      if (is_route(one, name) || said(one, name, value) || !one.error.empty()) continue;
      one.error = {"`" + name + "`"};
      return {{}, "not offered"};
    }
    std::map<std::string, std::string> presets = {{"normalize", "true"},
                                                  {"offset_unit", "characters"}};
    if (uses == kStates) presets["prompt"] = "";
    return models_.answer(one, presets);
  }
  phasor::Answer answer(const Case& one, const Json& labels) const {
    Json body = request_of(one);
    const std::string_view path = route_for(one).paths[0];
    const Answer made = server_.post(path, body);
    if (made.status != 200) return {{}, made.body};
    const bool has_logits = one.call == "classify" || one.call == "rank";
    if (has_logits) body["raw_scores"] = true;
    const Json raw = has_logits ? server_.post(path, body).json() : Json();
    phasor::Answer answer;
    if (one.call == "rank") {
      read_ranking(made.json(), raw, answer);
    } else {
      for (size_t i = 0; const Json& text : made.json())
        read_text(one.uses(), text, has_logits ? raw.at(i++) : raw, labels, answer);
    }
    return answer;
  }

  phasor::CaseModels models_;
  const Server server_{{.models = {models_.folders().begin(), models_.folders().end()}}};
};

TEST_P(ServeCasesTest, RequestsAreAnsweredAsByTheLibrary) {
  for (Case one : phasor::cases_of(GetParam())) {
    const auto says_nothing = [](const auto& option) { return option.second.empty(); };
    if (std::ranges::any_of(one.options, says_nothing)) continue;
    if (one.call == "rank" && one.model == "sentences") continue;  // it is no reranker
    const Json request = request_of(one);
    std::vector<std::string> words = {"`kind`", "the model " + one.model};
    for (const auto& [key, value] : request.items())
      if (!value.is_array() && key != "query") words.push_back("`" + key + "`");
    const bool has_labels = one.call == "classify";
    const phasor::Answer wanted = want(one);
    const auto labels = wanted.arrays.find("labels");
    const phasor::Answer got =
        answer(one, has_labels && labels != wanted.arrays.end() ? labels->second : Json::array());
    // Requests of other dimensions share the run: the vector is cut and normalised behind it.
    expect_answer(one, wanted, got, words, one.options.contains("dimensions") ? 2e-7F : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, ServeCasesTest,
                         testing::Values("embed", "classify", "label", "rank"));

}  // namespace
}  // namespace infer
