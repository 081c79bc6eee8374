"""What `explain` says of a schedule is what the lowered program does."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import asts
import pytest

from loopwright_core.errors import OptError
from loopwright_core.ir.ops import Op
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Local, Program
from loopwright_core.targets.cuda import cuda
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from loopwright_render_clang.device import CpuDevice
from support.exact_kernels import KERNELS
from support.random_opts import Opts

CPU = replace(CpuDevice("x86-64-v3").target, threads=2, caches=(1 << 10, 1 << 8, 0))
CUDA = cuda("sm_80")
STAGED = r"\(([\dx ]+) elements, .*\)"


def locals_of(program: Program) -> list[Local]:
    return [u.arg for p in program.phases for u in p.uops if u.op is Op.DEFINE_LOCAL]


def check(kernel: Kernel, target: Target) -> None:
    """Every axis is told of; every copy has the size of an array of the program, which is larger
    where the lowering cuts long sums in blocks of its own."""
    is_cut = any(d.is_reduce and d.max_size > 1000 for d in kernel.dims)
    told = kernel.explain()
    for axis in kernel.schedule.axes:
        if axis.size != 1:
            assert [t for t in told if t.split("launch. ")[-1].startswith(f"{axis.name}: ")], axis
    sizes = [a.size for a in locals_of(lower(kernel, target))]
    for text in told:
        found = re.search(STAGED, text)
        if found:
            n = 1
            for extent in found[1].split(" x "):
                n *= int(extent)
            assert n in sizes or (is_cut and n < max(sizes)), text
    assert kernel.schedule.explain()


@pytest.mark.parametrize("target", [CPU, CUDA], ids=["cpu", "cuda"])
@pytest.mark.parametrize("name", KERNELS)
def test_random_schedules(name: str, target: Target) -> None:
    """Any legal schedule is explained: all its axes, its copies with their true sizes."""
    plain = index(KERNELS[name]())
    for seed in range(4):
        opts = Opts(random.Random(f"{name} {seed}"), target, focus="STAGE" if seed % 2 else "")
        check(with_grid(opts.schedule(plain), target), target)


def test_a_group_of_one_thread() -> None:
    """A GROUP axis of one step shares nothing: a copy inside it does not name it."""
    plain = index(KERNELS["two outputs"]())
    kernel = apply_all(plain, parse("VECTOR j.0 2 · GROUPTOP j.0/2 2 · UNROLL j.0/12 2"), CUDA)
    assert [a.name for a in kernel.schedule.axes if a.kind is AxisKind.GROUP] == ["j.0/24"]
    with pytest.raises(OptError, match="must name each axis inside once"):
        apply_all(kernel, parse("STAGE A @j.0/24 layout j.0/1,j.0/12,j.0/2,j.0/24"), CUDA)
    check(apply_all(kernel, parse("STAGE A @j.0/24 layout j.0/1,j.0/12,j.0/2"), CUDA), CUDA)


@pytest.mark.parametrize(
    ("kernel", "opts", "launch"),
    [
        (
            asts.matmul(64, 64, 64),
            "UPCAST j 4 · LOCAL i 8 · LOCAL j/4 4 · UNROLL k 4 · STAGE B @k/4",
            "One launch has 8 x 4 workgroups of 8 x 4 threads (32 threads each).",
        ),
        (
            asts.softmax(5, 100),
            "GROUP j.0 16 · GROUP j.1 16 · LOCAL j 32",
            "One launch has 5 workgroups of 32 threads (32 threads each).",
        ),
        (asts.softmax(5, 100), "NOLOCALS", "One launch has 5 items."),
    ],
)
def test_launches(kernel: Kernel, opts: str, launch: str) -> None:
    """The launch that is told is the one that the program has."""
    made = apply_all(index(kernel), parse(opts), CUDA)
    check(made, CUDA)
    assert launch in made.explain()
    (phase,) = lower(made, CUDA).phases
    grid, group = re.findall(r"(\d+(?: x \d+)*) (?:workgroups|items)(?: of ([\dx ]+) t)?", launch)[
        0
    ]
    assert phase.global_size is not None
    assert sorted(n.arg for n in phase.global_size if n.arg > 1) == sorted(
        map(int, grid.split(" x "))
    )
    if group:
        assert phase.local_size is not None
        sizes = sorted(map(int, group.split(" x ")))
        assert sorted(n for n in phase.local_size if n > 1) == sizes


def test_the_text_of_a_schedule_is_read_back() -> None:
    """`str(schedule)` parses and, applied from the start, makes the same schedule."""
    plain = index(asts.matmul(511, 513, 509))
    text = "TILE j 272 · UPCAST i 6 · TILE j 16 · VECTOR j 8 · UPCAST j/8 0 · STAGE B @j/272"
    kernel = apply_all(plain, parse(text), CPU)
    assert str(kernel.schedule) == text
    assert apply_all(plain, parse(str(kernel.schedule)), CPU) == kernel
