/* Labelled images from files: IDX, CIFAR-10, folders of PGM and PPM. A header is believed only where the file's size
   agrees with it, before anything is taken from the arena. */

enum { GCPI_SIDE_MOST = 4096, GCPI_CIFAR_SIDE = 32, GCPI_CIFAR_RECORD = 1 + 3 * 32 * 32 };

/* What the readers share. arena NULL: they only look. */
typedef struct gcpi_image_reader {
    gcp_dataset d;
    gcp_arena *arena;
    gcpi_disk_file s;                       /* its errors go to d.error */
    gcp_dataset_opts o;
    ptrdiff_t used, scratch;             /* of the arena at first */
} gcpi_image_reader;

static void gcpi_reader_begin(gcpi_image_reader *m, gcp_arena *arena, const gcp_dataset_opts *o)
{
    memset(&m->d, 0, sizeof m->d);
    m->arena = arena; m->o = *o;
    m->used = arena ? arena->used : 0; m->scratch = arena ? arena->scratch : 0;
    m->d.classes = o->classes ? o->classes : 10;
    m->d.brightest = o->brightest ? o->brightest : 255;
}
/* The next file. */
static void gcpi_reader_file(gcpi_image_reader *m, const char *path, const char *call)
{
    m->s = gcpi_disk_of(m->o.files, path, m->o.at, call);
    m->s.text = m->d.error;
}
static gcp_dataset gcpi_reader_end(gcpi_image_reader *m)
{
    gcpi_disk_close(&m->s);
    if (m->arena) m->arena->scratch = m->scratch;
    if (!m->d.error[0]) return m->d;
    if (m->arena) m->arena->used = m->used;
    m->d.images = NULL; m->d.labels = NULL; m->d.names = NULL; m->d.count = 0;
    return m->d;
}

/* Takes the memory for d.count images; d.bytes is set. 0: no room, or an error. */
static int gcpi_reader_take(gcpi_image_reader *m)
{
    gcp_dataset *d = &m->d;
    const ptrdiff_t image = (ptrdiff_t)d->height * d->width * d->channels;
    const ptrdiff_t bytes = gcpi_product(image, d->count), labels = gcpi_product((ptrdiff_t)sizeof(int32_t), d->count);
    if (bytes < 0 || labels < 0 || bytes > PTRDIFF_MAX - labels - 256)
        return gcpi_wrong(&m->s, GCP_E_NOMEM, "more images than this machine can address");
    d->bytes = (size_t)bytes + (size_t)labels + 128;
    if (!m->arena) return 1;
    d->labels = (int32_t *)gcp_arena_push(m->arena, (ptrdiff_t)sizeof(int32_t), 64, d->count);
    d->images = d->labels ? (unsigned char *)gcp_arena_push(m->arena, bytes, 64, 1) : NULL;
    return d->images ? 1 : gcpi_wrong(&m->s, GCP_E_NOMEM, "the arena has no room for %llu bytes",
                                      (unsigned long long)d->bytes);
}

/* ---- IDX: big-endian words: 0x0800 + dimensions, then one size a dimension, then bytes ---- */

