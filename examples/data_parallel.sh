#!/bin/sh
# data_parallel as its users run it: alone as train does, killed and taken up again, with ranks that differ or fall silent.
#   data_parallel.sh MPIEXEC DATA_PARALLEL TRAIN
mpiexec=$1 program=$2 train=$3 file=data_parallel_run.gcp log=data_parallel.log
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1

fail() { echo "data_parallel.sh: $*"; cat $log; exit 1; }
ranks() { n=$1; shift; timeout 60 "$mpiexec" -n "$n" "$program" "$@" >$log 2>&1; }
weights() { grep '^weights' $log; }

# One rank takes the steps of train, to the bit; so it does without MPI's sums.
"$train" --digits --epochs 2 --batch 48 >$log || fail train
expected=$(weights)
ranks 1 --epochs 2 || fail one rank
[ "$(weights)" = "$expected" ] || fail "one rank: expected $expected"
ranks 1 --epochs 2 --alone 1 || fail alone
[ "$(weights)" = "$expected" ] || fail "alone: expected $expected"

# Killed in the middle, the run goes on from the last file, under another schedule too, and ends with the same bits.
run="--epochs 20 --norm 1 --dropout 0.5 --clip 1"
ranks 2 $run || fail two ranks
expected=$(weights)
grep -q 'rank 1: peak planned \([0-9]*\), measured \1 bytes' $log || fail "a rank's peak"
rm -f $file
timeout 60 "$mpiexec" -n 2 "$program" $run --limit 5 --resume $file >$log 2>&1 &
while [ ! -f $file ]; do sleep 0.05; done
pkill -KILL -n -f "$program $run --limit 5" || fail "it was over before it was killed"
wait $! && fail "a rank was killed, and the run ended well"
ranks 2 $run --budget 900KB --resume $file || fail taken up
[ "$(weights)" = "$expected" ] && grep -q 'goes on after epoch 1\?[0-9]$' $log || fail "taken up: expected $expected"

# A run is not taken up with other options.
ranks 2 $run --lr 0.1 --resume $file && fail "other options"
grep -q 'begun with --seed 1 --batch 48 --norm 1 --dropout 0.5 --lr 0.002 --clip 1' $log || fail "other options"

# Ranks that differ are told in what; both of them.
timeout 60 "$mpiexec" -n 1 "$program" --seed 3 : -n 1 "$program" >$log 2>&1 && fail "other seeds"
[ "$(grep -c "ranks differ: rank 1 has 'seed 1' where rank 0 has 'seed 3'" $log)" = 2 ] || fail "other seeds"
timeout 60 "$mpiexec" -n 1 "$program" : -n 1 "$program" --budget 1KB >$log 2>&1 && fail "one without a plan"
[ "$(grep -c "ranks differ: rank 1 has .*budget allows 1024 bytes" $log)" = 2 ] || fail "one without a plan"
timeout 60 "$mpiexec" -n 1 "$program" --lr 0.01 : -n 1 "$program" --lr 0.0100000001 >$log 2>&1 && fail "other rates"
grep -q "ranks differ: rank 1 has 'learning rate 0.0100000001, clip 0' where" $log || fail "other rates"
timeout 60 "$mpiexec" -n 1 "$program" : -n 1 "$program" --budget 900KB >$log 2>&1 && fail "other plans"
grep -q "ranks differ: rank 1 has 'budget 921600' where rank 0 has 'budget 0'" $log || fail "other plans"
timeout 60 "$mpiexec" -n 1 "$program" --limit 2 : -n 1 "$program" --help >$log 2>&1 && fail "one that asks for help"

# A rank that falls silent ends the run in the time limit.
timeout 60 "$mpiexec" -n 2 "$program" --epochs 10000 --limit 1 >$log 2>&1 &
while ! grep -q 'epoch   1' $log; do sleep 0.05; done
begin=$(date +%s)
pkill -STOP -n -f "$program --epochs 10000" || fail "no rank to stop"
wait $! && fail "a rank was silent, and the run ended well"
[ $(($(date +%s) - begin)) -le 20 ] && grep -q 'a rank has said nothing for 1 seconds' $log || fail "a silent rank"
rm -f $file $log
