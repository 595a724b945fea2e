/* far.c - half the memory, a file behind it. The 26-layer CNN of the demo in a --share of its bytes (or the least that
   works): once by running ops again alone, once with values that wait in a file mapped into memory, copied by a thread
   while one other computes. Planned and measured, with costs and the link's rate measured first; the gradients are the
   same bits each time.

       far [--image 64] [--batch 16] [--share 0.55] [--steps 5] [--file PATH] */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE                  /* mmap, mkstemp */
#endif
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "loop.h"
#include "threads.h"

enum { MAX_STEPS = 101, TEXT = 1 << 17 };

typedef struct options { int image, batch, steps; double share; const char *file; } options;
typedef struct mapping { unsigned char *at; size_t size; int file; } mapping;        /* far memory */

static gcp_arena arena;
static gcp_tensor image, labels, loss;
static unsigned char *slab;
static size_t slab_size;
static mapping far_file;
static char costs[TEXT];
static size_t costs_used;
static gcp_real *expected, *gradient;

static int failed(const char *what) { fprintf(stderr, "far: %s\n", what); return 0; }

/* ---- The link: a file's pages -----------------------------------------------------------------------------------*/

static int far_open(mapping *m, const char *path, size_t size)
{
    char name[] = "/tmp/gcp-far-XXXXXX";
    m->file = path ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0600) : mkstemp(name);
    m->size = size;
    if (m->file < 0 || ftruncate(m->file, (off_t)size)) return failed("the file cannot be made");
    if (!path) unlink(name);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, m->file, 0);
    if (at == MAP_FAILED) return failed("the file cannot be mapped");
    m->at = (unsigned char *)at;
    return 1;
}

/* ---- Steps -------------------------------------------------------------------------------------------------------*/

static int bind(gcp_plan *plan)
{
    static float pixels[1 << 20];
    static int32_t label[1 << 12];
    size_t count = gcp_elements(image);
    if (plan->room > slab_size || count > sizeof pixels / sizeof *pixels) return failed("more memory than was taken");
    memset(slab, 0, slab_size);
    gcp_bind(plan, slab, slab_size);
    if (plan->far_bytes) gcp_far_bind(plan, far_file.at, far_file.size);
    for (size_t i = 0; i < count; i++) pixels[i] = (float)((i * 37) % 101) / 50 - 1;
    gcp_write(plan, image, pixels);
    gcp_write(plan, labels, label);
    return 1;
}

static double step(gcp_plan *plan)
{
    double begin = seconds_now();
    gcp_step(plan);
    return seconds_now() - begin;
}

/* All gradients, one after the other. Returns how many numbers. */
static size_t gradients(gcp_plan *plan, gcp_real *to)
{
    size_t n = 0;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(loss.tape, i)); i++) {
        gcp_tensor p = gcp_nth_parameter(loss.tape, i);
        if (to) gcp_grad(plan, p, to + n);
        n += gcp_elements(p);
    }
    return n;
}

typedef struct row { const char *name; gcp_plan plan; int same; double seconds[MAX_STEPS]; } row;
enum { KEEP, AGAIN, AT_ONCE, BESIDE, EITHER, ROWS };
static row rows[ROWS] = { { .name = "keep all" },
                          { .name = "recompute" },
                          { .name = "copy, computing waits" },
                          { .name = "copy beside" },
                          { .name = "either" } };

/* Rows take turns: what else the machine does falls on all of them alike. */
static int measure(int steps)
{
    for (int i = 0; i < steps; i++)
        for (row *r = rows; r < rows + ROWS; r++) {
            if (!bind(&r->plan)) return 0;
            step(&r->plan);
            r->seconds[i] = step(&r->plan);
            if (i) continue;
            size_t n = gradients(&r->plan, r == rows ? expected : gradient);
            r->same = r == rows || !memcmp(expected, gradient, n * sizeof *gradient);
        }
    return gcp_error(loss.tape) == NULL;
}

static int print(int steps)
{
    int same = 1;
    printf("%-24s %9s %9s %10s %9s %9s  %s\n", "", "MiB", "far MiB", "moved MiB", "plan ms", "step ms", "spread");
    for (row *r = rows; r < rows + ROWS; r++) {
        qsort(r->seconds, (size_t)steps, sizeof *r->seconds, by_size);
        printf("%-24s %9.2f %9.2f %10.2f %9.1f %9.1f  %.1f-%.1f  %s\n", r->name, mib(r->plan.bytes),
               mib(r->plan.far_bytes), mib(r->plan.far_traffic), 1e3 * r->plan.seconds, 1e3 * r->seconds[steps / 2],
               1e3 * r->seconds[0], 1e3 * r->seconds[steps - 1], r->same ? "same bits" : "OTHER BITS");
        same &= r->same;
    }
    return same;
}

