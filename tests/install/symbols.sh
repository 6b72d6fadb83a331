#!/usr/bin/env bash
# Whether a shared phasor exports its documented interface and nothing else.
#
#   symbols.sh INCLUDE_FOLDER LIBRARY
set -euo pipefail

include=$1 library=$2
fail() {
  echo "symbols.sh: $*" >&2
  exit 1
}

symbols=$(nm -DC --defined-only "$library" | sed -E 's/^[0-9a-f]* [A-Za-z] //')
[[ $(wc -l <<<"$symbols") -gt 100 ]] || fail "$library exports next to nothing"
names=$(sed -E 's/^(typeinfo for|typeinfo name for|vtable for) //; s/^phasor::EnumNames const& phasor::/phasor::/' \
  <<<"$symbols")

# The C interface: what phasor_c.h declares.
exported=$(grep -E '^phasor_' <<<"$names" | LC_ALL=C sort || true)
declared=$(sed 's://.*::' "$include/phasor/phasor_c.h" | grep -oE '\bphasor_[a-z0-9_]+\(' | tr -d '(' |
  LC_ALL=C sort)
[[ $exported == "$declared" ]] ||
  fail "exported or declared in phasor_c.h, but not both: $(LC_ALL=C comm -3 <(echo "$exported") <(echo "$declared"))"
names=$(grep -vE '^phasor_' <<<"$names")

foreign=$(grep -vE '^phasor::' <<<"$names" || true)
[[ -z $foreign ]] || fail "exported, but not of phasor: ${foreign//$'\n'/, }"
hidden=$(grep -E '^phasor::(internal::|[A-Za-z]*::(Impl|State)\b)' <<<"$names" || true)
[[ -z $hidden ]] || fail "exported, but internal: ${hidden//$'\n'/, }"

# Each name that is exported stands in a public header.
headers=$(find "$include" -name '*.h' -exec cat {} +)
sed -E 's/^phasor::([A-Za-z_0-9]+::)*~?([A-Za-z_0-9]+).*/\2/' <<<"$names" | sort -u | while read -r name; do
  grep -qwF -- "$name" <<<"$headers" || fail "$name is exported, but in no public header"
done
