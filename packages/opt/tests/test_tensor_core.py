"""TC and PADTO: which triples a kernel has, which core does them, and what is left of the axes."""

from __future__ import annotations

from dataclasses import replace

import bodies
import core_cases
import pytest
from core_cases import AMX, CUDA, METAL, N, matmul, two_products

from loopwright_core.errors import OptError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_kernel
from loopwright_core.kernel.dims import AxisKind, Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.target import Target
from loopwright_core.targets.cuda import cuda
from loopwright_opt.apply import apply_all
from loopwright_opt.plugin import loopwright_schedule
from loopwright_opt.strategies.choice import propose
from loopwright_opt.tensor_core import triples
from loopwright_opt.text import parse, show


def after(kernel: Kernel, text: str, target: Target = METAL) -> Kernel:
    made = apply_all(kernel, parse(text), target)
    verify_kernel(made)
    assert show(parse(text)) == text
    return made


def tensor_axes(kernel: Kernel) -> dict[str, int]:
    """Dim -> size of its TENSOR axis."""
    found = {a.dim: a.size for a in kernel.schedule.axes if a.kind is AxisKind.TENSOR}
    return {d: n for d, n in found.items() if isinstance(n, int)}


def name_of(kernel: Kernel) -> str:
    use = kernel.schedule.tensor_core
    assert use is not None
    return use.core.name


def batched() -> Kernel:
    """C[b, i, j, m] = sum over k, l of A[b, i, j, k, l] * B[b, k, l, m]."""
    dims = [Dim(d, 16) for d in ("b", "i", "j", "m")]
    dims += [Dim("k", 16, True), Dim("l", 16, True)]
    b, i, j, m, k, depth = (d.uop for d in dims)
    x = bodies.load(bodies.at(0, (16,) * 5, b, i, j, k, depth))
    y = bodies.load(bodies.at(1, (16,) * 4, b, k, depth, m))
    total = bodies.reduce("add", bodies.op(Op.MUL, x, y), k, depth)
    return bodies.kernel(tuple(dims), (bodies.at(2, (16,) * 4, b, i, j, m), total))


def test_axes_after_tc() -> None:
    """TC takes the innermost part of M, N and K; what is left are ordinary axes."""
    made = after(bodies.matmul(64, 32, 16), "TC 0")
    assert tensor_axes(made) == {"i": 8, "j": 8, "k": 8}
    left = {a.name: a.size for a in made.schedule.axes if a.kind is not AxisKind.TENSOR}
    assert left == {"i/8": 8, "j/8": 4, "k/8": 2}
    further = after(bodies.matmul(64, 32, 16), "TC 0 · UPCAST i/8 4 · LOCAL j/8 2 · UNROLL k/8 0")
    kinds = [a.kind.name for a in further.schedule.axes]
    assert kinds == ["GLOBAL", "GLOBAL", "LOCAL", *["TENSOR"] * 3, "UPCAST", "UNROLL"]


def test_triples_are_numbered_innermost_first() -> None:
    """The factor that moves along the innermost output axis is B; K moves fastest in the count."""
    found = [(t.m, t.n, t.k) for t in triples(batched())]
    assert found == [("j", "m", "l"), ("j", "m", "k"), ("i", "m", "l"), ("i", "m", "k")]
    made = after(batched(), "TC 3")
    assert tensor_axes(made) == {"i": 8, "m": 8, "k": 8}


def test_swapped_factors_are_the_same_product() -> None:
    """B times A is A times B: which factor is written first does not matter."""
    dims = Dim("i", 16), Dim("j", 16), Dim("k", 16, True)
    i, j, k = (d.uop for d in dims)
    a, b = bodies.load(bodies.at(0, (16, 16), i, k)), bodies.load(bodies.at(1, (16, 16), k, j))
    for factors in ((a, b), (b, a)):
        total = bodies.reduce("add", bodies.op(Op.MUL, *factors), k)
        kernel = bodies.kernel(dims, (bodies.at(2, (16, 16), i, j), total))
        use = after(kernel, "TC 0").schedule.tensor_core
        assert use is not None and (use.m, use.n) == ("i", "j")


def test_cores_are_tried_in_the_tables_order() -> None:
    """Larger tiles first; below level 2 the first one whose sizes divide; options let cores in."""
    assert name_of(after(matmul(32, 32, 32), "TC 0", CUDA)) == "m16n8k16_f16_f16_f32"
    assert name_of(after(matmul(32, 32, 24), "TC 0 level 1", CUDA)) == "m16n8k8_f16_f16_f32"
    assert name_of(after(matmul(32, 32, 24), "TC 0", CUDA)) == "m16n8k16_f16_f16_f32"
    assert name_of(after(bodies.matmul(), "TC 0 tf32", CUDA)) == "m16n8k8_tf32_tf32_f32"
    half = after(matmul(32, 32, 32), "TC 0 half_accumulate", CUDA)
    assert name_of(half) == "m16n8k16_f16_f16_f16"
    named = after(matmul(32, 32, 32), "TC 0 core m16n8k8_f16_f16_f32", CUDA)
    assert tensor_axes(named) == {"i": 16, "j": 8, "k": 8}
    assert name_of(after(matmul(32, 32, 64, dt.int8, dt.int32), "TC 0", AMX)).startswith("amx")
    fp8 = matmul(32, 32, 64, dt.float8_e5m2)
    assert name_of(after(fp8, "TC 0", cuda("sm_89"))) == "m16n8k32_e5m2_e5m2_f32"


