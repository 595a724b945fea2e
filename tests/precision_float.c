/* The cases of test_precision.c in float, on the library. */
#include "gcp.h"
#include "support/precision_cases.h"

int precision_run_float(const precision_case *c, int isa, int threads, precision_result *r)
{
    return precision_run(c, isa, threads, r);
}
