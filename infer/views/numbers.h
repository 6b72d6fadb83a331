// Every number that is known of a layer or a text under its name, which is its path in the JSON.
#pragma once

#include <string>

#include "infer/experiment/observed.h"

namespace infer {

/// Calls visit(head, name, number) for each; head 0 is none, else they count from 1. A number of a
/// layer that is not const may be changed.
template <typename Head, typename Visit>
void for_each_head_number(Head& profile, int64_t head, Visit visit) {
  const auto name = [](const char* leaf) { return std::string("attention.heads.") + leaf; };
  visit(head, name("distance"), profile.mean_distance);
  visit(head, name("entropy"), profile.entropy);
  visit(head, name("entropy_share"), profile.entropy_share);
  visit(head, name("previous"), profile.previous);
  visit(head, name("next"), profile.next);
  visit(head, name("self"), profile.self);
  visit(head, name("first"), profile.first);
  visit(head, name("separators"), profile.separators);
  visit(head, name("positional_share"), profile.positional_share);
}

template <typename Layer, typename Visit>
void for_each_number(Layer& layer, Visit visit) {
  visit(0, "norm", layer.norm);
  if (layer.position_effect) visit(0, "position_effect", *layer.position_effect);
  if (layer.split) {
    visit(0, "split.position", layer.split->position);
    visit(0, "split.token", layer.split->group);
    visit(0, "split.rest", layer.split->rest);
    visit(0, "position_matrix.stable_rank", layer.split->stable_rank);
    visit(0, "position_matrix.smoothness", layer.split->smoothness);
  }
  if (layer.corpus_split) {
    visit(0, "corpus_split.position", layer.corpus_split->position);
    visit(0, "corpus_split.text", layer.corpus_split->group);
    visit(0, "corpus_split.rest", layer.corpus_split->rest);
    visit(0, "corpus_split.stable_rank", layer.corpus_split->stable_rank);
    visit(0, "corpus_split.smoothness", layer.corpus_split->smoothness);
  }
  if (layer.probe) {
    const auto score = [&](const std::string& name, auto& score) {
      visit(0, "probe." + name + ".r2", score.r2);
      visit(0, "probe." + name + ".mean_absolute_error", score.mean_absolute_error);
    };
    score("train", layer.probe->train);
    score("held_out", layer.probe->held_out);
    score("mean", layer.probe->mean);
    score("shuffled", layer.probe->shuffled);
  }
  if (layer.direct_position) {
    visit(0, "direct_position.norm", layer.direct_position->norm);
    visit(0, "direct_position.share", layer.direct_position->alignment);
  }
  for (size_t kind = 0; layer.order && kind < kReorderingNames.size(); ++kind) {
    visit(0, "order_sensitivity." + std::string(kReorderingNames[kind]), (*layer.order)[kind]);
  }
  if (!layer.attention) return;
  visit(0, "attention.distance", layer.attention->distance);
  visit(0, "attention.entropy", layer.attention->entropy);
  visit(0, "attention.entropy_share", layer.attention->entropy_share);
  for (auto& [offset, share] : layer.attention->by_offset) {
    visit(0, "attention.by_offset." + std::to_string(offset), share);
  }
  int64_t head = 0;
  for (auto& profile : layer.attention->heads) for_each_head_number(profile, ++head, visit);
}

/// The shares of a score's terms, in the order of its formula.
template <typename Shares, typename Visit>
void for_each_share(Shares& shares, Visit visit) {
  visit("token_token", shares.token_token);
  visit("token_position", shares.token_position);
  visit("position_token", shares.position_token);
  visit("position_position", shares.position_position);
  visit("relative_bias", shares.relative_bias);
  visit("rest", shares.rest);
}

/// Those that are of no layer.
template <typename Text, typename Visit>
void for_each_text_number(Text& text, Visit visit) {
  if (text.pooled_effect) visit(0, "pooled_effect", *text.pooled_effect);
  if (!text.first_layer_scores) return;
  const auto each = [&](int64_t head, const std::string& path, auto& shares) {
    for_each_share(shares, [&](const char* name, auto& share) { visit(head, path + name, share); });
  };
  each(0, "first_layer_scores.", text.first_layer_scores->all);
  int64_t head = 0;
  for (auto& shares : text.first_layer_scores->heads) {
    each(++head, "first_layer_scores.heads.", shares);
  }
}

}  // namespace infer
