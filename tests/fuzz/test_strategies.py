"""What the strategies propose for kernels of random sizes gives the bits of the plain kernel.

On the CPU compiled, on targets with workgroups in the interpreter.

LOOPWRIGHT_LONG=1 runs some twenty times as many.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import asts
import numpy as np
import pytest
from asts import buffer, expand, keep, op, permute, reduce, reshape, scan, sink

from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.strategies.choice import proposals, propose, strategies, variations
from loopwright_render_clang.device import CpuDevice
from support import drawn_kernels, machines
from support.exact_kernels import GuardedMemory
from support.schedule_cases import Machine, check_results

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
PER_KIND = 60 if LONG else 3

DEVICE = CpuDevice()
SIZES = (1, 2, 3, 5, 6, 7, 8, 12, 15, 16, 17, 24, 31, 33, 40, 48, 64, 67, 70, 100)
GPUS = {"metal": metal(), "cuda": cuda("sm_80")}


def sizes(rng: random.Random, n: int) -> list[int]:
    return [rng.choice(SIZES) for _ in range(n)]


def product(rng: random.Random) -> UOp:
    """A matrix product, either side transposed or not, alone, with a bias, or in a batch."""
    m, n, k, batch = sizes(rng, 4)
    if rng.random() < 0.3:
        batch = min(batch, 5)
        a, b = buffer(0, batch, m, k), buffer(1, batch, k, n)
        a = expand(reshape(a, batch, m, 1, k), batch, m, n, k)
        b = expand(reshape(permute(b, 0, 2, 1), batch, 1, n, k), batch, m, n, k)
        return sink((buffer(2, batch, m, n), reduce(op(Op.MUL, a, b), "add", 3)))
    a = buffer(0, m, k) if rng.random() < 0.6 else permute(buffer(0, k, m), 1, 0)
    b = buffer(1, k, n) if rng.random() < 0.6 else permute(buffer(1, n, k), 1, 0)
    value = asts.product(a, b)
    if rng.random() < 0.3:
        value = op(Op.ADD, value, expand(reshape(buffer(2, n), 1, n), m, n))
        return sink((buffer(3, m, n), value))
    return sink((buffer(2, m, n), value))


def vector_product(rng: random.Random) -> UOp:
    m, k = sizes(rng, 2)
    x = expand(reshape(buffer(1, k), 1, k), m, k)
    a = buffer(0, m, k) if rng.random() < 0.5 else permute(buffer(0, k, m), 1, 0)
    return sink((buffer(2, m), reduce(op(Op.MUL, a, x), "add", 1)))


def reduction(rng: random.Random) -> UOp:
    shape = sizes(rng, rng.randint(1, 3))
    axis = rng.randrange(len(shape))
    left = [n for a, n in enumerate(shape) if a != axis]
    combine = rng.choice(["add", "max", "min"])
    return sink((buffer(1, *left), reduce(buffer(0, *shape), combine, axis)))


def rows(rng: random.Random) -> UOp:
    """e - sum(e) with e = (x - max(x))**2: the three loops of softmax, along either axis."""
    m, n = sizes(rng, 2)
    axis = rng.randrange(2)
    x = buffer(0, m, n)
    centred = op(Op.SUB, x, keep(x, "max", axis))
    e = op(Op.MUL, centred, centred)
    return sink((buffer(1, m, n), op(Op.SUB, e, keep(e, "add", axis))))


def turned(rng: random.Random) -> UOp:
    """A permuted array, alone or added to one that is not."""
    shape = sizes(rng, rng.randint(2, 3))
    order = list(range(len(shape)))
    rng.shuffle(order)
    value = permute(buffer(0, *shape), *order)
    new = [shape[a] for a in order]
    if rng.random() < 0.5:
        return sink((buffer(2, *new), op(Op.ADD, value, buffer(1, *new))))
    return sink((buffer(1, *new), op(Op.ADD, value, value)))


def stream(rng: random.Random) -> UOp:
    m, n = sizes(rng, 2)
    column = expand(reshape(buffer(1, m), m, 1), m, n)
    return sink((buffer(2, m, n), op(Op.MUL, buffer(0, m, n), column)))


def convolution(rng: random.Random) -> UOp:
    channels, inputs = rng.choice((1, 4, 12, 17)), rng.choice((1, 3, 8))
    high, wide = rng.choice((5, 9, 17)), rng.choice((8, 12, 20, 37))
    return asts.conv(inputs, high, wide, channels, rng.choice((1, 2, 3)), 1)


def running(rng: random.Random) -> UOp:
    m, n = sizes(rng, 2)
    return sink((buffer(1, m, n), scan(buffer(0, m, n), "add", rng.randrange(2))))


def nested(rng: random.Random) -> UOp:
    """A reduce over the elements of a matrix product, along either axis or both."""
    m, n, k = sizes(rng, 3)
    value = asts.product(buffer(0, m, k), buffer(1, k, n))
    axis = rng.randrange(3)
    if axis == 2:
        return sink((buffer(2), reduce(value, "max", 0, 1)))
    return sink((buffer(2, (m, n)[1 - axis]), reduce(value, "max", axis)))


def pooling(rng: random.Random) -> UOp:
    """The largest of a window, or of every second element backwards."""
    high, wide, size = rng.choice((8, 17)), rng.choice((20, 33, 67)), rng.choice((2, 3))
    x = buffer(0, 3, high, wide)
    if rng.random() < 0.3:
        x = asts.flip(x, 2)
    tiles = asts.window(asts.window(x, 1, size, rng.choice((1, 2))), 2, size, rng.choice((1, 2)))
    _, oh, ow, _, _ = shape_of(tiles)
    return sink((buffer(1, 3, oh, ow), reduce(tiles, rng.choice(("max", "add")), 3, 4)))


KINDS: dict[str, Callable[[random.Random], UOp]] = {
    "product": product,
    "vector product": vector_product,
    "reduction": reduction,
    "rows": rows,
    "turned": turned,
    "stream": stream,
    "convolution": convolution,
    "running": running,
    "nested": nested,
    "pooling": pooling,
}


def settings(rng: random.Random) -> dict[str, int]:
    """Threads for any work at all, and now and then another value of a parameter."""
    found = {"threads.worth": 0}
    for strategy in strategies():
        for p in strategy.parameters:
            if p.name not in found and rng.random() < 0.2:
                found[p.name] = rng.choice(p.choices)
    return found


def run(kernel: Kernel, memory: GuardedMemory) -> None:
    program = lower(kernel, DEVICE.target)
    verify_program(program, DEVICE.target)
    binary = DEVICE.compile(DEVICE.render(program), program)
    buffers = [DEVICE.from_host(memory.arrays[p.slot]) for p in program.params]
    DEVICE.launch(DEVICE.load(binary, program), buffers)


@pytest.mark.skipif(DEVICE.state()[0] != "ready", reason="no C compiler")
@pytest.mark.parametrize("kind", KINDS)
def test_proposals_change_no_bit(kind: str) -> None:
    """Whole numbers sum to the same bits in every order; nothing beside a buffer is written."""
    for seed in range(PER_KIND):
        rng = random.Random(f"{kind} {seed}")
        plain = index(KINDS[kind](rng))
        target = replace(
            DEVICE.target,
            threads=rng.choice((1, 2, 3)),
            registers=rng.choice((16, 32)),
            caches=(rng.choice((1 << 10, 32 << 10)), 512 << 10, 0),
        )
        made = propose(plain, target, settings=settings(rng)).kernel
        expected, actual = GuardedMemory(plain, seed), GuardedMemory(plain, seed)
        run(plain, expected)
        what = f"seed {seed}: {made.schedule}"
        try:
            run(made, actual)
        except Exception as error:
            error.add_note(what)
            raise
        for slot, array in expected.arrays.items():
            np.testing.assert_array_equal(actual.arrays[slot], array, err_msg=what)
        assert actual.broken_guards() == [], what


def some_proposals(
    rng: random.Random, plain: Kernel, target: Target
) -> Iterator[tuple[str, Kernel]]:
    """(what it is, kernel) of every strategy's proposal, some with a parameter at another value."""
    options = Options(no_locals=rng.random() < 0.2, parity=rng.random() < 0.3)
    made = proposals(plain, target, options)
    more = [v for p in made for v in variations(plain, target, options, p)]
    rng.shuffle(more)
    seen = {}
    for proposal in (*made, *more[:2]):
        seen.setdefault(proposal.kernel.schedule, proposal)
    for schedule, proposal in seen.items():
        yield f"{proposal.strategy}: {schedule}", proposal.kernel


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kind", KINDS)
def test_proposals_for_workgroups_change_no_bit(kind: str, gpu: str) -> None:
    """Every strategy's proposal is right in lock-step: no race, nothing beside a buffer written."""
    target = GPUS[gpu]
    for seed in range(PER_KIND):
        rng = random.Random(f"{kind} {seed} {gpu}")
        plain = index(KINDS[kind](rng))
        expected = GuardedMemory(plain, seed)
        run_kernel(plain, expected.arrays)
        for what, kernel in some_proposals(rng, plain, target):
            actual = GuardedMemory(plain, seed)
            try:
                program = lower(kernel, target)
                verify_program(program, target)
                run_program(program, actual.arrays)
            except Exception as error:
                error.add_note(f"seed {seed}: {what}")
                raise
            for slot, array in expected.arrays.items():
                np.testing.assert_array_equal(actual.arrays[slot], array, err_msg=what)
            assert actual.broken_guards() == [], what


@pytest.mark.parametrize("machine", machines.GPUS, ids=lambda m: m.name)
def test_proposals_for_random_kernels(machine: Machine) -> None:
    """Kernels of every structure, some as large as the strategies' limits."""
    target = machine.target
    for seed in range(10 * PER_KIND):
        rng = random.Random(f"{machine.name} {seed}")
        kind = rng.choice(list(drawn_kernels.KINDS))
        points = rng.choice((240, 1500, 6000))
        drawn = drawn_kernels.draw(rng, kind, target.arith | target.storage, points)
        plain = index(drawn.ast)
        for what, kernel in some_proposals(rng, plain, target):
            try:
                program = lower(kernel, target)
                verify_program(program, target)
                check_results(machine.load(program), plain, drawn, seed)
            except Exception as error:
                error.add_note(f"seed {seed}, {kind}: {what}")
                raise
