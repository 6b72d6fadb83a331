# shellcheck shell=bash
# Sourced by the scripts that try phasor on other machines: minimal Debians, made with debootstrap in a
# temporary folder ($TMPDIR, else /var/tmp; about 2 GB) from this machine's own Debian mirror. That needs
# root; the scripts exit 77 where it cannot be done.
set -euo pipefail

repo=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")

# shellcheck source-path=SCRIPTDIR source=say.sh
source "$repo/tests/say.sh"

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

# make_machine RELEASE ROOT: a Debian with g++ and git only, and a clone of HEAD, without ../shared.
make_machine() {
  local release=$1 root=$2
  say "making a minimal $release"
  # shellcheck disable=SC2046 # one word or none
  debootstrap --variant=minbase --include=g++,git,ca-certificates "$release" "$root" \
    $(mirror) >"$root.log" || fail "debootstrap: $(tail -n 3 "$root.log")"
  copy_network "$root"
  mount --bind /dev "$root/dev"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t proc proc "$root/proc"

  say "cloning $(git -C "$repo" log -1 --format='%h (%s)')"
  git clone --quiet --depth 1 "file://$repo" "$root/srv/phasor"
}

# on_a_machine RELEASE ARGUMENT...: calls the script's function `machine RELEASE ROOT ARGUMENT...`, in a
# mount and process namespace of its own: what is mounted and started there ends with it.
on_a_machine() {
  [[ $(id -u) == 0 ]] || skip "only root can make a machine"
  unshare --mount true 2>/dev/null || skip "this root may not mount"
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
  unshare --mount --pid --fork --kill-child bash "$0" --machine "$1" "$folder/$1" "${@:2}"
}
