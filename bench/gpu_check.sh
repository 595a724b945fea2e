#!/usr/bin/env bash
# One short run on a card: the tests, the benchmark, PyTorch beside it, then the sanitizers on small cases that reach
# the TF32 kernels.
#
#     bench/gpu_check.sh OUT           all of it. On an H100 and 16 cores: build 36 s, test_cuda_ops 2, test_cuda 10,
#                                      bench 51, PyTorch 53 and 26, sanitizers 19: 200 s
#     bench/gpu_check.sh OUT --ncu     instead: Nsight Compute on the convolutions, the apply, batch-norm's backward
#                                      and the sums; a few minutes. After a run without it nothing is compiled again
#     bench/gpu_check.sh OUT --host    the same steps on the host emulation, at its sizes: tries this script
#
# Needs nvcc, a C compiler, and a folder with CUDA's headers; PyTorch, compute-sanitizer and ncu where they are to be
# had. Prints a line a step: how it ended, its seconds, the seconds so far. The last line is gcp's milliseconds a step
# over PyTorch's. Leaves in OUT, however the run ends:
#
#     check.json   the same; the card; what "failed", what was "skipped" for time, which step is "running". Written
#                  anew when a step begins and ends; "finished" at the end alone, with the "exit_status"
#     gpu.json, torch.json   written anew with every row
#     run.log      what the steps printed; first the card's driver and clocks
#     build.log, with ptxas -v; ncu.csv
#
# Exit status: 1 something failed; else 77 no card; else 3 something was skipped or cut short for time; else 0.
# 2: not called like this.
#
# Environment:
#     DEADLINE   seconds for everything, the build too: 570. No step gets more than what is left of them ("cut: time"
#                where it ends by that), and one that would get less than LEAST is not begun ("skipped: time")
#     LEAST      15; with --host 2
#     WORK       keeps the objects: build/gpu_check. One is used again where the same compiler would make it, by the
#                same command, of files with the same contents. For one run at a time
#     ONLY       names of steps: these alone, and the build
#     CC, CXX (--host), NVCC, ARCH (native), CUDA_INCLUDE, CUDA_LIB, PYTHON (python3)
set -uo pipefail
export LC_ALL=C
usage() { echo "gpu_check.sh OUT [--host | --ncu]" >&2; exit 2; }
[ $# -ge 1 ] && [ $# -le 2 ] || usage
case ${2:-} in ''|--host|--ncu) mode=${2:-} ;; *) usage ;; esac
for word in ${ONLY:-}; do
    case $word in test_cuda_ops|test_cuda|bench|torch_*|memcheck|racecheck|initcheck|synccheck|ncu) ;; *) usage ;; esac
done
root=$(cd "$(dirname "$0")/.." && pwd)
kind=card least=${LEAST:-15}
[ "$mode" != --host ] || kind=host least=${LEAST:-2}
mkdir -p "$1" && out=$(cd "$1" && pwd) || exit 1
work=${WORK:-$root/build/gpu_check}/$kind
mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 1
: >"$out/build.log"; : >"$out/run.log"
rm -f "$out"/{check,gpu,torch}.json{,.new} "$out"/ncu.csv
CC=${CC:-gcc} CXX=${CXX:-g++} PYTHON=${PYTHON:-python3} deadline=${DEADLINE:-570}
end=$deadline device='' running='' no_card=0 steps='' failed='' skipped='' ratio='' ratios=''
readonly GRACE=3                     # seconds: from a step's end by time to its death, and what this clock rounds off
SECONDS=0

# ---- Steps ---------------------------------------------------------------------------------------------------------

write_check() {                      # FINISHED EXIT_STATUS. Beside, then renamed: whole at every moment
    {
        printf '{\n  "mode": "%s", "device": "%s",\n' "${mode:-card}" "${device//[\"\\]/}"
        printf '  "finished": %s, "exit_status": %s, "seconds": %d, "deadline": %d,\n' \
            "${1:-false}" "${2:-null}" $SECONDS "$deadline"
        printf '  "running": "%s", "failed": [%s], "skipped": [%s],\n' "$running" "$failed" "$skipped"
        printf '  "ratio": "%s",\n  "ratios": [%s],\n  "steps": [%s\n  ]\n}\n' "$ratio" "$ratios" "$steps"
    } >"$out/check.json.new" && mv -f "$out/check.json.new" "$out/check.json"
}

begin() { running=$1 began=$SECONDS; write_check; }

