#!/usr/bin/env bash
# OSS-Fuzz's build.sh: the compilers and their options ($CC, $CXX, $CFLAGS, $CXXFLAGS), the engine
# ($LIB_FUZZING_ENGINE) and the folders ($WORK, $OUT) are those of its environment, and the libraries those
# that ./dev installs; zip is needed, too. Tried with Debian's clang and libFuzzer, in no image of OSS-Fuzz:
# there the libraries must be as new as Debian 12's, and the runner's glibc as new as the builder's.
set -euo pipefail

repo=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
# Debian's C++ libraries are built with libstdc++, which is not OSS-Fuzz's default. What runs the fuzzers has
# none of them: they are copied, and found there (by DT_RPATH, also by one another).
export CXXFLAGS="${CXXFLAGS-} -stdlib=libstdc++"
# shellcheck disable=SC2016
cmake -S "$repo" -B "$WORK" -G Ninja -DCMAKE_BUILD_TYPE=None -DPHASOR_FUZZERS=ON -DPHASOR_COMPILE_BY_FOLDER=ON -DPHASOR_BUILD_BENCH=OFF \
  -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build "$WORK" --target fuzz
mkdir -p "$OUT/lib" "$OUT/models"
ldd "$WORK/bin/fuzz" | sed -nE 's/.* => (\/[^ ]+) .*/\1/p' | grep -vE '/lib(c|m|dl|rt|pthread|resolv)\.so' |
  xargs cp -L -t "$OUT/lib"
cp -r "$repo/models/sinusoidal" "$OUT/models"
for program in "$WORK"/bin/fuzz_*; do
  name=${program##*/}
  cp "$WORK/bin/fuzz" "$OUT/$name"
  "$program" --seeds "$WORK/$name"
  (cd "$WORK/$name" && zip -q -r "$OUT/${name}_seed_corpus.zip" .)
  cp "$WORK/$name.dict" "$OUT/$name.dict"
done