static uint32_t gcpi_idx_word(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
/* What a first word is, for people who mixed up their arguments. */
static const char *gcpi_idx_kind(uint32_t magic)
{
    return magic == 0x803          ? "IDX images"
           : magic == 0x801        ? "IDX labels"
           : magic >> 16 == 0x1f8b ? "a gzip file: unpack it first"
                                   : "no IDX file of bytes";
}
/* Opens an IDX file and reads its sizes, which must fill the file. */
static int gcpi_idx_open(gcpi_image_reader *m, const char *path, int dimensions, uint32_t *size)
{
    gcpi_disk_file *s = &m->s;
    static const char *const what[] = { "a count of", "a height of", "a width of" };
    unsigned char head[16];
    const uint32_t expected = 0x800u + (uint32_t)dimensions;
    uint64_t all = 4 + 4 * (uint64_t)dimensions, body = 1;
    gcpi_reader_file(m, path, "gcp_dataset_idx");
    if (!gcpi_disk_open(s)) return 0;
    size_t have = (size_t)GCPI_MIN(s->size, all);
    if (!gcpi_disk_read(s, head, have)) return 0;
    const uint32_t magic = have < 4 ? expected : gcpi_idx_word(head);
    if (magic != expected)
        return gcpi_wrong_at(s, 0, "found 0x%08x (%s), expected 0x%08x (%s)", (unsigned)magic,
                             gcpi_idx_kind(magic), (unsigned)expected, gcpi_idx_kind(expected));
    if (have < all)
        return gcpi_wrong_at(s, 0, "found %llu bytes, expected a header of %llu (%s)", (unsigned long long)have,
                             (unsigned long long)all, gcpi_idx_kind(expected));
    for (int i = 0; i < dimensions; i++) {
        const uint32_t most = i ? GCPI_SIDE_MOST : INT32_MAX;
        size[i] = gcpi_idx_word(head + 4 + 4 * i);
        if (size[i] < 1 || size[i] > most)
            return gcpi_wrong_at(s, 4 + 4 * i, "found %s %lu, expected 1 to %lu", what[i],
                                 (unsigned long)size[i], (unsigned long)most);
        body *= size[i];
    }
    all += body;
    if (s->size == all) return 1;
    return gcpi_wrong_at(s, (int64_t)GCPI_MIN(s->size, all), "found %s of %llu bytes, expected %llu as its header "
                         "says", s->size < all ? "the end of a truncated file" : "more data in a file",
                         (unsigned long long)s->size, (unsigned long long)all);
}

/* Reads a byte for each label. */
static int gcpi_labels_read(gcpi_image_reader *m)
{
    unsigned char some[1024];
    const int64_t at = (int64_t)m->s.offset;
    for (int first = 0, n; first < m->d.count; first += n) {
        n = GCPI_MIN(m->d.count - first, (int)sizeof some);
        if (!gcpi_disk_read(&m->s, some, (size_t)n)) return 0;
        for (int i = 0; i < n; i++) {
            if (some[i] >= m->d.classes)
                return gcpi_wrong_at(&m->s, at + first + i, "found label %d, expected 0 to %d", some[i],
                                     m->d.classes - 1);
            m->d.labels[first + i] = some[i];
        }
    }
    return 1;
}
static int gcpi_idx_read(gcpi_image_reader *m, const char *images, const char *labels)
{
    uint32_t size[3] = { 0, 0, 0 }, count = 0;
    gcp_dataset *d = &m->d;
    if (!gcpi_idx_open(m, images, 3, size)) return 0;
    d->count = (int)size[0]; d->height = (int)size[1]; d->width = (int)size[2]; d->channels = 1;
    if (!gcpi_reader_take(m)) return 0;
    if (d->images && !gcpi_disk_read(&m->s, d->images, (size_t)d->count * size[1] * size[2])) return 0;
    gcpi_disk_close(&m->s);
    if (!gcpi_idx_open(m, labels, 1, &count)) return 0;
    if (count != size[0])
        return gcpi_wrong_at(&m->s, 4, "found %lu labels, expected %lu as %s has images", (unsigned long)count,
                             (unsigned long)size[0], images);
    return !d->labels || gcpi_labels_read(m);
}
GCPI_DEF gcp_dataset gcp_dataset_idx_at(gcp_arena *arena, const char *images, const char *labels, gcp_dataset_opts o)
{
    gcpi_image_reader m;
    gcpi_reader_begin(&m, arena, &o);
    gcpi_idx_read(&m, images, labels);
    return gcpi_reader_end(&m);
}

/* ---- CIFAR-10: records of a label and three planes, red, green, blue ---- */

static int gcpi_cifar_record(gcpi_image_reader *m, int at)
{
    enum { PLANE = GCPI_CIFAR_SIDE * GCPI_CIFAR_SIDE };
    unsigned char record[GCPI_CIFAR_RECORD], *to = m->d.images + (size_t)at * 3 * PLANE;
    const int64_t offset = (int64_t)m->s.offset;
    if (!gcpi_disk_read(&m->s, record, sizeof record)) return 0;
    if (record[0] >= m->d.classes)
        return gcpi_wrong_at(&m->s, offset, "found label %d, expected 0 to %d", record[0], m->d.classes - 1);
    m->d.labels[at] = record[0];
    for (int p = 0; p < PLANE; p++)
        for (int c = 0; c < 3; c++) to[3 * p + c] = record[1 + c * PLANE + p];
    return 1;
}
/* Opens a file and says how many records it has; 0: an error. */
static int gcpi_cifar_open(gcpi_image_reader *m, const char *path, int *records)
{
    gcpi_disk_file *s = &m->s;
    gcpi_reader_file(m, path, "gcp_dataset_cifar10");
    if (!gcpi_disk_open(s)) return 0;
    const uint64_t odd = s->size % GCPI_CIFAR_RECORD, count = s->size / GCPI_CIFAR_RECORD;
    if (!s->size)
        return gcpi_wrong_at(s, 0, "found no data, expected records of %d bytes", GCPI_CIFAR_RECORD);
    if (odd)
        return gcpi_wrong_at(s, (int64_t)(s->size - odd), "found %llu bytes, expected a whole record of %d: "
                             "truncated, or not a CIFAR-10 file", (unsigned long long)odd, GCPI_CIFAR_RECORD);
    if (count > (uint64_t)(INT32_MAX - *records))
        return gcpi_wrong_at(s, 0, "found %llu records, expected %d at most in all files",
                             (unsigned long long)count, INT32_MAX);
    *records += (int)count;
    return 1;
}
static int gcpi_cifar_read(gcpi_image_reader *m, const char *const *paths, int files)
{
    gcp_dataset *d = &m->d;
    d->height = d->width = GCPI_CIFAR_SIDE; d->channels = 3;
    for (int i = 0; i < files; i++) {
        if (!gcpi_cifar_open(m, paths[i], &d->count)) return 0;
        gcpi_disk_close(&m->s);
    }
    if (files < 1) {
        gcpi_reader_file(m, "no file", "gcp_dataset_cifar10");
        return gcpi_wrong(&m->s, GCP_E_ARGUMENT, "expected one or more");
    }
    if (!gcpi_reader_take(m) || !d->images) return 1;
    for (int i = 0, at = 0, end = 0; i < files; i++) {
        if (!gcpi_cifar_open(m, paths[i], &end)) return 0;
        if (end > d->count) return gcpi_wrong(&m->s, GCP_E_CONTENTS, "grew while it was read");
        while (at < end) if (!gcpi_cifar_record(m, at++)) return 0;
        gcpi_disk_close(&m->s);
    }
    return 1;
}
GCPI_DEF gcp_dataset gcp_dataset_cifar10_at(gcp_arena *arena, const char *const *paths, int count, gcp_dataset_opts o)
{
    gcpi_image_reader m;
    gcpi_reader_begin(&m, arena, &o);
    gcpi_cifar_read(&m, paths, paths ? count : 0);
    return gcpi_reader_end(&m);
}

/* ---- PGM and PPM: "P5" or "P6", width, height, brightest, one space, bytes; # begins a comment ---- */

static int gcpi_pnm_byte(gcpi_disk_file *s)          /* -1: the end */
{
    unsigned char c;
    if (s->offset >= s->size) return -1;
    return gcpi_disk_read(s, &c, 1) ? c : -1;
}
/* The next number of the header, and the space after it. 0: there is none from 1 to most. */
static int gcpi_pnm_number(gcpi_disk_file *s, const char *what, int most)
{
    int c, value = 0, digits = 0;
    do {
        c = gcpi_pnm_byte(s);
        if (c == '#') while (c >= 0 && c != '\n') c = gcpi_pnm_byte(s);
    } while (c == ' ' || (c >= '\t' && c <= '\r'));
    const int64_t at = (int64_t)s->offset - 1;
    for (; c >= '0' && c <= '9' && value <= most; c = gcpi_pnm_byte(s), digits++) value = value * 10 + c - '0';
    const int space = c == ' ' || (c >= '\t' && c <= '\r');
    if (digits && space && value >= 1 && value <= most) return value;
    return gcpi_wrong_at(s, GCPI_MAX(at, 0), "expected %s from 1 to %d and a space", what, most);
}
/* Opens an image and reads its header. */
static int gcpi_pnm_open(gcpi_image_reader *m, const char *path, int *height, int *width, int *channels)
{
    gcpi_disk_file *s = &m->s;
    gcpi_reader_file(m, path, "gcp_dataset_folder");
    if (!gcpi_disk_open(s)) return 0;
    const int p = gcpi_pnm_byte(s), kind = gcpi_pnm_byte(s);
    if (p != 'P' || (kind != '5' && kind != '6'))
        return gcpi_wrong_at(s, 0, "expected P5 or P6: a binary PGM or PPM file");
    *channels = kind == '5' ? 1 : 3;
    if ((*width = gcpi_pnm_number(s, "a width", GCPI_SIDE_MOST)) == 0) return 0;
    if ((*height = gcpi_pnm_number(s, "a height", GCPI_SIDE_MOST)) == 0) return 0;
    if ((m->d.brightest = gcpi_pnm_number(s, "the brightest value", 255)) == 0) return 0;
    const uint64_t body = (uint64_t)*width * (uint64_t)*height * (uint64_t)*channels;
    if (s->size - s->offset == body) return 1;
    return gcpi_wrong_at(s, (int64_t)s->offset, "found %llu bytes, expected %llu for one image",
                         (unsigned long long)(s->size - s->offset), (unsigned long long)body);
}

/* ---- a folder: its names are counted while they are listed, then kept in scratch, folder by folder ---- */

static int gcpi_is_image(const char *name)
{
    const char *dot = strrchr(name, '.');
    char end[4];
    if (!dot || strlen(dot) != 4) return 0;
    for (int i = 0; i < 4; i++) end[i] = dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? (char)(dot[1 + i] + 32) : dot[1 + i];
    return !strcmp(end, "ppm") || !strcmp(end, "pgm") || !strcmp(end, "pnm");
}
/* 0: an error: the path is too long. */
static int gcpi_path_join(gcpi_disk_file *s, char *path, const char *folder, const char *name)
{
    const size_t first = strlen(folder), rest = strlen(name);
    if (first + rest + 2 > GCPI_PATH) return gcpi_wrong(s, GCP_E_ARGUMENT, "%.100s: the path is too long", name);
    memcpy(path, folder, first);
    path[first] = '/';
    memcpy(path + first + 1, name, rest + 1);
    return 1;
}

/* What is in a folder. inside: it is a class's; look: opens the first image. names: scratch for all names, at most. */
typedef struct gcpi_tally {
    gcpi_image_reader *m;
    const char *folder;
    int inside, look, images, folders, deeper;     /* deeper: images of the folders */
    size_t names;
} gcpi_tally;

static int gcpi_tally_of(gcpi_tally *t, gcpi_image_reader *m, const char *folder, int inside, int look);
static void gcpi_tally_name(void *arg, const char *name)
{
    gcpi_tally *t = (gcpi_tally *)arg, in;
    char path[GCPI_PATH];
    gcp_dataset *d = &t->m->d;
    if (name[0] == '.' || t->m->s.failed || !gcpi_path_join(&t->m->s, path, t->folder, name)) return;
    t->names += strlen(name) + 64;
    if (gcpi_is_image(name)) {
        if (t->images++ || !t->look || d->height) return;
        gcpi_pnm_open(t->m, path, &d->height, &d->width, &d->channels);
        gcpi_disk_close(&t->m->s);
    } else if (!t->inside) {
        const int is = gcpi_tally_of(&in, t->m, path, 1, t->look > 1);
        if (!is) {
            gcpi_reader_file(t->m, path, "gcp_dataset_folder");
            gcpi_wrong(&t->m->s, GCP_E_FILE, "cannot be opened");
        }
        if (is <= 0) return;
        t->folders++;
        t->deeper += GCPI_MIN(in.images, INT32_MAX - t->deeper);
        t->names += in.names;
    }
}
/* look: 1: this folder's images; 2: those of the folders in it. 0: it does not open; -1: it is no folder. */
static int gcpi_tally_of(gcpi_tally *t, gcpi_image_reader *m, const char *folder, int inside, int look)
{
    const gcp_files *f = m->s.files;
    memset(t, 0, sizeof *t);
    t->m = m; t->folder = folder; t->inside = inside; t->look = look;
    return f->list(f->context, folder, gcpi_tally_name, t);
}

/* Names of a folder, in order. images: those of images; else the others. */
typedef struct gcpi_listing { gcp_arena *arena; char **names; int count, capacity, images, full; } gcpi_listing;

static void gcpi_listing_add(void *arg, const char *name)
{
    gcpi_listing *l = (gcpi_listing *)arg;
    const size_t size = strlen(name) + 1;
    if (name[0] == '.' || l->images != gcpi_is_image(name) || l->count == l->capacity) return;
    char *copy = GCPI_SCRATCH(l->arena, char, size);
    if (copy) memcpy(l->names[l->count++] = copy, name, size);
    l->full |= !copy;
}
static int gcpi_name_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int gcpi_listing_of(gcpi_image_reader *m, const char *folder, int images, int capacity, gcpi_listing *l)
{
    const gcp_files *f = m->s.files;
    memset(l, 0, sizeof *l);
    l->arena = m->arena; l->images = images; l->capacity = capacity;
    l->names = GCPI_SCRATCH(m->arena, char *, capacity + 1);
    if (!l->names || f->list(f->context, folder, gcpi_listing_add, l) <= 0 || l->full)
        return gcpi_wrong(&m->s, GCP_E_NOMEM, "the arena has no room for the names in it");
    qsort(l->names, (size_t)l->count, sizeof *l->names, gcpi_name_order);
    return 1;
}

/* Reads image number at. */
static int gcpi_folder_image(gcpi_image_reader *m, const char *path, int at, int label)
{
    gcp_dataset *d = &m->d;
    int height, width, channels;
    const int brightest = d->brightest;
    const size_t bytes = (size_t)d->height * (size_t)d->width * (size_t)d->channels;
    if (!gcpi_pnm_open(m, path, &height, &width, &channels)) return 0;
    if (height != d->height || width != d->width || channels != d->channels || d->brightest != brightest)
        return gcpi_wrong_at(&m->s, 0, "found %dx%dx%d up to %d, expected %dx%dx%d up to %d as in others",
                             height, width, channels, d->brightest, d->height, d->width, d->channels, brightest);
    if (!gcpi_disk_read(&m->s, d->images + (size_t)at * bytes, bytes)) return 0;
    gcpi_disk_close(&m->s);
    d->labels[at] = label;
    return 1;
}
/* Reads the images of one class from number *at on. */
static int gcpi_folder_class(gcpi_image_reader *m, const char *folder, int count, int *at, int label)
{
    char path[GCPI_PATH];
    gcpi_listing l;
    const ptrdiff_t scratch = m->arena->scratch;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (!gcpi_listing_of(m, folder, 1, count, &l)) return 0;
    for (int i = 0; i < l.count; i++) {
        gcpi_reader_file(m, folder, "gcp_dataset_folder");
        if (*at == m->d.count) return gcpi_wrong(&m->s, GCP_E_CONTENTS, "grew while it was read");
        if (!gcpi_path_join(&m->s, path, folder, l.names[i]) || !gcpi_folder_image(m, path, (*at)++, label)) return 0;
    }
    m->arena->scratch = scratch;
    return 1;
}
static int gcpi_folder_images(gcpi_image_reader *m, const char *folder, const gcpi_tally *all)
{
    gcpi_listing l;
    gcpi_tally in;
    char path[GCPI_PATH];
    int at = 0, label = 0;
    if (!all->folders) return gcpi_folder_class(m, folder, all->images, &at, 0);
    if (!gcpi_listing_of(m, folder, 0, (int)(all->names / 64), &l)) return 0;
    char **names = GCPI_NEW(m->arena, char *, m->d.classes);
    for (int i = 0; i < l.count && names; i++) {
        if (!gcpi_path_join(&m->s, path, folder, l.names[i])) return 0;
        if (gcpi_tally_of(&in, m, path, 1, 0) <= 0 || label == m->d.classes) continue;
        const size_t size = strlen(l.names[i]) + 1;
        if ((names[label] = (char *)gcp_arena_push(m->arena, 1, 1, (ptrdiff_t)size)) == NULL) break;
        memcpy(names[label], l.names[i], size);
        if (!gcpi_folder_class(m, path, in.images, &at, label++)) return 0;
    }
    m->d.names = (const char *const *)names;
    if (at == m->d.count && label == m->d.classes) return 1;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (!names || (label < m->d.classes && !names[label]))
        return gcpi_wrong(&m->s, GCP_E_NOMEM, "the arena has no room for the names of its classes");
    return gcpi_wrong(&m->s, GCP_E_CONTENTS, "shrank while it was read");
}
static int gcpi_folder_read(gcpi_image_reader *m, const char *folder)
{
    gcp_dataset *d = &m->d;
    gcpi_tally all, first;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (gcpi_tally_of(&all, m, m->s.path, 0, 0) <= 0) return gcpi_wrong(&m->s, GCP_E_FILE, "is no folder that opens");
    d->count = all.folders ? all.deeper : all.images;
    d->classes = all.folders ? all.folders : 1;
    if (!d->count) return gcpi_wrong(&m->s, GCP_E_CONTENTS, "found no file .ppm, .pgm or .pnm");
    if (d->classes > (m->o.classes ? m->o.classes : 65536))
        return gcpi_wrong(&m->s, GCP_E_CONTENTS, "found %d folders, expected %d classes at most", d->classes,
                          m->o.classes ? m->o.classes : 65536);
    if (m->s.failed || gcpi_tally_of(&first, m, folder, 0, all.folders ? 2 : 1) <= 0 || m->s.failed) return 0;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (!gcpi_reader_take(m)) return 0;
    d->bytes += 2 * all.names + 64;
    return !m->arena || gcpi_folder_images(m, folder, &all);
}
GCPI_DEF gcp_dataset gcp_dataset_folder_at(gcp_arena *arena, const char *folder, gcp_dataset_opts o)
{
    gcpi_image_reader m;
    gcpi_reader_begin(&m, arena, &o);
    gcpi_folder_read(&m, folder);
    return gcpi_reader_end(&m);
}
