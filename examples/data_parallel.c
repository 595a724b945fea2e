/* data_parallel.c - trains on several machines: each rank has a share of every batch and a plan of its own; gradients
   are added over MPI while backward goes on (workers.h).

       mpirun -n 4 data_parallel --epochs 10 --budget 1MiB --resume run.gcp

   --help says the rest. With one rank it takes the same steps, to the bit, as without MPI (--alone 1). */
#include <limits.h>
#include <stdarg.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "loop.h"
#include "words.h"
#include "workers.h"

typedef struct options {
    int epochs, steps, batch, seed, norm, alone, late;
    double dropout, lr, clip, limit;
    size_t budget;
    gcp_store store;
    char *data, *resume, *save;
} options;

static int usage(FILE *f, int status)
{
    fputs("mpirun -n RANKS data_parallel - trains on the 1,797 digits that come with gcp\n\n"
          "  --epochs N (default 10)   --steps N at most in an epoch   --lr X (default 0.002, Adam)\n"
          "  --batch N      images in a step, of all ranks together; a multiple of their number (default 48)\n"
          "  --budget B     bytes that a rank's step may take: 1MiB, 500KiB (default: its marked segments run again)\n"
          "  --store S      float (default), or bf16: activations and their gradients in two bytes, not four\n"
          "  --norm 1       batch-norm behind convolutions; each rank's own, running statistics averaged\n"
          "  --dropout R    on the last features: the values that one worker would drop\n"
          "  --clip X       the most that the norm of all gradients together may be\n"
          "  --seed N       of weights and dropout (default 1)\n"
          "  --resume FILE  goes on with rank 0's run in FILE, if there is one, and saves it there after each epoch\n"
          "  --save FILE    the weights at the end\n"
          "  --limit S      all ranks end where one has said nothing for S seconds (default 60)\n"
          "  --late 1       nothing is sent before all of backward is done, to compare with\n"
          "  --alone 1      one rank without MPI's sums\n"
          "  --data DIR     where the digits are\n",
          f);
    return status;
}

static int parse(options *o, int argc, char **argv)
{
    const struct { const char *name; int *whole; double *number; char **text; } table[] = {
        { "--epochs", &o->epochs, 0, 0 },   { "--steps", &o->steps, 0, 0 },   { "--batch", &o->batch, 0, 0 },
        { "--seed", &o->seed, 0, 0 },       { "--norm", &o->norm, 0, 0 },     { "--alone", &o->alone, 0, 0 },
        { "--late", &o->late, 0, 0 },       { "--dropout", 0, &o->dropout, 0 }, { "--lr", 0, &o->lr, 0 },
        { "--clip", 0, &o->clip, 0 },       { "--limit", 0, &o->limit, 0 },   { "--data", 0, 0, &o->data },
        { "--resume", 0, 0, &o->resume },   { "--save", 0, 0, &o->save } };
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        char *end = (char *)(uintptr_t)value;
        size_t k = 0;
        while (k < sizeof table / sizeof *table && strcmp(table[k].name, argv[i])) k++;
        if (!strcmp(argv[i], "--budget")) { if (!(o->budget = bytes_of(value))) end = argv[i]; else end += strlen(end);
        } else if (!strcmp(argv[i], "--store")) {
            end = store_of(value, &o->store) ? end + strlen(end) : argv[i];
        } else if (k == sizeof table / sizeof *table) end = argv[i];
        else if (table[k].text) { *table[k].text = end; end += strlen(end);
        } else if (table[k].whole) {
            const long n = strtol(value, &end, 10);
            *table[k].whole = n < INT_MIN || n > INT_MAX ? INT_MIN : (int)n;
        } else *table[k].number = strtod(value, &end);
        if (*end || !*value) {
            fprintf(stderr, "data_parallel: %s %s: no such option or value (--help)\n", argv[i], value);
            return 0;
        }
    }
    const int whole = o->epochs >= 1 && o->batch >= 1 && o->steps >= 0 && o->epochs <= 1000000 && o->batch <= 1000000,
              real = o->lr > 0 && o->lr < 1e6 && o->limit > 0 && o->clip >= 0 && o->dropout >= 0 && o->dropout < 1;
    if (whole && real && o->seed >= 0 && (o->norm | o->alone | o->late | 1) == 1) return 1;
    fprintf(stderr,
            "data_parallel: --epochs and --batch are 1 to 1000000, --seed, --steps and --clip at least 0, --lr above\n"
            "0 and below 1e6, --limit above 0, --dropout in [0, 1), --norm, --alone and --late 0 or 1\n");
    return 0;
}

/* ---- A rank ------------------------------------------------------------------------------------------------------*/

