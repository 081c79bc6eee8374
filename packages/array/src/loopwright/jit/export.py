"""A captured computation as C that stands alone: texts of files, with no Python at run time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from loopwright.handwritten import HandWritten
from loopwright.jit.capture import Captured, CapturedKernel, Output
from loopwright.jit.export_main import c_type, main_text, readme_text
from loopwright.memory import storage
from loopwright_core.built import Built
from loopwright_core.errors import ArgumentError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.loader import registry
from loopwright_core.program.clayout import (
    function_names,
    param_bytes,
    scratch_bytes,
    scratch_offsets,
)

ALIGNMENT = 64
# Arrays that the function closed over are written into the text up to so many bytes together.
MAX_CONSTANT_BYTES = 1 << 20
# As render-clang compiles: GCC 12 takes kernels over restrict pointers for functions that store
# nothing, and drops calls of those that it sees together with their caller.
_FLAGS = "-std=gnu11 -fno-strict-aliasing -fno-ipa-pure-const -fno-ipa-modref"
# What the texts around the kernels call their own.
_RESERVED = re.compile(
    r"(in|out|constant)\d+|argc|argv|best|checksum|failed|fill|main|round|seconds|start|stop"
    r"|thread|transfer|work"
)


@dataclass(frozen=True)
class Exported:
    """Files by name. `command`: compiles them with gcc."""

    files: dict[str, str]
    command: str


def export_c(captured: Captured, name: str) -> Exported:
    """The files of a function called `name` (`name_f` where the texts around it have a `name`).

    Raises ArgumentError for what C alone cannot run.
    """
    device = registry().device(captured.device)
    if device.language != "c":
        fail(
            ArgumentError,
            f"the texts for {device.name} are {device.language}, which a C main cannot run",
            where="export",
            fix="export for a device whose language is C, or write the texts with compile -o",
        )
    shapes = [row.shape for row in captured.table] + [o.shape for o in captured.outputs]
    if not all(isinstance(n, int) for shape in shapes for n in shape):
        fail(ArgumentError, "an export has arrays of fixed sizes", where="export")
    if _RESERVED.fullmatch(name):
        name = f"{name}_f"
    functions = _functions(captured.kernels, name)
    files = {}
    flags = "-O2"
    for built, names in functions.items():
        text = built.source
        for old, new in zip(function_names(built.program), names, strict=True):
            text = re.sub(rf"\b{old}\b", new, text)
        files[f"{names[0]}.c"] = text
        first = text.splitlines()[0]
        if first.startswith("// cc "):
            flags = first.removeprefix("// cc ")
    command = f"gcc {flags} {_FLAGS} -o {name} *.c -lm"
    files[f"{name}.h"] = _header(captured, name)
    files[f"{name}.c"] = _driver(captured, name, functions)
    files["main.c"] = main_text(captured, name)
    files["README.md"] = readme_text(captured, name, command, list(files))
    return Exported(files, command)


def _functions(
    kernels: Iterable[CapturedKernel], name: str
) -> dict[Built | HandWritten, tuple[str, ...]]:
    """Names of each kernel's functions, one a phase, that no other function of the export has."""
    taken = {name}
    found: dict[Built | HandWritten, tuple[str, ...]] = {}
    for kernel in kernels:
        if kernel.built in found:
            continue
        names = []
        for wanted in function_names(kernel.built.program):
            free, n = wanted, 1
            while free in taken or _RESERVED.fullmatch(free):
                n += 1
                free = f"{wanted}_{n}"
            taken.add(free)
            names.append(free)
        found[kernel.built] = tuple(names)
    return found


def _sizes(shape: Sequence[object]) -> tuple[int, ...]:
    return tuple([n for n in shape if isinstance(n, int)])


def _described(what: str, n: int, dtype: DType, shape: Sequence[object]) -> str:
    return f" * {what}{n}: {dtype}[{', '.join(map(str, shape))}]"


def _parameters(captured: Captured) -> str:
    inputs = captured.table[: captured.n_inputs]
    parts = [f"const {c_type(row.dtype)} *in{n}" for n, row in enumerate(inputs)]
    parts += [f"{c_type(o.dtype)} *out{n}" for n, o in enumerate(captured.outputs)]
    return ", ".join(parts) or "void"


def _header(captured: Captured, name: str) -> str:
    guard = f"{name.upper()}_H"
    inputs = captured.table[: captured.n_inputs]
    lines = [_described("in", n, row.dtype, row.shape) for n, row in enumerate(inputs)]
    lines += [_described("out", n, o.dtype, o.shape) for n, o in enumerate(captured.outputs)]
    described = "\n".join(lines)
    macros = [
        f"#define {name.upper()}_IN{n}_SIZE {prod(_sizes(row.shape))}"
        for n, row in enumerate(inputs)
    ]
    macros += [
        f"#define {name.upper()}_OUT{n}_SIZE {prod(_sizes(o.shape))}"
        for n, o in enumerate(captured.outputs)
    ]
    sizes = "\n".join(macros)
    return f"""#ifndef {guard}
#define {guard}

/* Elements of each array. */
{sizes}

#ifdef __cplusplus
extern "C" {{
#endif

/* Reads all inputs and writes all outputs. Arrays are in row-major order, do not overlap, and may
 * lie at any address that their elements may have. Memory for values in between is allocated and
 * freed by each call. Runs in the caller's thread; calls in several threads do not disturb each
 * other.
 *
 * Returns 0, or 1 where there is no memory: then no output is written.
 *
{described}
 */
int {name}({_parameters(captured)});

#ifdef __cplusplus
}}
#endif
#endif
"""


