# The programs of docs/projects, in C99, beside stand-ins for the projects that they belong to: farbfeld's compiles, liblbfgs's
# also runs, and prints the same numbers in a tenth of the bytes. cmake -DCC= -DROOT= -DOUT= -DWERROR= -P projects.cmake
cmake_minimum_required(VERSION 3.21)
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT})
set(flags -std=c99 -pedantic -Wall -Wextra -I${OUT} -I${ROOT}/dist)
if(WERROR)
  list(APPEND flags -Werror)
endif()
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${OUT} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(WRITE ${OUT}/arg.h [[
static char *argv0;
#define ARGBEGIN argv0 = argv[0]; switch (argc-- > 1 ? argv[1][1] : 0) {
#define EARGF(usage) (usage, argv0)
#define ARGEND }
]])
file(WRITE ${OUT}/util.h [[
void die(const char *, ...);
void ff_read_header(uint32_t *, uint32_t *);
void ff_write_header(uint32_t, uint32_t);
int fshut(FILE *, const char *);
void efread(void *, size_t, size_t, FILE *);
void efwrite(const void *, size_t, size_t, FILE *);
void *ereallocarray(void *, size_t, size_t);
long long estrtonum(const char *, long long, long long);
]])
run(${CC} ${flags} -D_DEFAULT_SOURCE -c ${ROOT}/docs/projects/ffdenoise.c)

file(WRITE ${OUT}/lbfgs.h [[
typedef double lbfgsfloatval_t;
typedef struct { int max_iterations; } lbfgs_parameter_t;
typedef double (*lbfgs_evaluate_t)(void *, const double *, double *, const int, const double);
typedef int (*lbfgs_progress_t)(void *, const double *, const double *, const double, const double, const double,
                                const double, int, int, int);
double *lbfgs_malloc(int);
void lbfgs_free(double *);
void lbfgs_parameter_init(lbfgs_parameter_t *);
int lbfgs(int, double *, double *, lbfgs_evaluate_t, lbfgs_progress_t, void *, lbfgs_parameter_t *);
]])
file(WRITE ${OUT}/descent.c [[
#include <stdlib.h>
#include "lbfgs.h"
double *lbfgs_malloc(int n) { return malloc((size_t)n * sizeof(double)); }
void lbfgs_free(double *x) { free(x); }
void lbfgs_parameter_init(lbfgs_parameter_t *parameter) { parameter->max_iterations = 0; }
int lbfgs(int n, double *x, double *fx, lbfgs_evaluate_t evaluate, lbfgs_progress_t progress, void *instance,
          lbfgs_parameter_t *parameter)
{
    double *g = lbfgs_malloc(n);
    for (int k = 0; g && k <= 10; k++) {
        *fx = evaluate(instance, x, g, n, 0.1);
        for (int i = 0; i < n; i++) x[i] -= 0.1 * g[i];
        progress(instance, x, g, *fx, 0, 0, 0.1, n, k, parameter->max_iterations);
    }
    free(g);
    return 0;
}
]])
run(${CC} ${flags} -Wno-unused-parameter -O2 -DGCP_REAL=double -c ${ROOT}/docs/projects/assimilate.c descent.c)
run(${CC} -std=c11 -O2 -DGCP_REAL=double -I${ROOT}/dist -c ${ROOT}/dist/gcp.c)
run(${CC} assimilate.o descent.o gcp.o -lm -o assimilate)
foreach(budget 1000 5)
  execute_process(COMMAND ${OUT}/assimilate ${budget} OUTPUT_VARIABLE said_${budget} COMMAND_ERROR_IS_FATAL ANY)
  string(FIND "${said_${budget}}" "\n" line)
  string(SUBSTRING "${said_${budget}}" ${line} -1 numbers_${budget})
endforeach()
if(NOT said_1000 MATCHES "^5[0-9]+ bytes, 0 of" OR NOT said_5 MATCHES "^4[0-9]+ bytes, [1-9]")
  message(SEND_ERROR "bytes are not those of docs/projects/liblbfgs.md: ${said_1000}${said_5}")
endif()
if(NOT numbers_5 STREQUAL numbers_1000 OR NOT numbers_5 MATCHES " 0: misfit ([0-9.e+-]+).* 10: misfit ([0-9.e+-]+)")
  message(SEND_ERROR "another budget, other numbers: ${said_1000}${said_5}")
endif()
if(NOT CMAKE_MATCH_2 LESS CMAKE_MATCH_1)
  message(SEND_ERROR "the gradient does not lead down: ${said_5}")
endif()
