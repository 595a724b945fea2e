#!/usr/bin/env bash
# How much of gcp.h, gcp_io.h and src/ the tests run (clang, llvm-profdata, llvm-cov): tests/build/covered.sh BUILD
# prints a line a room, and writes BUILD/missed.txt: the lines that no test reaches.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?a folder to build in}
CC=clang CXX=clang++ cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE= -DGCP_EXAMPLES=OFF -DGCP_CUDA=OFF \
    -DCMAKE_C_FLAGS="-O1 -fprofile-instr-generate -fcoverage-mapping" > "$build.log"
cmake --build "$build" -j2 >> "$build.log"
rm -rf "$build/profiles"
LLVM_PROFILE_FILE="$build/profiles/%m.profraw" OMP_NUM_THREADS=1 ctest --test-dir "$build" -j2 --output-on-failure \
    -LE 'long|packaging|gpu|fuzz|host' -E 'dags_|_m32|trapped|compile|two_units|implementation' >> "$build.log"
llvm-profdata merge -o "$build/all.profdata" "$build"/profiles/*.profraw
programs=("$build"/tests/test_segments)
for program in "$build"/tests/test_* "$build"/tests/replay_*; do [ -x "$program" ] && programs+=(-object "$program"); done
report=(llvm-cov report "${programs[@]}" -instr-profile="$build/all.profdata" "$root/src" "$root/gcp.h" "$root/gcp_io.h")
"${report[@]}" | grep -v '^Files which contain no functions'
llvm-cov show "${programs[@]}" -instr-profile="$build/all.profdata" "$root/src" -show-line-counts |
    grep -E '^/|^ +[0-9]+\| +0\|' > "$build/missed.txt"
