/* A problem as text, read and written. gcp-graph 1 has one line per op:  KIND ID COST BYTES WORKSPACE INPUTS...  KIND
   is f (forward, may run again), o (forward, runs once) or b (backward, runs once, in this order, after all f and o).
   Each op has one output tensor; INPUTS are ids of ops. gcp-graph 2 to 4 (the first line says so) have separate lines
   for tensors:
     t ID BYTES [in=ID@OFFSET] [rows=PITCH/ROW] [width=BYTES] [gradient] [stored] [keep] [end] [always] [state]
     f|o|b ID COST WORKSPACE OPERANDS... [of=ID] [free] [concat] [costly] [joins] [loss] [unit=N]
   rows: elements from row to row, and in a row; width (from 4 on): bytes of an element, else those of gcp_real.
   in: a view, which takes no bytes of its own; what a concat reads and does not hold so, it copies. keep: kept by the
   user; end: lives to the end of the step; always: from its beginning, too; state: is not in the slab (2 leaves such
   operands out, so a concat of weights has the wrong columns there). Operands: T is read, >T written, +T added to, =T
   becomes the same bytes; >T<A or >T<A<B: T may be written in place on A or B. of: the op that a b reverses (by default
   ID_b reverses ID, and any other b the last op whose output it reads). '# numbers N' and '# state N' give the bytes of
   the step's numbers and of the state, '# units N' how many units count. Other text after # is a comment. */

typedef struct gcpi_reader {
    gcpi_problem *p; gcp_arena *a;
    char *text, *at;                  /* copy of the text, cut into tokens; where in the line */
    int *table, table_size;           /* hash table of names: item + 1 at even indices, task + 1 at odd ones */
    int version, line;
    size_t bytes;                     /* of all tensors and workspaces so far */
    char *message; size_t size;
} gcpi_reader;

static int gcpi_graph_bad(gcpi_reader *r, const char *text, const char *token)
{
    snprintf(r->message, r->size, "line %d: %s%s%.80s", r->line, text, token ? " " : "", token ? token : "");
    return 0;
}

static char *gcpi_token(gcpi_reader *r)              /* the line's next token, or NULL */
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') r->at++;
    if (!*r->at || *r->at == '#') return NULL;
    char *token = r->at;
    while (*r->at && *r->at != ' ' && *r->at != '\t' && *r->at != '\r' && *r->at != '#') r->at++;
    if (*r->at == '#') *r->at = 0;
    else if (*r->at) *r->at++ = 0;
    return token;
}

static int gcpi_size_token(const char *token, size_t *n)
{
    char *end;
    if (!token || *token < '0' || *token > '9') return 0;
    double value = gcpi_real(token, &end);
    if (*end || !(value >= 0) || value > (double)(SIZE_MAX / 16)) return 0;
    *n = (size_t)strtoull(token, &end, 10);
    if (*end) *n = (size_t)value;
    return 1;
}

/* Reads a size. The sum of all sizes is bounded, so that multiples of it do not overflow. */
static int gcpi_bytes_token(gcpi_reader *r, const char *token, size_t *n)
{
    return gcpi_size_token(token, n) && (r->bytes += *n) <= SIZE_MAX / 16;
}

static int *gcpi_name_place(gcpi_reader *r, const char *name, int task)      /* the entry where name is, or would be */
{
    char *const *names = task ? r->p->task_names : r->p->item_names;
    uint64_t at = gcpi_hash(name);
    for (;; at++) {
        int *entry = &r->table[2 * (at % (uint32_t)r->table_size) + (uint32_t)task];
        if (!*entry || !strcmp(names[*entry - 1], name)) return entry;
    }
}

static int gcpi_graph_item(gcpi_reader *r, char *name, size_t bytes)
{
    gcpi_problem *p = r->p;
    int *place = gcpi_name_place(r, name, 0);
    if (*place) return gcpi_graph_bad(r, "a second tensor", name) - 1;
    gcpi_item *x = &p->items[p->item_count];
    memset(x, 0, sizeof *x);
    x->bytes = bytes;
    x->width = (int)sizeof(gcp_real);
    x->kind = GCPI_FORWARD_ITEM;
    x->tensor = x->root = p->item_count;
    x->next = x->producer = -1;
    p->item_names[p->item_count] = name;
    return (*place = ++p->item_count) - 1;
}

