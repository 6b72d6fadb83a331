# What the tests of this folder share. They run in process, mount and network namespaces of their own:
# what they start and mount ends with them.
# shellcheck shell=bash

sentences=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../examples/sentences.txt
address=192.0.2.1 # not of 127.0.0.0/8, with which alone names are not resolved

# shellcheck source-path=SCRIPTDIR source=../say.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../say.sh"

# alone INFER COMMAND...: runs this program again, as `--inside INFER FOLDER`, where these commands are.
alone() {
  local infer command folder
  infer=$(readlink -f "$1")
  [[ -x $infer ]] || fail "there is no program '$1'"
  [[ $(id -u) == 0 ]] || skip "only root can start a cluster"
  for command in unshare ip pgrep "${@:2}"; do
    command -v "$command" >/dev/null || skip "there is no $command"
  done
  local spaces=(--mount --pid --net --fork --kill-child --mount-proc)
  unshare "${spaces[@]}" true 2>/dev/null || skip "this root may not make namespaces"
  folder=$(mktemp -d -t phasor-cluster.XXXXXX)
  # shellcheck disable=SC2064
  trap "rm -rf '$folder'" EXIT
  chmod 755 "$folder"
  # In the background, so that a signal ends it too.
  setpriv --pdeathsig KILL unshare "${spaces[@]}" bash "$0" --inside "$infer" "$folder" &
  wait $!
}

# prepare INFER FOLDER SHARDS: the network, a corpus, its plan in FOLDER/shards, and FOLDER/whole.npy as one
# undisturbed process writes it. Sets $infer, $folder and $shards, a folder whose name needs quotes.
prepare() {
  infer=$1 folder=$2 shards="$2/the shards 100%"
  export HOME=$folder
  ip link set lo up
  ip address add "$address/32" dev lo
  cd "$folder" || exit
  local i
  for ((i = 0; i < 200; ++i)); do
    sed "s/^/$i /" "$sentences"
  done >corpus.txt
  "$infer" shard plan -i corpus.txt -o "$shards" --shards "$3" >&2
  "$infer" embed -q -i corpus.txt -o whole.npy
  say "$(wc -l <corpus.txt) lines, $3 shards; now with workers that die"
}

complete() { [[ -z $("$infer" shard status --left "$shards") ]]; }

# kill_worker: SIGKILL to a random `infer shard run`. Fails where there is none.
kill_worker() {
  local pid
  pid=$(for pid in $(pgrep -x infer); do
    ! grep -qzx run "/proc/$pid/cmdline" || echo "$pid"
  done | shuf -n 1)
  [[ -n $pid ]] && kill -KILL "$pid"
} 2>/dev/null

# same FILE: it must be what one undisturbed process wrote.
same() {
  cmp "$1" "$folder/whole.npy" || fail "not what one undisturbed process writes"
  say "passed: $2"
}
