#!/usr/bin/env bash
# Builds the application beside this file the two ways there are, and runs its programs.
#
#   run.sh installed  BUILD CMAKE_OPTIONS...   against an installation of BUILD, moved elsewhere
#   run.sh subproject BUILD CMAKE_OPTIONS...   with phasor as a subdirectory and a shared library: configures
#                                              alone, and takes BUILD's own shared library to build a program
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
  "${CC:-cc}" -std=c99 "$repo/examples/encode.c" -o "$work/by_cc" -I "$prefix/include" \
    -L "$(dirname "$PKG_CONFIG_PATH")" -lphasor_c "-Wl,-rpath,$(dirname "$PKG_CONFIG_PATH")"
  (cd / && expect "cosine 0.93" "$work/by_cc")
  build_c "$prefix" "$@"
  (cd / && expect "cosine 0.93" "$work/build/encode")
  (cd / && expect "[2, 128]" "$work/build/embed")
  ! "$work/build/embed" nowhere || fail "a model that is nowhere was found"
else
  cmake -S "$here" -B "$work/build" -DPHASOR_SOURCE="$repo" -DBUILD_SHARED_LIBS=ON -DPHASOR_INSTALL=ON "$@"
  targets=$(cmake --build "$work/build" --target help)
  ! grep -E '^(phasor/)?(infer|encode|trace_positions|lens|[a-z_]*_(test|bench))\b' <<<"$targets" ||
    fail "as a subproject phasor brings the targets above along"
  library=$build/tests/libphasor.so
  "$here/symbols.sh" "$repo/include" "$library"
  "${CXX:-g++}" -std=c++20 "$repo/examples/embed.cc" -o "$work/embed" -I "$repo/include" \
    "-DPHASOR_MODELS_DIR=\"$repo/models\"" "$library" "-Wl,-rpath,$(dirname "$library")"
  (cd / && expect "[2, 128]" "$work/embed")
fi