static int gcpi_graph_rows(gcpi_reader *r, gcpi_item *x, const char *token)
{
    size_t pitch, row;
    char first[32];
    const char *slash = strchr(token, '/');
    if (!slash || (size_t)(slash - token) >= sizeof first) return gcpi_graph_bad(r, "not rows=PITCH/ROW:", token);
    memcpy(first, token, (size_t)(slash - token));
    first[slash - token] = 0;
    if (!gcpi_size_token(first, &pitch) || !gcpi_size_token(slash + 1, &row) || row > pitch || row < 1 ||
        pitch > PTRDIFF_MAX / 16)
        return gcpi_graph_bad(r, "not rows=PITCH/ROW:", token);
    x->pitch = (ptrdiff_t)pitch; x->row = (ptrdiff_t)row;
    return 1;
}

static int gcpi_graph_width(gcpi_reader *r, gcpi_item *x, const char *token)
{
    size_t width;
    if (!gcpi_size_token(token, &width) || width < 1 || width > 16)
        return gcpi_graph_bad(r, "not width=BYTES, 1 to 16:", token);
    x->width = (int)width;
    return 1;
}

static int gcpi_graph_inside(gcpi_reader *r, int item, char *token)
{
    gcpi_problem *p = r->p;
    gcpi_item *x = &p->items[item];
    char *at = strrchr(token, '@');
    if (!at || !gcpi_size_token(at + 1, &x->offset)) return gcpi_graph_bad(r, "not in=ID@OFFSET:", token);
    *at = 0;
    int root = *gcpi_name_place(r, token, 0) - 1;
    if (root < 0 || root == item || p->items[root].root != root || x->root != item)
        return gcpi_graph_bad(r, "no tensor of its own:", token);
    if (x->offset + x->bytes > p->items[root].bytes) return gcpi_graph_bad(r, "does not lie inside of", token);
    x->root = root;
    x->next = p->items[root].next;
    p->items[root].next = item;
    return 1;
}

static int gcpi_graph_tensor(gcpi_reader *r)
{
    char *name = gcpi_token(r), *token;
    size_t bytes;
    if (!name || !gcpi_bytes_token(r, gcpi_token(r), &bytes)) return gcpi_graph_bad(r, "not 't ID BYTES'", NULL);
    int item = gcpi_graph_item(r, name, bytes);
    if (item < 0) return 0;
    gcpi_item *x = &r->p->items[item];
    while ((token = gcpi_token(r)) != NULL) {
        if (!strncmp(token, "in=", 3)) { if (!gcpi_graph_inside(r, item, token + 3)) return 0; }
        else if (!strncmp(token, "rows=", 5)) { if (!gcpi_graph_rows(r, x, token + 5)) return 0; }
        else if (r->version > 3 && !strncmp(token, "width=", 6)) { if (!gcpi_graph_width(r, x, token + 6)) return 0; }
        else if (!strcmp(token, "gradient")) x->kind = GCPI_GRADIENT_ITEM;
        else if (!strcmp(token, "stored")) x->stored = 1;
        else if (!strcmp(token, "keep")) x->kept = x->stored = 1;
        else if (!strcmp(token, "end")) x->pinned = GCPI_PINNED_TO_END;
        else if (!strcmp(token, "state")) x->kind = GCPI_STATE_ITEM;
        else if (!strcmp(token, "always")) {
            x->pinned = GCPI_PINNED_ALWAYS;
            if (x->kind == GCPI_FORWARD_ITEM) x->kind = GCPI_INPUT_ITEM;
        } else return gcpi_graph_bad(r, "unknown:", token);
    }
    return 1;
}

