/* A block of a call's rows in floats. Ops that go pixel by pixel take such a block for a call of fewer pixels: their
   loops know gcp_real alone. Operands are widened to a worker's room, which stays in L1 where rows are short, and what
   was made is rounded when it is stored. */

/* The row operands of a call, all of one width, as bits: those that are read, those that are made. typed: there is a
   loop for halves alone, too (GCPI_TYPED_WIDE: not for an x86 without AVX2, so that less is compiled); then blocks are
   for operands of both kinds. singles: operands of one value a row. */
enum { GCPI_TYPED = 1, GCPI_TYPED_WIDE };
typedef struct gcpi_used { unsigned reads, makes; int typed; unsigned singles; } gcpi_used;
enum { GCPI_USED_IN = 0, GCPI_USED_OUT = 8, GCPI_USED_DIN = 16, GCPI_USED_DOUT = 24 };
#define GCPI_USES_IN(i)   (1u << (GCPI_USED_IN + (i)))
#define GCPI_USES_OUT(i)  (1u << (GCPI_USED_OUT + (i)))
#define GCPI_USES_DIN(i)  (1u << (GCPI_USED_DIN + (i)))
#define GCPI_USES_DOUT(i) (1u << (GCPI_USED_DOUT + (i)))
static const gcpi_used gcpi_uses_forward = { GCPI_USES_IN(0), GCPI_USES_OUT(0), 0, 0 };
static const gcpi_used gcpi_uses_backward = { GCPI_USES_IN(0) | GCPI_USES_DOUT(0), GCPI_USES_DIN(0), 0, 0 };

/* slots: row operands of a call, and one more for values in between. */
enum { GCPI_BLOCK_VALUES = 2048, GCPI_BLOCK_SLOTS = 4, GCPI_BLOCK_INPUTS = 6, GCPI_BLOCK_OUTPUTS = 2 };
typedef struct gcpi_block_call {
    gcp_call call;                     /* of the block */
    const gcp_call *whole;
    gcp_view in[GCPI_BLOCK_INPUTS], din[GCPI_BLOCK_INPUTS], out[GCPI_BLOCK_OUTPUTS], dout[GCPI_BLOCK_OUTPUTS];
    gcpi_used used;
    size_t first, count;               /* rows */
    int width, slots;
    gcp_real *room;
} gcpi_block_call;

/* Rows of a block; masked: a multiple of what makes whole bytes of a mask. */
static size_t gcpi_block_rows(size_t width, int masked)
{
    const size_t bits = width & (~width + 1), step = !masked || bits >= 8 ? 1 : 8 / bits;
    return GCPI_MAX((size_t)1, GCPI_BLOCK_VALUES / width / step) * step;
}
static size_t gcpi_block_values(size_t width, int masked) { return gcpi_block_rows(width, masked) * width; }
static size_t gcpi_block_room(size_t width, int masked)        /* bytes, of a worker */
{
    return gcpi_round(GCPI_BLOCK_SLOTS * gcpi_block_values(width, masked) * sizeof(gcp_real), 64);
}
/* Bytes of all workers' rooms: first in a call's workspace, where a plan stores bfloat16. */
static size_t gcpi_block_workspace(gcp_store store, gcp_shape s, const gcp_target *target, int masked)
{
    return store ? gcpi_block_room((size_t)s.d[3], masked) * (size_t)target->threads : 0;
}

/* The cost of an op that needs no other workspace. */
static void gcpi_rows_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = gcpi_block_workspace(c->store, c->in[0], c->target, 0);
}
static int gcpi_masks(gcpi_used used) { return used.makes & GCPI_USES_OUT(1) ? 1 : 0; }

