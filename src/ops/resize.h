/* Images of another size: resize, and upsample by a whole factor. Bilinear: half-pixel centres, edges clamped; or
   corners on corners. */
static int gcpi_resize_shape(gcp_shape_call *s)
{
    const gcpi_attributes *a = gcpi_attr(s->attributes);
    const int64_t f = a->resize.factor;
    const int64_t h = f ? s->in[0].d[1] * f : a->resize.h, w = f ? s->in[0].d[2] * f : a->resize.w;
    s->out[0] = s->in[0];
    if (h > INT32_MAX || w > INT32_MAX)
        return gcpi_refuse(s, "%s times .factor = %d", GCPI_SHAPE_TEXT(s->in[0]), (int)f);
    s->out[0].d[1] = (int)h; s->out[0].d[2] = (int)w;
    s->out[0].rank = 4;
    return gcpi_all_real(s);
}
/* The one or two rows (or columns) of `from` that row `o` of `to` is made of, and their weights. */
typedef struct gcpi_taps { int i[2]; gcp_real w[2]; } gcpi_taps;
static gcpi_taps gcpi_taps_of(const gcpi_attributes *a, int o, int from, int to)
{
    gcpi_taps t;
    double x = (double)((int64_t)o * from / to);
    if (a->resize.mode == GCP_UPSAMPLING_BILINEAR)
        x = !a->resize.corners ? GCPI_MAX(0.0, ((double)o + 0.5) * from / to - 0.5)
            : to > 1           ? (double)o * (from - 1) / (to - 1)
                               : 0;
    t.i[0] = (int)x;
    t.i[1] = GCPI_MIN(t.i[0] + 1, from - 1);
    t.w[1] = (gcp_real)(x - (double)t.i[0]);
    t.w[0] = 1 - t.w[1];
    return t;
}
GCPI_LOOP void gcpi_resize_walk(const gcp_call *c, int image, const gcp_view *from, const gcp_view *to,
                                  int backward)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    for (int oy = 0; oy < to->shape.d[1]; oy++)
        for (int ox = 0; ox < to->shape.d[2]; ox++) {
            gcpi_taps ty = gcpi_taps_of(a, oy, from->shape.d[1], to->shape.d[1]),
                      tx = gcpi_taps_of(a, ox, from->shape.d[2], to->shape.d[2]);
            gcp_real *y = gcpi_row_out(to, gcpi_pixel(to->shape, image, oy, ox));
            if (!backward) memset(y, 0, (size_t)to->shape.d[3] * sizeof *y);
            for (int t = 0; t < 4; t++) {
                gcp_real w = ty.w[t >> 1] * tx.w[t & 1];
                gcp_real *x = gcpi_row_out(from, gcpi_pixel(from->shape, image, ty.i[t >> 1], tx.i[t & 1]));
                if (w == 0) continue;
                if (backward) for (int k = 0; k < to->shape.d[3]; k++) x[k] += w * y[k];
                else          for (int k = 0; k < to->shape.d[3]; k++) y[k] += w * x[k];
            }
        }
}
static void gcpi_resize_image(const gcp_call *c, int image)
{
    gcpi_resize_walk(c, image, &c->in[0], &c->out[0], 0);
}
static void gcpi_resize_image_back(const gcp_call *c, int image)
{
    if (!c->din[0].accumulate) gcpi_zero_image(&c->din[0], image);
    gcpi_resize_walk(c, image, &c->din[0], &c->dout[0], 1);
}
static void gcpi_resize_forward(const gcp_call *c)
{
    gcpi_image_parts(c, c->in[0].shape, c->out[0].shape, gcpi_resize_image, gcpi_part_task);
}
static void gcpi_resize_backward(const gcp_call *c)
{
    if (c->din[0].data)
        gcpi_image_parts(c, c->in[0].shape, c->out[0].shape, gcpi_resize_image_back, gcpi_part_task);
}

static void gcpi_resize_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_call(c, op, op->row->name, 0, 1);
    gcpi_code_int(c, "factor", op->attributes.resize.factor, 0);
    gcpi_code_int(c, "height", op->attributes.resize.h, 0);
    gcpi_code_int(c, "width", op->attributes.resize.w, 0);
    if (op->attributes.resize.mode == GCP_UPSAMPLING_BILINEAR) gcpi_code_word(c, "mode", "GCP_UPSAMPLING_BILINEAR");
    gcpi_code_int(c, "corners", op->attributes.resize.corners, 0);
}
static void gcpi_resize_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->call = gcpi_resize_call; }
#define GCPI_RESIZE_ROW(NAME, name)                                                                                 \
    static const gcpi_op_row gcpi_##name##_row = {                                                                  \
        GCP_OP_##NAME,                                                                                              \
        { #name, gcpi_resize_shape, gcpi_resize_forward, gcpi_resize_backward, gcpi_parts_cost, 0, 0,    \
          GCPI_EACH_ONE | GCP_FLAG_BF16, 1, NULL },                                                                 \
        gcpi_resize_facts                                                                                          \
    };
GCPI_RESIZE_ROW(UPSAMPLE, upsample)
GCPI_RESIZE_ROW(RESIZE, resize)

static gcp_tensor gcpi_resize(const gcpi_op_row *row, gcp_tensor x, const gcpi_attributes *a, const char *named,
                              gcp_at at)
{
    if (a->resize.mode == GCP_UPSAMPLING_NEAREST || a->resize.mode == GCP_UPSAMPLING_BILINEAR)
        return gcpi_simple(row, &x, 1, a, named, at);
    return gcpi_bad_option(x, at, row->op.name, ".mode", a->resize.mode,
                           "GCP_UPSAMPLING_NEAREST or GCP_UPSAMPLING_BILINEAR");
}
GCPI_DEF gcp_tensor gcp_upsample_at(gcp_tensor x, gcp_upsample_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.resize.factor = o.factor ? o.factor : 2;
    a.resize.mode = (int)o.mode;
    if (a.resize.factor < 1) return gcpi_bad_option(x, o.at, "upsample", ".factor", o.factor, "at least 1");
    return gcpi_resize(&gcpi_upsample_row, x, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_resize_at(gcp_tensor x, gcp_resize_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.resize.h = o.height; a.resize.w = o.width;
    a.resize.mode = (int)o.mode; a.resize.corners = o.corners != 0;
    if (o.height < 1) return gcpi_bad_option(x, o.at, "resize", ".height", o.height, "at least 1");
    if (o.width < 1) return gcpi_bad_option(x, o.at, "resize", ".width", o.width, "at least 1");
    if (o.corners && o.mode == GCP_UPSAMPLING_NEAREST)
        return gcpi_bad_option(x, o.at, "resize", ".corners", o.corners, "it belongs to GCP_UPSAMPLING_BILINEAR");
    return gcpi_resize(&gcpi_resize_row, x, &a, o.name, o.at);
}
