/* Blocks of attention: sizes, a worker's room, rows of scores. */

enum {
    GCPI_ATTENTION_STEP = 64,      /* causal: rows of a block, and steps of its keys; else the least rows of a block, */
    GCPI_ATTENTION_ROWS = 128,     /* and the most, */
    GCPI_ATTENTION_SCORES = 32768, /* of so many scores, */
    GCPI_ATTENTION_TASKS = 32,     /* where blocks are enough for threads */
    GCPI_ATTENTION_KEYS = 256,     /* keys of a block; in backward all of them */
    GCPI_ATTENTION_WHOLE = 65536   /* where dk and dv have no more values */
};

/* Sizes of a call. d, e: channels of a head of q and k, and of v; group: heads of q that share one of k and v. */
typedef struct gcpi_attention {
    int n, rows, keys, heads, kv, group, d, e, causal, lengths, bias, biases;
    int block;                 /* rows of a block */
    int tile;                  /* keys of a block in backward: all of them, or GCPI_ATTENTION_KEYS */
    gcp_real scale;
} gcpi_attention;

/* Rows of a block. Each packs its keys again: many rows, where their scores fit L2 and blocks are enough. A causal
   block computes scores that none of its rows sees: few. No sum depends on it. */
static int gcpi_attention_rows_of(const gcpi_attention *a)
{
    const double heads = (double)a->n * a->heads;
    int most = gcpi_max(GCPI_ATTENTION_STEP, gcpi_min(GCPI_ATTENTION_ROWS, GCPI_ATTENTION_SCORES / a->tile));
    if (a->causal) return gcpi_min(a->rows, GCPI_ATTENTION_STEP);
    if (heads * gcpi_ceil(a->rows, most) < GCPI_ATTENTION_TASKS) most = GCPI_ATTENTION_STEP;
    return gcpi_even(a->rows, most);
}

/* From row to row of scores: whole lines. */
static ptrdiff_t gcpi_attention_pitch(int keys) { return (ptrdiff_t)gcpi_ceil(keys, GCPI_LINE) * GCPI_LINE; }

/* Whether a head of k and v is a task of backward, which makes dq with dk and dv, by five products in place of seven:
   where that leaves no threads idle for longer. No sum depends on it. A bias may be shared by tasks. */
static int gcpi_attention_once(const gcpi_attention *a, const gcp_target *target)
{
    const double tasks = (double)a->n * a->kv, threads = target->threads;
    return a->tile == a->keys || (!a->bias && 5 * ceil(tasks / threads) * threads <= 7 * tasks);
}

/* At most what an int holds: gcpi_attention_shape refuses more. */
static int gcpi_tokens(gcp_shape s) { return (int)GCPI_MIN((int64_t)s.d[1] * s.d[2], (int64_t)INT32_MAX); }
static gcpi_attention gcpi_attention_of(const gcpi_attributes *attributes, const gcp_shape *in)
{
    gcpi_attention a;
    a.n = in[0].d[0]; a.rows = gcpi_tokens(in[0]); a.keys = gcpi_tokens(in[1]);
    a.heads = attributes->attention.heads; a.d = in[0].d[3] / a.heads;
    a.kv = in[1].d[3] / a.d; a.group = a.heads / a.kv; a.e = in[2].d[3] / a.kv;
    a.causal = attributes->attention.causal; a.lengths = attributes->attention.lengths;
    a.bias = attributes->attention.bias; a.biases = a.bias ? in[a.bias].d[0] : 0;
    a.scale = (gcp_real)attributes->attention.scale;
    a.tile = a.keys;
    if ((int64_t)a.keys * (a.d + a.e) > GCPI_ATTENTION_WHOLE) a.tile = GCPI_MIN(a.keys, (int)GCPI_ATTENTION_KEYS);
    a.block = gcpi_attention_rows_of(&a);
    return a;
}

/* Whether a block leaves out keys that none of its rows sees, in steps of GCPI_ATTENTION_STEP: not where each weight of
   a bias gets a gradient. */
static int gcpi_attention_cuts(const gcpi_attention *a) { return a->causal && !a->bias; }

