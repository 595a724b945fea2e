# What a new op takes: a pointwise one a line of its table, from which its cases come; another one its kind and functions in gcp.h and its
# room, and test_gradcheck wants a case of it. cmake -DCC= -DROOT= -DOUT= -P new_op.cmake
cmake_minimum_required(VERSION 3.21)
set(tree ${OUT}/tree)
file(REMOVE_RECURSE ${tree})
foreach(name gcp.h gcp_io.h gcp_onnx.h gcp_cuda.h kernels.cu gcp.c src tests/test_gradcheck.c tests/support examples/networks)
  get_filename_component(folder ${name} DIRECTORY)
  file(COPY ${ROOT}/${name} DESTINATION ${tree}/${folder})
endforeach()
function(put_before file line new)
  file(READ ${tree}/${file} text)
  string(FIND "${text}" "${line}" at)
  if(at LESS 0)
    message(FATAL_ERROR "no '${line}' in ${file}")
  endif()
  string(REPLACE "${line}" "${new}${line}" text "${text}")
  file(WRITE ${tree}/${file} "${text}")
endfunction()

# Two pointwise ops that are right, one of them with two numbers and over two lines; one with a wrong derivative; an op with a room but
# without a case.
put_before(src/ops/pointwise_table.h "    PLAIN(GELU,"
           "    TWO(BEND, bend, X, p * x + q * x * x, p + 2 * q * x, slope, 1.0, -10, HUGE_VAL, 0.7,  \\\n        more, GCP_ZERO, -HUGE_VAL, 3, -0.3)   /* slope x + more x x */ \\\n")
put_before(src/ops/pointwise_table.h "    PLAIN(GELU,"
           "    PLAIN(SOFTSIGN, softsign, Y, x / (1 + (x < 0 ? -x : x)), (1 - (y < 0 ? -y : y)) * (1 - (y < 0 ? -y : y))) /* right */ \\\n")
put_before(src/ops/pointwise_table.h "    PLAIN(GELU," "    PLAIN(WRONGSIGN, wrongsign, Y, x / (1 + (x < 0 ? -x : x)), 1 - (y < 0 ? -y : y)) /* wrong */ \\\n")
put_before(gcp.h " X(MEAN, mean)" " X(STUB, stub)")
put_before(gcp.h "GCP_API gcp_tensor gcp_mean_at(" "GCP_API gcp_tensor gcp_stub_at(gcp_tensor x, gcp_op_opts opts);\n")
put_before(gcp.h "#define gcp_mean(...)" "#define gcp_stub(...) GCPI_F1(gcp_stub_at, gcp_op_opts, __VA_ARGS__, )\n")
file(APPEND ${tree}/src/ops/loss.h "
static const gcpi_op_row gcpi_stub_row = {
    GCP_OP_STUB, { \"stub\", gcpi_mean_shape, gcpi_mean_forward, gcpi_mean_backward, gcpi_loss_cost, 0, 0, GCPI_LOSS, 1, NULL }, NULL
};
GCPI_DEF gcp_tensor gcp_stub_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(&gcpi_stub_row, x, o); }
")
execute_process(COMMAND ${CMAKE_COMMAND} -P ${tree}/src/assemble.cmake COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CC} -std=c11 -O0 -DGCPI_VECTORS=0 -DGCP_REAL=double -I${tree} ${tree}/gcp.c ${tree}/tests/test_gradcheck.c -lm -o ${OUT}/gradcheck
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${OUT}/gradcheck RESULT_VARIABLE result ERROR_VARIABLE text OUTPUT_VARIABLE checks)
if(NOT result EQUAL 1 OR NOT text MATCHES "case wrongsign" OR NOT text MATCHES "case stub: no case" OR text MATCHES "case (softsign|bend)")
  message(FATAL_ERROR "expected complaints of wrongsign and stub, and none of softsign and bend:\n${text}${checks}")
endif()
file(READ ${tree}/src/ops/pointwise_calls.h calls)
if(NOT calls MATCHES "\\.slope: default 1.0, at least -10; GCP_ZERO says zero\\.\n +\\.more: must be given, at most 3; GCP_ZERO")
  message(FATAL_ERROR "bend's numbers:\n${calls}")
endif()

# An entry that is not as the table's head says.
file(READ ${tree}/src/ops/pointwise_table.h table)
foreach(wrong "PLAIN(TANH, tan, Y," "PLAIN(TANH, tanh, ALL," "ONE(TANH, tanh, Y," "FOUR(TANH, tanh, Y,")
  string(REPLACE "PLAIN(TANH, tanh, Y," "${wrong}" text "${table}")
  file(WRITE ${tree}/src/ops/pointwise_table.h "${text}")
  execute_process(COMMAND ${CMAKE_COMMAND} -P ${tree}/src/assemble.cmake RESULT_VARIABLE result ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " said "${text}")
  if(result EQUAL 0 OR NOT said MATCHES "no entry as its head says:")
    message(FATAL_ERROR "'${wrong}' was taken: ${text}")
  endif()
endforeach()
