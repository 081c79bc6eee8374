// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// x86-64-v4: UPCAST i 2 · THREAD i/2 4
// cc -O2 -march=x86-64-v4 -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
void e_19_13(const float *restrict A, const float *restrict B, float *restrict C, int thread) {
    const int o0 = thread * -3;
    const int o1 = o0 + 9;
    const int o2 = o1 < 3 ? o1 : 3;
    const int o3 = thread * 6;
    const int o4 = thread * 78;
    for (int i_2 = 0; i_2 < o2; i_2++) {
        const int o5 = i_2 * 2;
        const int o6 = o4 + i_2 * 26;
        for (int j = 0; j < 13; j++) {
            const int o7 = j * 19 + o3 + o5;
            const int o8 = o6 + j;
            C[o8] = A[o7] + B[o8];
            const int o9 = o8 + 13;
            C[o9] = A[o7 + 1] + B[o9];
        }
    }
    const int o5 = o0 + 10;
    const int o6 = o2 * 2;
    const int o7 = o4 + o2 * 26;
    if (o2 < (o5 < 3 ? o5 : 3)) {
        for (int j = 0; j < 13; j++) {
            const int o8 = o7 + j;
            C[o8] = A[j * 19 + o3 + o6] + B[o8];
        }
    }
}
