/* pointwise.h - each line of src/ops/pointwise_table.h as a call, for the tests that try every op. Behind gcp.h. */
#ifndef POINTWISE_H
#define POINTWISE_H
#include <math.h>
#include <string.h>
#include "../../src/ops/pointwise_table.h"

/* Ops that are made for values above 0 get such. */
static inline gcp_tensor pointwise_in(const char *op, gcp_tensor x)
{
    return !strcmp(op, "log") || !strcmp(op, "sqrt") || !strcmp(op, "reciprocal") ? gcp_exp(x) : x;
}
#define POINTWISE_PLAIN(NAME, op, reads, value, derivative) \
    static gcp_tensor pointwise_##op(gcp_tensor x) { return gcp_##op(pointwise_in(#op, x)); }
#define POINTWISE_ONE(NAME, op, reads, value, derivative, p, p_default, p_least, p_most, p_test) \
    static gcp_tensor pointwise_##op(gcp_tensor x) { return gcp_##op(x, .p = (p_test)); }
#define POINTWISE_TWO(NAME, op, reads, value, derivative, p, p_default, p_least, p_most, p_test, q, q_default, \
                      q_least, q_most, q_test)                                                                 \
    static gcp_tensor pointwise_##op(gcp_tensor x) { return gcp_##op(x, .p = (p_test), .q = (q_test)); }
GCPI_POINTWISE(POINTWISE_PLAIN, POINTWISE_ONE, POINTWISE_TWO)

#define POINTWISE_CALL(NAME, op) pointwise_##op,
static gcp_tensor (*const pointwise_calls[])(gcp_tensor x) = { GCP_POINTWISE_OPS(POINTWISE_CALL) };
enum { POINTWISE_CALLS = sizeof pointwise_calls / sizeof *pointwise_calls };
#endif
