/* Which samples a loss may leave out, for gcp_write_some.

   An input's first size counts its samples; (n) has n of one value. They follow one another in its values. So they do
   in all that is made of them, until an op makes one value of several: then none can be left out. */

/* Whether op reads tensor x whole for each sample, as a bias or a table. */
static int gcpi_reads_whole(const gcp_tape *t, const gcpi_op *op, int x)
{
    const unsigned shared = gcpi_facts_of(op).shared;
    for (int i = 0; i < op->inputs && shared >> i; i++)
        if (shared >> i & 1 && gcpi_edge(t, op, i) == x) return 1;
    return 0;
}
/* Of each input how many samples it has that can be left out; 0: none, or an op reads it whole. Tensors that ops make
   have 0 so far. */
static void gcpi_samples_of_inputs(const gcp_tape *t, int *samples)
{
    for (int x = 0; x < t->tensor_count; x++) {
        const int n = gcpi_by_samples(t->tensors[x].shape).d[0];
        samples[x] = t->tensors[x].kind == GCPI_INPUT && n > 1 ? n : 0;
    }
    for (int o = 0; o < t->op_count; o++)
        for (int i = 0; i < t->ops[o].inputs; i++) {
            const int x = gcpi_edge(t, &t->ops[o], i);
            if (samples[x] && gcpi_reads_whole(t, &t->ops[o], x)) samples[x] = 0;
        }
}

/* Whether value i of output 0 is made of values i of the inputs. */
static int gcpi_value_by_value(const gcp_tape *t, const gcpi_op *op, const gcpi_facts *facts)
{
    if (facts->view == GCPI_VIEW_WHOLE) return 1;
    return facts->channels == GCPI_CHANNELS_SAME && facts->view == GCPI_VIEW_NONE && !facts->shared &&
           gcpi_count(t->tensors[op->out].shape) == gcpi_count(t->tensors[gcpi_edge(t, op, 0)].shape);
}
/* The samples of an op: the fewest that an input has, where those of the others are parts of them. -1: an input's are
   joined: they are read whole, or are values of one row, and the op goes over rows. (A custom op that says that it
   keeps samples apart means those of (n), too.) */
static int gcpi_samples_of_op(const gcp_tape *t, const gcpi_op *op, const int *samples)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const int by_value = facts.custom || gcpi_value_by_value(t, op, &facts);
    int fewest = 0;
    for (int i = 0; i < op->inputs; i++) {
        const int x = gcpi_edge(t, op, i), n = samples[x];
        const gcpi_tensor *e = &t->tensors[x];
        if (!n) continue;
        if (gcpi_reads_whole(t, op, x) || (!by_value && e->dtype == GCP_DTYPE_REAL && e->shape.rank == 1)) return -1;
        if (fewest && n % fewest && fewest % n) return -1;
        fewest = fewest ? GCPI_MIN(fewest, n) : n;
    }
    return fewest;
}
/* Fills the samples of the op's outputs. 1: it makes one value of several. A cross-entropy does, but leaves out those
   whose labels are ignored; statistics are of all. */
static int gcpi_samples_join(const gcp_tape *t, const gcpi_op *op, int *samples)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const int n = gcpi_samples_of_op(t, op, samples), ends = n < 0 || facts.stats || facts.leaves_out;
    int joins = n < 0 || (facts.leaves_out && samples[gcpi_edge(t, op, 0)] && !samples[gcpi_edge(t, op, 1)]);
    for (int j = 0; j < op->outputs; j++) {
        const int aside = j && !facts.custom;               /* a mask, of which only backward knows */
        samples[op->out + j] = ends ? 0 : n;
        joins |= !ends && n && !aside && (!facts.apart || gcpi_by_samples(t->tensors[op->out + j].shape).d[0] % n);
    }
    return joins;
}

/* Whether samples can be left out: no op joins them, and the loss, where there is one, leaves some out. */
static int gcpi_plan_samples(gcpi_plan *core, gcp_arena *a)
{
    const gcp_tape *t = core->p.tape;
    int left_out = 0;
    if (gcpi_is_graph(&core->p)) return 1;
    core->joins_samples = -1;
    core->samples = GCPI_NEW(a, int, t->tensor_count);
    if (!core->samples) return 0;
    gcpi_samples_of_inputs(t, core->samples);
    for (int k = 0; k < core->p.forward; k++) {
        const gcpi_task *task = &core->p.tasks[k];
        for (int o = task->op - GCPI_MAX(task->ops, 1) + 1; o <= task->op; o++) {
            if (gcpi_samples_join(t, &t->ops[o], core->samples) && core->joins_samples < 0) core->joins_samples = o;
            left_out |= gcpi_facts_of(&t->ops[o]).leaves_out;
        }
    }
    core->leaves_out = core->joins_samples < 0 && (left_out || !core->p.training);
    return 1;
}
