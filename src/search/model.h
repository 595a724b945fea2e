/* What searches see of a problem: forward values only, in arrays. The bytes of gradients, inputs and workspace depend
   on where backward stands, but not on what is kept; they are summed up once. An order is a short form of a list: task,
   or ~task where it runs again. One pass from its end finds its peak, exactly that of gcpi_lives (lives.h), and
   removes runs that nobody reads. */

typedef struct gcpi_model {
    const gcpi_problem *p;
    int values, groups, *value_of;    /* value_of: per item, -1: not a forward value */
    int *item, *group, *producer;     /* per value */
    /* per value: the task that copies it back, or -1; the task before it copies away, the one after it waits */
    int *fetch;
    size_t *bytes;                    /* per group, rounded to the target's align */
    int *read, *read_first, *written, *written_first;      /* values, per task: GCPI_READS and GCPI_WRITES */
    /* per task: value that may be written in place, and (two each) those that it may lie on; -1: none */
    int *over, *under;
    /* per task: the first update of a weight that it reads; it may run again before that, but not after */
    int *until;
    /* per value: lives to the end; per task: may run again; writes bytes that other items share */
    unsigned char *lasting, *again, *shares;
    /* per task: bytes other than forward values: while it runs; while others run again before it; its own workspace */
    size_t *during, *before, *workspace;
    double seconds;                   /* of keep-all */
    int mixed;                        /* a gradient may be written on a forward value: bytes may be fewer than here */
    /* of the pass: per value, whether it is live; per group, right after these, how many of its values are */
    unsigned char *live; uint16_t *members;
    size_t state_bytes;               /* of both */
} gcpi_model;

typedef struct gcpi_order { int *at, count, capacity, peak_at, valid; size_t peak; double seconds; } gcpi_order;
static int gcpi_code_task(const gcpi_order *o, int i) { return o->at[i] < 0 ? ~o->at[i] : o->at[i]; }

/* Whether running task again changes bytes of value v, which another task made. A view changes only what it copies. */
static int gcpi_clash(const gcpi_model *m, int task, int v)
{
    const gcpi_problem *p = m->p;
    const gcpi_task *t = &p->tasks[task];
    const gcpi_operand *o = &p->operands[t->operands];
    const gcpi_item *x = &p->items[m->item[v]];
    gcpi_region other = gcpi_region_of(p, m->item[v], x->offset);
    int clash = 0;
    size_t column = 0;
    for (int k = 0; k < t->count; k++) if (o[k].item == m->item[v]) return 0;
    for (int k = 0; k < t->count; k++) {
        if (o[k].mode == GCPI_READ || p->items[o[k].item].root != x->root) continue;
        gcpi_region mine = gcpi_region_of(p, o[k].item, p->items[o[k].item].offset), part = mine;
        if (o[k].mode != GCPI_ALIAS) clash |= gcpi_overlap(&mine, &other);
        for (int i = 0; o[k].mode == GCPI_ALIAS && i < t->count; i++) {
            if (o[i].mode != GCPI_READ) continue;
            if (t->concat) {
                part.at = mine.at + column;
                part.width = gcpi_column_bytes(&p->items[o[i].item], &p->items[o[k].item]);
                column += part.width;
            }
            if (p->items[o[i].item].root != x->root) clash |= gcpi_overlap(&part, &other);
        }
    }
    return clash;
}

static void gcpi_model_task(gcpi_model *m, int task, int *reads, int *writes)
{
    const gcpi_problem *p = m->p;
    const gcpi_task *t = &p->tasks[task];
    const gcpi_operand *o = &p->operands[t->operands];
    m->read_first[task] = *reads; m->written_first[task] = *writes;
    m->over[task] = m->under[2 * task] = m->under[2 * task + 1] = -1;
    m->again[task] = task < p->forward && !t->once;
    m->until[task] = p->task_count;
    for (int k = 0; k < t->count; k++) {
        int v = m->value_of[o[k].item];
        if (o[k].mode != GCPI_READ && p->items[o[k].item].stored) m->again[task] = 0;
        if (v < 0) continue;
        if (o[k].mode == GCPI_READ || o[k].mode == GCPI_ADD) m->read[(*reads)++] = v;
        if (o[k].mode == GCPI_READ) continue;
        m->written[(*writes)++] = v;
        m->shares[task] |= p->items[p->items[o[k].item].root].next >= 0 && !t->free;
    }
    for (int side = 0; side < 2 && t->over >= 0 && m->value_of[o[t->over].item] < 0; side++)
        m->mixed |= t->under[side] >= 0 && m->value_of[o[t->under[side]].item] >= 0;
    if (t->over < 0 || m->value_of[o[t->over].item] < 0 || !gcpi_whole(p, o[t->over].item)) return;
    m->over[task] = m->value_of[o[t->over].item];
    for (int side = 0; side < 2; side++) {
        int x = t->under[side] < 0 ? -1 : o[t->under[side]].item, pinned = 0;
        if (x < 0 || m->value_of[x] < 0 || !gcpi_whole(p, x) ||
            p->items[p->items[x].root].bytes != p->items[p->items[o[t->over].item].root].bytes)
            continue;
        for (int i = p->items[x].root; i >= 0; i = p->items[i].next) pinned |= p->items[i].pinned;
        if (!pinned && p->items[x].root != p->items[o[t->over].item].root) m->under[2 * task + side] = m->value_of[x];
    }
}

