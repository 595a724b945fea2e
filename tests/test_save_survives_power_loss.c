/* The power fails while a run is saved: after each prefix of what was asked of the disk, with what was not flushed
   lost, there, or there in part, sector by sector. What is found then is the old run or the new one. A disk that
   ignores flushes breaks runs, so this test can fail. */
#include "support/check.h"
#include "support/memory_files.h"

#ifdef __SANITIZE_ADDRESS__
enum { TEARS = 6 };
#else
enum { TEARS = 24 };
#endif
enum { SECTOR = 512, OPERATIONS = 4096 };
typedef enum kind { CREATE, WRITE, FLUSH, RENAME, REMOVE } kind;
typedef struct operation {
    kind what;
    char name[MEMORY_NAME], to[MEMORY_NAME];
    size_t at, size;
    unsigned char *bytes;
} operation;
typedef struct journal {
    memory_disk *disk;
    operation list[OPERATIONS];
    int count;
} journal;

static unsigned char tape_memory[GCP_MB(1)], step_memory[GCP_MB(1)];
static _Alignas(64) unsigned char state[GCP_KB(64)], old_state[GCP_KB(64)], new_state[GCP_KB(64)];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor image, label;
static gcp_plan plan;
static size_t state_bytes;
static journal log_of;

/* ---- a disk that remembers what it was asked ---- */

static operation *noted(journal *j, kind what, const char *name)
{
    if (j->count == OPERATIONS) abort();
    operation *o = &j->list[j->count++];
    memset(o, 0, sizeof *o);
    o->what = what;
    snprintf(o->name, sizeof o->name, "%s", name);
    return o;
}
static void *noted_open(void *context, const char *path, int write)
{
    journal *j = (journal *)context;
    if (write) noted(j, CREATE, path);
    return memory_open(j->disk, path, write);
}
static int noted_absent(void *context, const char *path) { return memory_absent(((journal *)context)->disk, path); }
static int64_t noted_size(void *context, void *file) { return memory_size(((journal *)context)->disk, file); }
static int noted_rewind(void *context, void *file) { return memory_rewind(((journal *)context)->disk, file); }
static size_t noted_read(void *context, void *file, void *to, size_t size)
{
    return memory_read(((journal *)context)->disk, file, to, size);
}
static size_t noted_write(void *context, void *file, const void *from, size_t size)
{
    operation *o = noted((journal *)context, WRITE, ((memory_file *)file)->name);
    o->at = ((memory_file *)file)->at;
    o->size = memory_write(((journal *)context)->disk, file, from, size);
    o->bytes = (unsigned char *)malloc(o->size + 1);
    if (!o->bytes) abort();
    memcpy(o->bytes, from, o->size);
    return o->size;
}
static int noted_flush(void *context, void *file)
{
    noted((journal *)context, FLUSH, ((memory_file *)file)->name);
    return memory_flush(((journal *)context)->disk, file);
}
static int noted_close(void *context, void *file) { return memory_close(((journal *)context)->disk, file); }
static int noted_rename(void *context, const char *from, const char *to)
{
    snprintf(noted((journal *)context, RENAME, from)->to, MEMORY_NAME, "%s", to);
    return memory_rename(((journal *)context)->disk, from, to);
}
static void noted_remove(void *context, const char *path)
{
    noted((journal *)context, REMOVE, path);
    memory_remove(((journal *)context)->disk, path);
}
static int noted_list(void *context, const char *folder, void (*found)(void *arg, const char *name), void *arg)
{
    return memory_list(((journal *)context)->disk, folder, found, arg);
}

static double noted_age(void *context, const char *path) { return memory_age(((journal *)context)->disk, path); }

/* ---- what the disk holds when the power is back ---- */

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* How a sector that was not flushed fares. tear 0: lost; 1: there; 2 to 9: there up to some place; above: by chance. */
static int sector_there(int tear, size_t sector, size_t sectors)
{
    if (tear < 2) return tear;
    if (tear < 10) return sector * 8 < sectors * (size_t)(tear - 1);
    return (int)(mixed((uint64_t)tear << 32 | sector) & 1);
}

/* A file as it is found: `durable` bytes at its front were flushed. Its length may have reached the disk before its
   bytes: what is lost is zeros then (odd tears), else the file is shorter. */
static void torn(memory_file *f, size_t durable, int tear)
{
    size_t sectors = (f->size + SECTOR - 1) / SECTOR, last = durable;
    for (size_t s = durable / SECTOR; s < sectors; s++) {
        size_t first = s * SECTOR < durable ? durable : s * SECTOR,
               end = (s + 1) * SECTOR < f->size ? (s + 1) * SECTOR : f->size;
        if (sector_there(tear, s, sectors)) last = end;
        else memset(f->bytes + first, 0, end - first);
    }
    if (!(tear & 1)) f->size = last;
}

static int same_name(const char *a, const char *b) { return !strcmp(a, b); }

