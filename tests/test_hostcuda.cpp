/* The emulation itself: each bug planted in planted.cu.h must be caught and its correct twin must pass, in every order;
   streams, graphs, memory, the matrix products. test_hostcuda bench measures instead. */
#define HOSTCUDA_IMPLEMENTATION
#ifdef __clang__
/* gcp_gpu has default initialisers in C++; a C program never sees that */
#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
#endif
#include "cublasLt.h"
#include "../gcp_cuda.h"
#include "../src/cuda/kernels/units.h"
#include "../src/cuda/kernels/windows.h"
#include "support/planted.cu.h"
#include "support/check.h"
#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>

static const int ORDERS = 6;
static const char *order(int i)                  /* forward, reverse, four shuffles */
{
    static char text[32];
    hostcuda_order(i < 2 ? i : 2, static_cast<unsigned>(i));
    snprintf(text, sizeof text, i == 0 ? "forward" : i == 1 ? "reverse" : "shuffled %d", i);
    return text;
}
static float *floats(size_t n)
{
    float *p = nullptr;
    CHECK_INT(cudaMalloc(&p, n * sizeof *p), ==, cudaSuccess);
    return p;
}
static float pseudo(size_t i) { return static_cast<float>(i * 7919 % 1009) / 504.5f - 1; }
static void fill(float *device_memory, size_t n, size_t seed)
{
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++) v[i] = pseudo(i + seed);
    CHECK_INT(cudaMemcpy(device_memory, v.data(), n * sizeof(float), cudaMemcpyHostToDevice), ==, cudaSuccess);
}
static std::vector<float> read(const float *device_memory, size_t n)
{
    std::vector<float> v(n);
    CHECK_INT(cudaMemcpy(v.data(), device_memory, n * sizeof(float), cudaMemcpyDeviceToHost), ==, cudaSuccess);
    return v;
}
static int differing(const std::vector<float> &a, const std::vector<float> &b)
{
    int n = 0;
    for (size_t i = 0; i < a.size(); i++) n += memcmp(&a[i], &b[i], sizeof(float)) != 0;
    return n;
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static void barriers(void)
{
    const int n = 50;
    const size_t count = n * n;
    float *a = floats(count), *b = floats(count), *c = floats(count), *line = floats(256), *out = floats(256);
    fill(a, count, 1);
    fill(b, count, 2);
    std::vector<float> ha = read(a, count), hb = read(b, count), want(count), shifted(256);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < n; k++) want[i * n + j] = fmaf(ha[i * n + k], hb[k * n + j], want[i * n + j]);
    int orders_wrong = 0;
    for (int i = 0; i < ORDERS; i++) {
        order(i);
        GCP_LAUNCH(tiled<true>, dim3(4, 4), dim3(TILE, TILE), 0, nullptr, a, b, c, n);
        CHECK_INT(differing(read(c, count), want), ==, 0);
        GCP_LAUNCH(tiled<false>, dim3(4, 4), dim3(TILE, TILE), 0, nullptr, a, b, c, n);
        CHECK_INT(differing(read(c, count), want), >, 100);

        fill(line, 256, 17 * static_cast<size_t>(i)); /* new numbers: what an earlier launch left is no help */
        std::vector<float> h = read(line, 256);
        for (size_t k = 1; k < 256; k++) shifted[k] = h[k - 1];
        GCP_LAUNCH(neighbour<false>, 1, 256, 0, nullptr, line, out);
        int wrong = differing(read(out, 256), shifted);
        if (i == 0) CHECK_INT(wrong, ==, 0);     /* forward alone would never see it */
        else { CHECK_INT(wrong, >, 20); orders_wrong += wrong > 0; }
        GCP_LAUNCH(neighbour<true>, 1, 256, 0, nullptr, line, out);
        CHECK_INT(differing(read(out, 256), shifted), ==, 0);
    }
    CHECK_INT(orders_wrong, ==, ORDERS - 1);
    for (float *p : {a, b, c, line, out}) CHECK_INT(cudaFree(p), ==, cudaSuccess);
}

template <int BYTES> static void async_copies(void)
{
    const size_t each = BYTES / 4, n = 256 * each;
    float *from = floats(n), *to = floats(n + 256);
    fill(from, n, 3);
    std::vector<float> want = read(from, n), got;
    std::fill(want.begin() + 200 * static_cast<int>(each), want.end(), 0.0f);
    for (int i = 0; i < ORDERS; i++) {
        int nans = 0;
        order(i);
        GCP_LAUNCH((staged<true, BYTES>), 1, 256, 0, nullptr, from, to, 200);
        got = read(to, n + 256);
        for (size_t t = 0; t < 256; t++) nans += isnan(got[n + t]);
        got.resize(n);
        CHECK_INT(differing(got, want), ==, 0);
        CHECK_INT(nans, ==, 256);                /* the second group had not been waited for */
        GCP_LAUNCH((staged<false, BYTES>), 1, 256, 0, nullptr, from, to, 200);
        got = read(to, n);
        nans = 0;
        for (float v : got) nans += isnan(v);
        CHECK_INT(nans, ==, static_cast<int>(n));
    }
    cudaFree(from);
    cudaFree(to);
}

/* The launch failed with such words, told once; and the context still works. */
static void failed(const char *kernel, std::vector<const char *> words)
{
    float *p = floats(256);
    CHECK_INT(cudaDeviceSynchronize(), ==, cudaErrorLaunchFailure);
    CHECK(strstr(hostcuda_message(), kernel) == hostcuda_message());
    for (const char *word : words)
        if (!strstr(hostcuda_message(), word)) {
            fprintf(stderr, "no '%s' in '%s'\n", word, hostcuda_message());
            CHECK(false);
        }
    CHECK_INT(cudaGetLastError(), ==, cudaErrorLaunchFailure);
    CHECK_INT(cudaGetLastError(), ==, cudaSuccess);
    GCP_LAUNCH(some_leave, 2, 64, 0, nullptr, p);
    CHECK_INT(cudaDeviceSynchronize(), ==, cudaSuccess);
    CHECK_NEAR(read(p, 33)[32], 35, 0);
    cudaFree(p);
}

