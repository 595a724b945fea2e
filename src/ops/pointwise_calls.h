/* What gcp.h says of the pointwise ops: made of the lines of pointwise_table.h by src/assemble.cmake, never edited. */
#define GCP_POINTWISE_OPS(X) \
    X(SCALE, scale) \
    X(TANH, tanh) \
    X(SIGMOID, sigmoid) \
    X(GELU, gelu)

/* Ops that go element by element. */

/* .by: must be given, finite; GCP_ZERO says zero. */
typedef struct gcp_scale_opts {
    gcp_at at GCPI_Z; double by GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_scale_opts;
/* by x. */
GCP_API gcp_tensor gcp_scale_at(gcp_tensor x, gcp_scale_opts opts);
#define gcp_scale(...) GCPI_F1(gcp_scale_at, gcp_scale_opts, __VA_ARGS__, )
/* tanh x. */
GCP_API gcp_tensor gcp_tanh_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_tanh(...) GCPI_F1(gcp_tanh_at, gcp_op_opts, __VA_ARGS__, )
/* 1 / (1 + exp(-x)). */
GCP_API gcp_tensor gcp_sigmoid_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_sigmoid(...) GCPI_F1(gcp_sigmoid_at, gcp_op_opts, __VA_ARGS__, )
/* x Phi(x), exact. */
GCP_API gcp_tensor gcp_gelu_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_gelu(...) GCPI_F1(gcp_gelu_at, gcp_op_opts, __VA_ARGS__, )