static int gcpi_keep_all_list(const gcpi_problem *p, gcpi_list *list, gcp_arena *a)         /* 0: not enough scratch */
{
    memset(list, 0, sizeof *list);
    list->count = p->task_count;
    list->at = GCPI_SCRATCH(a, gcpi_instruction, p->task_count);
    for (int i = 0; list->at && i < p->task_count; i++) {
        list->at[i].task = i;
        list->at[i].letter = gcpi_letters[p->tasks[i].kind];
    }
    return list->at != NULL;
}

/* Bytes of what no choice changes, from the lifetimes of keep-all. */
static int gcpi_model_fixed(gcpi_model *m, gcp_arena *a)
{
    const gcpi_problem *p = m->p;
    ptrdiff_t scratch = a->scratch;
    gcpi_list list;
    gcpi_lives lives;
    size_t *live, now = 0, across = 0;
    if (!gcpi_keep_all_list(p, &list, a) || !gcpi_lives_make(p, &list, &lives, &live, a)) return 0;
    for (int b = 0; b < lives.buffer_count; b++) {
        const gcpi_buffer *x = &lives.buffers[b];
        if (x->joined >= 0 || p->items[x->root].kind == GCPI_FORWARD_ITEM) continue;
        m->during[x->first] += gcpi_round(x->bytes, p->target.align);
        m->during[x->last + 1] -= gcpi_round(x->bytes, p->target.align);        /* may wrap; the sums do not */
        if (x->first < x->last) {
            m->before[x->first + 1] += gcpi_round(x->bytes, p->target.align);
            m->before[x->last + 1] -= gcpi_round(x->bytes, p->target.align);
        }
        if (x->first == 0 && x->first < x->last) {
            m->before[0] += gcpi_round(x->bytes, p->target.align);
            m->before[1] -= gcpi_round(x->bytes, p->target.align);
        }
    }
    for (int i = 0; i < p->task_count; i++) {
        m->workspace[i] = gcpi_round(p->tasks[i].workspace, p->target.align);
        now += m->during[i]; across += m->before[i];
        m->during[i] = now + m->workspace[i];
        m->before[i] = across;
        m->seconds += p->tasks[i].seconds;
    }
    a->scratch = scratch;
    return 1;
}

static int gcpi_model_values(gcpi_model *m, gcp_arena *a)
{
    const gcpi_problem *p = m->p;
    m->value_of = GCPI_SCRATCH(a, int, p->item_count);
    m->item = GCPI_SCRATCH(a, int, p->item_count);
    m->group = GCPI_SCRATCH(a, int, p->item_count);
    m->producer = GCPI_SCRATCH(a, int, p->item_count);
    m->fetch = GCPI_SCRATCH(a, int, p->item_count);
    m->bytes = GCPI_SCRATCH(a, size_t, p->item_count);
    m->lasting = GCPI_SCRATCH(a, unsigned char, p->item_count);
    int *group_of = GCPI_SCRATCH(a, int, p->item_count);
    if (!m->value_of || !m->item || !m->group || !m->producer || !m->fetch || !m->bytes || !m->lasting || !group_of)
        return 0;
    for (int i = 0; i < p->item_count; i++) {
        const gcpi_item *x = &p->items[i], *root = &p->items[x->root];
        m->value_of[i] = -1;
        if (!x->active || x->kind != GCPI_FORWARD_ITEM || root->kind != GCPI_FORWARD_ITEM || x->producer < 0) continue;
        if (!group_of[x->root]) {
            m->bytes[m->groups] = gcpi_round(root->bytes, p->target.align);
            group_of[x->root] = ++m->groups;
        }
        m->group[m->values] = group_of[x->root] - 1;
        m->producer[m->values] = x->producer;
        m->fetch[m->values] = -1;
        m->item[m->values] = i;
        m->lasting[m->values] = x->pinned != 0;
        m->value_of[i] = m->values++;
    }
    return 1;
}

