#!/usr/bin/env bash
# Runs the README's commands as a newcomer would: on a minimal Debian with g++ and git only.
#
#   tests/fresh_machine.sh bookworm|trixie|sid [library|packages]
#
# Tests that take long and find nothing that depends on the machine are left out; so says the script when it
# comes to them. With "library" it builds infer, the Python package and the tests of the library, the server
# and that package; with "packages" it installs what ./dev installs, and configures.
#
# The machine is made from HEAD as tests/machine.sh says, which also says what it needs.
# shellcheck source-path=SCRIPTDIR source=machine.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/machine.sh"

infer='./dev infer "Tom bit a dog."'
test='./dev test'
python='./dev python'
elsewhere='KilledAtAnyCall|CleaningTakesNothing|install_test.subproject|ProgramsPrint/(finding|how_position_travels)'

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

  say "$infer"
  inside "$root" "$infer" || fail "$infer exited with $?"
  say "$infer, a second time, and from another folder"
  inside "$root" "$infer" >"$root/first" 2>"$root/stderr" || fail "the second call exited with $?"
  ! grep -E '^(dev:|\[)' "$root/stderr" || fail "the second call did the work above again"
  inside "$root" "cd / && /srv/phasor${infer#.}" >"$root/second"
  cmp "$root/first" "$root/second"
  check_image "$root" "$release"

  [[ $release == bookworm ]] || inside "$root" "./dev need python3-openai" # for RoutesTest.OpenAisAndCoheresClients
  if [[ $only == library ]]; then
    local programs='engine_test models_test tokenizer_test lens_test serve_test'
    say "$programs"
    inside "$root" "./dev build $programs &&
      ctest --test-dir build/release --parallel $(nproc) --timeout 3600 --no-tests=error --no-label-summary \
        --output-on-failure -L '^(${programs// /|}|soak)\$'" ||
      fail "a test failed"
  else
    # What takes long and depends on this repository alone is tested where .ci/run runs.
    say "$test --all, without $elsewhere"
    inside "$root" "$test --all -E '$elsewhere'" || fail "$test exited with $?"
  fi
  say "$python"
  inside "$root" "$python" || fail "$python exited with $?"
  say "$release passed"
}

if [[ ${1-} == --machine ]]; then
  machine "${@:2}"
  exit
fi

[[ "$*" =~ ^(bookworm|trixie|sid)( library| packages)?$ ]] ||
  fail "usage: tests/fresh_machine.sh bookworm|trixie|sid [library|packages]"
for command in "$infer" "$test" "$python"; do
  grep -qF "$command" "$repo/README.md" || fail "README.md does not say: $command"
done
on_a_machine "$@"