def _constant(n: int, buffer: UOp) -> str:
    data = np.ascontiguousarray(storage(buffer).numpy()).reshape(-1).view(np.uint8)
    cells = ",".join(map(str, data.tolist()))
    return (
        f"static const _Alignas({ALIGNMENT}) unsigned char constant{n}[{data.size}] = {{{cells}}};"
    )


def _driver(
    captured: Captured, name: str, functions: dict[Built | HandWritten, tuple[str, ...]]
) -> str:
    table = captured.table
    first_constant, first_temporary = captured.first_constant, captured.first_temporary
    constants = table[first_constant:first_temporary]
    if sum(row.n_bytes for row in constants) > MAX_CONSTANT_BYTES:
        fail(
            ArgumentError,
            f"the function closes over more than {MAX_CONSTANT_BYTES >> 20} MiB of arrays",
            where="export",
            fix="make them arguments",
        )
    places: dict[int, str] = {n: f"(void *)in{n}" for n in range(captured.n_inputs)}
    for n, output in enumerate(captured.outputs):
        row = output.row
        if row is not None and table[row].kind == "output":
            places.setdefault(row, f"(void *)out{n}")
    for n in range(len(constants)):
        places[first_constant + n] = f"(void *)constant{n}"
    offset = 0
    for n in range(first_temporary, len(table)):
        places[n] = f"(void *)(work + {offset})"
        offset += _padded(table[n].n_bytes)
    shared: dict[
        Built | HandWritten, int
    ] = {}  # where a kernel's arrays begin that its phases share
    own = most = 0
    for built in functions:
        shared[built] = offset
        most = max(most, sum(_padded(param_bytes(p)) for p in built.program.scratch))
        own = max(own, scratch_bytes(built.program))
    threads_at = offset + most
    total = threads_at + own
    steps = [
        step
        for kernel in captured.kernels
        for step in _launch(kernel, functions[kernel.built], places, offset, threads_at)
    ]
    copies = _copies(captured.outputs, places)
    declared = "\n".join(_prototype(built, names) for built, names in functions.items())
    held = "\n".join(_constant(n, buffer) for n, buffer in enumerate(captured.constants))
    begin = end = ""
    if total:
        begin = f"""    char *const work = aligned_alloc({ALIGNMENT}, {_padded(total)});
    if (work == NULL)
        return 1;
"""
        end = "    free(work);\n"
    used = set(re.findall(r"\w+", " ".join([*steps, *copies])))
    names = [f"in{n}" for n in range(captured.n_inputs)]
    names += [f"out{n}" for n in range(len(captured.outputs))]
    unused = [f"(void){one};" for one in names if one not in used]
    body = "\n".join(f"    {line}" for line in [*unused, *steps, *copies])
    return f"""#include "{name}.h"

#include <stdlib.h>
#include <string.h>

{declared}
{held}
int {name}({_parameters(captured)}) {{
{begin}{body}
{end}    return 0;
}}
"""


def _padded(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def _prototype(built: Built | HandWritten, names: Sequence[str]) -> str:
    program = built.program
    found = []
    for name, phase in zip(names, program.phases, strict=True):
        parts = [
            f"{'' if p.is_output else 'const '}{c_type(p.dtype)} *restrict" for p in program.arrays
        ]
        if phase.threads > 1:
            parts.append("int thread")
        if scratch_offsets(phase)[1]:
            parts.append("void *scratch")
        found.append(f"void {name}({', '.join(parts) or 'void'});")
    return "\n".join(found)


def _launch(
    kernel: CapturedKernel,
    names: Sequence[str],
    places: dict[int, str],
    shared_at: int,
    threads_at: int,
) -> list[str]:
    """The calls of one kernel: its phases in order, the slices of several threads one by one."""
    program = kernel.built.program
    arguments = [places[row] for row in kernel.rows]
    for p in program.scratch:
        arguments.append(f"(void *)(work + {shared_at})")
        shared_at += _padded(param_bytes(p))
    found = []
    for name, phase in zip(names, program.phases, strict=True):
        more = ["thread"] if phase.threads > 1 else []
        if scratch_offsets(phase)[1]:
            more.append(f"(void *)(work + {threads_at})")
        call = f"{name}({', '.join([*arguments, *more])});"
        if phase.threads > 1:
            found.append(f"for (int thread = 0; thread < {phase.threads}; thread++)")
            call = f"    {call}"
        found.append(call)
    return found


def _copies(outputs: Sequence[Output], places: dict[int, str]) -> list[str]:
    """Results that no kernel writes where the caller wants them."""
    found = []
    for n, output in enumerate(outputs):
        if output.row is None or places[output.row] == f"(void *)out{n}":
            continue
        size = prod(_sizes(output.shape)) * output.dtype.itemsize
        found.append(f"memcpy(out{n}, {places[output.row]}, {size});")
    return found
