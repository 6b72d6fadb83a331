// Texts run once; the states of each become vectors of the kinds that are asked for.
#include "outputs/all_vectors.h"

#include <optional>

#include "files/refuse.h"
#include "outputs/sparse.h"
#include "outputs/token_vectors.h"

namespace phasor::internal {
namespace {

/// Whether texts run otherwise than for embed().
bool has_own_run(const TokenVectorConfig& config, bool is_query) {
  const TokenVectorConfig::Side& side = config.side(is_query);
  return side.marker || side.max_tokens > 0 || (is_query && config.expansion);
}

/// Runs texts with their marker, expansion and length.
void apply_own_run(const TokenVectorConfig& config, const Model& model, bool is_query,
                   EmbedOptions& how, EmbedHead& head) {
  const TokenVectorConfig::Side& side = config.side(is_query);
  head.edit.marker = side.marker;
  head.token_width = config.width();
  const bool runs_all = how.overflow == Overflow::kClamp || how.overflow == Overflow::kInterpolate;
  if (how.max_tokens == 0 && !runs_all) how.max_tokens = side.max_tokens;
  if (!is_query || !config.expansion) return;
  head.edit.expansion = config.expansion;
  const int64_t length = config.expansion->length;
  const int64_t most = how.max_tokens > 0 ? how.max_tokens : model.text().max_tokens;
  if (config.expansion->cuts || (!runs_all && most > 0 && most < length)) how.max_tokens = length;
  if (config.expansion->cuts && how.overflow != Overflow::kError)
    how.overflow = Overflow::kTruncate;
}

}  // namespace

AllVectorsData embed_all(const Model& model, const Threads& threads, const EmbedInput& input,
                         VectorKinds kinds, const RetrievalOptions& options,
                         const EncodeBatch& encode, const HeadOfStates& logits,
                         const HeadOfStates& project) {
  const int num_kinds = int{kinds.dense} + int{kinds.sparse} + int{kinds.tokens};
  if (num_kinds == 0) throw InvalidArgument("no kind of vectors is asked for");
  const auto refuse_several = [&](bool is_other, const char* why) {
    if (num_kinds > 1 && is_other)
      refuse<InvalidArgument>("one run cannot make all of these vectors: {}", why);
  };
  AllVectorsData all;
  EmbedOptions how = embed_options(model, options);
  EmbedHead head = {.offset_unit = kinds.tokens ? options.offset_unit : OffsetUnit::kNone};
  std::optional<SparseHead> sparse;
  std::optional<TokenVectorHead> tokens;
  if (kinds.dense) {
    how.pooling = model.sentence().pooling;
    head.width = embedding_width(model, how);
  }
  if (kinds.sparse) {
    const bool looks_up = options.is_query && !model.sparse().query_weights.empty();
    refuse_several(looks_up, "the sparse ones of queries are looked up");
    if (looks_up) {
      all.sparse = look_up(model, threads, input, options);
      return all;
    }
    sparse.emplace(model, threads, input.size(), options, logits);
  }
  if (kinds.tokens) {
    const TokenVectorConfig& config = model.token_vectors();
    refuse_several(has_own_run(config, options.is_query),
                   "those of tokens have a marker, an expansion or a length of their own");
    apply_own_run(config, model, options.is_query, how, head);
    tokens.emplace(model, threads, input.size(), options.is_query, project);
  }
  head.take = [&](const TextStates& batch) {
    if (sparse) sparse->take(batch);
    if (tokens) tokens->take(batch);
  };
  const auto data = embed(model, threads, input, how, encode, &head);
  if (kinds.dense) all.dense = data;
  if (sparse) all.sparse = sparse->finish(data->reports);
  if (tokens) all.tokens = tokens->finish(data->reports);
  return all;
}

}  // namespace phasor::internal