def test_products_that_round_are_none() -> None:
    """cast(a * b) rounds before it is widened: no core computes that."""
    dims = Dim("i", 16), Dim("j", 16), Dim("k", 16, True)
    i, j, k = (d.uop for d in dims)
    a = bodies.load(bodies.place(0, (16, 16), dt.float16, i, k))
    b = bodies.load(bodies.place(1, (16, 16), dt.float16, k, j))
    value = core_cases.cast(bodies.op(Op.MUL, a, b), dt.float32)
    kernel = bodies.kernel(dims, (bodies.at(2, (16, 16), i, j), bodies.reduce("add", value, k)))
    assert triples(kernel) == []


def test_computed_operands_and_several_reduce_axes() -> None:
    """Level 1 takes what level 0 refuses."""
    assert tensor_axes(after(core_cases.relu_matmul(), "TC 0 level 1"))
    assert tensor_axes(after(core_cases.deep(), "TC 1 level 1")) == {"i": 8, "j": 8, "k": 8}


def test_a_symbolic_dim_is_no_core_axis() -> None:
    """Its size is known at launch: no triple holds it."""
    dims = Dim("i", N), Dim("j", 16), Dim("k", 16, True)
    i, j, k = (d.uop for d in dims)
    a, b = bodies.load(bodies.at(0, (N, 16), i, k)), bodies.load(bodies.at(1, (16, 16), k, j))
    total = bodies.reduce("add", bodies.op(Op.MUL, a, b), k)
    assert triples(bodies.kernel(dims, (bodies.at(2, (N, 16), i, j), total))) == []


def test_two_products_are_both_bound() -> None:
    """(A @ B) + (C @ D): one core does both sums, over the K they share."""
    assert tensor_axes(after(two_products(), "TC 0")) == {"i": 8, "j": 8, "k": 8}


def test_padto_enlarges_the_outermost_axis() -> None:
    """What the axes cover becomes a multiple, so that later cuts of inner axes divide."""
    made = after(matmul(33, 32, 32), "TC 0 · PADTO i 32")
    assert {a.name: a.size for a in made.schedule.axes}["i/8"] == 8


def test_options_say_how() -> None:
    """Given opts take over what the user's options say; words of their own win."""
    kernel = matmul(30, 32, 32)
    level_1 = Options(opts=("TC 0",), tensor_core_level=1)
    with pytest.raises(OptError, match="no multiple"):
        loopwright_schedule(kernel, CUDA, level_1)
    shape = Options(opts=("TC 0",), tensor_cores="shape")
    made = loopwright_schedule(kernel, CUDA, shape).schedule
    assert made.tensor_core is not None and not made.tensor_core.multiplies
    own = loopwright_schedule(kernel, CUDA, replace(level_1, opts=("TC 0 level 2",)))
    assert str(own.schedule) == "TC 0 level 2"


def test_strategy() -> None:
    """A core where one matches, then register tiles of 5, 4, 3 or 2, then 4 or 2 beside; options
    turn it off, make it a shape or keep it to whole tiles."""
    half = matmul(512, 512, 512)
    for options in (Options(), Options(parity=True)):
        found = propose(half, CUDA, options)
        words = " level 1" if options.parity else ""
        steps = f"TC 0{words} · UPCAST i/16 4 · UPCAST j/8 4 · LOCAL j/32 4"
        assert str(found.kernel.schedule) == steps
    odd = propose(matmul(240, 80, 64), CUDA)
    assert str(odd.kernel.schedule) == "TC 0 · UPCAST i/16 5 · UPCAST j/8 5 · LOCAL j/40 2"
    assert propose(half, CUDA, Options(tensor_cores="off")).strategy != "tensor_cores"
    assert propose(half, CUDA, Options(no_locals=True)).strategy != "tensor_cores"
    shape = propose(half, CUDA, Options(tensor_cores="shape")).kernel.schedule
    assert shape.tensor_core is not None and not shape.tensor_core.multiplies
    window = propose(core_cases.deep(), METAL).kernel.schedule
    assert str(window).startswith("TC 1")  # K along the window of 3 would be padded
    ragged = matmul(511, 513, 509)
    assert propose(ragged, CUDA).strategy == "tensor_cores"
    assert propose(ragged, CUDA, Options(tensor_core_level=1)).strategy != "tensor_cores"
    assert propose(bodies.matmul(), CUDA).strategy != "tensor_cores"
