// What a queue's engine does with texts, by kind.

#include "infer/serve/queue.h"
#include "phasor/errors.h"

namespace infer {
namespace {

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

}  // namespace

std::vector<TextResult> ModelQueue::run_texts(const RunKind& kind,
                                              const std::vector<std::string_view>& texts,
                                              const std::vector<std::string_view>& second,
                                              std::stop_token stop) {
  const phasor::Overflow overflow =
      kind.truncate ? phasor::Overflow::kTruncate : phasor::Overflow::kError;
  std::vector<TextResult> results;
  const auto add_vectors = [&](const auto& vectors) {
    for (int64_t i = 0; i < vectors.size(); ++i)
      results.push_back({copy(vectors[i]), {}, vectors.report(i).num_tokens});
  };
  if (kind.task == RunKind::Task::kTokenize) {
    results.resize(texts.size());
  } else if (kind.task == RunKind::Task::kEmbed || kind.task == RunKind::Task::kChunks) {
    phasor::EmbedOptions options{.prompt = kind.prompt,
                                 .max_tokens = max_tokens_,
                                 .overflow = overflow,
                                 .stop = std::move(stop),
                                 .parse_special = kind.parse_special,
                                 .truncation_side = kind.side};
    options.pooling = model_->sentence().pooling;
    options.pooling->normalize = kind.normalize;
    if (kind.task == RunKind::Task::kChunks) {
      add_vectors(
          encoder_.embed_chunks(texts, {.spans = {texts.size(), kind.chunks}, .embed = options}));
    } else {
      add_vectors(encoder_.embed(texts, options));
    }
  } else if (kind.task == RunKind::Task::kStates) {
    std::vector<std::vector<int32_t>> ids;
    for (const std::string_view text : texts) {
      ids.push_back(model_->tokenizer()
                        .encode(text, {.parse_special = kind.parse_special,
                                       .ids_only = true,
                                       .max_tokens = kind.truncate ? max_tokens_ : 0,
                                       .truncation_side = kind.side})
                        .ids);
      if (std::ssize(ids.back()) > max_tokens_)
        throw phasor::InvalidArgument("a text is too long", phasor::ErrorCode::kTooLong);
    }
    const phasor::Encoding encoding = encoder_.encode_ids(ids, {.stop = std::move(stop)});
    for (int64_t i = 0; i < encoding.size(); ++i)
      results.push_back({copy(encoding[i].hidden), {}, encoding[i].num_tokens()});
  } else if (kind.task == RunKind::Task::kSparse || kind.task == RunKind::Task::kTokens) {
    const phasor::RetrievalOptions options{.is_query = kind.is_query,
                                           .prompt = kind.prompt,
                                           .max_tokens = longest(kind),
                                           .overflow = overflow,
                                           .stop = std::move(stop),
                                           .parse_special = kind.parse_special,
                                           .truncation_side = kind.side};
    if (kind.task == RunKind::Task::kTokens) {
      add_vectors(encoder_.embed_tokens(texts, options));
    } else {
      phasor::SparseVectors sparse = encoder_.embed_sparse(texts, options);
      for (size_t i = 0; i < texts.size(); ++i) {
        results.push_back({.values = {},
                           .num_tokens = sparse.reports[i].num_tokens,
                           .sparse = std::move(sparse.vectors[i])});
      }
    }
  } else if (kind.task == RunKind::Task::kRerank && ranks_by_tokens()) {
    for (size_t begin = 0, end = 0; begin < texts.size(); begin = end) {  // those of each query
      while (end < texts.size() && texts[end] == texts[begin]) ++end;
      const phasor::Ranking ranking =
          encoder_.rank(texts[begin], std::span(second).subspan(begin, end - begin),
                        {.overflow = overflow,
                         .stop = stop,
                         .parse_special = kind.parse_special,
                         .truncation_side = kind.side});
      for (int64_t i = 0; i < ranking.size(); ++i)
        results.push_back({{ranking.scores[i]}, {ranking.scores[i]}, ranking.report(i).num_tokens});
    }
  } else if (kind.task == RunKind::Task::kLabel) {
    phasor::LabelledTexts labelled =
        encoder_.label_tokens(texts, {.aggregation = kind.aggregation,
                                      .max_tokens = max_tokens_,
                                      .parse_special = kind.parse_special,
                                      .stop = std::move(stop)});
    for (phasor::LabelledText& text : labelled.texts) {
      results.push_back(
          {.values = {}, .num_tokens = text.report.num_tokens, .spans = std::move(text.spans)});
    }
  } else {
    const phasor::ClassifyOptions options{.max_tokens = max_tokens_,
                                          .overflow = overflow,
                                          .stop = std::move(stop),
                                          .parse_special = kind.parse_special,
                                          .truncation_side = kind.side};
    const phasor::Classification classes = second.empty()
                                               ? encoder_.classify(texts, options)
                                               : encoder_.classify(texts, second, options);
    for (int64_t i = 0; i < classes.size(); ++i)
      results.push_back(
          {copy(classes.logits(i)), copy(classes.probabilities(i)), classes.report(i).num_tokens});
  }
  return results;
}

}  // namespace infer