static void gcpi_block_single(const gcpi_block_call *b, const gcp_view *from, gcp_view *to)
{
    to->data = (unsigned char *)from->data + gcpi_row_bytes(from->dtype, b->first);
}
/* Visits the row operands: of the whole call, and beside them the block's. */
typedef void gcpi_block_visit(gcpi_block_call *b, const gcp_view *whole, gcp_view *part, int reads, int makes);
static void gcpi_block_each(gcpi_block_call *b, gcpi_block_visit *visit)
{
    const gcp_view *whole[4];
    gcp_view *const part[4] = { b->in, b->out, b->din, b->dout };
    whole[0] = b->whole->in; whole[1] = b->whole->out; whole[2] = b->whole->din; whole[3] = b->whole->dout;
    for (int bit = 0; bit < 32; bit++) {
        const int reads = b->used.reads >> bit & 1, makes = b->used.makes >> bit & 1,
                  single = b->used.singles >> bit & 1,
                  count = bit & GCPI_USED_OUT ? b->whole->outputs : b->whole->inputs;
        const gcp_view *from = &whole[bit / 8][bit % 8];
        if (bit % 8 >= count || !from->data) continue;
        if (reads || makes) visit(b, from, &part[bit / 8][bit % 8], reads, makes);
        else if (single) gcpi_block_single(b, from, &part[bit / 8][bit % 8]);
    }
}
/* Where rows lie side by side they are loaded and stored as one. */
static void gcpi_block_load(gcpi_block_call *b, const gcp_view *from, gcp_view *to, int reads, int makes)
{
    const gcpi_halves *h = gcpi_halves_of(b->whole->target->isa);
    const size_t width = (size_t)b->width;
    to->shape = gcpi_scalar();
    to->shape.d[2] = (int)b->count; to->shape.d[3] = b->width;
    if (from->dtype == GCP_DTYPE_BIT) {
        to->data = (unsigned char *)from->data + gcpi_row_bytes(from->dtype, b->first * width);
        return;
    }
    gcp_real *at = b->room + (size_t)b->slots++ * gcpi_block_values(width, gcpi_masks(b->used));
    to->data = at; to->dtype = GCP_DTYPE_REAL; to->pitch = b->width;
    if (!reads && !(makes && from->accumulate)) return;
    const int one = from->pitch == b->width;
    gcpi_array_load(h, gcpi_elements(from, b->first, 0), from->pitch, at, b->width, one ? 1 : (ptrdiff_t)b->count,
                   (ptrdiff_t)(one ? width * b->count : width));
}
static void gcpi_block_store(gcpi_block_call *b, const gcp_view *to, gcp_view *from, int reads, int makes)
{
    const gcpi_halves *h = gcpi_halves_of(b->whole->target->isa);
    const size_t width = (size_t)b->width;
    const int one = to->pitch == b->width;
    (void)reads;
    if (!makes || to->dtype == GCP_DTYPE_BIT) return;
    gcpi_array_store(h, gcpi_elements(to, b->first, 0), to->pitch, (const gcp_real *)from->data, b->width,
                    one ? 1 : (ptrdiff_t)b->count, (ptrdiff_t)(one ? width * b->count : width));
}

/* The call of rows [first, first + count) of one of that many channels; then what it made is stored. */
static void gcpi_block_open(gcpi_block_call *b, const gcp_call *c, gcpi_used used, int width, size_t first,
                            size_t count, void *room)
{
    b->whole = c; b->call = *c; b->used = used;
    b->width = width; b->first = first; b->count = count; b->slots = 0;
    b->room = (gcp_real *)room;
    memcpy(b->in, c->in, (size_t)GCPI_MIN(c->inputs, (int)GCPI_BLOCK_INPUTS) * sizeof *b->in);
    memcpy(b->din, c->din, (size_t)GCPI_MIN(c->inputs, (int)GCPI_BLOCK_INPUTS) * sizeof *b->din);
    memcpy(b->out, c->out, (size_t)GCPI_MIN(c->outputs, (int)GCPI_BLOCK_OUTPUTS) * sizeof *b->out);
    memcpy(b->dout, c->dout, (size_t)GCPI_MIN(c->outputs, (int)GCPI_BLOCK_OUTPUTS) * sizeof *b->dout);
    b->call.in = b->in; b->call.din = b->din; b->call.out = b->out; b->call.dout = b->dout;
    gcpi_block_each(b, gcpi_block_load);
}
static void gcpi_block_close(gcpi_block_call *b) { gcpi_block_each(b, gcpi_block_store); }

