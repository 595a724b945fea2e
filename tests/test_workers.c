/* Several workers on MPI (examples/workers.h): mpirun -n 1, 2, 4 test_workers. Every rank also trains alone, on the
   whole batch and without hooks, and compares. */
#define _POSIX_C_SOURCE 199309L
#include "../examples/workers.h"
#include "support/check.h"
#include <time.h>

enum { BATCH = 16, STEPS = 50, PIXELS = 8 * 8 * 3, MOST = 100000 };

static workers w;
static unsigned char tapes[2][GCP_MB(2)], slabs[2][GCP_MB(6)];
static gcp_arena arenas[2];
static gcp_real images[BATCH * PIXELS], mine[MOST], others[MOST];
static int32_t labels[BATCH];

/* How a run is trained: pauses at random before a gradient leaves, updates beside backward, micro-batches, samples in
   all (a last batch that is not full). */
typedef struct how { int alone, pauses, fused, late, micros, samples; double clip, dropout; gcp_policy policy; } how;

static void on_gradient(void *context, gcp_tensor x, gcp_real *gradient, size_t count)
{
    const how *h = (const how *)context;
    static unsigned state;
    state = (state + (unsigned)w.rank) * 1664525u + 1013904223u;
    const struct timespec pause = { 0, (long)(state >> 12) };                           /* up to a millisecond */
    if (h->pauses) nanosleep(&pause, NULL);
    workers_on_gradient(&w, x, gradient, count);
}
static void on_wait(void *context, gcp_tensor x, gcp_real *gradient, size_t count)
{
    (void)context;
    workers_on_wait(&w, x, gradient, count);
}

/* No batch-norm; one weight is larger than a bucket. */
static gcp_tensor record(gcp_tape *net, int batch, double dropout)
{
    gcp_tensor x = gcp_input(net, "image", GCP_SHAPE(batch, 8, 8, 3)),
               label = gcp_labels(net, "label", GCP_SHAPE(batch));
    for (int i = 0; i < 3; i++)
        GCP_SEGMENT(net, "block") x = gcp_tanh(gcp_conv2d(x, .out = 12, .k = 3, .pad = 1));
    x = gcp_tanh(gcp_linear(gcp_flatten(x), .out = 96));
    if (dropout > 0) x = gcp_dropout(x, .rate = dropout);
    return gcp_cross_entropy(gcp_linear(x, .out = 4), label);
}

static void feed(int step)
{
    for (int i = 0; i < BATCH * PIXELS; i++) images[i] = (gcp_real)((i * 37 + step * 11) % 101) / 50 - 1;
    for (int i = 0; i < BATCH; i++) labels[i] = (i + step) % 4;
}

/* Values of all parameters, in out; how many. */
static size_t values(gcp_plan *plan, gcp_real *out)
{
    size_t n = 0;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(plan->tape, i)); i++) {
        gcp_read(plan, gcp_nth_parameter(plan->tape, i), out + n);
        n += gcp_elements(gcp_nth_parameter(plan->tape, i));
    }
    return n;
}

/* Samples of [0, all) that are among the share from `first` on. */
static int some(int first, int share, int all)
{
    return all <= first ? 0 : all - first < share ? all - first : share;
}

static gcp_plan plan_of(gcp_tape *net, how *h, int batch)
{
    gcp_plan_opts o = { .at = GCP_AT, .policy = h->policy, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9,
                        .clip_norm = h->clip, .accumulate = h->micros, .fuse_update = h->fused };
    if (!h->alone) { o.on_gradient = on_gradient; o.on_wait = on_wait; o.hook_context = h; }
    return gcp_plan_make_at(record(net, batch, h->dropout), o);
}

/* STEPS updates: the rank's share of each batch, or all of it. */
static size_t train(how *h, gcp_real *out)
{
    const int batch = h->alone ? BATCH : BATCH / w.ranks, first = h->alone ? 0 : batch * w.rank,
              all = h->samples ? h->samples : BATCH, have = some(first, batch, all);
    arenas[h->alone] = gcp_arena_from(tapes[h->alone], sizeof tapes[0]);
    gcp_tape *net = gcp_tape_make(&arenas[h->alone], .ops = 32, .seed = 5);
    gcp_plan plan = plan_of(net, h, batch);
    gcp_bind(&plan, slabs[h->alone], sizeof slabs[0]);
    const double share = h->alone || w.ranks == 1 ? 1 : have ? (double)have / all : GCP_ZERO;
    CHECK(workers_sums(&w, net));
    w.late = h->late;
    for (int i = 0; i < STEPS * (h->micros ? h->micros : 1); i++) {
        feed(i);
        gcp_write_some(&plan, gcp_find(net, "image"), images + (have ? first : 0) * PIXELS, have ? have : 1);
        gcp_write_some(&plan, gcp_find(net, "label"), labels + (have ? first : 0), have ? have : 1);
        gcp_step(&plan, .lr = 0.02, .first_sample = (uint64_t)first, .share = share);
    }
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none");
    return values(&plan, out);
}

