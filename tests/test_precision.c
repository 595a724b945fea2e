/* Forward and backward in float against double, on random shapes, for every instruction set that this machine has, and
   the same bits from any number of threads. Products are also compared with plain loops, whose sums of absolute
   products bound the error: 1e-5 of them in float, 1e-13 in double. */
#include "support/check.h"
#include "support/precision_cases.h"

enum { LIMIT = 300000 };                                     /* products of one case */

static uint32_t state = 12345;
static int draw(int first, int last)
{
    state = state * 1664525u + 1013904223u;
    return first + (int)((state >> 8) % (uint32_t)(last - first + 1));
}

/* ---- plain convolution ---------------------------------------------------------------------------------------- */

static double x_in[PRECISION_MOST], w_in[PRECISION_MOST], g_in[PRECISION_MOST];
static double want[4][PRECISION_MOST], bound[4][PRECISION_MOST];      /* by role: y, dx, dw, db of the convolution */

typedef struct geometry { int n, h, w, ci, ho, wo, co, kh, kw, sh, sw, pt, pl, dilation, groups; } geometry;

static geometry geometry_of(const precision_case *c)
{
    geometry q = { c->n,  c->h,  c->w,  c->ci, 0,     0,           c->co,    c->kh,
                   c->kw, c->sh, c->sw, c->pt, c->pl, c->dilation, c->groups };
    int eh = (c->kh - 1) * c->dilation + 1, ew = (c->kw - 1) * c->dilation + 1;
    if (c->kind == CONV_TRANSPOSE) {                          /* of the convolution that goes back */
        q.ci = c->co; q.co = c->ci; q.ho = c->h; q.wo = c->w;
        q.h = (c->h - 1) * c->sh + eh - c->pt - c->pb;
        q.w = (c->w - 1) * c->sw + ew - c->pl - c->pr;
        return q;
    }
    q.ho = c->h + c->pt + c->pb < eh ? 0 : (c->h + c->pt + c->pb - eh) / c->sh + 1;
    q.wo = c->w + c->pl + c->pr < ew ? 0 : (c->w + c->pl + c->pr - ew) / c->sw + 1;
    return q;
}

static void add_products(double (*to)[PRECISION_MOST], int y, int x, int w)
{
    to[0][y] += x_in[x] * w_in[w];
    to[1][x] += g_in[y] * w_in[w];
    to[2][w] += g_in[y] * x_in[x];
}

static void plain_output(const geometry *q, double (*to)[PRECISION_MOST], int y, int image, int oy, int ox, int o)
{
    int in = q->ci / q->groups, first = o / (q->co / q->groups) * in;
    for (int ky = 0; ky < q->kh; ky++)
        for (int kx = 0; kx < q->kw; kx++) {
            int iy = oy * q->sh - q->pt + ky * q->dilation, ix = ox * q->sw - q->pl + kx * q->dilation;
            if (iy < 0 || iy >= q->h || ix < 0 || ix >= q->w) continue;
            for (int i = 0; i < in; i++)
                add_products(to, y, ((image * q->h + iy) * q->w + ix) * q->ci + first + i,
                             ((o * q->kh + ky) * q->kw + kx) * in + i);
        }
    to[3][o] += g_in[y];
}

static void plain(const geometry *q, double (*to)[PRECISION_MOST])
{
    for (int r = 0; r < 4; r++) memset(to[r], 0, sizeof to[r]);
    for (int image = 0, y = 0; image < q->n; image++)
        for (int oy = 0; oy < q->ho; oy++)
            for (int ox = 0; ox < q->wo; ox++)
                for (int o = 0; o < q->co; o++, y++) plain_output(q, to, y, image, oy, ox, o);
}

static void fill(double *to, int count, uint32_t seed, int absolute)
{
    for (int i = 0; i < count; i++)
        to[i] = absolute ? fabs(precision_value(seed, (uint32_t)i)) : precision_value(seed, (uint32_t)i);
}

/* want and bound of a case of products; a matmul's second operand is stored the other way. */
static void plain_case(const precision_case *c)
{
    geometry q = geometry_of(c);
    int up = c->kind == CONV_TRANSPOSE, weights = q.co * q.kh * q.kw * (q.ci / q.groups);
    for (int absolute = 0; absolute < 2; absolute++) {
        fill(x_in, q.n * q.h * q.w * q.ci, up ? 9 : 1, absolute);
        fill(g_in, q.n * q.ho * q.wo * q.co, up ? 1 : 9, absolute);
        fill(w_in, weights, 2, absolute);
        for (int i = 0; c->kind == MATMUL && i < weights; i++) {
            double v = precision_value(2, (uint32_t)(i % q.ci * q.co + i / q.ci));
            w_in[i] = absolute ? fabs(v) : v;
        }
        plain(&q, absolute ? bound : want);
    }
}

