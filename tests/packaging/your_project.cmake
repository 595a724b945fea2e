# docs/project.md: every way to build, as it stands there but for -O2, with its main.c. Ways whose tools are not here are left out.
# cmake -DCC= -DCXX= -DROOT= -DOUT= -DGENERATOR= -P your_project.cmake
cmake_minimum_required(VERSION 3.21)
file(REMOVE_RECURSE ${OUT})
file(READ ${ROOT}/docs/project.md page)

include(${CMAKE_CURRENT_LIST_DIR}/blocks.cmake)
macro(next kind)
  next_block(${kind})
  if(NOT found)
    message(FATAL_ERROR "docs/project.md has no further block of ${kind}")
  endif()
endmacro()

function(run folder)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${folder} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(output "${output}" PARENT_SCOPE)
endfunction()

# A project's folder: the files that the page says are there.
function(begin name)
  file(MAKE_DIRECTORY ${OUT}/${name} ${OUT}/bin)
  file(COPY ${ROOT}/dist/gcp.h ${ROOT}/dist/gcp.c DESTINATION ${OUT}/${name})
  file(WRITE ${OUT}/${name}/main.c "${main}")
endfunction()

function(check app)
  run(${OUT} ${app})
  if(NOT output MATCHES "^a step takes [0-9]+ bytes\n$")
    message(FATAL_ERROR "${app} prints ${output}")
  endif()
endfunction()

function(shell name)
  begin(${name})
  string(REPLACE "-O2" "-O0" block "${block}")          # sooner built
  file(WRITE ${OUT}/${name}/commands "set -e\n${block}")
  run(${OUT}/${name} sh commands)
endfunction()

function(cmake_way name)
  begin(${name})
  file(CREATE_LINK ${ROOT} ${OUT}/${name}/gcp SYMBOLIC)
  file(WRITE ${OUT}/${name}/CMakeLists.txt "${block}")
  run(${OUT}/${name} ${CMAKE_COMMAND} -S . -B build -G ${GENERATOR} -DCMAKE_C_COMPILER=${CC} -DCMAKE_BUILD_TYPE=Debug -DGCP_CUDA=OFF ${ARGN})
  run(${OUT}/${name} ${CMAKE_COMMAND} --build build)
  check(${OUT}/${name}/build/app)
endfunction()

file(MAKE_DIRECTORY ${OUT}/bin)
file(CREATE_LINK ${CC} ${OUT}/bin/cc SYMBOLIC)      # the page says cc
set(ENV{PATH} "${OUT}/bin:$ENV{PATH}")
set(ENV{CC} ${CC})
next(c)
set(main "${block}")
foreach(name one two openmp)
  next(sh)
  if(name STREQUAL "openmp")
    file(WRITE ${OUT}/threads.c "int main(void) { return 0; }\n")
    execute_process(COMMAND ${CC} -fopenmp threads.c -o threads WORKING_DIRECTORY ${OUT} RESULT_VARIABLE no_openmp OUTPUT_QUIET ERROR_QUIET)
    if(no_openmp)
      continue()
    endif()
  endif()
  shell(${name})
  check(${OUT}/${name}/app)
endforeach()

next(make)
find_program(MAKE make)
if(MAKE AND NOT no_openmp)
  begin(make)
  file(WRITE ${OUT}/make/Makefile "${block}")
  run(${OUT}/make ${MAKE} "CFLAGS=-O0 -fopenmp")
  check(${OUT}/make/app)
  run(${OUT}/make ${MAKE} clean)
endif()

next(cmake)
cmake_way(subdirectory)
next(cmake)
cmake_way(fetched)
next(sh)
begin(installed)
file(CREATE_LINK ${ROOT} ${OUT}/installed/gcp SYMBOLIC)
file(WRITE ${OUT}/installed/commands "set -e\n${block}")
run(${OUT}/installed sh commands)
set(prefix ${OUT}/installed/prefix)
next(cmake)
cmake_way(found -DCMAKE_PREFIX_PATH=${prefix})

next(meson)
find_program(MESON meson)
find_program(NINJA ninja)
if(MESON AND NINJA)
  begin(meson)
  file(MAKE_DIRECTORY ${OUT}/meson/subprojects/gcp)
  file(COPY ${ROOT}/dist ${ROOT}/meson.build ${ROOT}/gcp.h DESTINATION ${OUT}/meson/subprojects/gcp)
  file(WRITE ${OUT}/meson/meson.build "${block}")
  run(${OUT}/meson ${MESON} setup build)
  run(${OUT}/meson ${NINJA} -C build)
  check(${OUT}/meson/build/app)
endif()

next(sh)
find_program(PKG_CONFIG NAMES pkg-config)
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${prefix}/share/pkgconfig)
  shell(pkg_config)
  check(${OUT}/pkg_config/app)
endif()

next(sh)
shell(library)
run(${OUT}/library ${NM} -D --defined-only libapp.so)
if(output MATCHES " gcp")
  message(FATAL_ERROR "the library shows gcp's functions: ${output}")
endif()

# docs/gpu.md: the emulation in a project
set(project_page "${page}")
file(READ ${ROOT}/docs/gpu.md page)
next(sh)
begin(emulated)
file(CREATE_LINK ${ROOT} ${OUT}/emulated/gcp SYMBOLIC)
file(WRITE ${OUT}/emulated/main.c "#include <stdio.h>\n#include \"gcp.h\"\n#include \"gcp_cuda.h\"
static unsigned char memory[GCP_MB(1)];
int main(void)
{
    gcp_arena arena = gcp_arena_from(memory, sizeof memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 8);
    gcp_gpu gpu = gcp_gpu_open();
    gcp_tensor x = gcp_input(net, \"x\", GCP_SHAPE(4, 8));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_linear(x, .out = 2)), .target = gcp_cuda(&gpu));
    gcp_bind(&plan, NULL, 0);
    if (!gcp_error(net)) printf(\"a step takes %zu bytes\\n\", plan.bytes);
    return gcp_error(net) ? puts(gcp_error(net)) : 0;
}
")
string(REPLACE "c++ " "${CXX} " block "${block}")
file(WRITE ${OUT}/emulated/commands "set -e\n${block}")
run(${OUT}/emulated sh commands)
check(${OUT}/emulated/app)
set(page "${project_page}")

next(cpp)
begin(cpp)
file(WRITE ${OUT}/cpp/main.cpp "${block}")
run(${OUT}/cpp ${CC} -std=c11 -O0 -c gcp.c)
run(${OUT}/cpp ${CXX} -std=c++17 -O0 main.cpp gcp.o -o beside)
check(${OUT}/cpp/beside)