static void deadlocks(void)
{
    float *p = floats(256);
    for (int i = 0; i < ORDERS; i++) {
        order(i);
        GCP_LAUNCH(two_barriers, 3, 64, 0, nullptr, p);
        failed("two_barriers, block (",
               { "different barriers", "__syncthreads, ", "planted.cu.h:7", "thread (", "0 exited" });
        GCP_LAUNCH(barrier_and_shuffle, 1, 64, 0, nullptr, p);
        failed("barrier_and_shuffle, block (0, 0, 0)",
               { "wait for each other", "a shuffle, ", "__syncthreads, ", "mask 0xffffffff" });
        GCP_LAUNCH(out_of_mask, 1, 32, 0, nullptr, p, 0xFFFFFFFEu);
        failed("out_of_mask", {"lane 0 is not in its own mask", "mask 0xfffffffe", "thread (0, 0, 0)"});
        GCP_LAUNCH(out_of_mask, 1, 32, 0, nullptr, p, 0xFFFFFFFFu);
        CHECK_INT(cudaDeviceSynchronize(), ==, cudaSuccess);
        GCP_LAUNCH(masks_differ, 1, 32, 0, nullptr, p);
        failed("masks_differ", { "wait for each other: thread (0, 0, 0)", "thread (16, 0, 0)", "mask 0x1ffff",
                                 "mask 0xffffffff", "0 exited" });
        GCP_LAUNCH(misaligned, 1, 1, 0, nullptr, p, p);
        failed("misaligned", {"misaligned addresses", "planted.cu.h:"});
        GCP_LAUNCH(one_mma, 1, 16, 0, nullptr, p, p, p);
        failed("one_mma", {"all 32 lanes"});
    }
    cudaFree(p);
}

static void configurations(void)
{
    float *p = floats(1 << 16);
    GCP_LAUNCH(add, 1, 2048, 0, nullptr, p, 1.0f, 1);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorInvalidConfiguration);
    GCP_LAUNCH(add, 0, 32, 0, nullptr, p, 1.0f, 1);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorInvalidConfiguration);
    GCP_LAUNCH(add, dim3(1, 65536), 32, 0, nullptr, p, 1.0f, 1);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorInvalidConfiguration);
    GCP_LAUNCH(dynamic_end<0>, 1, 1, 48 << 10, nullptr, p, 12 << 10);
    CHECK_INT(cudaGetLastError(), ==, cudaSuccess);
    GCP_LAUNCH(dynamic_end<0>, 1, 1, (48 << 10) + 4, nullptr, p, 12 << 10);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorInvalidValue);
    CHECK_INT(cudaFuncSetAttribute(dynamic_end<0>, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10), ==,
              cudaSuccess);
    CHECK_INT(cudaFuncSetAttribute(dynamic_end<0>, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1), ==,
              cudaErrorInvalidValue);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorInvalidValue);
    GCP_LAUNCH(dynamic_end<0>, 1, 1, 227 << 10, nullptr, p, 227 << 8);
    CHECK_INT(cudaGetLastError(), ==, cudaSuccess);
    GCP_LAUNCH(dynamic_end<0>, 1, 1, (227 << 10) + 4, nullptr, p, 1);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorInvalidValue);
    GCP_LAUNCH(uninitialised, 4, 1, 64, nullptr, p);
    for (float v : read(p, 4)) CHECK(isnan(v));
    unsigned long long before = hostcuda_launches();
    GCP_LAUNCH(nothing, 7, 33, 0, nullptr);
    CHECK_INT(cudaDeviceSynchronize(), ==, cudaSuccess);
    CHECK_INT(hostcuda_launches() - before, ==, 1);
    cudaFree(p);
}

static void places(void)
{
    const dim3 grid(3, 2, 5), block(5, 3, 2);
    const int threads = 30 * 30;
    int *seen, *next, host[threads], different = 0;
    CHECK_INT(cudaMalloc(&seen, sizeof host), ==, cudaSuccess);
    CHECK_INT(cudaMalloc(&next, sizeof *next), ==, cudaSuccess);
    std::set<std::vector<int>> orders;
    for (int i = 0; i < ORDERS; i++) {
        order(i);
        CHECK_INT(cudaMemset(seen, 0, sizeof host), ==, cudaSuccess);
        GCP_LAUNCH(where, grid, block, 0, nullptr, seen);
        CHECK_INT(cudaMemcpy(host, seen, sizeof host, cudaMemcpyDeviceToHost), ==, cudaSuccess);
        for (int v : host) different += v != 1;
        CHECK_INT(cudaMemset(next, 0, sizeof *next), ==, cudaSuccess);
        GCP_LAUNCH(order_of, 9, 100, 0, nullptr, seen, next);
        CHECK_INT(cudaMemcpy(host, seen, sizeof host, cudaMemcpyDeviceToHost), ==, cudaSuccess);
        orders.insert(std::vector<int>(host, host + threads));
        if (i == 0) for (int k = 0; k < threads; k++) CHECK_INT(host[k], ==, k);
        if (i == 1) for (int k = 0; k < threads; k++) CHECK_INT(host[k], ==, threads - 1 - k);
        std::set<int> all(host, host + threads);
        CHECK_INT(all.size(), ==, threads);
    }
    CHECK_INT(different, ==, 0);
    CHECK_INT(orders.size(), ==, ORDERS);
    cudaFree(seen);
    cudaFree(next);
}

