"""Kernels as text: what they show, that nothing is compiled for it, and names."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.identifiers import legal_name
from loopwright_core.errors import ArgumentError


def array(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return lw.asarray(rng.standard_normal(shape).astype(np.float32), device="cpu")


def test_what_a_kernel_shows() -> None:
    """Name, text, opts, nest, launch and counts of a matmul."""
    (k,) = lw.kernels(array(16, 32) @ array(32, 24))
    assert k.name.startswith("r_") and f"{k.name}(" in k.source
    assert k.estimate.flops == 2 * 16 * 32 * 24
    assert k.estimate.bytes == 4 * (16 * 32 + 32 * 24 + 16 * 24)
    assert k.describe().startswith(k.name)
    assert "\x1b[" in k.describe(colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", k.describe(colour=True)) == k.describe()
    assert len(k.describe(width=20)) == 20
    assert all(isinstance(o, str) for o in k.opts)
    assert len(k.launch) == 1 and k.launch[0].global_size is None
    with lw.options(opts=list(k.opts)):
        assert lw.kernels(array(16, 32) @ array(32, 24))[0].source == k.source


def test_kernels_never_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rendering text starts no process."""
    x = array(7, 9) + 1.0
    lw.kernels(x)  # whatever is probed once is probed here

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    (k,) = lw.kernels(array(7, 9) * 3.25)
    assert k.source


def test_compile_is_asked_for() -> None:
    """`compile()` gives the binary."""
    (k,) = lw.kernels(array(5) * 2.0)
    assert len(k.compile()) > 100


def test_kernels_in_order_equal_ones_once() -> None:
    """Every different kernel comes once, in the order they run, under names of their own."""
    x = array(20, 20)
    y = lw.exp(x)
    for _ in range(3):
        y = y - lw.sum(y, axis=0)
    found = lw.kernels(y)
    names = [k.name for k in found]
    assert len(set(names)) == len(names)
    assert len({k.source for k in found}) == len(found)


def test_nothing_to_do() -> None:
    """Arrays in memory have no kernels; no arrays is an error."""
    assert lw.kernels(array(3)) == []
    with pytest.raises(ArgumentError):
        lw.kernels()
    with pytest.raises(TypeError):
        lw.kernels(np.zeros(3))


def test_named_kernel() -> None:
    """The function's kernels carry the name; what follows is not drawn in."""
    x = array(12, 10)

    def normalise(v: Any) -> Any:
        return v - lw.mean(v, axis=0)

    y = lw.named_kernel("my_op", normalise)(x)
    assert [k.name for k in lw.kernels(y)] == ["my_op", "my_op_1"]
    after = y * 2.0
    names = [k.name for k in lw.kernels(after)]
    assert names[:2] == ["my_op", "my_op_1"] and len(names) == 3
    want = x.numpy().astype(np.float64)
    np.testing.assert_allclose(after.numpy(), 2 * (want - want.mean(axis=0)), rtol=1e-4, atol=1e-5)


def test_named_inside_named() -> None:
    """Named functions call named functions, and return several arrays."""
    inner = lw.named_kernel("inner", lambda v: v + 1.0)
    outer = lw.named_kernel("outer", lambda v: (inner(v) * 2.0, lw.sum(inner(v))))
    a, b = outer(array(6))
    assert sorted(k.name for k in lw.kernels(a, b)) == ["inner", "outer", "outer_1"]
    x = array(6).numpy()
    np.testing.assert_allclose(a.numpy(), (x + 1) * 2, rtol=1e-6)
    np.testing.assert_allclose(b.numpy(), (x + 1).sum(), rtol=1e-5)


def test_named_opts_are_found_by_name() -> None:
    """Opts by kernel name reach the kernel a user named."""
    y = lw.named_kernel("scaled", lambda v: v * 3.0)(array(64))
    with lw.options(opts={"scaled": ["UPCAST i 4"]}):
        (k,) = lw.kernels(y)
        assert k.opts == ("UPCAST i 4",)


@pytest.mark.parametrize(
    "name",
    ["double", "float4", "asm", "kernel", "threadIdx", "half", "main", "exp", "printf", "",
     "a b", "3x", "é", "日本", "x" * 300, "_x", "a__b", "restrict", "j", "A"],
)  # fmt: skip
def test_any_name_runs(name: str) -> None:
    """Keywords, library names and what is no identifier compile all the same."""
    y = lw.named_kernel(name, lambda v: v + 1.0)(lw.asarray(np.array([1, 2], np.float32)))
    (k,) = lw.kernels(y)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", k.name)
    np.testing.assert_array_equal(y.numpy(), [2, 3])


def test_legal_names() -> None:
    """Good names stay, long and foreign ones stay apart."""
    assert legal_name("my_op") == "my_op"
    assert legal_name("é") != legal_name("è")
    assert legal_name("x" * 300) != legal_name("x" * 301)
    with pytest.raises(TypeError):
        lw.named_kernel(3, lambda v: v)
