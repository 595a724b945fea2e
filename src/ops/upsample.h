/* Upsampling by a whole factor. Bilinear: half-pixel centres, edges clamped. */
static int gcpi_upsample_shape(gcp_shape_call *s)
{
    int f = gcpi_attr(s->attributes)->upsample.factor;
    s->out[0] = s->in[0];
    if (s->in[0].d[1] > INT32_MAX / f || s->in[0].d[2] > INT32_MAX / f)
        return gcpi_refuse(s, "%s times .factor = %d", GCPI_SHAPE_TEXT(s->in[0]), f);
    s->out[0].d[1] *= f; s->out[0].d[2] *= f;
    s->out[0].rank = 4;
    return gcpi_all_real(s);
}
typedef struct gcpi_taps { int i[2]; gcp_real w[2]; } gcpi_taps;
static gcpi_taps gcpi_taps_of(int o, int factor, int size, int mode)
{
    gcpi_taps t;
    double x = mode == GCP_UPSAMPLING_BILINEAR ? GCPI_MAX(0.0, ((double)o + 0.5) / factor - 0.5) : (double)(o / factor);
    t.i[0] = (int)x;
    t.i[1] = GCPI_MIN(t.i[0] + 1, size - 1);
    t.w[1] = (gcp_real)(x - (double)t.i[0]);
    t.w[0] = 1 - t.w[1];
    return t;
}
GCPI_LOOP void gcpi_upsample_walk(const gcp_call *c, int image, const gcp_view *small, const gcp_view *large,
                                  int backward)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    for (int oy = 0; oy < large->shape.d[1]; oy++)
        for (int ox = 0; ox < large->shape.d[2]; ox++) {
            gcpi_taps ty = gcpi_taps_of(oy, a->upsample.factor, small->shape.d[1], a->upsample.mode),
                      tx = gcpi_taps_of(ox, a->upsample.factor, small->shape.d[2], a->upsample.mode);
            gcp_real *l = gcpi_row_out(large, gcpi_pixel(large->shape, image, oy, ox));
            if (!backward) memset(l, 0, (size_t)large->shape.d[3] * sizeof *l);
            for (int t = 0; t < 4; t++) {
                gcp_real w = ty.w[t >> 1] * tx.w[t & 1];
                gcp_real *s = gcpi_row_out(small, gcpi_pixel(small->shape, image, ty.i[t >> 1], tx.i[t & 1]));
                if (w == 0) continue;
                if (backward) for (int k = 0; k < large->shape.d[3]; k++) s[k] += w * l[k];
                else          for (int k = 0; k < large->shape.d[3]; k++) l[k] += w * s[k];
            }
        }
}
static void gcpi_upsample_image(const gcp_call *c, int image)
{
    gcpi_upsample_walk(c, image, &c->in[0], &c->out[0], 0);
}
static void gcpi_upsample_image_back(const gcp_call *c, int image)
{
    if (!c->din[0].accumulate) gcpi_zero_image(&c->din[0], image);
    gcpi_upsample_walk(c, image, &c->din[0], &c->dout[0], 1);
}
static void gcpi_upsample_forward(const gcp_call *c) { gcpi_images(c, c->in[0].shape.d[0], gcpi_upsample_image); }
static void gcpi_upsample_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_images(c, c->din[0].shape.d[0], gcpi_upsample_image_back);
}

static const gcpi_op_row gcpi_upsample_row = {
    GCP_OP_UPSAMPLE,
    { "upsample", gcpi_upsample_shape, gcpi_upsample_forward, gcpi_upsample_backward, NULL, 0, 0, GCPI_EACH_ONE, 1,
      NULL },
    NULL
};
GCPI_DEF gcp_tensor gcp_upsample_at(gcp_tensor x, gcp_upsample_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.upsample.factor = o.factor ? o.factor : 2;
    a.upsample.mode = (int)o.mode;
    if (a.upsample.factor < 1) return gcpi_bad_option(x, o.at, "upsample", ".factor", o.factor, "at least 1");
    if (o.mode != GCP_UPSAMPLING_NEAREST && o.mode != GCP_UPSAMPLING_BILINEAR)
        return gcpi_bad_option(x, o.at, "upsample", ".mode", (double)o.mode,
                               "GCP_UPSAMPLING_NEAREST or GCP_UPSAMPLING_BILINEAR");
    return gcpi_simple(&gcpi_upsample_row, &x, 1, &a, o.name, o.at);
}
