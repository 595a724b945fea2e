/* Random networks under every policy: loss, gradients, running statistics and optimiser state are those of keep-all,
   bit for bit; the planned bytes are the measured ones. Usage: test_dags [networks [first seed [bf16]]]

   bf16: plans with GCP_STORE_BF16, and beside them REFERENCE, which does the rule literally: no row takes bfloat16, so
   each op runs alone in floats, and what it made is rounded. Each network on one of the instruction sets. */
#include <stdlib.h>
#include "support/check.h"
#include "support/random_net.h"
#include "support/halves.h"

enum { NETWORKS = 30 };

static unsigned char tape_memory[GCP_MB(48)], slab[GCP_MB(8)], probe[GCP_MB(8)];
static unsigned char far_memory[GCP_MB(8)];
static unsigned char state[GCP_MB(1)], state_kept[GCP_MB(1)];
static float gradient[1 << 18], gradient_kept[1 << 18], images[4096];
static int labels[2];
static gcp_store store;

static void feed(gcp_plan *plan, const random_net *r, int step)
{
    for (int i = 0; i < 4096; i++) images[i] = (float)((i * 37 + step * 11) % 101) / 50 - 1;
    labels[0] = step % 5;
    labels[1] = (step + 3) % 5;
    gcp_write(plan, r->image, images);
    gcp_write(plan, r->label, labels);
}

/* Lists whose concats and slices copy, at random, what they need not: policy COPIES is the list of policy seed % 8. */
enum { COPIES = 9, REFERENCE };
static char list_text[1 << 20];
static size_t list_used;
static int list_overfull;
static int too_large;                                /* networks with more ops than their tape takes: some in 10,000 */
static int copied, refused;                          /* lines that made something copy; lists that may not be so */

static void append(void *context, const char *text, size_t size)
{
    (void)context;
    if (list_used + size >= sizeof list_text) { list_overfull = 1; return; }
    memcpy(list_text + list_used, text, size);
    list_text[list_used += size] = 0;
}

static int concat_inputs(const random_net *r, const char *name)           /* 0: not a concat */
{
    char other[256];
    for (int i = 0; i < r->concat_count; i++)
        if (!strcmp(gcp_name(r->concats[i], other, sizeof other), name)) return r->concat_inputs[i];
    return 0;
}

/* The line that makes a concat or slice copy; empty for other ops. */
static void copying(const random_net *r, dice *d, const char *name, int back)
{
    char line[400];
    int inputs = strstr(name, "slice[") && !back ? 1 : concat_inputs(r, name), n;
    unsigned bits = inputs ? roll(d, 1u << inputs) : 0;
    if (!bits) return;
    n = snprintf(line, sizeof line, "C %s%s", back ? "gradient of " : "", name);
    for (int i = 0; i < inputs; i++) if (bits >> i & 1) n += snprintf(line + n, sizeof line - (size_t)n, " %d", i);
    snprintf(line + n, sizeof line - (size_t)n, "\n");
    append(NULL, line, strlen(line));
    copied++;
}

/* Where an input of a kept concat now lies in it, the list may not run that input again; and what copies no longer
   comes back when its inputs do. */
static int rightly_refused(const char *error)
{
    char line[400];
    const char *what = strstr(error, "reads a value that is not in the slab: ");
    if (!what) return strstr(error, "at the end there is no") != NULL;
    snprintf(line, sizeof line, "C %.300s ", strrchr(what, ' ') + 1);
    return strstr(list_text, line) != NULL;
}
static gcp_plan plan_of(const random_net *r, gcp_plan_opts o, unsigned seed, int policy)
{
    static char old[sizeof list_text];
    gcp_plan plan = net_plan(r->loss, o, seed);
    if (policy != COPIES || !plan.core) return plan;
    dice d = { seed + 77 };
    list_used = 0; list_overfull = 0;
    gcp_list_print(&plan, (gcp_writer) { append, NULL });
    memcpy(old, list_text, list_used + 1);
    list_used = 0;
    for (const char *at = old; *at == 'F'; at = strchr(at, '\n') + 1) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 2, "\n"), at + 2);
        for (int back = 0; back < 2; back++) copying(r, &d, name, back);
    }
    append(NULL, old, strlen(old));
    if (list_overfull) return plan;                  /* a long cell, replayed */
    o.policy = GCP_POLICY_SEGMENTS;
    o.list = list_text;
    plan = gcp_plan_make_at(r->loss, fitting(o));
    if (plan.core || !rightly_refused(gcp_error(r->tape))) return plan;
    gcp_error_clear(r->tape);
    refused++;
    o.list = old;
    return gcp_plan_make_at(r->loss, fitting(o));
}

static void sizes(gcp_plan *plan, unsigned seed, int policy)
{
    size_t room = plan->bytes + 4096 < sizeof probe ? plan->bytes + 4096 : sizeof probe;
    size_t measured = gcp_measure(plan, probe, room);
    if (measured != plan->bytes) fprintf(stderr, "network %u, policy %d:\n", seed, policy);
    CHECK_INT(measured, ==, plan->bytes);
    CHECK_INT(plan->slab_bytes, >=, plan->live_peak * 9 / 10);
}

/* All gradients after one step of a plan that has no optimiser. Returns how many numbers. */
static size_t gradients(const random_net *r, gcp_plan_opts o, float *out, float *loss, unsigned seed, int policy)
{
    size_t n = 0;
    gcp_plan plan = plan_of(r, o, seed, policy);
    gcp_bind(&plan, slab, sizeof slab);
    if (plan.far_bytes) gcp_far_bind(&plan, far_memory, sizeof far_memory);
    feed(&plan, r, 1);
    *loss = (float)gcp_step(&plan);
    for (int i = 0; !gcp_error(r->tape) && !gcp_is_nil(gcp_nth_parameter(r->tape, i)); i++) {
        gcp_tensor p = gcp_nth_parameter(r->tape, i);
        if (gcp_grad(&plan, p, out + n)) gcp_error_clear(r->tape);       /* one that the loss does not depend on */
        else n += gcp_elements(p);
    }
    sizes(&plan, seed, policy);
    CHECK(plan.bound_seconds <= plan.seconds);
    return n;
}

