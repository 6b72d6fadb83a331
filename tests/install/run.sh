#!/usr/bin/env bash
# Builds the application beside this file the two ways there are, and runs its programs.
#
#   run.sh installed  BUILD CMAKE_OPTIONS...   against an installation of BUILD, moved elsewhere
#   run.sh subproject BUILD CMAKE_OPTIONS...   with phasor as a subdirectory and a shared library: configures
#                                              alone, and takes BUILD's own shared libraries to build programs
#   run.sh smallest   BUILD CMAKE_OPTIONS...   with a shared phasor that is built without the lens, and without the
#                                              libraries that it does not need, in BUILD itself, which is then
#                                              configured with all again and keeps the objects
#
# "tests/fresh_machine.sh RELEASE brief" compiles, installs and uses a shared phasor.
set -euo pipefail

mode=$1
build=$(cd "$2" && pwd)
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(dirname "$(dirname "$here")")
work=$build/tests/install_test/$mode

fail() {
  echo "run.sh: $*" >&2
  exit 1
}

# expect TEXT COMMAND...: the command succeeds and its output holds TEXT.
expect() {
  local want=$1 output
  shift
  output=$("$@") || fail "$* failed with $?"
  [[ $output == *"$want"* ]] || fail "$* printed '$output', which does not hold '$want'"
}

# build_c PREFIX CMAKE_OPTIONS...: a project in C, with an installation.
build_c() {
  cmake -S "$here/c" -B "$work/c" -DCMAKE_PREFIX_PATH="$1" "${@:2}"
  cmake --build "$work/c"
  (cd / && expect "cosine 0.93" "$work/c/encode")
}

rm -rf "$work"
mkdir -p "$work"

if [[ $mode == installed ]]; then
  cmake --install "$build" --prefix "$work/first place"
  prefix="$work/second place"
  mv "$work/first place" "$prefix"

  for model in sinusoidal learned none rotary relative alibi; do
    files=$(cd "$prefix/share/phasor/models/$model" && echo *)
    [[ $files == "README.md config.json model.safetensors tokenizer.model" ]] ||
      fail "the installed model $model holds $files"
  done
  [[ $(ls "$prefix/share/phasor/models") == $'alibi\nlearned\nnone\nrelative\nrotary\nsinusoidal' ]] ||
    fail "other models than the six are installed"
  (cd "$repo/include" && find . -name '*.h') | while read -r header; do
    [[ -f $prefix/include/$header ]] || fail "$header is not installed"
  done
  (cd / && expect Tom "$prefix/bin/infer" -q "Tom bit a dog.")
  for package in infer libphasor-c2 libphasor-dev phasor-models; do
    while read -r path _; do
      path=${path#usr/}
      compgen -G "$prefix/${path/#lib\/\*/lib*}" >/dev/null ||
        fail "packaging/debian/$package.install names $path, which is not installed"
    done <"$repo/packaging/debian/$package.install"
  done
  cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" "$@"
  cmake --build "$work/build"

  # Without CMake, by a name without spaces, which pkg-config cannot hand on.
  ln -s "$prefix" "$work/prefix"
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix/" -name phasor.pc)")
  # shellcheck disable=SC2046
  "${CXX:-g++}" -std=c++20 "$repo/examples/encode.cc" -o "$work/by_pkg_config" \
    $(pkg-config --cflags --libs phasor)
  (cd / && expect "cosine 0.93" "$work/by_pkg_config")
  # shellcheck disable=SC2046
  "${CXX:-g++}" -std=c++20 "$repo/examples/trace_positions.cc" -o "$work/lens_by_pkg_config" \
    $(pkg-config --cflags --libs phasor_lens)
  (cd / && expect "hidden_states[6]: moved by" "$work/lens_by_pkg_config")
  "${CC:-cc}" -std=c99 "$repo/examples/encode.c" -o "$work/by_cc" -I "$prefix/include" \
    -L "$(dirname "$PKG_CONFIG_PATH")" -lphasor_c "-Wl,-rpath,$(dirname "$PKG_CONFIG_PATH")"
  (cd / && expect "cosine 0.93" "$work/by_cc")
  build_c "$prefix" "$@"
  (cd / && expect "cosine 0.93" "$work/build/encode")
  (cd / && expect "[2, 128]" "$work/build/embed")
  (cd / && expect "hidden_states[6]: moved by" "$work/build/with_lens")
  ! "$work/build/embed" nowhere || fail "a model that is nowhere was found"
