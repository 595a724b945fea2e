/* finetune.c - a network from an ONNX file, trained on a folder of photographs within so many bytes; the same file out.

       finetune mobilenet.onnx --data flowers --budget 64MiB --epochs 10 --augment --out tuned.onnx

   --help says the rest. */
#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L          /* for bar.h */
#endif
#include <signal.h>

#include "gcp.h"
#include "gcp_io.h"
#include "gcp_onnx.h"
#include "bar.h"
#include "finetune_options.h"

/* ---- The network -----------------------------------------------------------------------------------------------*/

/* The network, its plans over one block of memory, and a batch on its way in. */
typedef struct tuner {
    gcp_arena files, tapes;
    gcp_onnx model;
    gcp_tape *net;
    gcp_tensor image, labels, logits;
    gcp_plan train, test;
    void *memory;
    view view;
    float *images, *scores;
    int32_t *classes;
} tuner;

static int said(const char *message)
{
    if (message) fprintf(stderr, "finetune: %s\n", message);
    return message == NULL;
}
static int64_t size_of(const char *path, const char *end)
{
    char name[4096];
    const gcp_files *files = gcp_stdio();
    snprintf(name, sizeof name, "%s%s", path, end);
    void *file = files->open(files->context, name, 0);
    const int64_t size = file ? files->size(files->context, file) : 0;
    if (file) files->close(files->context, file);
    return size > 0 ? size : 0;
}
static int arena_take(gcp_arena *arena, size_t size)
{
    void *memory = malloc(size);
    *arena = gcp_arena_from(memory, size);
    return memory ? 1 : said("out of memory");
}

/* The file, and what PyTorch puts beside it, in an arena with room for the weights once more. */
static int model_open(const options *o, tuner *t)
{
    const int64_t size = size_of(o->model, "") + size_of(o->model, ".data");
    if (!arena_take(&t->files, (size_t)size * 2 + GCP_MB(64))) return 0;
    t->model = gcp_onnx_open(&t->files, o->model);
    return said(t->model.error[0] ? t->model.error : NULL);
}
/* The picture that the first input takes: channels first in the file, as a rule, or last. */
static int view_of(const options *o, tuner *t)
{
    const gcp_shape s = gcp_shape_of(t->image);
    const int first = s.d[3] == 3 || s.d[3] == 1;
    t->view.channels = first ? s.d[3] : s.d[2];
    t->view.height = first ? s.d[1] : s.d[3];
    t->view.width = first ? s.d[2] : s.d[1];
    memcpy(t->view.mean, o->mean, sizeof o->mean);
    memcpy(t->view.std, o->std, sizeof o->std);
    if (s.rank != 4 || (t->view.channels != 3 && t->view.channels != 1))
        return said("the model's first input is no image of one or three channels");
    if (o->size && (t->view.height != o->size || t->view.width != o->size)) {
        fprintf(stderr, "finetune: --size %d: the file takes images of %d x %d\n", o->size, t->view.height,
                t->view.width);
        return 0;
    }
    return 1;
}
static int record(const options *o, tuner *t, int classes)
{
    char sizes[1000];
    snprintf(sizes, sizeof sizes, "%s * %d", o->sizes ? o->sizes : "", o->size ? o->size : 224);
    if (!arena_take(&t->tapes, GCP_MB(512))) return 0;
    t->net = gcp_tape_make(&t->tapes, .ops = t->model.ops + 8, .seed = 1);
    gcp_onnx_record(t->net, &t->model, .batch = o->batch, .sizes = sizes, .classes = classes, .logits = 1,
                    .frozen_norms = o->frozen_norms, .report = gcp_file(stderr));
    t->image = gcp_onnx_input(&t->model, 0);
    t->logits = gcp_onnx_output(&t->model, 0);
    if (gcp_error(t->net)) return said(gcp_error(t->net));
    if (gcp_elements(t->logits) != (size_t)o->batch * (size_t)classes)
        return said("the model's first output is not a number for each class");
    return view_of(o, t);
}

/* ---- The plan --------------------------------------------------------------------------------------------------*/