static void gcpi_model_updates(gcpi_model *m, int *updated)          /* updated: per item, scratch of zeros */
{
    const gcpi_problem *p = m->p;
    for (int t = p->forward; t < p->task_count; t++)
        if (p->tasks[t].kind == GCPI_TASK_UPDATE) updated[p->items[p->operands[p->tasks[t].operands].item].tensor] = t;
    for (int f = 0; f < p->forward; f++)
        for (int k = 0; k < p->tasks[f].count; k++) {
            int item = p->operands[p->tasks[f].operands + k].item;
            if (updated[p->items[item].root]) m->until[f] = GCPI_MIN(m->until[f], updated[p->items[item].root]);
        }
}

/* All in scratch of a. 0: not enough. */
static int gcpi_model_make(gcpi_model *m, const gcpi_problem *p, gcp_arena *a)
{
    memset(m, 0, sizeof *m);
    m->p = p;
    int ok = gcpi_model_values(m, a), reads = 0, writes = 0, all = p->task_count + p->far_count;
    m->read = GCPI_SCRATCH(a, int, p->operand_count + 1);
    m->written = GCPI_SCRATCH(a, int, p->operand_count + 1);
    m->read_first = GCPI_SCRATCH(a, int, all + 1);
    m->written_first = GCPI_SCRATCH(a, int, all + 1);
    m->shares = GCPI_SCRATCH(a, unsigned char, all + 1);
    m->over = GCPI_SCRATCH(a, int, all + 1);
    m->under = GCPI_SCRATCH(a, int, 2 * all + 2);
    m->again = GCPI_SCRATCH(a, unsigned char, all + 1);
    m->until = GCPI_SCRATCH(a, int, all + 1);
    int *updated = GCPI_SCRATCH(a, int, p->item_count + 1);
    m->during = GCPI_SCRATCH(a, size_t, all + 2);
    m->before = GCPI_SCRATCH(a, size_t, all + 2);
    m->workspace = GCPI_SCRATCH(a, size_t, all + 2);
    m->state_bytes = (size_t)(m->values + (m->values & 1)) + (size_t)m->groups * sizeof *m->members;
    m->live = GCPI_SCRATCH(a, unsigned char, (ptrdiff_t)m->state_bytes);
    if (!ok || !m->read || !m->written || !m->read_first || !m->written_first || !m->shares || !m->until || !updated ||
        !m->over || !m->under || !m->again || !m->during || !m->before || !m->workspace || !m->live)
        return 0;
    m->members = (uint16_t *)(void *)(m->live + m->values + (m->values & 1));
    for (int t = 0; t < all; t++) gcpi_model_task(m, t, &reads, &writes);
    m->read_first[all] = reads; m->written_first[all] = writes;
    for (int t = p->task_count; t < all; t++)
        if (p->tasks[t].kind == GCPI_TASK_PREFETCH && gcpi_alone(p, p->tasks[t].item))
            m->fetch[m->written[m->written_first[t]]] = t;
    gcpi_model_updates(m, updated);
    return gcpi_model_fixed(m, a);
}

#define GCPI_READS(m, t, i) (int i = (m)->read_first[t]; i < (m)->read_first[(t) + 1]; i++)
#define GCPI_WRITES(m, t, i) (int i = (m)->written_first[t]; i < (m)->written_first[(t) + 1]; i++)

static int gcpi_is_read(const gcpi_model *m, int task)       /* whether a later instruction reads what it writes */
{
    for GCPI_WRITES(m, task, i) if (m->live[m->written[i]]) return 1;
    return 0;
}

static size_t gcpi_revive(const gcpi_model *m, int value)    /* the bytes that this brings to life */
{
    if (m->live[value]) return 0;
    m->live[value] = 1;
    return m->members[m->group[value]]++ ? 0 : m->bytes[m->group[value]];
}

static int gcpi_clear_of(const gcpi_model *m, int task)      /* no live value is lost when task runs */
{
    for GCPI_WRITES(m, task, k)
        for (int i = m->p->items[m->item[m->written[k]]].root; i >= 0; i = m->p->items[i].next)
            if (m->value_of[i] >= 0 && m->live[m->value_of[i]] && gcpi_clash(m, task, m->value_of[i])) return 0;
    return 1;
}

