/* From what is kept to a list; a list as text. A choice says what is kept; gcpi_schedule turns it into a list.
   Segments form a tree. An item's home is the smallest segment that holds its producer and all its forward readers.
   After forward, an item is resident if the last op lies in its home; from then on it stays resident while the op
   being reversed does. With one level of segments that is Chen's scheme; with more it is his recursion, in which
   each replay keeps only the inner boundaries; with none it is keep-all. */

enum { GCPI_DROP, GCPI_AUTO, GCPI_STORE };       /* drop after forward; by home; never drop */

typedef struct gcpi_choice {
    unsigned char *store;             /* per forward item: one of the above */
    int *segment;                     /* per forward task */
    int *parent, *depth, segments;    /* 0 is the root */
    int replay;                       /* drop what was recomputed as soon as backward enters another unit */
} gcpi_choice;

/* kind: 'F' 'R' 'B' 'U' 'H' 'W' 'O' 'P' 'A' 'M' */
typedef struct gcpi_instruction { int letter, task; } gcpi_instruction;

typedef struct gcpi_list {
    gcpi_instruction *at;
    ptrdiff_t count, capacity;
    int reruns, opening;              /* opening: how many lines of its text come before the instructions */
    double rerun_flops, seconds;
} gcpi_list;

typedef struct gcpi_scheduler {
    const gcpi_problem *p;
    const gcpi_choice *c;
    gcpi_list *list;
    int *home;                        /* per item */
    unsigned char *mode, *resident, *need;            /* per item; per item; per forward task */
    int *again, again_count;          /* forward tasks that ran again and are not yet held or dropped */
    /* forward tasks whose outputs are resident while their home is not left: per segment, the last whose home it is;
       per task, the one before it; -1: none. All these segments hold the one that is being reversed. */
    int *held, *before;
    int *last, *entered, entry, here; /* per item: the last backward task that uses it; per segment: its last entry */
    int *rank, *size;                 /* per segment: its place in preorder; how many segments it holds, itself too */
} gcpi_scheduler;

static void gcpi_emit(gcpi_list *list, int kind, int task, const gcpi_task *t)
{
    if (list->at && list->count < list->capacity) {
        list->at[list->count].letter = kind;
        list->at[list->count].task = task;
    }
    list->count++;
    list->seconds += t->seconds;
    if (kind == 'R') list->rerun_flops += t->flops;
}

static int gcpi_common(const gcpi_choice *c, int a, int b)        /* least common ancestor */
{
    while (a != b) {
        if (c->depth[a] >= c->depth[b]) a = c->parent[a];
        else b = c->parent[b];
    }
    return a;
}

/* Ranks segments, so that gcpi_holds takes no walk through the tree. Parents come before children. next: scratch. */
static void gcpi_segments_rank(gcpi_scheduler *s, int *next)
{
    const gcpi_choice *c = s->c;
    for (int i = 0; i < c->segments; i++) s->size[i] = 1;
    for (int i = c->segments - 1; i > 0; i--) s->size[c->parent[i]] += s->size[i];
    s->rank[0] = 0;
    next[0] = 1;
    for (int i = 1; i < c->segments; i++) {
        s->rank[i] = next[c->parent[i]];
        next[c->parent[i]] += s->size[i];
        next[i] = s->rank[i] + 1;
    }
}

static int gcpi_holds(const gcpi_scheduler *s, int segment, int inner)
{
    int at = s->rank[inner] - s->rank[segment];
    return at >= 0 && at < s->size[segment];
}

/* The outputs of one op stay together: running it again for one writes the others, too. 1: something changed. */
static int gcpi_join_outputs(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    int changed = 0;
    for (int f = 0; f < p->forward; f++) {
        const gcpi_operand *o = &p->operands[p->tasks[f].operands];
        int home = -1, mode = GCPI_DROP;
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < p->tasks[f].count; k++) {
                int root = p->items[o[k].item].root;
                if (o[k].mode == GCPI_READ) continue;
                if (pass) {
                    changed |= s->home[root] != home || s->mode[root] != mode;
                    s->home[root] = home;
                    s->mode[root] = (unsigned char)mode;
                }
                home = home < 0 ? s->home[root] : gcpi_common(s->c, home, s->home[root]);
                mode = GCPI_MAX(mode, s->mode[root]);
            }
    }
    return changed;
}

