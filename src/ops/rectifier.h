/* Rectifiers: relu, leaky_relu, relu6, clamp. x between two bounds, outside of them a bound or slope x. Backward takes
   from y, or from the mask, whether x was inside. */

/* least: what lower values become, where there is no slope; kink: below it the slope holds. Of the two, the one that
   an op has not is -infinity. last: the last number below high; infinity where there is no bound. NaN stays NaN, and
   both infinities stay or become a bound. */
typedef struct gcpi_rectifier { gcp_real low, high, last, slope, least, kink; } gcpi_rectifier;

/* NULL: values stay as they are. Where values are rounded, so are the bounds: y at a bound is no longer inside. */
static gcpi_rectifier gcpi_rectifier_of(const gcpi_attributes *a, gcp_store store)
{
    const double none = -HUGE_VAL, low = a ? a->rectifier.low : none, slope = a ? a->rectifier.slope : 0;
    gcpi_rectifier r;
    r.low = (gcp_real)low; r.high = (gcp_real)(a ? a->rectifier.high : HUGE_VAL); r.slope = (gcp_real)slope;
    if (store) { r.low = gcpi_half_rounded(r.low); r.high = gcpi_half_rounded(r.high); }
    r.last = !gcpi_finite((double)r.high) ? r.high
             : sizeof(gcp_real) == sizeof(float) ? (gcp_real)nextafterf((float)r.high, -HUGE_VALF)
                                                 : (gcp_real)nextafter((double)r.high, -HUGE_VAL);
    r.least = slope != 0 ? (gcp_real)none : r.low; r.kink = slope != 0 ? r.low : (gcp_real)none;
    return r;
}
GCPI_BODY gcp_real gcpi_rectified(const gcpi_rectifier *r, gcp_real x)
{
    const gcp_real z = x < r->least ? r->least : x;
    return z < r->kink ? r->slope * z : z > r->high ? r->high : z;
}
/* Without a slope, between bounds alone. */
GCPI_BODY gcp_real gcpi_bounded(const gcpi_rectifier *r, gcp_real x)
{
    const gcp_real z = x < r->least ? r->least : x;
    return z > r->high ? r->high : z;
}
/* Of x or of y: both are inside, or none is. */
GCPI_BODY int gcpi_within(const gcpi_rectifier *r, gcp_real x) { return (x > r->low) & (x <= r->last); }

GCPI_BODY void gcpi_mask_write(const gcpi_rectifier *r, unsigned char *mask, const void *x, size_t index, size_t first,
                               size_t n, const int half)
{
    for (size_t i = first; i < n; i++) {
        size_t k = index + i;
        if ((k & 7) == 0) mask[k >> 3] = 0;
        mask[k >> 3] = (unsigned char)(mask[k >> 3] | gcpi_within(r, GCPI_AT(half, x, i)) << (k & 7));
    }
}

