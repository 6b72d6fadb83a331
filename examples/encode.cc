// Encodes two sentences and prints how alike their vectors are.
#include <phasor/phasor.h>

#include <iostream>

int main() {
  phasor::Encoder encoder(phasor::Model::load("sinusoidal"));
  const phasor::Encoding out = encoder.encode({"Tom bit a dog.", "A dog bit Tom."});

  const std::span<const float> tom = out.embedding(0), dog = out.embedding(1);  // [C]
  std::cout << out.num_tokens(0) << " tokens, " << tom.size() << " numbers each\n"
            << "cosine " << 1 - phasor::mean_cosine_distance(tom, dog, tom.size()) << "\n";
}
