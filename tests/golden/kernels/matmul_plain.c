// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// armv8: VECTOR j 4
// cc -O2 -march=armv8-a -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x4_u __attribute__((vector_size(16), aligned(1), may_alias));

static inline __attribute__((always_inline))
f32x4 fma_f32x4(f32x4 a, f32x4 b, f32x4 c) {
#if __has_builtin(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#else
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        a[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    return a;
#endif
}

static inline __attribute__((always_inline))
f32x4 splat_f32x4(float x) {
    return (f32x4){x, x, x, x};
}

void r_5_8_9(const float *restrict A, const float *restrict B, float *restrict C) {
    for (int i = 0; i < 5; i++) {
        const int o0 = i * 9;
        const int o1 = i * 8;
        for (int j_4 = 0; j_4 < 2; j_4++) {
            f32x4 acc = (f32x4){0};
            const int o2 = j_4 * 4;
            for (int k = 0; k < 9; k++) {
                acc = fma_f32x4(splat_f32x4(A[o0 + k]), *(const f32x4_u *)(B + k * 8 + o2), acc);
            }
            *(f32x4_u *)(C + o1 + o2) = acc;
        }
    }
}
