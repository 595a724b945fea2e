/* The pointwise ops, an entry each. It gives y, element by element, and dy/dx. It is all there is of one:
   from it come the enumerator, the functions and macros of gcp.h (pointwise_calls.h), rows and kernels of the CPU
   and of a GPU, and the cases of tests. x, y: input and output; p, q: the numbers that the user gives. Backward
   READS X, Y or NOTHING: the derivative uses nothing else. gcpi_exp1, gcpi_expm11 (of x <= 0), gcpi_log1, gcpi_log1p1
   (of 0 <= x <= 1), gcpi_sqrt1, gcpi_abs1, gcpi_tanh1, gcpi_sigmoid1, gcpi_phi (the normal distribution),
   gcpi_density: of both machines. What a number is, behind the derivative: its field, its default (GCP_ZERO: it must
   be given), the least and the most that it may be, a value for tests. */

/* Parts of entries. */
#define GCPI_LEAST(a, b) ((a) < (b) ? (a) : (b))
#define GCPI_SIXTH ((gcp_real)0.16666666666666667)
#define GCPI_BETWEEN(z, low, high) ((z) < (low) ? (low) : (z) > (high) ? (high) : (z))
#define GCPI_SOFTPLUS(x, p) (((x) > 0 ? (x) : 0) + gcpi_log1p1(gcpi_exp1(-gcpi_abs1((x) * (p)))) / (p))
/* of x s, with s = sigmoid of what has the derivative d */
#define GCPI_SWISH_BACK(x, s, d) ((s) + (x) * (s) * (1 - (s)) * (d))
/* tanh(log(1 + e)), and what it makes of x's derivative; e = exp(x), and above 20 it is 1 */
#define GCPI_MISH(e) ((e) * ((e) + 2) / ((e) * ((e) + 2) + 2))
#define GCPI_MISH_BACK(x, e) \
    (GCPI_MISH(e) + GCPI_LEAST(x, 20) * (4 * (e) * (1 + (e)) / (((e) * ((e) + 2) + 2) * ((e) * ((e) + 2) + 2))))
/* 2 sqrt(2 / pi) (x + 0.044715 x^3) */
#define GCPI_GELU_IN(x) ((x) * ((gcp_real)1.5957691216057308 + (gcp_real)0.071354816272600248 * ((x) * (x))))
#define GCPI_GELU_IN_BACK(x) ((gcp_real)1.5957691216057308 + (gcp_real)0.21406444881780074 * ((x) * (x)))

#define GCPI_POINTWISE(PLAIN, ONE, TWO)                                                                              \
    ONE(SCALE, scale, NOTHING, x * p, p, by, GCP_ZERO, -HUGE_VAL, HUGE_VAL, -1.7)                       /* by x */   \
    PLAIN(NEG, neg, NOTHING, -x, -1)                                                                      /* -x */   \
    PLAIN(ABS, abs, X, gcpi_abs1(x), (gcp_real)((x > 0) - (x < 0)))            /* |x|; its gradient at 0 is 0 */     \
    PLAIN(SQUARE, square, X, x * x, 2 * x)                                                               /* x x */   \
    PLAIN(SQRT, sqrt, Y, gcpi_sqrt1(x), (gcp_real)0.5 / y)                         /* the square root; NaN below 0 */ \
    PLAIN(RECIPROCAL, reciprocal, Y, 1 / x, -y * y)                                                    /* 1 / x */   \
    PLAIN(EXP, exp, Y, gcpi_exp1(x), y)                                                                /* exp x */   \
    PLAIN(LOG, log, X, gcpi_log1(x), 1 / x)                                /* the natural logarithm; NaN below 0 */ \
    PLAIN(TANH, tanh, Y, gcpi_tanh1(x), 1 - y * y)                                                      /* tanh x */ \
    PLAIN(SIGMOID, sigmoid, Y, gcpi_sigmoid1(x), y * (1 - y))                                 /* 1 / (1 + exp(-x)) */ \
    TWO(HARD_SIGMOID, hard_sigmoid, Y, GCPI_BETWEEN(x * p + q, 0, 1), y > 0 && y < 1 ? p : 0,                        \
        slope, 1.0/6, -HUGE_VAL, HUGE_VAL, 0.2, offset, 0.5, -HUGE_VAL, HUGE_VAL, 0.5)                               \
                                                                      /* min(max(slope x + offset, 0), 1) */         \
    ONE(ELU, elu, Y, x > 0 ? x : p * gcpi_expm11(x > 0 ? 0 : x), y > 0 ? 1 : y + p, alpha, 1, 0, HUGE_VAL, 0.8)     \
                                                                  /* x, and alpha (exp(x) - 1) where x is below 0 */ \
    ONE(SOFTPLUS, softplus, Y, GCPI_SOFTPLUS(x, p), -gcpi_expm11(-y * p), beta, 1, 1e-6, HUGE_VAL, 1.5)         \
                                                                              /* log(1 + exp(beta x)) / beta */      \
    PLAIN(SILU, silu, X, x * gcpi_sigmoid1(x), GCPI_SWISH_BACK(x, gcpi_sigmoid1(x), 1))  /* x sigmoid x, or swish */ \
    PLAIN(HARD_SWISH, hard_swish, X, x * (GCPI_BETWEEN(x + 3, 0, 6) * GCPI_SIXTH),                                    \
          x <= -3 ? 0 : x >= 3 ? 1 : x * 2 * GCPI_SIXTH + (gcp_real)0.5)            /* x min(max(x + 3, 0), 6) / 6 */ \
    PLAIN(MISH, mish, X, x * GCPI_MISH(gcpi_exp1(GCPI_LEAST(x, 20))),                                                  \
          GCPI_MISH_BACK(x, gcpi_exp1(GCPI_LEAST(x, 20))))                                  /* x tanh(softplus x) */ \
    PLAIN(GELU, gelu, X, x * gcpi_phi(x), gcpi_phi(x) + x * gcpi_density(x))                    /* x Phi(x), exact */ \
    PLAIN(GELU_TANH, gelu_tanh, X, x * gcpi_sigmoid1(GCPI_GELU_IN(x)),                                               \
          GCPI_SWISH_BACK(x, gcpi_sigmoid1(GCPI_GELU_IN(x)), GCPI_GELU_IN_BACK(x)))                                  \
                                          /* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x x x))) / 2: gelu's quick form */
