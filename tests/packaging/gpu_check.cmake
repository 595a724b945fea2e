# bench/gpu_check.sh: its steps on the host emulation, and what they leave; then, with programs that stand in for the
# toolkit and for what it builds, what it does on a card, when time is short, and when it is killed.
# cmake -DCC= -DCXX= -DROOT= -DOUT= -P gpu_check.cmake. The emulation's objects are kept from call to call: OUT_objects
cmake_minimum_required(VERSION 3.21)
file(REMOVE_RECURSE ${OUT})
set(script ${ROOT}/bench/gpu_check.sh)

function(same what got wanted)
  if(NOT got STREQUAL wanted)
    message(FATAL_ERROR "${what}: ${got}, not ${wanted}\n${output}")
  endif()
endfunction()
# expect(FILE WANTED KEY...): the JSON in FILE, which must be whole, has WANTED at KEY...
function(expect file wanted)
  file(READ ${file} json)
  string(JSON got ERROR_VARIABLE error GET "${json}" ${ARGN})
  same("${file}: ${ARGN}" "${got}" "${wanted}")
endfunction()
# statuses(FILE LIST): NAME=STATUS of each step
function(statuses file list)
  file(READ ${file} json)
  string(JSON count LENGTH "${json}" steps)
  set(found)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON name GET "${json}" steps ${i} step)
    string(JSON status GET "${json}" steps ${i} status)
    list(APPEND found "${name}=${status}")
  endforeach()
  set(${list} "${found}" PARENT_SCOPE)
endfunction()
# lines(FILE REGEX LIST): those of its lines
function(lines file regex list)
  file(STRINGS ${file} found REGEX "${regex}")
  set(${list} "${found}" PARENT_SCOPE)
endfunction()

# ---- On the host emulation -----------------------------------------------------------------------------------------

set(ENV{CC} ${CC})
set(ENV{CXX} ${CXX})
set(ENV{WORK} ${OUT}_objects)
set(ENV{ONLY} "test_cuda_ops bench memcheck")              # the rest takes longer, and is tested by itself
execute_process(COMMAND ${script} ${OUT} --host RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
same("gpu_check.sh --host" "${result}" 0)

# A line a step, on the screen and in check.json.
expect(${OUT}/check.json ON finished)
expect(${OUT}/check.json 0 exit_status)
statuses(${OUT}/check.json found)
if(output MATCHES "test_cuda ")
  message(FATAL_ERROR "ONLY was not heeded:\n${output}")
endif()
foreach(name build test_cuda_ops bench memcheck)
  if(NOT "${name}=ok" IN_LIST found OR NOT output MATCHES "${name} +ok +[0-9]+ s, +[0-9]+ s so far")
    message(FATAL_ERROR "step ${name}: ${found}\n${output}")
  endif()
endforeach()

# What the benchmark measured: of operands that are not zeros, several launches between two events, and a spread.
file(READ ${OUT}/gpu.json bench)
string(JSON count LENGTH "${bench}" convolutions)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON row GET "${bench}" convolutions ${i})
  foreach(key launches mean_size ms_min ms_median ms_max)
    string(JSON ${key} GET "${row}" ${key})
  endforeach()
  if(launches LESS 2 OR NOT mean_size GREATER 0 OR ms_min GREATER ms_median OR ms_median GREATER ms_max
     OR NOT ms_min GREATER 0)
    message(FATAL_ERROR "convolution ${i}: ${launches} launches, ${ms_min} to ${ms_max} ms, mean size ${mean_size}")
  endif()
endforeach()
string(JSON count LENGTH "${bench}" steps)
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON ms GET "${bench}" steps ${i} ms_median)
  string(JSON recorded GET "${bench}" steps ${i} recorded)
  if(NOT ms GREATER 0 OR NOT recorded)
    message(FATAL_ERROR "step ${i} took ${ms} ms, recorded: ${recorded}")
  endif()
endforeach()

