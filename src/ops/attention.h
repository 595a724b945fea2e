/* Attention: softmax(scale q k' + bias) v, a head at a time. Scores are made block by block and never kept: of each
   row only the logarithm of its sum is (output 1), and backward makes the scores again (Rabe and Staats 2021, "Self-
   attention does not need O(n^2) memory"; Dao et al. 2022, "FlashAttention"). Blocks depend on the shapes alone. */

/* ---- tasks ---- */

typedef struct gcpi_attention_job {
    const gcp_call *call;
    gcpi_attention a;
    gcpi_attention_room room;
    gcpi_attention_pars pars;
    int blocks, once;                      /* of rows, or of keys; see gcpi_attention_once */
} gcpi_attention_job;

static gcpi_attention_job gcpi_attention_job_of(const gcp_call *c, int backward)
{
    gcpi_attention_job j;
    gcp_shape in[GCP_MAX_INPUTS];
    for (int i = 0; i < c->inputs; i++) in[i] = c->in[i].shape;
    j.call = c;
    j.a = gcpi_attention_of(gcpi_attr(c->attributes), in);
    j.room = gcpi_attention_room_of(&j.a, c->target, c->store, backward);
    j.pars = gcpi_attention_pars_of(&j.a, c->target, c->store);
    j.blocks = j.once = 0;
    return j;
}
/* The part of a tensor that belongs to a sample's head of `width` channels, from a token on. */
static gcpi_array gcpi_head(const gcp_view *v, int sample, int token, int head, int width)
{
    return gcpi_elements(v, (size_t)sample * (size_t)gcpi_tokens(v->shape) + (size_t)token, head * width);
}
/* The logarithm of a row's sum: a gcp_real in every plan. */
static gcp_real *gcpi_attention_sum(const gcp_view *v, int sample, int token, int head)
{
    return (gcp_real *)gcpi_head(v, sample, token, head, 1).at;
}
static int gcpi_attention_end(const gcpi_attention_job *j, int sample)
{
    const int32_t end = j->a.lengths ? ((const int32_t *)j->call->in[j->a.lengths].data)[sample] : j->a.keys;
    return GCPI_MAX(0, GCPI_MIN(j->a.keys, end));
}
/* Where the bias of a sample's head begins, at a row and a key. */
static gcp_real *gcpi_attention_bias(const gcpi_attention_job *j, const gcp_view *v, int sample, int head, int row,
                                     int key)
{
    const ptrdiff_t at = ((ptrdiff_t)(sample % j->a.biases) * j->a.heads + head) * j->a.rows + row;
    return (gcp_real *)v->data + at * v->pitch + key;
}
/* Keys from here on are seen by no row of a block that ends before row `end`. */
static int gcpi_attention_last(const gcpi_attention *a, int end, int sample_end)
{
    return a->causal ? GCPI_MAX(0, GCPI_MIN(sample_end, end + a->keys - a->rows)) : sample_end;
}
static gcpi_attention_block gcpi_attention_block_at(const gcpi_attention_job *j, int sample, int head, int row, int key,
                                                    int keys, unsigned char *room)
{
    const gcpi_attention *a = &j->a;
    gcpi_attention_block b;
    memset(&b, 0, sizeof b);
    b.a = a; b.target = j->call->target;
    b.first = row; b.rows = GCPI_MIN(a->rows - row, a->block);
    b.end = gcpi_attention_end(j, sample);
    b.from = key; b.keys = GCPI_MIN(a->keys - key, keys);
    if (gcpi_attention_cuts(a)) {
        const int seen = gcpi_attention_last(a, row + b.rows, a->keys) - key, step = GCPI_ATTENTION_STEP;
        b.keys = GCPI_MIN(b.keys, GCPI_MAX(1, gcpi_ceil(seen, step)) * step);
    }
    b.pitch = gcpi_attention_pitch(b.keys);
    b.scores = (gcp_real *)(void *)(room + j->room.scratch);
    b.gradients = (gcp_real *)(void *)(room + j->room.scratch + j->room.scores);
    if (a->bias) {
        b.bias = gcpi_attention_bias(j, &j->call->in[a->bias], sample, head, row, key);
        b.bias_pitch = j->call->in[a->bias].pitch;
    }
    return b;
}
static void gcpi_attention_scores(const gcpi_attention_job *j, const gcpi_attention_block *b, int sample, int head,
                                  void *scratch)
{
    const gcpi_attention *a = &j->a;
    const gcp_view *q = &j->call->in[0], *k = &j->call->in[1];
    gcpi_gemm(0, 1, b->rows, b->keys, a->d, gcpi_head(q, sample, b->first, head, a->d), q->pitch,
              gcpi_head(k, sample, b->from, head / a->group, a->d), k->pitch, NULL, gcpi_reals(b->scores), b->pitch, 0,
              scratch, &j->pars.par);
}