note() {                             # NAME STATUS SECONDS
    printf '%-14s %-13s %4d s, %4d s so far\n' "$1" "$2" "$3" $SECONDS
    case $2 in
        'skipped: time'|'cut: time') skipped+="${skipped:+, }\"$1\"" ;;
        failed|over*|exit*) failed+="${failed:+, }\"$1\"" ;;
    esac
    steps+="${steps:+,}"$'\n'"    { \"step\": \"$1\", \"status\": \"$2\", \"seconds\": $3, \"so_far\": $SECONDS }"
    running=''
    write_check
}

name_device() {                      # as the programs call it; nvidia-smi's name until then
    local name
    name=$(sed -n 's/^on //p; s/, CUDA [0-9]*, cuBLAS [0-9]*$//p' "$out/run.log" | head -n 1)
    device=${name:-$device}
}

output_begins() { output=$(($(wc -c <"$out/run.log") + 1)); }
output_of_step() { tail -c +$output "$out/run.log"; }

step() {                             # NAME LIMIT COMMAND...: its output is in run.log, its end shown if it failed
    local name=$1 own=$2 limit=$2 most=$((end - SECONDS - GRACE)) status took
    shift 2
    output_begins
    [[ " ${ONLY:-$name} " == *" $name "* ]] || return 0
    if [ $most -lt "$least" ]; then note "$name" "skipped: time" 0; return 3; fi
    [ $limit -le $most ] || limit=$most
    begin "$name"
    printf '\n==== %s: %s\n' "$name" "$*" >>"$out/run.log"
    output_begins
    timeout --kill-after=2 $limit "$@" >>"$out/run.log" 2>&1 &
    wait $!                                                                     # so that a signal is heard at once
    status=$? took=$((SECONDS - began))
    name_device
    case $status in
        0) note "$name" ok $took; return ;;
        77) no_card=1; note "$name" "no card" $took ;;
        *)  if [[ $status != 124 && $status != 137 || $took -lt $limit ]]; then note "$name" "exit $status" $took
            elif [ $limit -lt $own ]; then note "$name" "cut: time" $took
            else note "$name" "over $limit s" $took
            fi ;;
    esac
    output_of_step | tail -n 12 | sed 's/^/    /'
    return $status
}
skip() { note "$1" "no $2" 0; }      # NAME WHAT: not there, and no failure

finish() {
    local status=0
    [ -z "$skipped" ] || status=3
    [ $no_card = 0 ] || status=77
    [ -z "$failed" ] || status=1
    write_check true $status
    [ -z "$ratio" ] || echo "$ratio"
    exit $status
}

stop() {                             # SIGNAL: what runs is a `timeout`, which hands it on
    trap '' HUP INT TERM
    kill $(jobs -p) 2>/dev/null
    wait
    [ -z "$running" ] || note "$running" stopped $((SECONDS - began))
    exit $((128 + $1))
}
trap 'stop 1' HUP; trap 'stop 2' INT; trap 'stop 15' TERM

# ---- Build: the kernels, the library and the programs at once -------------------------------------------------------

find_first() {                       # FILE FOLDER...: the first folder that holds FILE (a pattern)
    local file=$1 folder
    shift
    for folder; do compgen -G "$folder/$file" >/dev/null && { echo "$folder"; return; }; done
}
site_packages() { "$PYTHON" -c 'import site; print("\n".join(site.getsitepackages()))' 2>/dev/null; }

