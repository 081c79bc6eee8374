"""What the cost model prefers, and what it looks at."""

from __future__ import annotations

from dataclasses import replace

import bodies
import pytest
from bodies import CPU, forbid_graph_walks

from loopwright_opt.apply import apply_all
from loopwright_opt.cost import predict
from loopwright_opt.text import parse

TARGET = replace(CPU, threads=1, registers=32)


def cost(kernel: bodies.Kernel, *steps: str) -> float:
    return predict(apply_all(kernel, parse(list(steps)), TARGET), TARGET)


@pytest.mark.parametrize(
    ("kernel", "better", "worse"),
    [
        pytest.param(bodies.add(), ["VECTOR i 16"], [], id="lanes"),
        pytest.param(bodies.matmul(), ["VECTOR j 16"], ["VECTOR i 16"], id="unit stride"),
        pytest.param(
            bodies.matmul(), ["VECTOR j 16", "UPCAST i 6"], ["VECTOR j 16"], id="register tile"
        ),
        pytest.param(
            bodies.matmul(64, 64, 64),
            ["VECTOR j 16", "UPCAST i 8"],
            ["VECTOR j 16", "UPCAST i 16", "UPCAST j/16 4"],
            id="registers are few",
        ),
        pytest.param(
            bodies.row_sums(64, 4096),
            ["VECTOR k 16", "UPCAST k/16 4"],
            ["VECTOR k 16"],
            id="one chain of sums waits",
        ),
        pytest.param(
            bodies.column_sums(4096, 4096), ["ORDER k i", "VECTOR i 16"], [], id="along the rows"
        ),
    ],
)
def test_prefers(kernel: bodies.Kernel, better: list[str], worse: list[str]) -> None:
    """The schedule known to be faster is predicted to be."""
    assert cost(kernel, *better) < cost(kernel, *worse)


def test_threads_pay_for_large_kernels_only() -> None:
    """Threads are predicted to help a matrix product and to harm a sum of 16 rows."""
    target = replace(TARGET, threads=4)
    for kernel, helps in ((bodies.matmul(), True), (bodies.row_sums(16, 16), False)):
        with_threads = apply_all(kernel, parse(["THREAD i 4"]), target)
        assert (predict(with_threads, target) < predict(kernel, target)) == helps


def test_more_rows_cost_more() -> None:
    """A kernel of twice the work is predicted to take longer."""
    assert cost(bodies.matmul(512)) < cost(bodies.matmul(1024))


def test_a_prediction_walks_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a prediction asks about the body is found once for all schedules of it."""
    kernel = apply_all(bodies.matmul(), parse(["VECTOR j 16", "UPCAST i 6"]), TARGET)
    expected = predict(kernel, TARGET)
    forbid_graph_walks(monkeypatch)
    assert predict(kernel, TARGET) == expected
