// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// armv8: VECTOR j* 4
// cc -O2 -march=armv8-a -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x4_u __attribute__((vector_size(16), aligned(1), may_alias));
typedef int i32x4 __attribute__((vector_size(16)));

static inline __attribute__((always_inline))
f32x4 load_first_f32x4(const float *p, int n, f32x4 fill) {
    __builtin_memcpy(&fill, p, n * sizeof(*p));
    return fill;
}

static inline __attribute__((always_inline))
void store_first_f32x4(float *p, int n, f32x4 x) {
    __builtin_memcpy(p, &x, n * sizeof(*p));
}

void r_9_21_9(const float *restrict A, float *restrict B) {
    _Alignas(64) float spill[24];
    for (int j_4 = 0; j_4 < 5; j_4++) {
        f32x4 acc = (f32x4){0};
        const int o0 = j_4 * 4;
        for (int i0 = 0; i0 < 9; i0++) {
            acc += *(const f32x4_u *)(A + i0 * 21 + o0);
        }
        *(f32x4_u *)(spill + o0) = acc;
    }
    f32x4 acc = (f32x4){0};
    for (int i0 = 0; i0 < 9; i0++) {
        acc += load_first_f32x4(A + i0 * 21 + 20, 1, (f32x4){0});
    }
    *(f32x4_u *)(spill + 20) = acc;
    const f32x4 x0 = *(const f32x4_u *)(spill + 20);
    for (int i = 0; i < 9; i++) {
        const int o0 = i * 21;
        for (int j_4 = 0; j_4 < 5; j_4++) {
            const int o1 = j_4 * 4;
            const int o2 = o0 + o1;
            *(f32x4_u *)(B + o2) = *(const f32x4_u *)(A + o2) - *(const f32x4_u *)(spill + o1);
        }
        const int o1 = o0 + 20;
        store_first_f32x4(B + o1, 1, load_first_f32x4(A + o1, 1, (f32x4){0}) - x0);
    }
}