/* What all ranks are about to do; goes into the run file, too. */
typedef struct place { int epoch, seed, batch, norm; double dropout, lr, clip; } place;

typedef struct rank {
    const options *o;
    workers w;
    gcp_dataset train, test;            /* parts of one set, which lies in digits_memory */
    void *tape_memory, *state, *slab, *digits_memory;
    size_t state_bytes, slab_bytes;
    gcp_tape *net;
    network ends;
    gcp_plan plan, infer;
    int share;                          /* images of each batch that are this rank's */
    int *order;
    float *images, *logits;
    int32_t *labels;
    place at;
    char error[GCP_MAX_ERROR];
} rank;

static gcp_tensor layer(const options *o, gcp_tensor x)
{
    x = gcp_conv2d(x, .out = 16, .k = 3, .pad = 1);
    return gcp_relu(o->norm ? gcp_batch_norm(x) : x);
}
static network record(const options *o, gcp_tape *net, int batch)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, 8, 8, 1)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(net, "pair") x = layer(o, layer(o, x));
    GCP_SEGMENT(net, "head") {
        x = gcp_relu(gcp_linear(gcp_flatten(gcp_max_pool(x, .k = 2)), .out = 32));
        if (o->dropout > 0) x = gcp_dropout(x, .rate = o->dropout);
        x = gcp_linear(x, .out = 10);
    }
    return network_of(image, labels, x);
}

static void plan(rank *r)
{
    gcp_plan_opts p = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_ADAM, .clip_norm = r->o->clip,
                        .store = r->o->store };
    if (r->o->budget) { p.policy = GCP_POLICY_BUDGET; p.budget = r->o->budget; }
    if (!r->o->alone) { p.on_gradient = workers_on_gradient; p.on_wait = workers_on_wait; p.hook_context = &r->w; }
    r->plan = gcp_plan_make_at(r->ends.loss, p);
    r->infer = gcp_plan_make(r->ends.logits, .inference = 1, .store = r->o->store);
}

/* The state lies apart from the slab: rank 0 gives it to the others as it is. */
static int bind(rank *r)
{
    const size_t slab = r->plan.slab_bytes > r->infer.slab_bytes ? r->plan.slab_bytes : r->infer.slab_bytes;
    r->slab_bytes = slab + 64;
    r->state_bytes = gcp_state_bytes(r->net, GCP_OPTIMIZER_ADAM);
    r->state = aligned_alloc(64, (r->state_bytes + 63) / 64 * 64);
    r->slab = malloc(r->slab_bytes);
    if (!r->state || !r->slab || !workers_sums(&r->w, r->net)) return 0;
    gcp_state_bind(r->net, r->state, r->state_bytes);
    gcp_bind(&r->plan, r->slab, r->slab_bytes);
    return gcp_bind(&r->infer, r->slab, r->slab_bytes) == GCP_OK;
}

static int load(rank *r)
{
    gcp_dataset d = data_digits(NULL, r->o->data);
    if (!d.error[0]) {
        gcp_arena arena = gcp_arena_from(r->digits_memory = malloc(d.bytes), d.bytes);
        d = data_digits(&arena, r->o->data);
    }
    memcpy(r->error, d.error, sizeof r->error);
    if (d.error[0]) return 0;
    data_mix(&d, 1);
    r->train = data_slice(&d, 0, d.count - 297);
    r->test = data_slice(&d, d.count - 297, 297);
    return 1;
}

static int begin(rank *r)
{
    enum { TAPE = 8 << 20 };
    static gcp_arena arena;
    r->share = r->o->batch / r->w.ranks;
    if (r->share * r->w.ranks != r->o->batch)
        snprintf(r->error, sizeof r->error, "a batch of %d is no multiple of %d ranks", r->o->batch, r->w.ranks);
    if (r->o->alone && r->w.ranks > 1) snprintf(r->error, sizeof r->error, "--alone is for one rank");
    if (r->error[0]) return 0;
    arena = gcp_arena_from(r->tape_memory = malloc(TAPE), TAPE);
    r->net = gcp_tape_make(&arena, .ops = 64, .seed = (uint64_t)r->o->seed);
    r->ends = record(r->o, r->net, r->share);
    plan(r);
    r->images = malloc((size_t)r->share * 64 * sizeof *r->images);
    r->logits = malloc((size_t)r->share * 10 * sizeof *r->logits);
    r->labels = malloc((size_t)r->share * sizeof *r->labels);
    r->order = malloc((size_t)r->train.count * sizeof *r->order);
    return !gcp_error(r->net) && r->images && r->logits && r->labels && r->order && bind(r);
}

static const char *error_of(const rank *r)
{
    return r->error[0] ? r->error : r->net && gcp_error(r->net) ? gcp_error(r->net) : "out of memory";
}

