#!/bin/sh
# Trains the twins, one thread each and one on each core, and exports them; run it again to resume.
#
#   models/train/twins.sh CORPUS WORK OUT [TOKENS...]
#
# CORPUS holds train.txt and valid.txt; WORK gets checkpoints and logs; OUT (such as models) gets
# a folder for each twin. Each TOKENS ends a round of warm-up, hold and decay.
set -eu
corpus=$1 work=$2 out=$3
shift 3
[ $# -gt 0 ] || set -- 27000000 64000000
code=$(dirname "$0")
python=${PYTHON:-/usr/bin/python3}
twins="sinusoidal learned none rotary relative alibi"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Debian 12's OpenBLAS takes some newer Xeons for an old CPU and is then three times slower.
if grep -qs avx512f /proc/cpuinfo; then
  export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-SKYLAKEX}"
fi
# Memory that is kept instead of returned, in large pages: a tenth faster.
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=268435456
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1

run() { "$python" "$code/$@"; }

mkdir -p "$work"
[ -f "$work/tokenizer.model" ] || run tokenizer.py "$corpus/train.txt" "$work/tokenizer.model"
for part in train valid; do
  [ -f "$work/$part.npz" ] ||
    run data.py "$work/tokenizer.model" "$corpus/$part.txt" "$work/$part.npz"
done

start=0
for end; do
  echo "$twins" | xargs -n 1 -P "$(nproc)" \
    "$python" "$code/train.py" "$work" --tokens "$end" --round-start "$start" --position
  start=$end
done

set --
for position in $twins; do
  run export.py "$work/$position.pt" "$work/tokenizer.model" "$out/$position"
  run card.py "$work/$position.csv" "$out/$position"
  set -- "$@" "$out/$position"
done
run fillin.py "$@"