static gcp_plan plan_with(const options *o, gcp_tensor loss, gcp_policy policy, size_t budget)
{
    return gcp_plan_make(loss, .policy = policy, .budget = budget, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9,
                         .train = o->train, .freeze = o->freeze, .frozen_norms = o->freeze || o->train,
                         .store = o->store);
}
static void plan_print(const tuner *t, const gcp_plan *keep)
{
    const gcp_plan *p = &t->train;
    printf("this plan takes %.1f MiB (%zu bytes), and %.0f %% of keep-all's time by the cost model\n", mib(p->bytes),
           p->bytes, 100 * p->seconds / keep->seconds);
    printf("weights take %.1f MiB of it, momentum %.1f; the file, beside it, %.1f MiB\n",
           mib(p->split.weights + p->split.statistics), mib(p->split.optimizer), mib((size_t)t->files.used));
}
static int plan(const options *o, tuner *t)
{
    t->labels = gcp_labels(t->net, "class", GCP_SHAPE(o->batch));
    const gcp_tensor loss = gcp_cross_entropy(gcp_keep(t->logits), t->labels);
    const gcp_plan keep = plan_with(o, loss, GCP_POLICY_KEEP_ALL, 0);
    if (gcp_error(t->net)) return said(gcp_error(t->net));
    const size_t least = plan_with(o, loss, GCP_POLICY_BUDGET, 1).least_bytes;
    gcp_error_clear(t->net);
    printf("images of %d x %d in batches of %d%s: keeping all takes %.1f MiB, the least found is %.1f MiB "
           "(%zu bytes)\n",
           t->view.height, t->view.width, o->batch, store_said(o->store), mib(keep.bytes), mib(least), least);
    fflush(stdout);
    t->train = o->budget ? plan_with(o, loss, GCP_POLICY_BUDGET, o->budget) : keep;
    if (gcp_error_code(t->net) == GCP_E_BUDGET) {
        fprintf(stderr,
                "finetune: --budget: %.1f MiB are too few: the least found is %.1f; a smaller --batch takes less, and "
                "so does --train with a part of the network\n",
                mib(o->budget), mib(t->train.least_bytes));
        return 0;
    }
    t->test = gcp_plan_make(t->logits, .inference = 1, .store = o->store);
    if (gcp_error(t->net)) return said(gcp_error(t->net));
    plan_print(t, &keep);
    return 1;
}
/* How many parameters and statistics there are. */
static int tensors(gcp_tape *net)
{
    int count = 0;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++) count++;
    for (int i = 0; !gcp_is_nil(gcp_nth_statistic(net, i)); i++) count++;
    return count;
}
static int list(const tuner *t)
{
    char name[300];
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(t->net, i)); i++) {
        const gcp_tensor w = gcp_nth_parameter(t->net, i);
        printf("%s %zu\n", gcp_name(w, name, sizeof name), gcp_elements(w));
    }
    return 1;
}
static int bind(const options *o, tuner *t, int classes)
{
    const size_t room = gcp_plans_room(&t->train, &t->test);
    t->memory = malloc(room);
    t->images = malloc(gcp_elements(t->image) * sizeof *t->images);
    t->scores = malloc((size_t)o->batch * (size_t)classes * sizeof *t->scores);
    t->classes = malloc((size_t)o->batch * sizeof *t->classes);
    if (!t->memory || !t->images || !t->scores || !t->classes) return said("out of memory");
    gcp_bind(&t->train, t->memory, room);
    gcp_bind(&t->test, t->memory, room);
    const int loaded = gcp_onnx_load(t->net, &t->model), known = tensors(t->net);
    printf("%s: %d tensors loaded; %s\n", o->model, loaded,
           loaded < known ? "the last layer is new" : "the last layer has as many outputs and stays");
    return said(gcp_error(t->net));
}

/* ---- The photographs -------------------------------------------------------------------------------------------*/

/* Photographs that train, and those that only test; in the order of this list. */
typedef struct split { int *train, *test; int trains, tests; } split;

/* The same share of each class, drawn by its number alone. */
static int split_photos(const photos *s, double held_out, split *parts)
{
    int *order = malloc((size_t)(s->path.count + 1) * sizeof *order);
    parts->train = malloc((size_t)(s->path.count + 1) * sizeof *order);
    parts->test = malloc((size_t)(s->path.count + 1) * sizeof *order);
    if (!order || !parts->train || !parts->test) return said("out of memory");
    for (int first = 0, last; first < s->path.count; first = last) {
        for (last = first; last < s->path.count && s->label[last] == s->label[first];) last++;
        const int count = last - first, tests = (int)(held_out * count + 0.5);
        data_shuffle(order, count, 1);
        for (int i = 0; i < count; i++)
            if (i < tests) parts->test[parts->tests++] = first + order[i];
            else parts->train[parts->trains++] = first + order[i];
    }
    free(order);
    return 1;
}
static int photos_open(const options *o, photos *s, split *parts)
{
    if (!photos_find(o->data, s)) {
        fprintf(stderr, "finetune: --data: there is no folder '%s' with a folder inside for each class\n", o->data);
        return 0;
    }
    photos_check(s);
    if (!split_photos(s, o->held_out, parts)) return 0;
    int filled = 0;
    for (int c = 0; c < s->classes.count; c++) {
        int count = 0;
        for (int i = 0; i < s->path.count; i++) count += s->label[i] == c;
        printf("%s %d%s", s->classes.name[c], count, c + 1 < s->classes.count ? ", " : "\n");
        filled += count > 0;
    }
    printf("%d classes, %d photographs to train on, %d held out", s->classes.count, parts->trains, parts->tests);
    printf(s->passed_over ? "; %d files of other kinds\n" : "\n", s->passed_over);
    return (filled > 1 && parts->trains > 0) || said("two classes with photographs are the least");
}
/* A batch of list[first], ... as the network's input, from the list's beginning again behind its end. epoch: for the
   squares that augment; 0: the middle. Returns 0: a file could not be read, which was said. */
