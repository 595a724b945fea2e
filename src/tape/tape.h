/* A tape: its capacities, its arena, its reset. What is recorded on it is in the rooms behind this one. */

typedef struct gcpi_capacities {
    int ops, tensors, edges, names, segments, parameters;
    ptrdiff_t text;
} gcpi_capacities;

static gcpi_capacities gcpi_capacities_of(const gcp_tape_opts *o)
{
    gcpi_capacities c;
    c.ops = o->ops > 0 ? o->ops : 256;
    c.parameters = o->parameters > 0 ? o->parameters : 2 * c.ops + 16;
    c.tensors = (o->tensors > 0 ? o->tensors : 5 * c.ops + 16) + 1;
    c.segments = (o->segments > 0 ? o->segments : c.ops) + 1;
    c.edges = 4 * c.ops + GCP_MAX_INPUTS;
    c.names = c.ops + c.tensors + c.segments + 1;
    c.text = o->names > 0 ? o->names : 96 * (ptrdiff_t)c.ops + 1024;
    return c;
}

static int gcpi_tape_fits(const gcp_tape_opts *o)     /* gcpi_capacities_of counts in int */
{
    const int most = 1 << 24;
    return o->ops >= 0 && o->ops < most && o->tensors >= 0 && o->tensors < 4 * most && o->parameters >= 0 &&
           o->parameters < most && o->segments >= 0 && o->segments < most && o->names >= 0;
}

GCPI_DEF size_t gcp_tape_arena_at(gcp_tape_opts o)
{
    if (!gcpi_tape_fits(&o)) return SIZE_MAX;
    gcpi_capacities c = gcpi_capacities_of(&o);
    return sizeof(gcp_tape) + (size_t)c.ops * sizeof(gcpi_op) + (size_t)c.tensors * sizeof(gcpi_tensor) +
           (size_t)c.edges * sizeof(int) + (size_t)c.names * sizeof(gcpi_name) +
           (size_t)c.segments * sizeof(gcpi_segment) + (size_t)c.parameters * sizeof(gcpi_parameter) + (size_t)c.text +
           8 * 64;
}

static int gcpi_tape_arrays(gcp_tape *t, gcp_arena *a, gcpi_capacities c)
{
    t->ops = GCPI_NEW(a, gcpi_op, c.ops);                         t->op_capacity = c.ops;
    t->tensors = GCPI_NEW(a, gcpi_tensor, c.tensors);             t->tensor_capacity = c.tensors;
    t->edges = GCPI_NEW(a, int, c.edges);                         t->edge_capacity = c.edges;
    t->names = GCPI_NEW(a, gcpi_name, c.names);                   t->name_capacity = c.names;
    t->segments = GCPI_NEW(a, gcpi_segment, c.segments);          t->segment_capacity = c.segments;
    t->parameters = GCPI_NEW(a, gcpi_parameter, c.parameters);    t->parameter_capacity = c.parameters;
    t->text = GCPI_NEW(a, char, c.text);                          t->text_capacity = c.text;
    return t->ops && t->tensors && t->edges && t->names && t->segments && t->parameters && t->text;
}

static void gcpi_tape_clear(gcp_tape *t)
{
    t->op_count = t->edge_count = t->open = 0;
    t->tensor_count = t->name_count = t->segment_count = 1;
    t->text_used = 0;
    memset(t->names, 0, (size_t)t->name_capacity * sizeof *t->names);
    t->names[0].label = "";
    memset(&t->segments[0], 0, sizeof t->segments[0]);
    for (int i = 0; i < t->parameter_count; i++) t->parameters[i].tensor = 0;
    gcpi_recorded(t);
}

GCPI_DEF gcp_tape *gcp_tape_make_at(gcp_arena *arena, gcp_tape_opts o)
{
    /* a tape that was given back by hand lies past what is used */
    if (arena && arena->tape && (const unsigned char *)arena->tape - arena->base < arena->used) return NULL;
    gcp_tape *t = GCPI_NEW(arena, gcp_tape, 1);
    if (!t) return NULL;
    arena->tape = t;
    t->arena = arena;
    t->generation = 1;
    t->seed = o.seed;
    if (!gcpi_tape_fits(&o))
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_tape_make",
                  ".ops = %d, .tensors = %d, .parameters = %d, .segments = %d, .names = %d; 0 is the default, the most "
                  "2^24 - 1 (.tensors 2^26 - 1)",
                  o.ops, o.tensors, o.parameters, o.segments, o.names);
    if (t->code || !gcpi_tape_arrays(t, arena, gcpi_capacities_of(&o))) {
        memset(&t->ops, 0, (size_t)((char *)&t->state - (char *)&t->ops));
        gcpi_fail(t, GCP_E_NOMEM, o.at, "gcp_tape_make",
                  "an arena of %td bytes is too small for %d ops, which take %zu bytes", arena->size,
                  o.ops > 0 ? o.ops : 256, gcp_tape_arena_at(o));
        return t;
    }
    gcpi_tape_clear(t);
    t->arena_mark = arena->used;
    return t;
}

GCPI_DEF void gcp_tape_reset(gcp_tape *t)
{
    if (!t || !t->ops || gcpi_in_feed(t, NULL, "gcp_tape_reset")) return;
    gcp_error_clear(t);
    if (!t->state) t->parameter_count = 0, t->text_mark = 0;           /* they have no values that could be kept */
    gcpi_tape_clear(t);
    t->generation++;
    t->arena->used = t->arena_mark;
    t->runner = t->toucher = t->summing = 0;
    t->leases = NULL;
    memset(t->bindings, 0, sizeof t->bindings);
    t->layout++;
}
