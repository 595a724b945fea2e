/* What gcp.h says of the pointwise ops: made of the lines of pointwise_table.h by src/assemble.cmake, never edited. */
#define GCP_POINTWISE_OPS(X) \
    X(SCALE, scale) \
    X(NEG, neg) \
    X(ABS, abs) \
    X(SQUARE, square) \
    X(SQRT, sqrt) \
    X(RECIPROCAL, reciprocal) \
    X(EXP, exp) \
    X(LOG, log) \
    X(TANH, tanh) \
    X(SIGMOID, sigmoid) \
    X(HARD_SIGMOID, hard_sigmoid) \
    X(ELU, elu) \
    X(SOFTPLUS, softplus) \
    X(SILU, silu) \
    X(HARD_SWISH, hard_swish) \
    X(MISH, mish) \
    X(GELU, gelu) \
    X(GELU_TANH, gelu_tanh)

/* Ops that go element by element. */

/* .by: must be given, finite; GCP_ZERO says zero. */
typedef struct gcp_scale_opts {
    gcp_at at GCPI_Z; double by GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_scale_opts;
/* by x. */
GCP_API gcp_tensor gcp_scale_at(gcp_tensor x, gcp_scale_opts opts);
#define gcp_scale(...) GCPI_F1(gcp_scale_at, gcp_scale_opts, __VA_ARGS__, )
/* -x. */
GCP_API gcp_tensor gcp_neg_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_neg(...) GCPI_F1(gcp_neg_at, gcp_op_opts, __VA_ARGS__, )
/* |x|; its gradient at 0 is 0. */
GCP_API gcp_tensor gcp_abs_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_abs(...) GCPI_F1(gcp_abs_at, gcp_op_opts, __VA_ARGS__, )
/* x x. */
GCP_API gcp_tensor gcp_square_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_square(...) GCPI_F1(gcp_square_at, gcp_op_opts, __VA_ARGS__, )
/* the square root; NaN below 0. */
GCP_API gcp_tensor gcp_sqrt_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_sqrt(...) GCPI_F1(gcp_sqrt_at, gcp_op_opts, __VA_ARGS__, )
/* 1 / x. */
GCP_API gcp_tensor gcp_reciprocal_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_reciprocal(...) GCPI_F1(gcp_reciprocal_at, gcp_op_opts, __VA_ARGS__, )
/* exp x. */
GCP_API gcp_tensor gcp_exp_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_exp(...) GCPI_F1(gcp_exp_at, gcp_op_opts, __VA_ARGS__, )
/* the natural logarithm; NaN below 0. */
GCP_API gcp_tensor gcp_log_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_log(...) GCPI_F1(gcp_log_at, gcp_op_opts, __VA_ARGS__, )
/* tanh x. */
GCP_API gcp_tensor gcp_tanh_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_tanh(...) GCPI_F1(gcp_tanh_at, gcp_op_opts, __VA_ARGS__, )
/* 1 / (1 + exp(-x)). */
GCP_API gcp_tensor gcp_sigmoid_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_sigmoid(...) GCPI_F1(gcp_sigmoid_at, gcp_op_opts, __VA_ARGS__, )
/* .slope: default 1.0/6, finite; GCP_ZERO says zero.
   .offset: default 0.5, finite; GCP_ZERO says zero. */
typedef struct gcp_hard_sigmoid_opts {
    gcp_at at GCPI_Z; double slope GCPI_Z; double offset GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_hard_sigmoid_opts;
/* min(max(slope x + offset, 0), 1). */
GCP_API gcp_tensor gcp_hard_sigmoid_at(gcp_tensor x, gcp_hard_sigmoid_opts opts);
#define gcp_hard_sigmoid(...) GCPI_F1(gcp_hard_sigmoid_at, gcp_hard_sigmoid_opts, __VA_ARGS__, )
/* .alpha: default 1, at least 0; GCP_ZERO says zero. */
typedef struct gcp_elu_opts {
    gcp_at at GCPI_Z; double alpha GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_elu_opts;
/* x, and alpha (exp(x) - 1) where x is below 0. */
GCP_API gcp_tensor gcp_elu_at(gcp_tensor x, gcp_elu_opts opts);
#define gcp_elu(...) GCPI_F1(gcp_elu_at, gcp_elu_opts, __VA_ARGS__, )
/* .beta: default 1, at least 1e-6. */
typedef struct gcp_softplus_opts {
    gcp_at at GCPI_Z; double beta GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_softplus_opts;
/* log(1 + exp(beta x)) / beta. */
GCP_API gcp_tensor gcp_softplus_at(gcp_tensor x, gcp_softplus_opts opts);
#define gcp_softplus(...) GCPI_F1(gcp_softplus_at, gcp_softplus_opts, __VA_ARGS__, )
/* x sigmoid x, or swish. */
GCP_API gcp_tensor gcp_silu_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_silu(...) GCPI_F1(gcp_silu_at, gcp_op_opts, __VA_ARGS__, )
/* x min(max(x + 3, 0), 6) / 6. */
GCP_API gcp_tensor gcp_hard_swish_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_hard_swish(...) GCPI_F1(gcp_hard_swish_at, gcp_op_opts, __VA_ARGS__, )
/* x tanh(softplus x). */
GCP_API gcp_tensor gcp_mish_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_mish(...) GCPI_F1(gcp_mish_at, gcp_op_opts, __VA_ARGS__, )
/* x Phi(x), exact. */
GCP_API gcp_tensor gcp_gelu_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_gelu(...) GCPI_F1(gcp_gelu_at, gcp_op_opts, __VA_ARGS__, )
/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x x x))) / 2: gelu's quick form. */
GCP_API gcp_tensor gcp_gelu_tanh_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_gelu_tanh(...) GCPI_F1(gcp_gelu_tanh_at, gcp_op_opts, __VA_ARGS__, )
