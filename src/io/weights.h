/* gcp_save and gcp_load: parameters and running statistics. */

/* What all begin with: the tape's errors and scratch. arena: its user's, or NULL. 0: an error. */
static int gcpi_file_begins(gcpi_disk_file *s, gcp_tape *t, gcp_arena *arena)
{
    if (!t || t->code) return 0;
    s->tape = t;
    s->scratch = arena ? arena : t->arena;
    s->taken = s->scratch->scratch;
    if (t->state) return 1;
    gcpi_fail(t, GCP_E_STATE, s->at, s->call, "the state has no memory yet: call gcp_bind (or gcp_state_bind) first");
    return 0;
}

GCPI_DEF size_t gcp_files_arena(const gcp_tape *t)
{
    char text[GCP_MAX_ERROR];
    const gcp_at nowhere = { "", 0 };
    gcpi_disk_file s = gcpi_disk_of(NULL, NULL, nowhere, "gcp_files_arena");
    const gcpi_saving v = { t, &s, { GCP_STYLE_GCP, NULL, NULL }, 1, 1, NULL, PTRDIFF_MAX };
    s.text = text;
    if (!t || !t->ops) return 0;
    const gcpi_header_size size = gcpi_header_measure(&v);
    return gcpi_header_scratch(size.length, size.braces) + gcpi_flats_bytes(t);
}

GCPI_DEF gcp_code gcp_save_at(gcp_tape *t, const char *path, gcp_weights_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_save");
    gcpi_saving v = { t, &s, { o.style, o.map, NULL }, 0, 0, NULL, 0 };
    if (!gcpi_file_begins(&s, t, o.arena)) return gcp_error_code(t);
    if (gcpi_naming_begin(&s, &v.naming)) gcpi_save(&v);
    s.scratch->scratch = s.taken;
    return gcp_error_code(t);
}

/* A shape as text: 16x3x3x3. */
static const char *gcpi_sizes_text(const uint64_t *sizes, int rank, char *text, size_t size)
{
    size_t n = 0;
    snprintf(text, size, rank ? "" : "scalar");
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%llu", i ? "x" : "", (unsigned long long)sizes[i]);
    return text;
}
/* The same sizes, but for those of one. */
static int gcpi_sizes_agree(const uint64_t *a, int a_rank, const uint64_t *b, int b_rank)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < a_rank && a[i] == 1) i++;
        while (k < b_rank && b[k] == 1) k++;
        if (i == a_rank || k == b_rank) return i == a_rank && k == b_rank;
        if (a[i++] != b[k++]) return 0;
    }
}

/* Gives an entry to parameter i, whose axes in the file are these. 0: an error: its type or shape is wrong, or it is
   taken. */
static int gcpi_stored_take(gcpi_disk_file *s, gcp_tape *t, gcpi_stored *e, int i, const gcpi_axes *axes)
{
    const gcpi_parameter *x = &t->parameters[i];
    uint64_t sizes[GCPI_RANK_MOST];
    char found[200], expected[100];
    const int rank = gcpi_axes_shape(axes, x->shape, sizes), dtype = e->dtype;
    if (e->parameter >= 0)
        return gcpi_wrong(s, GCP_E_NAME, "%.100s is asked for twice: for %.100s and %.100s", e->name,
                          t->parameters[e->parameter].path, x->path);
    if (dtype != GCPI_FILE_F32 && dtype != GCPI_FILE_F64 && dtype != GCPI_FILE_F16 && dtype != GCPI_FILE_BF16)
        return gcpi_wrong(s, GCP_E_DTYPE, "%.100s: found %s, expected F32, F64, F16 or BF16", e->name,
                          gcpi_dtype_name(dtype));
    if (axes->h < 0) return gcpi_flat_fail(s, t, i);
    if (rank < 0)
        return gcpi_wrong(s, GCP_E_SHAPE, "%.100s (%s): the layout %s is not for it", x->path,
                          gcpi_shape_text(x->shape, expected, sizeof expected), axes->letters);
    if (!gcpi_sizes_agree(e->shape, e->rank, sizes, rank))
        return gcpi_wrong(s, GCP_E_SHAPE, "%.100s: found %s, expected %s for %.100s (.style says whose layout it "
                          "is, or .map; .partial with \"- %.60s\" in .map leaves it there)", e->name,
                          gcpi_sizes_text(e->shape, e->rank, found, sizeof found),
                          gcpi_sizes_text(sizes, rank, expected, sizeof expected), x->path, e->name);
    e->parameter = i;
    e->axes = *axes;
    return 1;
}

