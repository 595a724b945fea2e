/* playground.c - what the page of the playground asks: a request of one line in, an answer in JSON out (request.h,
   answer.h). All figures are the library's; the page draws them.

   Compiled for wasm32 it is the page's program. Compiled for this machine it reads a request a line and prints each
   answer on a line: `cmake --workflow --preset playground` makes both, and a test compares them.

   The target is the same everywhere: one thread, scalar kernels, 10 GFLOP/s and 10 GB/s. So are the plans. */
#include <stdio.h>
#define GCP_IMPLEMENTATION
#include "gcp.h"

#include "answer.h"

enum { MOST_GRAPH_BYTES = 1 << 28 }; /* of all tensors: what gcp_graph_plan takes where size_t has 32 bits */

static unsigned char memory[192 << 20];
static char asked[MOST_REQUEST], said[6 << 20], graph_text[1 << 20], grouped_text[1 << 20];

static const gcp_target machine = {
    .name = "one slow thread", .threads = 1, .isa = GCP_ISA_SCALAR, .flops_per_second = 1e10, .bytes_per_second = 1e10
};

static gcp_plan_opts options(const request *r, gcp_policy policy, size_t budget, const model *m)
{
    gcp_plan_opts o = { .at = GCP_AT, .policy = policy, .budget = budget, .target = &machine };
    if (policy == GCP_POLICY_UNIFORM) o.segments = r->segments;
    if (policy == GCP_POLICY_BUDGET) o.effort = GCP_EFFORT_QUICK;
    if (m) o.optimizer = m->optimizer;
    if (o.optimizer) o.fuse_update = 1; /* as GCP_POLICY_BUDGET does: the same for all */
    return o;
}

/* ---- a network ---- */

static void answer_network(const request *r, const model *m, layer_row *row, gcp_tape *net, gcp_writer w)
{
    row->network = m;
    row->layers = m->layers ? m->layers : r->layers;
    if (r->cut_count && r->cuts[r->cut_count - 1] >= row->layers) {
        say_error("a cut lies behind the last layer", 0, w);
        return;
    }
    const gcp_tensor loss = record(net, m, r, row->layers, row->end);
    const gcp_plan plan = gcp_plan_make_at(loss, options(r, r->policy, r->budget, m));
    if (!gcp_plan_ok(&plan)) {
        say_error(gcp_error(net), plan.least_bytes, w);
        return;
    }
    say_plan(r, row, &plan, w);
    if (r->more && r->policy != GCP_POLICY_BUDGET) {
        const gcp_plan budget = gcp_plan_make_at(loss, options(r, GCP_POLICY_BUDGET, plan.bytes, m));
        if (gcp_plan_ok(&budget)) say_bound(&budget, w);
    }
    gcpi_say(w, "}");
}

/* ---- a graph ---- */

/* Bytes of all tensors and workspaces, as far as they are numbers. */
static double graph_bytes(const char *text)
{
    double bytes = 0;
    while (*text) {
        const char kind = *text;
        for (int word = 0; *text && *text != '\n'; word++) {
            const int counts = kind == 't' || kind == '#' ? word == 2 : word == 3 || word == 4;
            if (counts && *text >= '0' && *text <= '9') bytes += gcpi_real(text, NULL);
            text += strcspn(text, " \t\r\n");
            text += strspn(text, " \t\r");
        }
        text += *text == '\n';
    }
    return bytes;
}

/* Its units are the layers; a layer's name is that of its first op. 0: there are too many. */
static int graph_row(layer_row *row, const gcpi_problem *p)
{
    if (p->forward > MOST_GRAPH_LAYERS || p->units > MOST_GRAPH_LAYERS) return 0;
    row->network = NULL;
    row->as_given = NULL;
    row->count = p->forward;
    row->layers = p->units;
    for (int i = 0; i < row->layers; i++) snprintf(row->names[i], sizeof row->names[i], "%d", i);
    for (int f = p->forward - 1; f >= 0; f--) {
        const int layer = row->layer[f] = (short)p->tasks[f].unit;
        if (layer < row->layers) snprintf(row->names[layer], sizeof row->names[layer], "%.20s", p->task_names[f]);
    }
    return 1;
}

/* The segment of a layer: how many cuts lie before it. The loss is behind all. */
static int group_of(const request *r, const layer_row *row, int layer)
{
    int group = 0;
    while (group < r->cut_count && r->cuts[group] <= layer) group++;
    return layer < row->layers ? group : r->cut_count + 1;
}

