"""A captured computation as C that stands alone: texts of files, with no Python at run time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from loopwright.handwritten import HandWritten
from loopwright.jit.capture import Captured, CapturedKernel, Output, Row
from loopwright.jit.export_main import c_type, main_text, readme_text
from loopwright.jit.export_names import Names, names_of
from loopwright.memory import storage
from loopwright_core.built import Built
from loopwright_core.errors import ArgumentError, fail
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
    names = names_of(captured, name)
    files = {}
    flags = "-O2"
    for built, functions in names.kernels.items():
        text = built.source
        for old, new in zip(function_names(built.program), functions, strict=True):
            text = re.sub(rf"\b{old}\b", new, text)
        files[f"{functions[0]}.c"] = text
        first = text.splitlines()[0]
        if first.startswith("// cc "):
            flags = first.removeprefix("// cc ")
    name = names.function
    command = f"gcc {flags} {_FLAGS} -o {name} *.c -lm"
    work = _Workspace(captured)
    files[f"{name}.h"] = _header(captured, names, work)
    files[f"{name}.c"] = _driver(captured, names, work)
    files["main.c"] = main_text(captured, names)
    files["README.md"] = readme_text(captured, name, command, list(files))
    return Exported(files, command)


class _Workspace:
    """Where everything lies that is neither argument nor constant, in bytes from its start.

    `temporaries`: by row. `shared`: what the phases of a kernel leave for each other, `own`: what
    one of them keeps to itself; one kernel runs at a time. `total`: bytes of it all.
    """

    def __init__(self, captured: Captured) -> None:
        offset = 0
        self.temporaries: dict[int, int] = {}
        for row in range(captured.first_temporary, len(captured.table)):
            self.temporaries[row] = offset
            offset += _padded(captured.table[row].n_bytes)
        programs = [kernel.built.program for kernel in captured.kernels]
        sizes = [sum(_padded(param_bytes(p)) for p in program.scratch) for program in programs]
        self.shared = offset
        self.own = offset + max(sizes, default=0)
        self.total = _padded(self.own + max(map(scratch_bytes, programs), default=0))


def _sizes(shape: Sequence[object]) -> tuple[int, ...]:
    return tuple([n for n in shape if isinstance(n, int)])


def _arrays(captured: Captured) -> list[Row | Output]:
    """What the caller gives memory for: inputs, then outputs."""
    return [*captured.table[: captured.n_inputs], *captured.outputs]


def _parameters(captured: Captured, names: Names) -> list[str]:
    """The declaration of each parameter."""
    kinds = ["const "] * captured.n_inputs + [""] * len(captured.outputs)
    return [
        f"{kind}{c_type(what.dtype)} *{name}"
        for kind, what, name in zip(kinds, _arrays(captured), names.arrays, strict=True)
    ]


def _header(captured: Captured, names: Names, work: _Workspace) -> str:
    guard = names.macro("h")
    own = list(zip(names.arrays, _arrays(captured), strict=True))
    described = "\n".join(
        f" * {name}: {what.dtype}[{', '.join(map(str, what.shape))}]" for name, what in own
    )
    macros = "\n".join(
        f"#define {names.macro(name)}_SIZE {prod(_sizes(what.shape))}" for name, what in own
    )
    parameters = _parameters(captured, names)
    return f"""#ifndef {guard}
#define {guard}

/* Elements of each array. */
{macros}

/* Bytes of memory for values in between, and what their address is a multiple of. */
#define {names.macro("workspace_bytes")} {work.total}
#define {names.macro("workspace_alignment")} {ALIGNMENT}

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
int {names.function}({", ".join(parameters) or "void"});

/* The same in memory of the caller, which no other call uses meanwhile and which holds nothing
 * afterwards; nothing is allocated. NULL will do for 0 bytes.
 *
 * Returns 0, or 1 where the memory is missing or not aligned: then no output is written.
 */
int {names.with_workspace}({", ".join(["void *workspace", *parameters])});

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


def _driver(captured: Captured, names: Names, work: _Workspace) -> str:
    table = captured.table
    constants = table[captured.first_constant : captured.first_temporary]
    if sum(row.n_bytes for row in constants) > MAX_CONSTANT_BYTES:
        fail(
            ArgumentError,
            f"the function closes over more than {MAX_CONSTANT_BYTES >> 20} MiB of arrays",
            where="export",
            fix="make them arguments",
        )
    places = {n: f"(void *){name}" for n, name in enumerate(names.inputs)}
    for name, output in zip(names.outputs, captured.outputs, strict=True):
        row = output.row
        if row is not None and table[row].kind == "output":
            places.setdefault(row, f"(void *){name}")
    for n in range(len(constants)):
        places[captured.first_constant + n] = f"(void *)constant{n}"
    for row, offset in work.temporaries.items():
        places[row] = f"(void *)(work + {offset})"
    steps = [
        step
        for kernel in captured.kernels
        for step in _launch(kernel, names.kernels[kernel.built], places, work)
    ]
    copies = _copies(captured.outputs, names.outputs, places)
    declared = "\n".join(_prototype(built, own) for built, own in names.kernels.items())
    held = "\n".join(_constant(n, buffer) for n, buffer in enumerate(captured.constants))
    given = ", ".join(["workspace", *names.arrays])
    begin = "    (void)workspace;\n"
    call = f"    return {names.with_workspace}({', '.join(['NULL', *names.arrays])});\n"
    if work.total:
        alignment, n_bytes = names.macro("workspace_alignment"), names.macro("workspace_bytes")
        begin = f"""    char *const work = workspace;
    if (work == NULL || (uintptr_t)work % {alignment} != 0)
        return 1;
"""
        call = f"""    void *const workspace = aligned_alloc({alignment}, {n_bytes});
    const int failed = {names.with_workspace}({given});
    free(workspace);
    return failed;
"""
    used = set(re.findall(r"\w+", " ".join([*steps, *copies])))
    unused = [f"(void){name};" for name in names.arrays if name not in used]
    body = "".join(f"    {line}\n" for line in [*unused, *steps, *copies])
    parameters = _parameters(captured, names)
    return f"""#include "{names.function}.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

{declared}
{held}
int {names.with_workspace}({", ".join(["void *workspace", *parameters])}) {{
{begin}{body}    return 0;
}}

int {names.function}({", ".join(parameters) or "void"}) {{
{call}}}
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
    work: _Workspace,
) -> list[str]:
    """The calls of one kernel: its phases in order, the slices of several threads one by one."""
    program = kernel.built.program
    arguments = [places[row] for row in kernel.rows]
    shared_at = work.shared
    for p in program.scratch:
        arguments.append(f"(void *)(work + {shared_at})")
        shared_at += _padded(param_bytes(p))
    found = []
    for name, phase in zip(names, program.phases, strict=True):
        more = ["thread"] if phase.threads > 1 else []
        if scratch_offsets(phase)[1]:
            more.append(f"(void *)(work + {work.own})")
        call = f"{name}({', '.join([*arguments, *more])});"
        if phase.threads > 1:
            found.append(f"for (int thread = 0; thread < {phase.threads}; thread++)")
            call = f"    {call}"
        found.append(call)
    return found


def _copies(outputs: Sequence[Output], names: Sequence[str], places: dict[int, str]) -> list[str]:
    """Results that no kernel writes where the caller wants them."""
    found = []
    for name, output in zip(names, outputs, strict=True):
        if output.row is None or places[output.row] == f"(void *){name}":
            continue
        size = prod(_sizes(output.shape)) * output.dtype.itemsize
        found.append(f"memcpy({name}, {places[output.row]}, {size});")
    return found
