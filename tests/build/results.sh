#!/usr/bin/env bash
# Are the results of two trees the same, byte for byte? Plans and lists of the networks in examples/networks.h, and losses, gradients and
# weights of steps on each instruction set. For changes of form: run it before the API changes, for results.c must compile in both.
#     tests/build/results.sh OLD NEW          # folders that hold gcp.h; an old one: git worktree add ../old COMMIT
set -euo pipefail
old=$1 new=$2
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
isa=$(grep -qm1 avx512f /proc/cpuinfo && echo 4 || (grep -qm1 avx2 /proc/cpuinfo && echo 3 || echo 2))
for tree in old new; do
  ${CC:-cc} -std=gnu11 -O2 -DGCP_IMPLEMENTATION -I"${!tree}" "$here/results.c" -o "$out/$tree" -lm
  "$out/$tree" "$isa" > "$out/$tree.txt" &
done
wait
echo "$(wc -l < "$out/old.txt") results of $old, $(diff "$out/old.txt" "$out/new.txt" | grep -c '^>') of $new differ (in $out)"
cmp "$out/old.txt" "$out/new.txt"
