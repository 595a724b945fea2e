/* Softmax and its logarithm, over channels. Backward reads the result. */

GCPI_CALLS

/* The largest of a row. A NaN counts as such if it comes first. */
GCPI_BODY gcp_real gcpi_row_top(const gcp_real *x, int n)
{
    gcp_real top[GCPI_LANES];
    int i = 0;
    for (int k = 0; k < GCPI_LANES; k++) top[k] = x[0];
    for (; i + GCPI_LANES <= n; i += GCPI_LANES)
        GCPI_EIGHT for (int k = 0; k < GCPI_LANES; k++) top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
    for (int k = 0; i < n; i++, k++) top[k] = x[i] > top[k] ? x[i] : top[k];
    for (int half = GCPI_LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) top[k] = top[k + half] > top[k] ? top[k + half] : top[k];
    return top[0];
}
/* y = exp(x - top), y may be x; returns their sum. The last few are filled up to a whole vector. */
GCPI_BODY double gcpi_row_exp(int fused, const gcp_real *x, gcp_real *y, gcp_real top, int n)
{
    const int whole = n - n % GCPI_LANES;
    gcp_real last[GCPI_LANES];
    double sum;
    (void)fused;
    GCPI_EACH for (int i = 0; i < whole; i++) y[i] = gcpi_exp1(x[i] - top);
    for (int k = 0; k < GCPI_LANES && whole < n; k++) last[k] = whole + k < n ? x[whole + k] - top : 0;
    if (whole < n) GCPI_EACH for (int k = 0; k < GCPI_LANES; k++) last[k] = gcpi_exp1(last[k]);
    for (int k = 0; whole + k < n; k++) y[whole + k] = last[k];
    GCPI_ROW_SUM(sum, n, i, (double)y[i])
    return sum;
}

enum { GCPI_SOFTMAX_PART = 512 };
GCPI_BODY void gcpi_softmax_of(int fused, const gcp_real *x, gcp_real *y, int n, int logarithm)
{
    const gcp_real top = gcpi_row_top(x, n);
    gcp_real part[GCPI_SOFTMAX_PART];
    double sum = 0;
    if (!logarithm) {
        const gcp_real share = (gcp_real)(1 / gcpi_row_exp(fused, x, y, top, n));
        GCPI_EACH for (int i = 0; i < n; i++) y[i] *= share;
        return;
    }
    for (int i = 0; i < n; i += GCPI_SOFTMAX_PART)
        sum += gcpi_row_exp(fused, x + i, part, top, GCPI_MIN(n - i, (int)GCPI_SOFTMAX_PART));
    const gcp_real all = (gcp_real)gcpi_log(sum);
    GCPI_EACH for (int i = 0; i < n; i++) y[i] = x[i] - top - all;
}
/* dx = y (dy - sum of y dy), or dy - exp(y) times the sum of dy; dx may be dy. */
GCPI_BODY void gcpi_softmax_back_of(int fused, const gcp_real *y, const gcp_real *dy, gcp_real *dx, int n,
                                     int logarithm, int accumulate)
{
    double sum;
    (void)fused;
    if (logarithm) GCPI_ROW_SUM(sum, n, i, (double)dy[i])
    else GCPI_ROW_SUM(sum, n, i, (double)(y[i] * dy[i]))
    const gcp_real all = (gcp_real)sum, keep = accumulate ? 1 : 0;
    if (logarithm && keep != 0) GCPI_EACH for (int i = 0; i < n; i++) dx[i] += dy[i] - gcpi_exp1(y[i]) * all;
    else if (logarithm) GCPI_EACH for (int i = 0; i < n; i++) dx[i] = dy[i] - gcpi_exp1(y[i]) * all;
    else if (keep != 0) GCPI_EACH for (int i = 0; i < n; i++) dx[i] += y[i] * (dy[i] - all);
    else GCPI_EACH for (int i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - all);
}

GCPI_BODY void gcpi_softmax_rows(const gcpi_norm_job *job, size_t first, size_t last, int fused)
{
    const gcp_call *c = job->call;
    const int n = c->out[0].shape.d[3], logarithm = gcpi_attr(c->attributes)->softmax.logarithm;
    for (size_t p = first; p < last; p++)
        gcpi_softmax_of(fused, gcpi_row(&c->in[0], p), gcpi_row_out(&c->out[0], p), n, logarithm);
}
GCPI_BODY void gcpi_softmax_rows_back(const gcpi_norm_job *job, size_t first, size_t last, int fused)
{
    const gcp_call *c = job->call;
    const int n = c->out[0].shape.d[3], logarithm = gcpi_attr(c->attributes)->softmax.logarithm;
    for (size_t p = first; p < last; p++)
        gcpi_softmax_back_of(fused, gcpi_row(&c->out[0], p), gcpi_row(&c->dout[0], p), gcpi_row_out(&c->din[0], p), n,
                              logarithm, c->din[0].accumulate);
}
#define GCPI_SOFTMAX_TASK(NAME, ROWS)                                                                      \
    GCPI_BODY void NAME##_body(void *arg, int index, int fused)                                            \
    {                                                                                                      \
        const gcpi_norm_job *job = (const gcpi_norm_job *)arg;                                             \
        const size_t first = (size_t)index * job->chunk;                                                   \
        ROWS(job, first, GCPI_MIN(first + job->chunk, job->pixels), fused);                                \
    }                                                                                                      \
    GCPI_EACH_SET(NAME, (void *arg, int index, int worker), (arg, index, worker),                          \
                  ((const gcpi_norm_job *)arg)->call->target, (void)worker; NAME##_body(arg, index, 0),    \
                  (void)worker; NAME##_body(arg, index, 1))
GCPI_SOFTMAX_TASK(gcpi_softmax_task, gcpi_softmax_rows)
GCPI_SOFTMAX_TASK(gcpi_softmax_task_back, gcpi_softmax_rows_back)
GCPI_CALLS_END

static void gcpi_softmax_forward(const gcp_call *c)
{
    gcpi_norm_rows(c, c->in[0].shape, NULL, gcpi_uses_forward, gcpi_softmax_task);
}
static void gcpi_softmax_backward(const gcp_call *c)
{
    static const gcpi_used used = { GCPI_USES_OUT(0) | GCPI_USES_DOUT(0), GCPI_USES_DIN(0), 0, 0 };
    if (c->din[0].data) gcpi_norm_rows(c, c->din[0].shape, NULL, used, gcpi_softmax_task_back);
}
#define GCPI_SOFTMAX_ROW(name)                                                                             \
    static const gcpi_op_row gcpi_##name##_row = {                                                         \
        GCP_OP_SOFTMAX,                                                                                    \
        { #name, gcpi_unary_shape, gcpi_softmax_forward, gcpi_softmax_backward, gcpi_rows_cost, 0,         \
          GCPI_OUT(0), GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_IN_PLACE | GCP_FLAG_SAMPLES_APART | GCP_FLAG_BF16,  \
          1, NULL },                  \
        NULL                                                                                               \
    };
GCPI_SOFTMAX_ROW(softmax)
GCPI_SOFTMAX_ROW(log_softmax)

GCPI_DEF gcp_tensor gcp_softmax_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_simple(&gcpi_softmax_row, &x, 1, NULL, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_log_softmax_at(gcp_tensor x, gcp_op_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.softmax.logarithm = 1;
    return gcpi_simple(&gcpi_log_softmax_row, &x, 1, &a, o.name, o.at);
}
