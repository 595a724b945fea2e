# Formatting by .clang-format changes nothing in these files. cmake -DROOT= -P format.cmake
cmake_minimum_required(VERSION 3.21)
find_program(CLANG_FORMAT NAMES clang-format clang-format-14)
set(version "")
if(CLANG_FORMAT)
  execute_process(COMMAND ${CLANG_FORMAT} --version OUTPUT_VARIABLE version)
endif()
if(NOT version MATCHES "version 14\\.")       # others have other opinions
  message(STATUS "SKIPPED: no clang-format 14 here")
  return()
endif()
set(files
  src/cuda/gpu_losses.h
  src/cuda/kernels/implicit.h
  src/cuda/kernels/lookup.h
  src/cuda/kernels/losses.h
  src/cuda/kernels/updates.h
  src/cuda/kernels/wgrad.h
  src/kernels/columns.h
  src/ops/code.h
  src/report/program.h
  src/report/repeats.h
  src/report/variables.h
  tests/print_c.c
  tests/support/printed.h
  tests/test_print_c.c
  examples/onnx_to_c.c
  examples/playground/answer.h
  examples/playground/layers.h
  examples/playground/playground.c
  examples/playground/request.h
  src/onnx/blocks.h
  src/onnx/curves.h
  src/onnx/fold.h
  src/onnx/fusions.h
  src/onnx/head.h
  src/onnx/onnx_elements.h
  src/onnx/onnx_model.h
  src/onnx/onnx_moves.h
  src/onnx/onnx_norms.h
  src/onnx/onnx_products.h
  src/onnx/onnx_record.h
  src/onnx/onnx_sizes.h
  src/onnx/onnx_table.h
  src/onnx/onnx_values.h
  src/onnx/onnx_windows.h
  src/onnx/open.h
  src/onnx/operands.h
  src/onnx/order.h
  src/onnx/save.h
  src/onnx/schema.h
  src/onnx/shapes.h
  src/onnx/wire.h
  src/ops/dropout.h
  src/run/check.h
  src/run/copies.h
  src/run/state.h
  src/search/least.h
  tests/gcp.c
  tests/gcp_cuda.c
  tests/precision_double.c
  tests/precision_float.c
  tests/reference/like_onnx.c
  tests/support/clock.h
  tests/support/feed.h
  tests/support/fitting.h
  tests/support/json.h
  tests/support/oracle.h
  tests/support/pointwise.h
  tests/support/strategies.h
  tests/support/svg.h
  tests/support/table.h
  tests/test_save_survives_power_loss.c
  tests/test_onnx_cases.c
  tests/test_resnet50.c
  tests/test_threads.c
  tests/test_verifier.c
  tests/test_gradients_of_inputs.c
)
foreach(file IN LISTS files)
  execute_process(COMMAND ${CLANG_FORMAT} --dry-run --Werror ${ROOT}/${file} RESULT_VARIABLE changes ERROR_VARIABLE text)
  if(changes)
    message(SEND_ERROR "clang-format -i ${file}:\n${text}")
  endif()
endforeach()