/* Rows of from, `step` values apart, times scale, are stored or added. */
GCPI_LOOP void gcpi_attention_scale(gcp_real *to, ptrdiff_t pitch, int accumulate, const gcp_real *from, ptrdiff_t step,
                                    int rows, int width, gcp_real scale)
{
    for (int r = 0; r < rows; r++, to += pitch, from += step) {
        if (accumulate) GCPI_EACH for (int i = 0; i < width; i++) to[i] += from[i] * scale;
        else GCPI_EACH for (int i = 0; i < width; i++) to[i] = from[i] * scale;
    }
}
static void gcpi_attention_store(const gcpi_attention_job *j, gcpi_array to, ptrdiff_t pitch, int accumulate,
                                 const gcp_real *from, int rows, int width, gcp_real scale)
{
    const gcpi_halves *h = gcpi_halves_of(j->pars.par.isa);
    gcp_real part[GCPI_PIECE];
    if (!to.half) gcpi_attention_scale((gcp_real *)to.at, pitch, accumulate, from, width, rows, width, scale);
    for (int r = 0; to.half && r < rows; r++)
        for (int i = 0, n; i < width; i += n) {
            const gcpi_array there = gcpi_array_at(to, r * pitch + i);
            n = GCPI_MIN(width - i, (int)GCPI_PIECE);
            if (accumulate) gcpi_array_load(h, there, 0, part, 0, 1, n);
            gcpi_attention_scale(part, 0, accumulate, from + (ptrdiff_t)r * width + i, 0, 1, n, scale);
            gcpi_array_store(h, there, 0, part, 0, 1, n);
        }
}
static void gcpi_attention_task(void *arg, int index, int worker)
{
    const gcpi_attention_job *j = (const gcpi_attention_job *)arg;
    const gcpi_attention *a = &j->a;
    const gcp_call *c = j->call;
    const int row = index % j->blocks * a->block, head = index / j->blocks % a->heads,
              sample = index / j->blocks / a->heads, rows = GCPI_MIN(a->rows - row, a->block);
    unsigned char *room = (unsigned char *)c->workspace + worker * j->room.bytes;
    double *sum = (double *)(void *)(room + j->room.scratch + 2 * j->room.scores);
    gcp_real *top = (gcp_real *)(void *)(sum + rows), *result = top + rows;
    const int last = gcpi_attention_last(a, row + rows, gcpi_attention_end(j, sample));
    for (int r = 0; r < rows; r++) { top[r] = (gcp_real)-HUGE_VAL; sum[r] = 0; }
    memset(result, 0, (size_t)rows * (size_t)a->e * sizeof *result);
    for (int key = 0; key < last; key += GCPI_ATTENTION_KEYS) {
        gcpi_attention_block b = gcpi_attention_block_at(j, sample, head, row, key, GCPI_ATTENTION_KEYS, room);
        b.top = top; b.sum = sum; b.result = result;
        gcpi_attention_scores(j, &b, sample, head, room);
        gcpi_attention_weigh(&b);
        gcpi_gemm(0, 0, rows, a->e, b.keys, gcpi_reals(b.scores), b.pitch,
                  gcpi_head(&c->in[2], sample, key, head / a->group, a->e), c->in[2].pitch, NULL, gcpi_reals(result),
                  a->e, 1, room, &j->pars.inner);
    }
    for (int r = 0; r < rows; r++) {
        const gcp_real share = sum[r] > 0 || sum[r] != sum[r] ? (gcp_real)(1 / sum[r]) : 0;
        gcpi_attention_store(j, gcpi_head(&c->out[0], sample, row + r, head, a->e), 0, 0, result + (ptrdiff_t)r * a->e,
                             1, a->e, share);
        if (c->out[1].data)
            *gcpi_attention_sum(&c->out[1], sample, row + r, head) = top[r] + (gcp_real)gcpi_log(sum[r]);
    }
}
static void gcpi_attention_forward(const gcp_call *c)
{
    gcpi_attention_job j = gcpi_attention_job_of(c, 0);
    j.blocks = gcpi_ceil(j.a.rows, j.a.block);
    gcpi_parallel(c->target, j.a.n * j.a.heads * j.blocks, gcpi_attention_task, &j);
}

