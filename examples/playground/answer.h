/* answer.h - a plan as JSON, for the page to draw. It looks into the plan as the library's own reports do. */
#ifndef PLAYGROUND_ANSWER_H
#define PLAYGROUND_ANSWER_H

#include "layers.h"

enum { MOST_HOLDS = 1 << 15 };

/* ---- text of a fixed size ---- */

typedef struct text_out {
    char *text;
    size_t size, used;
    int full;
} text_out;

static void text_write(void *out, const char *text, size_t size)
{
    text_out *o = (text_out *)out;
    if (o->full || size >= o->size - o->used) {
        o->full = 1;
        return;
    }
    memcpy(o->text + o->used, text, size);
    o->text[o->used += size] = 0;
}

static gcp_writer text_begin(text_out *o, char *text, size_t size)
{
    const gcp_writer w = { text_write, o };
    o->text = text;
    o->size = size;
    o->used = 0;
    o->full = 0;
    *text = 0;
    return w;
}

/* ---- layers ---- */

/* Which layer of the row a plan's tasks and tensors belong to. */
typedef struct layer_row {
    const model *network; /* NULL: a graph */
    int layers;
    int end[MOST_LAYERS];              /* of a network: ops up to the end of each layer */
    int count;                         /* of a graph: its forward ops, */
    short layer[MOST_GRAPH_LAYERS];    /* the layer of each, */
    char names[MOST_GRAPH_LAYERS][24]; /* the names of layers, */
    const gcpi_problem *as_given;      /* and, where its tensors have numbers for names, as it came; else NULL */
} layer_row;

/* -1: none, as an update's, or the loss's */
static int task_layer(const layer_row *r, const gcpi_problem *p, int task)
{
    const gcpi_task *t = task >= 0 ? &p->tasks[task] : NULL;
    if (t && t->kind == GCPI_TASK_BACKWARD) t = t->forward >= 0 ? &p->tasks[t->forward] : NULL;
    if (!t || t->kind != GCPI_TASK_FORWARD) return -1;
    if (!r->network) {
        const int layer = r->layer[t - p->tasks];
        return layer < r->layers ? layer : -1;
    }
    for (int i = 0; i < r->layers; i++)
        if (t->op < r->end[i]) return i;
    return -1;
}

static int item_layer(const layer_row *r, const gcpi_problem *p, int item)
{
    const gcpi_item *x = &p->items[item];
    return task_layer(r, p, gcpi_is_graph(p) ? x->producer : p->items[x->tensor].producer);
}

static void say_layer_name(const layer_row *r, int layer, gcp_writer w)
{
    char text[48];
    int n = -1;
    const char *label = r->network ? r->network->label(layer, &n) : r->names[layer];
    snprintf(text, sizeof text, n < 0 ? "%s" : "%s %d", label, n);
    gcpi_json_string(w, text);
}

/* ---- what buffers hold ---- */

/* A value in a buffer, from the instruction that writes it to the last before another takes its place. Views write
   nothing: of a concat its parts are there. */
typedef struct hold {
    int buffer, item, since, until;
    ptrdiff_t at;
} hold;
typedef struct holds {
    hold of[MOST_HOLDS];
    int count;
} holds;

static void hold_write(holds *h, const gcpi_plan *core, int item, int since, ptrdiff_t at)
{
    const size_t bytes = core->p.items[item].bytes;
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        if (since < x->first || since > x->last || at < (ptrdiff_t)x->offset || at >= (ptrdiff_t)(x->offset + x->bytes))
            continue;
        for (int i = h->count - 1; i >= 0; i--) {
            hold *o = &h->of[i];
            if (o->buffer == b && o->until >= since && (o->at == at || bytes >= x->bytes)) o->until = since - 1;
        }
        if (h->count < MOST_HOLDS) h->of[h->count++] = (hold){ b, item, since, x->last, at };
        return;
    }
}