static int gcpi_graph_find(gcpi_reader *r, const char *name)
{
    int item = *gcpi_name_place(r, name, 0) - 1;
    return item >= 0 ? item : gcpi_graph_bad(r, "no tensor", name) - 1;
}

/* The operand after > or =, with the operands that it may be written on. */
static int gcpi_graph_write(gcpi_reader *r, gcpi_task *task, char *token, int mode)
{
    char *on = strchr(token, '<');
    if (on) *on++ = 0;
    int item = gcpi_graph_find(r, token);
    for (int side = 0; item >= 0 && on && side < 2; side++) {
        char *next = strchr(on, '<');
        if (next) *next++ = 0;
        int under = gcpi_graph_find(r, on);
        if (under < 0) return 0;
        for (int k = 0; k < task->count && task->under[side] < 0; k++)
            if (r->p->operands[task->operands + k].item == under && !(side && task->under[0] == k))
                task->under[side] = k;
        if (task->under[side] < 0) return gcpi_graph_bad(r, "is not read before it is written on:", on);
        task->over = task->count;
        on = next;
    }
    if (item >= 0 && r->p->items[item].kind == GCPI_STATE_ITEM) return gcpi_graph_bad(r, "no op may write", token);
    if (item < 0) return 0;
    if (r->p->items[item].producer < 0) r->p->items[item].producer = (int)(task - r->p->tasks);
    gcpi_operand_add(r->p, task, item, mode, GCPI_ROLE_OUT);
    return 1;
}

/* 1: token is a trait; 0: it is not; -1: it is one, but wrong */
static int gcpi_graph_trait(gcpi_reader *r, gcpi_task *task, const char *token)
{
    size_t unit;
    if (!strncmp(token, "of=", 3)) {
        task->forward = *gcpi_name_place(r, token + 3, 1) - 1;
        if (task->forward < 0) return gcpi_graph_bad(r, "no op", token + 3) - 1;
        return 1;
    }
    if (!strncmp(token, "unit=", 5)) {
        if (!gcpi_size_token(token + 5, &unit) || unit > (size_t)r->table_size)
            return gcpi_graph_bad(r, "not unit=N:", token) - 1;
        task->unit = (int)unit;
        return 1;
    }
    int *traits[] = { &task->free, &task->concat, &task->costly, &task->joins, &task->loss };
    static const char *const names[] = { "free", "concat", "costly", "joins", "loss" };
    for (int i = 0; i < 5; i++) if (!strcmp(token, names[i])) return *traits[i] = 1;
    return 0;
}

static int gcpi_graph_operands(gcpi_reader *r, gcpi_task *task)
{
    char *token;
    while ((token = gcpi_token(r)) != NULL) {
        int trait = r->version > 1 ? gcpi_graph_trait(r, task, token) : 0, item;
        if (trait < 0) return 0;
        if (trait) continue;
        if (r->version > 1 && *token == '>') {
            if (!gcpi_graph_write(r, task, token + 1, GCPI_WRITE)) return 0;
            continue;
        }
        if (r->version > 1 && *token == '=') {
            if (!gcpi_graph_write(r, task, token + 1, GCPI_ALIAS)) return 0;
            continue;
        }
        int add = r->version > 1 && *token == '+';
        if ((item = gcpi_graph_find(r, token + add)) < 0) return 0;
        const gcpi_item *x = &r->p->items[item];
        if (x->producer < 0 && x->pinned != GCPI_PINNED_ALWAYS && r->p->items[x->root].kind != GCPI_STATE_ITEM)
            return gcpi_graph_bad(r, "is read before any op writes it:", token + add);
        if (add && (r->p->forward < 0 || r->p->items[item].producer < r->p->forward))
            return gcpi_graph_bad(r, "only a gradient that an earlier op wrote can be added to:", token + 1);
        gcpi_operand_add(r->p, task, item, add ? GCPI_ADD : GCPI_READ, GCPI_ROLE_IN);
    }
    return 1;
}

