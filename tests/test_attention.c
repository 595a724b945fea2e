/* Attention against its definition, computed in double a row at a time: results and the gradients of q, k, v and the
   bias, for more rows and keys than a block has, fewer heads of k and v, lengths, causal or not, a bias for all samples
   or for each. And its bits: by one thread and three, on every instruction set as often as asked. Of long keys one
   thread makes dq with dk and dv, three make it apart. */
#include <stdint.h>
#include <stdlib.h>
#include "support/check.h"
#include "gcp.h"

/* bias: its samples; self: q, k and v are one tensor */
typedef struct sizes { int n, rows, keys, heads, kv, d, e, causal, lengths, bias, self; } sizes;
enum { Q, K, V, B, DY, INPUTS };
static gcp_real *value[INPUTS], *result, *gradient[B + 1];
static int32_t length[4];
static unsigned char tape_memory[1 << 18];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor input[INPUTS], lengths, y;
static gcp_plan plan;
static unsigned char *memory;

static size_t count_of(const sizes *s, int which)
{
    const size_t n = (size_t)s->n, rows = n * (size_t)s->rows, keys = n * (size_t)s->keys, heads = (size_t)s->heads;
    switch (which) {
    case Q: return rows * heads * (size_t)s->d;
    case K: return keys * (size_t)(s->kv * s->d);
    case V: return keys * (size_t)(s->kv * s->e);
    case B: return (size_t)s->bias * heads * (size_t)s->rows * (size_t)s->keys;
    default: return rows * heads * (size_t)s->e;
    }
}
static gcp_real random_value(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (gcp_real)((double)(state >> 8) / 8388608 - 1);
}
static void open_case(const sizes *s)
{
    for (int i = 0; i < INPUTS; i++) {
        const size_t n = count_of(s, i);
        value[i] = malloc((n + 1) * sizeof **value);
        if (i <= B) gradient[i] = calloc(n + 1, sizeof **gradient);
        for (size_t k = 0; k < n; k++) value[i][k] = random_value();
    }
    for (int i = K; s->self && i <= V; i++) memcpy(value[i], value[Q], count_of(s, i) * sizeof **value);
    for (size_t k = 0; k < count_of(s, B); k += 7) value[B][k] = (gcp_real)-HUGE_VAL;
    result = calloc(count_of(s, DY), sizeof *result);
    for (int i = 0; i < s->n; i++) length[i] = i == 1 ? 0 : s->keys * 2 / 3;
}
static void close_case(void)
{
    for (int i = 0; i < INPUTS; i++) free(value[i]);
    for (int i = 0; i <= B; i++) free(gradient[i]);
    free(result);
    free(memory);
}

static gcp_tensor wanted(const char *name, gcp_shape shape) { return gcp_want_grad(gcp_input(net, name, shape)); }
static void record(const sizes *s)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 8);
    input[Q] = wanted("q", GCP_SHAPE(s->n, s->rows, s->heads * s->d));
    if (!s->self) input[K] = wanted("k", GCP_SHAPE(s->n, s->keys, s->kv * s->d));
    if (!s->self) input[V] = wanted("v", GCP_SHAPE(s->n, s->keys, s->kv * s->e));
    if (s->self) input[K] = input[V] = input[Q];
    input[B] = s->bias ? wanted("bias", GCP_SHAPE(s->bias, s->heads, s->rows, s->keys)) : GCP_NIL;
    input[DY] = gcp_input(net, "dy", GCP_SHAPE(s->n, s->rows, s->heads * s->e));
    lengths = s->lengths ? gcp_labels(net, "lengths", GCP_SHAPE(s->n)) : GCP_NIL;
    y = gcp_keep(gcp_attention(input[Q], input[K], input[V], .heads = s->heads, .causal = s->causal,
                               .lengths = lengths, .bias = input[B]));
}
static void run(const sizes *s, const gcp_target *target)
{
    record(s);
    plan = gcp_plan_make(gcp_scale(gcp_mean(gcp_mul(y, input[DY])), .by = (double)count_of(s, DY)), .target = target);
    free(memory);
    memory = malloc(plan.bytes + 64);
    gcp_bind(&plan, memory, plan.bytes + 64);
    for (int i = 0; i < INPUTS; i++) if (!gcp_is_nil(input[i])) gcp_write(&plan, input[i], value[i]);
    if (s->lengths) gcp_write(&plan, lengths, length);
    gcp_step(&plan);
    gcp_read(&plan, y, result);
    for (int i = 0; i <= B; i++) if (!gcp_is_nil(input[i])) gcp_grad(&plan, input[i], gradient[i]);
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none");
}

