#!/usr/bin/env bash
# One short run on a card: the tests, the benchmark, PyTorch beside it, then the sanitizers on small cases that reach the TF32 kernels.
#
#     bench/gpu_check.sh OUT           all of it, about five minutes
#     bench/gpu_check.sh OUT --ncu     instead: Nsight Compute on the convolutions, the apply, batch-norm's backward and the sums
#     bench/gpu_check.sh OUT --host    the same steps on the host emulation, at its sizes: tries this script without a card
#
# Needs nvcc, a C compiler, and a folder with CUDA's headers; PyTorch, compute-sanitizer and ncu where they are to be had. Prints a line
# a step: exit status, its seconds, the seconds so far. Leaves in OUT: check.json (the same lines), gpu.json, torch.json, build.log (with
# ptxas -v), run.log, ncu.csv. Exit status: 0 if nothing failed, 77 without a card. Environment: CC, NVCC, CUDA_INCLUDE, CUDA_LIB, ARCH.
set -uo pipefail
usage() { echo "gpu_check.sh OUT [--host | --ncu]" >&2; exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || usage
case ${2:-} in ''|--host|--ncu) mode=${2:-} ;; *) usage ;; esac
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
: >"$out/build.log"; : >"$out/run.log"
rm -f "$out"/check.json "$out"/gpu.json "$out"/torch.json "$out"/ncu.csv
CC=${CC:-gcc}
failed=0 no_card=0 lines=() begun=$SECONDS

# ---- Steps ---------------------------------------------------------------------------------------------------------

note() {                             # NAME STATUS SECONDS
    local so_far=$((SECONDS - begun))
    printf '%-14s %-10s %4d s, %4d s so far\n' "$1" "$2" "$3" "$so_far"
    lines+=("{ \"step\": \"$1\", \"status\": \"$2\", \"seconds\": $3, \"so_far\": $so_far }")
}

step() {                             # NAME LIMIT COMMAND...: its output goes to run.log, its end to the screen where it failed
    local name=$1 limit=$2 start=$SECONDS status
    shift 2
    printf '\n==== %s: %s\n' "$name" "$*" >>"$out/run.log"
    timeout --kill-after=5 "$limit" "$@" >"$work/step.log" 2>&1
    status=$?
    cat "$work/step.log" >>"$out/run.log"
    case $status in
        0) note "$name" ok $((SECONDS - start)) ;;
        77) note "$name" "no card" $((SECONDS - start)); no_card=1 ;;
        124|137) note "$name" "over ${limit} s" $((SECONDS - start)); failed=1 ;;
        *) note "$name" "exit $status" $((SECONDS - start)); failed=1 ;;
    esac
    [ $status = 0 ] || tail -n 12 "$work/step.log" | sed 's/^/    /'
    return $status
}
skip() { note "$1" "no $2" 0; }      # NAME WHAT: not there, and no failure

