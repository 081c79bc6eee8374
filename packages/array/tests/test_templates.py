"""Graphs that were cut before are not cut again, and give the same kernels over other memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluate import make_plan
from loopwright.fuse import templates


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of outputs of every graph that is really cut."""
    counted: list[int] = []
    real = templates.fuse_once

    def counting(stores: Any, device: Any, cut: Any) -> Any:
        def wrapped(given: Any) -> Any:
            counted.append(len(given))
            return cut(given)

        return real(stores, device, wrapped)

    # `lw.evaluate` is the function: the module of that name is in sys.modules alone.
    monkeypatch.setattr(sys.modules["loopwright.evaluate"], "fuse_once", counting)
    monkeypatch.setattr(templates, "_templates", {})
    return counted


def array(n: int, seed: int) -> Any:
    return lw.asarray(np.random.default_rng(seed).standard_normal((n, n)), device="cpu")


def centre(x: Any) -> Any:
    return x - lw.mean(x, axis=0)


def test_equal_structure_is_cut_once(cuts: list[int]) -> None:
    """Ten evaluations over different arrays: one cut, ten right results."""
    for seed in range(10):
        x = array(12, seed)
        want = x.numpy() - x.numpy().mean(axis=0)
        np.testing.assert_allclose(centre(x).numpy(), want, rtol=1e-13, atol=1e-15)
    assert cuts == [1]


def test_what_differs_is_cut_again(cuts: list[int]) -> None:
    """Another shape, another constant, and one array in two places are other graphs."""
    x, y = array(8, 0), array(8, 1)
    for z in (x * y, x * x, x * 2.0, x * 3.0, array(9, 0) * array(9, 1), y * x):
        z.numpy()
    assert len(cuts) == 5
    np.testing.assert_array_equal((x * x).numpy(), x.numpy() ** 2)
    np.testing.assert_array_equal((y * x).numpy(), y.numpy() * x.numpy())


def test_kernels_of_a_template_have_their_own_memory(cuts: list[int]) -> None:
    """Two plans of one structure share kernel ASTs and no buffer between kernels."""
    first = make_plan([centre(array(8, 0))._uop], "cpu")
    second = make_plan([centre(array(8, 1))._uop], "cpu")
    assert [k.ast for k in first.kernels] == [k.ast for k in second.kernels]
    used = {b for k in first.kernels for b in k.buffers}
    assert not used & {b for k in second.kernels for b in k.buffers}
    assert cuts == [1]


def test_large_graphs_are_not_kept(cuts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph beyond the limit is cut each time, and the table never outgrows its size."""
    monkeypatch.setattr(templates, "_MAX_NODES", 3)
    for _ in range(2):
        centre(array(8, 0)).numpy()
    assert cuts == [1, 1] and not templates._templates
    monkeypatch.setattr(templates, "_MAX_NODES", 1000)
    monkeypatch.setattr(templates, "_MAX_TEMPLATES", 4)
    for n in range(1, 12):
        (array(n, 0) + 1.0).numpy()
        assert len(templates._templates) <= 4