/* Whether nothing asked for an entry that may not be left in the file. */
static int gcpi_stored_left(const gcpi_header *h, const gcpi_naming *n, const gcpi_stored *e)
{
    const int run = gcpi_header_find(h, GCPI_RUN_HEAD) != NULL;
    return e->parameter < 0 && !(run && !strncmp(e->name, "gcp.", 4)) && !gcpi_passed_over(n, e->name);
}
/* The style that the file's names look like, if the user gave none. */
static const char *gcpi_style_hint(const gcpi_header *h, const gcpi_naming *n)
{
    const char *name = h->count ? h->by_name[0]->name : "";
    if (n->style != GCP_STYLE_GCP || strchr(name, '[')) return "";
    return strchr(name, '/') ? "; .style = GCP_STYLE_KERAS?" : strchr(name, '.') ? "; .style = GCP_STYLE_TORCH?" : "";
}
/* The error of so many tensors that the file does not have, of which i is the first. */
static int gcpi_load_missing(gcpi_disk_file *s, gcp_tape *t, const gcpi_header *h, const gcpi_naming *n, int i,
                             int missing)
{
    char name[GCPI_NAME_MOST + 1], others[64] = "";
    gcpi_axes axes;
    int left = 0;
    gcpi_theirs(n, t, i, name, &axes);
    for (int k = 0; k < h->count; k++) left += gcpi_stored_left(h, n, h->by_name[k]);
    if (missing > 1) snprintf(others, sizeof others, missing > 2 ? ", nor %d others" : ", nor %d other", missing - 1);
    return gcpi_wrong(s, GCP_E_NAME, "found no %.100s, expected it for %.100s%s%s; %d of the file's %d are left (the "
                      "first in it is %.60s; .style and .map say what others call it, \"OURS -\" there leaves it as it "
                      "is, as .partial does; .report lists all)", name, t->parameters[i].path, others,
                      gcpi_style_hint(h, n), left, h->count, h->count ? h->by_name[0]->name : "none");
}
/* Finds each tensor's entry. Returns how many have one; -1: an error. */
static int gcpi_load_match(gcpi_disk_file *s, gcp_tape *t, const gcpi_header *h, const gcpi_naming *n, int partial)
{
    char name[GCPI_NAME_MOST + 1];
    gcpi_axes axes;
    int count = 0, missing = 0, first = 0;
    for (int i = 0; i < t->parameter_count; i++) {
        gcpi_stored *e = gcpi_theirs(n, t, i, name, &axes) ? gcpi_header_find(h, name) : NULL;
        const int passed = e && gcpi_line_passes(n, name);
        if ((partial && (!e || passed)) || !strcmp(name, "-")) continue;
        if (passed)
            gcpi_wrong(s, GCP_E_NAME, "a line of .map passes over %.100s, expected it for %.100s (.partial leaves that "
                       "as it is)", name, t->parameters[i].path);
        if (!e && !missing++) first = i;
        if (!e) continue;
        if (passed || !gcpi_stored_take(s, t, e, i, &axes)) return -1;
        count++;
    }
    return missing ? (gcpi_load_missing(s, t, h, n, first, missing), -1) : count;
}
/* 0: an entry that nothing asked for. */
static int gcpi_load_left(gcpi_disk_file *s, const gcpi_header *h, const gcpi_naming *n)
{
    const gcpi_stored *first = NULL;
    int left = 0;
    for (int i = 0; i < h->count; i++)
        if (gcpi_stored_left(h, n, &h->entries[i]) && !left++) first = &h->entries[i];
    if (!left) return 1;
    char others[64] = "";
    if (left > 1) snprintf(others, sizeof others, " and %d others", left - 1);
    return gcpi_wrong(s, GCP_E_NAME, "found %.100s%s, which the network does not have (.map with \"- %.100s\" passes "
                      "over it; .report lists all)", first->name, others, first->name);
}
/* What goes where, and what is left, as lines of a map. */
static void gcpi_load_report(gcp_tape *t, const gcpi_header *h, const gcpi_naming *n, gcp_writer out)
{
    char name[GCPI_NAME_MOST + 1], sizes[200];
    gcpi_axes axes;
    if (!out.write) return;
    for (int i = 0; i < t->parameter_count; i++) {
        const gcpi_stored *e = gcpi_theirs(n, t, i, name, &axes) ? gcpi_header_find(h, name) : NULL;
        const int passed = e && gcpi_line_passes(n, name);
        gcpi_say(out, "%s %s  # %s%s\n", t->parameters[i].path, name,
                 e                    ? gcpi_sizes_text(e->shape, e->rank, sizes, sizeof sizes)
                 : strcmp(name, "-")  ? "not in the file"
                                      : "stays as it is",
                 passed ? ", passed over" : "");
    }
    for (int i = 0; i < h->count; i++) {
        const gcpi_stored *e = h->by_name[i];
        int taken = gcpi_passed_over(n, e->name);
        for (int k = 0; k < t->parameter_count && !taken; k++)
            taken = gcpi_theirs(n, t, k, name, &axes) && !strcmp(name, e->name);
        if (!taken) gcpi_say(out, "- %s  # %s, nothing takes it\n", e->name,
                               gcpi_sizes_text(e->shape, e->rank, sizes, sizeof sizes));
    }
}