/* Homes and modes are those of alias groups: while one member holds the bytes, dropping another frees nothing. */
static void gcpi_homes(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    for (int i = 0; i < p->item_count; i++) { s->home[i] = -1; s->mode[i] = GCPI_DROP; }
    for (int f = 0; f < p->forward; f++)
        for (int k = 0; k < p->tasks[f].count; k++) {
            int item = p->operands[p->tasks[f].operands + k].item, root = p->items[item].root;
            s->home[root] = s->home[root] < 0 ? s->c->segment[f] : gcpi_common(s->c, s->home[root], s->c->segment[f]);
            if (p->items[root].kind != GCPI_FORWARD_ITEM) s->mode[root] = GCPI_STORE;
            s->mode[root] = GCPI_MAX(s->mode[root], s->c->store[item]);
        }
    while (gcpi_join_outputs(s)) { }
    for (int i = 0; i < p->item_count; i++) {
        s->home[i] = s->home[p->items[i].root] < 0 ? 0 : s->home[p->items[i].root];
        s->mode[i] = s->mode[p->items[i].root];
    }
}

static int gcpi_stays(const gcpi_scheduler *s, int item, int segment)
{
    return s->mode[item] == GCPI_STORE || gcpi_holds(s, s->home[item], segment);
}

static int gcpi_made_by(const gcpi_scheduler *s, int task)        /* an output of a forward task; -1: it has none */
{
    const gcpi_task *t = &s->p->tasks[task];
    for (int k = 0; k < t->count; k++)
        if (s->p->operands[t->operands + k].mode != GCPI_READ) return s->p->operands[t->operands + k].item;
    return -1;
}

static void gcpi_drop(gcpi_scheduler *s, int task)
{
    const gcpi_task *t = &s->p->tasks[task];
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &s->p->operands[t->operands + k];
        if (o->mode != GCPI_READ && s->mode[o->item] != GCPI_STORE) s->resident[o->item] = 0;
    }
}

static void gcpi_hold(gcpi_scheduler *s, int task)
{
    int *held = &s->held[s->home[gcpi_made_by(s, task)]];
    s->before[task] = *held;
    *held = task;
}

/* Backward goes from one segment to another: drops what is held for those that it leaves. */
static void gcpi_leave(gcpi_scheduler *s, int from, int to)
{
    for (; !gcpi_holds(s, from, to); from = s->c->parent[from]) {
        for (int f = s->held[from]; f >= 0; f = s->before[f]) gcpi_drop(s, f);
        s->held[from] = -1;
    }
}

/* Of what ran again, holds what stays resident in the segment and drops the rest. */
static void gcpi_settle(gcpi_scheduler *s, int segment)
{
    for (int i = 0; i < s->again_count; i++)
        if (gcpi_stays(s, gcpi_made_by(s, s->again[i]), segment)) gcpi_hold(s, s->again[i]);
        else gcpi_drop(s, s->again[i]);
    s->again_count = 0;
}

static int gcpi_need(gcpi_scheduler *s, int f, int *low, int *high)      /* marks f; 1: it was not marked yet */
{
    if (s->need[f]) return 0;
    *low = GCPI_MIN(*low, f);
    *high = GCPI_MAX(*high, f);
    return s->need[f] = 1;
}

/* Where a segment is entered to run f again, marks also what makes items that outlive it and that backward still reads:
   the segment then runs once for all of them, not once for each. */
static int gcpi_enter_segment(gcpi_scheduler *s, int task, int f, int *low, int *high)
{
    const gcpi_problem *p = s->p;
    int here = s->here, c = s->c->segment[f], marked = 0;
    if (gcpi_holds(s, c, here)) return 0;
    while (!gcpi_holds(s, s->c->parent[c], here)) c = s->c->parent[c];
    if (s->entered[c] == s->entry) return 0;
    s->entered[c] = s->entry;
    for (int side = -1; side <= 1; side += 2)
        for (int g = f; g >= 0 && g < p->forward && gcpi_holds(s, c, s->c->segment[g]); g += side)
            for (int k = 0; k < p->tasks[g].count; k++) {
                const gcpi_operand *o = &p->operands[p->tasks[g].operands + k];
                if (o->mode == GCPI_READ || s->resident[o->item] || s->last[o->item] < task ||
                    !gcpi_stays(s, o->item, here))
                    continue;
                marked += gcpi_need(s, g, low, high);
            }
    return marked;
}

