# kernels.cu as cards below sm_80 have it, without asynchronous copies, TF32 and bfloat16, on the emulation of such a card.
# cmake -DCC= -DCXX= -DROOT= -DOUT= -P older.cmake
cmake_minimum_required(VERSION 3.21)
file(MAKE_DIRECTORY ${OUT})
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${OUT} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
set(includes -I${ROOT}/hostcuda -I${ROOT} -I${ROOT}/tests)
run(${CXX} -std=c++17 -O1 -DGCPI_SM80=0 -ffp-contract=off -w ${includes} -c ${ROOT}/hostcuda/kernels.cpp -o kernels.o)
run(${CC} -std=c11 -O1 ${includes} -c ${ROOT}/tests/gcp_cuda.c -o library.o)
run(${CC} -std=c11 -O1 ${includes} -c ${ROOT}/tests/test_cuda_ops.c -o cuda_ops.o)
run(${CXX} cuda_ops.o library.o kernels.o -lm -lpthread -o cuda_ops)
run(${CMAKE_COMMAND} -E env HOSTCUDA_MAJOR=7 ./cuda_ops convolution)
