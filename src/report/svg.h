/* What pictures share. Names of plans, the kinds of buffers with their colours and patterns, axes with round ticks. */

/* What a buffer is; page.js has the same numbers. */
enum {
    GCPI_IS_INPUT, GCPI_IS_KEPT, GCPI_IS_GONE, GCPI_IS_AGAIN, GCPI_IS_GRADIENT, GCPI_IS_WEIGHT, GCPI_IS_WORKSPACE,
    GCPI_IS_RESULT, GCPI_IS_COUNT
};

/* Dark and medium colours. A dark one has at least three times the contrast of a medium one, and both of the white
   ground; in the legend they take turns. Patterns tell those of one shade apart, in grey and for the colour-blind. */
static const struct { const char *name, *colour, *pattern; } gcpi_inks[] = {
    { "input", "#8b8b8b", "" },
    { "kept for backward", "#0b3a82", "" },
    { "gone after forward", "#7c93aa", "M1 0V6M4 0V6" },
    { "recomputed", "#3f92d8", "M-1 1L1 -1M0 6L6 0M5 7L7 5" },
    { "activation gradient", "#7a2100", "M0 1H6M0 4H6" },
    { "weight gradient", "#dd7a10", "" },
    { "workspace", "#0c4a22", "M1 1H2M4 4H5" },
    { "result", "#4b1378", "M0 0L6 6M0 6L6 0" }
};
static const int gcpi_legend[] = { GCPI_IS_KEPT, GCPI_IS_AGAIN, GCPI_IS_GRADIENT, GCPI_IS_WEIGHT, GCPI_IS_WORKSPACE,
                                   GCPI_IS_GONE, GCPI_IS_RESULT, GCPI_IS_INPUT };

/* What a plan is called: by its policy's enumerator, or as a reader calls it, with what it is stored in. */
static const char *gcpi_policy_name(const gcpi_plan *core, int enumerator)
{
#define GCPI_POLICY_NAMES(NAME, words) { words, "GCP_POLICY_" #NAME, words ", bfloat16" }
    static const char *const names[][3] = {
        GCPI_POLICY_NAMES(SEGMENTS, "segments"), GCPI_POLICY_NAMES(KEEP_ALL, "keep all"),
        GCPI_POLICY_NAMES(UNIFORM, "uniform"), GCPI_POLICY_NAMES(CHECKPOINTS, "checkpoints"),
        GCPI_POLICY_NAMES(SQRT, "square root"), GCPI_POLICY_NAMES(RECURSIVE, "recursive"),
        GCPI_POLICY_NAMES(CHEAP, "cheap"), GCPI_POLICY_NAMES(BUDGET, "budget")
    };
#undef GCPI_POLICY_NAMES
    static const char *const others[][3] = { { "a list", "A list", "a list, bfloat16" },
                                             { "inference", "Inference", "inference, bfloat16" } };
    const int form = enumerator ? 1 : core->p.store ? 2 : 0;
    if (core->opts.list) return others[0][form];
    return core->p.training ? names[core->opts.policy][form] : others[1][form];
}

/* Whether a buffer waits for the step's end alone (the loss, what gcp_keep keeps), not for backward. */
static int gcpi_buffer_result(const gcpi_plan *core, const gcpi_plan_buffer *b)
{
    int result = 0;
    if (b->last < core->list.count - 1) return 0;
    for (int i = core->p.items[b->item].root; i >= 0; i = core->p.items[i].next)
        result |= core->p.items[i].pinned == GCPI_PINNED_TO_END;
    for (int i = core->p.items[b->item].root; result && i >= 0; i = core->p.items[i].next)
        if (gcpi_read_from(core, core->forward_end, i) == 1) result = 0;
    return result;
}

static int gcpi_buffer_is(const gcpi_plan *core, const gcpi_plan_buffer *b)
{
    const gcpi_item *x = &core->p.items[b->item];
    if (x->kind == GCPI_INPUT_ITEM) return GCPI_IS_INPUT;
    if (x->kind == GCPI_GRADIENT_ITEM)
        return !gcpi_is_graph(&core->p) && core->p.tape->tensors[x->tensor].kind == GCPI_PARAMETER ? GCPI_IS_WEIGHT
                                                                                     : GCPI_IS_GRADIENT;
    if (b->again || gcpi_buffer_result(core, b)) return b->again ? GCPI_IS_AGAIN : GCPI_IS_RESULT;
    return b->last >= core->forward_end ? GCPI_IS_KEPT : GCPI_IS_GONE;
}

/* The patterns that fill="url(#gcp-is-3)" names: the colour, and lines of the ground on it. */
static void gcpi_svg_patterns(gcp_writer w)
{
    gcpi_say(w, "<defs>\n");
    for (int i = 0; i < GCPI_IS_COUNT; i++)
        gcpi_say(w, "<pattern id=\"gcp-is-%d\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
                    "<rect width=\"6\" height=\"6\" fill=\"%s\"/>"
                    "<path d=\"%s\" stroke=\"white\" stroke-opacity=\"0.6\" "
                    "stroke-width=\"0.8\"/></pattern>\n",
                 i, gcpi_inks[i].colour, gcpi_inks[i].pattern);
    gcpi_say(w, "</defs>\n");
}

/* The least of 1, 2, 5 x 10^n that cuts `most` into at most so many parts. */
static double gcpi_round_step(double most, int parts)
{
    static const double steps[] = { 1, 2, 5 };
    double unit = 1;
    while (unit * parts >= most && unit > 1e-9) unit /= 10;
    for (int i = 0; i < 60; i++) {
        if (i && i % 3 == 0) unit *= 10;
        if (steps[i % 3] * unit * parts >= most) return steps[i % 3] * unit;
    }
    return unit;
}