/* Runs again what task reads and is not resident: marks tasks from last to first, emits them from first to last. */
static void gcpi_materialise(gcpi_scheduler *s, int task)
{
    const gcpi_problem *p = s->p;
    int pending = 0, low = p->forward, high = -1;
    for (int f = -1;;) {              /* -1: the task itself, then the marked ones from high to low */
        const gcpi_task *t = &p->tasks[f < 0 ? task : f];
        for (int k = 0; k < t->count; k++) {
            const gcpi_operand *o = &p->operands[t->operands + k];
            int producer = p->items[o->item].producer;
            if (o->mode != GCPI_READ || p->items[o->item].kind != GCPI_FORWARD_ITEM || s->resident[o->item] ||
                s->need[producer])
                continue;
            pending += gcpi_need(s, producer, &low, &high);
            if (!s->c->replay) pending += gcpi_enter_segment(s, task, producer, &low, &high);
        }
        if (!pending) break;
        if (f < 0) f = high + 1;
        do f--; while (!s->need[f]);
        pending--;
    }
    for (int f = low; f <= high; f++) {
        const gcpi_task *t = &p->tasks[f];
        if (!s->need[f]) continue;
        s->need[f] = 0;
        gcpi_emit(s->list, 'R', f, t);
        s->again[s->again_count++] = f;
        for (int k = 0; k < t->count; k++)
            if (p->operands[t->operands + k].mode != GCPI_READ) s->resident[p->operands[t->operands + k].item] = 1;
    }
}

static void gcpi_backward_list(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    int segment = p->forward ? s->c->segment[p->forward - 1] : 0, unit = -1;
    for (int b = p->forward; b < p->task_count; b++) {
        const gcpi_task *t = &p->tasks[b];
        if (t->kind == GCPI_TASK_BACKWARD) {
            int here = s->c->segment[t->forward];
            if (s->c->replay && unit != t->unit)
                while (s->again_count) gcpi_drop(s, s->again[--s->again_count]);
            if (!s->c->replay) gcpi_leave(s, segment, here);
            segment = s->here = here;
            unit = t->unit;
            s->entry++;
            gcpi_materialise(s, b);
            if (!s->c->replay) gcpi_settle(s, here);
        }
        gcpi_emit(s->list, gcpi_letters[t->kind], b, t);
    }
}

/* What is resident when backward begins. */
static void gcpi_resident_first(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    const gcpi_choice *c = s->c;
    int last = p->forward ? c->segment[p->forward - 1] : 0;
    for (int i = 0; i < p->item_count; i++) {
        int at_home = c->replay ? s->home[i] == 0 : gcpi_holds(s, s->home[i], last);
        s->resident[i] = s->mode[i] == GCPI_STORE || (s->mode[i] == GCPI_AUTO && at_home);
    }
    for (int i = 0; i < c->segments; i++) s->held[i] = -1;
    for (int f = 0; f < p->forward && !c->replay; f++) {
        int made = gcpi_made_by(s, f);
        if (made >= 0 && s->resident[made] && s->mode[made] != GCPI_STORE) gcpi_hold(s, f);
    }
}

/* Fills list (list->at NULL: counts only). 0: not enough scratch. */
static int gcpi_schedule(const gcpi_problem *p, const gcpi_choice *c, gcpi_list *list, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_scheduler s;
    memset(&s, 0, sizeof s);
    s.p = p; s.c = c; s.list = list;
    s.home = GCPI_SCRATCH(a, int, p->item_count);
    s.mode = GCPI_SCRATCH(a, unsigned char, p->item_count);
    s.resident = GCPI_SCRATCH(a, unsigned char, p->item_count);
    s.need = GCPI_SCRATCH(a, unsigned char, p->forward + 1);
    s.again = GCPI_SCRATCH(a, int, p->forward + 1);
    s.before = GCPI_SCRATCH(a, int, p->forward + 1);
    s.held = GCPI_SCRATCH(a, int, c->segments + 1);
    s.last = GCPI_SCRATCH(a, int, p->item_count);
    s.entered = GCPI_SCRATCH(a, int, c->segments + 1);
    s.rank = GCPI_SCRATCH(a, int, c->segments + 1);
    s.size = GCPI_SCRATCH(a, int, c->segments + 1);
    int *next = GCPI_SCRATCH(a, int, c->segments + 1);
    list->count = 0; list->rerun_flops = list->seconds = 0;
    if (!s.home || !s.mode || !s.resident || !s.need || !s.again || !s.before || !s.held || !s.last || !s.entered ||
        !s.rank || !s.size || !next)
        return 0;
    gcpi_segments_rank(&s, next);
    gcpi_homes(&s);
    for (int f = 0; f < p->forward; f++) gcpi_emit(list, 'F', f, &p->tasks[f]);
    gcpi_resident_first(&s);
    for (int b = p->forward; b < p->task_count; b++)
        for (int k = 0; k < p->tasks[b].count; k++) s.last[p->operands[p->tasks[b].operands + k].item] = b;
    gcpi_backward_list(&s);
    a->scratch = scratch;
    return 1;
}

