/* The verifier: no list runs that it has not passed. Knows neither policies nor lifetimes: it walks through a placed
   list with a map of which value lies where, and refuses it at the first instruction that reads what is not there,
   writes what must stay, or is out of order. */

typedef struct gcpi_placed { ptrdiff_t offset; } gcpi_placed;      /* of an operand in the slab; -1: state */

/* rows of `width` bytes, one every `pitch` bytes */
typedef struct gcpi_region { size_t at, end, pitch, width; int item; } gcpi_region;

typedef struct gcpi_verifier {
    const gcpi_problem *p; const gcpi_list *list; const gcpi_placed *placed;
    gcpi_region *held;                             /* per item: where its value lies */
    /* per item in the slab: item + 1, listed by the page that it begins in; next 0: not there, -1: last of its list */
    int *next, *page;
    size_t page_bytes, longest;                    /* longest: most bytes of any item that was there */
    /* per task: it has run; per item: its parameter has changed; far memory holds it */
    unsigned char *done, *updated, *far;
    int backward_next;
    char *message; size_t size;
} gcpi_verifier;

enum { GCPI_PAGES = 1024 };

static gcpi_region gcpi_region_of(const gcpi_problem *p, int item, size_t at)
{
    const gcpi_item *x = &p->items[item];
    gcpi_region r;
    r.item = item; r.at = at; r.end = at + x->bytes;
    r.pitch = gcpi_item_pitch(x);
    r.width = gcpi_item_row(x);
    return r;
}

static int gcpi_overlap(const gcpi_region *a, const gcpi_region *b)
{
    if (a->at >= b->end || b->at >= a->end || a->at == a->end || b->at == b->end) return 0;
    if (a->pitch != b->pitch) return 1;
    size_t shift = (b->at % a->pitch + a->pitch - a->at % a->pitch) % a->pitch;     /* from a's columns to b's */
    return shift < a->width || shift + b->width > a->pitch;
}

static int *gcpi_page(const gcpi_verifier *v, size_t at)
{
    return v->page + GCPI_MIN(at / v->page_bytes, (size_t)GCPI_PAGES);
}

static void gcpi_hold_region(gcpi_verifier *v, const gcpi_region *r)
{
    int *page = gcpi_page(v, r->at);
    v->held[r->item] = *r;
    v->next[r->item] = *page > 0 ? *page : -1;
    v->longest = GCPI_MAX(v->longest, r->end - r->at);
    *page = r->item + 1;
}

static void gcpi_lose(gcpi_verifier *v, int item)
{
    if (!v->next[item]) return;
    int *link = gcpi_page(v, v->held[item].at);
    while (*link != item + 1) link = &v->next[*link - 1];
    *link = v->next[item];
    v->next[item] = 0;
}

static int gcpi_verify_fail(gcpi_verifier *v, int i, const char *text, int item)
{
    char task[128], name[128];
    name[0] = 0;
    if (item >= 0) gcpi_item_name(v->p, item, name, sizeof name);
    snprintf(v->message, v->size, "line %d: %c %s: %s%s%s", v->list->opening + i + 1, v->list->at[i].letter,
             gcpi_task_name(v->p, &v->p->tasks[v->list->at[i].task], task, sizeof task), text,
             item >= 0 && v->p->items[item].kind == GCPI_GRADIENT_ITEM ? " gradient of " : item >= 0 ? " " : "", name);
    return 0;
}

