/* The cases of test_precision.c in double, with a copy of the implementation of their own. */
#undef GCP_REAL /* the library that the test links is in float */
#define GCP_REAL double
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include "support/precision_cases.h"

int precision_run_double(const precision_case *c, int isa, int threads, precision_result *r)
{
    return precision_run(c, isa, threads, r);
}