static void warps(void)
{
    double *p, h[64 * 12];
    CHECK_INT(cudaMalloc(&p, sizeof h), ==, cudaSuccess);
    for (int i = 0; i < ORDERS; i++) {
        order(i);
        GCP_LAUNCH(collectives, 1, 64, 0, nullptr, p);
        CHECK_INT(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost), ==, cudaSuccess);
        for (int t = 0; t < 64; t++) {
            const double *r = h + t * 12;
            int l = t % 32, e = l / 8 * 8;
            double want[12] = { 7.5,
                                double(l ^ 3),
                                l + 4.0 < 32 ? l + 4.0 : l,
                                l < 2 ? l : l - 2.0,
                                e + 2.0,
                                l + 3 < e + 8 ? l + 3.0 : l,
                                0x49249249,
                                l < 16 ? 1.0 : 0.0,
                                l < 16 ? 1.0 : 0.0,
                                l < 16 ? 120.0 : 376.0,
                                l < 4 ? 3.0 : double(0xFFFFFFF0u),
                                l % 4 ? l - 1.0 : l };
            for (int k = 0; k < 12; k++) CHECK_NEAR(r[k], want[k], 0);
        }
    }
    cudaFree(p);
    float *f = floats(9), fh[9];
    unsigned *u, uh[8], uw[8] = {3, 0x3F800000u, 8, 31, 4, 16, 4, 5};
    float fw[9] = {10, 10, 0.25f, 5, 7, 3, 3.14159274f, 3.5f, 2.5f};
    CHECK_INT(cudaMalloc(&u, sizeof uh), ==, cudaSuccess);
    GCP_LAUNCH(numbers, 1, 1, 0, nullptr, f, u);
    CHECK_INT(cudaMemcpy(fh, f, sizeof fh, cudaMemcpyDefault), ==, cudaSuccess);
    CHECK_INT(cudaMemcpy(uh, u, sizeof uh, cudaMemcpyDefault), ==, cudaSuccess);
    for (int i = 0; i < 9; i++) CHECK_NEAR(fh[i], fw[i], 0);
    for (int i = 0; i < 8; i++) CHECK_INT(uh[i], ==, uw[i]);
    cudaFree(f);
    cudaFree(u);
}

static double tf32(float v) { return static_cast<double>(__uint_as_float(hostcuda_to_tf32(v))); }

static void products(void)
{
    CHECK_INT(hostcuda_to_tf32(1.0f), ==, 0x3F800000u);
    CHECK_INT(hostcuda_to_tf32(__uint_as_float(0x3F801000u)), ==, 0x3F802000u); /* a tie goes away from zero */
    CHECK_INT(hostcuda_to_tf32(__uint_as_float(0xBF801000u)), ==, 0xBF802000u);
    CHECK_INT(hostcuda_to_tf32(__uint_as_float(0x3F800FFFu)), ==, 0x3F800000u);
    float *a = floats(128), *b = floats(64), *d = floats(128);
    for (int i = 0; i < ORDERS; i++) {
        order(i);
        fill(a, 128, 5); fill(b, 64, 6 + static_cast<size_t>(i)); fill(d, 128, 7);
        std::vector<float> ha = read(a, 128), hb = read(b, 64), hd = read(d, 128), got;
        GCP_LAUNCH(one_mma, 1, 32, 0, nullptr, a, b, d);
        got = read(d, 128);
        for (size_t r = 0; r < 16; r++)
            for (size_t c = 0; c < 8; c++) {
                double want = static_cast<double>(hd[r * 8 + c]);
                for (size_t k = 0; k < 8; k++) want += tf32(ha[r * 8 + k]) * tf32(hb[k * 8 + c]);
                CHECK_NEAR(got[r * 8 + c], want, 1e-6);
            }
    }
    fill(a, 128, 5); fill(b, 64, 6); fill(d, 128, 7);
    const float odd = __uint_as_float(0x7F800001u);       /* a NaN whose payload lies in the bits that are not read */
    cudaMemcpy(a, &odd, sizeof odd, cudaMemcpyHostToDevice);
    GCP_LAUNCH(one_mma, 1, 32, 0, nullptr, a, b, d);
    std::vector<float> got = read(d, 128);
    for (size_t c = 0; c < 8; c++) CHECK(isnan(got[c]) && !isnan(got[8 + c]));
    for (float *p : {a, b, d}) cudaFree(p);
}

static double bf16(float v)
{
    return static_cast<double>(__uint_as_float(static_cast<unsigned>(hostcuda_to_bf16(v)) << 16));
}
static void products_of_halves(void)
{
    CHECK_INT(hostcuda_to_bf16(__uint_as_float(0x3F808000u)), ==, 0x3F80);      /* ties go to the even one */
    CHECK_INT(hostcuda_to_bf16(__uint_as_float(0x3F818000u)), ==, 0x3F82);
    CHECK_INT(hostcuda_to_bf16(__uint_as_float(0xFF7FFFFFu)), ==, 0xFF80);      /* above the largest: infinity */
    CHECK_INT(hostcuda_to_bf16(__uint_as_float(0x7F800001u)), ==, 0x7FFF);
    float *a = floats(256), *b = floats(128), *d = floats(128);
    for (int i = 0; i < ORDERS; i++) {
        order(i);
        for (int turned = 0; turned < 2; turned++) {
            int wrong = 0;
            fill(a, 256, 5); fill(b, 128, 6 + static_cast<size_t>(i)); fill(d, 128, 7);
            std::vector<float> ha = read(a, 256), hb = read(b, 128), hd = read(d, 128), got;
            if (turned) GCP_LAUNCH(mma_of_halves<true>, 1, 32, 0, nullptr, a, b, d);
            else GCP_LAUNCH(mma_of_halves<false>, 1, 32, 0, nullptr, a, b, d);
            got = read(d, 128);
            for (size_t e = 0; e < 128; e++) {
                double want = static_cast<double>(hd[e]);
                for (size_t k = 0; k < 16; k++) want += bf16(ha[e / 8 * 16 + k]) * bf16(hb[k * 8 + e % 8]);
                wrong += !(fabs(static_cast<double>(got[e]) - want) < 1e-5);
            }
            if (turned) CHECK_INT(wrong, ==, 0);
            else CHECK_INT(wrong, >, 100);
        }
        GCP_LAUNCH(half_a_warp, 1, 16, 0, nullptr, d);
        failed("half_a_warp", {"all 32 lanes"});
    }
    for (float *p : {a, b, d}) cudaFree(p);
}

