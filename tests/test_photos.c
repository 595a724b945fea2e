/* The photographs of examples/finetune.c: files of three kinds and their broken copies, crops resized as
   PIL does. */
#include "gcp.h"
#include "gcp_io.h"
#include "photos.h"
#include "support/check.h"

static unsigned char bmp[54 + 4 * 8 * 3];
static void put(int at, int32_t x)
{
    for (int i = 0; i < 4; i++) bmp[at + i] = (unsigned char)((uint32_t)x >> 8 * i);
}
/* 5 x 3 pixels, of bytes that count up. */
static size_t bmp_make(int bytes, int height)
{
    const int row = (5 * bytes + 3) / 4 * 4;
    memset(bmp, 0, sizeof bmp);
    memcpy(bmp, "BM", 2);
    put(10, 54);
    put(18, 5);
    put(22, height);
    bmp[28] = (unsigned char)(8 * bytes);
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 5; x++)
            for (int c = 0; c < bytes; c++) bmp[54 + y * row + x * bytes + c] = (unsigned char)(y * 50 + x * 5 + c);
    return (size_t)(54 + 3 * row);
}
static void bitmaps(void)
{
    for (int bytes = 3; bytes <= 4; bytes++)
        for (int up = 0; up < 2; up++) {
            const size_t size = bmp_make(bytes, up ? 3 : -3);
            photo p = photo_decode(bmp, size);
            CHECK(p.pixels && p.width == 5 && p.height == 3);
            if (!p.pixels) continue;
            for (int i = 0; i < 45; i++) {
                const int y = i / 15, line = up ? 2 - y : y;
                CHECK_INT(p.pixels[i], ==, line * 50 + i % 15 / 3 * 5 + 2 - i % 3);     /* blue comes first there */
            }
            free(p.pixels);
            for (size_t cut = 0; cut < size; cut++) {
                p = photo_bmp(bmp, cut);
                CHECK(!p.pixels);
                free(p.pixels);
            }
        }
    put(22, INT32_MIN);
    CHECK(!photo_bmp(bmp, sizeof bmp).pixels);
    bmp_make(3, 3);
    put(10, -4);
    CHECK(!photo_bmp(bmp, sizeof bmp).pixels);
}
static photo pnm(const char *text) { return photo_decode((const unsigned char *)text, strlen(text)); }
static void portable_maps(void)
{
    photo p = pnm("P6 # a comment 9\n2 1\n#\n255\nabcdef");
    CHECK(p.pixels && p.width == 2 && p.height == 1 && !memcmp(p.pixels, "abcdef", 6));
    free(p.pixels);
    p = pnm("P5\n1 2 127\n@ ");
    CHECK(p.pixels && p.pixels[0] == 128 && p.pixels[2] == 128 && p.pixels[3] == 64);
    free(p.pixels);
    static const char *const broken[] = { "P6", "P6 2", "P6 2 1 255", "P6 2 1 255 abcde", "P5 0 1 255 a",
                                          "P5 -1 1 255 a", "P5 1 1 256 ab", "P5 1 1 0 a", "P6 x",
                                          "P5 99999999 99999999 255 a", "P6 #" };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        CHECK(!photo_pnm((const unsigned char *)broken[i], strlen(broken[i])).pixels);
}

/* A picture of 7 x 5, made of numbers, and what PIL makes of it: Image.resize((3, 2), BILINEAR, box) of the red channel
   in mode F. */
static photo numbers(void)
{
    photo p = photo_new(7, 5);
    for (int i = 0; p.pixels && i < 7 * 5 * 3; i++) p.pixels[i] = (unsigned char)(i / 3 * 37 % 101 + i % 3);
    return p;
}
static void crops(void)
{
    static const float smaller[] = { 57.511696f, 38.602341f, 52.450294f, 56.336258f, 51.602341f, 49.207603f };
    static const float larger[] = { 44.250000f, 50.125000f, 56.000000f, 36.625000f,
                                    72.750000f, 53.375000f, 34.000000f, 39.875000f,
                                    76.000000f, 56.625000f, 37.250000f, 43.125000f,
                                    54.000000f, 59.875000f, 65.750000f, 46.375000f };
    float out[3 * 4 * 4];
    photo p = numbers();
    CHECK(p.pixels != NULL);
    if (!p.pixels) return;
    const crop most = { 1.5, 0.25, 4.5, 0 }, part = { 2.25, 1.5, 2, 0 }, mirrored = { 2.25, 1.5, 2, 1 };
    CHECK(photo_resize(&p, most, 2, 3, out));
    for (int i = 0; i < 6; i++) CHECK_NEAR(out[3 * i], smaller[i], 1e-4);
    for (int i = 0; i < 6; i++) CHECK_NEAR(out[3 * i + 2], smaller[i] + 2, 1e-4);
    CHECK(photo_resize(&p, part, 4, 4, out));
    for (int i = 0; i < 16; i++) CHECK_NEAR(out[3 * i], larger[i], 1e-4);
    CHECK(photo_resize(&p, mirrored, 4, 4, out));
    for (int i = 0; i < 16; i++) CHECK_NEAR(out[3 * i], larger[i / 4 * 4 + 3 - i % 4], 1e-4);
    const view grey = { 2, 2, 1, { 0.5 }, { 0.25 } };
    float one[4];
    memset(p.pixels, 255, 7 * 5 * 3);
    CHECK(photo_view(&p, crop_middle(&p), &grey, one));
    for (int i = 0; i < 4; i++) CHECK_NEAR(one[i], 2, 1e-6);
    for (uint64_t i = 0; i < 200; i++) {
        const crop c = crop_anywhere(&p, 3, i);
        CHECK(c.side >= 3 && c.side <= 5 && c.x >= 0 && c.y >= 0 && c.x + c.side <= 7 && c.y + c.side <= 5);
        CHECK(photo_view(&p, c, &grey, one) && fabs((double)one[3] - 2) < 1e-5);
    }
    free(p.pixels);
}

int main(void)
{
    bitmaps();
    portable_maps();
    crops();
    return check_done();
}