# The profile: every instruction of keep_all, what it does and to what.
string(JSON count LENGTH "${bench}" profile)
expect(${OUT}/gpu.json ${count} profile_of instructions)
function(profiled i kind op name output parameter)
  foreach(key kind op name output parameter)
    expect(${OUT}/gpu.json "${${key}}" profile ${i} ${key})
  endforeach()
  string(JSON ms GET "${bench}" profile ${i} ms)
  if(NOT ms GREATER 0)
    message(FATAL_ERROR "profile ${i}: ${ms} ms")
  endif()
endfunction()
profiled(3 F conv2d "residual[0]/conv2d[0]" 1x32x32x16 16x3x3x16)
profiled(8 F batch_norm+add+relu "residual[0]/batch_norm[1]+add[0]+relu[1]" 1x32x32x16 "")
profiled(34 B relu "residual[2]/relu[1]" 1x8x8x64 "")
profiled(62 U weight "stem[0]/conv2d[0]/weight" "" 16x3x3x3)

# Called again: no object is made anew. And what has not the time to begin is not begun.
set(ENV{DEADLINE} 7)
set(ENV{LEAST} 4)
execute_process(COMMAND ${script} ${OUT}/again --host
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
same("a second call of 7 seconds" "${result}" 3)
lines(${OUT}/again/build.log "^==== kept" kept)
list(LENGTH kept count)
same("objects that were kept" ${count} 5)
statuses(${OUT}/again/check.json found)
if(NOT "build=ok" IN_LIST found OR NOT "memcheck=skipped: time" IN_LIST found OR NOT EXISTS ${OUT}_objects/host/gpu)
  message(FATAL_ERROR "a second call of 7 seconds: ${found}")
endif()
unset(ENV{DEADLINE})
unset(ENV{LEAST})
unset(ENV{ONLY})

# ---- On a card, as far as programs can stand in for it -------------------------------------------------------------

# What each of them does: FAKE_SLOW, FAKE_BAD: the program that sleeps, or fails. FAKE_STATUS: all others' exit status.
set(fake ${OUT}/fake)
function(program path text)
  file(WRITE ${fake}/${path} "#!/bin/sh\n${text}")
  file(CHMOD ${fake}/${path} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()
set(compiler [=[
case "$*" in *--version*) exit ;; *-MM*) echo "object: $FAKE/source"; exit ;; esac
echo "${0##*/} $*" >>"$FAKE_CALLS"
while [ $# -gt 0 ]; do [ "$1" = -o ] && made=$2; shift; done
rm -f "$made" && cp "$FAKE/program" "$made"
]=])
program(cuda/bin/nvcc "${compiler}")
program(bin/cc "${compiler}")
program(program [=[
name=${0##*/}
echo "on a fake card"
cp "$FAKE_OUT/check.json" "$FAKE_OUT/../seen_by_$name.json"
[ "$name" != "$FAKE_SLOW" ] || exec sleep 9
[ "$name" != "$FAKE_BAD" ] || exit 5
[ "$name" != gpu ] || for batch in 128 256; do
    echo "{ \"batch\": $batch, \"policy\": \"keep_all\", \"math\": \"tf32\", \"ms_median\": 40.000, \"ms_min\": 39.0 }"
    echo "{ \"batch\": $batch, \"policy\": \"keep_all\", \"math\": \"bf16\", \"ms_median\": 20.000, \"ms_min\": 19.0 }"
done >"$2"
exit $FAKE_STATUS
]=])
program(bin/python3 [=[
case "$*" in
    *find_spec*) exit $FAKE_STATUS ;;
    *torch_resnet50.py*) for precision in tf32 autocast; do
        echo "{\"batch\": $3, \"precision\": \"$precision\", \"ms_median\": 80.0, \"ms_min\": 79.0}"
    done ;;
esac
]=])
program(bin/nvidia-smi "echo 'name, clocks.max.sm [MHz]'; echo 'a card, 1980 MHz'\n")
foreach(name ncu compute-sanitizer)
  program(bin/${name} "echo \"\${0##*/} $*\" >>\"$FAKE_CALLS\"\n")
endforeach()
file(WRITE ${fake}/source "one")
foreach(name include/cublas_v2.h lib64/libcublas.so lib64/libcublasLt.so lib64/libcudart.so)
  file(WRITE ${fake}/cuda/${name} "")