/* A thread's pixel and channel, also where pixels are more than 32 bits count. */
static void spots(void)
{
    const gcp_shape huge = { 4, { 3, 65536, 65537, 4 } };
    for (int image = 0; image < 3; image++)
        for (int y = 0; y < 65536; y += 21845) {
            const size_t pixel = (static_cast<size_t>(image) * 65536 + static_cast<size_t>(y)) * 65537 + 65535;
            const gcpi_spot p = gcpi_spot_of<1>(pixel * 4 + 2, huge), q = gcpi_spot_of<4>(pixel, huge);
            CHECK(p.image == image && p.y == y && p.x == 65535 && p.c == 2);
            CHECK(q.image == image && q.y == y && q.x == 65535 && q.c == 0);
        }
    (void)gcpi_least; (void)gcpi_most;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* ldmatrix, and the wavefronts of what a warp copies and reads: 4 for 64 fours in two goes of 32 where no two meet in a
   bank. */
static void banks(void)
{
    float *from = floats(256), *to = floats(128);
    fill(from, 256, 5);
    std::vector<float> h = read(from, 256), want(128);
    for (size_t l = 0; l < 32; l++)
        for (size_t i = 0; i < 4; i++) want[4 * l + i] = h[(l / 4 + i % 2 * 8) * 16 + l % 4 + i / 2 * 4];
    for (int i = 0; i < ORDERS; i++) {
        order(i);
        hostcuda_count_banks();
        GCP_LAUNCH((tile_of_rows<16, true>), 2, 32, 0, nullptr, from, to);
        hostcuda_banks b = hostcuda_banks_counted();
        CHECK(b.stores == 16 && b.stores_least == 16 && b.reads == 8 && b.reads_least == 8);      /* of two blocks */
        CHECK_INT(differing(read(to, 128), want), ==, 0);
        hostcuda_count_banks();
        GCP_LAUNCH((tile_of_rows<20, false>), 1, 32, 0, nullptr, from, to);
        b = hostcuda_banks_counted();
        CHECK(b.stores == 16 && b.stores_least == 8 && b.reads == 4);        /* two rows of 16 at 20 meet */
        CHECK_INT(differing(read(to, 128), want), ==, 0);
        hostcuda_count_banks();
        GCP_LAUNCH((tile_of_rows<16, false>), 1, 32, 0, nullptr, from, to);
        b = hostcuda_banks_counted();
        CHECK(b.stores == 8 && b.reads == 16 && b.reads_least == 4);         /* four of eight rows do */
        CHECK_INT(differing(read(to, 128), want), ==, 0);
    }
    for (float *p : {from, to}) CHECK_INT(cudaFree(p), ==, cudaSuccess);
}

static void memory(void)
{
    size_t live = hostcuda_live_bytes(), available, total;
    int count = hostcuda_live_count();
    float *p, *q;
    hostcuda_capacity(live + 1000);
    CHECK_INT(cudaMemGetInfo(&available, &total), ==, cudaSuccess);
    CHECK_INT(available, ==, 1000);
    CHECK_INT(cudaMalloc(&p, 1001), ==, cudaErrorMemoryAllocation);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorMemoryAllocation);
    CHECK_INT(cudaMalloc(&p, 600), ==, cudaSuccess);
    CHECK_INT(cudaMalloc(&q, 401), ==, cudaErrorMemoryAllocation);
    CHECK_INT(cudaMalloc(&q, 400), ==, cudaSuccess);
    CHECK_INT(hostcuda_live_bytes() - live, ==, 1000);
    CHECK_INT(hostcuda_live_count() - count, ==, 2);
    CHECK_INT(reinterpret_cast<uintptr_t>(q) % 256, ==, 0);
    for (float v : read(p, 150)) CHECK(isnan(v));
    CHECK_INT(cudaFree(p), ==, cudaSuccess);
    CHECK_INT(cudaFree(p), ==, cudaErrorInvalidValue); /* twice */
    CHECK_INT(cudaFree(q), ==, cudaSuccess);
    CHECK_INT(cudaFree(nullptr), ==, cudaSuccess);
    CHECK_INT(hostcuda_high_bytes() - live, ==, 1000);
    hostcuda_capacity(0);
    for (int n = 1; n < 4; n++) {
        void *each[4];
        hostcuda_fail_nth(n);
        for (int i = 1; i < 4; i++)
            CHECK_INT(cudaMalloc(&each[i], 100), ==, i == n ? cudaErrorMemoryAllocation : cudaSuccess);
        for (int i = 1; i < 4; i++) CHECK_INT(cudaFree(each[i]), ==, cudaSuccess);
    }
    CHECK_INT(hostcuda_live_count(), ==, count);
}

static void directions(void)
{
    float host[16], *pinned, *p = floats(16);
    cudaGetLastError();
    CHECK_INT(cudaMallocHost(&pinned, 64), ==, cudaSuccess);
    CHECK_INT(cudaMemcpy(p, host, 64, cudaMemcpyDeviceToHost), ==, cudaErrorInvalidMemcpyDirection);
    CHECK_INT(cudaMemcpy(host, p, 64, cudaMemcpyHostToDevice), ==, cudaErrorInvalidMemcpyDirection);
    CHECK_INT(cudaMemcpy(p, host, 65, cudaMemcpyHostToDevice), ==, cudaErrorInvalidValue);
    CHECK_INT(cudaMemcpy(pinned, p, 64, cudaMemcpyDeviceToHost), ==, cudaSuccess);
    CHECK_INT(cudaMemset(host, 0, 64), ==, cudaErrorInvalidValue);
    CHECK_INT(cudaFree(pinned), ==, cudaErrorInvalidValue);
    CHECK_INT(cudaFreeHost(pinned), ==, cudaSuccess);
    CHECK_INT(cudaFree(p), ==, cudaSuccess);
    CHECK_TEXT(cudaGetErrorName(cudaGetLastError()), "cudaErrorInvalidValue");
}

#ifdef HOSTCUDA_ASAN
/* A child that launches it must die of the report, which holds this word. */
template <class F> static void dies(const char *word, F launch)
{
    int ends[2];
    CHECK_INT(pipe(ends), ==, 0);
    pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        launch();
        cudaDeviceSynchronize();
        _exit(0);
    }
    close(ends[1]);
    std::vector<char> text;
    char part[4096];
    for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;) text.insert(text.end(), part, part + n);
    text.push_back(0);
    int status = 0;
    waitpid(child, &status, 0);
    close(ends[0]);
    CHECK(status != 0);
    if (!strstr(text.data(), word)) fprintf(stderr, "no '%s' in:\n%s\n", word, text.data());
    CHECK(strstr(text.data(), word) != nullptr);
}
static void bounds(void)
{
    float *p = floats(33);
    dies("heap-buffer-overflow", [=] { GCP_LAUNCH(global_end<1>, 1, 32, 0, nullptr, p, 33); });
    dies("guarded", [=] { GCP_LAUNCH(shared_end<1>, 1, 32, 0, nullptr, p); });
    dies("heap-buffer-overflow", [=] { GCP_LAUNCH(dynamic_end<1>, 1, 1, 40, nullptr, p, 10); });
    dies("heap-use-after-free", [=] { cudaFree(p); GCP_LAUNCH(global_end<0>, 1, 32, 0, nullptr, p, 33); });
    GCP_LAUNCH(global_end<0>, 1, 32, 0, nullptr, p, 33);
    GCP_LAUNCH(shared_end<0>, 1, 32, 0, nullptr, p);
    GCP_LAUNCH(dynamic_end<0>, 1, 1, 40, nullptr, p, 10);
    CHECK_INT(cudaDeviceSynchronize(), ==, cudaSuccess);
    cudaFree(p);
}
#endif

