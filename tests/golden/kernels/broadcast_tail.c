// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// x86-64-v3: VECTOR j 8
// cc -O2 -march=x86-64-v3 -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
typedef int i32x8 __attribute__((vector_size(32)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8_u __attribute__((vector_size(32), aligned(1), may_alias));

static inline __attribute__((always_inline))
f32x8 select_f32x8(i32x8 m, f32x8 a, f32x8 b) {
    return (f32x8)__builtin_ia32_blendvps256((f32x8)b, (f32x8)a, (f32x8)m);
}

static inline __attribute__((always_inline))
f32x8 load_if_f32x8(const float *p, i32x8 m, f32x8 fill) {
    return select_f32x8(m, (f32x8)__builtin_ia32_maskloadps256((const f32x8 *)p, m), fill);
}

static inline __attribute__((always_inline))
f32x8 splat_f32x8(float x) {
    return (f32x8){x, x, x, x, x, x, x, x};
}

static inline __attribute__((always_inline))
void store_if_f32x8(float *p, i32x8 m, f32x8 x) {
    __builtin_ia32_maskstoreps256((f32x8 *)p, m, (f32x8)x);
}

void e_11_23(const float *restrict A, const float *restrict B, const float *restrict C,
    float *restrict D) {
    const f32x8 c0 = load_if_f32x8(C + 16, (i32x8){-1, -1, -1, -1, -1, -1, -1, 0}, (f32x8){0});
    for (int i = 0; i < 11; i++) {
        const int o0 = i * 23;
        const f32x8 t0 = splat_f32x8(B[i]);
        for (int j_8 = 0; j_8 < 2; j_8++) {
            const int o1 = j_8 * 8;
            const int o2 = o0 + o1;
            *(f32x8_u *)(D + o2) = *(const f32x8_u *)(A + o2) * t0 - *(const f32x8_u *)(C + o1);
        }
        const int o1 = o0 + 16;
        store_if_f32x8(D + o1, (i32x8){-1, -1, -1, -1, -1, -1, -1, 0}, load_if_f32x8(A + o1,
            (i32x8){-1, -1, -1, -1, -1, -1, -1, 0}, (f32x8){0}) * t0 - c0);
    }
}