/* The rows of a block in a tensor of results: where they lie, or in the room. */
static const gcp_real *gcpi_attention_rows(const gcpi_attention_job *j, const gcp_view *v,
                                           const gcpi_attention_block *b, int sample, int head, void *room,
                                           ptrdiff_t *pitch)
{
    const gcpi_array rows = gcpi_head(v, sample, b->first, head, j->a.e);
    *pitch = rows.half ? j->a.e : v->pitch;
    if (!rows.half) return (const gcp_real *)rows.at;
    gcpi_array_load(gcpi_halves_of(j->pars.par.isa), rows, v->pitch, (gcp_real *)room, j->a.e, b->rows, j->a.e);
    return (const gcp_real *)room;
}

/* A block's weights and the gradients of its scores. */
static gcpi_attention_block gcpi_attention_back(const gcpi_attention_job *j, int sample, int head, int row, int key,
                                                unsigned char *room)
{
    const gcpi_attention *a = &j->a;
    const gcp_call *c = j->call;
    const gcp_view *dy = &c->dout[0], *v = &c->in[2];
    gcpi_attention_block b = gcpi_attention_block_at(j, sample, head, row, key, a->tile, room);
    unsigned char *results = room + j->room.bytes - 2 * j->room.results;
    b.y = gcpi_attention_rows(j, &c->out[0], &b, sample, head, results, &b.y_pitch);
    b.dy = gcpi_attention_rows(j, dy, &b, sample, head, results + j->room.results, &b.dy_pitch);
    b.all = gcpi_attention_sum(&c->out[1], sample, row, head); b.all_pitch = c->out[1].pitch;
    gcpi_attention_scores(j, &b, sample, head, room);
    gcpi_gemm(0, 1, b.rows, b.keys, a->e, gcpi_head(dy, sample, row, head, a->e), dy->pitch,
              gcpi_head(v, sample, key, head / a->group, a->e), v->pitch, NULL, gcpi_reals(b.gradients), b.pitch, 0,
              room, &j->pars.par);
    gcpi_attention_again(&b);
    return b;
}
/* dq of a block of rows, in sums so far: where it is kept, and its values from row to row. */
typedef struct gcpi_attention_dq { gcp_real *at; ptrdiff_t pitch; } gcpi_attention_dq;

/* The gradient of the bias, and of q: of these rows, from the keys of block b. */
static void gcpi_attention_rows_back(const gcpi_attention_job *j, const gcpi_attention_block *b, int sample, int head,
                                     gcpi_attention_dq dq, void *scratch)
{
    const gcpi_attention *a = &j->a;
    const gcp_call *c = j->call;
    const gcp_view *k = &c->in[1], *db = a->bias ? &c->din[a->bias] : NULL;
    if (db && db->data)
        gcpi_attention_scale(gcpi_attention_bias(j, db, sample, head, b->first, b->from), db->pitch,
                             db->accumulate || sample >= a->biases, b->gradients, b->pitch, b->rows, b->keys, 1);
    if (c->din[0].data)
        gcpi_gemm(0, 0, b->rows, a->d, b->keys, gcpi_reals(b->gradients), b->pitch,
                  gcpi_head(k, sample, b->from, head / a->group, a->d), k->pitch, NULL, gcpi_reals(dq.at), dq.pitch,
                  b->from > 0, scratch, &j->pars.inner);
}
static void gcpi_attention_dq_store(const gcpi_attention_job *j, int sample, int head, int row, int rows,
                                    const gcp_real *dq)
{
    const gcp_view *d = &j->call->din[0];
    if (d->data)
        gcpi_attention_store(j, gcpi_head(d, sample, row, head, j->a.d), d->pitch, d->accumulate, dq, rows, j->a.d,
                             j->a.scale);
}

