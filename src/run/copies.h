/* Copies to far memory and back. Of values, where the list says so; of optimiser slots, in each update. */

/* In the list each copy seems to be done at once. In fact it runs on until an instruction needs its bytes. */
static void gcpi_far_wait(gcpi_plan *core, int id)
{
    if (core->run.flying[id].end && core->p.target.copy_wait) core->p.target.copy_wait(core->p.target.context, id);
    core->run.flying[id].end = 0;
}

static void gcpi_far_wait_all(gcpi_plan *core)
{
    for (int id = 0; core->far_at && id < GCP_COPIES; id++) gcpi_far_wait(core, id);
}

/* Begins a copy, under the next number. Returns the number, to wait for. */
static int gcpi_copy_begin(gcpi_plan *core, unsigned char *to, const unsigned char *from, size_t bytes)
{
    const gcp_target *target = &core->p.target;
    int id = core->run.next_copy;
    gcpi_far_wait(core, id);
    core->run.next_copy = (id + 1) % GCP_COPIES;
    if (!target->copy_start) gcpi_bytes_copy(target, to, from, bytes);
    else target->copy_start(target->context, id, to, from, bytes);
    return id;
}

static void gcpi_far_start(gcpi_plan *core, const gcpi_task *t, int n)
{
    unsigned char *near = core->bound.slab + core->placed[n].offset, *far = core->bound.far + core->far_at[t->item];
    const int back = t->kind == GCPI_TASK_PREFETCH;
    const size_t bytes = core->p.items[t->item].bytes;
    int id = gcpi_copy_begin(core, back ? near : far, back ? far : near, bytes);
    gcpi_transfer *f = &core->run.flying[id];
    f->at = (size_t)core->placed[n].offset;
    f->end = f->at + bytes;
    f->item = t->item;
    f->back = back;
    if (!core->p.target.copy_start || core->opts.check) gcpi_far_wait(core, id);
}

/* Waits for the copies that must be done before the task (gcpi_meets). */
static void gcpi_far_meet(gcpi_plan *core, const gcpi_task *t, int n)
{
    for (int id = 0; core->far_at && id < GCP_COPIES; id++)
        if (gcpi_meets(&core->p, t, core->placed + n, &core->run.flying[id])) gcpi_far_wait(core, id);
}

/* Updates whose slots wait in far memory. */

/* A piece of a parameter on its way through the workspace: where its slots lie there, `slot` bytes apart. in, out:
   numbers of the copies of its slots. */
typedef struct gcpi_slots_piece {
    unsigned char *place;
    size_t slot, first, count;
    int in[2], out[2];
} gcpi_slots_piece;

/* back: from far memory, where the call of the whole has its slots */
static void gcpi_slots_copy(gcpi_plan *core, const gcp_call *whole, gcpi_slots_piece *x, int back)
{
    for (int k = 0; k < core->slots; k++) {
        unsigned char *far = (unsigned char *)((gcp_real *)whole->out[1 + k].data + x->first),
                      *near = x->place + (size_t)k * x->slot;
        (back ? x->in : x->out)[k] =
            gcpi_copy_begin(core, back ? near : far, back ? far : near, x->count * sizeof(gcp_real));
    }
}

static void gcpi_slots_wait(const gcpi_plan *core, const int *ids)
{
    for (int k = 0; k < core->slots && core->p.target.copy_wait; k++)
        core->p.target.copy_wait(core->p.target.context, ids[k]);
}

static void gcpi_slots_piece_of(const gcpi_plan *core, const gcp_call *c, size_t count, size_t index,
                                gcpi_slots_piece *x)
{
    x->first = index * GCPI_SLOTS_PIECE;
    x->count = GCPI_MIN((size_t)GCPI_SLOTS_PIECE, count - x->first);
    x->slot = gcpi_slots_place(count);
    x->place = (unsigned char *)c->workspace + (index % 2) * (size_t)core->slots * x->slot;
}

static void gcpi_slots_update(const gcpi_plan *core, const gcp_call *whole, const gcpi_slots_piece *x)
{
    gcp_call call = *whole;
    gcp_view from[3] = { whole->in[0], whole->in[1], whole->in[2] },
             to[3] = { whole->out[0], whole->out[1], whole->out[2] };
    const gcp_shape shape = { 1, { 1, 1, 1, (int)x->count } };
    from[0].data = (gcp_real *)from[0].data + x->first;
    to[0].data = (gcp_real *)to[0].data + x->first;
    for (int k = 0; k < core->slots; k++) to[1 + k].data = x->place + (size_t)k * x->slot;
    from[0].shape = to[0].shape = to[1].shape = to[2].shape = shape;
    from[0].pitch = to[0].pitch = to[1].pitch = to[2].pitch = (ptrdiff_t)x->count;
    call.in = from;
    call.out = to;
    gcpi_row_for(&core->p.target, NULL, GCP_ROW_UPDATE)->forward(&call);
}

/* While a piece is updated, the next one arrives, in the place that the one before it has left. An update is done piece
   by piece, so bits are those of the whole. gcp_measure changes no slots. */
static void gcpi_run_far_update(gcpi_plan *core, const gcp_call *whole)
{
    const size_t count = gcpi_count(whole->in[0].shape), pieces = (count + GCPI_SLOTS_PIECE - 1) / GCPI_SLOTS_PIECE;
    const int back = core->run.purpose != GCPI_TO_MEASURE;
    gcpi_slots_piece x[2];
    for (size_t i = 0; i <= pieces; i++) {
        gcpi_slots_piece *next = &x[i % 2], *now = &x[(i + 1) % 2];
        if (i > 1 && back) gcpi_slots_wait(core, next->out);
        if (i < pieces) {
            gcpi_slots_piece_of(core, whole, count, i, next);
            gcpi_slots_copy(core, whole, next, 1);
        }
        if (i == 0) continue;
        gcpi_slots_wait(core, now->in);
        gcpi_slots_update(core, whole, now);
        if (back) gcpi_slots_copy(core, whole, now, 0);
    }
    if (back) gcpi_slots_wait(core, x[(pieces + 1) % 2].out);
}
