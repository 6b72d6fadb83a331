#!/usr/bin/env bash
# OSS-Fuzz's build.sh: the compilers and their options ($CC, $CXX, $CFLAGS, $CXXFLAGS), the engine
# ($LIB_FUZZING_ENGINE) and the folders ($WORK, $OUT) are those of its environment, and the libraries those
# that ./dev installs.
set -euo pipefail

repo=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
cmake -S "$repo" -B "$WORK" -G Ninja -DCMAKE_BUILD_TYPE=None -DPHASOR_FUZZERS=ON -DPHASOR_BUILD_BENCH=OFF
cmake --build "$WORK" --target fuzz
for program in "$WORK"/bin/fuzz_*; do
  name=${program##*/}
  cp "$WORK/bin/fuzz" "$OUT/$name"
  "$program" --seeds "$WORK/$name"
  (cd "$WORK/$name" && zip -q -r "$OUT/${name}_seed_corpus.zip" .)
  cp "$WORK/$name.dict" "$OUT/$name.dict"
done
