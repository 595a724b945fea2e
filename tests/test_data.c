/* Images from files: the digits as they are, and files with every kind of damage, whose message is compared whole; the
   examples' batches. Leaves small files behind, on which examples/train is run. */
#include "support/check.h"
#include "data.h"
#include "scatter.h"
#include "support/svg.h"
#include "support/table.h"

#define DIGITS TEST_DATA "/examples/data/digits-"

enum { RECORD = 3073 };
static unsigned char memory[1 << 20];
static gcp_arena arena;
static char message[GCP_MAX_ERROR];

/* The message without the place of the call. */
static const char *error_of(const gcp_dataset *d)
{
    const char *call = strstr(d->error, ": gcp_dataset_");
    CHECK(!d->count && !d->images && !d->labels && !arena.used && !arena.scratch);
    CHECK(!strncmp(d->error, "test_data.c:", 12) && call);
    snprintf(message, sizeof message, "%s", call ? strstr(call + 2, ": ") + 2 : d->error);
    return message;
}

static void put(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    CHECK(f != NULL);
    if (!f) return;
    CHECK(fwrite(bytes, 1, size, f) == size);
    CHECK(fclose(f) == 0);
}

static void word_at(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* IDX images: the header as given, then size bytes that count up. */
static void put_images(const char *path, uint32_t magic, uint32_t count, uint32_t height, uint32_t width, size_t size)
{
    static unsigned char file[1 << 20];
    word_at(file, magic); word_at(file + 4, count); word_at(file + 8, height); word_at(file + 12, width);
    for (size_t i = 0; i < size; i++) file[16 + i] = (unsigned char)(i * 7);
    put(path, file, 16 + size);
}

static void put_labels(const char *path, uint32_t magic, uint32_t count, size_t size, int wrong_at)
{
    static unsigned char file[1 << 16];
    word_at(file, magic); word_at(file + 4, count);
    for (size_t i = 0; i < size; i++) file[8 + i] = (unsigned char)(i % 10);
    if (wrong_at >= 0) file[8 + wrong_at] = 10;
    put(path, file, 8 + size);
}

static const char *load(const char *images, const char *labels)
{
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_dataset d = gcp_dataset_idx(&arena, images, labels);
    return d.count ? "loaded" : error_of(&d);
}

static void digits(void)
{
    int seen[10] = { 0 }, brightest = 0;
    static const int expected[10] = { 178, 182, 177, 183, 181, 182, 181, 179, 174, 180 };
    gcp_dataset look = gcp_dataset_idx(NULL, DIGITS "images.idx3-ubyte", DIGITS "labels.idx1-ubyte", .brightest = 16);
    CHECK(look.count == 1797 && !look.images && !look.error[0] && look.bytes <= sizeof memory);
    arena = gcp_arena_from(memory + 1, look.bytes);
    gcp_dataset d = gcp_dataset_idx(&arena, DIGITS "images.idx3-ubyte", DIGITS "labels.idx1-ubyte", .brightest = 16);
    CHECK(d.images && d.labels);
    if (!d.images) return;
    CHECK_INT(d.count, ==, 1797);
    CHECK_INT(d.height * 100 + d.width * 10 + d.channels, ==, 881);
    for (int i = 0; i < d.count; i++) seen[d.labels[i]]++;
    for (int i = 0; i < d.count * 64; i++) if (d.images[i] > brightest) brightest = d.images[i];
    for (int i = 0; i < 10; i++) CHECK_INT(seen[i], ==, expected[i]);
    CHECK_INT(brightest, ==, 16);
    arena = gcp_arena_from(memory, look.bytes - 200);
    d = gcp_dataset_idx(&arena, DIGITS "images.idx3-ubyte", DIGITS "labels.idx1-ubyte");
    CHECK(strstr(error_of(&d), "digits-images.idx3-ubyte: the arena has no room for"));
}

static void images_damaged(void)
{
    put_labels("data-labels", 0x801, 20, 20, -1);
    put_images("data-images", 0x803, 20, 28, 28, 20 * 784);
    CHECK_TEXT(load("data-images", "data-labels"), "loaded");
    CHECK_TEXT(load("data-none", "data-labels"), "data-none: there is no such file");
    CHECK_TEXT(load("data-labels", "data-images"),
               "data-labels: offset 0: found 0x00000801 (IDX labels), expected 0x00000803 (IDX images)");
    CHECK_TEXT(load("data-images", "data-images"),
               "data-images: offset 0: found 0x00000803 (IDX images), expected 0x00000801 (IDX labels)");
    put("data-bad", "\x1f\x8b\x08\x00 and so on", 14);
    CHECK_TEXT(load("data-bad", "data-labels"),
               "data-bad: offset 0: found 0x1f8b0800 (a gzip file: unpack it first), expected 0x00000803 (IDX images)");
    put_images("data-bad", 0x0D03, 20, 28, 28, 20 * 784);
    CHECK_TEXT(load("data-bad", "data-labels"),
               "data-bad: offset 0: found 0x00000d03 (no IDX file of bytes), expected 0x00000803 (IDX images)");
    put("data-bad", "", 0);
    CHECK_TEXT(load("data-bad", "data-labels"),
               "data-bad: offset 0: found 0 bytes, expected a header of 16 (IDX images)");
    put("data-bad", "\0\0\x8\x3\0\0", 6);
    CHECK_TEXT(load("data-bad", "data-labels"),
               "data-bad: offset 0: found 6 bytes, expected a header of 16 (IDX images)");
    put_images("data-bad", 0x803, 20, 28, 28, 20 * 784 - 1);
    CHECK_TEXT(
        load("data-bad", "data-labels"),
        "data-bad: offset 15695: found the end of a truncated file of 15695 bytes, expected 15696 as its header says");
    put_images("data-bad", 0x803, 20, 28, 28, 20 * 784 + 3);
    CHECK_TEXT(load("data-bad", "data-labels"),
               "data-bad: offset 15696: found more data in a file of 15699 bytes, expected 15696 as its header says");
}

static void sizes_absurd(void)
{
    put_images("data-bad", 0x803, 0, 28, 28, 0);
    CHECK_TEXT(load("data-bad", "data-labels"), "data-bad: offset 4: found a count of 0, expected 1 to 2147483647");
    put_images("data-bad", 0x803, 0xFFFFFFFFu, 28, 28, 784);
    CHECK_TEXT(load("data-bad", "data-labels"),
               "data-bad: offset 4: found a count of 4294967295, expected 1 to 2147483647");
    put_images("data-bad", 0x803, 20, 0, 28, 784);
    CHECK_TEXT(load("data-bad", "data-labels"), "data-bad: offset 8: found a height of 0, expected 1 to 4096");
    put_images("data-bad", 0x803, 20, 28, 0x10000u, 784);
    CHECK_TEXT(load("data-bad", "data-labels"), "data-bad: offset 12: found a width of 65536, expected 1 to 4096");
    put_images("data-bad", 0x803, 0x7FFFFFFF, 4096, 4096, 100);      /* 2^55 bytes: seen before anything is allocated */
    CHECK_TEXT(load("data-bad", "data-labels"), "data-bad: offset 116: found the end of a truncated file of 116 bytes, "
                                                "expected 36028797002186768 as its header says");
}

static void labels_damaged(void)
{
    put_labels("data-bad", 0x801, 19, 19, -1);
    CHECK_TEXT(load("data-images", "data-bad"),
               "data-bad: offset 4: found 19 labels, expected 20 as data-images has images");
    put_labels("data-bad", 0x801, 20, 20, 13);
    CHECK_TEXT(load("data-images", "data-bad"), "data-bad: offset 21: found label 10, expected 0 to 9");
    put_labels("data-bad", 0x801, 20, 12, -1);
    CHECK_TEXT(load("data-images", "data-bad"),
               "data-bad: offset 20: found the end of a truncated file of 20 bytes, expected 28 as its header says");
}

/* CIFAR-10: record i has label i % 10 and, in plane c, pixel p, the value i + 80 c + p. */
static void put_cifar(const char *path, int count, long size, int wrong_at)
{
    static unsigned char file[64 * RECORD];
    for (int i = 0; i < count; i++) {
        unsigned char *r = file + i * RECORD;
        r[0] = (unsigned char)(i == wrong_at ? 200 : i % 10);
        for (int c = 0; c < 3; c++)
            for (int p = 0; p < 1024; p++) r[1 + c * 1024 + p] = (unsigned char)(i + 80 * c + p);
    }
    put(path, file, (size_t)size);
}

static const char *load_cifar(const char *first, const char *second, int *count)
{
    const char *paths[] = { first, second };
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_dataset d = gcp_dataset_cifar10(&arena, paths, second ? 2 : 1);
    if (!d.count) return error_of(&d);
    *count = d.count;
    for (int i = 0; i < 12; i++) CHECK_INT(d.labels[i], ==, i % 10);
    CHECK_INT(d.images[3072 * 5 + 3 * 7 + 2], ==, 5 + 80 * 2 + 7);   /* image 5, pixel 7, blue */
    return "loaded";
}

static void cifar(void)
{
    int count = 0;
    put_cifar("data-cifar", 24, 24L * RECORD, -1);
    CHECK_TEXT(load_cifar("data-cifar", "data-cifar", &count), "loaded");
    CHECK_INT(count, ==, 48);
    CHECK_TEXT(load_cifar("data-cifar", "data-none", &count), "data-none: there is no such file");
    put_cifar("data-bad", 3, 3L * RECORD - 1, -1);
    CHECK_TEXT(
        load_cifar("data-bad", NULL, &count),
        "data-bad: offset 6146: found 3072 bytes, expected a whole record of 3073: truncated, or not a CIFAR-10 file");
    CHECK(strstr(load_cifar("data-cifar", "data-bad", &count), "data-bad: offset 6146"));
    put_cifar("data-bad", 3, 3L * RECORD, 2);
    CHECK_TEXT(load_cifar("data-bad", NULL, &count), "data-bad: offset 6146: found label 200, expected 0 to 9");
    put("data-bad", "", 0);
    CHECK_TEXT(load_cifar("data-bad", NULL, &count),
               "data-bad: offset 0: found no data, expected records of 3073 bytes");
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_dataset d = gcp_dataset_cifar10(&arena, NULL, -1);
    CHECK_TEXT(error_of(&d), "no file: expected one or more");
}

/* A PGM or PPM image whose bytes count up from `from`. */
static void put_pnm(const char *path, const char *header, size_t size, int from)
{
    unsigned char file[256];
    size_t length = strlen(header);
    memcpy(file, header, length);
    for (size_t i = 0; i < size; i++) file[length + i] = (unsigned char)(from + (int)i);
    put(path, file, length + size);
}
static const char *load_folder(const char *path)
{
    gcp_dataset d = gcp_dataset_folder(NULL, path);
    if (d.error[0]) { arena = gcp_arena_from(memory, sizeof memory); return error_of(&d); }
    arena = gcp_arena_from(memory, d.bytes);
    d = gcp_dataset_folder(&arena, path);
    return d.count ? "loaded" : error_of(&d);
}
static void folders(void)
{
    fclose(table_open("test_data", "made/images/b", "notes.txt"));      /* folders and all */
    fclose(table_open("test_data", "made/images/a", ".hidden.ppm"));
    put_pnm("made/images/b/2.ppm", "P6\n2 1\n255\n", 6, 20);
    put_pnm("made/images/b/10.ppm", "P6 # a comment\n#another\n2\t1 255\n", 6, 10);
    put_pnm("made/images/a/x.ppm", "P6 2 1 255 ", 6, 30);
    put_pnm("made/images/top.ppm", "P6 9 9 255 ", 1, 0);                /* passed over: there are folders */
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_dataset d = gcp_dataset_folder(&arena, "made/images");
    CHECK_TEXT(d.error, "");
    CHECK(d.count == 3 && d.classes == 2 && d.height == 1 && d.width == 2 && d.channels == 3 && d.brightest == 255);
    if (d.count == 3) {
        CHECK(d.labels[0] == 0 && d.labels[1] == 1 && d.labels[2] == 1);
        CHECK(d.names && !strcmp(d.names[0], "a") && !strcmp(d.names[1], "b"));
        CHECK(d.images[0] == 30 && d.images[6] == 10 && d.images[17] == 25);
    }
    CHECK_TEXT(load_folder("made/images"), "loaded");
    CHECK_TEXT(load_folder("made/images/b"), "loaded");
    fclose(table_open("test_data", "made/upper", "notes.txt"));
    put_pnm("made/upper/1.PPM", "P6 2 1 255 ", 6, 30);
    CHECK_TEXT(load_folder("made/upper"), "loaded");
    CHECK_TEXT(load_folder("made/none"), "made/none: is no folder that opens");
    fclose(table_open("test_data", "made/empty", "x.csv"));
    CHECK_TEXT(load_folder("made/empty"), "made/empty: found no file .ppm, .pgm or .pnm");
}
/* Folders under which the ground moves: too many classes, an arena too small for names, listings that change, sizes
 * that lie. */
static int lists, lie_from;
static int fickle(void *context, const char *folder, void (*found)(void *arg, const char *name), void *arg)
{
    if (++lists >= lie_from) return lists % 2 ? 0 : 1;         /* cannot be opened; or is empty now */
    return gcp_stdio()->list(context, folder, found, arg);
}
static int64_t enormous(void *context, void *file) { (void)context; (void)file; return (int64_t)3073 << 31; }
static void folders_bad(void)
{
    gcp_files files = *gcp_stdio();
    gcp_dataset d = gcp_dataset_folder(NULL, "made/images", .classes = 1);
    CHECK_TEXT(error_of(&d), "made/images: found 2 folders, expected 1 classes at most");
    d = gcp_dataset_folder(NULL, "made/images");
    int refused = 0, loaded = 0;
    for (size_t size = 0; size <= d.bytes; size += 8) {
        arena = gcp_arena_from(memory, size);
        gcp_dataset part = gcp_dataset_folder(&arena, "made/images");
        CHECK(part.count || strstr(part.error, "the arena has no room"));
        refused += part.count == 0;
        loaded += part.count != 0;
    }
    CHECK(refused > 4 && loaded > 0);
    files.list = fickle;
    for (lie_from = 1; lie_from < 24; lie_from++) {
        lists = 0;
        arena = gcp_arena_from(memory, sizeof memory);
        gcp_dataset part = gcp_dataset_folder(&arena, "made/images", .files = &files);
        CHECK(lists < lie_from ? part.count == 3 : part.count == 0 && part.error[0]);
    }
    files = *gcp_stdio();
    files.size = enormous;
    const char *const paths[] = { "made/images/b/2.ppm" };
    d = gcp_dataset_cifar10(NULL, paths, 1, .files = &files);
    CHECK(d.count == 0 && strstr(d.error, "found 2147483648 records, expected 2147483647 at most in all files"));
}
static void images_bad(void)
{
    fclose(table_open("test_data", "made/bad", "x.csv"));
    static const char *const bad[][2] = {
        { "P3 1 1 255 ", "offset 0: expected P5 or P6: a binary PGM or PPM file" },
        { "P5 0 1 255 ", "offset 3: expected a width from 1 to 4096 and a space" },
        { "P5 1 99999999999 255 ", "offset 5: expected a height from 1 to 4096 and a space" },
        { "P5 1 1 256 ", "offset 7: expected the brightest value from 1 to 255 and a space" },
        { "P5 1 1 65535 ", "offset 7: expected the brightest value from 1 to 255 and a space" },
        { "P5 1 1 255", "offset 7: expected the brightest value from 1 to 255 and a space" },
        { "P5 1 1 255 ", "offset 11: found 0 bytes, expected 1 for one image" },
        { "P5 1 1 255 ab", "offset 11: found 2 bytes, expected 1 for one image" },
        { "P5 #", "offset 3: expected a width from 1 to 4096 and a space" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_pnm("made/bad/i.pgm", bad[i][0], 0, 0);
        snprintf(message, sizeof message, "made/bad/i.pgm: %s", bad[i][1]);
        char expected[200];
        snprintf(expected, sizeof expected, "%.190s", message);
        CHECK_TEXT(load_folder("made/bad"), expected);
    }
    put_pnm("made/bad/i.pgm", "P5 2 2 255 ", 4, 0);
    put_pnm("made/bad/j.pgm", "P5 2 1 255 ", 2, 0);
    CHECK(strstr(load_folder("made/bad"), "i.pgm: offset 0: found 2x2x1 up to 255, expected 1x2x1") ||
          strstr(message, "j.pgm: offset 0: found 1x2x1 up to 255, expected 2x2x1 up to 255 as in others"));
}

/* Batches: a permutation each epoch, empty images with label -1 past the end, crops and mirrors. */
static void batches(void)
{
    unsigned char pixels[5 * 4];
    int32_t labels[5] = { 0, 1, 2, 3, 4 };
    int order[5], again[5], sum = 0;
    float images[3 * 4];
    int32_t label[3];
    for (int i = 0; i < 20; i++) pixels[i] = (unsigned char)(10 * i);
    gcp_dataset d = { .images = pixels, .labels = labels, .count = 5, .height = 2, .width = 2, .channels = 1,
                      .classes = 5, .brightest = 2 };
    data_shuffle(order, 5, 7);
    data_shuffle(again, 5, 7);
    CHECK(!memcmp(order, again, sizeof order));
    for (int i = 0; i < 5; i++) sum |= 1 << order[i];
    CHECK_INT(sum, ==, 31);
    data_batch(&d, NULL, 3, 3, (augment) { 0, 0, 0 }, images, label);
    CHECK_INT(label[0] * 100 + label[1] * 10 + label[2], ==, 339);      /* 3, 4 and -1 */
    CHECK_NEAR(images[0], 60, 0);
    CHECK_NEAR(images[11], 0, 0);
    data_image(&d, 1, 0, 0, 1, images);
    CHECK_NEAR(images[0], 25, 0);
    data_image(&d, 1, 1, 0, 0, images);
    CHECK_NEAR(images[1], 35, 0);
    CHECK_NEAR(images[2], 0, 0);
    data_mix(&d, 3);
    for (int i = 0; i < 5; i++) CHECK_INT(pixels[4 * i], ==, 40 * labels[i]);
}

/* The scatter plot of the demo: titles of any length and names at its edges stay inside. */
static void pictures(void)
{
    FILE *table = table_open("test_data", "made/for/a table", "new.csv");       /* folders and all */
    CHECK(table && fclose(table) == 0 && (table = fopen("made/for/a table/new.csv", "r")) != NULL);
    if (table) fclose(table);
    static const char *const titles[] = {
        "short",
        "Peak memory against time of a step: 26-layer CNN, 64x64, batch 16; planned; line: any budget, dashed: bound"
    };
    static char svg[1 << 16];
    for (int t = 0; t < 2; t++) {
        const scatter_point points[] = { { 90, 1, "keep_all", 0 }, { 50, 3.8, "a point with a long name", 1 },
                                         { 110, 1.2, "to the right", 1 } };
        const scatter_group groups[] = { { "keep all", "black", 0 }, { "others, of several kinds", "#0b3a82", 2 },
                                         { "a third kind of them", "#0b3a82", 1 }, { "a fourth one", "#0b3a82", 3 } };
        const double x[] = { 50, 110 }, y[] = { 3, 1 };
        const scatter_line line = { x, y, 2, "no plan is faster", "stroke=\"black\"" };
        const scatter_plot plot = { titles[t], "bytes at the peak, MiB", "time, keep_all = 1; line: any budget", points,
                                    3, groups, 4, &line, 1 };
        FILE *f = fopen("scatter.svg", "w+");
        CHECK(f != NULL);
        if (!f) return;
        scatter_svg(f, &plot);
        rewind(f);
        svg[fread(svg, 1, sizeof svg - 1, f)] = 0;
        fclose(f);
        CHECK_INT(svg_texts_outside(svg), ==, 0);
    }
}

int main(void)
{
    digits();
    images_damaged();
    sizes_absurd();
    labels_damaged();
    cifar();
    folders();
    folders_bad();
    images_bad();
    batches();
    pictures();
    return check_done();
}
