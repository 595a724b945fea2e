/* A trace of a step. It is in Chrome's format, which Perfetto reads. */

/* In nanoseconds. Ends are rounded, not lengths: what follows in time then never overlaps. */
static double gcpi_trace_time(double seconds) { return floor(1e9 * GCPI_MIN(seconds, 1e290) + 0.5); }

static void gcpi_trace_event(const gcpi_plan *core, ptrdiff_t i, const gcpi_time *span, gcp_writer w)
{
    static const char *const kinds[] = { GCPI_TASK_KINDS(GCPI_TASK_WORD) };
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    const double begin = gcpi_trace_time(span->begin), end = gcpi_trace_time(span->end);
    char name[256];
    gcpi_say(w, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":\"%c ",
             gcpi_copies(t) ? 2 : 1, begin / 1e3, (end - begin) / 1e3,
             core->list.at[i].letter == 'R' ? "recompute" : kinds[t->kind], core->list.at[i].letter);
    gcpi_task_name(&core->p, t, name, sizeof name);
    gcpi_json_write(&w, name, strlen(name));
    gcpi_say(w, "\",\"args\":{\"instruction\":%td,\"measured\":%s,\"name and place\":[", i + 1,
             core->seconds[i] > 0 ? "true" : "false");
    gcpi_json_task(core, core->list.at[i].task, w);
    gcpi_say(w, "]}},\n{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"live bytes\",\"args\":{\"bytes\":%zu}}",
             begin / 1e3, core->live[i]);
}

GCPI_DEF void gcp_trace_json(const gcp_plan *plan, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    gcp_arena *a = core->opts.arena ? core->opts.arena : plan->tape->arena;
    ptrdiff_t scratch = a->scratch;
    gcpi_time *spans = GCPI_SCRATCH(a, gcpi_time, core->list.count);
    if (!spans) {
        a->scratch = scratch;
        gcpi_fail(plan->tape, GCP_E_CAPACITY, core->opts.at, "gcp_trace_json",
                  "%td instructions take %td bytes of the arena", core->list.count,
                  core->list.count * (ptrdiff_t)sizeof *spans);
        return;
    }
    gcpi_timeline(&core->p, &core->list, core->placed, core->seconds, spans);
    gcpi_say(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"a step of gcp\"}},\n"
                "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"computing\"}},\n"
                "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"copies\"}}");
    for (ptrdiff_t i = 0; i < core->list.count; i++) gcpi_trace_event(core, i, &spans[i], w);
    gcpi_say(w, "\n]}\n");
    a->scratch = scratch;
}
