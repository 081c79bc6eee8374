"""Tensor cores: the layouts of every table, and what an instruction computes through them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from ir_samples import buffer, int_, listed, param, place, store, u

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp, const
from loopwright_core.oracle.multiply import multiply
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.program.program import Estimate, Phase, Program
from loopwright_core.targets.amx import AMX_BF16, AMX_INT8
from loopwright_core.targets.cuda import ARCHITECTURES, cuda
from loopwright_core.targets.metal import metal

CORES = list(
    dict.fromkeys(
        [
            *(core for arch in ARCHITECTURES for core in cuda(arch).tensor_cores),
            *metal().tensor_cores,
            *AMX_BF16,
            *AMX_INT8,
        ]
    )
)
EVERY_CORE = pytest.mark.parametrize("core", CORES, ids=lambda core: core.name)


@EVERY_CORE
def test_every_element_is_held_once(core: TensorCore) -> None:
    """Each element of A, B and C is in one register of one lane, and no register is left over."""
    m, n, k = core.dims
    shapes = [(m, k), (k, n), (m, n)]
    for operand, shape, registers in zip(core.operands, shapes, core.elements, strict=True):
        assert (operand.rows, operand.columns) == shape
        held = [operand.at(lane, r) for lane in range(core.threads) for r in range(registers)]
        every = [(row, column) for row in range(shape[0]) for column in range(shape[1])]
        assert sorted(held) == every


@EVERY_CORE
def test_accumulators_form_a_grid(core: TensorCore) -> None:
    """What a thread holds of C is a product of rows and columns, as its epilogue walks them."""
    operand = core.operands[2]
    held = {operand.offset(r) for r in range(core.elements[2])}
    rows, columns = {row for row, _ in held}, {column for _, column in held}
    assert len(held) == core.elements[2] == len(rows) * len(columns)


@EVERY_CORE
def test_product_through_the_layouts(core: TensorCore) -> None:
    """D = A x B + C, every element found through the layouts, is the product of the matrices."""
    rng = random.Random(core.name)
    m, n, k = core.dims
    low = 0 if core.dtype_in[0].kind == "uint" or core.dtype_in[1].kind == "uint" else -3
    a, b, c = (
        [[rng.randint(low, 3) for _ in range(operand.columns)] for _ in range(operand.rows)]
        for operand in core.operands
    )
    fragments = []
    matrices = zip(core.operands, (a, b, c), core.elements, strict=True)
    for number, (operand, matrix, registers) in enumerate(matrices):
        places = [[operand.at(t, r) for r in range(registers)] for t in range(core.threads)]
        held = [[matrix[row][column] for row, column in own] for own in places]
        fragments.append(np.array(held, core.dtype(number).numpy))
    result = multiply(core, *fragments)
    d = [[0] * n for _ in range(m)]
    for lane in range(core.threads):
        for r in range(core.elements[2]):
            row, column = core.operands[2].at(lane, r)
            d[row][column] = int(result[lane, r])
    for i in range(m):
        for j in range(n):
            assert d[i][j] == c[i][j] + sum(a[i][p] * b[p][j] for p in range(k))


def test_tf32_keeps_ten_bits() -> None:
    """Inputs of a tf32 core are rounded to ten bits of mantissa, to nearest, ties away from 0."""
    core = next(c for c in cuda("sm_80").tensor_cores if c.option == "tf32")
    a, b, c = (np.zeros((32, n), np.float32) for n in core.elements)
    b[:] = 1.0
    a[0] = [1 + 2**-11, 1 + 2**-10, 1 + 2**-12, 1.0]  # rows 0 and 8, columns 0 and 4
    d = multiply(core, a, b, c)
    assert d[0, 0] == 2 + 2**-10
    assert d[0, 2] == 2 + 2**-10


@pytest.mark.parametrize("core", [c for c in CORES if c.is_tile], ids=lambda core: core.name)
def test_tiles_are_rows_of_memory(core: TensorCore) -> None:
    """`register_of` inverts the layout; A and C lie row-major, B in pairs (quads) along K."""
    for number, operand in enumerate(core.operands):
        elements = core.elements[number]
        assert [operand.register_of(*operand.at(0, r)) for r in range(elements)] == list(
            range(elements)
        )
        rows, columns = core.tile_shape(number)
        assert rows * columns == elements
        assert rows <= 16
    packed = 4 // core.dtype_in[1].itemsize
    assert core.is_row_major(0) and core.is_row_major(2) and not core.is_row_major(1)
    b = core.operands[1]
    assert [b.at(0, r) for r in range(2 * packed)] == [
        (r % packed, r // packed) for r in range(2 * packed)
    ]


def test_vendor_tables() -> None:
    """Single entries of the vendors' tables: the last lane's elements of A, B, C."""
    half = next(c for c in cuda("sm_80").tensor_cores if c.name == "m16n8k16_f16_f16_f32")
    assert [half.operands[0].at(31, r) for r in range(8)] == [
        (7, 6), (7, 7), (15, 6), (15, 7), (7, 14), (7, 15), (15, 14), (15, 15),
    ]  # fmt: skip
    assert [half.operands[1].at(31, r) for r in range(4)] == [(6, 7), (7, 7), (14, 7), (15, 7)]
    assert [half.operands[2].at(31, r) for r in range(4)] == [(7, 6), (7, 7), (15, 6), (15, 7)]
    tf32 = next(c for c in cuda("sm_80").tensor_cores if c.option == "tf32")
    assert [tf32.operands[0].at(31, r) for r in range(4)] == [(7, 3), (15, 3), (7, 7), (15, 7)]
    assert [tf32.operands[1].at(31, r) for r in range(2)] == [(3, 7), (7, 7)]
    byte = next(c for c in cuda("sm_80").tensor_cores if c.dims == (16, 8, 32))
    assert byte.operands[0].at(1, 5) == (8, 5) and byte.operands[0].at(1, 8) == (0, 20)
    assert byte.operands[1].at(1, 4) == (20, 0)
    assert metal().tensor_cores[0].operands[0].at(31, 1) == (7, 7)
    assert metal().tensor_cores[0].operands[0].at(8, 0) == (0, 4)


def test_rows_of_the_tables() -> None:
    """Which dtypes each architecture multiplies, and what needs an option."""
    found = {
        arch: {(c.dims, c.dtype_in[0], c.dtype_out, c.option) for c in cuda(arch).tensor_cores}
        for arch in ARCHITECTURES
    }
    assert ((16, 8, 8), dt.float16, dt.float32, "") in found["sm_75"]
    assert ((8, 8, 16), dt.int8, dt.int32, "") in found["sm_75"]
    assert not any(c.dtype_in[0] is dt.bfloat16 for c in cuda("sm_75").tensor_cores)
    for row in [
        ((16, 8, 16), dt.float16, dt.float32, ""),
        ((16, 8, 16), dt.bfloat16, dt.float32, ""),
        ((16, 8, 16), dt.float16, dt.float16, "half_accumulate"),
        ((16, 8, 8), dt.float32, dt.float32, "tf32"),
        ((16, 8, 32), dt.int8, dt.int32, ""),
    ]:
        assert row in found["sm_80"]
    assert not any(c.dtype_in[0] is dt.float8_e5m2 for c in cuda("sm_86").tensor_cores)
    assert ((16, 8, 32), dt.float8_e4m3fn, dt.float32, "") in found["sm_89"]
    assert {c.instruction for c in AMX_INT8} == {"tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"}
    assert {c.dtype_in[0] for c in metal().tensor_cores} == {dt.float32, dt.float16, dt.bfloat16}


def test_names_tell_cores_apart() -> None:
    """A name is used once in a table."""
    for target in (*map(cuda, ARCHITECTURES), metal()):
        names = [c.name for c in target.tensor_cores]
        assert len(set(names)) == len(names)


def together(*conditions: UOp, threads: int = 32) -> Program:
    """One WMMA of an 8 x 8 x 8 core within branches, its first element stored by each thread."""
    core = next(c for c in metal().tensor_cores if c.dtype_in[0] is dt.float32)
    ones = u(Op.BROADCAST, dt.float32.vec(2), const(1, dt.float32))
    branches = [u(Op.IF, dt.void, c, arg=n) for n, c in enumerate(conditions)]
    made = u(Op.WMMA, dt.float32.vec(2), ones, ones, ones, arg=core)
    first = u(Op.LANE, dt.float32, made, arg=0)
    put = store(place(buffer(0, (64,)), LANE), first)
    checks = [n for c in conditions for n in listed(c)]
    ends = [u(Op.ENDIF, dt.void, b) for b in reversed(branches)]
    uops = (*checks, ones, *branches, made, first, put.src[0], put, *ends)
    phase = Phase("sample", uops, 1, (int_(1),), (threads,))
    return Program("sample", (phase,), (param(0, (64,), True),), (), Estimate(0, 0))


LANE = u(Op.SPECIAL, dt.int32, arg=("lidx0", 64))


def test_threads_multiply_together() -> None:
    """All threads of a core, or none: a branch between two cores' threads is fine."""
    half = u(Op.CMPLT, dt.bool_, u(Op.CDIV, dt.int32, LANE, int_(32)), int_(1))
    for program, count in ((together(threads=64), 64), (together(half, threads=64), 32)):
        verify_program(program, metal())
        result = np.zeros(64, np.float32)
        run_program(program, {0: result})
        np.testing.assert_array_equal(result[:count], 9)
        np.testing.assert_array_equal(result[count:], 0)


def test_threads_that_part_are_an_error() -> None:
    """A branch that leaves out some of a core's threads is refused, and found where it happens."""
    few = together(u(Op.CMPLT, dt.bool_, LANE, int_(16)), threads=64)
    with pytest.raises(VerifyError, match="may leave out"):
        verify_program(few, metal())
    with pytest.raises(VerifyError, match="are not there"):
        run_program(few, {0: np.zeros(64, np.float32)})


def test_a_workgroup_holds_whole_cores() -> None:
    """Threads of a workgroup are a multiple of those that multiply together."""
    program = together(threads=48)
    with pytest.raises(VerifyError, match="multiply together"):
        verify_program(program, metal())


def test_cores_are_listed() -> None:
    """A target runs the cores of its own table."""
    with pytest.raises(VerifyError, match="has no simdgroup"):
        verify_program(together(threads=64), cuda("sm_80"))