static void hold_all(holds *h, const gcpi_plan *core)
{
    const gcpi_problem *p = &core->p;
    h->count = 0;
    for (ptrdiff_t i = 0, n = 0; i < core->list.count; i++) {
        const gcpi_task *t = &p->tasks[core->list.at[i].task];
        for (int k = 0; k < t->count; k++, n++) {
            const gcpi_operand *o = &p->operands[t->operands + k];
            if (o->mode == GCPI_WRITE && core->placed[n].offset >= 0)
                hold_write(h, core, o->item, (int)i, core->placed[n].offset);
        }
    }
}

/* Bytes of a layer that wait for backward where forward ends. */
static size_t kept_bytes(const layer_row *r, const gcpi_plan *core, const holds *h, int layer)
{
    size_t kept = 0;
    for (int i = 0; i < h->count; i++) {
        const hold *o = &h->of[i];
        if (o->since < core->forward_end && o->until >= core->forward_end - 1 &&
            gcpi_buffer_is(core, &core->buffers[o->buffer]) == GCPI_IS_KEPT &&
            item_layer(r, &core->p, o->item) == layer)
            kept += core->p.items[o->item].bytes;
    }
    return kept;
}

/* [name, bytes that wait for backward, how often its forward runs] */
static void say_layers(const layer_row *r, const gcpi_plan *core, const holds *h, gcp_writer w)
{
    const gcpi_problem *p = &core->p;
    gcpi_say(w, "\"layers\":[");
    for (int layer = 0; layer < r->layers; layer++) {
        int runs = 1;
        for (int f = 0; f < p->forward; f++)
            if (task_layer(r, p, f) == layer) runs = GCPI_MAX(runs, 1 + gcpi_rerun(core, f));
        gcpi_say(w, "%s[", layer ? "," : "");
        say_layer_name(r, layer, w);
        gcpi_say(w, ",%zu,%d]", kept_bytes(r, core, h, layer), runs);
    }
    gcpi_say(w, "],");
}

/* ---- the schedule ---- */

/* [letter, name, layer, live bytes, workspace] */
static void say_lines(const layer_row *r, const gcpi_plan *core, gcp_writer w)
{
    const gcpi_problem *p = &core->p;
    char name[256];
    gcpi_say(w, "\"lines\":[");
    for (ptrdiff_t i = 0; i < core->list.count; i++) {
        const int task = core->list.at[i].task;
        gcpi_say(w, "%s[\"%c\",", i ? "," : "", core->list.at[i].letter);
        gcpi_json_string(w, gcpi_task_name(p, &p->tasks[task], name, sizeof name));
        gcpi_say(w, ",%d,%zu,%zu]", task_layer(r, p, task), core->live[i], p->tasks[task].workspace);
    }
    gcpi_say(w, "],");
}

static void say_item(const layer_row *r, const gcpi_problem *p, int item, gcp_writer w)
{
    const int gradient = p->items[item].kind == GCPI_GRADIENT_ITEM && !gcpi_is_graph(p);
    char name[256];
    gcpi_item_name(p, item, name, sizeof name);
    if (r->as_given) gcpi_item_name(r->as_given, atoi(name), name, sizeof name);
    gcpi_say(w, "\"%s", gradient ? "gradient of " : "");
    gcpi_json_write(&w, name, strlen(name));
    gcpi_say(w, "\",%d", item_layer(r, p, item));
}

/* [kind, first instruction, last, address, bytes, name, layer, [since, until, name, layer, ...]], the list of what it
   holds in turn, where that is more than the one thing */
