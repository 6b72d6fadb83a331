// Encodes two sentences of the same words and prints how alike their vectors are.
#include <phasor/phasor.h>

#include <cstdio>

int main() {
  phasor::Encoder encoder(phasor::Model::load("sinusoidal"));
  const phasor::Encoding out = encoder.encode({"Tom bit a dog.", "A dog bit Tom."});

  const std::span<const float> tom = out.embedding(0), dog = out.embedding(1);  // [C]
  std::printf("cosine %.4f\n", 1 - phasor::mean_cosine_distance(tom, dog, tom.size()));
}
