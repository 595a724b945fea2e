/* What .check looks at: what each instruction left behind. */

static gcp_at gcpi_instruction_at(const gcpi_plan *core, int i)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    int by_item = t->kind >= GCPI_TASK_OFFLOAD,
        op = by_item ? core->p.tape->tensors[core->p.items[t->item].tensor].producer : t->op;
    return (t->kind <= GCPI_TASK_BACKWARD || by_item) && op >= 0 ? core->p.tape->ops[op].at : core->opts.at;
}

/* .check: a recomputed output must have the hash of its first value; the first NaN is an error of the op that made it;
   what lies around a workspace must stay; buffers are overwritten with NaNs when they die. */
typedef struct gcpi_looked {
    uint64_t hash;
    int nan;
} gcpi_looked;

/* Two rounds of the mixer of MurmurHash3 (Appleby): after one, a change of the upper bits alone, as of a sign, is one
   of a known bit, which the next word may take back. */
static uint64_t gcpi_hash_word(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
}
/* What the last word has beyond the bytes is 0. */
static void gcpi_look_bytes(const gcp_target *target, const unsigned char *data, size_t size, int width, gcpi_looked *l)
{
    enum { BYTES = 4096 };
    uint64_t words[BYTES / sizeof(uint64_t)];
    gcp_real reals[BYTES / sizeof(gcp_real)];
    gcpi_half halves[BYTES / sizeof(gcpi_half)];
    for (size_t first = 0; first < size; first += sizeof words) {
        const size_t n = GCPI_MIN(sizeof words, size - first);
        words[(n - 1) / sizeof *words] = 0;
        gcpi_bytes_copy(target, words, data + first, n);
        for (size_t i = 0; i * sizeof *words < n; i++) l->hash = gcpi_hash_word(l->hash, words[i]);
        if (width == sizeof *reals) memcpy(reals, words, n);
        for (size_t i = 0; width == sizeof *reals && i < n / sizeof *reals; i++) l->nan |= isnan(reals[i]) != 0;
        if (width == sizeof *halves) memcpy(halves, words, n);
        for (size_t i = 0; width == sizeof *halves && i < n / sizeof *halves; i++)
            l->nan |= (halves[i] & 0x7fff) > 0x7f80;
    }
}

static gcpi_looked gcpi_look(const gcpi_plan *core, int item, ptrdiff_t offset)
{
    const gcpi_item *x = &core->p.items[item];
    const unsigned char *data = (const unsigned char *)gcpi_item_data(core, item, offset);
    const int dense = !x->row || x->pitch == x->row;
    size_t rows = dense ? 1 : gcpi_pixels(core->p.tape->tensors[x->tensor].shape),
           bytes = dense ? x->bytes : gcpi_item_row(x);
    gcpi_looked l = { GCPI_HASH, 0 };
    for (size_t r = 0; r < rows; r++)
        gcpi_look_bytes(&core->p.target, data + r * gcpi_item_pitch(x), bytes, x->width, &l);
    return l;
}

/* Before the first instruction: the state and the inputs hold no NaN. */
static void gcpi_check_given(const gcpi_plan *core, gcp_at at)
{
    char name[128];
    for (int i = 1; i < core->p.tensors; i++) {
        int kind = core->p.items[i].kind,
            there = kind == GCPI_STATE_ITEM || (kind == GCPI_INPUT_ITEM && core->where[i] >= 0);
        if (there && gcpi_look(core, i, core->where[i]).nan)
            gcpi_fail(core->p.tape, GCP_E_CHECK, at, "gcp_step", "'%s' holds a NaN before the step",
                      gcp_name(gcpi_handle(core->p.tape, i), name, sizeof name));
    }
}

/* Guards: a pattern on both sides of a workspace, which an op that stays inside leaves alone. */
enum { GCPI_GUARD = 0x5C };
static void gcpi_guards_set(const gcpi_plan *core, const gcpi_task *t)
{
    const gcpi_space w = gcpi_workspace_of(core, t);
    if (!w.guard) return;
    gcpi_bytes_fill(&core->p.target, w.at - w.guard, GCPI_GUARD, w.guard);
    gcpi_bytes_fill(&core->p.target, w.at + w.size, GCPI_GUARD, w.guard);
}
static int gcpi_guard_whole(const gcpi_plan *core, const unsigned char *guard, size_t size)
{
    unsigned char some[256];
    for (size_t n; size > 0; guard += n, size -= n) {
        n = GCPI_MIN(size, sizeof some);
        gcpi_bytes_copy(&core->p.target, some, guard, n);
        for (size_t i = 0; i < n; i++)
            if (some[i] != GCPI_GUARD) return 0;
    }
    return 1;
}
static void gcpi_guards_check(const gcpi_plan *core, const gcpi_task *t, gcp_at at)
{
    const gcpi_space w = gcpi_workspace_of(core, t);
    char name[128];
    const int before = gcpi_guard_whole(core, w.at - w.guard, w.guard);
    if (before && gcpi_guard_whole(core, w.at + w.size, w.guard)) return;
    gcpi_fail(core->p.tape, GCP_E_CHECK, at, gcpi_task_name(&core->p, t, name, sizeof name),
              "its %s writes %s its workspace of %zu bytes", t->kind == GCPI_TASK_BACKWARD ? "backward" : "forward",
              before ? "behind" : "before", w.size);
}

/* One operand that an instruction has made. */
static void gcpi_check_made(const gcpi_plan *core, int i, const gcpi_operand *o, ptrdiff_t offset, gcp_at at)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    const int letter = core->list.at[i].letter, output = o->role - GCPI_ROLE_OUT, back = t->kind == GCPI_TASK_BACKWARD;
    const gcpi_looked now = gcpi_look(core, o->item, offset);
    const int differs = !back && letter != 'F' && core->hashes[o->item] != now.hash;
    char name[128], item[256];
    if (letter == 'F') core->hashes[o->item] = now.hash;
    if (!differs && !now.nan) return;
    gcpi_task_name(&core->p, t, name, sizeof name);
    gcpi_item_name(&core->p, o->item, item, sizeof item);
    if (back) gcpi_fail(core->p.tape, GCP_E_CHECK, at, name, "its backward makes a NaN in the gradient of %s", item);
    else if (differs)
        gcpi_fail(core->p.tape, GCP_E_CHECK, at, name, "output %d %s with bits that differ from the first run's",
                  output, letter == 'P' ? "came back" : "was recomputed");
    else gcpi_fail(core->p.tape, GCP_E_CHECK, at, name, "output %d has a NaN, but its inputs have none", output);
}
static void gcpi_check_instruction(const gcpi_plan *core, int i, int n)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    const int makes = t->kind == GCPI_TASK_FORWARD || t->kind == GCPI_TASK_PREFETCH || t->kind == GCPI_TASK_BACKWARD;
    const gcp_at at = gcpi_instruction_at(core, i);
    gcpi_guards_check(core, t, at);
    for (int k = 0; makes && k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        const ptrdiff_t offset = core->placed[n + k].offset;
        if (o->mode != GCPI_READ && offset >= 0) gcpi_check_made(core, i, o, offset, at);
    }
    for (int d = core->dying_first[i]; d < core->dying_first[i + 1] && i + 1 < (int)core->list.count; d++)
        gcpi_bytes_fill(&core->p.target, core->bound.slab + core->buffers[core->dying[d]].offset, 0xFF,
                        core->buffers[core->dying[d]].bytes);
}
