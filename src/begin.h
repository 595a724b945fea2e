#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef GCP_USE_CBLAS
#include <cblas.h>
#endif

/* -ffast-math and its parts would change bits from one plan to another. The pragmas below switch them off, whatever the
   flags: sums keep their order, and a product and a sum are rounded separately (only matrix products may contract
   them). Where a compiler cannot be told so, fast math is an error. GCP_ANY_MATH accepts it: bits may then depend on
   the plan. */
#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#if defined(__FAST_MATH__) && defined(__FMA__) && !defined(GCP_ANY_MATH)
#error "gcp.h: clang's -ffast-math fuses products and sums of -march=native whatever a file says: \
compile this one without, or with -ffp-contract=off and GCP_ANY_MATH"
#endif
#pragma float_control(push)
#pragma float_control(precise, on)
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-fast-math", "no-unsafe-math-optimizations", "no-associative-math", "no-reciprocal-math")
#pragma GCC optimize("no-finite-math-only", "signed-zeros", "fp-contract=off")
#pragma GCC optimize("no-trapping-math") /* changes no value; without it gcc does not vectorise x > 0 ? x : a * x */
#if defined(__i386__) && !defined(__SSE2_MATH__)                    /* x87 keeps extra bits in some places */
#pragma GCC target("sse2,fpmath=sse")
#endif
#elif defined(_MSC_VER) && !defined(__clang__)
#pragma float_control(precise, on, push)
#elif defined(__FAST_MATH__) && !defined(GCP_ANY_MATH)
#error "gcp.h: this compiler cannot leave fast math out of this file: compile it without, or define GCP_ANY_MATH"
#elif defined(__clang__)
#pragma clang fp reassociate(off)
#endif