/* Lists as text: a letter and a name per line; '#' begins a comment. */
static int gcpi_letter_task(const gcpi_task *t, char letter)
{
    return letter == gcpi_letters[t->kind] || (letter == 'R' && t->kind == GCPI_TASK_FORWARD);
}

static int gcpi_list_find(const gcpi_problem *p, char letter, const char *name, int from)      /* task, or -1 */
{
    char buffer[256];
    int count = p->task_count + p->far_count + p->move_count;
    for (int k = 0; k < count; k++) {
        int task = (from + k) % count;
        if (gcpi_letter_task(&p->tasks[task], letter) &&
            !strcmp(gcpi_task_name(p, &p->tasks[task], buffer, sizeof buffer), name))
            return task;
    }
    return -1;
}

/* A list's text, line by line: 'LETTER NAME', in which a # begins a comment. */
typedef struct gcpi_lines { const char *text; int line; char letter, name[256], *message; size_t size; } gcpi_lines;

static gcpi_lines gcpi_lines_of(const char *text, char *message, size_t size)
{
    gcpi_lines l;
    memset(&l, 0, sizeof l);
    l.text = text; l.message = message; l.size = size;
    *message = 0;
    return l;
}

/* The next line that is not empty. 0: there is none, or it is wrong, which message says. */
static int gcpi_lines_next(gcpi_lines *l)
{
    for (size_t used = 0; *l->text;) {
        const char *text = l->text, *end = strchr(text, '\n'), *hash;
        size_t n = end ? (size_t)(end - text) : strlen(text);
        l->line++;
        l->text += n + (end != NULL);
        hash = (const char *)memchr(text, '#', n);
        used = hash ? (size_t)(hash - text) : n;
        while (used && (text[used - 1] == ' ' || text[used - 1] == '\t' || text[used - 1] == '\r')) used--;
        if (!used) continue;
        if (used < 3 || text[1] != ' ' || used - 2 >= sizeof l->name) {
            snprintf(l->message, l->size, "line %d: not 'LETTER NAME'", l->line);
            return 0;
        }
        l->letter = *text;
        memcpy(l->name, text + 2, used - 2);
        l->name[used - 2] = 0;
        return 1;
    }
    return 0;
}

/* The inputs that a line names: one C line of a list. Their bits, or 0: message says what is wrong. */
static uint64_t gcpi_copied_inputs(const gcpi_lines *l, const char *text, int inputs)
{
    uint64_t bits = 0;
    char *end;
    for (; *text; text = end) {
        long i = *text == ' ' && text[1] >= '0' && text[1] <= '9' ? strtol(text + 1, &end, 10) : -1;
        if (i < 0 || i >= inputs) { bits = 0; break; }
        bits |= (uint64_t)1 << i;
    }
    if (!bits) snprintf(l->message, l->size, "line %d: which inputs? 0 to %d", l->line, inputs - 1);
    return bits;
}

/* Where the numbers begin with which a line ends, a space before each: a name may hold spaces, too. */
static char *gcpi_numbers_after(char *name)
{
    char *numbers = name + strlen(name);
    for (char *s = numbers;; numbers = --s) {
        while (s > name && s[-1] >= '0' && s[-1] <= '9') s--;
        if (s == numbers || s == name || s[-1] != ' ') return numbers;
    }
}

/* Takes over one line 'C NAME INPUTS...': in this plan the concat or slice NAME copies these inputs. Or 'C gradient of
   NAME INPUTS...': backward of the concat copies their gradients. */
