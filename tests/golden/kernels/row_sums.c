// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// x86-64-v4: VECTOR k 16 · UPCAST k/16 2
// cc -O2 -march=x86-64-v4 -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
typedef float f32x16 __attribute__((vector_size(64)));
typedef float f32x16_u __attribute__((vector_size(64), aligned(1), may_alias));
typedef int i32x16 __attribute__((vector_size(64)));

static inline __attribute__((always_inline))
f32x16 load_if_f32x16(const float *p, i32x16 m, f32x16 fill) {
    return (f32x16)__builtin_ia32_loadups512_mask((const float *)p, (f32x16)fill, __builtin_ia32_cvtd2mask512(m));
}

static inline __attribute__((always_inline))
f32x16 select_f32x16(i32x16 m, f32x16 a, f32x16 b) {
    return (f32x16)((m & (i32x16)a) | (~m & (i32x16)b));
}

void r_6_203(const float *restrict A, float *restrict B) {
    for (int i = 0; i < 6; i++) {
        f32x16 acc = (f32x16){0};
        f32x16 acc_1 = (f32x16){0};
        const int o0 = i * 203;
        for (int k_32 = 0; k_32 < 6; k_32++) {
            const int o1 = o0 + k_32 * 32;
            acc += *(const f32x16_u *)(A + o1);
            acc_1 += *(const f32x16_u *)(A + o1 + 16);
        }
        const f32x16 a0 = load_if_f32x16(A + o0 + 192, (i32x16){-1, -1, -1, -1, -1, -1, -1, -1, -1,
            -1, -1, 0, 0, 0, 0, 0}, (f32x16){0});
        const f32x16 t0 = select_f32x16((i32x16){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0,
            0, 0, 0}, a0, (f32x16){0});
        acc += t0;
        const f32x16 t1 = acc + acc_1;
        const float t2 = t1[8] + t1[9] + (t1[10] + t1[11]) + (t1[12] + t1[13] + (t1[14] + t1[15]));
        B[i] = t1[0] + t1[1] + (t1[2] + t1[3]) + (t1[4] + t1[5] + (t1[6] + t1[7])) + t2;
    }
}