toolkit() {                          # where CUDA is: the toolkit's own folders, then Python's packages of it
    local nvcc home folder folders=()
    nvcc=$(command -v "${NVCC:-nvcc}" || compgen -G '/usr/local/cuda*/bin/nvcc' | tail -n 1)
    [ -n "$nvcc" ] || { echo "no nvcc" >>"$out/build.log"; return 1; }
    NVCC=$nvcc
    home=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
    while read -r folder; do folders+=("$folder"/nvidia/*); done < <(site_packages)
    local include=("$home/include" "$home"/targets/*/include "${folders[@]/%//include}")
    local lib=("$home"/lib64 "$home"/lib "$home"/targets/*/lib "${folders[@]/%//lib}") cudart
    CUDA_INCLUDE=${CUDA_INCLUDE:-$(find_first cublas_v2.h "${include[@]}")}
    CUDA_LIB=${CUDA_LIB:-$(find_first 'libcublasLt.so*' "${lib[@]}")}
    cudart=$(find_first 'libcudart.so*' "$CUDA_LIB" "${lib[@]}")
    if [ -z "$CUDA_INCLUDE" ] || [ -z "$CUDA_LIB" ] || [ -z "$cudart" ]; then
        echo "no cublas_v2.h, libcublasLt or libcudart beside $nvcc" >>"$out/build.log"
        return 1
    fi
    libraries=("$(compgen -G "$cudart/libcudart.so*" | head -n 1)" "-Wl,-rpath,$cudart:$CUDA_LIB")
    for lib in libcublas libcublasLt; do libraries+=("$(compgen -G "$CUDA_LIB/$lib.so*" | head -n 1)"); done
    return 0
}

# What an object is made of: its compiler, the command, and the contents of the files that it reads. (Not their dates: a
# copy of the folder has new ones.) A compiler that looks for the card depends on it, too.
stamp() {                            # COMMAND...
    "$1" --version
    echo "$*"
    [[ $* != *-arch=native* ]] || echo "$device"
    "$@" -MM | sed -e 's/^[^:]*://' -e 's/\\$//' | xargs cksum
}

making=() compilers=()
object() {                           # NAME COMMAND...: begins to make NAME.o, where it is not there already
    local made=$work/$1.o
    shift
    stamp "$@" >"$made.wanted" 2>&1
    if [ -e "$made" ] && cmp -s "$made.wanted" "$made.stamp"; then
        echo "==== kept ${made##*/}: $*" | cat - "$made.log" >>"$out/build.log"
        return
    fi
    rm -f "$made" "$made.stamp"
    timeout --kill-after=2 $limit "$@" -c -o "$made" >"$made.log" 2>&1 &
    compilers+=($!) making+=("$made")
    echo "==== making ${made##*/}: $*" >>"$out/build.log"
}
await_objects() {
    local i made status=0
    for i in "${!making[@]}"; do
        made=${making[i]}
        if wait "${compilers[i]}"; then mv -f "$made.wanted" "$made.stamp"
        else case $? in 124|137) [ $status = 1 ] || status=124 ;; *) status=1 ;; esac
        fi
        echo "==== ${made##*/}" | cat - "$made.log" >>"$out/build.log"
    done
    return $status
}

build() {                            # exit status: 124 out of time
    local flags=(-std=c11 -O2 -I"$root" -DTEST_DATA="\"$root\"") part link=$CC parts=(test_cuda test_cuda_ops gpu)
    if [ "$mode" = --host ]; then
        flags+=(-O1 -I"$root/hostcuda")                                         # what it does, not how fast
        libraries=(-pthread) link=$CXX                                          # the emulation is C++
        object kernels "$CXX" -std=c++17 -O2 -ffp-contract=off -I"$root" -I"$root/hostcuda" \
            "$root/hostcuda/kernels.cpp"
    else
        toolkit || return 1
        flags+=(-I"$CUDA_INCLUDE")
        object kernels "$NVCC" -std=c++17 -O3 -arch="${ARCH:-native}" -fmad=false -lineinfo -Xptxas -v -I"$root" \
            -I"$CUDA_INCLUDE" -Xcompiler=-fno-threadsafe-statics,-fno-exceptions,-fno-rtti "$root/kernels.cu"
    fi
    object library "$CC" "${flags[@]}" "$root/tests/gcp_cuda.c"
    for part in "${parts[@]}"; do object $part "$CC" "${flags[@]}" "$(compgen -G "$root/tests/$part.c" || echo "$root/bench/speed/$part.c")"; done
    await_objects || return
    for part in "${parts[@]}"; do
        timeout --kill-after=2 $limit "$link" "$work/$part.o" "$work"/{library,kernels}.o "${libraries[@]}" -lm \
            -o "$work/$part" >>"$out/build.log" 2>&1 &
        wait $! || return
    done
}

build_step() {
    local limit=$((end - SECONDS - GRACE)) own=300 status
    if [ $limit -lt "$least" ]; then note build "skipped: time" 0; return; fi
    [ $limit -le $own ] || limit=$own
    begin build
    build
    status=$?
    if [ $status = 0 ]; then note build ok $SECONDS; return; fi
    if [ $status = 124 ] && [ $limit -lt $own ]; then
        note build "cut: time" $SECONDS
        end=0                                                                   # nothing can run
        return
    fi
    note build failed $SECONDS
    tail -n 12 "$out/build.log" | sed 's/^/    /'
    finish
}

if [ "$mode" = --host ]; then device='host emulation'
elif command -v nvidia-smi >/dev/null; then
    fields=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.draw,power.limit,temperature.gpu
    timeout 10 nvidia-smi --query-gpu=$fields --format=csv >>"$out/run.log" 2>&1
    device=$(timeout 10 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)