/* ---- the definition ---- */

static double *right[B + 1], worst;
static void near(double got, double want)
{
    const double off = fabs(got - want) / fmax(1, fabs(want));
    if (!(off <= worst)) worst = off;
}
/* One row: its weights in p, and what they give. */
static void row_of(const sizes *s, int sample, int head, int row, double *p, double *dp)
{
    const int group = s->heads / s->kv, kv = head / group;
    const size_t at = (size_t)sample * (size_t)s->rows + (size_t)row, of = (size_t)(s->bias ? sample % s->bias : 0),
                 bias = ((of * (size_t)s->heads + (size_t)head) * (size_t)s->rows + (size_t)row) * (size_t)s->keys;
    const gcp_real *q = value[Q] + (at * (size_t)s->heads + (size_t)head) * (size_t)s->d,
                   *dy = value[DY] + (at * (size_t)s->heads + (size_t)head) * (size_t)s->e;
    double *dq = right[Q] + (q - value[Q]), top = -HUGE_VAL, sum = 0, dot = 0, scale = 1 / sqrt((double)s->d);
    int end = s->lengths ? length[sample] : s->keys;
    if (s->causal && row + 1 + s->keys - s->rows < end) end = row + 1 + s->keys - s->rows;
    for (int j = 0; j < end; j++) {
        const size_t key = ((size_t)sample * (size_t)s->keys + (size_t)j) * (size_t)s->kv + (size_t)kv;
        p[j] = dp[j] = 0;
        for (int c = 0; c < s->d; c++) p[j] += (double)q[c] * (double)value[K][key * (size_t)s->d + (size_t)c] * scale;
        for (int c = 0; c < s->e; c++) dp[j] += (double)dy[c] * (double)value[V][key * (size_t)s->e + (size_t)c];
        if (s->bias) p[j] += (double)value[B][bias + (size_t)j];
        top = fmax(top, p[j]);
    }
    for (int j = 0; j < end; j++) sum += p[j] = top > -HUGE_VAL ? exp(p[j] - top) : 0;
    for (int j = 0; j < end; j++) dot += (p[j] = sum > 0 ? p[j] / sum : 0) * dp[j];
    for (int c = 0; c < s->e; c++) {
        double want = 0;
        for (int j = 0; j < end; j++) {
            const size_t key = ((size_t)sample * (size_t)s->keys + (size_t)j) * (size_t)s->kv + (size_t)kv;
            want += p[j] * (double)value[V][key * (size_t)s->e + (size_t)c];
            right[V][key * (size_t)s->e + (size_t)c] += p[j] * (double)dy[c];
        }
        near((double)result[(at * (size_t)s->heads + (size_t)head) * (size_t)s->e + (size_t)c], want);
    }
    for (int j = 0; j < end; j++) {
        const size_t key = ((size_t)sample * (size_t)s->keys + (size_t)j) * (size_t)s->kv + (size_t)kv;
        const double ds = p[j] * (dp[j] - dot);
        if (s->bias) right[B][bias + (size_t)j] += ds;
        for (int c = 0; c < s->d; c++) {
            dq[c] += ds * scale * (double)value[K][key * (size_t)s->d + (size_t)c];
            right[K][key * (size_t)s->d + (size_t)c] += ds * scale * (double)q[c];
        }
    }
}
static void by_definition(const sizes *s)
{
    double *p = malloc((size_t)s->keys * sizeof *p), *dp = malloc((size_t)s->keys * sizeof *dp);
    for (int i = 0; i <= B; i++) right[i] = calloc(count_of(s, i) + 1, sizeof **right);
    worst = 0;
    for (int i = 0; i < s->n * s->heads * s->rows; i++)
        row_of(s, i / s->rows / s->heads, i / s->rows % s->heads, i % s->rows, p, dp);
    for (size_t k = 0; s->self && k < count_of(s, Q); k++)
        right[Q][k] = right[K][k] = right[V][k] = right[Q][k] + right[K][k] + right[V][k];
    for (int i = 0; i <= B; i++) {
        for (size_t k = 0; k < count_of(s, i); k++) near((double)gradient[i][k], right[i][k]);
        free(right[i]);
    }
    CHECK_NEAR(worst, 0, sizeof(gcp_real) == sizeof(float) ? 1e-5 : 1e-13);
    free(p); free(dp);
}

