/* Names: nodes of a tree. Their text is made when it is asked for. */

static const char *gcpi_keep_text(gcp_tape *t, const char *s)     /* a copy that lives until the reset; NULL if full */
{
    ptrdiff_t n = (ptrdiff_t)strlen(s) + 1;
    if (n > t->text_capacity - t->text_mark - t->text_used) return NULL;
    char *copy = t->text + t->text_used;
    t->text_used += n;
    return (const char *)memcpy(copy, s, (size_t)n);
}

static uint64_t gcpi_name_hash(int parent, const char *label)
{
    return gcpi_hash(label) ^ (uint64_t)parent * 0x9e3779b97f4a7c15u;
}

static int gcpi_name_find(gcp_tape *t, int parent, const char *label, uint64_t hash)     /* the latest, or 0 */
{
    for (int i = *gcpi_name_bucket(t, hash); i > 0; i = t->names[i].before)
        if (t->names[i].hash == hash && t->names[i].parent == parent && !strcmp(t->names[i].label, label)) return i;
    return 0;
}

/* A child of parent: label[0], label[1], ... or, where the user named it, that name, which must be new there. */
static int gcpi_name_new(gcp_tape *t, int parent, const char *label, const char *named, gcp_at at)
{
    const char *text = named ? gcpi_keep_text(t, named) : label;
    if (!text || t->name_count == t->name_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, label, "the tape's %td bytes for names are full (.names)", t->text_capacity);
        return 0;
    }
    const uint64_t hash = gcpi_name_hash(parent, text);
    int same = gcpi_name_find(t, parent, text, hash);
    const int taken = named && same;
    if (taken || !*text || strpbrk(text, " /#[*\n\t\r")) {
        gcpi_fail(t, GCP_E_NAME, at, label,
                  taken ? "the name '%s' is used twice in its segment"
                        : "the name '%s' is empty or has a space, '/', '[', '#' or '*'",
                  text);
        return 0;
    }
    gcpi_name *n = &t->names[t->name_count];
    n->parent = parent; n->label = text; n->hash = hash; n->named = named != NULL;
    n->index = same ? t->names[same].index + 1 : 0;
    n->before = *gcpi_name_bucket(t, hash);
    *gcpi_name_bucket(t, hash) = t->name_count;
    return t->name_count++;
}

static int gcpi_name_text(const gcp_tape *t, int name, char *buffer, size_t size)
{
    if (!name || !size) { if (size) buffer[0] = 0; return 0; }
    const gcpi_name *x = &t->names[name];
    int n = gcpi_name_text(t, x->parent, buffer, size);
    if (n >= (int)size - 1) return n;
    int more = x->named ? snprintf(buffer + n, size - (size_t)n, "%s%s", n ? "/" : "", x->label)
                        : snprintf(buffer + n, size - (size_t)n, "%s%s[%d]", n ? "/" : "", x->label, x->index);
    return more < 0 ? n : GCPI_MIN(n + more, (int)size - 1);
}

GCPI_DEF const char *gcp_name(gcp_tensor x, char *buffer, size_t size)
{
    const gcpi_tensor *e = gcpi_get(x);
    if (size) buffer[0] = 0;
    if (e) gcpi_name_text(x.tape, e->name, buffer, size);
    return buffer;
}

GCPI_DEF gcp_shape gcp_shape_of(gcp_tensor x)
{
    const gcpi_tensor *e = gcpi_get(x);
    gcp_shape none;
    memset(&none, 0, sizeof none);
    return e ? e->shape : none;
}

GCPI_DEF size_t gcp_elements(gcp_tensor x) { const gcpi_tensor *e = gcpi_get(x); return e ? gcpi_count(e->shape) : 0; }