/* The last forward op that made anything the b reads; -1: none. */
static int gcpi_graph_newest(const gcpi_problem *p, const gcpi_task *task)
{
    int newest = -1;
    for (int k = 0; k < task->count; k++) {
        int producer = p->items[p->operands[task->operands + k].item].producer;
        if (producer < p->forward) newest = GCPI_MAX(newest, producer);
    }
    return newest;
}

/* Which forward op a b reverses: that of of=ID; for a b named ID_b, ID; else the newest whose output it reads, or the
   one that the b before it reverses, or the last. */
static void gcpi_graph_reverses(gcpi_reader *r, gcpi_task *task, char *name)
{
    const gcpi_problem *p = r->p;
    size_t n = strlen(name);
    if (task->forward < 0 && n > 2 && !strcmp(name + n - 2, "_b")) {
        name[n - 2] = 0;
        task->forward = *gcpi_name_place(r, name, 1) - 1;
        name[n - 2] = '_';
    }
    if (task->forward < 0 || task->forward >= p->forward) task->forward = gcpi_graph_newest(p, task);
    if (task->forward < 0) task->forward = p->task_count - 1 > p->forward ? task[-1].forward : p->forward - 1;
    task->unit = p->tasks[task->forward].unit;
}

static int gcpi_graph_op(gcpi_reader *r, char kind)
{
    gcpi_problem *p = r->p;
    char *name = gcpi_token(r), *cost = gcpi_token(r), *end = NULL;
    size_t bytes = 0;
    double seconds = cost ? gcpi_real(cost, &end) : -1;
    if (!name || !cost || *end || !(seconds >= 0) || seconds > 1e300)
        return gcpi_graph_bad(r, "not 'KIND ID COST ...'", NULL);
    if (r->version == 1 && !gcpi_bytes_token(r, gcpi_token(r), &bytes)) return gcpi_graph_bad(r, "no bytes of", name);
    if (kind == 'b' ? p->task_count == 0 : p->forward >= 0)
        return gcpi_graph_bad(r, "every f and o line must come before the first b, and there must be one:", name);
    if (kind == 'b' && p->forward < 0) p->forward = p->task_count;
    gcpi_task *task = gcpi_task_add(p, kind == 'b' ? GCPI_TASK_BACKWARD : GCPI_TASK_FORWARD, p->task_count);
    int *place = gcpi_name_place(r, name, 1);
    if (*place) return gcpi_graph_bad(r, "a second op", name);
    p->task_names[p->task_count - 1] = name;
    *place = p->task_count;
    task->seconds = seconds; task->once = kind == 'o'; task->ops = 1; task->unit = p->task_count - 1;
    if (!gcpi_bytes_token(r, gcpi_token(r), &task->workspace)) return gcpi_graph_bad(r, "no workspace bytes of", name);
    if (!gcpi_graph_operands(r, task)) return 0;
    if (kind == 'b') gcpi_graph_reverses(r, task, name);
    if (r->version != 1 || !bytes) return 1;
    int item = gcpi_graph_item(r, name, bytes);
    if (item < 0) return 0;
    p->items[item].kind = kind == 'b' ? GCPI_GRADIENT_ITEM : GCPI_FORWARD_ITEM;
    p->items[item].producer = p->task_count - 1;
    gcpi_operand_add(p, task, item, GCPI_WRITE, GCPI_ROLE_OUT);
    return 1;
}

/* '# units N', '# numbers BYTES', '# state BYTES' describe the whole step; other comments are ignored. */
static int gcpi_graph_header(gcpi_reader *r, char *line)
{
    size_t units = 0;
    int ok = 1;
    if (!strncmp(line, "# numbers ", 10)) ok = gcpi_bytes_token(r, line + 10, &r->p->numbers);
    if (!strncmp(line, "# state ", 8)) ok = gcpi_bytes_token(r, line + 8, &r->p->state);
    if (!strncmp(line, "# units ", 8)) {
        ok = gcpi_size_token(line + 8, &units) && units <= (size_t)r->table_size;
        r->p->units = ok ? (int)units : 0;
    }
    return ok || gcpi_graph_bad(r, "not a valid number:", line);
}