/* What a worker holds: scratch of products, scores and their gradients [rows][tile], sums of results, a value a row;
   where results may be halves, those of a block and their gradients. */
typedef struct gcpi_attention_room { ptrdiff_t scratch, scores, sums, results, bytes; } gcpi_attention_room;
/* Products are a task's own: on its thread. par: of operands; inner: of scores, which are never rounded. */
typedef struct gcpi_attention_pars { gcpi_par par, inner; } gcpi_attention_pars;
static gcpi_attention_pars gcpi_attention_pars_of(const gcpi_attention *a, const gcp_target *target, gcp_store store)
{
    const int one = (a->rows == 1 && a->heads == 1) || (a->keys == 1 && a->kv == 1);       /* vector a sample */
    gcpi_attention_pars p;
    p.par = p.inner = gcpi_serial_par(target, store);
    p.par.duos &= !(one && (a->d == 1 || a->e == 1));
    p.inner.duos = 0;
    return p;
}
/* Of the products of a block of m rows and n keys. */
static size_t gcpi_attention_scratch(const gcpi_attention *a, int m, int n, int backward, const gcpi_attention_pars *p)
{
    const gcpi_par *par = &p->par, *inner = &p->inner;
    const size_t forward =
        GCPI_MAX(gcpi_gemm_scratch(0, 1, m, n, a->d, par), gcpi_gemm_scratch(0, 0, m, a->e, n, inner));
    if (!backward) return forward;
    const size_t rows = GCPI_MAX(gcpi_gemm_scratch(0, 1, m, n, a->e, par), gcpi_gemm_scratch(0, 0, m, a->d, n, inner)),
                 keys = GCPI_MAX(gcpi_gemm_scratch(1, 0, n, a->e, m, inner),
                                 gcpi_gemm_scratch(1, 0, n, a->d, m, inner));
    return GCPI_MAX(forward, GCPI_MAX(rows, keys));
}
static gcpi_attention_room gcpi_attention_room_of(const gcpi_attention *a, const gcp_target *target, gcp_store store,
                                                  int backward)
{
    const gcpi_attention_pars pars = gcpi_attention_pars_of(a, target, store);
    const int step = GCPI_ATTENTION_STEP, r = a->block, last = (a->rows - 1) % r + 1,
              k = backward ? a->tile : GCPI_MIN(a->keys, (int)GCPI_ATTENTION_KEYS);
    const size_t values = sizeof(gcp_real);
    gcpi_attention_room room;
    size_t most = 0;
    /* the last rows and keys are fewer, causal blocks may be, and a smaller product may ask for more */
    for (int m = last;; m = r) {
        most = GCPI_MAX(most, gcpi_attention_scratch(a, m, k, backward, &pars));
        most = GCPI_MAX(most, gcpi_attention_scratch(a, m, (a->keys - 1) % k + 1, backward, &pars));
        for (int n = step; gcpi_attention_cuts(a) && n < k; n += step)
            most = GCPI_MAX(most, gcpi_attention_scratch(a, m, n, backward, &pars));
        if (m == r) break;
    }
    room.scratch = (ptrdiff_t)gcpi_round(most, 64);
    room.scores = (ptrdiff_t)gcpi_round((size_t)r * (size_t)gcpi_attention_pitch(k) * values, 64);
    const size_t sums = backward ? (size_t)k * (size_t)(a->d + a->e) + (size_t)r * (size_t)a->d
                                 : (size_t)r * (size_t)(a->e + 1);
    room.sums = (ptrdiff_t)gcpi_round(sums * values + (backward ? 0 : (size_t)r * sizeof(double)), 64);
    room.results = store && backward ? (ptrdiff_t)gcpi_round((size_t)r * (size_t)a->e * values, 64) : 0;
    room.bytes = room.scratch + 2 * room.scores + room.sums + 2 * room.results;
    return room;
}

/* ---- rows of a block ---- */

