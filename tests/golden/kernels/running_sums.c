// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden
// armv8: UPCAST j 2
// cc -O2 -march=armv8-a -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv
void e_3_7(const float *restrict A, float *restrict B) {
    for (int i = 0; i < 3; i++) {
        float run = -0.0f;
        const int o0 = i * 7;
        for (int j_2 = 0; j_2 < 3; j_2++) {
            const int o1 = o0 + j_2 * 2;
            const float t0 = run + A[o1];
            run = t0;
            const int o2 = o1 + 1;
            const float t1 = run + A[o2];
            run = t1;
            B[o1] = t0;
            B[o2] = t1;
        }
        const int o1 = o0 + 6;
        const float t0 = run + A[o1];
        run = t0;
        B[o1] = t0;
    }
}