/* ---- Streams and graphs ------------------------------------------------------------------------------------------ */

/* Three kernels in one stream, a copy of their result in another. */
static float across(bool wait, unsigned seed)
{
    static const float zeros[64] = {};
    float *p = floats(64), *q = floats(64);
    cudaStream_t one, two;
    cudaEvent_t event;
    hostcuda_streams(seed);
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    CHECK_INT(cudaMemcpyAsync(p, zeros, sizeof zeros, cudaMemcpyHostToDevice, one), ==, cudaSuccess);
    for (int i = 0; i < 3; i++) GCP_LAUNCH(add, 1, 64, 0, one, p, 1.0f, 64);
    cudaEventRecord(event, one);
    if (wait) CHECK_INT(cudaStreamWaitEvent(two, event, 0), ==, cudaSuccess);
    cudaMemcpyAsync(q, p, sizeof zeros, cudaMemcpyDeviceToDevice, two);
    CHECK_INT(cudaStreamSynchronize(two), ==, cudaSuccess);
    float got = read(q, 1)[0];
    CHECK_INT(cudaDeviceSynchronize(), ==, cudaSuccess);
    CHECK_INT(cudaEventQuery(event), ==, cudaSuccess);
    cudaEventDestroy(event);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
    cudaFree(p);
    cudaFree(q);
    hostcuda_streams(0);
    return got;
}

static void streams(void)
{
    int wrong = 0, wrong_with_wait = 0;
    for (unsigned seed = 1; seed <= 200; seed++) {
        wrong += !(across(false, seed) == 3);
        wrong_with_wait += !(across(true, seed) == 3);
    }
    CHECK_INT(wrong, >, 100);
    CHECK_INT(wrong_with_wait, ==, 0);
    CHECK_INT(across(false, 0) == 3, ==, 1);     /* in the order of issue, nothing is seen */
}

/* Blocking streams and the legacy stream follow each other. Pageable memory is read at once, pinned memory late. */
static void blocking_streams(void)
{
    float *p = floats(8), *pinned, pageable[8] = {1};
    cudaStream_t s;
    cudaEvent_t start, stop;
    float ms = -1;
    CHECK_INT(cudaMallocHost(&pinned, 32), ==, cudaSuccess);
    cudaStreamCreate(&s);
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (unsigned seed = 1; seed < 20; seed++) {
        hostcuda_streams(seed);
        pageable[0] = pinned[0] = 1;
        cudaEventRecord(start, s);
        cudaMemcpyAsync(p, pageable, 4, cudaMemcpyHostToDevice, s);
        cudaMemcpyAsync(p + 1, pinned, 4, cudaMemcpyHostToDevice, s);
        pageable[0] = pinned[0] = 2;
        GCP_LAUNCH(add, 1, 8, 0, nullptr, p, 1.0f, 8);
        cudaEventRecord(stop, s);
        CHECK_INT(cudaEventElapsedTime(&ms, start, stop), ==, cudaErrorNotReady);
        CHECK_INT(cudaStreamQuery(s), ==, cudaErrorNotReady);
        cudaMemcpyAsync(pageable, p, 8, cudaMemcpyDeviceToHost, s); /* returns when it is done */
        CHECK_NEAR(pageable[0], 2, 0);
        CHECK_NEAR(pageable[1], 3, 0);
        while (cudaEventQuery(stop) == cudaErrorNotReady) {}
        CHECK_INT(cudaEventElapsedTime(&ms, start, stop), ==, cudaSuccess);
        CHECK(ms >= 0);
        hostcuda_streams(0);
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    cudaStreamDestroy(s);
    CHECK_INT(cudaStreamSynchronize(s), ==, cudaErrorInvalidResourceHandle);
    CHECK_INT(cudaGetLastError(), ==, cudaErrorInvalidResourceHandle);
    cudaFreeHost(pinned);
    cudaFree(p);
}

/* Recorded on stream one, the copy of from on stream two beside it: to = from * by. */
static cudaGraphExec_t recorded(cudaStream_t one, cudaStream_t two, cudaEvent_t forked, cudaEvent_t joined, float *to,
                                float *from, float *copy, float *by, float *pinned)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    cudaStreamCaptureStatus status;
    CHECK_INT(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal), ==, cudaSuccess);
    cudaEventRecord(forked, one);
    CHECK_INT(cudaStreamWaitEvent(two, forked, 0), ==, cudaSuccess);
    CHECK_INT(cudaMemcpyAsync(copy, from, 128, cudaMemcpyDeviceToDevice, two), ==, cudaSuccess);
    CHECK_INT(cudaMemcpyAsync(by, pinned, 4, cudaMemcpyHostToDevice, one), ==, cudaSuccess);
    cudaEventRecord(joined, two);
    CHECK_INT(cudaStreamWaitEvent(one, joined, 0), ==, cudaSuccess);
    GCP_LAUNCH(scale, 1, 32, 0, one, to, copy, by, 32);
    CHECK_INT(cudaStreamIsCapturing(two, &status), ==, cudaSuccess);
    CHECK_INT(status, ==, cudaStreamCaptureStatusActive);
    CHECK_INT(cudaStreamEndCapture(one, &graph), ==, cudaSuccess);
    CHECK_INT(cudaStreamIsCapturing(two, &status), ==, cudaSuccess);
    CHECK_INT(status, ==, cudaStreamCaptureStatusNone);
    CHECK_INT(cudaGraphInstantiateWithFlags(&exec, graph, 0), ==, cudaSuccess);
    CHECK_INT(cudaGraphDestroy(graph), ==, cudaSuccess);
    return exec;
}