/* ---- comparison ------------------------------------------------------------------------------------------------ */

static const char *const part_names[PRECISION_PARTS] = { "loss", "output", "gradient 1", "gradient 2", "gradient 3" };

static void report(const precision_case *c, int isa, const char *what, int part, int i, double got, double wanted)
{
    fprintf(stderr,
            "kind %d x %dx%dx%dx%d co %d k %dx%d stride %dx%d pad %d,%d,%d,%d dilation %d groups %d isa %d: %s %s[%d]: "
            "%.9g, not %.9g\n",
            (int)c->kind, c->n, c->h, c->w, c->ci, c->co, c->kh, c->kw, c->sh, c->sw, c->pt, c->pb, c->pl, c->pr,
            c->dilation, c->groups, isa, what, part_names[part], i, got, wanted);
}

/* Which plain array a part is, and the element there. */
static int plain_index(const precision_case *c, int part, int i, int *role)
{
    int up = c->kind == CONV_TRANSPOSE;
    *role = part == 1 ? up : part == 2 ? !up : part - 1;
    return c->kind == MATMUL && part == 3 ? i % c->co * c->ci + i / c->co : i;
}

static double bias_gradient(const precision_case *c, int channel, int count, double *absolute)
{
    double sum = 0;
    *absolute = 0;
    for (int i = channel; i < count; i += c->co) {
        sum += precision_value(9, (uint32_t)i);
        *absolute += fabs(precision_value(9, (uint32_t)i));
    }
    return sum;
}

static double plain_value(const precision_case *c, const precision_result *r, int part, int i, double *absolute)
{
    int role, k = plain_index(c, part, i, &role);
    if (part == 4) return bias_gradient(c, i, r->count[1], absolute);
    double bias = part == 1 && c->bias ? precision_value(3, (uint32_t)(i % c->co)) : 0;
    *absolute = bound[role][k] + fabs(bias);
    return want[role][k] + bias;
}

static void against_plain(const precision_case *c, int isa, const precision_result *r, double allowed, const char *what)
{
    int bad = 0;
    for (int part = 1; part < PRECISION_PARTS && !bad; part++)
        for (int i = 0; i < r->count[part] && !bad; i++) {
            double absolute, wanted = plain_value(c, r, part, i, &absolute), got = r->v[r->first[part] + i];
            if (fabs(got - wanted) <= allowed * absolute) continue;
            report(c, isa, what, part, i, got, wanted);
            bad = 1;
        }
    CHECK(!bad);
}

/* The loss is sum(output * dy); other values are of order 1 and are sums of some more. */
static double scale_of(const precision_result *r, int part, double wanted)
{
    double sum = fabs(wanted);
    if (part > 0) return fmax(1, sum);
    for (int i = 0; i < r->count[1]; i++) sum += fabs(r->v[r->first[1] + i] * precision_value(9, (uint32_t)i));
    return fmax(1, sum);
}

static void against_double(const precision_case *c, int isa, const precision_result *f, const precision_result *d)
{
    int bad = f->total != d->total, parts = c->kind > MATMUL ? PRECISION_PARTS : 1;
    for (int part = 0; part < parts && !bad; part++)
        for (int i = 0; i < d->count[part] && !bad; i++) {
            double got = f->v[f->first[part] + i], wanted = d->v[d->first[part] + i];
            if (fabs(got - wanted) <= 1e-5 * scale_of(d, part, wanted)) continue;
            report(c, isa, "float", part, i, got, wanted);
            bad = 1;
        }
    CHECK(!bad);
}

static void same_bits(const precision_case *c, int isa, const precision_result *one, const precision_result *other,
                      const char *what)
{
    int bad = one->total != other->total;
    for (int part = 0; part < PRECISION_PARTS && !bad; part++)
        for (int i = 0; i < one->count[part] && !bad; i++) {
            const double *a = &one->v[one->first[part] + i], *b = &other->v[other->first[part] + i];
            if (!memcmp(a, b, sizeof *a)) continue;
            report(c, isa, what, part, i, *b, *a);
            bad = 1;
        }
    CHECK(!bad);
}

static precision_result f1, d1, many;
static int ran[8];

static void run_isa(const precision_case *c, int isa)
{
    int found = precision_run_float(c, isa, 1, &f1);
    if (found == 0) return;
    CHECK_INT(found, ==, 1);
    CHECK_INT(precision_run_double(c, isa, 1, &d1), ==, 1);
    ran[isa]++;
    for (int threads = 2; threads <= 3; threads++) {
        CHECK_INT(precision_run_float(c, isa, threads, &many), ==, 1);
        same_bits(c, isa, &f1, &many, "float by more threads");
        CHECK_INT(precision_run_double(c, isa, threads, &many), ==, 1);
        same_bits(c, isa, &d1, &many, "double by more threads");
    }
    against_double(c, isa, &f1, &d1);
    if (c->kind > MATMUL) return;
    against_plain(c, isa, &f1, 1e-5, "float");
    against_plain(c, isa, &d1, 1e-13, "double");
}