endforeach()
set(ENV{FAKE} ${fake})
set(ENV{NVCC} ${fake}/cuda/bin/nvcc)
set(ENV{CC} ${fake}/bin/cc)
set(ENV{PATH} "${fake}/bin:$ENV{PATH}")
# card(NAME WANTED COMPILED OPTIONS... ENV=...): a call with the outputs NAME/out, the calls of tools in NAME/calls
function(card name wanted compiled)
  file(MAKE_DIRECTORY ${OUT}/${name})
  file(WRITE ${OUT}/${name}/calls "")
  set(options ${ARGN})
  list(FILTER options INCLUDE REGEX "^--")
  set(variables ${ARGN})
  list(FILTER variables EXCLUDE REGEX "^--")
  set(ENV{FAKE_OUT} ${OUT}/${name}/out)
  set(ENV{FAKE_CALLS} ${OUT}/${name}/calls)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env FAKE_STATUS=0 WORK=${fake}/objects ${variables}
                          ${script} ${OUT}/${name}/out ${options}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  same("${name}" "${result}" ${wanted})
  lines(${OUT}/${name}/calls " -c " calls)
  list(LENGTH calls count)
  same("${name}: objects made" ${count} ${compiled})
  set(output "${output}" PARENT_SCOPE)
endfunction()

# All of it. The ratio is the last line; the clocks are the first; no more than eight files; each step has found
# check.json as the steps before had left it.
card(whole 0 5)
set(ratio "gcp / PyTorch: batch 128, tf32: 40.000 / 80.0 ms = 0.500")
string(FIND "${output}" "${ratio}" at)
if(at EQUAL -1 OR NOT output MATCHES "batch 256, autocast: 20.000 / 80.0 ms = 0.250\n$")
  message(FATAL_ERROR "the ratio to PyTorch is not last:\n${output}")
endif()
expect(${OUT}/whole/out/check.json autocast ratios 3 precision)
expect(${OUT}/whole/out/check.json 256 ratios 3 batch)
expect(${OUT}/whole/out/check.json "a fake card" device)
expect(${OUT}/whole/out/torch.json autocast 3 precision)
expect(${OUT}/whole/seen_by_test_cuda.json test_cuda running)
expect(${OUT}/whole/seen_by_test_cuda.json OFF finished)
expect(${OUT}/whole/seen_by_gpu.json bench running)
statuses(${OUT}/whole/seen_by_gpu.json found)
same("check.json while the benchmark runs" "${found}" "build=ok;test_cuda_ops=ok;test_cuda=ok")
file(READ ${OUT}/whole/out/run.log log)
if(NOT log MATCHES "^name, clocks")
  message(FATAL_ERROR "run.log does not begin with the card's clocks:\n${log}")