static int batch_read(const options *o, tuner *t, const photos *s, const int *list, int count, int first, int epoch)
{
    const size_t size = (size_t)(t->view.height * t->view.width * t->view.channels);
    for (int i = 0; i < o->batch; i++) {
        const int index = list[(first + i) % count];
        const photo p = photo_read(s->path.name[index]);
        if (!p.pixels) {
            fprintf(stderr, "finetune: %s: this image cannot be read\n", s->path.name[index]);
            return 0;
        }
        const crop c = epoch ? crop_anywhere(&p, (uint64_t)epoch, (uint64_t)index) : crop_middle(&p);
        t->classes[i] = s->label[index];
        const int good = photo_view(&p, c, &t->view, t->images + (size_t)i * size);
        free(p.pixels);
        if (!good) return said("out of memory");
    }
    return 1;
}
/* The batch into a plan's input, in the layout that the file has. */
static void batch_write(tuner *t, gcp_plan *p)
{
    const gcp_shape s = gcp_shape_of(t->image);
    if (s.d[3] == t->view.channels) gcp_write(p, t->image, t->images);
    else gcp_onnx_write(p, &t->model, 0, t->images);
}

/* ---- Training --------------------------------------------------------------------------------------------------*/

/* Goes into the run file. loss: this epoch's; of: a hash of what the run goes through, and in which batches. */
typedef struct place { int epoch, batch; double loss; uint64_t of; } place;

static uint64_t hash_text(uint64_t hash, const char *text) { return hash_bytes(hash, text, strlen(text) + 1); }
static uint64_t run_hash(const options *o, const photos *s)
{
    char numbers[64];
    uint64_t hash = HASH_BEGIN;
    snprintf(numbers, sizeof numbers, "%d %g", o->batch, o->held_out);
    hash = hash_text(hash, numbers);
    for (int i = 0; i < s->classes.count; i++) hash = hash_text(hash, s->classes.name[i]);
    for (int i = 0; i < s->path.count; i++) hash = hash_text(hash, strrchr(s->path.name[i], '/'));
    return hash;
}

static volatile sig_atomic_t interrupted;
static void interrupt(int signal) { (void)signal; interrupted = 1; }