/* What a worker sums: dk, dv of a block of keys, dq of a block of rows. */
static gcp_real *gcpi_attention_sums(const gcpi_attention_job *j, unsigned char *room)
{
    return (gcp_real *)(void *)(room + j->room.scratch + 2 * j->room.scores);
}
/* Adds what a block of rows gives to dk and dv; to dq, where it is made here, too. */
static void gcpi_attention_block_back(const gcpi_attention_job *j, int sample, int head, int row, int key, gcp_real *dk,
                                      gcp_real *dv, gcpi_attention_dq dq, unsigned char *room)
{
    const gcpi_attention *a = &j->a;
    const gcp_call *c = j->call;
    const gcp_view *dy = &c->dout[0], *q = &c->in[0];
    const gcpi_attention_block b = gcpi_attention_back(j, sample, head, row, key, room);
    if (c->din[2].data)
        gcpi_gemm(1, 0, b.keys, a->e, b.rows, gcpi_reals(b.scores), b.pitch, gcpi_head(dy, sample, row, head, a->e),
                  dy->pitch, NULL, gcpi_reals(dv), a->e, 1, room, &j->pars.inner);
    if (c->din[1].data)
        gcpi_gemm(1, 0, b.keys, a->d, b.rows, gcpi_reals(b.gradients), b.pitch, gcpi_head(q, sample, row, head, a->d),
                  q->pitch, NULL, gcpi_reals(dk), a->d, 1, room, &j->pars.inner);
    if (j->once) gcpi_attention_rows_back(j, &b, sample, head, dq, room);
}
/* The rows from `row` on that meet the keys from `key` on. once: dq is summed in its tensor, and scaled with the last
   keys that these rows see; where all keys come at once, it is summed in the room. */
static void gcpi_attention_keys_rows(const gcpi_attention_job *j, int sample, int head, int row, int key, gcp_real *dk,
                                     gcp_real *dv, unsigned char *room)
{
    const gcpi_attention *a = &j->a;
    const gcp_view *d = &j->call->din[0];
    const int rows = GCPI_MIN(a->rows - row, a->block), whole = a->tile == a->keys,
              last = gcpi_attention_last(a, row + rows, gcpi_attention_end(j, sample)), end = gcpi_max(last, 1);
    gcpi_attention_dq dq = { gcpi_attention_sums(j, room) + (ptrdiff_t)a->tile * (a->d + a->e), a->d };
    if (j->once && !whole) dq.at = (gcp_real *)gcpi_head(d, sample, row, head, a->d).at, dq.pitch = d->pitch;
    if (last > key || whole) gcpi_attention_block_back(j, sample, head, row, key, dk, dv, dq, room);
    else if (j->once && key == 0)
        for (int r = 0; r < rows; r++) memset(dq.at + r * dq.pitch, 0, (size_t)a->d * sizeof *dq.at);
    if (whole) gcpi_attention_dq_store(j, sample, head, row, rows, dq.at);
    else if (j->once && end > key && end <= key + a->tile)
        gcpi_attention_scale(dq.at, dq.pitch, 0, dq.at, dq.pitch, rows, a->d, a->scale);
}
/* A sample's head of k and v, and a block of its keys. */
static void gcpi_attention_keys_back(const gcpi_attention_job *j, int sample, int kv, int key, unsigned char *room)
{
    const gcpi_attention *a = &j->a;
    const gcp_call *c = j->call;
    const int keys = GCPI_MIN(a->keys - key, a->tile);
    gcp_real *dk = gcpi_attention_sums(j, room), *dv = dk + (ptrdiff_t)keys * a->d;
    memset(dk, 0, (size_t)keys * (size_t)(a->d + a->e) * sizeof *dk);
    for (int head = kv * a->group; head < (kv + 1) * a->group; head++)
        for (int row = 0; row < a->rows; row += a->block)
            gcpi_attention_keys_rows(j, sample, head, row, key, dk, dv, room);
    const gcp_view *to[2] = { &c->din[1], &c->din[2] };
    const gcp_real *from[2] = { dk, dv }, scale[2] = { a->scale, 1 };
    const int width[2] = { a->d, a->e };
    for (int i = 0; i < 2; i++)
        if (to[i]->data)
            gcpi_attention_store(j, gcpi_head(to[i], sample, key, kv, width[i]), to[i]->pitch, to[i]->accumulate,
                                 from[i], keys, width[i], scale[i]);
}
/* One task: a block of rows of a head. */
static void gcpi_attention_queries_back(const gcpi_attention_job *j, int sample, int head, int row, unsigned char *room)
{
    const gcpi_attention *a = &j->a;
    const int rows = GCPI_MIN(a->rows - row, a->block);
    const int last = a->bias ? a->keys : gcpi_attention_last(a, row + rows, gcpi_attention_end(j, sample));
    const gcpi_attention_dq dq = { gcpi_attention_sums(j, room), a->d };
    if (last == 0) memset(dq.at, 0, (size_t)rows * (size_t)a->d * sizeof *dq.at);
    for (int key = 0; key < last; key += a->tile) {
        gcpi_attention_block b = gcpi_attention_back(j, sample, head, row, key, room);
        gcpi_attention_rows_back(j, &b, sample, head, dq, room);
    }
    gcpi_attention_dq_store(j, sample, head, row, rows, dq.at);
}
/* A bias that samples share (those of one remainder by the number of biases) sums its gradient over them in their
   order: a task goes over all that share one. */
