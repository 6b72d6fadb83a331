#!/usr/bin/env bash
# Whether a shared library of phasor exports what public headers declare and nothing else, and uses nothing else.
#
#   symbols.sh LIBRARY HEADER...
set -euo pipefail

library=$1
shift
fail() {
  echo "symbols.sh: $*" >&2
  exit 1
}

symbols=$(nm -DC --defined-only "$library" | sed -E 's/^[0-9a-f]* [A-Za-z] //')
[[ $(wc -l <<<"$symbols") -gt 50 ]] || fail "$library exports next to nothing"
names=$(sed -E 's/^(typeinfo for|typeinfo name for|vtable for) //; s/^phasor::EnumNames const& phasor::/phasor::/' \
  <<<"$symbols")

foreign=$(grep -vE '^phasor::' <<<"$names" || true)
[[ -z $foreign ]] || fail "exported, but not of phasor: ${foreign//$'\n'/, }"
hidden=$(grep -E '^phasor::(internal::|[A-Za-z]*::(Impl|State)\b)' <<<"$names" || true)
[[ -z $hidden ]] || fail "exported, but internal: ${hidden//$'\n'/, }"
[[ $library == *lens* || $names != *phasor::lens::* ]] || fail "$library exports the lens"
missing=$(nm -DC --undefined-only "$library" | grep phasor::internal:: || true)
[[ -z $missing ]] || fail "$library uses what phasor hides: $missing"

# Each name that is exported stands in a public header.
headers=$(cat "$@")
sed -E 's/^phasor::([A-Za-z_0-9]+::)*~?([A-Za-z_0-9]+).*/\2/' <<<"$names" | sort -u | while read -r name; do
  grep -qwF -- "$name" <<<"$headers" || fail "$name is exported, but in no public header"
done
