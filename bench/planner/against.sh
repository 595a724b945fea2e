#!/bin/sh
# Plans 300 graphs with two trees of gcp, five budgets each, and says where the new one is slower, by more than 0.1
# points of keep-all's time, or refuses what the old one plans. Exit status 1: it does somewhere.
#     against.sh OLD NEW [EACH]          folders that hold a gcp.h; EACH: every so many of the graphs
set -e
here=$(dirname "$0"); work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
for tree in "$1" "$2"; do
    name=$([ "$tree" = "$1" ] && echo old || echo new)
    policy=GCP_BUDGET; grep -q GCP_POLICY_BUDGET "$tree/gcp.h" && policy=GCP_POLICY_BUDGET
    cc -O2 -w -I"$tree" -DBUDGET=$policy "$here/against.c" -o "$work/$name" -lm -lpthread
done
"$work/old" ${3:-1} > "$work/old.txt" & "$work/new" ${3:-1} > "$work/new.txt"; wait
paste -d ' ' "$work/old.txt" "$work/new.txt" | awk '
    $1 != $6 || $2 != $7 { print "not the same graphs: " $0; bad = 1; exit }
    { rows++; old_ms += $5; new_ms += $10 }
    $3 == 0 && $8 == 0 { both++; if ($9 > $4) { worse++; print "least bytes", $1, $4, "->", $9 } if ($9 < $4) less++; next }
    $3 == 0 { new_alone++; next }
    $8 == 0 { print "refused", $1, $2, "in", $4, "bytes: the old plan takes", $3; bad = 1; next }
    { old_sum += $3; new_sum += $8; planned++ }
    $8 > $3 + 0.001 { print "slower", $1, $2, $3, "->", $8; slower++; bad = 1 }
    $8 < $3 - 0.001 { faster++ }
    END {
        printf "%d rows, %d planned by both: mean %.5f -> %.5f; %d slower, %d faster, %d planned by the new one alone\n",
               rows, planned, old_sum / planned, new_sum / planned, slower, faster, new_alone
        printf "%d refused by both: least bytes fewer in %d, more in %d; planning %.0f -> %.0f ms\n",
               both, less, worse, old_ms, new_ms
        exit bad
    }'