/* A graph recorded once and launched with other numbers each time. */
static void graphs(unsigned seed)
{
    float *from = floats(32), *to = floats(32), *by = floats(1), *copy = floats(32), *pinned;
    cudaStream_t one, two;
    cudaEvent_t forked, joined;
    unsigned long long launches = hostcuda_launches();
    hostcuda_streams(seed);
    cudaMallocHost(&pinned, 4);
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    cudaEventCreate(&forked);
    cudaEventCreate(&joined);
    cudaGraphExec_t exec = recorded(one, two, forked, joined, to, from, copy, by, pinned);
    cudaDeviceSynchronize();
    CHECK_INT(hostcuda_launches() - launches, ==, 0); /* recorded, not run */
    for (int i = 0; i < 5; i++) {
        fill(from, 32, static_cast<size_t>(i));
        *pinned = static_cast<float>(i + 2);
        CHECK_INT(cudaGraphLaunch(exec, i % 2 ? one : two), ==, cudaSuccess);
        CHECK_INT(cudaDeviceSynchronize(), ==, cudaSuccess);
        std::vector<float> got = read(to, 32);
        for (size_t k = 0; k < 32; k++) CHECK_NEAR(got[k], pseudo(k + static_cast<size_t>(i)) * *pinned, 0);
    }
    CHECK_INT(cudaGraphExecDestroy(exec), ==, cudaSuccess);
    cudaEventDestroy(forked);
    cudaEventDestroy(joined);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
    cudaFreeHost(pinned);
    for (float *p : {from, to, by, copy}) cudaFree(p);
    hostcuda_streams(0);
}

/* What a capture forbids: the call's error, and the capture is lost. */
template <class F> static void spoils(cudaError_t error, unsigned flags, cudaStreamCaptureMode mode, F call)
{
    cudaStream_t s;
    cudaGraph_t graph;
    cudaStreamCreateWithFlags(&s, flags);
    CHECK_INT(cudaStreamBeginCapture(s, mode), ==, cudaSuccess);
    CHECK_INT(call(s), ==, error);
    CHECK_INT(cudaStreamEndCapture(s, &graph), ==, error ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    CHECK((graph == nullptr) == (error != cudaSuccess));
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    cudaStreamDestroy(s);
}
static void captures(void)
{
    float *p = floats(8), host[8] = {};
    const auto local = cudaStreamCaptureModeThreadLocal, global = cudaStreamCaptureModeGlobal,
               relaxed = cudaStreamCaptureModeRelaxed;
    const cudaError_t never = cudaErrorStreamCaptureUnsupported;
    spoils(never, 1, local, [=](cudaStream_t s) { return cudaStreamSynchronize(s); });
    spoils(never, 1, relaxed, [=](cudaStream_t) { return cudaDeviceSynchronize(); });
    spoils(never, 1, local, [=](cudaStream_t) { void *q; return cudaMalloc(&q, 1); });
    spoils(cudaSuccess, 1, relaxed, [=](cudaStream_t) { return cudaFree(nullptr); });
    spoils(never, 1, global, [&](cudaStream_t) { return cudaMemcpy(p, host, 4, cudaMemcpyHostToDevice); });
    spoils(cudaErrorStreamCaptureImplicit, 0, local,
           [&](cudaStream_t) { return cudaMemcpy(p, host, 4, cudaMemcpyHostToDevice); });
    spoils(cudaErrorStreamCaptureImplicit, 0, local, [&](cudaStream_t) {
        GCP_LAUNCH(add, 1, 1, 0, nullptr, p, 1.0f, 1);
        return cudaGetLastError();
    });
    spoils(cudaSuccess, 1, local, [&](cudaStream_t) {
        GCP_LAUNCH(add, 1, 1, 0, nullptr, p, 1.0f, 1);
        return cudaGetLastError();
    });
    spoils(cudaErrorStreamCaptureIsolation, 1, local, [](cudaStream_t s) {
        cudaEvent_t e;
        cudaEventCreate(&e);
        cudaEventRecord(e, nullptr);             /* before the capture, as it were */
        cudaError_t error = cudaStreamWaitEvent(s, e, 0);
        cudaEventDestroy(e);
        return error;
    });
    cudaFree(p);
}
static void unjoined(void)                           /* a stream that joined and never came back */
{
    const auto relaxed = cudaStreamCaptureModeRelaxed;
    float *p = floats(8);
    cudaStream_t one, two;
    cudaEvent_t e;
    cudaGraph_t graph;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    cudaEventCreate(&e);
    cudaStreamBeginCapture(one, relaxed);
    cudaEventRecord(e, one);
    CHECK_INT(cudaEventQuery(e), ==, cudaErrorCapturedEvent);
    cudaStreamEndCapture(one, &graph);
    cudaStreamBeginCapture(one, relaxed);
    cudaEventRecord(e, one);
    cudaStreamWaitEvent(two, e, 0);
    GCP_LAUNCH(add, 1, 1, 0, two, p, 1.0f, 1);
    CHECK_INT(cudaStreamEndCapture(one, &graph), ==, cudaErrorStreamCaptureUnjoined);
    CHECK_INT(cudaStreamEndCapture(one, &graph), ==, cudaErrorIllegalState);
    CHECK_INT(cudaStreamBeginCapture(nullptr, relaxed), ==, cudaErrorStreamCaptureUnsupported);
    cudaGetLastError();
    GCP_LAUNCH(add, 1, 1, 0, two, p, 1.0f, 1);
    CHECK_INT(cudaStreamSynchronize(two), ==, cudaSuccess);
    cudaEventDestroy(e);
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);
    cudaFree(p);
}

/* ---- cuBLAS ------------------------------------------------------------------------------------------------------ */

enum { GEMM_M = 19, GEMM_N = 13, GEMM_K = 37, GEMM_LD = 41, GEMM_SIZE = GEMM_LD * GEMM_LD };
static const float alpha = 1.5f, beta = -0.5f, zero = 0;

