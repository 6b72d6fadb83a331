// Labels and ranks of texts, in the shapes of text-embeddings-inference, Cohere and Jina.
#include <algorithm>
#include <optional>
#include <utility>

#include "files/utf8.h"
#include "infer/matrix.h"
#include "infer/serve/exchange.h"

namespace infer {
namespace {

constexpr std::string_view kNoReranker =
    "is no reranker: a reranker's head has one label, or it is a ColBERT";

/// A document of Cohere's: a string, or an object with a string `text`.
std::string ranked_text(const nlohmann::json& document) {
  if (document.is_string()) return document.get<std::string>();
  if (!document.is_object() || !document.contains("text") || !document["text"].is_string())
    invalid("`documents` must hold strings, or objects with a string `text`, not {}{}",
            kind_of(document), document.is_object() ? " without one" : "");
  return document["text"].get<std::string>();
}

/// The first and, where it is a pair, the second text of an item of `inputs`.
void add_texts(const nlohmann::json& item, std::vector<std::string>& first,
               std::vector<std::string>& second) {
  const nlohmann::json list = item.is_string() ? nlohmann::json::array({item}) : item;
  const auto refused = [&](std::string_view what) {
    invalid(
        "`inputs` must be a text, a pair of texts, or a list of lists of one or two "
        "texts; it holds {}",
        what);
  };
  if (!list.is_array()) refused(kind_of(list));
  if (list.empty() || list.size() > 2) refused(fmt::format("a list of {}", list.size()));
  for (const nlohmann::json& text : list) {
    if (!text.is_string()) refused(fmt::format("{} in place of a text", kind_of(text)));
  }
  first.push_back(list[0].get<std::string>());
  if (list.size() == 2) second.push_back(list[1].get<std::string>());
}

/// The spans of a text, as the token-classification pipeline of Transformers names them.
void write_spans(JsonWriter& json, std::string_view text, const Columns& results, int64_t number,
                 bool per_token) {
  const auto labels = results.row<std::string>("labels", number);
  const auto scores = results.row<float>("scores", number);
  const auto spans = results.row<int64_t>("spans", number);    // [n, 2], in bytes
  const auto tokens = results.row<int64_t>("tokens", number);  // [n, 2]
  const phasor::internal::CharacterPlaces characters(text);
  const auto write = [&](size_t s) {
    json.object([&] {
      json.member(per_token ? "entity" : "entity_group", labels[s], "score", scores[s]);
      if (per_token) json.member("index", tokens[2 * s]);
      json.member("word", text.substr(spans[2 * s], spans[2 * s + 1] - spans[2 * s]));
      json.member("start", characters(spans[2 * s]), "end", characters(spans[2 * s + 1]));
    });
  };
  json.array([&] {
    for (size_t s = 0; s < labels.size(); ++s) write(s);
  });
}

}  // namespace

void Exchange::by_kind() {
  const nlohmann::json* const inputs = fields->find("inputs");
  if (inputs != nullptr && inputs->is_object()) return as(&Exchange::similarity);
  const bool ranks = fields->find("query") != nullptr;
  const ModelQueue& queue =
      model([ranks](const ModelQueue& each) { return each.ranks() == ranks; });
  if (queue.labels_tokens()) return as(&Exchange::predict_tokens);
  if (queue.is_reranker() || (queue.ranks_by_tokens() && ranks)) return as(&Exchange::rerank);
  if (queue.is_classifier()) return as(&Exchange::predict);
  if (queue.ranks_by_tokens() && fields->text("kind", "tokens") != "dense")
    return as(&Exchange::embed_tokens);
  const bool is_dense = queue.makes_vectors() || queue.ranks_by_tokens();
  as(!is_dense && queue.makes_sparse_vectors() ? &Exchange::embed_sparse : &Exchange::embed);
}

void Exchange::predict() {
  ModelQueue& queue =
      model([](const ModelQueue& each) { return each.is_classifier() && !each.is_reranker(); });
  if (!queue.is_classifier())
    invalid("the model {} has no classification head for texts that phasor runs", queue.name());
  // "s", ["a", "b"]: one pair, or a list of texts ["s"] and pairs ["a", "b"].
  const nlohmann::json& inputs = fields->at("inputs");
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
  const bool raw = fields->flag("raw_scores", false);
  Work work{.task = &kTasks.classify, .options = options_of(kTasks.classify)};
  fields->refuse_others();
  const bool are_pairs = !second.empty();
  work.texts = std::move(are_pairs ? second : first);
  if (are_pairs) work.first = std::move(first);
  run(queue, std::move(work),
      [=, this, &queue](JsonWriter& json, const Columns& results, const Work&) {
        const std::vector<std::string>& labels = queue.model().weights().classifier->labels;
        const auto write = [&](int64_t text) {
          const auto scores = results.row<float>(raw ? "logits" : "probabilities", text);
          json.array(best_first(scores),
                     [&](size_t i) { json.object("score", scores[i], "label", labels[i]); });
        };
        flat ? write(0) : write_each(json, texts, write);
      });
}

void Exchange::predict_tokens() {
  ModelQueue& queue = model(&ModelQueue::labels_tokens, "has no head that labels tokens");
  const bool one = fields->at("inputs").is_string();
  std::vector<std::string> inputs = fields->texts("inputs", service.options_.most_texts());
  std::optional<Fields> parameters;  // where Hugging Face's clients put what is theirs
  if (const auto* const object = fields->find("parameters"))
    parameters.emplace(*object, "parameters");
  const Fields& own = parameters ? *parameters : *fields;
  Work work{
      .task = &kTasks.label, .options = options_of(kTasks.label, &own), .texts = std::move(inputs)};
  own.refuse_others();
  fields->refuse_others();
  run(queue, std::move(work),
      [this, one](JsonWriter& json, const Columns& results, const Work& work) {
        const bool per_token = work.options.aggregation == phasor::Aggregation::kNone;
        const auto write = [&](int64_t i) {
          write_spans(json, work.texts[i], results, i, per_token);
        };
        one ? write(0) : write_each(json, texts, write);
      });
}

void Exchange::rank(std::vector<std::string> documents, bool raw, WriteRanks write) {
  ModelQueue& queue = model(&ModelQueue::ranks, kNoReranker);
  const Task& task = queue.ranks_by_tokens() ? kTasks.rank_by_tokens : kTasks.classify;
  Work work{.task = &task,
            .options = options_of(task),
            .texts = std::move(documents),
            .first = {fields->text("query")}};
  fields->refuse_others();
  run(queue, std::move(work), [=](JsonWriter& json, const Columns& results, const Work& work) {
    const auto logits = results.all<float>("logits"), ranked = results.all<float>("scores");
    const auto scores = raw              ? logits
                        : ranked.empty() ? results.all<float>("probabilities")
                                         : ranked;
    write(json, scores, best_first(logits), work);
  });
}

void Exchange::rerank() {
  if (fields->find("texts") == nullptr && fields->find("documents") != nullptr)
    return as(&Exchange::rerank_v1);
  const bool raw = fields->flag("raw_scores", false), shows = fields->flag("return_text", false);
  rank(fields->texts("texts", service.options_.most_texts()), raw,
       [=, this](JsonWriter& json, auto scores, auto order, const Work& work) {
         write_each(json, texts, [&](int64_t place) {
           const size_t i = order[place];
           json.object([&] {
             json.member("index", i, "score", scores[i]);
             if (shows) json.member("text", work.texts[i]);
           });
         });
       });
}

void Exchange::rerank_v1() {
  const nlohmann::json& items = fields->at("documents");
  if (!items.is_array()) invalid("`documents` must be a list, not {}", kind_of(items));
  Fields::refuse_ids(items, "documents");
  std::vector<std::string> documents;
  for (const nlohmann::json& item : items) documents.push_back(ranked_text(item));
  documents = Fields::checked(std::move(documents), "documents", kMostTextsOfOpenAi);
  const int64_t count = fields->count("top_n");
  const bool shows = fields->flag("return_documents", false);
  rank(std::move(documents), false,
       [=, this](JsonWriter& json, auto scores, auto order, const Work& work) {
         json.object([&] {
           json.member("model", model_name);
           json.key("usage").object("total_tokens", tokens);
           const int64_t most = count > 0 ? std::min(count, texts) : texts;
           write_each(json.key("results"), most, [&](int64_t place) {
             const size_t i = order[place];
             json.object([&] {
               json.member("index", i, "relevance_score", scores[i]);
               if (shows) json.key("document").object("text", work.texts[i]);
             });
           });
         });
       });
}

}  // namespace infer
