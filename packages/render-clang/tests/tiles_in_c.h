/* AMX's instructions on tiles in plain C, so that kernels written for them run on any processor.
   Text that is compiled with this header has no definitions of its own for these names. */
static _Thread_local union {
    unsigned char bytes[16][64];
    unsigned short halves[16][32];
    float floats[16][16];
    int ints[16][16];
} tile[8];

#define TILES_BEGIN() __builtin_memset(tile, 255, sizeof(tile))
#define TILES_END() __builtin_memset(tile, 255, sizeof(tile))
#define TILE_ZERO(t) __builtin_memset(&tile[t], 0, sizeof(tile[t]))
#define TILE_LOAD(t, from, row_bytes) \
    for (int r = 0; r < 16; r++) \
        __builtin_memcpy(tile[t].bytes[r], (const char *)(from) + (row_bytes + 0LL) * r, 64)
#define TILE_STORE(to, row_bytes, t) \
    for (int r = 0; r < 16; r++) \
        __builtin_memcpy((char *)(to) + (row_bytes + 0LL) * r, tile[t].bytes[r], 64)

static float widened(unsigned short half) {
    union { unsigned bits; float value; } x = {(unsigned)half << 16};
    return x.value;
}

#define TILE_TDPBF16PS(c, a, b) \
    for (int m = 0; m < 16; m++) \
        for (int n = 0; n < 16; n++) \
            for (int k = 0; k < 32; k++) \
                tile[c].floats[m][n] += \
                    widened(tile[a].halves[m][k]) * widened(tile[b].halves[k / 2][2 * n + k % 2])
#define TILE_BYTES(c, a, b, of_a, of_b) \
    for (int m = 0; m < 16; m++) \
        for (int n = 0; n < 16; n++) \
            for (int k = 0; k < 64; k++) \
                tile[c].ints[m][n] += \
                    (of_a)tile[a].bytes[m][k] * (of_b)tile[b].bytes[k / 4][4 * n + k % 4]
#define TILE_TDPBSSD(c, a, b) TILE_BYTES(c, a, b, signed char, signed char)
#define TILE_TDPBSUD(c, a, b) TILE_BYTES(c, a, b, signed char, unsigned char)
#define TILE_TDPBUSD(c, a, b) TILE_BYTES(c, a, b, unsigned char, signed char)
#define TILE_TDPBUUD(c, a, b) TILE_BYTES(c, a, b, unsigned char, unsigned char)