static int run_save(const options *o, tuner *t, place *at)
{
    return !o->resume || !gcp_save_run(t->net, o->resume, .extra = at, .extra_bytes = sizeof *at) ||
           said(gcp_error(t->net));
}
/* The rest of an epoch. 0: it was interrupted, or something failed. */
static int epoch(const options *o, tuner *t, const photos *s, const split *parts, place *at)
{
    const int batches = (parts->trains + o->batch - 1) / o->batch, began = at->batch;
    const double start = seconds_now();
    int *order = malloc((size_t)parts->trains * sizeof *order), *list = malloc((size_t)parts->trains * sizeof *list),
        good = order && list;
    if (good) data_shuffle(order, parts->trains, (uint64_t)at->epoch + 1);
    for (int i = 0; i < parts->trains && good; i++) list[i] = parts->train[order[i]];
    while (good && at->batch < batches && !interrupted) {
        good = batch_read(o, t, s, list, parts->trains, at->batch * o->batch, o->augment ? at->epoch + 1 : 0);
        if (!good) break;
        const uint64_t step = (uint64_t)at->epoch * (uint64_t)batches + (uint64_t)at->batch;
        const double rate = gcp_rate_cosine(o->lr, step, 0, (uint64_t)o->epochs * (uint64_t)batches);
        batch_write(t, &t->train);
        gcp_write(&t->train, t->labels, t->classes);
        at->loss += gcp_step(&t->train, .lr = rate > 0 ? rate : GCP_ZERO) / batches;
        good = said(gcp_error(t->net));
        if (good && !isfinite(at->loss)) good = said("the loss is no number any more: a lower --lr, or --frozen-norms");
        at->batch++;
        bar(at->epoch + 1, at->batch, batches, at->batch - began, seconds_now() - start);
    }
    free(order);
    free(list);
    return good && at->batch == batches;
}
/* How many of the held-out photographs are classified rightly; -1: something failed. */
static int tested(const options *o, tuner *t, const photos *s, const split *parts)
{
    int right = 0;
    for (int first = 0; first < parts->tests; first += o->batch) {
        if (!batch_read(o, t, s, parts->test, parts->tests, first, 0)) return -1;
        batch_write(t, &t->test);
        gcp_forward(&t->test);
        if (gcp_read(&t->test, t->logits, t->scores)) return said(gcp_error(t->net)) - 1;
        for (int i = 0; i < o->batch && first + i < parts->tests; i++)
            right += data_best(t->scores + i * s->classes.count, s->classes.count) == t->classes[i];
    }
    return right;
}
/* The bytes that a step touches, found in memory of its own. */
static size_t measured(tuner *t)
{
    const size_t size = t->train.room + 256;
    void *memory = malloc(size);
    const size_t bytes = memory ? gcp_measure(&t->train, memory, size) : 0;
    free(memory);
    return bytes;
}
static int train(const options *o, tuner *t, const photos *s, const split *parts, place *at)
{
    while (at->epoch < o->epochs && epoch(o, t, s, parts, at)) {
        const int right = tested(o, t, s, parts);
        if (right < 0) return 0;
        at->epoch++;
        printf("epoch %3d  loss %.4f", at->epoch, at->loss);
        if (parts->tests) printf("  right on those held out %d of %d", right, parts->tests);
        printf("\n");
        fflush(stdout);
        at->batch = 0;
        at->loss = 0;
        if (!run_save(o, t, at)) return 0;
    }
    if (!interrupted || at->epoch >= o->epochs) return at->epoch >= o->epochs;
    printf("\nstopped in epoch %d, after batch %d; %s%s\n", at->epoch + 1, at->batch,
           o->resume ? "go on with --resume " : "nothing was saved", o->resume ? o->resume : "");
    return run_save(o, t, at) && 0;
}
/* The names of the classes, beside the model that will be there; before training, for a path that cannot be written. */
static int classes_save(const options *o, const photos *s)
{
    char path[4096];
    FILE *model = fopen(o->out, "rb+"), *f;
    if (!model) model = fopen(o->out, "wb");
    if (!model || fclose(model)) {
        fprintf(stderr, "finetune: --out: '%s' cannot be written\n", o->out);
        return 0;
    }
    if (!size_of(o->out, "")) remove(o->out);
    snprintf(path, sizeof path, "%s.classes", o->out);
    f = fopen(path, "w");
    for (int i = 0; f && i < s->classes.count; i++) fprintf(f, "%s\n", s->classes.name[i]);
    return (f && !fclose(f)) || said("the names of the classes cannot be written beside --out");
}
static int save(const options *o, tuner *t)
{
    if (gcp_onnx_save(t->net, &t->model, o->out, .inference = 1)) return said(gcp_error(t->net));
    const size_t bytes = measured(t);
    printf("saved as %s; peak planned %zu, measured %zu bytes\n", o->out, t->train.bytes, bytes);
    return !bytes || bytes == t->train.bytes || said("the measured peak is not the planned one");
}

static int run(const options *o, tuner *t, photos *s, split *parts)
{
    if (!model_open(o, t) || !photos_open(o, s, parts) || !record(o, t, s->classes.count)) return 0;
    if (o->list) return list(t);
    if (!classes_save(o, s) || !plan(o, t) || !bind(o, t, s->classes.count)) return 0;
    const uint64_t of = run_hash(o, s);
    place at = { 0, 0, 0, of };
    if (o->resume && gcp_resume_run(t->net, o->resume, .extra = &at, .extra_bytes = sizeof at))
        printf("%s: goes on after epoch %d, batch %d\n", o->resume, at.epoch, at.batch);
    fflush(stdout);
    if (!said(gcp_error(t->net))) return 0;
    if (at.of != of)
        return said("--resume: that run has other photographs or classes, another --batch or another --held-out");
    return train(o, t, s, parts, &at) && save(o, t);
}
int main(int argc, char **argv)
{
    options o = { .out = "tuned.onnx", .epochs = 5, .batch = 8, .lr = 0.005, .held_out = 0.2,
                  .mean = { 0.485, 0.456, 0.406 }, .std = { 0.229, 0.224, 0.225 } };
    static tuner t;
    photos s = { 0 };
    split parts = { 0 };
    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return usage(stdout, 0);
    if (!parse(&o, argc, argv)) return 2;
    signal(SIGINT, interrupt);
    const int good = run(&o, &t, &s, &parts);
    photos_free(&s);
    free(parts.train);
    free(parts.test);
    free(t.memory);
    free(t.images);
    free(t.scores);
    free(t.classes);
    free(t.files.base);
    free(t.tapes.base);
    return !good;
}