static int gcpi_graph_line(gcpi_reader *r)
{
    const char *kind = gcpi_token(r);
    if (!kind) return 1;
    if (!strcmp(kind, "t") && r->version > 1) return gcpi_graph_tensor(r);
    if (!strcmp(kind, "f") || !strcmp(kind, "o") || !strcmp(kind, "b")) return gcpi_graph_op(r, *kind);
    return gcpi_graph_bad(r, "neither f, o, b nor t:", kind);
}

/* Allocates arrays by the counts of lines and words, which bound what the lines can make. 0: the arena is too small. */
static int gcpi_graph_arrays(gcpi_reader *r, const char *text, const gcp_plan_opts *opts)
{
    gcpi_problem *p = r->p;
    /* far and move tasks per item */
    size_t lines = 2, words = 2, n = strlen(text), far = opts->list || opts->far ? 3 : 0,
           moves = gcpi_moves(opts) ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        lines += text[i] == '\n';
        words += text[i] > ' ' && (i == 0 || text[i - 1] <= ' ');
    }
    r->text = GCPI_NEW(r->a, char, n + 1);
    p->items = GCPI_NEW(r->a, gcpi_item, lines);
    p->tasks = GCPI_NEW(r->a, gcpi_task, (1 + far + moves) * lines);
    p->operands = GCPI_NEW(r->a, gcpi_operand, words + (far + 2 * moves) * lines);
    p->task_names = GCPI_NEW(r->a, char *, lines);
    p->item_names = GCPI_NEW(r->a, char *, lines);
    if (lines > INT32_MAX / 8 || words > INT32_MAX / 8) return 0;
    r->table_size = 2 * (int)lines + 1;
    r->table = GCPI_SCRATCH(r->a, int, 2 * r->table_size);
    if (!r->text || !p->items || !p->tasks || !p->operands || !p->task_names || !p->item_names || !r->table) return 0;
    memcpy(r->text, text, n + 1);
    return 1;
}

/* 1 where the first line does not say; 0: one that is not known */
static int gcpi_graph_version(const char *text)
{
    int version = 0;
    if (strncmp(text, "# gcp-graph ", 12) || text[12] < '0' || text[12] > '9') return 1;
    for (text += 12; *text >= '0' && *text <= '9' && version < 100; text++) version = 10 * version + *text - '0';
    return version <= 4 ? version : 0;
}

/* A graph has no functions to run, so its problem can be planned, but not run. 0: the text is wrong (message says in
   which line), or the arena is too small (message is empty). */
static int gcpi_graph_parse(gcpi_problem *p, const char *text, const gcp_target *target, const gcp_plan_opts *opts,
                            char *message, size_t size, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_reader r;
    memset(&r, 0, sizeof r);
    r.p = p; r.a = a; r.message = message; r.size = size;
    message[0] = 0;
    p->target = *target; p->training = 1; p->root = -1; p->forward = -1;
    if (!gcpi_graph_arrays(&r, text, opts)) return 0;
    r.version = gcpi_graph_version(text);
    if (!r.version) {
        r.line = 1;
        return gcpi_graph_bad(&r, "a version that this gcp does not read; it reads 1 to 4", NULL);
    }
    for (char *line = r.text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        for (size_t n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--) line[n - 1] = 0;
        r.line++;
        r.at = line;
        if (!gcpi_graph_header(&r, line) || !gcpi_graph_line(&r)) return 0;
    }
    if (p->forward <= 0) return gcpi_graph_bad(&r, "there is no backward op", NULL);
    for (int i = 0; i < p->operand_count; i++) p->items[p->operands[i].item].active = 1;
    for (int i = 0; i < p->item_count; i++)
        if (p->items[i].producer >= p->forward) p->items[i].kind = GCPI_GRADIENT_ITEM;
    p->tensors = p->item_count;
    for (int f = 0; f < p->forward; f++)
        for (int k = 0; k < p->tasks[f].count; k++)
            if (p->tasks[f].once && p->operands[p->tasks[f].operands + k].mode != GCPI_READ)
                p->items[p->operands[p->tasks[f].operands + k].item].stored = 1;
    for (int f = 0, given = p->units; f < p->forward && !given; f++)
        p->units = GCPI_MAX(p->units, p->tasks[f].unit + 1);
    for (int f = 0; f < p->forward; f++) p->tasks[f].unit = GCPI_MIN(p->tasks[f].unit, p->units);
    for (int i = 0; i < p->item_count; i++) p->items[i].alone = gcpi_alone(p, i);
    if (opts->list || opts->far) gcpi_far_tasks(p);
    if (gcpi_moves(opts)) gcpi_move_tasks(p, opts->on_gradient != NULL);
    a->scratch = scratch;
    return 1;
}

