"""What the cost model prefers, and what it looks at."""

from __future__ import annotations

from dataclasses import replace

import bodies
import pytest
from bodies import CPU, forbid_graph_walks

from loopwright_opt.apply import apply, apply_all
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


def test_copies_pay_where_rows_lie_4096_bytes_apart() -> None:
    """Packing B gains more where its rows share few places of the cache than where they do not."""

    def gain(n: int) -> float:
        tile = ["TILE j 256", "UPCAST i 6", "TILE j/1 64", "VECTOR j/1 16", "UPCAST j/16 0"]
        tile.append("ORDER j/256 i/6 j/64 k")
        stage = "STAGE B @j/256 layout j/64,k/1,j/16,j/1 order k/1,j/64,j/16,j/1"
        target = replace(TARGET, caches=(48 << 10, 2 << 20, 100 << 20))
        plain = apply_all(bodies.matmul(n, n, n), parse(tile), target)
        return predict(plain, target) / predict(apply(plain, parse(stage)[0], target), target)

    assert gain(1024) > 1.5 * gain(1000), (gain(1024), gain(1000))


def test_a_kept_value_is_computed_once() -> None:
    """KEEP spares softmax its second exponential."""
    lanes = ["VECTOR j* 16"]
    assert cost(bodies.softmax(1024, 1024), *lanes, "KEEP v0 @i") < cost(
        bodies.softmax(1024, 1024), *lanes
    )


def test_writes_past_the_caches_pay_for_far_outputs() -> None:
    """A large sum of two arrays is predicted to gain from NTSTORE."""
    kernel = bodies.add(1 << 24)
    assert cost(kernel, "VECTOR i 16", "NTSTORE C") < cost(kernel, "VECTOR i 16")