static void three_for(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    (void)context;
    for (int i = tasks - 1; i >= 0; i--) task(arg, i, i % 3);
}
static void same_bits(const sizes *s)
{
    const gcp_target three = { .threads = 3, .parallel_for = three_for };
    gcp_real *was[B + 1], *first = malloc(count_of(s, DY) * sizeof *first);
    memcpy(first, result, count_of(s, DY) * sizeof *first);
    for (int i = 0; i <= B; i++) {
        was[i] = gradient[i];
        gradient[i] = calloc(count_of(s, i) + 1, sizeof **gradient);
    }
    run(s, &three);
    CHECK(!memcmp(first, result, count_of(s, DY) * sizeof *first));
    for (int i = 0; i <= B; i++) {
        CHECK(!memcmp(was[i], gradient[i], count_of(s, i) * sizeof **gradient));
        free(was[i]);
    }
    free(first);
}

/* Rows that see no key, of q and k that are not all finite. */
static void unseen(void)
{
    static const sizes s = { 2, 700, 600, 4, 2, 72, 64, 1, 0, 0, 0 };
    open_case(&s);
    value[K][0] = value[Q][3] = (gcp_real)HUGE_VAL;
    run(&s, NULL);
    same_bits(&s);
    close_case();
    memory = NULL;
}

int main(void)
{
    static const sizes cases[] = {
        { 2, 5, 5, 1, 1, 4, 4, 0, 0, 0, 0 },      { 2, 7, 7, 2, 2, 3, 5, 1, 0, 0, 0 },
        { 2, 70, 130, 4, 2, 8, 6, 0, 1, 1, 0 },   { 3, 65, 300, 2, 1, 16, 8, 1, 1, 3, 0 },
        { 2, 130, 520, 2, 2, 64, 80, 0, 0, 2, 0 }, { 1, 197, 197, 3, 3, 16, 16, 0, 0, 0, 0 },
        { 1, 600, 600, 1, 1, 64, 64, 1, 1, 1, 0 }, { 2, 9, 3, 2, 1, 4, 4, 1, 0, 1, 0 },
        { 1, 330, 330, 2, 1, 40, 24, 1, 0, 0, 0 }, { 2, 1, 1, 3, 1, 1, 1, 0, 0, 0, 0 },
        { 1, 64, 256, 1, 1, 8, 8, 1, 0, 0, 0 },    { 2, 40, 40, 2, 2, 12, 12, 1, 0, 0, 1 },
        { 1, 520, 520, 1, 1, 72, 72, 0, 1, 1, 1 },  { 4, 70, 70, 2, 1, 8, 6, 0, 0, 2, 0 },
        { 4, 70, 600, 2, 2, 72, 64, 0, 0, 2, 0 },  { 2, 300, 600, 4, 2, 72, 64, 0, 1, 0, 0 },
        { 2, 700, 600, 4, 2, 72, 64, 1, 1, 0, 0 }, { 1, 520, 520, 1, 1, 72, 72, 1, 0, 0, 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_case(&cases[i]);
        run(&cases[i], NULL);
        by_definition(&cases[i]);
        same_bits(&cases[i]);
        close_case();
        memory = NULL;
    }
    unseen();
    return check_done();
}
