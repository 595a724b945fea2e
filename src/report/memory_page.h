/* Memory as a page one can step through. Scripts of src/report/page/ draw what stands in it as JSON. */

static void gcpi_page_text(gcp_writer w, const char *const *lines)
{
    for (; *lines; lines++) gcpi_put(w, *lines, strlen(*lines));
}

/* [kind, name, place, live bytes, measured seconds, workspace, [item, mode, address, ...], planned seconds, begin,
   end]; begin and end are those of a step of measured seconds, or planned ones where nothing was measured. */
static void gcpi_page_line(const gcpi_plan *core, ptrdiff_t i, const gcpi_placed *placed, const gcpi_time *planned,
                           const gcpi_time *runs, gcp_writer w)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    const char *comma = "";
    gcpi_say(w, "%s[\"%c\",", i ? ",\n" : "", core->list.at[i].letter);
    gcpi_json_task(core, core->list.at[i].task, w);
    gcpi_say(w, ",%zu,%.9g,%zu,[", core->live[i], core->seconds[i], t->workspace);
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        if (placed[k].offset < 0 || core->p.items[core->p.items[o->item].root].kind == GCPI_STATE_ITEM) continue;
        gcpi_say(w, "%s%d,%d,%td", comma, o->item, o->mode, placed[k].offset);
        comma = ",";
    }
    gcpi_say(w, "],%.9g,%.9g,%.9g]", planned->end - planned->begin, runs->begin, runs->end);
}

static void gcpi_page_lines(const gcpi_plan *core, gcpi_time *spans, gcp_writer w)
{
    gcpi_time *planned = spans, *runs = spans + core->list.count;
    gcpi_timeline(&core->p, &core->list, core->placed, NULL, planned);
    gcpi_timeline(&core->p, &core->list, core->placed, core->seconds, runs);
    for (ptrdiff_t i = 0, n = 0; i < core->list.count; n += core->p.tasks[core->list.at[i++].task].count)
        gcpi_page_line(core, i, core->placed + n, &planned[i], &runs[i], w);
}

/* Which of its op's outputs a tensor is, from 0. */
static int gcpi_output_of(const gcp_tape *t, int tensor)
{
    const int op = t->tensors[tensor].producer;
    return op >= 0 ? tensor - t->ops[op].out : 0;
}

/* [name, bytes], 0 for what is not there */
static void gcpi_page_items(const gcpi_problem *p, gcp_writer w)
{
    char name[256];
    for (int i = 0; i < p->item_count; i++) {
        if (i) gcpi_say(w, ",");
        if (!p->items[i].active) { gcpi_say(w, "0"); continue; }
        gcpi_item_name(p, i, name, sizeof name);
        gcpi_say(w, "[\"%s", p->items[i].kind == GCPI_GRADIENT_ITEM && !gcpi_is_graph(p) ? "gradient of " : "");
        gcpi_json_write(&w, name, strlen(name));
        const int output = gcpi_is_graph(p) ? 0 : gcpi_output_of(p->tape, p->items[i].tensor);
        if (output > 0) gcpi_say(w, ", output %d", output + 1);
        gcpi_say(w, "\",%zu]", p->items[i].bytes);
    }
}

static void gcpi_page_plan(const gcp_plan *plan, gcpi_time *spans, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    gcp_writer escaped = { gcpi_json_write, &w };
    gcpi_say(w, "{\"policy\":\"%s\",\"bytes\":%zu,\"slab\":%zu,\"reruns\":%d,", gcpi_policy_name(core, 1), plan->bytes,
             plan->slab_bytes, plan->reruns);
    gcpi_say(w, "\"peak\":%d,\"turn\":%d,\"align\":%zu,\"numbers\":%zu,", core->peak_at,
             p->training ? core->forward_end : -1, p->target.align, gcpi_front(p));
    gcpi_say(w, "\"state\":%zu,\"budget\":%zu,\"seconds\":%.9g,\"why\":\"", core->state_bytes, core->opts.budget,
             plan->seconds);
    gcp_why_print(plan, escaped);
    gcpi_say(w, "\",\n\"items\":[");
    gcpi_page_items(p, w);
    gcpi_say(w, "],\n\"lines\":[");
    gcpi_page_lines(core, spans, w);
    gcpi_say(w, "],\n\"buffers\":[");
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        gcpi_say(w, "%s[%d,%d,%d,%d,%zu,%zu]", b ? ",\n" : "", x->item, gcpi_buffer_is(core, x), x->first, x->last,
                 x->offset, x->bytes);
    }
    gcpi_say(w, "]}");
}

/* Without a script: the picture and the reasons. */
static void gcpi_page_plain(const gcp_plan *plan, const gcp_plan *beside, gcp_writer w)
{
    gcp_writer escaped = { gcpi_escaped_write, &w };
    gcpi_say(w, "<noscript>\n<p>This page steps with a script, which is in it. Without it, the plan's memory:</p>\n");
    gcp_memory_svg(plan, beside, w);
    gcpi_say(w, "<pre>\n");
    gcp_why_print(plan, escaped);
    gcpi_say(w, "</pre>\n</noscript>\n");
}

static void gcpi_page_write(const gcp_plan *plan, const gcp_plan *beside, gcpi_time *spans, gcp_writer w)
{
    const char *title = plan->core->p.training ? "Memory of a training step" : "Memory of an inference";
    gcpi_say(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>%s</title>\n<style>\n", title);
    gcpi_page_text(w, gcpi_page_style);
    gcpi_say(w, "</style>\n</head>\n<body>\n<h1>%s</h1>\n", title);
    gcpi_page_text(w, gcpi_page_body);
    gcpi_page_plain(plan, beside, w);
    gcpi_say(w, "<script type=\"application/json\" id=\"data\">\n[");
    gcpi_page_plan(plan, spans, w);
    if (beside) {
        gcpi_say(w, ",\n");
        gcpi_page_plan(beside, spans, w);
    }
    gcpi_say(w, "]\n</script>\n<script>\n");
    gcpi_page_text(w, gcpi_page_script);
    gcpi_say(w, "</script>\n</body>\n</html>\n");
}

GCPI_DEF void gcp_memory_html(const gcp_plan *plan, const gcp_plan *beside, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    if (beside == plan || !gcpi_reportable(beside)) beside = NULL;
    gcp_arena *a = plan->core->opts.arena ? plan->core->opts.arena : plan->tape->arena;
    const ptrdiff_t scratch = a->scratch, lines = plan->core->list.count,
                    most = beside ? GCPI_MAX(lines, beside->core->list.count) : lines;
    gcpi_time *spans = GCPI_SCRATCH(a, gcpi_time, 2 * most);
    if (spans) gcpi_page_write(plan, beside, spans, w);
    else
        gcpi_fail(plan->tape, GCP_E_CAPACITY, plan->core->opts.at, "gcp_memory_html",
                  "%td instructions take %td bytes of the arena", most, 2 * most * (ptrdiff_t)sizeof *spans);
    a->scratch = scratch;
}