static void take_costs(void *context, const char *text, size_t size)
{
    (void)context;
    if (costs_used + size < TEXT) { memcpy(costs + costs_used, text, size); costs_used += size; }
}

/* A plan for that many bytes, or for the least that works where that is more. */
static gcp_plan planned(size_t *budget, size_t far, int far_only, const gcp_target *target)
{
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = *budget, .costs = costs, .far = far,
                                  .far_only = far_only, .target = target);
    if (gcp_plan_ok(&plan) || gcp_error_code(loss.tape) != GCP_E_BUDGET) return plan;
    gcp_error_clear(loss.tape);
    *budget = plan.least_bytes;
    return planned(budget, far, far_only, target);
}

static int profiled(gcp_plan *plan)
{
    gcp_writer writer = { take_costs, NULL };
    if (!plan->core || !bind(plan)) return 0;
    gcp_profile(plan, .repeats = 3);
    gcp_costs_print(plan, writer);
    return gcp_error(loss.tape) == NULL;
}

/* Costs by a profile, the link's by that of a plan that copies: then what is planned is what this machine does. */
static int know(const options *o, const gcp_target *at_once, const gcp_target *beside, size_t *budget)
{
    gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = at_once);
    if (!profiled(&keep)) return 0;
    *budget = (size_t)(o->share * (double)keep.bytes);
    gcp_plan away = planned(budget, far_file.size, 1, beside);
    if (!profiled(&away)) return 0;
    const char *link = strstr(costs, "\nlink 1e9 bytes ");
    if (link)
        printf("the link takes %.3f s for 1e9 bytes; one thread computes, one copies\n",
               strtod(link + strlen("\nlink 1e9 bytes "), NULL));
    return 1;
}

static int run(const options *o)
{
    thread_pool pool;
    gcp_target at_once = { .threads = 1 }, beside;
    size_t budget, far = far_file.size;
    if (pool_start(&pool, 1) != 1 || !pool_copies(&pool)) return failed("no thread to copy with");
    beside = pool_target(&pool);
    int good = know(o, &at_once, &beside, &budget);
    if (good) {
        rows[KEEP].plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .costs = costs, .target = &at_once);
        rows[AGAIN].plan = planned(&budget, 0, 0, &at_once);
        rows[AT_ONCE].plan = planned(&budget, far, 1, &at_once);
        rows[BESIDE].plan = planned(&budget, far, 1, &beside);
        rows[EITHER].plan = planned(&budget, far, 0, &beside);
        good = !gcp_error(loss.tape) && measure(o->steps) && print(o->steps);
    }
    if (good) gcp_why_print(&rows[EITHER].plan, gcp_file(stdout));
    pool_stop(&pool);
    return good;
}

static int options_read(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) return 0;
        if (!strcmp(argv[i], "--image")) o->image = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--batch")) o->batch = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--steps")) o->steps = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--share")) o->share = atof(argv[i + 1]);
        else if (!strcmp(argv[i], "--file")) o->file = argv[i + 1];
        else return 0;
    }
    return o->image >= 8 && o->image <= 256 && o->batch >= 1 && o->batch <= 1024 && o->steps >= 1 &&
           o->steps <= MAX_STEPS && o->share > 0 && o->share <= 1;
}

int main(int argc, char **argv)
{
    options o = { .image = 64, .batch = 16, .steps = 5, .share = 0.55 };
    const int help = argc == 2 && !strcmp(argv[1], "--help");
    if (help || !options_read(&o, argc, argv)) {
        fputs("far - half the memory, and a file in which values wait\n\n"
              "  --image N, --batch N   the step: N x N images, N of them (default 64, 16)\n"
              "  --share S              its bytes, as a share of keep-all's (default 0.55)\n"
              "  --steps N              repeats (default 5)\n"
              "  --file PATH            the file (default: one in /tmp, which is gone at the end)\n",
              help ? stdout : stderr);
        return !help;
    }
    const size_t size = GCP_MB(192);
    void *memory = malloc(size);
    if (!memory) return !failed("out of memory");
    arena = gcp_arena_from(memory, size);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 256);
    loss = tf2_checkpointing(net, o.image, o.batch, &image, &labels);
    gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    slab_size = keep.room;
    slab = malloc(slab_size);
    expected = calloc(gradients(NULL, NULL), sizeof *expected);
    gradient = malloc(gradients(NULL, NULL) * sizeof *gradient);
    int good = gcp_plan_ok(&keep) && slab && expected && gradient && far_open(&far_file, o.file, slab_size) && run(&o);
    if (gcp_error(net)) { fprintf(stderr, "far: %s\n", gcp_error(net)); good = 0; }
    free(gradient); free(expected); free(slab); free(memory);
    return !good;
}