/* Reads an entry to where it was given, or passes over it. */
static int gcpi_load_entry(gcpi_disk_file *s, gcp_tape *t, const gcpi_stored *e)
{
    if (e->parameter < 0) return gcpi_disk_skip(s, e->end - e->begin);
    unsigned char *slot = e->slot ? gcpi_slot_at(t, e->parameter, e->slot - 1) : NULL;
    gcpi_place place = { slot && t->far_slots ? NULL : &t->home, slot ? slot : gcpi_value_at(t, e->parameter) };
    return gcpi_tensor_read(s, e->dtype, gcpi_axes_walk_of(&e->axes, t->parameters[e->parameter].shape), &place);
}

GCPI_DEF int gcp_load_at(gcp_tape *t, const char *path, gcp_weights_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_load");
    gcpi_naming naming = { o.style, o.map, NULL };
    gcpi_header h;
    memset(&h, 0, sizeof h);
    if (!gcpi_file_begins(&s, t, o.arena) || gcpi_halfway(t, o.at, s.call)) return 0;
    const int begun = gcpi_naming_begin(&s, &naming) && gcpi_disk_open(&s) && gcpi_header_read(&s, &h);
    if (begun) gcpi_load_report(t, &h, &naming, o.report);
    int count = begun ? gcpi_load_match(&s, t, &h, &naming, o.partial) : -1;
    if (!count) gcpi_wrong(&s, GCP_E_NAME, "found no tensor that the network has");
    if (count > 0 && !o.partial && !gcpi_load_left(&s, &h, &naming)) count = 0;
    for (int i = 0; i < h.count && count > 0; i++) {
        const gcpi_stored *e = &h.entries[i];
        if (!gcpi_load_entry(&s, t, e)) count = 0;
        else if (e->parameter >= 0) gcpi_ones_keep(&t->parameters[e->parameter], o.style, e->shape, e->rank);
    }
    gcpi_disk_close(&s);
    return GCPI_MAX(count, 0);
}
