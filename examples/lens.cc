// Follows position through the layers: its share of the states, its direct path, the heads that
// attend to neighbours, and what the first scores are made of.
#include <phasor/lens.h>
#include <phasor/phasor.h>

#include <cstdio>
#include <numeric>

int main() {
  const auto model = phasor::Model::load("sinusoidal");
  const std::vector<int32_t> ids =
      model->tokenizer().encode("The old man gave the boy a book.").ids;
  std::vector<int64_t> movable(ids.size() - 2);  // all but [CLS] and [SEP]
  std::iota(movable.begin(), movable.end(), 1);

  phasor::Encoder encoder(model);
  phasor::Trace trace = phasor::Trace::everything();
  encoder.encode_ids(ids, {.observer = &trace});
  const auto splits = phasor::latin_square_split(encoder, ids, movable);
  const auto path = phasor::direct_path(*model, trace);

  for (size_t l = 0; l < splits.size(); ++l) {
    std::printf("layer %zu: position %.3f, token %.3f, both %.3f, context %.3f; direct path %.3f\n",
                l, splits[l].position, splits[l].token, splits[l].both, splits[l].context,
                path[l].position.norm);
  }
  for (int64_t layer = 0; layer < trace.num_layers(); ++layer) {
    const phasor::Trace::Entry& pattern = trace.at(phasor::Hook::kPattern, layer);  // [H, T, T]
    const auto heads = phasor::head_profiles(pattern.values, pattern.shape[0], pattern.shape[1]);
    for (size_t h = 0; h < heads.size(); ++h) {
      if (!heads[h].positional_offset) continue;
      std::printf("layer %d, head %zu attends to offset %+d\n", static_cast<int>(layer) + 1, h + 1,
                  *heads[h].positional_offset);
    }
  }
  const auto scores = phasor::score_shares(phasor::first_layer_scores(*model, trace));
  std::printf("of the first scores, two tokens make %.3f and two positions %.3f\n",
              scores.token_token, scores.position_position);
}