static void run(const precision_case *c)
{
    if (c->kind <= MATMUL) plain_case(c);
    if (c->kind > MATMUL && c->kind != RESIDUAL) run_isa(c, 0);          /* other ops have one code for all */
    else for (int isa = 1; isa <= 4; isa++) run_isa(c, isa);
}

/* ---- random shapes ----------------------------------------------------------------------------------------------- */

static int draw_groups(void) { return (int[]) { 1, 1, 1, 1, 2, 3, 5, 0 }[draw(0, 7)]; }      /* 0: depthwise */

static precision_case draw_convolution(precision_kind kind)
{
    precision_case c = {
        kind, draw(1, 3), draw(1, 13), draw(1, 13), draw(1, 70), draw(1, 70), draw(1, 5),    draw(1, 5), 1,
        1,    0,          0,           0,           0,           1,           draw_groups(), draw(0, 1)
    };
    if (draw(0, 2) == 0) c.kh = c.kw = draw(0, 1) ? 1 : 3;
    if (draw(0, 1)) { c.sh = draw(1, 3); c.sw = draw(1, 3); }
    if (draw(0, 2)) {
        c.pt = draw(0, c.kh - 1);
        c.pb = draw(0, c.kh - 1);
        c.pl = draw(0, c.kw - 1);
        c.pr = draw(0, c.kw - 1);
    }
    if (draw(0, 3) == 0) c.dilation = 2;
    if (!c.groups) { c.groups = c.ci; c.co = c.ci * draw(1, 2); }
    c.ci = (c.ci + c.groups - 1) / c.groups * c.groups;
    c.co = (c.co + c.groups - 1) / c.groups * c.groups;
    return c;
}

static int fits(const precision_case *c)
{
    geometry q = geometry_of(c);
    long long products = (long long)q.n * q.ho * q.wo * q.co * q.kh * q.kw * (q.ci / q.groups);
    long long outputs = (long long)q.n * q.ho * q.wo * q.co, inputs = (long long)q.n * q.h * q.w * q.ci,
              weights = (long long)q.co * q.kh * q.kw * q.ci / q.groups;
    return q.h > 0 && q.w > 0 && q.ho > 0 && q.wo > 0 && products <= LIMIT &&
           outputs + inputs + weights < PRECISION_MOST / 2;
}

static void convolutions(precision_kind kind, int count)
{
    while (count > 0) {
        precision_case c = draw_convolution(kind);
        if (!fits(&c)) continue;
        run(&c);
        count--;
    }
}

static void products(precision_kind kind, int count)
{
    for (int i = 0; i < count; i++) {
        precision_case c = { kind,
                             draw(1, 90),
                             1,
                             1,
                             draw(1, 90),
                             draw(1, 90),
                             1,
                             1,
                             1,
                             1,
                             0,
                             0,
                             0,
                             0,
                             1,
                             1,
                             kind == LINEAR && draw(0, 1) };
        if (i % 3 == 0) c.ci = draw(100, 700);
        if (i % 5 == 0) { c.n = draw(100, 300); c.ci = draw(1, 30); }
        if (fits(&c)) run(&c);
        else i--;
    }
}

static void others(int count)
{
    for (int kind = MATMUL + 1; kind < KINDS; kind++)
        for (int i = 0; i < count; i++) {
            precision_case c = { (precision_kind)kind,
                                 draw(1, 4),
                                 draw(3, 9),
                                 draw(3, 9),
                                 draw(2, 40),
                                 draw(1, 9),
                                 draw(1, 3),
                                 draw(1, 3),
                                 draw(1, 3),
                                 draw(1, 3),
                                 0,
                                 0,
                                 0,
                                 0,
                                 1,
                                 1,
                                 0 };
            if (kind == RESIDUAL) c.ci = draw(2, 12);
            if (i == 0) { c.n = 2; c.h = 17; c.w = 33; }          /* several blocks of pixels */
            if (i == 0 && kind != RESIDUAL) c.ci = kind == NEAREST || kind == BILINEAR ? 4 : 33;
            run(&c);
        }
}

int main(void)
{
    convolutions(CONV, 60);
    convolutions(CONV_TRANSPOSE, 20);
    products(LINEAR, 30);
    products(MATMUL, 30);
    others(3);
    CHECK_INT(ran[1], >=, 140);
    printf("cases by instruction set: any %d, scalar %d, v128 %d, avx2 %d, avx512 %d\n", ran[0], ran[1], ran[2], ran[3],
           ran[4]);
    return check_done();
}