/* Whether there is no loop for the row operands as they lie, but by blocks. */
static void gcpi_block_found(gcpi_block_call *b, const gcp_view *whole, gcp_view *part, int reads, int makes)
{
    if (whole->dtype != GCP_DTYPE_BIT) b->slots |= whole->dtype == GCP_DTYPE_BF16 ? 1 : 2;
    (void)part; (void)reads; (void)makes;
}
static int gcpi_by_blocks(const gcp_call *c, gcpi_used used)
{
    gcpi_block_call b;
    if (!c->store) return 0;
    b.whole = c; b.used = used; b.used.singles = 0; b.slots = 0;
    gcpi_block_each(&b, gcpi_block_found);
    const int typed = used.typed == GCPI_TYPED_WIDE ? GCPI_TYPED_ANY || c->target->isa >= GCP_ISA_AVX2 : used.typed;
    return typed ? b.slots == 3 : b.slots & 1;
}

/* Passes by rows, chunk by chunk: a task of a job takes the rows from index * chunk on. means: of batch-norm's
   backward; share: of a loss's. */
typedef struct gcpi_norm_job {
    const gcp_call *call; const gcp_real *means; double share; size_t pixels, chunk;
} gcpi_norm_job;
typedef void gcpi_rows_task(void *arg, int index, int worker);
typedef struct gcpi_block_job { gcpi_norm_job rows; gcpi_rows_task *task; gcpi_used used; int width; } gcpi_block_job;

static gcpi_norm_job gcpi_norm_job_of(const gcp_call *c, gcp_shape shape)
{
    gcpi_norm_job job;
    job.call = c; job.means = NULL; job.share = 0; job.pixels = gcpi_pixels(shape);
    job.chunk = gcpi_task_rows(c->target, job.pixels, (size_t)shape.d[3]);
    return job;
}

/* The same task, for a job of one block at a time. */
static void gcpi_block_task(void *arg, int index, int worker)
{
    const gcpi_block_job *job = (const gcpi_block_job *)arg;
    const int masked = gcpi_masks(job->used);
    const size_t width = (size_t)job->width, step = gcpi_block_rows(width, masked),
                 start = (size_t)index * job->rows.chunk, last = GCPI_MIN(start + job->rows.chunk, job->rows.pixels);
    unsigned char *room = (unsigned char *)job->rows.call->workspace + (size_t)worker * gcpi_block_room(width, masked);
    for (size_t first = start, n; first < last; first += n) {
        gcpi_block_call b;
        gcpi_norm_job one = job->rows;
        n = GCPI_MIN(step, last - first);
        gcpi_block_open(&b, job->rows.call, job->used, job->width, first, n, room);
        one.call = &b.call; one.pixels = one.chunk = n;
        job->task(&one, 0, worker);
        gcpi_block_close(&b);
    }
}

/* width: of a row. blocks: as gcpi_by_blocks says, or the task needs them. */
static void gcpi_rows_run(const gcpi_norm_job *rows, int width, gcpi_used used, int blocks, gcpi_rows_task *task)
{
    gcpi_block_job job;
    job.rows = *rows; job.task = task; job.used = used; job.width = width;
    gcpi_parallel(rows->call->target, (int)((rows->pixels + rows->chunk - 1) / rows->chunk),
                  blocks ? gcpi_block_task : task, &job);
}
static void gcpi_norm_rows(const gcp_call *c, gcp_shape shape, const gcp_real *means, gcpi_used used,
                           gcpi_rows_task *task)
{
    gcpi_norm_job job = gcpi_norm_job_of(c, shape);
    job.means = means;
    gcpi_rows_run(&job, shape.d[3], used, gcpi_by_blocks(c, used), task);
}