static void gemms(cublasHandle_t blas, float *a, float *b, float *c, float *work)
{
    const int m = GEMM_M, n = GEMM_N, k = GEMM_K, ld = GEMM_LD;
    for (int way = 0; way < 16; way++) {
        bool ta = way & 1, tb = way & 2, fast = way & 4;
        const float *add = way & 8 ? &beta : &zero;
        fill(a, ld * ld, 1); fill(b, ld * ld, 2); fill(c, ld * ld, 3); fill(work, 256, 4);
        if (*add == 0.0f) cudaMemset(c, 0xFF, ld * ld * 4); /* not read where beta is 0 */
        std::vector<float> ha = read(a, ld * ld), hb = read(b, ld * ld), hc = read(c, ld * ld), got;
        CHECK_INT(cublasSetWorkspace(blas, work, 1024), ==, CUBLAS_STATUS_SUCCESS);
        CHECK_INT(cublasGemmEx(blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha, a,
                               CUDA_R_32F, ld, b, CUDA_R_32F, ld, add, c, CUDA_R_32F, ld,
                               fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                  ==, CUBLAS_STATUS_SUCCESS);
        got = read(c, ld * ld);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double sum = 0;
                for (int l = 0; l < k; l++) {
                    float x = ha[static_cast<size_t>(ta ? i * ld + l : l * ld + i)],
                          y = hb[static_cast<size_t>(tb ? l * ld + j : j * ld + l)];
                    sum += fast ? tf32(x) * tf32(y) : static_cast<double>(x) * static_cast<double>(y);
                }
                size_t at = static_cast<size_t>(j * ld + i);
                CHECK_NEAR(got[at], 1.5 * sum + (*add == 0.0f ? 0.0 : -0.5 * static_cast<double>(hc[at])), 1e-5);
                hc[at] = got[at];
            }
        CHECK_INT(differing(got, hc), ==, 0);    /* nothing else is written */
        for (float v : read(work, 256)) CHECK(isnan(v)); /* who keeps numbers in the workspace loses them */
    }
}

static void batched_gemms(cublasHandle_t blas, float *a, float *b, float *c)
{
    const int m = GEMM_M, n = GEMM_N, k = GEMM_K, ld = GEMM_LD;
    fill(a, ld * ld * 2, 1); fill(b, ld * ld * 2, 2);
    CHECK_INT(cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a, ld, ld * ld, b, ld, ld * ld,
                                        &zero, c, ld, ld * ld, 2),
              ==, CUBLAS_STATUS_SUCCESS);
    std::vector<float> both = read(c, ld * ld * 2), second(both.begin() + ld * ld, both.end()), again;
    cudaMemset(c, 0xFF, ld * ld * 4);
    CHECK_INT(
        cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a + ld * ld, ld, b + ld * ld, ld, &zero, c, ld),
        ==, CUBLAS_STATUS_SUCCESS);
    again = read(c, ld * ld);
    for (int j = 0; j < n; j++)
        CHECK(!memcmp(&again[static_cast<size_t>(j * ld)], &second[static_cast<size_t>(j * ld)], m * sizeof(float)));
}

/* cuBLASLt: c = a b of so many rows, columns, and terms a sum, with an algorithm chosen for leading dimensions of
   `chosen`, run with those of `ld`. */
struct lt_product {
    cublasLtHandle_t handle;
    float *a, *b, *c;
    int m, n, k, chosen, ld, offset;
    uint32_t alignment;
};
static void lt_layouts(const lt_product &p, int ld, cublasLtMatrixLayoutOpaque_t *l)
{
    const int rows[] = { p.m, p.k, p.m }, columns[] = { p.k, p.n, p.n };
    for (int i = 0; i < 3; i++)
        cublasLtMatrixLayoutInit(&l[i], CUDA_R_32F, static_cast<uint64_t>(rows[i]), static_cast<uint64_t>(columns[i]),
                                 ld ? ld : rows[i]);
}
static cublasStatus_t lt_run(const lt_product &p)
{
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatrixLayoutOpaque_t l[3];
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    cublasLtMatmulDescInit(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulPreferenceInit(&wish);
    for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; i++)
        cublasLtMatmulPreferenceSetAttribute(&wish, static_cast<cublasLtMatmulPreferenceAttributes_t>(i), &p.alignment,
                                             sizeof p.alignment);
    lt_layouts(p, p.chosen, l);
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(p.handle, &desc, &l[0], &l[1], &l[2], &l[2], &wish, 1, &best,
                                                           &found);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    lt_layouts(p, p.ld, l);
    const float one = 1, none = 0;
    return cublasLtMatmul(p.handle, &desc, &one, p.a + p.offset, &l[0], p.b, &l[1], &none, p.c, &l[2], p.c, &l[2],
                          &best.algo, nullptr, 0, nullptr);
}
/* The order of sums is the algorithm's: chosen for dense matrices, the bits are the same however they lie; chosen for
   others, or for another alignment, they are not. What it needs of the alignment is checked. */
