/* A text that a report is written into. */
typedef struct text { char at[4096]; size_t used; } text;
static void text_add(void *context, const char *s, size_t n)
{
    text *t = context;
    if (t->used + n >= sizeof t->at) return;
    memcpy(t->at + t->used, s, n);
    t->at[t->used += n] = 0;
}
static text list_of(const gcp_plan *plan)
{
    text t = { .used = 0 };
    gcp_list_print(plan, (gcp_writer) { text_add, &t });
    return t;
}

/* The planner's own list, which is the best there is. */
static const char *exercise_1(void)
{
    static text t;
    const gcp_plan plan = in_bytes(keep_all().bytes * 9 / 10);
    t = list_of(&plan);
    return t.at;
}
static size_t exercise_2(void)
{
    size_t low = least() - 64, high = keep_all().bytes;
    while (high - low > 64) {
        const size_t middle = low + (high - low) / 2;
        const gcp_plan plan = in_bytes(middle);
        if (gcp_plan_ok(&plan) && plan.seconds <= 1.1 * plan.keep_all_seconds) high = middle;
        else low = middle;
    }
    return high;
}
