#!/usr/bin/env bash
# Runs the README's commands as a newcomer would: on a minimal Debian with g++ and git only.
#
#   tests/fresh_machine.sh bookworm|trixie|sid [--infer]
#
# With --infer it only builds and runs infer, without the tests. Those that take longest and find
# nothing that depends on the machine are left out; so says the script when it comes to them.
#
# Makes the machine with debootstrap in a temporary folder ($TMPDIR, else /var/tmp; about 2 GB) from
# this machine's own Debian mirror, and clones HEAD into it, without ../shared. Needs root; exits 77
# where it cannot be done.
set -euo pipefail

repo=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
infer='./dev infer "Tom bit a dog."'
test='./dev test'
python='./dev python'
elsewhere='KilledAtAnyCall|CleaningTakesNothing|install_test.subproject|ReadmePageTest.*(finding|how_position_travels)'

say() { printf '%s: [%d:%02d] %s\n' "${0##*/}" $((SECONDS / 60)) $((SECONDS % 60)) "$*" >&2; }
skip() {
  say "skipped: $*"
  exit 77
}
fail() {
  say "FAILED: $*"
  exit 1
}

# The mirror of this machine's apt, or nothing (debootstrap's own choice) where this is no Debian.
mirror() {
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(LABEL)' 'Created-By: Packages' |
    awk '$3 == "Debian" && $2 !~ /-/ { print $1; exit }'
}

# What this machine's apt needs to reach the mirror, the new one needs too.
copy_network() {
  local root=$1
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  apt-config dump | grep -E '^Acquire::(Check-|https?::|ForceIPv)' \
    >"$root/etc/apt/apt.conf.d/90host" || true
}

# inside ROOT COMMAND: as root in the clone, without stdin.
inside() {
  chroot "$1" env -i HOME=/root PATH="$PATH" ${http_proxy:+http_proxy="$http_proxy"} \
    bash -c "cd /srv/phasor && $2" </dev/null
}

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

# Runs in a mount and process namespace of its own: what is mounted and started here ends with it.
machine() {
  local release=$1 root=$2 only=${3-}
  say "making a minimal $release"
  debootstrap --variant=minbase --include=g++,git,ca-certificates "$release" "$root" \
    $(mirror) >"$root.log" || fail "debootstrap: $(tail -n 3 "$root.log")"
  copy_network "$root"
  mount --bind /dev "$root/dev"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t proc proc "$root/proc"

  say "cloning $(git -C "$repo" log -1 --format='%h (%s)')"
  git clone --quiet --depth 1 "file://$repo" "$root/srv/phasor"

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

  [[ $only != --infer ]] || { say "$release passed, without tests"; return; }
  [[ $release == bookworm ]] || inside "$root" "./dev need python3-openai" # for RoutesTest.OpenAisAndCoheresClients
  # What takes long and depends on this repository alone is tested where .ci/run runs.
  say "$test, without $elsewhere"
  inside "$root" "$test -E '$elsewhere'" || fail "$test exited with $?"
  say "$python"
  inside "$root" "$python" || fail "$python exited with $?"
  say "$release passed"
}

if [[ ${1-} == --machine ]]; then
  machine "${@:2}"
  exit
fi

[[ "$*" =~ ^(bookworm|trixie|sid)( --infer)?$ ]] ||
  fail "usage: tests/fresh_machine.sh bookworm|trixie|sid [--infer]"
[[ $(id -u) == 0 ]] || skip "only root can make a machine"
unshare --mount true 2>/dev/null || skip "this root may not mount"
for command in "$infer" "$test" "$python"; do
  grep -qF "$command" "$repo/README.md" || fail "README.md does not say: $command"
done
"$repo/dev" need debootstrap debian-archive-keyring git

if [[ -z ${http_proxy-} ]]; then
  eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
  export http_proxy
fi
folder=$(mktemp -d -p "${TMPDIR:-/var/tmp}" "phasor-$1.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
# Another owner than root's may hold the repository: git would refuse to read it.
export GIT_CONFIG_GLOBAL=$folder/gitconfig
git config --global safe.directory '*'
chmod 755 "$folder"
unshare --mount --pid --fork --kill-child bash "${BASH_SOURCE[0]}" --machine "$1" "$folder/$1" "${@:2}"