/* The text that gcp_graph_print wrote, with the request's segments for units. */
static void group_units(const request *r, const layer_row *row, const char *text, gcp_writer w)
{
    for (const char *next; *text; text = next) {
        next = text + strcspn(text, "\n");
        next += *next == '\n';
        const char *unit = !strncmp(text, "# units ", 8) ? text + 8 : NULL;
        if (*text == 'f' || *text == 'o')
            for (const char *at = text; at + 6 < next; at++)
                if (!strncmp(at, " unit=", 6)) unit = at + 6;
        gcpi_say(w, "%.*s", (int)((unit ? unit : next) - text), text);
        if (unit) gcpi_say(w, "%d\n", *text == '#' ? r->cut_count + 1 : group_of(r, row, atoi(unit)));
    }
}

/* As units the segments are equal runs of one, of which GCP_POLICY_UNIFORM does not run the last again. */
static gcp_plan graph_segments(const request *r, layer_row *row, gcp_tape *net, const gcp_plan *given)
{
    text_out out;
    gcp_plan_opts o = options(r, GCP_POLICY_UNIFORM, 0, NULL);
    gcp_graph_print(given, text_begin(&out, graph_text, sizeof graph_text));
    const gcp_writer w = text_begin(&out, grouped_text, sizeof grouped_text);
    group_units(r, row, graph_text, w);
    row->as_given = &given->core->p;
    o.segments = r->cut_count + 1;
    return gcp_graph_plan_at(net, grouped_text, o);
}

static void answer_graph(const request *r, layer_row *row, gcp_tape *net, gcp_writer w)
{
    const char *text = r->graph;
    if (graph_bytes(text) >= MOST_GRAPH_BYTES) {
        say_error("the graph's tensors take 256 MiB or more in all; the page plans less", 0, w);
        return;
    }
    const gcp_plan given = gcp_graph_plan_at(net, text, options(r, GCP_POLICY_KEEP_ALL, 0, NULL));
    if (gcp_plan_ok(&given) && !graph_row(row, &given.core->p)) {
        say_error("the graph has more than 4096 ops", 0, w);
        return;
    }
    if (gcp_plan_ok(&given) && r->cut_count && r->cuts[r->cut_count - 1] >= row->layers) {
        say_error("a cut lies behind the last layer", 0, w);
        return;
    }
    gcp_plan plan = given;
    if (gcp_plan_ok(&given) && r->policy == GCP_POLICY_SEGMENTS) plan = graph_segments(r, row, net, &given);
    else if (gcp_plan_ok(&given) && r->policy != GCP_POLICY_KEEP_ALL)
        plan = gcp_graph_plan_at(net, text, options(r, r->policy, r->budget, NULL));
    if (!gcp_plan_ok(&plan)) {
        say_error(gcp_error(net), plan.least_bytes, w);
        return;
    }
    say_plan(r, row, &plan, w);
    if (r->more && r->policy != GCP_POLICY_BUDGET) {
        const gcp_plan budget = gcp_graph_plan_at(net, text, options(r, GCP_POLICY_BUDGET, plan.bytes, NULL));
        if (gcp_plan_ok(&budget)) say_bound(&budget, w);
    }
    gcpi_say(w, "}");
}

/* ---- a request ---- */

static void answer(const request *r, gcp_writer w)
{
    static layer_row row;
    gcp_arena arena = gcp_arena_from(memory, sizeof memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 1024);
    row.as_given = NULL;
    for (int i = 0; i < MODELS; i++)
        if (!strcmp(models[i].name, r->network)) {
            answer_network(r, &models[i], &row, net, w);
            return;
        }
    if (r->graph) answer_graph(r, &row, net, w);
    else say_error("no such network", 0, w);
}

/* Answers a request, which stays as it is. The text holds until the next call. */
const char *play(const char *text);
const char *play(const char *text)
{
    static request r;
    text_out out;
    const size_t size = strlen(text);
    gcp_writer w = text_begin(&out, said, sizeof said);
    if (size >= sizeof asked - 1) {
        say_error("the request is longer than 65534 bytes", 0, w);
        return said;
    }
    if (text != asked) memcpy(asked, text, size + 1);
    if (read_request(&r, asked)) answer(&r, w);
    else say_error(r.error, 0, w);
    if (out.full) {
        w = text_begin(&out, said, sizeof said);
        say_error("the plan is too long for the page", 0, w);
    }
    return said;
}

#ifdef __wasm__
/* Where the page puts a request, MOST_REQUEST bytes. */
char *play_room(void);
char *play_room(void) { return asked; }
#else
int main(void)
{
    static char line[MOST_REQUEST];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        puts(play(line));
    }
    return 0;
}
#endif
