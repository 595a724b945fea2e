# gcp::cuda for a program in C: by find_package after an install, and by plain cc with kernels.o. Links everywhere nvcc is;
# runs where a GPU is. cmake -DCC= -DROOT= -DOUT= -DGENERATOR= -DNVCC= -DCUDA_INCLUDE= -DCUDA_LIB= -P cuda.cmake
cmake_minimum_required(VERSION 3.21)
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()
function(run_app app)                             # 77: no GPU, which the program says itself
  execute_process(COMMAND ${app} RESULT_VARIABLE result OUTPUT_VARIABLE output)
  if(NOT (result EQUAL 0 AND output MATCHES "loss") AND NOT (result EQUAL 77 AND output MATCHES "no GPU: .*: cuda: "))
    message(FATAL_ERROR "${app}: ${result}: ${output}")
  endif()
endfunction()

run(${CMAKE_COMMAND} -S ${ROOT} -B ${OUT}/gcp -G ${GENERATOR} -DCMAKE_C_COMPILER=${CC} -DGCP_TESTS=OFF -DGCP_EXAMPLES=OFF -DGCP_CUDA=ON
    -DCMAKE_CUDA_ARCHITECTURES=80-virtual "-DCMAKE_CUDA_FLAGS=-Xcicc -O0" -DCMAKE_INSTALL_PREFIX=${OUT}/prefix)
run(${CMAKE_COMMAND} --build ${OUT}/gcp --config Release)
run(${CMAKE_COMMAND} --install ${OUT}/gcp --config Release)
run(${CMAKE_COMMAND} -S ${ROOT}/tests/packaging -B ${OUT}/app -G ${GENERATOR} -DCMAKE_C_COMPILER=${CC} -DCMAKE_BUILD_TYPE=Debug -DROOT=${ROOT} -DWAY=find
    -DPART=cuda -DCMAKE_PREFIX_PATH=${OUT}/prefix)
run(${CMAKE_COMMAND} --build ${OUT}/app --config Debug)
run_app(${OUT}/app/app_cuda)

# Without a list of its own a project gets code for each kind of card that this nvcc knows.
run(${CMAKE_COMMAND} -S ${ROOT} -B ${OUT}/default -G ${GENERATOR} -DCMAKE_C_COMPILER=${CC} -DGCP_TESTS=OFF -DGCP_EXAMPLES=OFF -DGCP_CUDA=ON)
execute_process(COMMAND ${NVCC} --list-gpu-arch OUTPUT_VARIABLE known COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE made ${OUT}/default/build.ninja ${OUT}/default/flags.make)
foreach(arch compute_90 compute_100 compute_120)
  set(found "")
  foreach(file IN LISTS made)
    file(STRINGS ${file} lines REGEX "${arch}[,\\]")
    list(APPEND found ${lines})
  endforeach()
  if(known MATCHES ${arch} AND NOT found)
    message(FATAL_ERROR "nvcc knows ${arch}, but kernels.cu is not compiled for it")
  endif()
endforeach()

# As docs/gpu.md says, with the files that one copies, but for an architecture that needs no card.
file(COPY ${ROOT}/dist/gcp.h ${ROOT}/dist/gcp_cuda.h ${ROOT}/dist/kernels.cu DESTINATION ${OUT}/copied)
file(STRINGS ${ROOT}/docs/gpu.md line REGEX "^    nvcc .*kernels.cu")
string(REGEX REPLACE "^    nvcc " "" line "${line}")
string(REPLACE "-arch=native" "-arch=compute_80" line "${line}")
string(REPLACE "kernels.cu" "${OUT}/copied/kernels.cu" line "${line}")
separate_arguments(line UNIX_COMMAND "${line}")
set(object ${OUT}/kernels.o)
run(${NVCC} ${line} -Xcicc -O0 -o ${object})               # sooner
run(${CC} -O0 -I${OUT}/copied -I${CUDA_INCLUDE} ${ROOT}/tests/packaging/app_cuda.c ${object} -L${CUDA_LIB} -Wl,-rpath,${CUDA_LIB} -lcudart -lcublas -lcublasLt -lm -o ${OUT}/plain)
run_app(${OUT}/plain)

# An install without a GPU says what it lacks.
run(${CMAKE_COMMAND} -S ${ROOT} -B ${OUT}/none -G ${GENERATOR} -DCMAKE_C_COMPILER=${CC} -DGCP_TESTS=OFF -DGCP_EXAMPLES=OFF -DGCP_CUDA=OFF -DCMAKE_INSTALL_PREFIX=${OUT}/bare)
run(${CMAKE_COMMAND} --build ${OUT}/none --config Release)
run(${CMAKE_COMMAND} --install ${OUT}/none --config Release)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${ROOT}/tests/packaging -B ${OUT}/lacking -G ${GENERATOR} -DCMAKE_C_COMPILER=${CC} -DROOT=${ROOT} -DWAY=find -DPART=cuda
                -DCMAKE_PREFIX_PATH=${OUT}/bare RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE error)
if(result EQUAL 0 OR NOT error MATCHES "without its component 'cuda'")
  message(FATAL_ERROR "an install without a GPU passes for one: ${error}")
endif()
