/* The state: what outlives plans. Weights, statistics, slots, counters: their initial values, and where each lies. */

static unsigned char *gcpi_value_at(const gcp_tape *t, int parameter)
{
    return t->state + t->parameters[parameter].offset;
}
/* Where slot k of a parameter lies: in far memory or in the state. */
static unsigned char *gcpi_slot_at(const gcp_tape *t, int parameter, int k)
{
    return (t->far_slots ? t->far_slots : t->state) + t->parameters[parameter].slot +
           (size_t)k * gcpi_parameter_bytes(t, parameter);
}
static gcpi_counters gcpi_counters_read(const gcp_tape *t)
{
    gcpi_counters c;
    gcpi_bytes_copy(&t->home, &c, t->state, sizeof c);
    return c;
}
static double gcpi_uniform01(uint32_t x) { return ((double)x + 0.5) / 4294967296.0; }

/* Initial values, keyed by the seed and the parameter's ordinal. He: normal, variance 2 / fan in. Glorot: uniform,
   variance 2 / (fan in + fan out). Fans that are not given are those of a weight (out, ..., in). */
static gcp_real gcpi_initial(gcpi_random r, gcp_init init, double deviation, double limit)
{
    double u = gcpi_uniform01(r.x[0]), v = gcpi_uniform01(r.x[1]);
    if (init == GCP_INIT_GLOROT) return (gcp_real)((2 * u - 1) * limit);
    return (gcp_real)(deviation * sqrt(-2 * log(u)) * cos(6.28318530717958647692 * v));
}

static void gcpi_initialise(const gcp_tape *t, int ordinal)
{
    enum { CHUNK = 1024 };
    const gcpi_parameter *p = &t->parameters[ordinal];
    gcp_real some[CHUNK];
    size_t count = gcpi_count(p->shape);
    int constant = p->init == GCP_INIT_ONES || p->init == GCP_INIT_ZEROS;
    double out = (double)p->shape.d[p->shape.rank == 1 ? 3 : 0], in = p->fan_in         ? p->fan_in
                                                                    : p->shape.rank > 1 ? (double)count / out
                                                                                        : out;
    double deviation = p->deviation > 0 ? p->deviation : sqrt(2.0 / in),
           limit = sqrt(6.0 / (in + (p->fan_out ? p->fan_out : out)));
    for (size_t first = 0; first < count; first += CHUNK) {
        size_t n = GCPI_MIN((size_t)CHUNK, count - first);
        for (size_t k = 0; k < n; k++) {
            uint64_t i = first + k;
            some[k] = constant ? (gcp_real)(p->init == GCP_INIT_ONES)
                               : gcpi_initial(gcpi_philox((uint32_t)i, (uint32_t)(i >> 32), (uint32_t)ordinal,
                                                          0x67637069u, t->seed),
                                              p->init, deviation, limit);
        }
        gcpi_bytes_copy(&t->home, gcpi_value_at(t, ordinal) + first * sizeof(gcp_real), some, n * sizeof(gcp_real));
    }
}

static void gcpi_state_settle(gcp_tape *t, const gcp_target *home, unsigned char *base, size_t capacity)
{
    size_t offset = gcpi_counters_bytes(t);
    t->home = *home;
    t->state = base;
    t->state_capacity = capacity;
    for (int i = 0; i < t->parameter_count; i++) {
        t->parameters[i].offset = offset;
        t->parameters[i].slot = 0;
        offset += gcpi_parameter_bytes(t, i);
    }
    gcpi_bytes_fill(home, base, 0, offset);
    for (int i = 0; i < t->parameter_count; i++) gcpi_initialise(t, i);
    t->state_size = offset;
    t->layout++;
}

/* Where the state has a parameter's count of updates. */
static unsigned char *gcpi_count_at(const gcp_tape *t, int parameter)
{
    return t->state + sizeof(gcpi_counters) + (size_t)parameter * sizeof(uint64_t);
}

/* Bytes of the slots that the plan's parameters lack. */
static size_t gcpi_slots_lacking(const gcp_tape *t, const gcpi_plan *core)
{
    size_t bytes = 0;
    for (int i = 0; i < t->parameter_count; i++)
        if (gcpi_trained(&core->p, i) && !t->parameters[i].slot)
            bytes += gcpi_parameter_bytes(t, i) * (size_t)core->slots;
    return bytes;
}

/* Gives the plan's parameters their slots, after all that the state (or far_slots) holds, with a count of updates that
   begins at 0. */
static void gcpi_slots_settle(gcp_tape *t, const gcpi_plan *core)
{
    size_t *size = t->far_slots ? &t->far_slots_size : &t->state_size;
    for (int i = 0; i < t->parameter_count; i++) {
        size_t bytes = gcpi_parameter_bytes(t, i) * (size_t)core->slots;
        if (!bytes || !gcpi_trained(&core->p, i) || t->parameters[i].slot) continue;
        t->parameters[i].slot = *size;
        gcpi_bytes_fill(&t->home, gcpi_count_at(t, i), 0, sizeof(uint64_t));
        if (t->far_slots) memset(t->far_slots + *size, 0, bytes);
        else gcpi_bytes_fill(&t->home, t->state + *size, 0, bytes);
        *size += bytes;
        t->slots = core->slots;
        t->optimizer = core->opts.optimizer;
        t->layout++;
    }
}

GCPI_DEF void gcp_slots_reset(gcp_tape *t)
{
    if (!t || gcpi_in_feed(t, NULL, "gcp_slots_reset")) return;
    for (int i = 0; i < t->parameter_count; i++) {
        if (!t->parameters[i].slot) continue;
        t->parameters[i].slot = 0;
        if (!t->far_slots) t->state_size -= (size_t)t->slots * gcpi_parameter_bytes(t, i);
    }
    t->far_slots_size = GCPI_FAR_SLOTS_FIRST;
    t->slots = 0;
    t->optimizer = GCP_OPTIMIZER_NONE;
    if (t->state) gcpi_bytes_fill(&t->home, t->state, 0, gcpi_counters_bytes(t));
    t->layout++;
}

GCPI_DEF uint64_t gcp_steps_done(const gcp_tape *t) { return t && t->state ? gcpi_counters_read(t).steps : 0; }