static size_t train(const random_net *r, gcp_plan_opts o, unsigned seed, int policy)
{
    gcp_plan plan = plan_of(r, net_choices(net_training(o, seed), seed, r->tape), seed, policy);
    gcp_bind(&plan, slab, sizeof slab);
    if (plan.far_bytes) gcp_far_bind(&plan, far_memory, sizeof far_memory);
    for (int step = 0; step < 2; step++) {
        feed(&plan, r, step);
        gcp_step(&plan, .lr = 0.01);
    }
    sizes(&plan, seed, policy);
    return plan.state_bytes;
}

static float inferred(const random_net *r, int no_groups)
{
    gcp_plan plan = gcp_plan_make(r->loss, .store = store, .inference = 1, .no_groups = no_groups);
    gcp_bind(&plan, slab, sizeof slab);
    feed(&plan, r, 3);
    return (float)gcp_forward(&plan);
}

static int holds_nan(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) if (isnan(x[i])) return 1;
    return 0;
}

static void one(unsigned seed, int policy, size_t *kept_gradients, float *kept_loss, size_t *kept_state)
{
    static int diverged;                                  /* NaNs have the same bits, too, but .check would name them */
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    random_net r = net_make_with(&arena, seed, 1);
    const int first = store ? REFERENCE : GCP_POLICY_KEEP_ALL;
    gcp_target target = { .isa = store ? instructions(seed, slab, sizeof slab) : GCP_ISA_BEST };
    gcp_plan trial = gcp_plan_make(r.loss, .policy = GCP_POLICY_KEEP_ALL);
    if (gcp_error_code(r.tape) == GCP_E_CAPACITY) { too_large += policy == first; return; }
    gcp_plan_opts o = net_policy(policy == COPIES ? (int)(seed % 8) : policy, seed, trial.units);
    float loss;
    o.store = store;
    if (policy == REFERENCE) { o = (gcp_plan_opts) { .at = GCP_AT, .store = store, .policy = GCP_POLICY_KEEP_ALL }; }
    if (policy == REFERENCE) { o.no_groups = 1; target.kernels = float_kernels(); }
    /* .check runs no pairs */
    if (policy != first) o.check = diverged || (store && (seed + (unsigned)policy) % 2) ? 0 : GCP_CHECK;
    else if (!store) o.no_groups = (int)(seed % 2);       /* in groups or op by op: the same bits */
    if (seed % 5 == 0 && policy != first) { target.threads = 3; target.parallel_for = backwards; }
    if (store || seed % 5 == 0) o.target = &target;
    memset(state, 0, sizeof state);
    gcp_state_bind(r.tape, state, sizeof state);
    size_t n = gradients(&r, o, gradient, &loss, seed, policy);
    size_t bytes = train(&r, o, seed, policy);
    if (policy == first) {
        float grouped = inferred(&r, 0), single = inferred(&r, 1);         /* a step may have diverged */
        CHECK(!memcmp(&grouped, &single, sizeof grouped));
    }
    const char *error = gcp_error(r.tape);
    if (error) fprintf(stderr, "network %u, policy %d: %s\n", seed, policy, error);
    CHECK(gcp_error(r.tape) == NULL);
    if (policy == first) {
        memcpy(gradient_kept, gradient, n * sizeof *gradient);
        memcpy(state_kept, state, bytes);
        *kept_gradients = n; *kept_loss = loss; *kept_state = bytes;
        diverged = holds_nan(gradient, n) || holds_nan((const float *)(const void *)state, bytes / sizeof(float)) ||
                   isnan(loss);
    }
    int same = n == *kept_gradients && loss == *kept_loss && bytes == *kept_state &&
               !memcmp(gradient, gradient_kept, n * sizeof *gradient) && !memcmp(state, state_kept, bytes);
    if (!same) fprintf(stderr, "network %u, policy %d: other bits\n", seed, policy);
    CHECK(same);
}

int main(int argc, char **argv)
{
    int networks = argc > 1 ? atoi(argv[1]) : NETWORKS, first = argc > 2 ? atoi(argv[2]) : 0;
    static const int policies[] = { REFERENCE,
                                    GCP_POLICY_KEEP_ALL,
                                    GCP_POLICY_SEGMENTS,
                                    GCP_POLICY_UNIFORM,
                                    GCP_POLICY_CHECKPOINTS,
                                    GCP_POLICY_SQRT,
                                    GCP_POLICY_RECURSIVE,
                                    GCP_POLICY_CHEAP,
                                    7,
                                    COPIES,
                                    8 };
    if (argc > 3) store = GCP_STORE_BF16;
    for (int i = 0; i < networks && check_failed < 10; i++) {
        size_t kept_gradients = 0, kept_state = 0;
        float kept_loss = 0;
        /* the last one plans longest */
        for (size_t p = !store; p < sizeof policies / sizeof *policies - (i % 3 != 0); p++)
            one((unsigned)(first + i), policies[p], &kept_gradients, &kept_loss, &kept_state);
    }
    printf("%d networks, %d concats and slices made to copy, %d lists refused with that\n", networks, copied, refused);
    CHECK(too_large <= 1 + networks / 1000);
    CHECK(refused <= 2 + networks / 50);
    CHECK(copied > networks || networks < 10);
    return check_done();
}