/* Packs eight bytes of 0 or 1 into the bits of one byte. The product moves byte i to bit 56 + i, and no two of its
   terms meet in a bit. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    uint64_t all;
    memcpy(&all, on, sizeof all);
    return (unsigned char)(all * 0x0102040810204080u >> 56);
}
#else
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; i++) bits |= (unsigned)on[i] << i;
    return (unsigned char)bits;
}
#endif

/* On an x86 the sign of each lane is a bit of the mask. Returns how many values it took. */
#if GCPI_X86 && defined(__SSE2__)
typedef float gcpi_signs __attribute__((vector_size(16)));
typedef short gcpi_words __attribute__((vector_size(16)));
typedef uint32_t gcpi_pairs __attribute__((vector_size(16)));
typedef gcpi_pairs gcpi_pairs_at __attribute__((aligned(2), may_alias));
GCPI_BODY size_t gcpi_mask_floats(const gcpi_rectifier *r, unsigned char *mask, const gcp_real *x, size_t n)
{
    const gcpi_v16 zeros = { 0 }, low = zeros + r->low, last = zeros + r->last;
    size_t done = 0;
    for (; sizeof(gcp_real) == sizeof(float) && done + 32 <= n; done += 32) {
        uint32_t bits = 0;
        GCPI_UNROLL for (int k = 0; k < 8; k++) {
            const gcpi_v16 v = *(const gcpi_v16 *)(x + done + 4 * k);
            bits |= (uint32_t)__builtin_ia32_movmskps((gcpi_signs)((v > low) & (v <= last))) << 4 * k;
        }
        memcpy(mask + done / 8, &bits, sizeof bits);
    }
    return done;
}
/* Of two halves that lie in a word each is a float. */
GCPI_BODY size_t gcpi_mask_halves(const gcpi_rectifier *r, unsigned char *mask, const gcpi_half *x, size_t n)
{
    const gcpi_v16 zeros = { 0 }, low = zeros + r->low, last = zeros + r->last;
    size_t done = 0;
    for (; sizeof(gcp_real) == sizeof(float) && done + 16 <= n; done += 16) {
        gcpi_words on[2];
        GCPI_UNROLL for (int k = 0; k < 2; k++) {
            const gcpi_pairs v = *(const gcpi_pairs_at *)(const void *)(x + done + 8 * k);
            const gcpi_v16 first = (gcpi_v16)(v << 16), second = (gcpi_v16)(v & 0xffff0000u);
            on[k] = (gcpi_words)(((gcpi_pairs)((first > low) & (first <= last)) & 0xffffu) |
                                 ((gcpi_pairs)((second > low) & (second <= last)) & 0xffff0000u));
        }
        const uint16_t bits = (uint16_t)__builtin_ia32_pmovmskb128(__builtin_ia32_packsswb128(on[0], on[1]));
        memcpy(mask + done / 8, &bits, sizeof bits);
    }
    return done;
}
#else
GCPI_BODY size_t gcpi_mask_floats(const gcpi_rectifier *r, unsigned char *mask, const gcp_real *x, size_t n)
{
    (void)r; (void)mask; (void)x; (void)n;
    return 0;
}
GCPI_BODY size_t gcpi_mask_halves(const gcpi_rectifier *r, unsigned char *mask, const gcpi_half *x, size_t n)
{
    (void)r; (void)mask; (void)x; (void)n;
    return 0;
}
#endif

/* AVX-512 compares into a mask. As many values as the others. */
#if GCPI_X86_DUOS
enum { GCPI_X86_MASKS = 1 };
typedef float gcpi_sixteen __attribute__((vector_size(64)));
typedef gcpi_sixteen gcpi_sixteen_at __attribute__((aligned(4), may_alias));
typedef uint32_t gcpi_sixteen_bits __attribute__((vector_size(64)));
typedef uint16_t gcpi_sixteen_halves __attribute__((vector_size(32), aligned(2), may_alias));
enum { GCPI_GREATER = 14, GCPI_AT_MOST = 2, GCPI_AS_SET = 4 };      /* vcmpps: predicates; exceptions as set */
GCPI_LOOP GCPI_AVX512 size_t gcpi_avx512_mask(const gcpi_rectifier *r, unsigned char *mask, const void *x, size_t n,
                                              int half)
{
    const gcpi_sixteen zeros = { 0 }, low = zeros + (float)r->low, last = zeros + (float)r->last;
    size_t done = 0;
    for (; sizeof(gcp_real) == sizeof(float) && done + 16 <= n; done += 16) {
        const void *from = (const unsigned char *)x + done * (half ? sizeof(gcpi_half) : sizeof(gcp_real));
        gcpi_sixteen v;
        if (half) {                                      /* by hand: gcc 12 widens it in two parts */
            gcpi_sixteen_bits wide;
            __asm__("vpmovzxwd {%1, %0|%0, %1}" : "=v"(wide) : "m"(*(const gcpi_sixteen_halves *)from));
            v = (gcpi_sixteen)(wide << 16);
        } else v = *(const gcpi_sixteen_at *)from;
        uint16_t on = __builtin_ia32_cmpps512_mask(v, low, GCPI_GREATER, 0xffff, GCPI_AS_SET);
        on = __builtin_ia32_cmpps512_mask(v, last, GCPI_AT_MOST, on, GCPI_AS_SET);
        memcpy(mask + done / 8, &on, sizeof on);
    }
    return done;
}
#else
enum { GCPI_X86_MASKS = 0 };
GCPI_BODY size_t gcpi_avx512_mask(const gcpi_rectifier *r, unsigned char *mask, const void *x, size_t n, int half)
{
    (void)r; (void)mask; (void)x; (void)n; (void)half;
    return 0;
}
#endif