static int gcpi_attention_samples(const gcpi_attention_job *j)
{
    return j->a.bias && j->call->din[j->a.bias].data ? j->a.n / j->a.biases : 1;
}
static void gcpi_attention_keys_task(void *arg, int index, int worker)
{
    const gcpi_attention_job *j = (const gcpi_attention_job *)arg;
    const gcpi_attention *a = &j->a;
    const int block = index % j->blocks, kv = index / j->blocks % a->kv, first = index / j->blocks / a->kv,
              together = a->tile == a->keys ? gcpi_attention_samples(j) : 1;
    unsigned char *room = (unsigned char *)j->call->workspace + worker * j->room.bytes;
    for (int i = 0; i < together; i++)
        for (int key = block * a->tile; key < (j->once ? a->keys : (block + 1) * a->tile); key += a->tile)
            gcpi_attention_keys_back(j, first + i * a->biases, kv, key, room);
}
static void gcpi_attention_queries_task(void *arg, int index, int worker)
{
    const gcpi_attention_job *j = (const gcpi_attention_job *)arg;
    const int block = index % j->blocks, head = index / j->blocks % j->a.heads, first = index / j->blocks / j->a.heads;
    for (int i = 0; i < gcpi_attention_samples(j); i++)
        gcpi_attention_queries_back(j, first + i * j->a.biases, head, block * j->a.block,
                                    (unsigned char *)j->call->workspace + worker * j->room.bytes);
}
/* Whether dq may be summed in its tensor, while dk and dv are stored. */
static int gcpi_attention_dq_apart(const gcp_call *c)
{
    const gcp_view *q = &c->din[0];
    return q->data && !q->accumulate && !gcpi_elements(q, 0, 0).half && q->data != c->din[1].data &&
           q->data != c->din[2].data;
}
static void gcpi_attention_backward(const gcp_call *c)
{
    gcpi_attention_job j = gcpi_attention_job_of(c, 1);
    const int whole = j.a.tile == j.a.keys, together = gcpi_attention_samples(&j);
    j.once = whole || (gcpi_attention_dq_apart(c) && gcpi_attention_once(&j.a, c->target));
    /* dq comes first: where q and k are one tensor, dk is added to it */
    j.blocks = gcpi_ceil(j.a.rows, j.a.block);
    if (!j.once && (c->din[0].data || (j.a.bias && c->din[j.a.bias].data)))
        gcpi_parallel(c->target, j.a.n / together * j.a.heads * j.blocks, gcpi_attention_queries_task, &j);
    j.blocks = j.once ? 1 : gcpi_ceil(j.a.keys, j.a.tile);
    if (j.once || c->din[1].data || c->din[2].data)
        gcpi_parallel(c->target, (whole ? j.a.n / together : j.a.n) * j.a.kv * j.blocks, gcpi_attention_keys_task, &j);
}

