"""AMX: text, numbers of registers, and results where the processor has tiles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from level3 import Builder, assert_same, installed, run_c, run_oracle

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp, const
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.program.program import Program
from loopwright_core.targets.amx import AMX_BF16, AMX_INT8
from loopwright_render_clang import compilers
from loopwright_render_clang.compile import compile_c, entries
from loopwright_render_clang.cpu import host, variant
from loopwright_render_clang.render import render
from loopwright_render_clang.runtime import Loaded, from_host

SPR = variant("sapphirerapids")
CORES = pytest.mark.parametrize("core", [*AMX_BF16, *AMX_INT8], ids=lambda core: core.name)


def product(core: TensorCore, steps: int = 3, columns: int = 2) -> Program:
    """C = A @ B of one tile row, `columns` tiles side by side, B packed as the core reads it."""
    m, n, k = core.dims
    b = Builder()
    a = b.buffer("A", core.dtype_in[0], (m, steps * k))
    packed = b.buffer("B", core.dtype_in[1], (columns, steps, k * n))
    c = b.buffer("C", core.dtype_out, (m, columns * n), True)
    zero = b.splat(const(0, core.dtype_out), core.elements[2])
    sums = [b.reg(zero, "acc") for _ in range(columns)]
    with b.loop(steps, "k") as step:
        row = _tile(b, core, 0, a, b.op(Op.MUL, step, const(k, dt.int32)), steps * k)
        for j, held in enumerate(sums):
            at = b.op(Op.MUL, step, const(k * n, dt.int32))
            at = b.op(Op.ADD, at, const(j * steps * k * n, dt.int32)) if j else at
            column = _tile(b, core, 1, packed, at, core.tile_shape(1)[1])
            acc = b.after(held, step)
            made = b.add(Op.WMMA, core.dtype(2), row, column, acc, arg=core)
            b.assign(acc, made)
    end = b.uops[-1]
    for j, held in enumerate(sums):
        src = b.index(c, j * n), const(columns * n, dt.int32), b.after(held, end)
        b.add(Op.TILE_STORE, dt.void, *src, arg=core.tile_shape(2))
    return b.program()


def _tile(b: Builder, core: TensorCore, which: int, storage: UOp, at: UOp, row: int) -> UOp:
    src = b.index(storage, at), const(row, dt.int32)
    return b.add(Op.TILE_LOAD, core.dtype(which), *src, arg=core.tile_shape(which))


@CORES
def test_text(core: TensorCore) -> None:
    """Each instruction stands once a tile, between setting the registers up and giving them back;
    sums and what they are computed from lie in registers of their own."""
    program = product(core)
    verify_program(program, SPR)
    text = render(program, SPR)
    body = text[text.index("void kernel") :]
    assert core.instruction in text and "immintrin" not in text
    assert body.index("TILES_BEGIN") < body.index("TILE_ZERO(0)")
    assert body.index("TILE_STORE") < body.index("TILES_END")
    multiplied = re.findall(rf"TILE_{core.instruction.upper()}\((\d), (\d), (\d)\);", body)
    assert len(multiplied) == 2
    assert len({c for c, _, _ in multiplied}) == 2
    for c, a, b in multiplied:
        assert len({c, a, b}) == 3
    for compiler in installed().values():
        flag = "-mcpu=sapphirerapids" if compiler.kind == "zig" else "-march=sapphirerapids"
        compile_c(text + entries(program), "tiles", compiler, (flag,))


def test_a_ninth_tile_is_refused() -> None:
    """Eight sums leave no register for what they are computed from."""
    with pytest.raises(LoweringError, match="more than 8 tile registers"):
        render(product(AMX_BF16[0], columns=7), SPR)
    render(product(AMX_BF16[0], columns=6), SPR)


def test_only_processors_with_tiles_have_cores() -> None:
    """Without AMX a target lists neither cores nor the ops on tiles."""
    plain = variant("x86-64-v4")
    assert plain.tensor_cores == () and not plain.ops & {Op.WMMA, Op.TILE_LOAD, Op.TILE_STORE}
    assert SPR.tensor_cores == (*AMX_BF16, *AMX_INT8)
    assert replace(SPR, tensor_cores=()).key != SPR.key


def operands(core: TensorCore) -> list[np.ndarray]:
    """Small integers, whose products and sums are exact."""
    random = np.random.default_rng(7)
    m, n, k = core.dims
    a, b = (0 if d.kind == "uint" else -3 for d in core.dtype_in)
    drawn = (
        random.integers(a, 4, (m, 3 * k)),
        random.integers(b, 4, (2, 3, k * n)),
        np.zeros((m, 2 * n)),
    )
    dtypes = (*core.dtype_in, core.dtype_out)
    return [x.astype(d.numpy) for x, d in zip(drawn, dtypes, strict=True)]


@CORES
def test_run_without_amx(core: TensorCore) -> None:
    """The same text with its instructions in plain C gives the interpreter's result, bit for bit:
    registers, addresses and strides are right."""
    program, arrays = product(core), operands(core)
    header = (Path(__file__).parent / "tiles_in_c.h").read_text(encoding="utf-8")
    text = header + re.sub(r"#define TILE(.*\\\n)*.*\n", "", render(program, SPR))
    assert "__asm__" not in text
    binary = compile_c(text + entries(program), "tiles", compilers.find())
    memory = [from_host(x) for x in arrays]
    Loaded(binary, program).bind(memory)()
    assert_same([arrays[2]], run_oracle(program, operands(core)))


@CORES
def test_run(core: TensorCore) -> None:
    """Where the processor has tiles, the result is the interpreter's, bit for bit."""
    if core not in host().tensor_cores:
        pytest.skip("this processor has no AMX")
    program, arrays = product(core), operands(core)
    assert_same(run_c(program, arrays), run_oracle(program, arrays))
