#!/usr/bin/env bash
# How much of the rooms of gcp.h and gcp_io.h the tests run (clang, llvm-profdata, llvm-cov): tests/build/covered.sh BUILD
# prints a line a room, and writes BUILD/missed.txt: the lines that no test reaches.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?a folder to build in}
CC=clang CXX=clang++ cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE= -DGCP_EXAMPLES=OFF -DGCP_CUDA=OFF \
    -DCMAKE_C_FLAGS="-O1 -fprofile-instr-generate -fcoverage-mapping" > "$build.log" 2>&1
cmake --build "$build" -j2 >> "$build.log" 2>&1
rm -rf "$build/profiles"
LLVM_PROFILE_FILE="$build/profiles/%m.profraw" OMP_NUM_THREADS=1 ctest --test-dir "$build" -j2 --output-on-failure \
    -LE 'long|packaging|gpu|fuzz|host' -E 'dags_|_m32|trapped|compile|two_units|implementation' >> "$build.log" 2>&1
llvm-profdata merge -o "$build/all.profdata" "$build"/profiles/*.profraw
programs=("$build"/tests/test_segments)
for program in "$build"/tests/test_* "$build"/tests/replay_*; do [ -x "$program" ] && programs+=(-object "$program"); done
rooms=("$root"/src/{tape,kernels,ops,planner,run,io}/*.h)
llvm-cov report "${programs[@]}" -instr-profile="$build/all.profdata" "${rooms[@]}" 2> /dev/null
llvm-cov show "${programs[@]}" -instr-profile="$build/all.profdata" "${rooms[@]}" -show-line-counts 2> /dev/null |
    grep -E '^/|^ +[0-9]+\| +0\|' > "$build/missed.txt"
