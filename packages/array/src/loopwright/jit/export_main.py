"""What stands around exported kernels: a main that runs them, a README, C's names of elements."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.jit.capture import Captured
from loopwright.jit.export_names import Names
from loopwright_core.ir.dtype import DType

_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long long"}


def c_type(dtype: DType) -> str:
    """What C calls an element; the floats that C lacks, and bool, are unsigned integers of their
    size.

    >>> from loopwright_core.ir import dtype as dt
    >>> c_type(dt.float32), c_type(dt.uint8), c_type(dt.int64), c_type(dt.bfloat16)
    ('float', 'unsigned char', 'long long', 'unsigned short')
    """
    if dtype.is_float and dtype.bits >= 32:
        return "float" if dtype.bits == 32 else "double"
    kind = _INTEGERS[max(dtype.bits, 8)]
    if dtype.is_int and dtype.is_signed:
        return "signed char" if kind == "char" else kind
    return f"unsigned {kind}"


def main_text(captured: Captured, names: Names) -> str:
    """main.c: runs the function on numbers made here, or on files of bytes."""
    name, n_inputs = names.function, captured.n_inputs
    own = [f"array_{one}" for one in names.arrays]
    kinds = [row.dtype for row in captured.table[:n_inputs]] + [o.dtype for o in captured.outputs]
    sizes = [f"{names.macro(one)}_SIZE" for one in names.arrays]
    arrays = [
        f"static {c_type(dtype)} {array}[{size} + 1];"
        for dtype, array, size in zip(kinds, own, sizes, strict=True)
    ]
    fills = [
        f"fill({array}, {size}, {_value(dtype)});"
        for dtype, array, size in list(zip(kinds, own, sizes, strict=True))[:n_inputs]
    ]
    n_files = len(own)
    bytes_of = [f"{array}, sizeof {array} - sizeof {array}[0]" for array in own]
    transfers = [
        f"failed |= transfer(argv[{n + 1}], {part}, {int(n >= n_inputs)});"
        for n, part in enumerate(bytes_of)
    ]
    reads, writes = transfers[:n_inputs], transfers[n_inputs:]
    told = [
        f'printf("{one} {o.dtype}[{", ".join(map(str, o.shape))}]: checksum %016llx\\n", '
        f"checksum({part}));"
        for one, o, part in zip(names.outputs, captured.outputs, bytes_of[n_inputs:], strict=True)
    ]
    call = ", ".join(own)
    newline = "\n"
    usage = " ".join(names.arrays)
    return f"""#include "{name}.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Without arguments: runs on numbers made here. With {n_files}, one for each array: reads each
 * input from a file of its bytes, and writes each output to one. */

/* One more than the sizes, so that no array is empty. */
{newline.join(arrays)}

#define fill(array, n, value) for (unsigned long long i = 0; i < (n); i++) array[i] = (value)

static int transfer(const char *path, void *bytes, size_t size, int is_output) {{
    FILE *file = fopen(path, is_output ? "wb" : "rb");
    size_t done = 0;
    if (file != NULL) {{
        done = is_output ? fwrite(bytes, 1, size, file) : fread(bytes, 1, size, file);
        if (fclose(file) != 0)
            done = size + 1;
    }}
    if (file == NULL || done != size)
        fprintf(stderr, "%s: not the array's bytes\\n", path);
    return file == NULL || done != size;
}}

static unsigned long long checksum(const void *bytes, size_t size) {{
    unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ULL;
    return hash;
}}

int main(int argc, char **argv) {{
    int failed = 0;
    if (argc != 1 && argc != {n_files + 1}) {{
        fprintf(stderr, "usage: %s [{usage}]\\n", argv[0]);
        return 2;
    }}
    if (argc == 1) {{
{newline.join(f"        {line}" for line in fills)}
    }} else {{
{newline.join(f"        {line}" for line in reads)}
    }}
    if (failed)
        return 1;
    double best = 0;
    for (int round = 0; round < (argc == 1 ? 10 : 1); round++) {{
        struct timespec start, stop;
        clock_gettime(CLOCK_MONOTONIC, &start);
        if ({name}({call}) != 0) {{
            fprintf(stderr, "no memory\\n");
            return 1;
        }}
        clock_gettime(CLOCK_MONOTONIC, &stop);
        const double seconds =
            (double)(stop.tv_sec - start.tv_sec) + 1e-9 * (double)(stop.tv_nsec - start.tv_nsec);
        if (round == 0 || seconds < best)
            best = seconds;
    }}
    if (argc != 1) {{
{newline.join(f"        {line}" for line in writes)}
        return failed;
    }}
{newline.join(f"    {line}" for line in told)}
    printf("best of 10: %.3g ms\\n", best * 1e3);
    return 0;
}}
"""


def _value(dtype: DType) -> str:
    """A number that depends on i; of the floats that C lacks bits near those of 1."""
    if dtype.is_bool:
        return "i % 3 == 0"
    if dtype.is_int:
        return f"({c_type(dtype)})(i * 7 % 13)"
    if dtype.bits >= 32:
        return f"({c_type(dtype)})((double)(i * 37 % 101) / 50.5 - 1.0)"
    ones = {"float16": 0x3C00, "bfloat16": 0x3F80, "float8_e4m3fn": 0x38, "float8_e5m2": 0x3C}
    return f"({c_type(dtype)})({ones[dtype.name]} + i % 4)"


def readme_text(captured: Captured, name: str, command: str, files: Sequence[str]) -> str:
    """README.md: how to compile the files, and what each is."""
    kernels = "\n".join(f"- `{file}`" for file in files if file not in (f"{name}.c", "main.c"))
    threads = max(
        [phase.threads for k in captured.kernels for phase in k.built.program.phases], default=1
    )
    sliced = (
        f"\nThe kernels are cut into slices for {threads} threads; `{name}` runs these one after\n"
        "another. Export with LOOPWRIGHT_THREADS=1 for kernels that are not cut.\n"
        if threads > 1
        else ""
    )
    return f"""# {name}

C that Loopwright wrote; it needs a C compiler and nothing else.

    {command}
    ./{name}

`{name}.h` says what the arrays are, `{name}.c` calls the kernels in order, `main.c` is a program
that runs them. Without arguments it makes numbers of its own, and prints a checksum and the time.

{kernels}

Each kernel is compiled by itself: keep it apart from its caller, and do not link with -flto.
{sliced}"""