finish() {
    { printf '{\n  "mode": "%s",\n  "steps": [\n' "${mode:-card}"
      local i; for ((i = 0; i < ${#lines[@]}; i++)); do printf '    %s%s\n' "${lines[i]}" "$([ $((i + 1)) -lt ${#lines[@]} ] && echo ,)"; done
      printf '  ]\n}\n'; } >"$out/check.json"
    [ $failed = 0 ] || exit 1
    [ $no_card = 0 ] || exit 77
    exit 0
}

# ---- Build: the kernels, the library and the programs at once -------------------------------------------------------

find_first() {                       # FILE FOLDER...: the first folder that holds FILE (a pattern)
    local file=$1 folder
    shift
    for folder; do compgen -G "$folder/$file" >/dev/null && { echo "$folder"; return; }; done
}
site_packages() { python3 -c 'import site; print("\n".join(site.getsitepackages()))' 2>/dev/null; }

toolkit() {                          # where CUDA is: the toolkit's own folders, then Python's packages of it
    local nvcc home folders=()
    nvcc=$(command -v "${NVCC:-nvcc}" || compgen -G '/usr/local/cuda*/bin/nvcc' | tail -n 1)
    [ -n "$nvcc" ] || { echo "no nvcc" >>"$out/build.log"; return 1; }
    NVCC=$nvcc
    home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    while read -r folder; do folders+=("$folder"/nvidia/*); done < <(site_packages)
    CUDA_INCLUDE=${CUDA_INCLUDE:-$(find_first cublas_v2.h "$home/include" "$home"/targets/*/include "${folders[@]/%//include}")}
    CUDA_LIB=${CUDA_LIB:-$(find_first 'libcublas.so*' "$home"/lib64 "$home"/lib "$home"/targets/*/lib "${folders[@]/%//lib}")}
    CUDART_LIB=$(find_first 'libcudart.so*' "$CUDA_LIB" "$home"/lib64 "$home"/lib "$home"/targets/*/lib "${folders[@]/%//lib}")
    [ -n "$CUDA_INCLUDE" ] && [ -n "$CUDA_LIB" ] && [ -n "$CUDART_LIB" ] || { echo "no cublas_v2.h, libcublas or libcudart beside $nvcc" >>"$out/build.log"; return 1; }
    libraries=("$(compgen -G "$CUDART_LIB/libcudart.so*" | head -n 1)" "$(compgen -G "$CUDA_LIB/libcublas.so*" | head -n 1)" "-Wl,-rpath,$CUDART_LIB:$CUDA_LIB")
}

compile() { echo "==== $*" >"$work/$1.log"; "${@:2}" >>"$work/$1.log" 2>&1; }       # PART COMMAND...
build() {
    local flags=(-std=c11 -O2 -I"$root" -DTEST_DATA="\"$root\"") jobs=() job status=0 part
    if [ "$mode" = --host ]; then
        flags+=(-I"$root/hostcuda")
        libraries=(-pthread)
        compile kernels "${CXX:-g++}" -std=c++17 -O2 -ffp-contract=off -I"$root" -I"$root/hostcuda" -c "$root/hostcuda/kernels.cpp" -o "$work/kernels.o" & jobs+=($!)
    else
        toolkit || return 1
        flags+=(-I"$CUDA_INCLUDE")
        compile kernels "$NVCC" -std=c++17 -O3 -arch="${ARCH:-native}" -fmad=false -lineinfo -Xptxas -v -I"$root" \
            -Xcompiler=-fno-threadsafe-statics,-fno-exceptions,-fno-rtti -c "$root/kernels.cu" -o "$work/kernels.o" & jobs+=($!)
    fi
    compile library "$CC" "${flags[@]}" -c "$root/tests/gcp_cuda.c" -o "$work/library.o" & jobs+=($!)
    for part in tests/test_cuda tests/test_cuda_ops bench/gpu; do
        compile "$(basename $part)" "$CC" "${flags[@]}" -c "$root/$part.c" -o "$work/$(basename $part).o" & jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job" || status=1; done
    local link=$CC
    [ "$mode" = --host ] && link=${CXX:-g++}                                    # the emulation is C++
    for part in test_cuda test_cuda_ops gpu; do
        [ $status = 0 ] && { compile "link_$part" "$link" "$work/$part.o" "$work/library.o" "$work/kernels.o" "${libraries[@]}" -lm -o "$work/$part" || status=1; }
    done
    cat "$work"/*.log >>"$out/build.log"
    return $status
}

start=$SECONDS
if ! build; then
    failed=1
    note build failed $((SECONDS - start))
    tail -n 12 "$out/build.log" | sed 's/^/    /'
    finish
fi
note build ok $((SECONDS - start))

# ---- Nsight Compute ------------------------------------------------------------------------------------------------

if [ "$mode" = --ncu ]; then
    command -v ncu >/dev/null || { skip ncu ncu; finish; }
    step ncu 500 ncu --csv --set basic --section MemoryWorkloadAnalysis --section WarpStateStats --section SchedulerStats --log-file "$out/ncu.csv" \
        --kernel-name 'regex:gather|weights_kernel|apply|batch_norm_back|sum_blocks|max_pool_back' --launch-count 250 \
        "$work/gpu" --steps-only 1 --batch 32 --out "$out/gpu.json"
    finish
fi

# ---- Tests, benchmark, PyTorch -------------------------------------------------------------------------------------

ops=() nets=(25 5) small=() torch=(--steps 20)
if [ "$mode" = --host ]; then
    ops=(convolution 10 3) nets=(2 1) small=(--small 1) torch=(--device cpu --image 64 --steps 2 --warmup 1)
fi
step test_cuda_ops 120 "$work/test_cuda_ops" "${ops[@]}"
step test_cuda 120 "$work/test_cuda" "${nets[@]}"
step bench 180 "$work/gpu" --out "$out/gpu.json" "${small[@]}"

if [ $no_card = 1 ]; then :
elif python3 -c 'import torch' 2>/dev/null; then
    separator='['
    for batch in 128 256; do
        [ "$mode" = --host ] && batch=$((batch / 128))
        step "torch_$batch" 120 python3 "$root/bench/peers/torch_resnet50.py" --batch $batch "${torch[@]}" &&
            { printf '%s\n  ' "$separator"; grep "^{" "$work/step.log"; } >>"$out/torch.json" && separator=','
    done
    [ "$separator" = '[' ] || echo ']' >>"$out/torch.json"
else
    skip torch PyTorch
fi

# ---- Sanitizers: the direct path, the wide tile, groups and strides, all three passes in both precisions -----------------

sanitizer=$(command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | tail -n 1)
for tool in memcheck racecheck initcheck synccheck; do
    if [ "$mode" = --host ]; then step $tool 60 "$work/test_cuda_ops" convolution 12 1
    elif [ $no_card = 1 ]; then :
    elif [ -z "$sanitizer" ]; then skip $tool compute-sanitizer
    else step $tool 150 "$sanitizer" --tool $tool --error-exitcode 9 "$work/test_cuda_ops" convolution 9 6
    fi
done
finish