static int gcpi_copied_line(gcpi_problem *p, gcpi_lines *l)
{
    static const char gradient[] = "gradient of ";
    int back = !strncmp(l->name, gradient, sizeof gradient - 1), task;
    char *name = l->name + (back ? sizeof gradient - 1 : 0), *inputs = gcpi_numbers_after(name), first = *inputs;
    *inputs = 0;
    task = gcpi_is_graph(p) ? -1 : gcpi_list_find(p, 'F', name, 0);
    int view = task < 0 ? GCPI_VIEW_NONE : gcpi_facts_of(&p->tape->ops[p->tasks[task].op]).view;
    if (view != GCPI_VIEW_JOINED && (view != GCPI_VIEW_PART || back)) {
        snprintf(l->message, l->size, "line %d: no concat%s '%.120s' in this network; its inputs follow as numbers",
                 l->line, back ? "" : " or slice", name);
        return 0;
    }
    *inputs = first;
    const gcp_tape *t = p->tape;
    int op = p->tasks[task].op;
    uint64_t bits = gcpi_copied_inputs(l, inputs, t->ops[op].inputs);
    *(back ? &p->copied[op].gradients : &p->copied[op].values) |= bits;
    return bits != 0;
}

/* The line with which the list of fused updates opens, before the C lines. */
#define GCPI_LIST_FUSED "as soon as gradients are finished"
static int gcpi_line_opens(const gcpi_lines *l)
{
    return l->letter == 'C' || (l->letter == 'U' && !strcmp(l->name, GCPI_LIST_FUSED));
}

static int gcpi_list_fuses(const char *text)
{
    char message[200];
    gcpi_lines l = gcpi_lines_of(text, message, sizeof message);
    while (gcpi_lines_next(&l) && gcpi_line_opens(&l)) if (l.letter == 'U') return 1;
    return 0;
}

/* Reads the C lines with which a list opens, and places the views as they say. 0: message says which line is wrong. */
static int gcpi_list_views(gcpi_problem *p, const char *text, char *message, size_t size)
{
    gcpi_lines l = gcpi_lines_of(text, message, size);
    int lines = 0;
    while (gcpi_lines_next(&l) && gcpi_line_opens(&l)) {
        if (l.letter == 'U') continue;
        if (!gcpi_copied_line(p, &l)) return 0;
        lines++;
    }
    if (lines) gcpi_views_place(p);
    return !*message;
}

/* Parses the instructions. list->at NULL: counts. 0: message says which line is wrong. */
static int gcpi_list_parse(const gcpi_problem *p, const char *text, gcpi_list *list, char *message, size_t size)
{
    gcpi_lines l = gcpi_lines_of(text, message, size);
    int from = 0, again = 0;                     /* where the next F, B, U or R is likely to be */
    list->count = 0; list->seconds = list->rerun_flops = 0;
    while (gcpi_lines_next(&l)) {
        if (!list->count && gcpi_line_opens(&l)) continue;
        if (!list->count) list->opening = l.line - 1;
        int task = gcpi_list_find(p, l.letter, l.name, l.letter == 'R' ? again : from);
        if (task < 0) {
            snprintf(message, size, "line %d: no instruction '%c %.120s' in this network%s", l.line, l.letter, l.name,
                     gcpi_line_opens(&l)                   ? ": such lines come before the first instruction"
                     : l.letter == 'U' && !p->optimizer    ? ": the plan has no .optimizer"
                     : l.letter == 'B' && !p->training     ? ": the plan is for .inference"
                                                           : "");
            return 0;
        }
        gcpi_emit(list, l.letter, task, &p->tasks[task]);
        if (task < p->task_count) *(l.letter == 'R' ? &again : &from) = task + 1;
    }
    return !*message;
}

/* Counts reruns: of a unit, one for each unit whose backward it was run again for. Views are free and do not count. */
static int gcpi_list_reruns(const gcpi_problem *p, gcpi_list *list, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    int *last = GCPI_SCRATCH(a, int, p->units + 1), unit = -1;
    if (!last) return 0;
    list->reruns = 0;
    for (ptrdiff_t i = list->count - 1; i >= 0; i--) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        if (t->kind == GCPI_TASK_BACKWARD) unit = t->unit;
        if (list->at[i].letter != 'R' || t->free || last[t->unit] == unit + 1) continue;
        last[t->unit] = unit + 1;
        list->reruns++;
    }
    a->scratch = scratch;
    return 1;
}