fi
[ "$mode" = --ncu ] || ratio='gcp / PyTorch: not measured'
build_step

# ---- Nsight Compute, at the clocks that the card has: they are not this script's to set ------------------------------

if [ "$mode" = --ncu ]; then
    command -v ncu >/dev/null || { skip ncu ncu; finish; }
    step ncu 500 ncu --clock-control none --csv --set basic --section MemoryWorkloadAnalysis --section WarpStateStats \
        --section SchedulerStats --log-file "$out/ncu.csv" --launch-count 250 \
        --kernel-name 'regex:gather|weights_kernel|apply|batch_norm_back|sum_blocks|max_pool_back' \
        "$work/gpu" --steps-only 1 --batch 32 --out "$out/gpu.json"
    finish
fi

# ---- Tests, benchmark, PyTorch -------------------------------------------------------------------------------------

ops=() nets=(25 5) small=() batches=(128 256) torch=(--device cuda --precision tf32 autocast --steps 20)
if [ "$mode" = --host ]; then
    ops=(convolution 10 3) nets=(2 1) small=(--small 1) batches=(1 2)
    torch=(--device cpu --precision fp32 autocast --image 64 --steps 2 --warmup 1)
fi
step test_cuda_ops 120 "$work/test_cuda_ops" "${ops[@]}"
step test_cuda 120 "$work/test_cuda" "${nets[@]}"
step bench 180 "$work/gpu" --out "$out/gpu.json" "${small[@]}"

value() { sed -n "s/.*\"$1\": \"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$2"; }          # KEY ROW

torch_rows=()
compare() {                          # keep_all's milliseconds a step over those of each of PyTorch's rows
    local row batch precision math torch gcp over text=''
    ratios=''
    for row in "${torch_rows[@]}"; do
        batch=$(value batch "$row") precision=$(value precision "$row") torch=$(value ms_median "$row")
        math=tf32
        [ "$precision" != autocast ] || math=bf16
        gcp=$(grep "\"batch\": $batch, \"policy\": \"keep_all\", \"math\": \"$math\"" "$out/gpu.json" 2>/dev/null)
        gcp=$(value ms_median "$gcp")
        [ -n "$gcp" ] && [ -n "$torch" ] || continue
        over=$(awk "BEGIN { printf \"%.3f\", $gcp / $torch }")
        text+="${text:+; }batch $batch, $precision: $gcp / $torch ms = $over"
        ratios+="${ratios:+,}"$'\n'"    { \"batch\": $batch, \"precision\": \"$precision\", \"gcp_ms\": $gcp, "
        ratios+="\"torch_ms\": $torch, \"ratio\": $over }"
    done
    ratio="gcp / PyTorch: ${text:-not measured}"
    [ "$mode" != --host ] || ratio+=" (of two different networks)"
}

torch_step() {                       # BATCH
    local row
    step "torch_$1" 120 "$PYTHON" "$root/bench/speed/peers/torch_resnet50.py" --batch "$1" "${torch[@]}"
    while read -r row; do torch_rows+=("$row"); done < <(output_of_step | grep '^{')
    [ ${#torch_rows[@]} -gt 0 ] || return
    printf '%s\n' "${torch_rows[@]}" | sed -e '1s/^/[ /; 1!s/^/  /; $!s/$/,/; $s/$/ ]/' >"$out/torch.json.new"
    mv -f "$out/torch.json.new" "$out/torch.json"
    compare
    write_check
}

has_torch() { "$PYTHON" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' 2>/dev/null; }
if [ $no_card = 1 ]; then :
elif has_torch; then for batch in "${batches[@]}"; do torch_step $batch; done
else
    ratio='gcp / PyTorch: no PyTorch'
    skip torch PyTorch
fi

# ---- Sanitizers: the direct path, the wide tile, groups and strides, all three passes in both precisions -------------

sanitizer=$(command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | tail -n 1)
for tool in memcheck racecheck initcheck synccheck; do
    options=(--tool $tool --error-exitcode 9)
    [ $tool != memcheck ] || options+=(--report-api-errors no)                  # cuBLAS tries what may fail
    if [ "$mode" = --host ]; then step $tool 60 "$work/test_cuda_ops" convolution 12 1
    elif [ $no_card = 1 ]; then :
    elif [ -z "$sanitizer" ]; then skip $tool compute-sanitizer
    else step $tool 100 "$sanitizer" "${options[@]}" "$work/test_cuda_ops" convolution 9 6
    fi
done
finish
