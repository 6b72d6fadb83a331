// What is known about one text before and after interventions, as JSON and as CSV.
#include "infer/experiment/observed_pair.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "infer/views/numbers.h"

namespace infer {
namespace {

/// The lines of one text.
class Csv {
 public:
  explicit Csv(size_t number) : number_(number) {}

  void add(std::string_view run, const std::string& layer, int64_t head, std::string_view measure,
           double value) {
    const std::string head_cell = head > 0 ? fmt::format("{}", head) : "";
    text_ += fmt::format("{},{},{},{},{},{}\n", number_, run, layer, head_cell, measure, value);
  }
  const std::string& text() const { return text_; }

 private:
  size_t number_;
  std::string text_;
};

}  // namespace

ObservedPair make_pair(Observed before, Observed after) {
  ObservedPair pair;
  for (size_t l = 0; l < before.states.size(); ++l) {
    pair.moved.emplace_back().add(after.states[l], before.states[l], before.d_model);
  }
  before.states.clear();
  after.states.clear();
  pair.before = std::move(before);
  pair.after = std::move(after);
  return pair;
}

nlohmann::ordered_json to_json(const ObservedPair& pair) {
  if (!pair.after) return to_json(pair.before);
  nlohmann::ordered_json json = {{"before", to_json(pair.before)}, {"after", to_json(*pair.after)}};
  auto& moved = json["moved"] = nlohmann::ordered_json::array();
  for (const Deviation& deviation : pair.moved) {
    moved.push_back({{"layer", moved.size()}});
    moved.back().update(deviation_json(deviation));
  }
  return json;
}

std::string csv_head() { return "text,run,layer,head,measure,value\n"; }

std::string to_csv(const ObservedPair& pair, size_t number) {
  Csv csv(number);
  for_each_run(pair, [&](std::string_view run, const Observed& text) {
    for (size_t l = 0; l < text.layers.size(); ++l) {
      for_each_number(text.layers[l], [&](int64_t head, const std::string& name, double value) {
        csv.add(run, fmt::format("{}", l), head, name, value);
      });
    }
    for_each_text_number(text, [&](int64_t head, const std::string& name, double value) {
      csv.add(run, "", head, name, value);
    });
  });
  for (size_t l = 0; l < pair.moved.size(); ++l) {
    const nlohmann::ordered_json moved = deviation_json(pair.moved[l]);
    for (const auto& [name, value] : moved.items()) {
      csv.add("after", fmt::format("{}", l), 0, "moved." + name, value.get<double>());
    }
  }
  return csv.text();
}

}  // namespace infer