static void end(rank *r)
{
    workers_end(&r->w);
    free(r->tape_memory); free(r->state); free(r->slab); free(r->digits_memory);
    free(r->order); free(r->images); free(r->logits); free(r->labels);
}

/* ---- Together --------------------------------------------------------------------------------------------------*/

static void say(workers_text *text, const char *format, ...)
{
    char line[GCP_MAX_ERROR + 64];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    workers_write(text, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static int threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* Whether all ranks are ready and about to do the same; what one lacks, or has otherwise, is said by all. */
static int agree(rank *r, int ready)
{
    const options *o = r->o;
    workers_text text = { 0 };
    char name[256], message[2 * GCP_MAX_ERROR + 200];
    say(&text, "%s\nseed %d\nbatch %d\nepochs %d, steps %d\n", ready ? "ready" : error_of(r), o->seed, o->batch,
        o->epochs, o->steps);
    say(&text, "learning rate %.17g, clip %.17g\nnorm %d, dropout %.17g\n%d training images\n", o->lr, o->clip, o->norm,
        o->dropout, r->train.count);
    say(&text, "budget %zu\nstore %s\nlate %d\nrun file '%s'\nsaved as '%s'\n%d threads\n", o->budget,
        o->store ? "bf16" : "float", o->late, o->resume ? o->resume : "", o->save ? o->save : "", threads());
    for (int i = 0; ready && !gcp_is_nil(gcp_nth_parameter(r->net, i)); i++) {
        gcp_tensor x = gcp_nth_parameter(r->net, i);
        say(&text, "%s, %zu values\n", gcp_name(x, name, sizeof name), gcp_elements(x));
    }
    if (ready) gcp_list_print(&r->plan, workers_writer(&text));
    if (text.failed) workers_stop(&r->w, "out of memory");
    const int same = workers_same(&r->w, text.text, message, sizeof message);
    if (!same) fprintf(stderr, "rank %d of %d: ranks differ: %s\n", r->w.rank, r->w.ranks, message);
    else if (!ready) fprintf(stderr, "rank %d of %d: %s\n", r->w.rank, r->w.ranks, error_of(r));
    free(text.text);
    return same && ready;
}

/* Rank 0 reads the run file, and gives all others its state and place. */
static void take_up(rank *r)
{
    const options *o = r->o;
    const char *file = o->resume;
    place *at = &r->at, begun = { 0, o->seed, o->batch, o->norm, o->dropout, o->lr, o->clip };
    char why[GCP_MAX_ERROR];
    *at = begun;
    if (file && !r->w.rank && gcp_resume_run(r->net, file, .extra = at, .extra_bytes = sizeof *at)) {
        snprintf(why, sizeof why, "%.200s: begun with --seed %d --batch %d --norm %d --dropout %g --lr %g --clip %g",
                 file, at->seed, at->batch, at->norm, at->dropout, at->lr, at->clip);
        begun.epoch = at->epoch;
        if (memcmp(at, &begun, sizeof begun)) workers_stop(&r->w, why);
        printf("%s: goes on after epoch %d\n", file, at->epoch);
    }
    if (gcp_error(r->net)) workers_stop(&r->w, gcp_error(r->net));
    workers_give(&r->w, r->state, r->state_bytes, 0, "the state");
    workers_give(&r->w, at, sizeof *at, 0, "the state");
}

/* This rank's share of the batch whose first image is `first`; how many images that is. */
static int fill(rank *r, const gcp_dataset *d, const int *order, int first)
{
    const augment none = { 0, 0, 0 };
    const int mine = first + r->w.rank * r->share, left = d->count - mine;
    data_batch(d, order, mine, r->share, none, r->images, r->labels);
    return left < 0 ? 0 : left < r->share ? left : r->share;
}

/* A step on the batch whose first image is `first`. Returns the sum of the losses of this rank's images. A rank that
   has none takes part with a share of 0. */
static double step(rank *r, int first, double lr)
{
    const int images = fill(r, &r->train, r->order, first), some = images ? images : 1,
              left = r->train.count - first, all = left < r->o->batch ? left : r->o->batch;
    if (!images) r->labels[0] = 0;
    gcp_write_some(&r->plan, r->ends.image, r->images, some);
    gcp_write_some(&r->plan, r->ends.labels, r->labels, some);
    double loss = gcp_step(&r->plan, .lr = lr, .first_sample = (uint64_t)(r->w.rank * r->share),
                           .share = images ? (double)images / all : GCP_ZERO);
    if (gcp_error(r->net)) workers_stop(&r->w, gcp_error(r->net));
    return loss * images;
}

static double accuracy(rank *r)
{
    int right = 0;
    for (int first = 0; first < r->test.count; first += r->o->batch) {
        const int images = fill(r, &r->test, NULL, first);
        gcp_write(&r->infer, r->ends.image, r->images);
        gcp_forward(&r->infer);
        gcp_read(&r->infer, r->ends.logits, r->logits);
        for (int i = 0; i < images; i++) right += data_best(r->logits + i * 10, 10) == r->labels[i];
    }
    if (gcp_error(r->net)) workers_stop(&r->w, gcp_error(r->net));
    workers_add(&r->w, &right, 1, MPI_INT, "testing");
    return 100.0 * right / r->test.count;
}

/* Ends the run where ranks have other weights than rank 0: they never do, and a run file would be worth nothing. */
static uint64_t hash(rank *r)
{
    const uint64_t mine = weights_hash(&r->plan);
    uint64_t first = mine;
    if (gcp_error(r->net)) workers_stop(&r->w, gcp_error(r->net));
    workers_give(&r->w, &first, sizeof first, 0, "comparing weights");
    if (first != mine) workers_stop(&r->w, "weights differ from rank 0's");
    return mine;
}

/* An epoch from r->at on. Statistics of batch-norms become the mean of all ranks' at its end. */
static void epoch(rank *r)
{
    const options *o = r->o;
    const int whole = (r->train.count + o->batch - 1) / o->batch,
              steps = o->steps && o->steps < whole ? o->steps : whole,
              images = steps == whole ? r->train.count : steps * o->batch;
    const double begin = MPI_Wtime(), waited = r->w.wait_seconds;
    double loss = 0;
    data_shuffle(r->order, r->train.count, (uint64_t)r->at.epoch + 1);
    for (int i = 0; i < steps; i++) {
        const uint64_t done = (uint64_t)r->at.epoch * (uint64_t)steps + (uint64_t)i;
        loss += step(r, i * o->batch, gcp_rate_cosine(o->lr, done, 0, (uint64_t)(o->epochs * steps)));
    }
    const double ms = 1e3 * (MPI_Wtime() - begin) / steps, wait = 1e3 * (r->w.wait_seconds - waited) / steps;
    workers_add(&r->w, &loss, 1, MPI_DOUBLE, "the loss");
    if (!workers_average(&r->w, &r->plan)) workers_stop(&r->w, error_of(r));
    const double right = accuracy(r);
    hash(r);
    r->at.epoch++;
    if (r->w.rank) return;
    printf("epoch %3d  loss %.4f  right on the test set %6.2f %%  %8.2f ms a step, of which rank 0 waits %.2f\n",
           r->at.epoch, loss / images, right, ms, wait);
    fflush(stdout);
    if (o->resume && gcp_save_run(r->net, o->resume, .extra = &r->at, .extra_bytes = sizeof r->at))
        workers_stop(&r->w, gcp_error(r->net));
}

/* Every rank's planned and measured bytes, said by rank 0. 0: they differ. */
static int report(rank *r)
{
    const size_t room = r->plan.room + 64;
    void *probe = malloc(room);
    size_t mine[2] = { r->plan.bytes, gcp_measure(&r->plan, probe, room) }, his[2];
    int good = 1;
    const uint64_t weights = hash(r);
    free(probe);
    for (int i = 0; i < r->w.ranks; i++) {
        memcpy(his, mine, sizeof his);
        workers_give(&r->w, his, sizeof his, i, "measuring");
        if (!r->w.rank)
            printf("rank %d: peak planned %zu, measured %zu bytes%s\n", i, his[0], his[1], store_said(r->o->store));
        good &= his[0] == his[1];
    }
    if (!r->w.rank) printf("weights %016llx\n", (unsigned long long)weights);
    if (!r->w.rank && r->o->save && gcp_save(r->net, r->o->save)) workers_stop(&r->w, gcp_error(r->net));
    return good;
}

int main(int argc, char **argv)
{
    static char data[] = GCP_EXAMPLE_DATA;
    static options o = { .epochs = 10, .batch = 48, .seed = 1, .lr = 0.002, .limit = 60, .data = data };
    static rank r = { .o = &o };
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--help")) return usage(stdout, MPI_Finalize());
    if (!parse(&o, argc, argv)) MPI_Abort(MPI_COMM_WORLD, 2);
    workers_begin(&r.w, MPI_COMM_WORLD, o.limit);
    r.w.late = o.late;
    int good = agree(&r, load(&r) && begin(&r));
    if (good) {
        take_up(&r);
        while (r.at.epoch < o.epochs) epoch(&r);
        good = report(&r);
    }
    end(&r);
    MPI_Finalize();
    return !good;
}
