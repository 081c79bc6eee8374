"""TENSOR axes: every instruction, whole and ragged sizes, staged operands, other statements."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asts import buffer, op
from cores import AMX, TARGETS, agree, dot, matmul, sink
from grids import count

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.schedule import Stage
from loopwright_core.plugin.target import Target
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.targets.cuda import cuda

PAIRS = list({core: target for target in TARGETS for core in target.tensor_cores}.items())
EVERY_CORE = pytest.mark.parametrize(
    ("core", "target"), PAIRS, ids=[f"{core.name}-{target.name}" for core, target in PAIRS]
)
MODES = pytest.mark.parametrize("multiplies", [True, False], ids=["use", "shape"])
UPCAST, LOCAL = AxisKind.UPCAST, AxisKind.LOCAL
HALF = next(c for c in cuda("sm_80").tensor_cores if c.name == "m16n8k16_f16_f16_f32")


@MODES
@EVERY_CORE
def test_matmul(core: TensorCore, target: Target, multiplies: bool) -> None:
    """A product of whole tiles, and one whose every side ends inside a tile."""
    m, n, k = core.dims
    # tiles of one thread are large, and the interpreter runs their loops element by element
    times = 1 if core.is_tile else 2
    whole = agree(matmul(times * m, n, times * k, core), target, core, multiplies=multiplies)
    assert (count(whole, Op.WMMA) > 0) == multiplies
    ragged = (m - 3, n - 1, k - 5) if core.is_tile else (m + 3, 2 * n + 1, k + 5)
    agree(matmul(*ragged, core), target, core, multiplies=multiplies)


@MODES
@pytest.mark.parametrize("sizes", [(64, 64, 64), (50, 40, 70)])
def test_register_tiles_on_workgroups(sizes: tuple[int, int, int], multiplies: bool) -> None:
    """Several tiles a thread, several groups of a core's threads in a workgroup, staged or not."""
    cuts = ("i/16", 2, UPCAST), ("j/8", 2, UPCAST), ("j/16", 2, LOCAL)
    for stages in ([], [Stage("A", "k/16"), Stage("B", "k/16")]):
        ast, target = matmul(*sizes, HALF), cuda("sm_80")
        program = agree(ast, target, HALF, *cuts, stages=stages, multiplies=multiplies)
        assert count(program, Op.WMMA) == (4 if multiplies else 0)
        assert (count(program, Op.BARRIER) > 0) == bool(stages)


@pytest.mark.parametrize("sizes", [(32, 32, 64), (20, 33, 70), (33, 64, 64)])
def test_rows_of_results_are_vectors(sizes: tuple[int, int, int]) -> None:
    """With vectors as wide as a tile's row, what follows from whole rows of sums is computed and
    stored as one; ends are not."""
    core, (m, n, k) = AMX.tensor_cores[0], sizes
    target = replace(AMX, vector_bytes=(16, 32, 64))
    a, b = buffer(0, m, k, dtype=dt.bfloat16), buffer(1, k, n, dtype=dt.bfloat16)
    made = dot(a, b, m, n, k, dt.float32)
    twice = sink((buffer(2, m, n, dtype=dt.float32), op(Op.ADD, made, made)))
    program = agree(twice, target, core)
    wide = [u for p in program.phases for u in p.uops if u.op is Op.STORE]
    wide = [u for u in wide if u.src[1].dtype.lanes == 16]
    assert bool(wide) == (sizes[1] % 16 == 0)


@pytest.mark.parametrize("core", AMX.tensor_cores[:2], ids=lambda core: core.name)
@pytest.mark.parametrize("sizes", [(32, 32, 64), (20, 33, 70)])
def test_tiles_from_panels(core: TensorCore, sizes: tuple[int, int, int]) -> None:
    """Staged operands lie as the core reads its tiles: nothing is gathered, each is loaded once."""
    cuts = ("i/16", 2, UPCAST), ("j/16", 2, UPCAST)
    for at_a, at_b in (("j/32", "j/32"), ("i/32", "")):
        stages = [Stage("A", at_a), Stage("B", at_b)]
        program = agree(matmul(*sizes, core), AMX, core, *cuts, stages=stages)
        assert count(program, Op.TILE_LOAD) == 4
        assert count(program, Op.WMMA) == 4
        # whole tiles go straight to the output, ragged ones element by element
        arrays = {n.arg.name for n in program.phases[0].uops if n.op is Op.DEFINE_LOCAL}
        assert ("sums" in arrays) == (sizes != (32, 32, 64))