static void same_everywhere(const gcp_real *x, size_t n)
{
    gcp_real *all = (gcp_real *)malloc((size_t)w.ranks * n * sizeof *all);
    MPI_Allgather(x, (int)n, workers_real(), all, (int)n, workers_real(), w.world);
    for (int i = 0; i < w.ranks; i++) CHECK(!memcmp(all + (size_t)i * n, x, n * sizeof *x));
    free(all);
}

/* Together as alone: to the bit where there is one rank, to 1e-5 where the order of sums differs. */
static void as_alone(how h)
{
    how alone = h;
    alone.alone = 1;
    alone.fused = alone.pauses = 0;
    const size_t n = train(&h, mine), m = train(&alone, others);
    double worst = 0;
    CHECK(n == m && n > WORKERS_BUCKET);
    same_everywhere(mine, n);
    for (size_t i = 0; i < n; i++) worst = fabs(mine[i] - others[i]) > worst ? fabs(mine[i] - others[i]) : worst;
    if (w.ranks == 1) CHECK(worst == 0);
    CHECK_NEAR(worst, 0, 1e-5);
    if (w.rank == 0) printf("%d ranks, %d steps: weights off by %.2g\n", w.ranks, STEPS, worst);
}

/* The same bits whoever comes first, and whether sums wait for backward or not; in another run, too. */
static void repeated(void)
{
    how h = { .dropout = 0.5, .policy = GCP_POLICY_SEGMENTS };
    const size_t n = train(&h, mine);
    for (int i = 0; i < 3; i++) {
        h.pauses = i == 0;
        h.late = i == 1;
        h.policy = i == 2 ? GCP_POLICY_SQRT : GCP_POLICY_SEGMENTS;
        CHECK(train(&h, others) == n && !memcmp(mine, others, n * sizeof *mine));
    }
}

/* Running statistics become the mean of all ranks'. */
static void statistics(void)
{
    gcp_real was[6], is[6];
    arenas[0] = gcp_arena_from(tapes[0], sizeof tapes[0]);
    gcp_tape *net = gcp_tape_make(&arenas[0], .ops = 8, .seed = 5);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 2, 2, 3));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_batch_norm(x)));
    gcp_bind(&plan, slabs[0], sizeof slabs[0]);
    for (int i = 0; i < 48; i++) images[i] = (gcp_real)((i * 7 + w.rank * 13) % 17);
    gcp_write(&plan, x, images);
    gcp_step(&plan);
    CHECK(gcp_is_nil(gcp_nth_statistic(net, 2)));
    for (int i = 0; i < 2; i++) gcp_read(&plan, gcp_nth_statistic(net, i), was + 3 * i);
    CHECK(workers_average(&w, &plan));
    for (int i = 0; i < 2; i++) gcp_read(&plan, gcp_nth_statistic(net, i), is + 3 * i);
    MPI_Allreduce(MPI_IN_PLACE, was, 6, workers_real(), MPI_SUM, w.world);
    for (int i = 0; i < 6; i++) CHECK_NEAR(is[i], was[i] / (gcp_real)w.ranks, 1e-6);
    same_everywhere(is, 6);
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none");
}

/* Texts that differ in one line, or of which one ends sooner: all ranks say so, in the same words. */
static void differences(void)
{
    static const char *const texts[] = { "a\nb\nc\n", "a\nB\nc\n", "a\nb\n", "", "a\nb\nc\nd\n", "a\nb\ncc\n" };
    static const char *const lines[] = { 0, "'B' where rank 0 has 'b'", "'' where rank 0 has 'c'",
                                         "'' where rank 0 has 'a'", "'d' where rank 0 has ''",
                                         "'cc' where rank 0 has 'c'" };
    char message[200], expected[200];
    for (int i = 0; i < 6; i++)
        for (int odd = 1; odd < w.ranks; odd++) {
            const int same = workers_same(&w, texts[w.rank == odd ? i : 0], message, sizeof message);
            CHECK_INT(same, ==, i == 0);
            if (same) continue;
            snprintf(expected, sizeof expected, "rank %d has %s", odd, lines[i]);
            CHECK_TEXT(message, expected);
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    workers_begin(&w, MPI_COMM_WORLD, 60);
    if (BATCH % w.ranks) workers_stop(&w, "a batch of 16 is no multiple of the ranks");
    as_alone((how) { .policy = GCP_POLICY_SEGMENTS, .dropout = 0.3, .clip = 0.5, .pauses = 1 });
    as_alone((how) { .policy = GCP_POLICY_KEEP_ALL, .late = 1 });
    as_alone((how) { .policy = GCP_POLICY_SQRT, .fused = 1 });
    as_alone((how) { .policy = GCP_POLICY_SEGMENTS, .micros = 2, .dropout = 0.3 });
    as_alone((how) { .policy = GCP_POLICY_SEGMENTS, .samples = 11 });
    as_alone((how) { .policy = GCP_POLICY_SEGMENTS, .samples = 3, .clip = 0.1 });
    repeated();
    statistics();
    differences();
    workers_end(&w);
    int status = check_done(), worst;
    MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MAX, w.world);
    MPI_Finalize();
    return worst;
}