/* ---- the row ---- */

static int gcpi_attention_shape(gcp_shape_call *s)
{
    const gcpi_attributes *at = gcpi_attr(s->attributes);
    const gcp_shape *q = &s->in[0], *k = &s->in[1], *v = &s->in[2];
    const int heads = at->attention.heads, d = q->d[3] / heads;
    if (s->in_dtype[0] != GCP_DTYPE_REAL || s->in_dtype[1] != GCP_DTYPE_REAL || s->in_dtype[2] != GCP_DTYPE_REAL)
        return gcpi_refuse_type(s, "q, k and v are real numbers, not integers");
    if (q->d[3] % heads || k->d[3] % d || heads % (k->d[3] / d) || v->d[3] % (k->d[3] / d))
        return gcpi_refuse(s, "%d heads of q %s, k %s and v %s: each head of q has as many channels as one of k, and "
                           "the heads of k and v divide .heads", heads, GCPI_SHAPE_TEXT(*q), GCPI_SHAPE_TEXT(*k),
                           GCPI_SHAPE_TEXT(*v));
    if (q->d[0] != k->d[0] || k->d[0] != v->d[0] || k->d[1] != v->d[1] || k->d[2] != v->d[2])
        return gcpi_refuse(s, "q %s, k %s and v %s: as many samples, and as many tokens of k as of v",
                           GCPI_SHAPE_TEXT(*q), GCPI_SHAPE_TEXT(*k), GCPI_SHAPE_TEXT(*v));
    if (q->d[3] > GCPI_CHANNELS_MAX / 4 || (int64_t)v->d[3] / (k->d[3] / d) * heads > GCPI_CHANNELS_MAX / 4)
        return gcpi_refuse(s, "q %s, v %s and %d heads: at most 2^28 channels of q and of the result",
                           GCPI_SHAPE_TEXT(*q), GCPI_SHAPE_TEXT(*v), heads);
    if ((double)q->d[0] * heads * ((double)q->d[1] * q->d[2] + (double)k->d[1] * k->d[2]) > INT32_MAX)
        return gcpi_refuse(s, "q %s and k %s: at most 2^31 - 1 rows and keys of all heads", GCPI_SHAPE_TEXT(*q),
                           GCPI_SHAPE_TEXT(*k));
    const int bias = at->attention.bias, lengths = at->attention.lengths;
    const gcp_shape *b = bias ? &s->in[bias] : NULL;
    if (b && (b->d[1] != heads || b->d[2] != gcpi_tokens(*q) || b->d[3] != gcpi_tokens(*k) ||
              q->d[0] % b->d[0]))
        return gcpi_refuse(s, ".bias of %s for %d samples, %d heads, %d rows, %d keys: (samples or a divisor of them, "
                           "heads, rows, keys)", GCPI_SHAPE_TEXT(*b), q->d[0], heads, gcpi_tokens(*q), gcpi_tokens(*k));
    if (bias && s->in_dtype[bias] != GCP_DTYPE_REAL) return gcpi_refuse_type(s, ".bias is real numbers, not integers");
    if (lengths && s->in_dtype[lengths] != GCP_DTYPE_I32) return gcpi_refuse_type(s, ".lengths is of gcp_labels");
    if (lengths && gcpi_count(s->in[lengths]) != (size_t)q->d[0])
        return gcpi_refuse(s, "%zu .lengths for %d samples", gcpi_count(s->in[lengths]), q->d[0]);
    s->out[0] = s->out[1] = *q;
    s->out[0].d[3] = v->d[3] / (k->d[3] / d) * heads;
    s->out[1].d[3] = heads;
    return 1;
}
static void gcpi_attention_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    const gcpi_attention a = gcpi_attention_of(gcpi_attr(c->attributes), c->in);
    const double one = 2.0 * a.n * a.heads * a.rows * a.keys * (a.causal ? 0.5 : 1);
    const double keys = one * (2 * a.d + 2 * a.e),
                 again = gcpi_attention_once(&a, c->target) ? one * a.d : one * (2 * a.d + a.e);
    cost->flops = c->backward ? keys + again : one * (a.d + a.e);
    cost->workspace =
        (size_t)gcpi_attention_room_of(&a, c->target, c->store, c->backward).bytes * (size_t)c->target->threads;
}
static gcpi_label_range gcpi_attention_lengths(const gcpi_attributes *a, gcp_shape other)
{
    gcpi_label_range range = { a->attention.keys + 1, 0, 0 };
    (void)other;
    return range;
}
static void gcpi_attention_call(gcpi_code *c, const gcpi_op *op)
{
    const gcp_shape q = gcpi_code_input_shape(c, op, 0);
    const int heads = op->attributes.attention.heads, given[2] = { op->attributes.attention.lengths,
                                                                   op->attributes.attention.bias };
    gcpi_code_call(c, op, "attention", 0, 3);
    gcpi_code_int(c, "heads", heads, 1);
    gcpi_code_int(c, "causal", op->attributes.attention.causal, 0);
    gcpi_code_real(c, "scale", op->attributes.attention.scale, 1 / sqrt((double)(q.d[3] / heads)));
    for (int i = 0; i < 2; i++) {
        if (!given[i]) continue;
        gcpi_say(c->w, i ? ", .bias = " : ", .lengths = ");
        gcpi_code_input(c, op, given[i]);
    }
}
static void gcpi_attention_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_attention_call;
    const int bias = op->attributes.attention.bias;
    f->exact = GCPI_OUT(1);
    f->floats = bias ? GCPI_IN(bias) : 0;
    if (bias && op->attributes.attention.shared) f->shared = GCPI_IN(bias);
    if (op->attributes.attention.lengths) f->labels = gcpi_attention_lengths;
}
static const gcpi_op_row gcpi_attention_row = {
    GCP_OP_ATTENTION,
    { "attention", gcpi_attention_shape, gcpi_attention_forward, gcpi_attention_backward, gcpi_attention_cost,
      GCPI_IN(0) | GCPI_IN(1) | GCPI_IN(2) | GCPI_IN(3) | GCPI_IN(4), GCPI_OUT(0) | GCPI_OUT(1),
      GCP_FLAG_COSTLY | GCP_FLAG_SAMPLES_APART | GCP_FLAG_BF16, 2, NULL },
    gcpi_attention_facts
};

