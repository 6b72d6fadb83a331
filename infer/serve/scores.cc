// Labels and ranks of texts, in the shapes of text-embeddings-inference, Cohere and Jina.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "infer/matrix.h"
#include "infer/serve/exchange.h"
#include "outputs/labelled_spans.h"

namespace infer {
namespace {

std::vector<float> logits_of(const std::vector<TextResult>& results) {
  std::vector<float> logits;
  for (const TextResult& result : results) logits.push_back(result.values[0]);
  return logits;
}

/// The most bytes of ranked documents as JSON, and those of the texts that are `shown` with them.
int64_t ranks_bytes(const std::vector<std::string>& documents,
                    const std::vector<std::string>& shown) {
  constexpr int64_t kItemBytes = 96;  // {"index":0,"relevance_score":0.5,"document":{"text":""}},
  int64_t bytes = std::ssize(documents) * kItemBytes;
  for (const std::string& text : shown) bytes += (kCharBytes + 1) * std::ssize(text);
  return bytes;
}

/// A document of Cohere's: a string, or an object with a string `text`.
std::string ranked_text(const nlohmann::json& document) {
  if (document.is_string()) return document.get<std::string>();
  if (!document.is_object() || !document.contains("text") || !document["text"].is_string())
    invalid(fmt::format("`documents` must hold strings, or objects with a string `text`, not {}{}",
                        kind_of(document), document.is_object() ? " without one" : ""));
  return document["text"].get<std::string>();
}

/// The first and, where it is a pair, the second text of an item of `inputs`.
void add_texts(const nlohmann::json& item, std::vector<std::string>& first,
               std::vector<std::string>& second) {
  const nlohmann::json list = item.is_string() ? nlohmann::json::array({item}) : item;
  const auto refused = [&](std::string_view what) {
    invalid(
        fmt::format("`inputs` must be a text, a pair of texts, or a list of lists of one or two "
                    "texts; it holds {}",
                    what));
  };
  if (!list.is_array()) refused(kind_of(list));
  if (list.empty() || list.size() > 2) refused(fmt::format("a list of {}", list.size()));
  for (const nlohmann::json& text : list) {
    if (!text.is_string()) refused(fmt::format("{} in place of a text", kind_of(text)));
  }
  first.push_back(list[0].get<std::string>());
  if (list.size() == 2) second.push_back(list[1].get<std::string>());
}

/// The most bytes of the spans of texts as JSON: of one for each byte.
int64_t spans_bytes(const std::vector<std::string>& texts, const std::vector<std::string>& labels) {
  constexpr int64_t kItemBytes = 100;  // {"entity_group":"","score":0.123456789,"word":"",…},
  int64_t longest = 0, bytes = 0;
  for (const std::string& label : labels)
    longest = std::max(longest, std::ssize(json_string(label)));
  for (const std::string& text : texts)
    bytes += (std::ssize(text) + 1) * (kItemBytes + longest + kCharBytes + 1);
  return bytes;
}

/// The spans of a text, as the token-classification pipeline of Transformers names them.
void write_spans(JsonWriter& json, std::string_view text,
                 const std::vector<phasor::LabelledSpan>& spans, bool per_token) {
  std::vector<phasor::LabelledSpan> places = spans;
  phasor::internal::to_characters(text, places);
  const auto write = [&](size_t s) {
    const phasor::LabelledSpan& one = spans[s];
    json.object([&] {
      json.member(per_token ? "entity" : "entity_group", one.label, "score", one.score);
      if (per_token) json.member("index", one.tokens.begin);
      json.member("word", text.substr(one.span.begin, one.span.end - one.span.begin));
      json.member("start", places[s].span.begin, "end", places[s].span.end);
    });
  };
  json.array([&] {
    for (size_t s = 0; s < spans.size(); ++s) write(s);
  });
}

}  // namespace

void Exchange::by_kind() {
  const Fields fields(body());
  const nlohmann::json* const inputs = fields.find("inputs");
  if (inputs != nullptr && inputs->is_object()) return similarity();
  const bool ranks = fields.find("query") != nullptr;
  const ModelQueue& queue =
      model(fields, [ranks](const ModelQueue& each) { return each.ranks() == ranks; });
  if (queue.labels_tokens()) return predict_tokens();
  if (queue.ranks_by_tokens()) return ranks ? rerank() : embed_kind("tokens");
  if (!queue.is_classifier() && !queue.makes_vectors() && queue.makes_sparse_vectors())
    return embed_sparse();
  if (!queue.is_classifier()) return embed();
  queue.is_reranker() ? rerank() : predict();
}

void Exchange::predict() {
  const Fields fields(body());
  ModelQueue& queue = classifier(fields);
  // "s", ["a", "b"]: one pair, or a list of texts ["s"] and pairs ["a", "b"].
  const nlohmann::json& inputs = fields.at("inputs");
  const bool one =
      inputs.is_string() || (inputs.is_array() && !inputs.empty() && inputs[0].is_string());
  // Hugging Face's clients, which ask "/", want a list of lists of one text, too.
  const bool flat = one && request.path == "/predict";
  std::vector<std::string> first, second;
  Fields::refuse_ids(inputs, "inputs");
  if (one || !inputs.is_array())
    add_texts(inputs, first, second);
  else
    for (const nlohmann::json& item : inputs) add_texts(item, first, second);
  if (!second.empty() && second.size() != first.size())
    invalid("`inputs` mixes texts and pairs; send them in two requests");
  Fields::checked(first, "inputs", service.options_.most_texts());
  const bool raw = fields.flag("raw_scores", false);
  const RunKind kind = run_kind(fields, second.empty() ? Task::kClassify : Task::kClassifyPairs);
  fields.refuse_others();
  const int64_t bytes = std::ssize(first) * (queue.label_bytes() + 3);
  run(queue, {.kind = kind, .texts = std::move(first), .second = std::move(second)}, bytes,
      [this, &queue, bytes, raw, flat](const std::vector<TextResult>& results) {
        const std::vector<std::string>& labels = queue.model().weights().classifier->labels;
        JsonWriter json(bytes);
        const auto write = [&](const TextResult& result) {
          const std::vector<float>& scores = raw ? result.values : result.probabilities;
          json.array(best_first(scores),
                     [&](size_t i) { json.object("score", scores[i], "label", labels[i]); });
        };
        flat ? write(results[0]) : json.array(results, write);
        answer(json.take());
      });
}

void Exchange::predict_tokens() {
  const Fields fields(body());
  ModelQueue& queue = token_classifier(fields);
  const bool one = fields.at("inputs").is_string();
  std::vector<std::string> inputs = fields.texts("inputs", service.options_.most_texts());
  RunKind kind{.task = Task::kLabel, .parse_special = fields.flag("parse_special", false)};
  std::optional<Fields> parameters;  // where Hugging Face's clients put what is theirs
  if (const auto* const object = fields.find("parameters"))
    parameters.emplace(*object, "parameters");
  const Fields& own = parameters ? *parameters : fields;
  const std::string how = own.text("aggregation_strategy", "simple");
  const auto& names = phasor::names<phasor::Aggregation>().all;
  if (std::ranges::find(names, how) == names.end())
    invalid(fmt::format("`aggregation_strategy` must be one of: {}", fmt::join(names, ", ")));
  kind.aggregation = phasor::parse<phasor::Aggregation>(how);
  own.refuse_others();
  fields.refuse_others();
  const int64_t bytes = spans_bytes(inputs, queue.model().weights().token_classifier->labels);
  const bool per_token = kind.aggregation == phasor::Aggregation::kNone;
  auto then = [this, inputs, one, per_token](std::vector<TextResult> results) {
    JsonWriter json;
    const auto write = [&] {
      for (size_t i = 0; i < results.size(); ++i)
        write_spans(json, inputs[i], results[i].spans, per_token);
    };
    one ? write() : json.array(write);
    answer(json.take());
  };
  run(queue, {.kind = kind, .texts = std::move(inputs)}, bytes, std::move(then));
}

void Exchange::rerank() {
  const Fields fields(body());
  if (fields.find("texts") == nullptr && fields.find("documents") != nullptr) return rerank_v1();
  ModelQueue& queue = reranker(fields);
  std::vector<std::string> documents = fields.texts("texts", service.options_.most_texts());
  const RunKind kind = run_kind(fields, Task::kRerank);
  const bool raw = fields.flag("raw_scores", false);
  std::vector<std::string> shown;
  if (fields.flag("return_text", false)) shown = documents;
  std::string query = fields.text("query");
  fields.refuse_others();
  const int64_t bytes = ranks_bytes(documents, shown);
  run(queue, {.kind = kind, .texts = std::move(documents), .query = std::move(query)}, bytes,
      [this, bytes, raw, shown](const std::vector<TextResult>& results) {
        JsonWriter json(bytes);
        json.array(best_first(logits_of(results)), [&](size_t i) {
          json.object([&] {
            json.member("index", i);
            json.member("score", raw ? results[i].values[0] : results[i].probabilities[0]);
            if (!shown.empty()) json.member("text", shown[i]);
          });
        });
        answer(json.take());
      });
}

void Exchange::rerank_v1() {
  const Fields fields(body());
  ModelQueue& queue = reranker(fields);
  const nlohmann::json& items = fields.at("documents");
  if (!items.is_array()) invalid(fmt::format("`documents` must be a list, not {}", kind_of(items)));
  Fields::refuse_ids(items, "documents");
  std::vector<std::string> documents;
  for (const nlohmann::json& item : items) documents.push_back(ranked_text(item));
  documents = Fields::checked(std::move(documents), "documents", kMostTextsOfOpenAi);
  const int64_t top = fields.count("top_n");
  std::vector<std::string> shown;
  if (fields.flag("return_documents", false)) shown = documents;
  const RunKind kind = run_kind(fields, Task::kRerank);
  std::string query = fields.text("query");
  fields.refuse_others();
  const int64_t bytes = ranks_bytes(documents, shown);
  run(queue, {.kind = kind, .texts = std::move(documents), .query = std::move(query)}, bytes,
      [this, &queue, bytes, top, shown](const std::vector<TextResult>& results) {
        JsonWriter json(bytes);
        std::vector<size_t> order = best_first(logits_of(results));
        if (top > 0 && top < std::ssize(order)) order.resize(top);
        const auto write = [&](size_t i) {
          json.object([&] {
            json.member("index", i, "relevance_score", results[i].probabilities[0]);
            if (!shown.empty()) json.key("document").object("text", shown[i]);
          });
        };
        json.object([&] {
          json.member("model", queue.name());
          json.key("usage").object("total_tokens", tokens);
          json.key("results").array(order, write);
        });
        answer(json.take());
      });
}

}  // namespace infer
