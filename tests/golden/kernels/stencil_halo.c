// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// x86-64-v3: TILE i 4 · ORDER i/4 j i/1 · STAGE A @i/4 halo · UNROLL l 3
// cc -O2 -march=x86-64-v3 -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
void r_9_11_3_3(const float *restrict A, const float *restrict B, float *restrict C) {
    _Alignas(64) float halo[78];
    for (int i_4 = 0; i_4 < 3; i_4++) {
        const int o0 = i_4 * 4;
        const int o1 = i_4 * 44;
        for (int h0 = 0; h0 < 6; h0++) {
            const int o2 = o0 + h0;
            const _Bool m0 = 0 < o2 && o2 < 10;
            const int o3 = o1 + h0 * 11;
            const int o4 = h0 * 13;
            for (int h1 = 0; h1 < 13; h1++) {
                halo[o4 + h1] = m0 && h1 < 12 && 0 < h1 ? A[o3 + h1 - 12] : 0.0f;
            }
        }
        const int o2 = i_4 * -4 + 9;
        const int o3 = o2 < 4 ? o2 : 4;
        for (int j = 0; j < 11; j++) {
            for (int i = 0; i < o3; i++) {
                float acc = 0.0f;
                const int o4 = i * 13;
                for (int k = 0; k < 3; k++) {
                    const int o5 = o4 + k * 13 + j;
                    const int o6 = k * 3;
                    acc = __builtin_fmaf(halo[o5], B[o6], acc);
                    acc = __builtin_fmaf(halo[o5 + 1], B[o6 + 1], acc);
                    acc = __builtin_fmaf(halo[o5 + 2], B[o6 + 2], acc);
                }
                C[o1 + i * 11 + j] = acc;
            }
        }
    }
}