/* Whole bytes of the mask at a time where the span begins at one. */
GCPI_BODY void gcpi_mask_span(int isa, const gcpi_rectifier *r, unsigned char *mask, const void *x, size_t index,
                              size_t n, const int half)
{
    enum { RUN = 64 };
    const int above = !((double)r->last < HUGE_VAL);             /* one comparison is enough */
    unsigned char on[RUN];
    const int compares = GCPI_X86_MASKS && isa >= GCP_ISA_AVX512;
    size_t done = index & 7  ? 0
                  : compares ? gcpi_avx512_mask(r, mask + index / 8, x, n, half)
                  : half     ? gcpi_mask_halves(r, mask + index / 8, (const gcpi_half *)x, n)
                             : gcpi_mask_floats(r, mask + index / 8, (const gcp_real *)x, n);
    for (; (index & 7) == 0 && done + RUN <= n; done += RUN) {
        if (above) for (size_t i = 0; i < RUN; i++) on[i] = GCPI_AT(half, x, done + i) > r->low;
        else for (size_t i = 0; i < RUN; i++) on[i] = (unsigned char)gcpi_within(r, GCPI_AT(half, x, done + i));
        for (size_t b = 0; b < RUN / 8; b++) mask[(index + done) / 8 + b] = gcpi_bits(on + 8 * b);
    }
    for (; (index & 7) == 0 && done + 8 <= n; done += 8) {
        for (size_t i = 0; i < 8; i++) on[i] = (unsigned char)gcpi_within(r, GCPI_AT(half, x, done + i));
        mask[(index + done) / 8] = gcpi_bits(on);
    }
    gcpi_mask_write(r, mask, x, index, done, n, half);
}

GCPI_BODY void gcpi_bound_halves(const gcpi_rectifier *r, void *y, const void *x, size_t n)
{
    GCPI_EACH for (size_t i = 0; i < n / 2; i++) {
        const uint32_t twins = gcpi_twins(x, i);
        gcpi_twins_put(y, i, gcpi_bits_of((float)gcpi_bounded(r, gcpi_twin_low(twins))),
                      gcpi_bits_of((float)gcpi_bounded(r, gcpi_twin_high(twins))));
    }
    if (n & 1) GCPI_PUT_SETTLED(1, y, n - 1, gcpi_bounded(r, GCPI_AT(1, x, n - 1)))
}
/* p: x, y. Halves come without a slope. */
GCPI_BODY void gcpi_rectify_loop(const gcpi_span *s, const int half)
{
    const gcpi_rectifier r = gcpi_rectifier_of(gcpi_attr(s->call->attributes), s->call->store);
    enum { PART = 1024 };                                   /* x is still in L1 when it is read again */
    for (size_t first = 0, n; first < s->n; first += n) {
        const void *x = GCPI_FROM(half, s->p[0], first);
        void *y = GCPI_FROM(half, s->p[1], first);
        n = GCPI_MIN((size_t)PART, s->n - first);
        if (s->mask) gcpi_mask_span(s->call->target->isa, &r, s->mask, x, s->index + first, n, half);
        if (half) gcpi_bound_halves(&r, y, x, n);
        else GCPI_EACH for (size_t i = 0; i < n; i++) GCPI_PUT(0, y, i, gcpi_rectified(&r, GCPI_AT(0, x, i)))
    }
}
GCPI_BODY void gcpi_rectify_span_body(const gcpi_span *s)
{
    if (s->half) gcpi_rectify_loop(s, 1);
    else gcpi_rectify_loop(s, 0);
}
GCPI_WIDE_SPAN(gcpi_rectify_span)

