#!/usr/bin/env bash
# Runs infer and the tests of the library under qemu, on CPUs that this machine does not have.
#
#   tests/other_machines.sh nehalem   x86 without AVX, with the programs of build/release
#   tests/other_machines.sh arm64     ARM with and without SVE: cross-compiled on a minimal Debian 13
#
# qemu multiplies floats in software: the tests that would take minutes are left out, and those that ask
# for an amount of time. The machine for arm64 is made from HEAD as tests/machine.sh says, which also says
# what it needs.
# shellcheck source-path=SCRIPTDIR source=machine.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/machine.sh"

programs=(tokenizer_test models_test lens_test engine_test outputs_test)
left_out='*AnyThreads/*:EmbedTest.VectorsAre*:EmbedTest.Progress*:EmbedTest.OtherPolicies*:HooksTest.EventsOf*'
left_out+=':*ThousandTokens*:*Int8SumsAreExact*'
left_out+=':LatinSquareTest.*:PositionSourcesTest.RandomOrders*:ColumnPeaksTest.EverySine*:*Time:*RunOfUnknownCharactersIsCut*'

# try FOLDER EMULATOR...: in this process, which is on the machine; fails after all programs have run.
try() {
  local folder=$1 emulator=("${@:2}") program failed=()
  say "${emulator[*]}: infer"
  "${emulator[@]}" "$folder/infer" "Tom bit a dog." || failed+=(infer)
  for program in "${programs[@]}"; do
    say "${emulator[*]}: $program"
    "${emulator[@]}" "$folder/$program" --gtest_brief=1 --gtest_filter="-$left_out" || failed+=("$program")
  done
  [[ ${#failed[@]} == 0 ]] || fail "${emulator[*]}: ${failed[*]}"
}

machine() {
  local release=$1 root=$2 cpu build_packages
  make_machine "$release" "$root"

  say "installing what the build needs, for arm64"
  eval "$(sed -n '/^build_packages=(/,/)$/p' "$repo/dev")" # the first is the compiler
  printf '%s\n' 'Format: 3.0 (native)' 'Source: phasor' 'Version: 1' 'Architecture: any' \
    "Build-Depends: $(IFS=, && echo "${build_packages[*]:1}")" >"$root/srv/phasor.dsc"
  inside "$root" 'export DEBIAN_FRONTEND=noninteractive && dpkg --add-architecture arm64 && apt-get update &&
    apt-get -y install --no-install-recommends crossbuild-essential-arm64 qemu-user &&
    apt-get -y build-dep --no-install-recommends --host-architecture arm64 ../phasor.dsc' \
    >>"$root.log" 2>&1 || fail "apt-get: $(tail -n 3 "$root.log")"

  say "building"
  inside "$root" "cmake --preset release --log-level=NOTICE -Wno-dev -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DPKG_CONFIG_EXECUTABLE=/usr/bin/aarch64-linux-gnu-pkg-config \
    -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64 && cmake --build --preset release --target infer ${programs[*]}" ||
    fail "it does not build"

  for cpu in max cortex-a53; do
    inside "$root" "tests/other_machines.sh --try build/release/bin qemu-aarch64 -cpu $cpu"
  done
}

case "$*" in
  nehalem)
    "$repo/dev" need qemu-user
    "$repo/dev" build infer "${programs[@]}"
    try "$repo/build/release/bin" qemu-x86_64 -cpu Nehalem
    ;;
  arm64) on_a_machine trixie ;;
  --machine*) machine "${@:2}" ;;
  --try*) try "${@:2}" ;;
  *) fail "usage: tests/other_machines.sh nehalem|arm64" ;;
esac