/* A block of scores. Row r counts its first keys alone: the others come later than it, or behind the sample's end. */
typedef struct gcpi_attention_block {
    const gcpi_attention *a;
    const gcp_target *target;
    int rows, first, keys, from, end;      /* rows of the block; its first row; keys, the first one; the sample's end */
    ptrdiff_t pitch;                       /* of scores, gradients */
    gcp_real *scores, *gradients;
    const gcp_real *bias; ptrdiff_t bias_pitch;    /* NULL: none */
    gcp_real *top, *result; double *sum;   /* forward: of each row; the sums of values [rows][e] */
    const gcp_real *y, *dy, *all;          /* backward: results, their gradients, the logarithms of the rows' sums */
    ptrdiff_t y_pitch, dy_pitch, all_pitch;
} gcpi_attention_block;

GCPI_BODY int gcpi_attention_seen(const gcpi_attention_block *b, int r)
{
    int end = b->end;
    if (b->a->causal) end = GCPI_MIN(end, b->first + r + 1 + b->a->keys - b->a->rows);
    return GCPI_MAX(0, GCPI_MIN(end - b->from, b->keys));
}
GCPI_BODY void gcpi_attention_scaled(const gcpi_attention_block *b, int r, int n)
{
    gcp_real *s = b->scores + r * b->pitch;
    const gcp_real scale = b->a->scale, *bias = b->bias ? b->bias + r * b->bias_pitch : NULL;
    if (bias) GCPI_EACH for (int i = 0; i < n; i++) s[i] = s[i] * scale + bias[i];
    else GCPI_EACH for (int i = 0; i < n; i++) s[i] *= scale;
}
/* Scores become weights, relative to the row's largest score so far; sums so far are made relative to it, too. */
GCPI_BODY void gcpi_attention_weigh_body(const gcpi_attention_block *b, int fused)
{
    for (int r = 0; r < b->rows; r++) {
        gcp_real *s = b->scores + r * b->pitch, *result = b->result + (ptrdiff_t)r * b->a->e;
        const int n = gcpi_attention_seen(b, r), e = b->a->e;
        for (int i = n; i < b->keys; i++) s[i] = 0;
        if (n == 0) continue;
        gcpi_attention_scaled(b, r, n);
        const gcp_real top = gcpi_row_top(s, n), before = b->top[r];
        if (top == (gcp_real)-HUGE_VAL) {                    /* a bias hides all, or all but NaN */
            for (int i = 0; i < n; i++) { s[i] = s[i] != s[i] ? s[i] : 0; b->sum[r] += (double)s[i]; }
            continue;
        }
        if (top > before) {
            const gcp_real share = gcpi_exp1(before - top);
            b->top[r] = top;
            b->sum[r] *= (double)share;
            if (b->from) GCPI_EACH for (int i = 0; i < e; i++) result[i] *= share;
        }
        b->sum[r] += gcpi_row_exp(fused, s, s, b->top[r], n);
    }
}
/* Scores become the weights of forward; a row's gradient of weights becomes that of its scores before the scale. */
GCPI_BODY void gcpi_attention_again_body(const gcpi_attention_block *b, int fused)
{
    (void)fused;
    for (int r = 0; r < b->rows; r++) {
        gcp_real *s = b->scores + r * b->pitch, *g = b->gradients + r * b->pitch;
        const gcp_real all = b->all[r * b->all_pitch], *y = b->y + r * b->y_pitch, *dy = b->dy + r * b->dy_pitch;
        const int n = all == (gcp_real)-HUGE_VAL ? 0 : gcpi_attention_seen(b, r);
        double sum;
        GCPI_ROW_SUM(sum, b->a->e, i, (double)(y[i] * dy[i]))
        const gcp_real dot = (gcp_real)sum;
        for (int i = n; i < b->keys; i++) s[i] = g[i] = 0;
        gcpi_attention_scaled(b, r, n);
        GCPI_EACH for (int i = 0; i < n; i++) {
            s[i] = gcpi_exp1(s[i] - all);
            g[i] = s[i] * (g[i] - dot);
        }
    }
}
#define GCPI_ATTENTION_LOOP(NAME)                                                                          \
    GCPI_EACH_SET(NAME, (const gcpi_attention_block *b), (b), b->target, NAME##_body(b, 0), NAME##_body(b, 1))
GCPI_CALLS
GCPI_ATTENTION_LOOP(gcpi_attention_weigh)
GCPI_ATTENTION_LOOP(gcpi_attention_again)
GCPI_CALLS_END