endif()
file(GLOB_RECURSE files LIST_DIRECTORIES true ${OUT}/whole/out/*)
list(LENGTH files count)
if(count GREATER 8)
  message(FATAL_ERROR "more than eight files: ${files}")
endif()
lines(${OUT}/whole/calls "^nvcc .*-arch=native.* -I${fake}/cuda/include " calls)
list(LENGTH calls count)
same("nvcc's calls with CUDA's headers" ${count} 1)
lines(${OUT}/whole/calls "^compute-sanitizer .*--report-api-errors no" calls)
if(NOT calls MATCHES "^compute-sanitizer --tool memcheck [^;]*$")
  message(FATAL_ERROR "--report-api-errors no is not memcheck's alone: ${calls}")
endif()

# Objects: kept, whatever their sources' dates; made anew by another command, by another compiler, of other sources.
file(TOUCH ${fake}/source)
card(profiler 0 0 --ncu)
lines(${OUT}/profiler/calls "^ncu --clock-control none " calls)
list(LENGTH calls count)
same("ncu's calls" ${count} 1)
card(architecture 0 1 ARCH=sm_90 PYTHON=false)
if(NOT output MATCHES "gcp / PyTorch: no PyTorch\n$")
  message(FATAL_ERROR "without PyTorch:\n${output}")
endif()
configure_file(${fake}/bin/cc ${fake}/bin/cc2 COPYONLY)
card(compiler 0 4 ARCH=sm_90 CC=${fake}/bin/cc2)
file(WRITE ${fake}/source "two")
card(sources 0 5 ARCH=sm_90 CC=${fake}/bin/cc2)

# Without a card. A program that fails, and no time for anything.
card(no_card 77 5 FAKE_STATUS=77)
card(bad 1 0 FAKE_BAD=test_cuda_ops)
expect(${OUT}/bad/out/check.json test_cuda_ops failed 0)
card(no_time 3 0 DEADLINE=17)
statuses(${OUT}/no_time/out/check.json found)
list(FILTER found EXCLUDE REGEX "=skipped: time$")
same("what ran in no time" "${found}" "")

# Cut short: all at once, for they wait. Two by their deadline, one of which had failed before; two are killed in a
# step, and leave what was true then. The emulation's benchmark, killed when it has a row, leaves a whole gpu.json.
function(slow name command)
  file(MAKE_DIRECTORY ${OUT}/${name})
  file(WRITE ${OUT}/${name}/run.sh "cd ${OUT}/${name}
export FAKE_OUT=$PWD/out FAKE_CALLS=$PWD/calls WORK=$PWD/objects
export FAKE_SLOW=test_cuda FAKE_STATUS=0 LEAST=1\n${command}\n")
endfunction()
set(kill [=[& i=0
while ! grep -q '@sign@' @file@ && [ $((i += 1)) -lt 300 ]; do sleep 0.1; done 2>/dev/null
kill -@signal@ $!
wait $!]=])
slow(late "DEADLINE=7 ${script} $FAKE_OUT")
slow(bad_and_late "FAKE_BAD=test_cuda_ops DEADLINE=7 ${script} $FAKE_OUT")
set(sign "\"running\": \"test_cuda\"")
set(file out/check.json)
set(signal TERM)
string(CONFIGURE "${kill}" command @ONLY)
slow(terminated "${script} $FAKE_OUT ${command}")
set(signal KILL)
string(CONFIGURE "${kill}" command @ONLY)
slow(killed "${script} $FAKE_OUT ${command}")
set(sign "\"recorded\"")
set(file gpu.json)
string(CONFIGURE "${kill}" command @ONLY)
slow(bench_killed "${OUT}_objects/host/gpu --small 1 --out gpu.json ${command}")
set(commands)
foreach(name late bad_and_late terminated killed bench_killed)
  list(APPEND commands COMMAND sh -c "sh ${OUT}/${name}/run.sh >${OUT}/${name}/screen 2>&1")
endforeach()
execute_process(${commands} RESULTS_VARIABLE results)
same("exit status: late, bad and late, terminated, killed, benchmark killed" "${results}" "3;1;143;137;137")
foreach(name late bad_and_late terminated killed)
  statuses(${OUT}/${name}/out/check.json ${name})
endforeach()
set(others)
foreach(name bench torch_128 torch_256 memcheck racecheck initcheck synccheck)
  list(APPEND others "${name}=skipped: time")
endforeach()
same("by its deadline" "${late}" "build=ok;test_cuda_ops=ok;test_cuda=cut: time;${others}")
same("by its deadline, after a failure" "${bad_and_late}" "build=ok;test_cuda_ops=exit 5;test_cuda=cut: time;${others}")
same("terminated" "${terminated}" "build=ok;test_cuda_ops=ok;test_cuda=stopped")
same("killed" "${killed}" "build=ok;test_cuda_ops=ok")
expect(${OUT}/killed/out/check.json test_cuda running)
expect(${OUT}/late/out/check.json ON finished)
expect(${OUT}/late/out/check.json test_cuda skipped 0)
expect(${OUT}/bench_killed/gpu.json resnet8 steps 0 network)
foreach(name terminated killed)
  expect(${OUT}/${name}/out/check.json OFF finished)
endforeach()

# A build that fails, and words that it does not know.
card(broken 1 1 CC=false WORK=${fake}/broken)
expect(${OUT}/broken/out/check.json failed steps 0 status)
execute_process(COMMAND ${script} ${OUT} --hosts RESULT_VARIABLE result ERROR_QUIET)
same("--hosts" "${result}" 2)
card(only 2 0 ONLY=benches)
