// Embeds two sentences of the same words and prints how alike their vectors are.
#include <phasor/phasor.h>

#include <cstdio>

int main() {
  phasor::Encoder encoder(phasor::Model::load("sinusoidal"));
  const phasor::Vectors v = encoder.embed({"Tom bit a dog.", "A dog bit Tom."});  // [2, C]

  std::printf("cosine %.4f\n", phasor::cosine(v[0], v[1]));
}
