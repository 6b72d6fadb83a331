#!/usr/bin/env bash
# Runs the README's commands as a newcomer would: on a minimal Debian with g++ and git only.
#
#   tests/fresh_machine.sh bookworm|trixie|sid [brief|packages]
#
# Tests that take long and find nothing that depends on the machine are left out; so says the script when it
# comes to them. With "brief" it builds, installs, embeds and serves once, and runs the tests of the C interface
# and those of the Python package that ask its libraries; with "packages" it installs what ./dev installs, and
# configures.
#
# The machine is made from HEAD as tests/machine.sh says, which also says what it needs.
# shellcheck source-path=SCRIPTDIR source=machine.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/machine.sh"

infer='./dev infer "Tom bit a dog."'
test='./dev test'
python='./dev python'
elsewhere='ProgramsPrint/(finding|how_position_travels)'

# The image of packaging/Dockerfile must hold each library that infer links.
check_image() {
  local root=$1 owners package
  grep -q "FROM debian:$2-" "$repo/packaging/Dockerfile" || return 0
  say "packaging/Dockerfile"
  owners=$(inside "$root" 'ldd build/release/bin/infer | awk "{print \$1, \$3}" | while read -r name file; do
    objdump -p build/release/bin/infer | grep -q "NEEDED *$name$" || continue
    file=$(readlink -f "$file")
    dpkg -S "$file" 2>/dev/null || dpkg -S "${file#/usr}"
  done' | cut -d: -f1 | sort -u | grep -vE '^(libc6|libgcc-s1|libstdc\+\+6)$')
  for package in $owners; do
    grep -qw -- "$package" "$repo/packaging/Dockerfile" || fail "packaging/Dockerfile does not install $package"
  done
}

# Run inside: installs a shared phasor, builds the applications in C++ and C with it, makes vectors of two lines,
# and asks a server for one.
installed_infer() (
  set -e
  ./dev need curl
  ./dev build phasor phasor_lens phasor_c
  cmake --install build/release --prefix /opt/phasor >/dev/null
  tests/install/symbols.sh "$(find /opt/phasor/ -name libphasor.so)" include/phasor/*.h
  tests/install/symbols.sh "$(find /opt/phasor/ -name libphasor_lens.so)" include/phasor/{,lens/}*.h
  cmake -G Ninja -S tests/install -B /tmp/application -DCMAKE_PREFIX_PATH=/opt/phasor >/dev/null
  cmake --build /tmp/application --target embed with_lens
  cmake -G Ninja -S tests/install/c -B /tmp/application_in_c -DCMAKE_PREFIX_PATH=/opt/phasor >/dev/null
  cmake --build /tmp/application_in_c
  cd /tmp
  [[ $(application/embed) == *"[2, 128]"* && $(application/with_lens) == *moved* && $(application_in_c/encode) == *"cosine 0.93"* ]]
  infer=/opt/phasor/bin/infer
  printf 'Tom bit a dog.\nA dog bit Tom.\n' >lines
  "$infer" embed -i lines -o vectors.npy
  [[ $(wc -c <vectors.npy) -gt 1000 ]]
  "$infer" serve --port 8080 2>log &
  for _ in $(seq 50); do ! curl -fs localhost:8080/health >/dev/null || break; sleep 0.2; done
  curl -fsS localhost:8080/embed --json '{"inputs": "Tom bit a dog."}' >answer || { cat log; exit 1; }
  kill %1
  wait %1
  [[ $(tr -cd , <answer | wc -c) -ge 100 ]] || { cat answer; exit 1; }
)

machine() {
  local release=$1 root=$2 only=${3-}
  make_machine "$release" "$root"
  if [[ $only == packages ]]; then
    inside "$root" './dev build build.ninja' || fail "configuring exited with $?"
    say "$release has the packages"
    return
  fi

  say "as a user who may not install anything"
  local answer
  ! answer=$(inside "$root" "setpriv --reuid=65534 --clear-groups $infer" 2>&1) ||
    fail "infer ran although nothing could be installed"
  [[ $answer == "dev: cannot install without root or sudo; "* && $answer != *$'\n'* ]] ||
    fail "this is not one sentence: $answer"

  # In two thirds of the time; what optimization changes is found where .ci/run runs, and by hand without "brief".
  local brief="-DCMAKE_CXX_FLAGS_RELEASE='-O1 -DNDEBUG' -DPHASOR_OUTER_OPTIONS=-O0 -DBUILD_SHARED_LIBS=ON"
  [[ $only != brief ]] || inside "$root" "./dev build build.ninja && cmake build/release $brief >/dev/null" ||
    fail "configuring exited with $?"

  say "$infer"
  inside "$root" "$infer" || fail "$infer exited with $?"
  say "$infer, a second time, and from another folder"
  inside "$root" "$infer" >"$root/first" 2>"$root/stderr" || fail "the second call exited with $?"
  ! grep -E '^(dev:|\[)' "$root/stderr" || fail "the second call did the work above again"
  inside "$root" "cd / && /srv/phasor${infer#.}" >"$root/second"
  cmp "$root/first" "$root/second"
  check_image "$root" "$release"

  if [[ $only == brief ]]; then
    say "installing, embedding, serving"
    inside "$root" "$(declare -f installed_infer) && installed_infer" || fail "the installed infer failed, see above"
    say "the tests of the C interface"
    inside "$root" './dev build capi_test capi_folders loading_c_test &&
      ctest --test-dir build/release --timeout 600 --no-tests=error --no-label-summary --output-on-failure \
        -L "^(capi_test|loading_c_test)$"' ||
      fail "a test failed"
  else
    [[ $release == bookworm ]] || inside "$root" "./dev need python3-openai" # for RoutesTest.OpenAisAndCoheresClients
    # What takes long and depends on this repository alone is tested where .ci/run runs.
    say "$test --all, without $elsewhere"
    inside "$root" "$test --all -E '$elsewhere'" || fail "$test exited with $?"
  fi
  local left_out='' # what says nothing about this machine, and takes longest
  [[ $only != brief ]] || left_out=" --ignore-glob */test_data.py --ignore-glob */test_memory.py"
  say "$python$left_out"
  inside "$root" "$python$left_out" || fail "$python exited with $?"
  say "$release passed"
}

if [[ ${1-} == --machine ]]; then
  machine "${@:2}"
  exit
fi

[[ "$*" =~ ^(bookworm|trixie|sid)( brief| packages)?$ ]] ||
  fail "usage: tests/fresh_machine.sh bookworm|trixie|sid [brief|packages]"
for command in "$infer" "$test" "$python"; do
  grep -qF "$command" "$repo/README.md" || fail "README.md does not say: $command"
done
on_a_machine "$@"