static int gcpi_verify_order(gcpi_verifier *v, int i)
{
    int task = v->list->at[i].task, kind = v->list->at[i].letter;
    const gcpi_task *t = &v->p->tasks[task];
    if (t->kind == GCPI_TASK_OFFLOAD) v->far[t->item] = 1;
    if ((t->kind == GCPI_TASK_PREFETCH || t->kind == GCPI_TASK_ARRIVE) && !v->far[t->item])
        return gcpi_verify_fail(v, i, "has no earlier copy to far memory (O)", -1);
    if (t->kind >= GCPI_TASK_OFFLOAD)
        return gcpi_alone(v->p, t->item) || gcpi_verify_fail(v, i, "shares its bytes with another tensor", -1);
    if (kind == 'F' && v->done[task]) return gcpi_verify_fail(v, i, "runs forward a second time", -1);
    if (kind == 'F' && task > 0 && !v->done[task - 1])
        return gcpi_verify_fail(v, i, "runs before the forward op that precedes it", -1);
    for (int k = 0; kind == 'R' && k < t->count; k++) {
        const gcpi_operand *o = &v->p->operands[t->operands + k];
        if (o->mode == GCPI_READ && v->updated[v->p->items[o->item].root])
            return gcpi_verify_fail(v, i, "runs again after the update of", o->item);
        if (o->mode != GCPI_READ && v->p->items[o->item].kept)
            return gcpi_verify_fail(v, i, "would recompute the kept", o->item);
    }
    if (t->kind == GCPI_TASK_UPDATE) v->updated[v->p->items[v->p->operands[t->operands].item].tensor] = 1;
    if (kind == 'R' && (!v->done[task] || t->once))
        return gcpi_verify_fail(v, i, t->once ? "has side effects and may not run again" : "runs again before it ran",
                                -1);
    if (task >= v->p->forward) {
        if (task != v->backward_next)
            return gcpi_verify_fail(v, i,
                                    v->done[task]                   ? "runs a second time"
                                    : t->kind == GCPI_TASK_UPDATE ? "is out of order (U " GCPI_LIST_FUSED
                                                                    " opens a list of fused updates)"
                                                                  : "is out of order",
                                    -1);
        if (task == v->p->forward && v->p->forward && !v->done[v->p->forward - 1])
            return gcpi_verify_fail(v, i, "runs before the forward pass is complete", -1);
        v->backward_next++;
    }
    v->done[task] = 1;
    return 1;
}

/* loses what writing r destroys, also its own older value */
static void gcpi_forget(gcpi_verifier *v, const gcpi_region *r)
{
    if (r->item >= 0) gcpi_lose(v, r->item);
    for (int *page = gcpi_page(v, r->at - GCPI_MIN(r->at, v->longest)); page <= gcpi_page(v, r->end); page++)
        for (int *link = page; *link > 0;) {
            int item = *link - 1;
            if (!gcpi_overlap(&v->held[item], r)) { link = &v->next[item]; continue; }
            *link = v->next[item];
            v->next[item] = 0;
        }
}

/* An alias writes only the bytes that do not come from an operand that lies there already. */
static void gcpi_forget_copied(gcpi_verifier *v, const gcpi_task *t, int n, const gcpi_region *out)
{
    const gcpi_item *items = v->p->items, *y = &items[out->item];
    size_t column = 0;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &v->p->operands[t->operands + k];
        const gcpi_item *x = &items[o->item];
        gcpi_region part = *out;
        if (o->mode != GCPI_READ || (t->kind == GCPI_TASK_BACKWARD && x->kind != GCPI_GRADIENT_ITEM)) continue;
        if (t->concat) { part.at += column; part.width = gcpi_column_bytes(x, y); column += part.width; }
        if (x->root == y->root && (size_t)v->placed[n + k].offset - x->offset == out->at - y->offset) continue;
        gcpi_forget(v, &part);
    }
    gcpi_lose(v, out->item);
}

/* Whether operands lie in the slab, and what the instruction reads is there. */
static int gcpi_verify_reads(gcpi_verifier *v, int i, int n, size_t slab)
{
    const gcpi_problem *p = v->p;
    const gcpi_task *t = &p->tasks[v->list->at[i].task];
    const gcpi_operand *o = &p->operands[t->operands];
    for (int k = 0; k < t->count; k++) {
        if (v->placed[n + k].offset < 0 && t->kind >= GCPI_TASK_OFFLOAD)
            return gcpi_verify_fail(v, i, "reads a value that is not in the slab:", o[k].item);
        if (v->placed[n + k].offset < 0) continue;
        gcpi_region r = gcpi_region_of(p, o[k].item, (size_t)v->placed[n + k].offset);
        if (r.end > slab || r.at < p->numbers)
            return gcpi_verify_fail(v, i, "has an operand outside the slab:", o[k].item);
        int here = o[k].mode == GCPI_WRITE || o[k].mode == GCPI_ALIAS;     /* made by this instruction */
        for (int m = 0; m < k; m++)
            here |= o[k].mode == GCPI_ADD && o[m].item == o[k].item && o[m].mode != GCPI_READ &&
                    v->placed[n + m].offset == v->placed[n + k].offset;
        if (here) continue;
        if (!v->next[o[k].item] || v->held[o[k].item].at != r.at)
            return gcpi_verify_fail(v, i, "reads a value that is not in the slab:", o[k].item);
    }
    return 1;
}

