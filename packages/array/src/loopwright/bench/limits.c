/* What the machine allows: streams through memory and multiply-adds in registers.
 *
 * Compiled with OpenMP for the machine it runs on. Every function does one pass and returns a number
 * that depends on all of it, so that nothing is left out. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
typedef float vec __attribute__((vector_size(BYTES)));
#define LANES (BYTES / 4)

#if defined(__x86_64__)
#include <immintrin.h>
static void store_around(float *p, vec v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#else
    _mm_stream_ps(p, (__m128)v);
#endif
}
#else
static void store_around(float *p, vec v) { *(vec *)p = v; }
#endif

/* Each thread walks its part in `streams` places at once. */
#define WALK(body)                                                                                 \
    _Pragma("omp parallel for schedule(static) reduction(+ : total)") for (                        \
        size_t block = 0; block < n / 16384; block++) {                                            \
        const size_t first = block * 16384;                                                        \
        vec a = {0}, b = {0}, c = {0}, d = {0};                                                    \
        for (size_t i = first; i < first + 4096; i += LANES) {                                     \
            body                                                                                   \
        }                                                                                          \
        a += b + c + d;                                                                            \
        for (int l = 0; l < LANES; l++)                                                            \
            total += a[l];                                                                         \
    }

float read_pages(const float *x, size_t n) {
    float total = 0;
    WALK(a += *(const vec *)(x + i); b += *(const vec *)(x + i + 4096);
         c += *(const vec *)(x + i + 8192); d += *(const vec *)(x + i + 12288);)
    return total;
}

float read_plain(const float *x, size_t n) {
    float total = 0;
    WALK(const float *p = x + first + (i - first) * 4; a += *(const vec *)p;
         b += *(const vec *)(p + LANES); c += *(const vec *)(p + 2 * LANES);
         d += *(const vec *)(p + 3 * LANES);)
    return total;
}

float copy_plain(const float *x, float *y, size_t n) {
    float total = 0;
    WALK(const size_t o = first + (i - first) * 4; for (int s = 0; s < 4; s++) *(vec *)(
             y + o + s * LANES) = *(const vec *)(x + o + s * LANES);)
    return total;
}

float copy_around(const float *x, float *y, size_t n) {
    float total = 0;
    WALK(const size_t o = first + (i - first) * 4; for (int s = 0; s < 4; s++) store_around(
             y + o + s * LANES, *(const vec *)(x + o + s * LANES));)
    return total;
}

float copy_pages_around(const float *x, float *y, size_t n) {
    float total = 0;
    WALK(for (int s = 0; s < 4; s++)
             store_around(y + i + s * 4096, *(const vec *)(x + i + s * 4096));)
    return total;
}

/* 2 * 12 * LANES * n floating point operations a thread. */
float multiply_add(size_t n, int threads) {
    float total = 0;
    _Pragma("omp parallel for schedule(static) reduction(+ : total)") for (int t = 0; t < threads;
                                                                           t++) {
        vec acc[12], x, y;
        for (int l = 0; l < LANES; l++)
            x[l] = 0.5f + (float)t, y[l] = 1e-3f;
        for (int s = 0; s < 12; s++)
            acc[s] = y * (float)s;
        for (size_t i = 0; i < n; i++)
            for (int s = 0; s < 12; s++)
                acc[s] = acc[s] * x + y;
        for (int s = 0; s < 12; s++)
            for (int l = 0; l < LANES; l++)
                total += acc[s][l];
    }
    return total;
}
int lanes(void) { return LANES; }
