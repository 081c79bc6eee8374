"""What the cost model prefers on GPUs, by counting."""

from __future__ import annotations

import bodies
import pytest

from loopwright_core.plugin.target import Target
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_opt.apply import apply_all
from loopwright_opt.cost import predict
from loopwright_opt.text import parse

TARGETS = cuda("sm_80"), metal()


def cost(kernel: bodies.Kernel, target: Target, *steps: str) -> float:
    return predict(apply_all(kernel, parse(list(steps)), target), target)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("kernel", "better", "worse"),
    [
        pytest.param(bodies.add(), ["LOCAL i 256"], ["LOCAL i 3"], id="whole warps"),
        pytest.param(
            bodies.matmul(),
            ["LOCAL i 8", "LOCAL j 32"],
            ["LOCAL j 8", "LOCAL i 32"],
            id="neighbours read neighbours",
        ),
        pytest.param(
            bodies.matmul(),
            ["UPCAST i 4", "UPCAST j 4", "LOCAL i/4 8", "LOCAL j/4 16"],
            ["LOCAL i 8", "LOCAL j 16"],
            id="register tile",
        ),
        pytest.param(
            bodies.matmul(),
            ["UPCAST i 4", "UPCAST j 4", "LOCAL i/4 8", "LOCAL j/4 16"],
            ["UPCAST i 16", "UPCAST j 16", "LOCAL i/16 8", "LOCAL j/16 16"],
            id="registers are few",
        ),
        pytest.param(
            bodies.row_sums(16, 1 << 16), ["GROUP k 256"], [], id="few outputs, many threads"
        ),
        pytest.param(
            bodies.row_sums(16, 1 << 16),
            ["GROUP k 256"],
            ["GROUPTOP k 256"],
            id="a group reads side by side",
        ),
        pytest.param(
            bodies.column_sums(1024, 1 << 16),
            ["LOCAL i 64"],
            ["GROUP k 64"],
            id="a group along columns reads far apart",
        ),
    ],
)
def test_prefers(
    target: Target, kernel: bodies.Kernel, better: list[str], worse: list[str]
) -> None:
    """The schedule known to be faster is predicted to be."""
    assert cost(kernel, target, *better) < cost(kernel, target, *worse)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_shared_memory_saves_global_reads(target: Target) -> None:
    """A matrix product over staged tiles is predicted to beat one that reads each operand again."""
    tile = ["TILE k 16", "LOCAL i 16", "LOCAL j 16"]
    stages = ["STAGE A @k/16 layout i/1,k/1", "STAGE B @k/16 layout k/1,j/1"]
    assert cost(bodies.matmul(), target, *tile, *stages) < cost(bodies.matmul(), target, *tile)


def test_tensor_cores_pay() -> None:
    """A product on Metal's tensor cores is predicted to beat one of plain multiply-adds."""
    tile = ["TC 0", "UPCAST i/8 4", "UPCAST j/8 4", "LOCAL j/32 4"]
    plain = ["UPCAST i 4", "UPCAST j 4", "LOCAL i/4 8", "LOCAL j/4 16"]
    assert cost(bodies.matmul(), metal(), *tile) < cost(bodies.matmul(), metal(), *plain)


def test_more_rows_cost_more() -> None:
    """A kernel of twice the work is predicted to take longer."""
    for target in TARGETS:
        assert cost(bodies.matmul(512), target) < cost(bodies.matmul(1024), target)