elif [[ $mode == smallest ]]; then
  lean=(-DPHASOR_BUILD_LENS=OFF -DPHASOR_BUILD_TESTS=OFF -DPHASOR_BUILD_BENCH=OFF -DBUILD_SHARED_LIBS=ON)
  for package in Eigen3 CLI11 Boost GTest benchmark; do
    lean+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON")
  done
  ! refusal=$(cmake -S "$repo" -B "$work/refused" "$@" "${lean[@]}" 2>&1 | tr -s '\n ' ' ') || fail "infer is built without the lens"
  [[ $refusal == *"need the lens: set PHASOR_BUILD_LENS=ON"* ]] || fail "cmake says '$refusal'"
  began=$SECONDS
  cmake -S "$repo" -B "$build" "$@" "${lean[@]}" -DPHASOR_BUILD_INFER=OFF
  cmake --build "$build" --parallel "$(nproc)"
  echo "run.sh: the smallest build took $((SECONDS - began)) seconds"
  cmake --install "$build" --strip --prefix "$work/prefix"
  [[ ! -e $work/prefix/include/phasor/lens.h && ! -e $work/prefix/include/phasor/phasor_c.h ]] ||
    fail "headers are installed without their libraries"
  library=$(find "$work/prefix/" -name libphasor.so)
  "$here/symbols.sh" "$library" "$work/prefix"/include/phasor/*.h
  needed=$(readelf -d "$library" | sed -nE 's/.*NEEDED.*\[lib([^.]+)\..*/\1/p' | sort |
    grep -vE '^(absl_.*|c|dl|gcc_s|m|pthread|stdc\+\+)$' | xargs)
  [[ $needed == "dnnl fmt sentencepiece utf8proc" ]] ||
    fail "$library needs $needed"
  cp "$repo/examples/embed.cc" "$work"
  cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(lean LANGUAGES CXX)
find_package(phasor REQUIRED COMPONENTS ${components})
add_executable(embed embed.cc)
target_link_libraries(embed phasor::phasor)
END
  cmake -S "$work" -B "$work/application" -DCMAKE_PREFIX_PATH="$work/prefix" "$@"
  cmake --build "$work/application"
  (cd / && expect "[2, 128]" "$work/application/embed")
  ! refusal=$(cmake "$work/application" -Dcomponents=lens 2>&1 | tr -s '\n ' ' ') || fail "a lens was found"
  [[ $refusal == *"this phasor has no component lens"* ]] || fail "cmake says '$refusal'"
  cmake -S "$repo" -B "$build" -U 'PHASOR_BUILD_*' -U BUILD_SHARED_LIBS -U 'CMAKE_DISABLE_FIND_PACKAGE_*'
else
  cmake -S "$here" -B "$work/build" -DPHASOR_SOURCE="$repo" -DBUILD_SHARED_LIBS=ON -DPHASOR_INSTALL=ON "$@"
  targets=$(cmake --build "$work/build" --target help)
  ! grep -E '^(phasor/)?(infer|encode|trace_positions|lens|[a-z_]*_(test|bench))\b' <<<"$targets" ||
    fail "as a subproject phasor brings the targets above along"
  "$here/symbols.sh" "$build/tests/libphasor.so" "$repo"/include/phasor/*.h
  "$here/symbols.sh" "$build/tests/libphasor_lens.so" "$repo"/include/phasor/{,lens/}*.h
  in_both=$(for library in phasor phasor_lens; do
    nm -DC --defined-only "$build/tests/lib$library.so" | sed -n 's/^[0-9a-f]* T //p' | sort -u
  done | sort | uniq -d)
  [[ -z $in_both ]] || fail "phasor and phasor_lens both have $in_both"
  for example in embed trace_positions; do
    "${CXX:-g++}" -std=c++20 "$repo/examples/$example.cc" -o "$work/$example" -I "$repo/include" \
      "-DPHASOR_MODELS_DIR=\"$repo/models\"" "-L$build/tests" -lphasor_lens -lphasor "-Wl,-rpath,$build/tests"
  done
  (cd / && expect "[2, 128]" "$work/embed")
  (cd / && expect "hidden_states[6]: moved by" "$work/trace_positions")
fi
