/* gcp_save_run and gcp_resume_run. A run file is read twice: the first time its checksum is compared and its entries
   with the tape, the second time they go where they belong. */

/* .extra and .extra_bytes go together. */
static int gcpi_run_extra_ok(gcpi_disk_file *s, const gcp_run_opts *o)
{
    if (!o->extra != !o->extra_bytes)
        gcpi_fail(s->tape, GCP_E_ARGUMENT, s->at, s->call, "%s", o->extra ? ".extra without .extra_bytes"
                                                                          : ".extra_bytes without .extra");
    else if (o->extra_bytes > PTRDIFF_MAX)
        gcpi_fail(s->tape, GCP_E_ARGUMENT, s->at, s->call, ".extra_bytes = %zu: no object is as large",
                  o->extra_bytes);
    return !s->tape->code;
}
/* What a run file calls its own parts must not be a parameter's name. */
static int gcpi_run_names_ok(gcpi_disk_file *s)
{
    for (int i = 0; i < s->tape->parameter_count; i++)
        if (!strncmp(s->tape->parameters[i].path, "gcp.", 4))
            return gcpi_wrong(s, GCP_E_NAME, "%.100s: names that begin with 'gcp.' are a run file's own",
                              s->tape->parameters[i].path);
    return 1;
}

GCPI_DEF gcp_code gcp_save_run_at(gcp_tape *t, const char *path, gcp_run_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_save_run");
    const unsigned char *extra = (const unsigned char *)o.extra;
    const gcpi_saving v = { t, &s, { GCP_STYLE_GCP, NULL, NULL }, 1, 0, extra, o.extra_bytes };
    if (!gcpi_file_begins(&s, t, o.arena) || gcpi_halfway(t, o.at, s.call)) return gcp_error_code(t);
    return gcpi_run_extra_ok(&s, &o) && gcpi_run_names_ok(&s) ? gcpi_save(&v) : t->code;
}

/* What a run file has besides tensors. */
typedef struct gcpi_resuming {
    gcp_tape *t; gcpi_disk_file *s;
    gcpi_header h;
    const gcpi_stored *head, *extra, *sum;
    uint64_t words[GCPI_RUN_HEAD_WORDS];
} gcpi_resuming;

static const gcpi_stored *gcpi_resume_entry(gcpi_resuming *r, const char *name, int dtype, uint64_t bytes)
{
    gcpi_stored *e = gcpi_header_find(&r->h, name);
    if (!e || e->dtype != dtype || e->end - e->begin != bytes) return NULL;
    return e;
}

/* Reads to the end for the checksum; takes the head on the way. 0: an error. */
static int gcpi_resume_check(gcpi_resuming *r)
{
    gcpi_disk_file *s = r->s;
    unsigned char bytes[8 * GCPI_RUN_HEAD_WORDS];
    r->head = gcpi_resume_entry(r, GCPI_RUN_HEAD, GCPI_FILE_U64, sizeof bytes);
    r->sum = gcpi_resume_entry(r, GCPI_RUN_SUM, GCPI_FILE_U64, 8);
    r->extra = gcpi_header_find(&r->h, GCPI_RUN_EXTRA);
    if (!r->head || !r->sum || r->head->begin || r->sum->end != r->h.bytes)
        return gcpi_wrong(s, GCP_E_CONTENTS, "is not a run file of gcp_save_run (gcp_load reads weights alone)");
    if (!gcpi_disk_read(s, bytes, sizeof bytes)) return 0;
    for (int i = 0; i < GCPI_RUN_HEAD_WORDS; i++) r->words[i] = gcpi_u64_from(bytes + 8 * i);
    if (!gcpi_disk_skip(s, r->h.bytes - sizeof bytes - 8)) return 0;
    uint64_t sum = gcpi_checksum_end(s->sum);
    if (!gcpi_disk_read(s, bytes, 8)) return 0;
    if (gcpi_u64_from(bytes) != sum)
        return gcpi_wrong_at(s, (int64_t)s->size - 8, "found the checksum %016llx, expected %016llx: the file is "
                             "damaged", (unsigned long long)gcpi_u64_from(bytes), (unsigned long long)sum);
    if (r->words[0] != GCPI_RUN_FORMAT)
        return gcpi_wrong(s, GCP_E_CONTENTS, "found version %llu of the format, expected %d",
                          (unsigned long long)r->words[0], GCPI_RUN_FORMAT);
    return 1;
}