static int gcpi_verify_instruction(gcpi_verifier *v, int i, int n, size_t slab)
{
    const gcpi_problem *p = v->p;
    const gcpi_task *t = &p->tasks[v->list->at[i].task];
    const gcpi_operand *o = &p->operands[t->operands];
    gcpi_region work;
    if (!gcpi_verify_reads(v, i, n, slab)) return 0;
    memset(&work, 0, sizeof work);
    work.at = gcpi_front(p);
    work.end = work.at + t->workspace;
    work.pitch = work.width = t->workspace;
    work.item = -1;
    for (int k = 0; t->workspace && k < t->count; k++) {
        if (v->placed[n + k].offset < 0) continue;
        gcpi_region r = gcpi_region_of(p, o[k].item, (size_t)v->placed[n + k].offset);
        if (r.at < work.end) return gcpi_verify_fail(v, i, "has a workspace that overlaps", o[k].item);
    }
    if (t->workspace) gcpi_forget(v, &work);
    for (int k = 0; k < t->count; k++) {
        if (v->placed[n + k].offset < 0 || o[k].mode == GCPI_READ) continue;
        gcpi_region r = gcpi_region_of(p, o[k].item, (size_t)v->placed[n + k].offset);
        for (int m = 0; m < t->count; m++) {
            if (m == k || v->placed[n + m].offset < 0 || o[k].mode == GCPI_ALIAS || o[m].mode == GCPI_ALIAS) continue;
            gcpi_region s = gcpi_region_of(p, o[m].item, (size_t)v->placed[n + m].offset);
            if ((o[m].item == o[k].item && t->kind != GCPI_TASK_MOVE) || !gcpi_overlap(&r, &s)) continue;
            if (o[m].mode != GCPI_READ || s.at != r.at || s.end != r.end || k != t->over ||
                (m != t->under[0] && m != t->under[1]))
                return gcpi_verify_fail(v, i, "overwrites its own operand", o[m].item);
        }
        if (o[k].mode == GCPI_ALIAS) gcpi_forget_copied(v, t, n, &r);
        else gcpi_forget(v, &r);
        gcpi_hold_region(v, &r);
    }
    return 1;
}

/* Whether every task has run, and what must last is there. */
static int gcpi_verify_end(gcpi_verifier *v)
{
    const gcpi_problem *p = v->p;
    char name[128];
    for (int i = 0; i < p->task_count; i++) {
        if (v->done[i]) continue;
        snprintf(v->message, v->size, "%c %s is missing", gcpi_letters[p->tasks[i].kind],
                 gcpi_task_name(p, &p->tasks[i], name, sizeof name));
        return 0;
    }
    for (int i = 0; i < p->item_count; i++) {
        int pinned = p->items[i].active && p->items[i].pinned && p->items[p->items[i].root].kind != GCPI_STATE_ITEM;
        if (pinned && !v->next[i]) return gcpi_verify_fail(v, (int)v->list->count - 1, "at the end there is no", i);
    }
    return 1;
}

static int gcpi_verify(const gcpi_problem *p, const gcpi_list *list, const gcpi_placed *placed, size_t slab,
                       char *message, size_t size, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_verifier v;
    int n = 0, ok = 1, initial = 0;
    memset(&v, 0, sizeof v);
    v.p = p; v.list = list; v.placed = placed; v.message = message; v.size = size;
    v.page_bytes = slab / GCPI_PAGES + 1;
    v.held = GCPI_SCRATCH(a, gcpi_region, p->item_count);
    v.next = GCPI_SCRATCH(a, int, p->item_count);
    v.page = GCPI_SCRATCH(a, int, GCPI_PAGES + 1);
    v.done = GCPI_SCRATCH(a, unsigned char, p->task_count + 1);
    v.updated = GCPI_SCRATCH(a, unsigned char, p->item_count);
    v.far = GCPI_SCRATCH(a, unsigned char, p->tensors);
    if (!v.held || !v.next || !v.page || !v.done || !v.updated || !v.far) {
        *message = 0;                                  /* no message: the arena is too small, which its owner reports */
        return 0;
    }
    v.backward_next = p->forward;
    for (int i = 0; i < (int)list->count; i++)         /* inputs and lasting gradients are there from the start */
        for (int k = 0; k < p->tasks[list->at[i].task].count; k++, initial++) {
            int item = p->operands[p->tasks[list->at[i].task].operands + k].item;
            if (p->items[item].pinned != GCPI_PINNED_ALWAYS || placed[initial].offset < 0 || v.next[item]) continue;
            gcpi_region r = gcpi_region_of(p, item, (size_t)placed[initial].offset);
            gcpi_hold_region(&v, &r);
        }
    for (int i = 0; ok && i < (int)list->count; i++) {
        ok = gcpi_verify_order(&v, i) && gcpi_verify_instruction(&v, i, n, slab);
        n += p->tasks[list->at[i].task].count;
    }
    ok = ok && gcpi_verify_end(&v);
    a->scratch = scratch;
    return ok;
}
