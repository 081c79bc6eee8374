// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// x86-64-v3: TILE j 32 · UPCAST i 3 · VECTOR j 8 · UPCAST j/8 2 · ORDER j/32 i/3 j/16 k · STAGE B @j/32 layout j/16,k,j/8,j · PREFETCH C
// cc -O2 -march=x86-64-v3 -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
typedef float f32x8_u __attribute__((vector_size(32), aligned(1), may_alias));
typedef float f32x8 __attribute__((vector_size(32)));

static inline __attribute__((always_inline))
f32x8 splat_f32x8(float x) {
    return (f32x8){x, x, x, x, x, x, x, x};
}

static inline __attribute__((always_inline))
f32x8 fma_f32x8(f32x8 a, f32x8 b, f32x8 c) {
#if __has_builtin(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#else
    return __builtin_ia32_vfmaddps256(a, b, c);
#endif
}

void r_12_64_40(const float *restrict A, const float *restrict B, float *restrict C) {
    _Alignas(64) float B_tile[1280];
    for (int j_32 = 0; j_32 < 2; j_32++) {
        const int o0 = j_32 * 32;
        for (int j_16 = 0; j_16 < 2; j_16++) {
            const int o1 = j_16 * 16;
            const int o2 = j_16 * 640;
            for (int k = 0; k < 40; k++) {
                const int o3 = k * 64 + o0 + o1;
                const int o4 = o2 + k * 16;
                *(f32x8_u *)(B_tile + o4) = *(const f32x8_u *)(B + o3);
                *(f32x8_u *)(B_tile + o4 + 8) = *(const f32x8_u *)(B + o3 + 8);
            }
        }
        for (int i_3 = 0; i_3 < 4; i_3++) {
            const int o1 = i_3 * 192 + o0;
            const int o2 = i_3 * 120;
            for (int j_16 = 0; j_16 < 2; j_16++) {
                const int o3 = o1 + j_16 * 16;
                __builtin_prefetch(C + o3);
                const int o4 = o3 + 64;
                __builtin_prefetch(C + o4);
                const int o5 = o3 + 128;
                __builtin_prefetch(C + o5);
                f32x8 acc = (f32x8){0};
                f32x8 acc_1 = (f32x8){0};
                f32x8 acc_2 = (f32x8){0};
                f32x8 acc_3 = (f32x8){0};
                f32x8 acc_4 = (f32x8){0};
                f32x8 acc_5 = (f32x8){0};
                const int o6 = j_16 * 640;
                for (int k = 0; k < 40; k++) {
                    const int o7 = o2 + k;
                    const int o8 = o6 + k * 16;
                    const f32x8 x0 = *(const f32x8_u *)(B_tile + o8);
                    const f32x8 t0 = splat_f32x8(A[o7]);
                    acc = fma_f32x8(t0, x0, acc);
                    const f32x8 x1 = *(const f32x8_u *)(B_tile + o8 + 8);
                    acc_1 = fma_f32x8(t0, x1, acc_1);
                    const f32x8 t1 = splat_f32x8(A[o7 + 40]);
                    acc_2 = fma_f32x8(t1, x0, acc_2);
                    acc_3 = fma_f32x8(t1, x1, acc_3);
                    const f32x8 t2 = splat_f32x8(A[o7 + 80]);
                    acc_4 = fma_f32x8(t2, x0, acc_4);
                    acc_5 = fma_f32x8(t2, x1, acc_5);
                }
                *(f32x8_u *)(C + o3) = acc;
                *(f32x8_u *)(C + o3 + 8) = acc_1;
                *(f32x8_u *)(C + o4) = acc_2;
                *(f32x8_u *)(C + o3 + 72) = acc_3;
                *(f32x8_u *)(C + o5) = acc_4;
                *(f32x8_u *)(C + o3 + 136) = acc_5;
            }
        }
    }
}