/* Gives parameter i its value, or a slot of its own. 0: the file has another network's, or none. */
static int gcpi_resume_take(gcpi_resuming *r, int i, int slot)
{
    const gcpi_parameter *x = &r->t->parameters[i];
    char name[GCPI_NAME_MOST + 32];
    gcpi_axes axes;
    if (slot) snprintf(name, sizeof name, GCPI_RUN_SLOT "%d/%.1024s", slot - 1, x->path);
    else snprintf(name, sizeof name, "%.1024s", x->path);
    gcpi_stored *e = gcpi_header_find(&r->h, name);
    if (!e && slot) return 1;                     /* not trained before: its slots stay zero */
    if (!e)
        return gcpi_wrong(r->s, GCP_E_PARAMETERS, "another network: it has no %.100s", name);
    if (e->dtype != gcpi_real_dtype())
        return gcpi_wrong(r->s, GCP_E_DTYPE, "%.100s: found %s, expected %s: gcp_real was another type", name,
                          gcpi_dtype_name(e->dtype), gcpi_dtype_name(gcpi_real_dtype()));
    gcpi_axes_default(GCP_STYLE_GCP, x->shape.rank, &axes);
    e->slot = slot;
    return gcpi_stored_take(r->s, r->t, e, i, &axes);
}
/* Whether the file's slots have a place: 0: an error. */
static int gcpi_resume_optimizer(gcpi_resuming *r)
{
    const gcp_tape *t = r->t;
    static const char *const names[] = { "none", "SGD", "Adam", "AdamW" };
    const uint64_t optimizer = r->words[4];
    if (!optimizer || optimizer == (uint64_t)t->optimizer) return 1;
    if (!t->optimizer)
        return gcpi_wrong(r->s, GCP_E_STATE,
                          "has slots of %s: bind a plan with it first (gcp_load reads weights alone)",
                          optimizer < 4 ? names[optimizer] : "another optimiser");
    return gcpi_wrong(r->s, GCP_E_STATE, "was trained with %s, and the slots bound are %s's",
                      optimizer < 4 ? names[optimizer] : "another optimiser", names[(int)t->optimizer & 3]);
}
/* Entries that nothing took: of another network, or slots of what no plan bound trains. */
static int gcpi_resume_left(gcpi_resuming *r)
{
    for (int i = 0; i < r->h.count; i++) {
        const gcpi_stored *e = &r->h.entries[i];
        if (e->parameter >= 0 || e == r->head || e == r->sum || e == r->extra) continue;
        if (!strncmp(e->name, GCPI_RUN_UPDATES, sizeof GCPI_RUN_UPDATES - 1)) continue;
        if (!strncmp(e->name, GCPI_RUN_SLOT, sizeof GCPI_RUN_SLOT - 1))
            return gcpi_wrong(r->s, GCP_E_STATE, "has %.100s: bind the plan that trains it first", e->name);
        return gcpi_wrong(r->s, GCP_E_PARAMETERS, "another network: it has %.100s", e->name);
    }
    return 1;
}

