// The routes. The properties of a request are written as the schemas of openapi.cc are.
#include "infer/serve/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "infer/serve/exchange.h"
#include "phasor/fields.h"

namespace infer {
namespace {

using enum phasor::Use;

// Options by the names and values of a protocol.
constexpr Spelling::Value kInputTypes[] = {{"query", "query"}, {"document", "document"}};
constexpr Spelling kOpenAiOptions[] = {{"dimensions", "dimensions"},
                                       {"input_type", "role", kInputTypes}};
constexpr Spelling kPromptName[] = {{"prompt_name", "prompt_name"}};
/// The prompt of queries, which may also run otherwise.
constexpr Spelling::Value kQuery[] = {{"query", "query", "role"}};
constexpr Spelling kRetrieval[] = {{"prompt_name", "prompt_name", kQuery}};
constexpr Spelling kAggregation[] = {{"aggregation_strategy", "aggregation"}};

constexpr std::string_view kText = R"({"inputs": "Tom bit a dog."})";

constexpr Route at(std::string_view method, std::array<std::string_view, 4> paths,
                   void (Exchange::*handle)(), std::string_view summary,
                   std::string_view answer = {}, const Request& request = {}, unsigned flags = 0) {
  return {method, paths, handle, summary, answer, flags, request};
}

constexpr Route kRoutes[] = {
    at("GET", {"/health", "/ping"}, &Exchange::get_health, "Whether requests are answered",
       "Health", {}, Route::kOpen),
    at("GET", {"/metrics"}, &Exchange::get_metrics, "For Prometheus", "text/plain"),
    at("GET", {"/info"}, &Exchange::get_info, "The models and the limits", "Info"),
    at("GET", {"/openapi.json"}, &Exchange::get_openapi, "The routes in OpenAPI 3.1", "Document",
       {}, Route::kOpen),
    at("GET", {"/v1/models"}, &Exchange::get_models, "The models", "Models", {}, Route::kOpenAi),
    at("GET", {"/v1/models/"}, &Exchange::get_model, "One model", "Model", {}, Route::kOpenAi),
    at("GET", {"/"}, &Exchange::get_page, "A page with the figures of infer observe --html",
       "text/html", {}, Route::kOpen),
    at("POST", {"/"}, &Exchange::by_kind, "By the model's kind"),
    at("POST", {"/v1/embeddings", "/embeddings"}, &Exchange::openai_embeddings,
       "Vectors, as OpenAI's clients read them", "EmbeddingsAnswer",
       {"Embeddings", R"({"input": "Tom bit a dog."})",
        R"({"input!": "#Texts", "encoding_format": "#Encoding", "output_dtype": "#VectorType"})",
        kUseEmbed, kOpenAiOptions},
       Route::kOpenAi),
    at("POST", {"/embed", "/"}, &Exchange::embed, "Vectors of texts, or of their tokens", "Vectors",
       {"Embed", kText, R"({"inputs!": "#Texts", "kind": {"const": "dense"}})", kUseDense,
        kPromptName}),
    at("POST", {"/embed", "/"}, &Exchange::embed_tokens, "Vectors of the texts' tokens", "States",
       {"EmbedTokens", R"({"inputs": "Tom bit a dog.", "kind": "tokens"})",
        R"({"inputs!": "#Texts", "kind!": {"const": "tokens"}})", kUseTokens, kRetrieval}),
    at("POST", {"/embed_sparse", "/"}, &Exchange::embed_sparse, "Sparse vectors of texts", "Sparse",
       {"EmbedSparse", kText, R"({"inputs!": "#Texts"})", kUseSparse, kRetrieval}),
    at("POST", {"/embed_all"}, &Exchange::embed_all, "States of all tokens", "States",
       {"EmbedAll", kText, R"({"inputs!": "#Texts"})", kUseStates}),
    at("POST", {"/predict", "/"}, &Exchange::predict, "Labels of texts", "Labels",
       {"Predict", kText, R"({"inputs!": ["#Text", "#Pair", ["#Pair"]], "raw_scores": "#Logits"})",
        kUseClassify}),
    at("POST", {"/predict_tokens", "/"}, &Exchange::predict_tokens, "Labels of parts of texts",
       "AnySpans",
       {"PredictTokens", kText, R"({"inputs!": "#Texts", "parameters": "#Parameters"})", kUseLabel,
        kAggregation}),
    at("POST", {"/rerank", "/"}, &Exchange::rerank, "Ranks of texts for a query", "Ranks",
       {"Rerank", R"({"query": "Who bit?", "texts": ["Tom bit a dog.", "It rained."]})",
        R"({"query!": "#Text", "texts!": "#Texts", "raw_scores": "#Logits",
"return_text": "boolean"})",
        kUseClassify | kUseRank}),
    at("POST", {"/v1/rerank", "/v2/rerank", "/rerank", "/"}, &Exchange::rerank_v1,
       "Ranks, as Cohere's and Jina's clients read them", "Reranked",
       {"RerankV1", R"({"query": "Who bit?", "documents": ["Tom bit a dog.", "It rained."]})",
        R"({"query!": "#Text", "documents!": "#Documents", "top_n": "#Count",
"return_documents": "boolean"})",
        kUseClassify | kUseRank},
       Route::kOpenAi),
    at("POST", {"/similarity", "/"}, &Exchange::similarity, "Cosines with a sentence", "Vector",
       {"Similarity",
        R"({"inputs": {"source_sentence": "Tom bit a dog.", "sentences": ["It rained."]}})",
        R"({"inputs!": {"source_sentence!": "#Text", "sentences!": "#Texts"}})", kUseEmbed}),
    at("POST", {"/tokenize"}, &Exchange::tokenize, "Tokens of texts", "AllTokens",
       {"Tokenize", kText,
        R"({"inputs!": "#Texts", "add_special_tokens": {"type": "boolean", "default": true}})",
        kUseEmbed | kUseLabel}),
    at("POST", {"/observe"}, &Exchange::observe, "The JSON of infer observe, for the page",
       "Document",
       {"Observe", R"({"texts": "Tom bit a dog."})",
        R"({"texts!": ["#Text", "#Pair"], "positions": "string", "edits": "#Texts",
"cut_residuals": "#Texts", "beside": "string", "beside_positions": "string"})",
        kUseEmbed | kUseLabel},
       Route::kJsonOnly),
};

}  // namespace

std::string_view Route::path_of(std::string_view asked) const {
  const auto found = std::ranges::find_if(paths, [&](std::string_view path) {
    return is_prefix(path) ? asked.starts_with(path) : path == asked;
  });
  return found == paths.end() ? std::string_view() : *found;
}

std::span<const Route> routes() { return kRoutes; }

const Route* route_of(std::string_view method, std::string_view path) {
  const Route* of_path = nullptr;
  for (const Route& route : kRoutes) {
    if (route.path_of(path).empty()) continue;
    if (route.takes(method)) return &route;
    if (of_path == nullptr) of_path = &route;
  }
  return of_path;
}

std::string methods_at(std::string_view path) {
  std::set<std::string_view> methods;
  for (const Route& route : kRoutes) {
    if (route.path_of(path).empty()) continue;
    methods.insert(route.method);
    if (route.method == "GET") methods.insert("HEAD");
  }
  return fmt::format("{}", fmt::join(methods, ", "));
}

}  // namespace infer
