// The smallest application of phasor: one sentence in, the shape of its hidden state out.
#include <phasor/phasor.h>

#include <iostream>

int main() {
  phasor::Encoder encoder(phasor::Model::load(MODELS "/sinusoidal"));
  const phasor::Encoding out = encoder.encode("Tom bit a dog.");
  std::cout << "[" << out.num_tokens(0) << ", " << out.embedding(0).size() << "]\n";
}