/* Compares the file with the tape. 0: an error, the first difference. */
static int gcpi_resume_match(gcpi_resuming *r, const gcp_run_opts *o)
{
    gcp_tape *t = r->t;
    const uint64_t extra = r->extra ? r->extra->end - r->extra->begin : 0;
    for (int i = 0; i < t->parameter_count; i++) if (!gcpi_resume_take(r, i, 0)) return 0;
    if (!gcpi_resume_optimizer(r)) return 0;
    for (int i = 0; i < t->parameter_count; i++)
        for (int k = 1; k <= t->slots && t->parameters[i].slot; k++) if (!gcpi_resume_take(r, i, k)) return 0;
    if (!gcpi_resume_left(r)) return 0;
    if (extra == o->extra_bytes) return 1;
    return gcpi_wrong(r->s, GCP_E_ARGUMENT, "found %llu bytes of .extra, expected %llu", (unsigned long long)extra,
                      (unsigned long long)o->extra_bytes);
}

/* The parameter whose updates an entry counts; -1: none, or it has no slots. */
static int gcpi_resume_counted(const gcp_tape *t, const gcpi_stored *e)
{
    const size_t prefix = sizeof GCPI_RUN_UPDATES - 1;
    if (strncmp(e->name, GCPI_RUN_UPDATES, prefix) || e->dtype != GCPI_FILE_U64 || e->end - e->begin != 8) return -1;
    for (int i = 0; i < t->parameter_count; i++)
        if (t->parameters[i].slot && !strcmp(t->parameters[i].path, e->name + prefix)) return i;
    return -1;
}
/* What the file has no slots for begins anew. */
static void gcpi_resume_clear(gcpi_resuming *r)
{
    gcp_tape *t = r->t;
    for (int i = 0; i < t->parameter_count; i++) {
        const size_t bytes = gcpi_parameter_bytes(t, i);
        if (!t->parameters[i].slot) continue;
        gcpi_bytes_fill(&t->home, gcpi_count_at(t, i), 0, sizeof(uint64_t));
        for (int k = 0; k < t->slots; k++) {
            if (t->far_slots) memset(gcpi_slot_at(t, i, k), 0, bytes);
            else gcpi_bytes_fill(&t->home, gcpi_slot_at(t, i, k), 0, bytes);
        }
    }
}
/* The second reading: everything to its place. */
static int gcpi_resume_apply(gcpi_resuming *r, const gcp_run_opts *o)
{
    gcp_tape *t = r->t;
    gcpi_disk_file *s = r->s;
    unsigned char word[8];
    uint64_t count;
    if (!gcpi_disk_again(s) || !gcpi_disk_skip(s, r->h.data)) return 0;
    gcpi_resume_clear(r);
    for (int i = 0; i < r->h.count; i++) {
        const gcpi_stored *e = &r->h.entries[i];
        const int counted = gcpi_resume_counted(t, e);
        if (counted >= 0) {
            if (!gcpi_disk_read(s, word, 8)) return 0;
            count = gcpi_u64_from(word);
            gcpi_bytes_copy(&t->home, gcpi_count_at(t, counted), &count, sizeof count);
        } else if (e == r->extra && o->extra) {
            if (!gcpi_disk_read(s, o->extra, o->extra_bytes)) return 0;
        } else if (!gcpi_load_entry(s, t, e)) return 0;
    }
    gcpi_counters c = { r->words[2], r->words[3] };
    gcpi_bytes_copy(&t->home, t->state, &c, sizeof c);
    t->seed = r->words[1];
    t->summing = 0;
    return 1;
}

GCPI_DEF int gcp_resume_run_at(gcp_tape *t, const char *path, gcp_run_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_resume_run");
    gcpi_resuming r;
    memset(&r, 0, sizeof r);
    r.t = t; r.s = &s;
    if (!gcpi_file_begins(&s, t, o.arena) || gcpi_halfway(t, o.at, s.call) || !gcpi_run_extra_ok(&s, &o) ||
        !gcpi_disk_path(&s))
        return 0;
    if (s.files->absent(s.files->context, s.path)) return 0;
    int good = gcpi_disk_open(&s) && gcpi_header_read(&s, &r.h) && gcpi_resume_check(&r) &&
               gcpi_resume_match(&r, &o) && gcpi_resume_apply(&r, &o);
    gcpi_disk_close(&s);
    return good;
}