static void lt_gemms(cublasHandle_t blas, float *a, float *b, float *c)
{
    enum { M = 8, N = 4, K = 32, LD = 36 };
    std::vector<float> first, spread(LD * K), other(LD * N);
    lt_product p = { reinterpret_cast<cublasLtHandle_t>(blas), a, b, c, M, N, K, 0, 0, 0, 16 };
    fill(a, M * K, 1); fill(b, K * N, 2);
    std::vector<float> ha = read(a, M * K), hb = read(b, K * N);
    CHECK_INT(lt_run(p), ==, CUBLAS_STATUS_SUCCESS);
    first = read(c, M * N);
    for (size_t j = 0; j < K; j++) std::copy_n(&ha[j * M], M, &spread[j * LD]);
    for (size_t j = 0; j < N; j++) std::copy_n(&hb[j * K], K, &other[j * LD]);
    cudaMemcpy(a, spread.data(), spread.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(b, other.data(), other.size() * sizeof(float), cudaMemcpyHostToDevice);
    p.ld = LD;
    auto differs = [&] {
        int count = 0;
        CHECK_INT(lt_run(p), ==, CUBLAS_STATUS_SUCCESS);
        const std::vector<float> got = read(c, LD * N);
        for (size_t j = 0; j < N; j++) for (size_t i = 0; i < M; i++) count += got[j * LD + i] != first[j * M + i];
        return count;
    };
    CHECK_INT(differs(), ==, 0);
    p.chosen = LD;
    CHECK_INT(differs(), >, 0);
    p.chosen = 0; p.alignment = 4;
    CHECK_INT(differs(), >, 0);
    p.offset = 1;
    CHECK_INT(lt_run(p), ==, CUBLAS_STATUS_SUCCESS);      /* needs no more than a float */
    p.alignment = 16;
    CHECK_INT(lt_run(p), ==, CUBLAS_STATUS_INVALID_VALUE);
    p.offset = 0; p.ld = LD + 1;
    CHECK_INT(lt_run(p), ==, CUBLAS_STATUS_INVALID_VALUE);
    p.ld = LD;
    (void)cudaSetDevice(77);                              /* an error of the application's */
    CHECK_INT(lt_run(p), ==, CUBLAS_STATUS_EXECUTION_FAILED);
    (void)cudaGetLastError();
}

/* Destroys blas. */
static void refused_gemms(cublasHandle_t blas, float *a, float *b, float *c, float *work)
{
    auto status = [&](int M, int N, int K, int lda, int ldb, int ldc) {
        return cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, M, N, K, &alpha, a, lda, b, ldb, &zero, c, ldc);
    };
    CHECK_INT(status(8, 4, 2, 8, 4, 8), ==, CUBLAS_STATUS_SUCCESS);
    CHECK_INT(status(8, 4, 2, 7, 4, 8), ==, CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(status(8, 4, 2, 8, 3, 8), ==, CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(status(8, 4, 2, 8, 4, 7), ==, CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(status(8, -1, 2, 8, 4, 8), ==, CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(cublasSetWorkspace(blas, work + 1, 8), ==, CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, a, CUDA_R_16F, 1, b, CUDA_R_32F, 1, &zero,
                           c, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
              ==, CUBLAS_STATUS_NOT_SUPPORTED);
    CHECK_INT(cublasDestroy(blas), ==, CUBLAS_STATUS_SUCCESS);
    CHECK_INT(status(8, 4, 2, 8, 4, 8), ==, CUBLAS_STATUS_NOT_INITIALIZED);
}

static void blas(void)
{
    float *a = floats(GEMM_SIZE * 2), *b = floats(GEMM_SIZE * 2), *c = floats(GEMM_SIZE * 2), *work = floats(256);
    cublasHandle_t handle;
    cublasCreate(&handle);
    gemms(handle, a, b, c, work);
    lt_gemms(handle, a, b, c);
    batched_gemms(handle, a, b, c);
    refused_gemms(handle, a, b, c, work);
    for (float *p : {a, b, c, work}) cudaFree(p);
}

/* ---- Several host threads ---------------------------------------------------------------------------------------- */

static void host_threads(void)
{
    std::vector<std::thread> all;
    int wrong[4] = {};
    for (int t = 0; t < 4; t++)
        all.emplace_back([t, &wrong] {
            cudaStream_t s;
            float *p, h[256], in[256];
            cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
            cudaMalloc(&p, 2 * sizeof h);
            for (size_t i = 0; i < 256; i++) in[i] = pseudo(i + static_cast<size_t>(t));
            for (int i = 0; i < 50; i++) {
                cudaMemcpyAsync(p, in, sizeof in, cudaMemcpyHostToDevice, s);
                GCP_LAUNCH(neighbour<true>, 1, 256, 0, s, p, p + 256);
                cudaMemcpyAsync(h, p + 256, sizeof h, cudaMemcpyDeviceToHost, s);
                if (cudaStreamSynchronize(s) != cudaSuccess) wrong[t]++;
                for (int k = 1; k < 256; k++) wrong[t] += memcmp(&h[k], &in[k - 1], sizeof *h) != 0;
            }
            cudaFree(p);
            cudaStreamDestroy(s);
        });
    for (std::thread &t : all) t.join();
    for (int w : wrong) CHECK_INT(w, ==, 0);
}

/* ---- Speed ------------------------------------------------------------------------------------------------------- */

template <class F> static double seconds(F work)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        auto start = std::chrono::steady_clock::now();
        work();
        cudaDeviceSynchronize();
        best = fmin(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}
static void bench(void)
{
    const int n = 512;
    const size_t count = n * n;
    const double flops = 2e-9 * n * n * n;
    const float one = 1, zero = 0;
    float *a = floats(count), *b = floats(count), *c = floats(count);
    cublasHandle_t blas;
    cublasCreate(&blas);
    fill(a, count, 1);
    fill(b, count, 2);
    for (int i = 0; i < 3; i++) {
        printf("%s: ", order(i));
        printf("elements %.0f M/s, ", 1e-6 * 4e6 / seconds([=] {
                                          GCP_LAUNCH(add, 4000, 256, 0, nullptr, a, 0.0f, 4);
                                          GCP_LAUNCH(add, 64, 256, 0, nullptr, a, 0.0f, n * n);
                                      }));
        printf("tiled %.2f GFLOP/s, ",
               flops /
                   seconds([=] { GCP_LAUNCH(tiled<true>, dim3(32, 32), dim3(TILE, TILE), 0, nullptr, a, b, c, n); }));
        printf("TF32 mma and cp.async %.2f GFLOP/s\n",
               flops / seconds([=] {
                   GCP_LAUNCH(mma_gemm, dim3(4, 4), 256, 2 * (128 * 20 + 16 * 136) * 4, nullptr, a, b, c, n);
               }));
    }
    printf("cublasSgemm %.1f GFLOP/s\n",
           flops /
               seconds([=] { cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n); }));
    cublasDestroy(blas);
    for (float *p : {a, b, c}) cudaFree(p);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "bench")) { bench(); return 0; }
    barriers();
    async_copies<4>();
    async_copies<8>();
    async_copies<16>();
    deadlocks();
    configurations();
    places();
    warps();
    products();
    products_of_halves();
    spots();
    banks();
    memory();
    directions();
#ifdef HOSTCUDA_ASAN
    bounds();
#endif
    streams();
    blocking_streams();
    for (unsigned seed = 0; seed < 10; seed++) graphs(seed);
    captures();
    unjoined();
    blas();
    host_threads();
    CHECK_INT(hostcuda_live_count(), ==, 0);
    CHECK_INT(hostcuda_live_handles(), ==, 0);
    return check_done();
}