/* By the mask: sixteen values at a time for whole bytes, the rest bit by bit. accumulate and half are literals. */
GCPI_BODY void gcpi_rectify_mask_back(const gcpi_span *s, gcp_real slope, const int accumulate, const int half)
{
    static const unsigned bit[16] = { 1,    1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                                      1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15 };
    const size_t twos = (s->index & 7) == 0 ? s->n / 16 : 0;
    const unsigned char *mask = s->mask + s->index / 8;
    for (size_t b = 0; b < twos; b++, mask += 2) {
        const unsigned on = mask[0] | (unsigned)mask[1] << 8;
        void *to = GCPI_FROM(half, s->p[0], 16 * b);
        const void *from = GCPI_FROM(half, s->p[1], 16 * b);
        GCPI_EIGHT for (int i = 0; i < 16; i++) {
            const gcp_real d = GCPI_AT(half, from, i), g = on & bit[i] ? d : slope * d;
            if (accumulate) GCPI_PUT(half, to, i, GCPI_AT(half, to, i) + g)
            else GCPI_PUT_SETTLED(half, to, i, g)
        }
    }
    for (size_t i = 16 * twos; i < s->n; i++) {
        const size_t k = s->index + i;
        const gcp_real d = GCPI_AT(half, s->p[1], i), g = s->mask[k >> 3] & bit[k & 7] ? d : slope * d;
        if (accumulate) GCPI_PUT(half, s->p[0], i, GCPI_AT(half, s->p[0], i) + g)
        else GCPI_PUT_SETTLED(half, s->p[0], i, g)
    }
}

/* Without a slope. What is not inside gets 0 d: a NaN stays. */
GCPI_BODY gcp_real gcpi_bounded_back(const gcpi_rectifier *r, gcp_real d, gcp_real y)
{
    return gcpi_within(r, y) ? d : 0 * d;
}
GCPI_BODY void gcpi_bound_halves_back(const gcpi_span *s, const gcpi_rectifier *r, const int accumulate)
{
    void *to = s->p[0];
    const void *from = s->p[1], *ys = s->p[3];
    const size_t twins = s->n / 2, last = s->n - 1;
    GCPI_EACH for (size_t i = 0; i < twins; i++) {
        const uint32_t d = gcpi_twins(from, i), y = gcpi_twins(ys, i), x = accumulate ? gcpi_twins(to, i) : 0;
        const gcp_real low = gcpi_bounded_back(r, gcpi_twin_low(d), gcpi_twin_low(y)),
                       high = gcpi_bounded_back(r, gcpi_twin_high(d), gcpi_twin_high(y));
        if (accumulate)
            gcpi_twins_put(to, i, gcpi_rounded_bits((float)(gcpi_twin_low(x) + low)),
                           gcpi_rounded_bits((float)(gcpi_twin_high(x) + high)));
        else gcpi_twins_put(to, i, gcpi_bits_of((float)low), gcpi_bits_of((float)high));
    }
    if (!(s->n & 1)) return;
    const gcp_real g = gcpi_bounded_back(r, GCPI_AT(1, from, last), GCPI_AT(1, ys, last));
    if (accumulate) GCPI_PUT(1, to, last, GCPI_AT(1, to, last) + g)
    else GCPI_PUT_SETTLED(1, to, last, g)
}
GCPI_BODY void gcpi_rectify_span_back_body(const gcpi_span *s)
{
    gcp_real *dx = s->p[0];
    const gcpi_rectifier r = gcpi_rectifier_of(gcpi_attr(s->call->attributes), s->call->store);
    const gcp_real *dy = s->p[1], *y = s->p[3], slope = r.slope;
    if (s->mask && s->half && s->accumulate) gcpi_rectify_mask_back(s, slope, 1, 1);
    else if (s->mask && s->half) gcpi_rectify_mask_back(s, slope, 0, 1);
    else if (s->mask && s->accumulate) gcpi_rectify_mask_back(s, slope, 1, 0);
    else if (s->mask) gcpi_rectify_mask_back(s, slope, 0, 0);
    else if (s->half && s->accumulate) gcpi_bound_halves_back(s, &r, 1);
    else if (s->half) gcpi_bound_halves_back(s, &r, 0);
    else if (s->accumulate)
        GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] += gcpi_within(&r, y[i]) ? dy[i] : slope * dy[i];
    else GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] = gcpi_within(&r, y[i]) ? dy[i] : slope * dy[i];
}
GCPI_WIDE_SPAN(gcpi_rectify_span_back)

