/* Random convolutions and matrix products on every instruction set of this machine: each value within 1e-6 of the sum
   of the absolute products, computed in double; the same bits for 1, 2, 3 and 4 threads, whichever worker takes which
   task and when; nothing written outside what is promised, the scratch that was asked for included. With operands of
   bfloat16 the bits of the same call on floats of these values, rounded. products_tiles is this with Winograd's tiles
   for small convolutions, too: their errors are within 1e-6 of the largest of these sums.
   Usage: test_products [shapes] */
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include "support/check.h"
#include <stdlib.h>
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FENCED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FENCED
#endif
#ifdef FENCED
#include <sanitizer/asan_interface.h>
#endif

enum { TILES = GCPI_WINOGRAD_LEAST == 1, TERMS = 1 << 21, VALUES = 1 << 18, GUARD = 64, THREADS = 4 };

static uint64_t state = 88172645463325252ull;
static int below(int n) { return (int)gcpi_below(&state, (uint32_t)n); }
static int between(int low, int high) { return high > low ? low + below(high - low + 1) : low; }
static gcp_real value(void) { return (gcp_real)(below(2001) - 1000) / 997; }

/* Tasks in a random order, each by a random worker: what threads may do, and more. */
static void shuffled(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    int *order = malloc((size_t)tasks * sizeof *order), threads = *(const int *)context;
    for (int i = 0; i < tasks; i++) {
        int at = below(i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int i = 0; i < tasks; i++) task(arg, order[i], below(threads));
    free(order);
}

static int over_taps; /* convolutions as sums over taps alone */
static gcpi_par par_of(int *threads, int isa)
{
    gcpi_par par = { threads, *threads, shuffled, isa, 0, 0, over_taps };
    return par;
}
static gcpi_par halves_par_of(int *threads, int isa)
{
    gcpi_par par = { threads, *threads, shuffled, isa, 1, isa == GCP_ISA_AVX512_BF16, 0 };
    return par;
}

/* ---- A buffer between guards ---- */

typedef struct buffer { gcp_real *data; size_t count; } buffer;
static const gcp_real guard = (gcp_real)12345.5;

static buffer buffer_of(size_t count)
{
    buffer b = { NULL, count };
    gcp_real *all = aligned_alloc(64, gcpi_round((count + 2 * GUARD) * sizeof *all, 64));
    if (!all) exit(1);
    for (size_t i = 0; i < count + 2 * GUARD; i++) all[i] = guard;
    b.data = all + GUARD;
    return b;
}

static int guarded(buffer b)
{
    int same = 1;
    for (int i = 0; i < GUARD; i++) same &= b.data[-1 - i] == guard && b.data[b.count + (size_t)i] == guard;
    return same;
}

/* Under the address sanitizer the guards may not even be read while a kernel runs. */
static void fence(buffer b, int up)
{
#ifdef FENCED
    (up ? __asan_poison_memory_region : __asan_unpoison_memory_region)(b.data + b.count, GUARD * sizeof *b.data);
    (up ? __asan_poison_memory_region : __asan_unpoison_memory_region)(b.data - GUARD, GUARD * sizeof *b.data);
#else
    (void)b; (void)up;
#endif
}
static void release(buffer b) { free(b.data - GUARD); }

/* ---- Convolutions: index tuples of all terms, forward's view of them ---- */

/* of a result's elements: their values, and the sums of absolute products */
typedef struct sums { double *sum, *size; } sums;

static void add_term(sums s, size_t at, gcp_real a, gcp_real b)
{
    s.sum[at] += (double)a * (double)b;
    s.size[at] += fabs((double)a * (double)b);
}

/* Elements of x, w and y: dense indices, as the sums have them. */
static void conv_terms(const gcpi_conv *c, int pass, const gcp_real *x, const gcp_real *w, const gcp_real *y, sums s)
{
    int ci = c->ci / c->groups, co = c->co / c->groups;
    for (int b = 0; b < c->n; b++)
        for (int oy = 0; oy < c->ho; oy++)
            for (int ox = 0; ox < c->wo; ox++)
                for (int ky = 0; ky < c->kh; ky++)
                    for (int kx = 0; kx < c->kw; kx++) {
                        int iy = oy * c->sh - c->pt + ky * c->dh, ix = ox * c->sw - c->pl + kx * c->dw;
                        if (iy < 0 || iy >= c->h || ix < 0 || ix >= c->w) continue;
                        size_t in = ((size_t)b * (size_t)c->h + (size_t)iy) * (size_t)c->w + (size_t)ix,
                               out = ((size_t)b * (size_t)c->ho + (size_t)oy) * (size_t)c->wo + (size_t)ox;
                        for (int o = 0; o < c->co; o++)
                            for (int i = 0; i < ci; i++) {
                                size_t xi = in * (size_t)c->ci + (size_t)(o / co * ci + i),
                                       yi = out * (size_t)c->co + (size_t)o;
                                size_t wi = (((size_t)o * (size_t)c->kh + (size_t)ky) * (size_t)c->kw + (size_t)kx) *
                                                (size_t)ci +
                                            (size_t)i;
                                gcp_real xv = x[in * (size_t)c->xpitch + (size_t)(o / co * ci + i)],
                                         yv = y[out * (size_t)c->ypitch + (size_t)o];
                                if (pass == GCPI_FORWARD) add_term(s, yi, xv, w[wi]);
                                else if (pass == GCPI_BACKWARD_DATA) add_term(s, xi, yv, w[wi]);
                                else add_term(s, wi, xv, yv);
                            }
                    }
}

static gcpi_conv random_conv(void)
{
    for (;;) {
        static const int channels[] = { 1, 2, 3, 5, 8, 10, 12, 16, 17, 20, 32, 40, 48, 64, 70, 96, 130 };
        gcpi_conv c = { .groups = 1 };
        /* one by one: the order within an initialiser is the compiler's */
        c.n = between(1, 3), c.h = between(1, 24), c.w = between(1, 40);
        c.ci = channels[below(17)], c.co = channels[below(17)];
        c.kh = between(1, 5), c.kw = between(1, 5), c.sh = between(1, 3), c.sw = between(1, 3);
        c.pt = between(0, 3), c.pl = between(0, 3), c.dh = between(1, 2), c.dw = between(1, 2);
        if (below(4) == 0) c.kh = between(1, 9), c.sh = between(1, 7), c.pt = between(0, 8), c.dh = between(1, 4);
        if (below(4) == 0) c.kw = between(1, 9), c.sw = between(1, 7), c.pl = between(0, 8), c.dw = between(1, 4);
        int kind = below(5), pb = between(0, 3), pr = between(0, 3);
        if (kind == 0) c.co = c.groups = c.ci;
        if (kind == 1) c.groups = c.ci % 4 ? 1 : 4, c.co = (c.co + 3) / 4 * 4;
        if (kind == 2) c.kh = c.kw = 1, c.pt = c.pl = pb = pr = 0;
        if (TILES && kind > 2) {
            c.kh = c.kw = 3, c.sh = c.sw = c.dh = c.dw = 1;
            c.ci = between(8, 110), c.co = between(8, 110);
            c.pt = between(0, 1), c.pl = between(0, 1);
        }
        c.ho = (c.h + c.pt + pb - (c.kh - 1) * c.dh - 1) / c.sh + 1;
        c.wo = (c.w + c.pl + pr - (c.kw - 1) * c.dw - 1) / c.sw + 1;
        if (c.h + c.pt + pb < (c.kh - 1) * c.dh + 1 || c.w + c.pl + pr < (c.kw - 1) * c.dw + 1) continue;
        c.xpitch = c.ci + (below(3) ? 0 : between(1, 19));
        c.ypitch = c.co + (below(3) ? 0 : between(1, 19));
        double terms = (double)c.n * c.ho * c.wo * c.co * (c.ci / c.groups) * c.kh * c.kw;
        if (terms <= (TILES ? 32 * TERMS : TERMS) && c.n * c.h * c.w * c.xpitch <= VALUES &&
            c.n * c.ho * c.wo * c.ypitch <= VALUES)
            return c;
    }
}

typedef struct operands { buffer x, w, y, bias; } operands;

static void conv_run(const gcpi_conv *c, int pass, const operands *o, int accumulate, int threads, int isa)
{
    gcpi_conv dense = *c;
    gcpi_par par = par_of(&threads, isa);
    dense.xpitch = c->ci, dense.ypitch = c->co;        /* a plan asks before it knows pitches */
    size_t bytes = gcpi_conv_scratch(&dense, pass, &par);
    buffer scratch = buffer_of((bytes + sizeof(gcp_real) - 1) / sizeof(gcp_real));
    const buffer all[] = { scratch, o->x, o->w, o->y };
    for (int i = 0; i < 4; i++) fence(all[i], 1);
    if (pass == GCPI_FORWARD)
        gcpi_conv_forward(c, gcpi_reals(o->x.data), o->w.data, o->bias.count ? o->bias.data : NULL,
                          gcpi_reals(o->y.data), accumulate, NULL, scratch.data, &par);
    else if (pass == GCPI_BACKWARD_DATA)
        gcpi_conv_backward_data(c, gcpi_reals(o->y.data), o->w.data, NULL, gcpi_reals(o->x.data), accumulate,
                                scratch.data, &par);
    else
        gcpi_conv_backward_weights(c, gcpi_reals(o->x.data), gcpi_reals(o->y.data), o->w.data, accumulate, scratch.data,
                                   &par);
    for (int i = 0; i < 4; i++) fence(all[i], 0);
    CHECK(guarded(scratch) && guarded(o->x) && guarded(o->w) && guarded(o->y));
    release(scratch);
}

/* A pass with Winograd's tiles: a value's error is of what its tile sums, which is bounded by the largest. */
static int tiled[3];
static void level(const gcpi_conv *c, int pass, int isa, sums s, size_t count)
{
    int threads = 1;
    const gcpi_par par = par_of(&threads, isa);
    double most = 0;
    if (!(gcpi_conv_tiles(c, pass, &par) > 0)) return;
    for (size_t i = 0; i < count; i++) most = s.size[i] > most ? s.size[i] : most;
    for (size_t i = 0; i < count; i++) s.size[i] = most;
    tiled[pass]++;
}

/* The worst error of a result, as a multiple of what is allowed; `before`: what it was added to, `bias` by channel, or
   NULL. Between pixels nothing changes. */
static double worst(const gcp_real *result, const gcp_real *before, size_t pixels, int channels, ptrdiff_t pitch,
                    int accumulate, const gcp_real *bias, sums s)
{
    double most = 0;
    for (size_t p = 0; p < pixels; p++)
        for (ptrdiff_t c = 0; c < pitch; c++) {
            size_t at = p * (size_t)pitch + (size_t)c, i = p * (size_t)channels + (size_t)c;
            if (c >= channels) { if (!(result[at] == before[at])) return 1e9; continue; }
            double start = (accumulate ? (double)before[at] : 0) + (bias ? (double)bias[c] : 0);
            double error = fabs((double)result[at] - (s.sum[i] + start)) / (1e-6 * (s.size[i] + fabs(start)) + 1e-30);
            if (!(error <= most)) most = error;
        }
    return most;
}

static buffer copy_of(buffer b)
{
    buffer c = buffer_of(b.count);
    memcpy(c.data, b.data, b.count * sizeof *c.data);
    return c;
}

static buffer random_buffer(size_t count)
{
    buffer b = buffer_of(count);
    for (size_t i = 0; i < count; i++) b.data[i] = value();
    return b;
}

static operands operands_of(const gcpi_conv *c, int bias)
{
    operands o;
    o.x = random_buffer((size_t)(c->n * c->h * c->w * c->xpitch));
    o.w = random_buffer((size_t)(c->co * c->kh * c->kw * (c->ci / c->groups)));
    o.y = random_buffer((size_t)(c->n * c->ho * c->wo * c->ypitch));
    o.bias = random_buffer(bias ? (size_t)c->co : 0);
    return o;
}

static void operands_free(const operands *o) { release(o->x); release(o->w); release(o->y); release(o->bias); }

static int same_bits(buffer a, buffer b) { return memcmp(a.data, b.data, a.count * sizeof *a.data) == 0; }

static void conv_pass(const gcpi_conv *c, int pass, const operands *o, int isa)
{
    buffer *out = (buffer *)(uintptr_t)(pass == GCPI_FORWARD         ? &o->y
                                        : pass == GCPI_BACKWARD_DATA ? &o->x
                                                                     : &o->w),
           before = copy_of(*out), first;
    size_t count = (size_t)(pass == GCPI_FORWARD         ? c->n * c->ho * c->wo * c->co
                            : pass == GCPI_BACKWARD_DATA ? c->n * c->h * c->w * c->ci
                                                         : (int)o->w.count);
    int channels = pass == GCPI_FORWARD ? c->co : pass == GCPI_BACKWARD_DATA ? c->ci : 1, accumulate = below(2);
    ptrdiff_t pitch = pass == GCPI_FORWARD ? c->ypitch : pass == GCPI_BACKWARD_DATA ? c->xpitch : 1;
    if (pass == GCPI_FORWARD && o->bias.count) accumulate = 0;     /* a bias is what y starts from */
    sums s = { calloc(count + 1, sizeof(double)), calloc(count + 1, sizeof(double)) };
    conv_terms(c, pass, o->x.data, o->w.data, o->y.data, s);
    level(c, pass, isa, s, count);
    conv_run(c, pass, o, accumulate, 1, isa);
    double error = worst(out->data, before.data, count / (size_t)channels, channels, pitch, accumulate,
                         pass == GCPI_FORWARD && o->bias.count ? o->bias.data : NULL, s);
    CHECK_NEAR(error, 0, 1);
    if (error > 1 && check_shown())
        fprintf(stderr,
                "  n %d, %dx%dx%d (%td) to %dx%dx%d (%td), kernel %dx%d, stride %d %d, pad %d %d, dilation %d %d, "
                "groups %d, pass %d, isa %d, accumulate %d\n",
                c->n, c->h, c->w, c->ci, c->xpitch, c->ho, c->wo, c->co, c->ypitch, c->kh, c->kw, c->sh, c->sw, c->pt,
                c->pl, c->dh, c->dw, c->groups, pass, isa, accumulate);
    first = copy_of(*out);
    for (int threads = 2; threads <= THREADS; threads++) {
        memcpy(out->data, before.data, before.count * sizeof *before.data);
        conv_run(c, pass, o, accumulate, threads, isa);
        CHECK(same_bits(*out, first));
    }
    memcpy(out->data, before.data, before.count * sizeof *before.data);
    release(before); release(first);
    free(s.sum); free(s.size);
}

/* ---- halves ---- */

/* A buffer's values as halves between guards, or as floats: an operand may be either. half: -1 for one of them. */
static buffer halves_of(buffer b, int half, gcpi_array *d)
{
    d->half = half < 0 ? below(2) : half;
    if (!d->half) { buffer same = copy_of(b); d->at = same.data; return same; }
    buffer h = buffer_of((b.count + 1) / 2);
    gcpi_half *at = (gcpi_half *)(void *)h.data;
    for (size_t i = 0; i < b.count; i++) at[i] = gcpi_half_of(b.data[i]);
    d->at = at;
    return h;
}
/* Whether a result of halves, or floats, is that of floats, rounded. Weights (rounds 0) are not. */
static int rounded_same(gcpi_array d, buffer floats, int rounds)
{
    for (size_t i = 0; i < floats.count; i++) {
        const gcp_real wanted = rounds && d.half ? gcpi_half_rounded(floats.data[i]) : floats.data[i],
                       found = d.half ? gcpi_half_value(((const gcpi_half *)d.at)[i]) : ((const gcp_real *)d.at)[i];
        if (memcmp(&wanted, &found, sizeof found)) return 0;
    }
    return 1;
}

static void conv_pass_of_halves(const gcpi_conv *c, int pass, gcpi_array x, buffer w, buffer bias, gcpi_array y,
                                int accumulate, int threads, int isa)
{
    gcpi_conv dense = *c;
    gcpi_par par = halves_par_of(&threads, isa);
    dense.xpitch = c->ci, dense.ypitch = c->co;
    buffer scratch = buffer_of((gcpi_conv_scratch(&dense, pass, &par) + sizeof(gcp_real) - 1) / sizeof(gcp_real));
    fence(scratch, 1);
    if (pass == GCPI_FORWARD)
        gcpi_conv_forward(c, x, w.data, bias.count ? bias.data : NULL, y, accumulate, NULL, scratch.data, &par);
    else if (pass == GCPI_BACKWARD_DATA)
        gcpi_conv_backward_data(c, y, w.data, NULL, x, accumulate, scratch.data, &par);
    else gcpi_conv_backward_weights(c, x, y, w.data, accumulate, scratch.data, &par);
    fence(scratch, 0);
    CHECK(guarded(scratch));
    release(scratch);
}

/* Whether floats take planes or tiles, which sum in another order, where duos do not. */
static int apart_of(const gcpi_conv *c, int pass, int isa)
{
    int threads = 1, found = 0, back = pass == GCPI_BACKWARD_DATA;
    const gcpi_par par = par_of(&threads, isa);
    for (int y = 0; y < (back ? gcpi_min(c->sh, c->h) : 1) && !gcpi_conv_is_depthwise(c); y++)
        for (int x = 0; x < (back ? gcpi_min(c->sw, c->w) : 1); x++) {
            gcpi_gather g = back ? gcpi_conv_phase(c, y, x) : gcpi_conv_gather(c);
            gcpi_gather_plan(&g, (back ? c->ci : c->co) / c->groups, &par);
            found |= g.planar || g.winograd;
        }
    return found;
}

/* Gradients of weights from duos: in another order than from floats, but in one, whatever the threads. Twice as many
   terms are summed in a row, with twice the error. */
static int weights_near(const gcpi_conv *c, const operands *o, gcpi_array x, gcpi_array y, buffer before, buffer dw,
                        int accumulate, int isa)
{
    sums s = { calloc(dw.count + 1, sizeof(double)), calloc(dw.count + 1, sizeof(double)) };
    buffer again = copy_of(before);
    conv_terms(c, GCPI_BACKWARD_WEIGHTS, o->x.data, o->w.data, o->y.data, s);
    level(c, GCPI_BACKWARD_WEIGHTS, isa, s, dw.count);
    conv_pass_of_halves(c, GCPI_BACKWARD_WEIGHTS, x, again, o->bias, y, accumulate, THREADS, isa);
    const int near = same_bits(again, dw) && worst(dw.data, before.data, dw.count, 1, 1, accumulate, NULL, s) <= 2;
    release(again);
    free(s.sum); free(s.size);
    return near;
}

/* The same pass on halves by any number of threads. x and y of o are rounded. Where duos are multiplied weights are, by
   the pass; of floats, before it. */
static void conv_halves(const gcpi_conv *c, int pass, const operands *o, int isa)
{
    int threads = between(1, THREADS), accumulate = pass == GCPI_FORWARD && o->bias.count ? 0 : below(2),
        duos = isa == GCP_ISA_AVX512_BF16, weights = pass == GCPI_BACKWARD_WEIGHTS;
    const gcpi_halves *h = gcpi_halves_of(isa);
    if (sizeof(gcp_real) != sizeof(float)) return;
    h->settle(o->x.data, (ptrdiff_t)o->x.count);
    h->settle(o->y.data, (ptrdiff_t)o->y.count);
    gcpi_array x, y;
    buffer hx = halves_of(o->x, -1, &x), hy = halves_of(o->y, -1, &y), dw = copy_of(o->w), before = copy_of(o->w);
    if (duos && !weights && !gcpi_conv_is_depthwise(c)) h->settle(o->w.data, (ptrdiff_t)o->w.count);
    conv_run(c, pass, o, accumulate, 1, isa);
    const buffer all[] = { hx, hy, dw };
    for (int i = 0; i < 3; i++) fence(all[i], 1);
    conv_pass_of_halves(c, pass, x, dw, o->bias, y, accumulate, threads, isa);
    for (int i = 0; i < 3; i++) fence(all[i], 0);
    CHECK(guarded(hx) && guarded(hy) && guarded(dw));
    const int apart = duos && !weights && apart_of(c, pass, isa),
              same = (apart || (rounded_same(x, o->x, 1) && rounded_same(y, o->y, 1))) &&
                     (!weights ? same_bits(dw, before)
                      : duos   ? weights_near(c, o, x, y, before, dw, accumulate, isa)
                               : same_bits(dw, o->w));
    CHECK(same);
    if (!same && check_shown())
        fprintf(stderr, "  n %d, %dx%dx%d to %dx%dx%d, kernel %dx%d, stride %d %d, pad %d %d, dilation %d %d, "
                "groups %d, pass %d, isa %d, accumulate %d, threads %d\n", c->n, c->h, c->w, c->ci, c->ho, c->wo, c->co,
                c->kh, c->kw, c->sh, c->sw, c->pt, c->pl, c->dh, c->dw, c->groups, pass, isa, accumulate, threads);
    release(hx); release(hy); release(dw); release(before);
}

static void convolutions(int shapes)
{
    for (int i = 0; i < shapes; i++) {
        gcpi_conv c = random_conv();
        operands o = operands_of(&c, below(2));
        for (int pass = 0; pass < 3; pass++) conv_pass(&c, pass, &o, 1 + i % gcpi_isa_best());
        for (int pass = 0; pass < 3; pass++) conv_halves(&c, pass, &o, 1 + i % gcpi_isa_best());
        operands_free(&o);
    }
}

static void on_every_isa(const gcpi_conv *c)
{
    for (int isa = GCP_ISA_SCALAR; isa <= gcpi_isa_best(); isa++) {
        operands o = operands_of(c, 0);
        for (int pass = 0; pass < 3; pass++) conv_pass(c, pass, &o, isa);
        for (int pass = 0; pass < 3; pass++) conv_halves(c, pass, &o, isa);
        operands_free(&o);
    }
}

/* The root of the mean square of a pass's errors, over that of its results, of values that are as if normally
   distributed; of x behind a rectifier. */
static gcp_real normal(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += below(1 << 20) / (double)(1 << 20);
    return (gcp_real)sum;
}
static double pass_error(const gcpi_conv *c, int pass, const operands *o, sums s)
{
    const buffer out = pass == GCPI_FORWARD ? o->y : pass == GCPI_BACKWARD_DATA ? o->x : o->w, before = copy_of(out);
    double errors = 0, squares = 0;
    conv_run(c, pass, o, 0, 1, gcpi_isa_best());
    for (size_t i = 0; i < out.count; i++)
        errors += pow((double)out.data[i] - s.sum[i], 2), squares += s.sum[i] * s.sum[i];
    memcpy(out.data, before.data, out.count * sizeof *out.data);
    release(before);
    return sqrt(errors / squares);
}
/* Winograd's tiles err no more than sums over taps do; a gradient of weights, whose tiles are fewer private sums, not
   by half as much again. */
static void accuracy(void)
{
    const gcpi_conv shapes[] = { { 2, 28, 28, 32, 32, 28, 28, 32, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
                                 { 1, 14, 14, 128, 128, 14, 14, 128, 128, 3, 3, 1, 1, 1, 1, 1, 1, 1 } };
    for (int i = 0; i < 2; i++) {
        operands o = operands_of(&shapes[i], 0);
        for (size_t k = 0; k < o.x.count; k++) o.x.data[k] = GCPI_MAX(normal(), 0);
        for (size_t k = 0; k < o.w.count; k++) o.w.data[k] = normal();
        for (size_t k = 0; k < o.y.count; k++) o.y.data[k] = normal();
        for (int pass = 0; pass < 3; pass++) {
            const size_t count = pass == GCPI_FORWARD ? o.y.count : pass == GCPI_BACKWARD_DATA ? o.x.count : o.w.count;
            sums s = { calloc(count, sizeof(double)), calloc(count, sizeof(double)) };
            conv_terms(&shapes[i], pass, o.x.data, o.w.data, o.y.data, s);
            const double tiles = pass_error(&shapes[i], pass, &o, s);
            over_taps = 1;
            const double taps = pass_error(&shapes[i], pass, &o, s);
            over_taps = 0;
            printf("%d channels, pass %d: errors of %.2g in tiles, of %.2g over taps\n", shapes[i].ci, pass, tiles,
                   taps);
            CHECK(tiles < (pass == GCPI_BACKWARD_WEIGHTS ? 1.5 : 1) * taps);
            free(s.sum); free(s.size);
        }
        operands_free(&o);
    }
}

/* Too many weights to be packed at once, unpadded, x and y pitched: what is packed at a time must not depend on
   pitches. */
static void wide(void)
{
    const gcpi_conv c = { 1, 8, 8, 300, 320, 4, 4, 64, 70, 5, 5, 1, 1, 0, 0, 1, 1, 1 };
    on_every_isa(&c);
}

/* Shapes that take a path of their own. 1x1, where the roles of x and dy may be swapped: strided, and padded below and
   to the right alone. */
static const gcpi_conv directed_shapes[] = {
    { 2, 21, 30, 20, 23, 21, 30, 48, 50, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
    { 1, 21, 30, 20, 20, 11, 10, 48, 48, 1, 1, 2, 3, 0, 0, 1, 1, 1 },
    { 1, 21, 30, 20, 20, 22, 10, 48, 48, 1, 1, 1, 3, 0, 0, 1, 1, 1 },
    { 3, 9, 9, 16, 16, 5, 6, 20, 20, 1, 1, 2, 2, 0, 0, 1, 1, 1 },
    /* few channels: rows and columns of dw change places */
    { 1, 30, 29, 3, 5, 15, 15, 64, 70, 7, 7, 2, 2, 3, 3, 1, 1, 1 },
    { 2, 20, 40, 1, 1, 20, 40, 10, 10, 5, 5, 1, 1, 2, 2, 1, 1, 1 },
    { 1, 12, 20, 2, 2, 12, 20, 20, 22, 3, 3, 1, 1, 2, 1, 2, 1, 1 },
    { 3, 9, 40, 3, 3, 9, 40, 33, 33, 3, 3, 1, 1, 0, 2, 1, 1, 1 },
    { 20, 5, 5, 4, 4, 5, 5, 48, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
    /* padding that is not summed: in place, in windows; strided, dilated */
    { 2, 9, 9, 70, 75, 9, 9, 66, 70, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
    { 3, 14, 14, 20, 21, 14, 14, 33, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
    { 2, 15, 15, 64, 64, 8, 8, 64, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1 },
    { 2, 15, 13, 64, 66, 15, 13, 40, 40, 3, 3, 1, 1, 2, 2, 2, 2, 1 },
    /* backward weights: panels of channels copied, or read in place but for the
       last pixel; with a stride; channels of two groups */
    { 2, 7, 7, 150, 151, 7, 7, 60, 61, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
    { 3, 9, 9, 70, 70, 9, 9, 80, 81, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
    { 3, 9, 9, 70, 72, 5, 3, 30, 30, 1, 1, 2, 3, 0, 0, 1, 1, 1 },
    { 2, 6, 9, 340, 340, 3, 3, 70, 70, 1, 1, 2, 3, 0, 0, 1, 1, 1 },
    { 2, 9, 9, 140, 141, 7, 7, 100, 100, 3, 3, 1, 1, 0, 0, 1, 1, 2 },
    /* phases of the stride that need more room than others of as many taps */
    { 1, 2, 1, 64, 64, 1, 1, 64, 64, 6, 1, 3, 3, 5, 0, 2, 2, 1 },
    { 1, 5, 5, 64, 64, 2, 2, 64, 64, 6, 6, 3, 3, 4, 4, 2, 2, 1 },
    { 1, 7, 1, 48, 48, 1, 2, 8, 8, 15, 4, 7, 7, 10, 4, 1, 1, 1 },
    { 1, 40, 50, 20, 20, 2, 3, 8, 8, 35, 33, 29, 31, 20, 25, 3, 5, 1 },
    /* two sets of panels, uneven */
    { 1, 6, 6, 1100, 1100, 6, 6, 200, 200, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
    /* depthwise: as many phases as it may have, and more; none of a row or a
       column; borders wider than the image */
    { 2, 9, 19, 20, 20, 3, 5, 20, 20, 3, 3, 4, 4, 1, 1, 1, 1, 20 },
    { 1, 9, 19, 7, 8, 2, 5, 7, 9, 3, 3, 5, 4, 1, 1, 1, 1, 7 },
    { 1, 2, 40, 5, 5, 2, 3, 5, 5, 1, 3, 1, 17, 0, 1, 1, 1, 5 },
    { 1, 8, 30, 70, 70, 4, 10, 70, 70, 1, 1, 2, 3, 0, 0, 1, 1, 70 },
    { 2, 3, 2, 130, 130, 3, 2, 130, 131, 7, 7, 1, 1, 3, 3, 1, 1, 130 },
    /* planar: a last tile that is not full, and panels of two kernels */
    { 1, 6, 64, 7, 8, 6, 64, 23, 25, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
    { 1, 3, 224, 10, 10, 3, 224, 12, 12, 5, 5, 1, 1, 2, 2, 1, 1, 1 },
    { 1, 4, 70, 5, 5, 4, 70, 58, 58, 3, 3, 1, 1, 1, 1, 1, 1, 1 },
    { 1, 1, 17, 1, 1, 1, 17, 1, 1, 1, 9, 1, 1, 0, 4, 1, 1, 1 },
    { 1, 1, 33, 1, 1, 1, 33, 3, 3, 1, 9, 1, 1, 0, 4, 1, 1, 1 } };

static void directed(void)
{
    for (size_t i = 0; i < sizeof directed_shapes / sizeof *directed_shapes; i++) on_every_isa(&directed_shapes[i]);
}

/* Backward weights alone, of more pixels than are summed in one pass. */
static void directed_weights(void)
{
    static const gcpi_conv shapes[] = { /* the next panel of x is prefetched while this one is summed */
                                        { 1, 34, 33, 64, 64, 34, 33, 48, 48, 1, 3, 1, 1, 0, 1, 1, 1, 1 },
                                        /* rows of dy in two parts */
                                        { 1, 20, 30, 48, 48, 20, 30, 400, 403, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
                                        /* 18 chunks: fewer private sums, of as many chunks; 19: not */
                                        { 1, 126, 132, 16, 16, 126, 132, 16, 16, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
                                        { 1, 133, 132, 16, 17, 133, 132, 16, 16, 1, 1, 1, 1, 0, 0, 1, 1, 1 },
                                        /* channels that fill no tile: runs */
                                        { 2, 40, 31, 16, 16, 40, 31, 12, 12, 3, 3, 1, 1, 1, 1, 1, 1, 1 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int isa = GCP_ISA_SCALAR; isa <= gcpi_isa_best(); isa++) {
            operands o = operands_of(&shapes[i], 0);
            conv_pass(&shapes[i], GCPI_BACKWARD_WEIGHTS, &o, isa);
            operands_free(&o);
        }
}

/* A plan asks for scratch before it knows pitches, so that of a pitched tensor is no larger. */
static void scratch_sweep(int shapes)
{
    for (int i = 0; i < shapes; i++) {
        int threads = between(1, THREADS), k = between(1, 7), size = between(k, 64);
        gcpi_par par = par_of(&threads, 1 + below(gcpi_isa_best()));
        gcpi_conv dense = { between(1, 8),
                            size,
                            size,
                            between(1, 640),
                            0,
                            0,
                            0,
                            between(1, 640),
                            0,
                            k,
                            between(1, k),
                            between(1, 3),
                            between(1, 3),
                            between(0, 2) * below(2),
                            between(0, 2) * below(2),
                            1,
                            1,
                            1 },
                  pitched;
        dense.ho = (size + 2 * dense.pt - k) / dense.sh + 1, dense.wo = (size + 2 * dense.pl - dense.kw) / dense.sw + 1;
        dense.xpitch = dense.ci, dense.ypitch = dense.co;
        pitched = dense;
        pitched.xpitch += between(0, 64), pitched.ypitch += between(0, 64);
        for (int pass = 0; pass < 3; pass++)
            CHECK_INT(gcpi_conv_scratch(&pitched, pass, &par), <=, gcpi_conv_scratch(&dense, pass, &par));
    }
}

/* No phase of a strided convolution's gradient needs more room than was asked for. */
static void phases_sweep(int shapes)
{
    for (int i = 0; i < shapes; i++) {
        gcpi_conv c = random_conv();
        int threads = between(1, THREADS);
        gcpi_par par = par_of(&threads, 1 + below(gcpi_isa_best()));
        size_t most = 0;
        if (gcpi_conv_is_depthwise(&c)) continue;
        for (int y = 0; y < c.sh && y < c.h; y++)
            for (int x = 0; x < c.sw && x < c.w; x++) {
                gcpi_gather g = gcpi_conv_phase(&c, y, x);
                size_t bytes = gcpi_gather_plan(&g, c.ci / c.groups, &par);
                most = bytes > most ? bytes : most;
            }
        CHECK_INT(gcpi_conv_scratch(&c, GCPI_BACKWARD_DATA, &par), ==, most);
    }
}

/* ---- Matrix products ---- */

#ifdef GCP_USE_CBLAS
/* The user's BLAS has one thread when gcp calls it. */
static int blas_most;
static void watched(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    blas_most = GCPI_MAX(blas_most, openblas_get_num_threads());
    shuffled(context, tasks, task, arg);
}
#endif

/* spare: rows of a, b and c are up to so many values longer than they need be. */
static void product(int isa, int ta, int tb, int m, int n, int k, int spare)
{
    int accumulate = below(2), with_bias = below(2);
    ptrdiff_t lda = (ta ? m : k) + between(0, spare), ldb = (tb ? k : n) + between(0, spare),
              ldc = n + between(0, spare);
    buffer a = random_buffer((size_t)((ta ? k : m) * lda)), b = random_buffer((size_t)((tb ? n : k) * ldb)),
           c = random_buffer((size_t)(m * ldc)), bias = random_buffer((size_t)n);
    buffer before = copy_of(c), first = before;
    sums s = { calloc((size_t)(m * n), sizeof(double)), calloc((size_t)(m * n), sizeof(double)) };
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int t = 0; t < k; t++)
                add_term(s, (size_t)(i * n + j), a.data[ta ? t * lda + i : i * lda + t],
                         b.data[tb ? j * ldb + t : t * ldb + j]);
    for (int threads = 1; threads <= THREADS; threads++) {
        gcpi_par par = par_of(&threads, isa);
        buffer scratch = buffer_of((gcpi_gemm_scratch(ta, tb, m, n, k, &par) + sizeof(gcp_real) - 1) /
                                   sizeof(gcp_real));
        memcpy(c.data, before.data, c.count * sizeof *c.data);
#ifdef GCP_USE_CBLAS
        par.parallel_for = watched;
        openblas_set_num_threads(2);
#endif
        gcpi_gemm(ta, tb, m, n, k, gcpi_reals(a.data), lda, gcpi_reals(b.data), ldb, with_bias ? bias.data : NULL,
                  gcpi_reals(c.data), ldc, accumulate, scratch.data, &par);
        CHECK(guarded(scratch) && guarded(c));
        if (threads == 1) {
            CHECK_NEAR(worst(c.data, before.data, (size_t)m, n, ldc, accumulate, with_bias ? bias.data : NULL, s), 0,
                       1);
            first = copy_of(c);
        }
        CHECK(same_bits(c, first));
        release(scratch);
    }
    release(a); release(b); release(c); release(bias); release(before); release(first);
    free(s.sum); free(s.size);
}

/* The same product of halves. Of a transposed a and a plain b the result is floats. */
static void product_halves(int isa, int ta, int tb, int m, int n, int k, int spare)
{
    int accumulate = below(2), threads = between(1, THREADS), outer = ta && !tb, with_bias = !accumulate && below(2);
    ptrdiff_t lda = (ta ? m : k) + between(0, spare), ldb = (tb ? k : n) + between(0, spare),
              ldc = n + between(0, spare);
    buffer a = random_buffer((size_t)((ta ? k : m) * lda)), b = random_buffer((size_t)((tb ? n : k) * ldb)),
           c = random_buffer((size_t)(m * ldc)), bias = random_buffer((size_t)n);
    buffer all[] = { a, b, c }, halves[3];
    gcpi_array d[3];
    gcpi_par floats = par_of(&threads, isa), both = halves_par_of(&threads, isa);
    for (int i = 0; i < 3; i++) {
        gcpi_halves_of(isa)->settle(all[i].data, (ptrdiff_t)all[i].count);
        halves[i] = halves_of(all[i], outer && i == 2 ? 0 : -1, &d[i]);
    }
    for (int half = 0; half < 2; half++) {
        const gcpi_par *par = half ? &both : &floats;
        buffer scratch = buffer_of((gcpi_gemm_scratch(ta, tb, m, n, k, par) + sizeof(gcp_real) - 1) / sizeof(gcp_real));
        gcpi_gemm(ta, tb, m, n, k, half ? d[0] : gcpi_reals(a.data), lda, half ? d[1] : gcpi_reals(b.data), ldb,
                  with_bias ? bias.data : NULL, half ? d[2] : gcpi_reals(c.data), ldc, accumulate, scratch.data, par);
        CHECK(guarded(scratch));
        release(scratch);
    }
    int same = rounded_same(d[2], c, 1);
    CHECK(same && guarded(halves[2]));
    if (!same && check_shown())
        fprintf(stderr, "  %d x %d x %d, transposed %d %d, isa %d, accumulate %d\n", m, n, k, ta, tb, isa, accumulate);
    for (int i = 0; i < 3; i++) { release(all[i]); release(halves[i]); }
    release(bias);
}

static void random_product(int isa)
{
    int m = between(1, 90), n = between(1, 90), k = between(1, 300), ta = below(2), tb = below(2);
    product(isa, ta, tb && !ta, m, n, k, 3);           /* no op multiplies two transposed matrices */
    if (sizeof(gcp_real) == sizeof(float) && !GCPI_CBLAS) product_halves(isa, ta, tb, m, n, k, 3);
}

/* b is read in place for few rows of a, if its own do not compete for a cache; of its last panel the columns that are
   there are packed. Transposed, b is read in place unless many rows compete. */
static void directed_products(void)
{
    static const int shapes[][5] = { { 0, 0, 40, 70, 1100 }, { 0, 0, 40, 1024, 300 }, { 0, 0, 9, 1024, 300 },
                                     { 0, 0, 1, 130, 70 },   { 0, 0, 384, 64, 20 },   { 0, 0, 385, 64, 20 },
                                     { 1, 0, 520, 1024, 9 }, { 1, 0, 512, 1024, 9 },  { 1, 0, 530, 1000, 17 },
                                     { 1, 0, 60, 1000, 33 },  { 0, 1, 257, 26, 2100 }, { 0, 0, 70, 128, 784 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int isa = GCP_ISA_SCALAR; isa <= gcpi_isa_best(); isa++) {
            const int *s = shapes[i];
            product(isa, s[0], s[1], s[2], s[3], s[4], 0);
            if (sizeof(gcp_real) == sizeof(float) && !GCPI_CBLAS) product_halves(isa, s[0], s[1], s[2], s[3], s[4], 0);
        }
}

/* Few rows by a small matrix are a task for each thread, as far as there are panels; but one where that is little. */
static void few_rows(int isa)
{
    for (int threads = 1; threads <= THREADS; threads++) {
        gcpi_par par = par_of(&threads, isa);
        gcpi_gather g = gcpi_gemm_gather(0, 0, 64, 784, 784, 128, 128),
                    little = gcpi_gemm_gather(0, 0, 16, 64, 64, 99, 99);
        gcpi_gather_plan(&g, 128, &par);
        gcpi_gather_plan(&little, 99, &par);
        CHECK_INT(g.v.chunks * g.sets, >=, gcpi_min(threads, g.columns.panels));
        CHECK_INT(little.v.chunks * little.sets, ==, 1);
    }
}

int main(int argc, char **argv)
{
    int shapes = argc > 1 ? atoi(argv[1]) : 500;
    convolutions(shapes);
    wide();
    directed();
    directed_weights();
    scratch_sweep(40 * shapes);
    phases_sweep(20 * shapes);
    for (int i = 0; i < shapes / 2 && !TILES; i++) random_product(1 + i % gcpi_isa_best());
    for (int isa = GCP_ISA_SCALAR; isa <= GCP_ISA_AVX512; isa++) few_rows(isa);
    if (TILES) accuracy();
    else directed_products();
    for (int pass = 0; pass < 3; pass++) CHECK_INT(tiled[pass], >=, TILES ? shapes / 20 : 0);
#ifdef GCP_USE_CBLAS
    CHECK_INT(blas_most, ==, 1);
#endif
    return check_done();
}