/* Replays the first `count` operations onto `disk`. The last rename may not have reached it. */
static void replay(const journal *j, int count, int tear, int flushes, memory_disk *disk)
{
    char pending[MEMORY_NAME] = "";
    size_t durable = 0;
    for (int i = 0; i < count; i++) {
        const operation *o = &j->list[i];
        memory_file *f = memory_find(disk, o->name);
        if (o->what == CREATE) {
            memory_put(disk, o->name, NULL, 0);
            snprintf(pending, sizeof pending, "%s", o->name);
            durable = 0;
        } else if (o->what == WRITE && f) {
            f->at = o->at;
            memory_write(disk, f, o->bytes, o->size);
        } else if (o->what == FLUSH && f && flushes) durable = f->size;
        else if (o->what == RENAME && !(i == count - 1 && tear % 3 == 0)) {
            memory_rename(disk, o->name, o->to);
            if (same_name(pending, o->name)) snprintf(pending, sizeof pending, "%s", o->to);
        } else if (o->what == REMOVE) memory_remove(disk, o->name);
    }
    memory_file *f = memory_find(disk, pending);
    if (f) torn(f, durable, tear);
}

/* ---- a run ---- */

static void record(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 32, .seed = 3);
    image = gcp_input(net, "image", GCP_SHAPE(2, 6, 6, 3));
    label = gcp_labels(net, "label", GCP_SHAPE(2));
    gcp_tensor x = gcp_relu(gcp_batch_norm(gcp_conv2d(image, .out = 8, .k = 3)));
    plan =
        gcp_plan_make(gcp_cross_entropy(gcp_linear(gcp_flatten(x), .out = 4), label), .optimizer = GCP_OPTIMIZER_ADAM);
    state_bytes = gcp_state_bytes(net, GCP_OPTIMIZER_ADAM);
    memset(state, 0, sizeof state);
    gcp_state_bind(net, state, sizeof state);
    gcp_bind(&plan, step_memory, sizeof step_memory);
}

static void train(int steps)
{
    float pixels[2 * 6 * 6 * 3];
    int32_t classes[2] = { 1, 3 };
    for (int i = 0; i < 2 * 6 * 6 * 3; i++) pixels[i] = (float)(i * 13 % 32) / 32;
    gcp_write(&plan, image, pixels);
    gcp_write(&plan, label, classes);
    for (int i = 0; i < steps; i++) gcp_step(&plan, .lr = 0.01);
}

/* Which run is on the disk: 1 the old one, 2 the new one, 0 neither. */
static int found(memory_disk *disk)
{
    const gcp_files files = memory_files(disk);
    record();
    if (!gcp_resume_run(net, "a.run", .files = &files)) return 0;
    if (!memcmp(state, old_state, state_bytes)) return 1;
    return memcmp(state, new_state, state_bytes) ? 0 : 2;
}

/* Counts what is found after each prefix and tear. */
static void replays(const unsigned char *old, size_t old_bytes, int flushes, int counts[3])
{
    for (int count = 0; count <= log_of.count; count++)
        for (int tear = 0; tear < TEARS; tear++) {
            memory_disk disk = { 0 };
            memory_put(&disk, "a.run", old, old_bytes);
            replay(&log_of, count, tear, flushes, &disk);
            int is = found(&disk);
            if (is == 0 && flushes) printf("after %d operations, tear %d: %s\n", count, tear, gcp_error(net));
            counts[is]++;
            memory_free(&disk);
        }
}

int main(void)
{
    memory_disk disk = { .short_by = 700 };
    const gcp_files files = { &log_of,      noted_open,  noted_absent, noted_size,  noted_rewind,
                              noted_read,   noted_write, noted_flush,  noted_close, noted_rename,
                              noted_remove, noted_list,  noted_age };
    int kept[3] = { 0 }, ignored[3] = { 0 };
    log_of.disk = &disk;
    record();
    train(2);
    CHECK(gcp_save_run(net, "a.run", .files = &files) == GCP_OK);
    memcpy(old_state, state, state_bytes);
    size_t old_bytes = memory_find(&disk, "a.run")->size;
    unsigned char *old = (unsigned char *)malloc(old_bytes);
    memcpy(old, memory_find(&disk, "a.run")->bytes, old_bytes);
    for (int i = 0; i < log_of.count; i++) free(log_of.list[i].bytes);
    log_of.count = 0;
    train(2);
    CHECK(gcp_save_run(net, "a.run", .files = &files) == GCP_OK);
    memcpy(new_state, state, state_bytes);
    CHECK(memcmp(old_state, new_state, state_bytes) != 0);
    replays(old, old_bytes, 1, kept);
    replays(old, old_bytes, 0, ignored);
    printf("%zu bytes, %d operations: %d old, %d new, %d broken; without flushes %d broken\n", old_bytes, log_of.count,
           kept[1], kept[2], kept[0], ignored[0]);
    CHECK_INT(kept[0], ==, 0);
    CHECK(kept[1] > 100 && kept[2] > 0 && ignored[0] > 0);
    for (int i = 0; i < log_of.count; i++) free(log_of.list[i].bytes);
    free(old);
    memory_free(&disk);
    return check_done();
}