/* One instruction of the pass: makes *live after it *live before it; returns the live forward bytes while it runs. */
static size_t gcpi_pass_task(const gcpi_model *m, int task, size_t *live)
{
    int dies = 0, under = m->over[task] < 0 ? 0 : 2, over = m->over[task];
    size_t now;
    for GCPI_WRITES(m, task, i) *live += gcpi_revive(m, m->written[i]);
    for (int side = 0; side < under; side++) {
        int x = m->under[2 * task + side];
        if (x >= 0 && m->members[m->group[x]] == 0) dies = 1;
    }
    for GCPI_READS(m, task, i) *live += gcpi_revive(m, m->read[i]);
    now = *live;
    for GCPI_WRITES(m, task, i) {
        int v = m->written[i];
        m->live[v] = 0;
        if (--m->members[m->group[v]] == 0) *live -= m->bytes[m->group[v]];
    }
    if (dies && m->members[m->group[over]] == 0) now -= m->bytes[m->group[over]];
    return now;
}

/* The pass at some position: live forward bytes; the next task that does not run again. */
typedef struct gcpi_pass { size_t live; int next, valid; } gcpi_pass;
#define GCPI_DEAD SIZE_MAX

/* A move: both places of what it moves. */
static size_t gcpi_pass_move(const gcpi_model *m, int task, const gcpi_pass *pass)
{
    const int item = m->p->tasks[task].item, v = m->value_of[item];
    if (v >= 0 && !m->live[v]) return GCPI_DEAD;
    return pass->live + m->before[pass->next] + gcpi_round(m->p->items[item].bytes, m->p->target.align);
}

/* One entry of an order: the live bytes while it runs, or GCPI_DEAD for a run again or a move that nobody reads. */
static size_t gcpi_pass_code(const gcpi_model *m, int code, gcpi_pass *pass)
{
    int task = code < 0 ? ~code : code;
    if (task >= m->p->task_count + m->p->far_count) return gcpi_pass_move(m, task, pass);
    if (code >= 0 && task < m->p->task_count) {
        pass->next = task;
        return gcpi_pass_task(m, task, &pass->live) + m->during[task];
    }
    if (code < 0 && !gcpi_is_read(m, task)) return GCPI_DEAD;
    size_t now = gcpi_pass_task(m, task, &pass->live) + m->before[pass->next] + m->workspace[task];
    pass->valid &= pass->next <= m->until[task];
    if (m->shares[task] && pass->valid) pass->valid = gcpi_clear_of(m, task);
    return now;
}

/* Sets peak, peak_at, seconds and valid of an order, and removes runs that nobody reads. profile: NULL, or the live
   bytes of each instruction. */
static void gcpi_simulate(const gcpi_model *m, gcpi_order *o, size_t *profile)
{
    gcpi_pass pass = { 0, m->p->task_count - 1, 1 };
    int kept = o->count;
    memset(m->live, 0, m->state_bytes);
    for (int v = 0; v < m->values; v++) if (m->lasting[v]) pass.live += gcpi_revive(m, v);
    o->peak = 0; o->seconds = 0;
    for (int i = o->count - 1; i >= 0; i--) {
        size_t now = gcpi_pass_code(m, o->at[i], &pass);
        if (now == GCPI_DEAD) continue;
        o->at[--kept] = o->at[i];
        if (profile) profile[kept] = now;
        o->seconds += m->p->tasks[gcpi_code_task(o, i)].seconds;
        if (now > o->peak) { o->peak = now; o->peak_at = kept; }
    }
    o->valid = pass.valid;
    o->count -= kept;
    memmove(o->at, o->at + kept, (size_t)o->count * sizeof *o->at);
    if (profile) memmove(profile, profile + kept, (size_t)o->count * sizeof *profile);
    o->peak_at -= kept;
}

static int gcpi_order_make(gcpi_order *o, int capacity, gcp_arena *a)
{
    memset(o, 0, sizeof *o);
    o->capacity = capacity;
    return (o->at = GCPI_SCRATCH(a, int, capacity + 1)) != NULL;
}

static void gcpi_order_copy(gcpi_order *to, const gcpi_order *from)
{
    int *at = to->at, capacity = to->capacity;
    memcpy(at, from->at, (size_t)from->count * sizeof *at);
    *to = *from;
    to->at = at; to->capacity = capacity;
}
