#!/usr/bin/env bash
# Processor time of the test command of README, from a fresh clone, build and tests, in units of `cc -O2 -c gcp.c`:
# at most 25. With "ci": of .ci/run, at most 110. Machines differ, and so does one from day to day: the unit is measured
# before and after. Exit status: 1 over the limit, 2 what was measured failed.
#
#     tests/build/times.sh [ci]
set -euo pipefail
export LC_ALL=C TIMEFORMAT='%U %S'
root=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q "$root" "$work/gcp"
cd "$work/gcp"

seconds() {                          # COMMAND...: its processor time, children too
    local status=0
    { time "$@" >"$work/log" 2>&1 || status=$?; } 2>"$work/time"
    [ $status = 0 ] || { tail -n 30 "$work/log" >&2; echo "$*: exit $status" >&2; exit 2; }
    awk '{ print $1 + $2 }' "$work/time"
}
unit() { seconds "${CC:-cc}" -O2 -c gcp.c -o "$work/gcp.o"; }

case ${1:-} in
    ci) what=(bash .ci/run) limit=110 ;;
    '') what=(cmake --workflow --preset test) limit=25 ;;
    *) echo "times.sh [ci]" >&2; exit 2 ;;
esac
before=$(unit)
all=$(seconds "${what[@]}")
after=$(unit)
awk -v a="$before" -v b="$after" -v all="$all" -v limit=$limit -v what="${what[*]}" 'BEGIN {
    unit = (a + b) / 2
    printf "%s: %.0f s of processor time, %.1f times cc -O2 -c gcp.c (%.1f and %.1f s); at most %d\n", what, all, all / unit, a, b, limit
    exit all > limit * unit
}'