static void say_buffers(const layer_row *r, const gcpi_plan *core, const holds *h, gcp_writer w)
{
    gcpi_say(w, "\"buffers\":[");
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        const char *comma = "";
        gcpi_say(w, "%s[%d,%d,%d,%zu,%zu,", b ? "," : "", gcpi_buffer_is(core, x), x->first, x->last, x->offset,
                 x->bytes);
        say_item(r, &core->p, x->item, w);
        gcpi_say(w, ",[");
        for (int i = 0; i < h->count; i++) {
            const hold *o = &h->of[i];
            if (o->buffer != b || o->until < o->since) continue;
            gcpi_say(w, "%s%d,%d,", comma, o->since, o->until);
            say_item(r, &core->p, o->item, w);
            comma = ",";
        }
        gcpi_say(w, "]]");
    }
    gcpi_say(w, "],");
}

/* ---- figures ---- */

static void say_split(const gcp_plan *plan, gcp_writer w)
{
    const gcp_split *s = &plan->split;
    gcpi_say(w, "\"split\":{\"state\":%zu,\"input\":%zu,\"kept\":%zu,\"recomputed\":%zu,", plan->state_bytes, s->inputs,
             s->kept, s->recomputed);
    gcpi_say(w, "\"activation_gradients\":%zu,\"weight_gradients\":%zu,\"workspace\":%zu,\"gaps\":%zu},",
             s->activation_gradients, s->weight_gradients, s->workspace, s->gaps);
}

/* The schedule of GCP_POLICY_BUDGET in the bytes of this plan, and what no schedule in them beats. */
static void say_bound(const gcp_plan *budget, gcp_writer w)
{
    gcpi_say(w, ",\"planner_seconds\":%.9g,\"bound_seconds\":%.9g", budget->seconds, budget->bound_seconds);
}

/* How far a prediction is off, in per cent of the planned bytes or of whole tensors. */
static void say_guess(const request *r, const model *m, const gcp_plan *plan, gcp_writer w)
{
    const size_t tensor = m ? m->tensor : 0, planned = r->in_tensors && tensor ? plan->bytes / tensor : plan->bytes;
    if (tensor) gcpi_say(w, "\"tensors\":%zu,\"tensor\":%zu,", plan->bytes / tensor, tensor);
    if (r->guess && (tensor || !r->in_tensors))
        gcpi_say(w, "\"guess_off\":%.1f,", 100 * ((double)r->guess - (double)planned) / (double)planned);
}

static void say_plan(const request *r, const layer_row *row, const gcp_plan *plan, gcp_writer w)
{
    static holds held;
    const gcpi_plan *core = plan->core;
    const gcp_writer escaped = { gcpi_json_write, &w };
    const double all = plan->keep_all_seconds;
    gcpi_say(w, "{\"ok\":true,\"policy\":\"%s\",", policy_words[r->policy]);
    gcpi_say(w, "\"bytes\":%zu,\"slab\":%zu,\"seconds\":%.9g,\"of_keep_all\":%.4f,", plan->bytes, plan->slab_bytes,
             plan->seconds, all > 0 ? plan->seconds / all : 1.0);
    gcpi_say(w, "\"keep_all_seconds\":%.9g,\"front\":%zu,", all, gcpi_front(&core->p));
    gcpi_say(w, "\"instructions\":%d,\"reruns\":%d,\"peak\":%d,\"turn\":%d,", plan->instructions, plan->reruns,
             plan->peak_instruction, core->forward_end);
    if (plan->method) gcpi_say(w, "\"method\":\"%s\",\"bound_seconds\":%.9g,", plan->method, plan->bound_seconds);
    say_guess(r, row->network, plan, w);
    say_split(plan, w);
    hold_all(&held, core);
    say_layers(row, core, &held, w);
    say_lines(row, core, w);
    say_buffers(row, core, &held, w);
    gcpi_say(w, "\"why\":\"");
    gcp_why_print(plan, escaped);
    gcpi_say(w, "\"");
}

static void say_error(const char *message, size_t least, gcp_writer w)
{
    gcpi_say(w, "{\"ok\":false,\"error\":");
    gcpi_json_string(w, message);
    if (least) gcpi_say(w, ",\"least\":%zu", least);
    gcpi_say(w, "}");
}

#endif
