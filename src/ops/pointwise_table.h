/* The pointwise ops, an entry each. It gives y, element by element, and dy/dx. It is all there is of one:
   from it come the enumerator, the functions and macros of gcp.h (pointwise_calls.h), rows and kernels of the CPU
   and of a GPU, and the cases of tests. x, y: input and output; p, q: the numbers that the user gives. Backward
   READS X, Y or NOTHING: the derivative uses nothing else. gcpi_exp1, gcpi_tanh1, gcpi_sigmoid1, gcpi_phi
   (the normal distribution), gcpi_density: of both machines. What a number is, behind the derivative: its field, its
   default (GCP_ZERO: it must be given), the least and the most that it may be, a value for tests. */
#define GCPI_POINTWISE(PLAIN, ONE, TWO)                                                                              \
    ONE(SCALE, scale, NOTHING, x * p, p, by, GCP_ZERO, -HUGE_VAL, HUGE_VAL, -1.7)                       /* by x */   \
    PLAIN(TANH, tanh, Y, gcpi_tanh1(x), 1 - y * y)                                                      /* tanh x */ \
    PLAIN(SIGMOID, sigmoid, Y, gcpi_sigmoid1(x), y * (1 - y))                                 /* 1 / (1 + exp(-x)) */ \
    PLAIN(GELU, gelu, X, x * gcpi_phi(x), gcpi_phi(x) + x * gcpi_density(x))                    /* x Phi(x), exact */
