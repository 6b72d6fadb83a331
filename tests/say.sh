# Sourced by the scripts of tests: what they say on stderr, and how they end.
# shellcheck shell=bash

say() { printf '%s: [%d:%02d] %s\n' "${0##*/}" $((SECONDS / 60)) $((SECONDS % 60)) "$*" >&2; }
skip() {
  say "skipped: $*"
  exit 77
}
fail() {
  say "FAILED: $*"
  exit 1
}
