// Runs one sentence with positions and without, and prints how far apart the two runs are at every
// layer.
#include <phasor/lens.h>
#include <phasor/phasor.h>

#include <iostream>

int main() {
  using phasor::Positions, phasor::Trace;
  phasor::Encoder encoder(phasor::Model::load("sinusoidal"));

  Trace with = Trace::hidden_states_and_attentions();
  Trace without = Trace::hidden_states_and_attentions();
  encoder.encode("Tom bit a dog.", {.observer = &with});
  encoder.encode("Tom bit a dog.", {.observer = &without, .positions = Positions::none()});

  for (int64_t l = 0; l <= with.num_layers(); ++l) {
    const Trace::Entry& a = with.hidden_state(l);     // [T, C]
    const Trace::Entry& b = without.hidden_state(l);  // [T, C]
    std::cout << "hidden_states[" << l << "]: moved by "
              << phasor::mean_cosine_distance(a.values, b.values, a.shape[1]) << "\n";
  }
}