/* The version that says all of a problem: the oldest. */
static int gcpi_graph_least(const gcpi_problem *p)
{
    for (int i = 0; i < p->item_count; i++)
        if (p->items[i].row && p->items[i].width != (int)sizeof(gcp_real)) return 4;
    return 3;
}

/* Prints a tensor's line, after that of its group's root. done: per item, 1 once it has a line. */
static void gcpi_graph_print_tensor(const gcpi_problem *p, int item, unsigned char *done, gcp_writer w)
{
    const gcpi_item *x = &p->items[item];
    char name[256];
    if (done[item]) return;
    done[item] = 1;
    if (x->root != item) gcpi_graph_print_tensor(p, x->root, done, w);
    gcpi_say(w, "t %d %zu", item, x->bytes);
    if (x->root != item) gcpi_say(w, " in=%d@%zu", x->root, x->offset);
    if (x->row) gcpi_say(w, " rows=%td/%td", x->pitch, x->row);
    if (x->row && x->width != (int)sizeof(gcp_real)) gcpi_say(w, " width=%d", x->width);
    gcpi_item_name(p, item, name, sizeof name);
    gcpi_say(w, "%s%s%s%s%s%s # %s\n", x->kind == GCPI_GRADIENT_ITEM ? " gradient" : "", x->stored ? " stored" : "",
             x->kept ? " keep" : "", x->pinned == GCPI_PINNED_TO_END ? " end" : "",
             x->pinned == GCPI_PINNED_ALWAYS ? " always" : "",
             x->kind == GCPI_STATE_ITEM ? " state" : "", name);
}

static void gcpi_graph_print_op(const gcpi_problem *p, int task, gcp_writer w)
{
    const gcpi_task *t = &p->tasks[task];
    const gcpi_operand *o = &p->operands[t->operands];
    char name[256];
    static const char *const modes[] = { "", ">", "+", "=" };
    gcpi_say(w, "%c ", task >= p->forward ? 'b' : t->once ? 'o' : 'f');
    if (task < p->forward || t->kind == GCPI_TASK_BACKWARD)
        gcpi_say(w, "%s%s", gcpi_task_name(p, t, name, sizeof name), task < p->forward || gcpi_is_graph(p) ? "" : "_b");
    else gcpi_say(w, "%c:%d", gcpi_letters[t->kind], task);
    gcpi_say(w, " %.17g %zu", t->seconds, t->workspace);
    for (int k = 0; k < t->count; k++) {
        gcpi_say(w, " %s%d", modes[o[k].mode], o[k].item);
        for (int side = 0; k == t->over && side < 2; side++)
            if (t->under[side] >= 0 && t->under[side] < k &&
                p->items[p->items[o[t->under[side]].item].root].kind != GCPI_STATE_ITEM)
                gcpi_say(w, "<%d", o[t->under[side]].item);
    }
    if (t->kind == GCPI_TASK_BACKWARD && t->forward >= 0)
        gcpi_say(w, " of=%s", gcpi_task_name(p, &p->tasks[t->forward], name, sizeof name));
    gcpi_say(w, "%s%s%s%s%s", t->free ? " free" : "", t->concat ? " concat" : "", t->costly ? " costly" : "",
             t->joins ? " joins" : "", t->loss ? " loss" : "");
    if (task < p->forward) gcpi_say(w, " unit=%d", t->unit);
    gcpi_say(w, "\n");
}