/* Without a slope: then a loop for halves rounds no value but a sum. */
static int gcpi_straight(const gcp_call *c) { return gcpi_attr(c->attributes)->rectifier.slope == 0; }
static void gcpi_rectify_forward(const gcp_call *c) { gcpi_map_forward(c, gcpi_rectify_span, gcpi_straight(c)); }
static void gcpi_rectify_backward(const gcp_call *c) { gcpi_map_backward(c, gcpi_rectify_span_back, gcpi_straight(c)); }

static int gcpi_rectify_shape(gcp_shape_call *s)
{
    s->out[0] = s->out[1] = s->in[0];
    s->out_dtype[1] = GCP_DTYPE_BIT;
    return gcpi_all_real(s);
}

#define GCPI_RECTIFIER_ROW(name) \
    { name, gcpi_rectify_shape, gcpi_rectify_forward, gcpi_rectify_backward, NULL, 0, GCPI_OUT(0), \
      GCPI_OVER | GCP_FLAG_SIGN_OR_MASK | GCP_FLAG_BF16, 2, NULL }
static void gcpi_rectifier_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_call(c, op, op->row->name, 0, 1);
    if (op->kind == GCP_OP_LEAKY_RELU) gcpi_code_real(c, "slope", op->attributes.rectifier.slope, 0.01);
    if (op->kind != GCP_OP_CLAMP) return;
    gcpi_code_real(c, "low", op->attributes.rectifier.low, GCP_ZERO);
    gcpi_code_real(c, "high", op->attributes.rectifier.high, GCP_ZERO);
}
static void gcpi_rectifier_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->part = GCPI_PART_RECTIFIER;
    f->call = gcpi_rectifier_call;
}
#define GCPI_RECTIFIER(NAME, name) \
    static const gcpi_op_row gcpi_##name##_row = { GCP_OP_##NAME, GCPI_RECTIFIER_ROW(#name), gcpi_rectifier_facts };
GCPI_RECTIFIER(RELU, relu)
GCPI_RECTIFIER(LEAKY_RELU, leaky_relu)
GCPI_RECTIFIER(RELU6, relu6)
GCPI_RECTIFIER(CLAMP, clamp)

static gcp_tensor gcpi_rectify(const gcpi_op_row *row, gcp_tensor x, double low, double high, double slope,
                               const char *named, gcp_at at)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.rectifier.low = low; a.rectifier.high = high; a.rectifier.slope = slope;
    return gcpi_simple(row, &x, 1, &a, named, at);
}
GCPI_DEF gcp_tensor gcp_relu_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_rectify(&gcpi_relu_row, x, 0, HUGE_VAL, 0, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_leaky_relu_at(gcp_tensor x, gcp_leaky_relu_opts o)
{
    double slope = gcpi_option(o.slope, 0.01);
    /* backward takes the sign of x from y */
    if (!(slope >= 0) || !gcpi_finite((double)(gcp_real)slope))
        return gcpi_bad_option(x, o.at, "leaky_relu", ".slope", slope, "at least 0");
    return gcpi_rectify(&gcpi_leaky_relu_row, x, 0, HUGE_VAL, slope, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_relu6_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_rectify(&gcpi_relu6_row, x, 0, 6, 0, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_clamp_at(gcp_tensor x, gcp_clamp_opts o)
{
    if (!gcpi_number_given(x, o.at, "clamp", ".low", GCP_ZERO, &o.low) ||
        !gcpi_number_given(x, o.at, "clamp", ".high", GCP_ZERO, &o.high)) return gcpi_nil(x.tape);
    if (!((gcp_real)o.low < (gcp_real)o.high))
        return gcpi_bad_option(x, o.at, "clamp", ".low", o.low, "below .high; -HUGE_VAL and HUGE_VAL: no bound");
    return gcpi_rectify(&gcpi_clamp_row, x, o.low, o.high, 0, o.name, o.at);
}
