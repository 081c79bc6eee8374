/* A whole call from Python: NumPy's arrays are compared with what the kernels were made for, and
   the kernels run over their memory. Follows pool.c in one text. */

/* Where the parts of objects lie: bytes from an object's start. */
typedef struct {
    long long type, size, items, data, n_axes, shape, dtype, flags;
} layout_t;

typedef struct {
    const void *dtype;
    const long long *shape;
    long long n_bytes;
    int n_axes;
} expected_t;

typedef struct {
    layout_t at;
    const void *array_type;
    const launch_t *launches;
    const expected_t *expected;  /* of the arguments, then of the outputs */
    void *const *constants;
    const long long *constant_bytes;
    const long long *temporaries; /* offsets in the scratch memory */
    long long flags, writeable;   /* that all arguments have, and outputs in addition */
    int n_launches, n_most, n_arguments, n_outputs, n_constants, n_temporaries;
} call_t;

#define PART(type, object, offset) (*(type const *)((const char *)(object) + (offset)))

static int fits(const call_t *c, const void *array, const expected_t *e, long long flags) {
    if (PART(void *, array, c->at.type) != c->array_type) return 0;
    if (PART(void *, array, c->at.dtype) != e->dtype) return 0;
    if (PART(int, array, c->at.n_axes) != e->n_axes) return 0;
    if ((PART(int, array, c->at.flags) & flags) != flags) return 0;
    const intptr_t *shape = PART(intptr_t *, array, c->at.shape);
    for (int i = 0; i < e->n_axes; i++)
        if (shape[i] != e->shape[i]) return 0;
    return 1;
}

static int overlap(const char *a, long long n_a, const char *b, long long n_b) {
    return a < b + n_b && b < a + n_a;
}

/* Whether every output is as expected, may be written, and shares nothing with what is in the table:
   arguments, outputs, constants. */
static int outputs_fit(const call_t *c, const void *outputs, void *const *table) {
    const int n = c->n_arguments + c->n_outputs;
    for (int k = c->n_arguments; k < n; k++) {
        const intptr_t place = (intptr_t)sizeof(void *) * (k - c->n_arguments);
        const void *array = PART(void *, outputs, c->at.items + place);
        const expected_t *e = &c->expected[k];
        if (!fits(c, array, e, c->flags | c->writeable)) return 0;
        for (int i = 0; i < n; i++)
            if (i != k && overlap(table[k], e->n_bytes, table[i], c->expected[i].n_bytes)) return 0;
        for (int i = 0; i < c->n_constants; i++)
            if (overlap(table[k], e->n_bytes, c->constants[i], c->constant_bytes[i])) return 0;
    }
    return 1;
}

/* 1 after the kernels have run over a tuple of arguments into a tuple of outputs; 0 if an argument
   is not as expected, or is_checked says that outputs may not be, and then nothing has happened. */
EXPORT int loopwright_call(const call_t *c, const void *arguments, const void *outputs,
                           char *scratch, int is_checked) {
    if (PART(intptr_t, arguments, c->at.size) != c->n_arguments) return 0;
    if (PART(intptr_t, outputs, c->at.size) != c->n_outputs) return 0;
    void *table[c->n_arguments + c->n_outputs + c->n_constants + c->n_temporaries + 1];
    void **row = table;
    for (int i = 0; i < c->n_arguments; i++) {
        const void *array = PART(void *, arguments, c->at.items + i * (long long)sizeof(void *));
        if (!fits(c, array, &c->expected[i], c->flags)) return 0;
        *row++ = PART(void *, array, c->at.data);
    }
    for (int i = 0; i < c->n_outputs; i++) {
        const void *array = PART(void *, outputs, c->at.items + i * (long long)sizeof(void *));
        if (is_checked && PART(void *, array, c->at.type) != c->array_type) return 0;
        *row++ = PART(void *, array, c->at.data);
    }
    if (is_checked && !outputs_fit(c, outputs, table)) return 0;
    for (int i = 0; i < c->n_constants; i++) *row++ = c->constants[i];
    for (int i = 0; i < c->n_temporaries; i++) *row++ = scratch + c->temporaries[i];
    loopwright_sequence_run(c->launches, c->n_launches, c->n_most, table, 0, scratch);
    return 1;
}

/* What lies at those offsets of an array, for a test of the layout: data, axes, dtype, flags. */
EXPORT void loopwright_look(const layout_t *at, const void *array, long long *found) {
    found[0] = (long long)PART(intptr_t, array, at->data);
    found[1] = PART(int, array, at->n_axes);
    found[2] = (long long)PART(intptr_t, array, at->dtype);
    found[3] = PART(int, array, at->flags);
    found[4] = (long long)PART(intptr_t, array, at->type);
    const intptr_t *shape = PART(intptr_t *, array, at->shape);
    for (int i = 0; i < found[1] && i < 3; i++) found[5 + i] = shape[i];
}
