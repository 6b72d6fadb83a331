#!/bin/sh
# Trains the three twins at once, one thread each, and exports them; run it again to resume.
#
#   models/train/twins.sh CORPUS WORK OUT [TOKENS...]
#
# CORPUS holds train.txt and valid.txt; WORK gets checkpoints and logs; OUT (such as models) gets
# the folders sinusoidal, learned and none. Each TOKENS ends a round of warm-up, hold and decay.
set -eu
corpus=$1 work=$2 out=$3
shift 3
[ $# -gt 0 ] || set -- 27000000 64000000
code=$(dirname "$0")
python=${PYTHON:-/usr/bin/python3}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Debian 12's OpenBLAS takes some newer Xeons for an old CPU and is then three times slower.
if grep -qs avx512f /proc/cpuinfo; then
  export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-SKYLAKEX}"
fi

run() { "$python" "$code/$@"; }

mkdir -p "$work"
[ -f "$work/tokenizer.model" ] || run tokenizer.py "$corpus/train.txt" "$work/tokenizer.model"
for part in train valid; do
  [ -f "$work/$part.npz" ] ||
    run data.py "$work/tokenizer.model" "$corpus/$part.txt" "$work/$part.npz"
done

start=0
for end; do
  pids=
  for position in sinusoidal learned none; do
    run train.py "$work" --position $position --tokens "$end" --round-start "$start" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid"; done
  start=$end
done

for position in sinusoidal learned none; do
  run export.py "$work/$position.pt" "$work/tokenizer.model" "$out/$position"
  run card.py "$work/$position.csv" "$out/$position"
done
run fillin.py "$out/sinusoidal" "$out/learned" "$out/none"
