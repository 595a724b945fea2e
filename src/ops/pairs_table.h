/* The ops of two operands a and b, for both machines. LOOP: what is computed of x, y, z and the op's number p. PAIR:
   which loop, and what its x, y and z are, for the result, for dy times its derivative by a, and by b. prelu: b is the
   slope where a is below 0. Where both are equal the gradient of maximum and minimum goes to both in halves. huber: of
   the difference, a square below p and a slope beyond. logits: binary cross-entropy, b a target in [0, 1], of weight p
   where it is 1. */

#define GCPI_HUBER(d, p) ((d) < (p) ? (gcp_real)0.5 * (d) * (d) / (p) : (d) - (gcp_real)0.5 * (p))
#define GCPI_HUBER_BACK(d, p) ((d) >= (p) ? (gcp_real)((d) > 0) : (d) <= -(p) ? (gcp_real)-1 : (d) / (p))
/* log(1 + exp(x)) */
#define GCPI_SOFT(x) (((x) > 0 ? (x) : 0) + gcpi_log1p1(gcpi_exp1(-gcpi_abs1(x))))

#define GCPI_PAIR_LOOPS(LOOP)                                                                                        \
    LOOP(SUM, sum, x + y)                                                                                            \
    LOOP(DIFFERENCE, difference, x - y)                                                                              \
    LOOP(PRODUCT, product, x * y)                                                                                    \
    LOOP(QUOTIENT, quotient, x / y)                                                                                  \
    LOOP(SAME, same, x)                                                                                              \
    LOOP(MINUS, minus, -x)                                                                                           \
    LOOP(DIVISOR, divisor, -(x * (y / z) / z))                                                                       \
    LOOP(LARGER, larger, x > y ? x : x == x ? y : x)                                                                 \
    LOOP(SMALLER, smaller, x < y ? x : x == x ? y : x)                                                               \
    LOOP(SHARE, share, y < z ? 0 : y == z ? x * (gcp_real)0.5 : x)                                                   \
    LOOP(BENT, bent, x > 0 ? x : x * y)                                                                              \
    LOOP(BENT_X, bent_x, y > 0 ? x : x * z)                                                                          \
    LOOP(BENT_SLOPE, bent_slope, y > 0 ? 0 : x * y)                                                                  \
    LOOP(HUBER, huber, GCPI_HUBER(gcpi_abs1(x - y), p))                                                              \
    LOOP(HUBER_BACK, huber_back, x * GCPI_HUBER_BACK(y - z, p))                                                      \
    LOOP(LOGITS, logits, (1 - y) * x + (1 + (p - 1) * y) * GCPI_SOFT(-x))                                            \
    LOOP(LOGITS_BACK, logits_back, x * ((1 - z) - (1 + (p - 1) * z) * gcpi_sigmoid1(-y)))                            \
    LOOP(LOGITS_TARGET, logits_target, x * ((p - 1) * GCPI_SOFT(-y) - y))

#define GCPI_PAIRS(PAIR)                                                                                             \
    PAIR(ADD, add, SUM, A, B, A, SAME, DY, DY, DY, SAME, DY, DY, DY)                                                 \
    PAIR(SUB, sub, DIFFERENCE, A, B, A, SAME, DY, DY, DY, MINUS, DY, DY, DY)                                         \
    PAIR(MUL, mul, PRODUCT, A, B, A, PRODUCT, DY, B, DY, PRODUCT, DY, A, DY)                                         \
    PAIR(DIV, div, QUOTIENT, A, B, A, QUOTIENT, DY, B, DY, DIVISOR, DY, A, B)                                        \
    PAIR(MAXIMUM, maximum, LARGER, A, B, A, SHARE, DY, A, B, SHARE, DY, B, A)                                        \
    PAIR(MINIMUM, minimum, SMALLER, A, B, A, SHARE, DY, B, A, SHARE, DY, A, B)                                       \
    PAIR(EXPAND, expand, SAME, A, A, A, SAME, DY, DY, DY, SAME, DY, DY, DY)                                          \
    PAIR(PRELU, prelu, BENT, A, B, A, BENT_X, DY, A, B, BENT_SLOPE, DY, A, DY)                                       \
    PAIR(HUBER, huber, HUBER, A, B, A, HUBER_BACK, DY, A, B, HUBER_BACK, DY, B, A)                                   \
    PAIR(LOGITS, logits, LOGITS, A, B, A, LOGITS_BACK, DY, A, B, LOGITS_TARGET, DY, A, DY)

/* Their numbers, and the steps of an op as data: which loop, and where its x, y and z come from. */
#define GCPI_PAIR_NUMBER(NAME, ...) GCPI_PAIR_##NAME,
enum { GCPI_PAIRS(GCPI_PAIR_NUMBER) GCPI_PAIR_COUNT };
#define GCPI_LOOP_NUMBER(NAME, name, value) GCPI_LOOP_##NAME,
enum { GCPI_PAIR_LOOPS(GCPI_LOOP_NUMBER) GCPI_LOOP_COUNT };
enum { GCPI_PAIR_DY, GCPI_PAIR_A, GCPI_PAIR_B };

typedef struct gcpi_pair_step { int loop, x[3]; } gcpi_pair_step;
#define GCPI_PAIR_STEPS(NAME, name, f, f0, f1, f2, a, a0, a1, a2, b, b0, b1, b2)                                     \
    { { GCPI_LOOP_##f, { GCPI_PAIR_##f0, GCPI_PAIR_##f1, GCPI_PAIR_##f2 } },                                         \
      { GCPI_LOOP_##a, { GCPI_PAIR_##a0, GCPI_PAIR_##a1, GCPI_PAIR_##a2 } },                                         \
      { GCPI_LOOP_##b, { GCPI_PAIR_##b0, GCPI_PAIR_##b1, GCPI_PAIR_##b2 } } },