GCPI_DEF gcp_tensor gcp_attention_at(gcp_tensor q, gcp_tensor k, gcp_tensor v, gcp_attention_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    gcp_tensor in[5];
    int count = 3;
    const gcp_shape x = gcp_shape_of(q), y = gcp_shape_of(k), bias = gcp_shape_of(o.bias);
    in[0] = q; in[1] = k; in[2] = v;
    if (!gcpi_enter(q, o.at, "attention")) return gcpi_nil(q.tape);
    if (o.heads < 0 || o.heads > x.d[3])
        return gcpi_bad_option(q, o.at, "attention", ".heads", o.heads, "1 to the channels of q; default 1");
    if (o.scale != 0 && !gcpi_finite((double)(gcp_real)o.scale))
        return gcpi_bad_option(q, o.at, "attention", ".scale", o.scale, "finite; default 1 / sqrt(channels of a head)");
    a.attention.heads = o.heads ? o.heads : 1;
    a.attention.causal = o.causal != 0;
    a.attention.scale = gcpi_option(o.scale, 1 / sqrt((double)(x.d[3] / a.attention.heads)));
    a.attention.keys = gcpi_tokens(y);
    a.attention.shared = bias.d[0] < x.d[0];
    if (!gcp_is_nil(o.lengths)) in[a.attention.lengths = count++] = o.lengths;
    if (!gcp_is_nil(o.bias)) in[a.attention.bias = count++] = o.bias;
    return gcpi_simple(&gcpi_attention_row, in, count, &a, o.name, o.at);
}
