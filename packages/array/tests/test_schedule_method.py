"""y.schedule(...): the kernel of one value is scheduled by hand."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright.options import current
from loopwright.road import follow
from loopwright_core.errors import ArgumentError, ArgumentTypeError, OptError

X = np.arange(4096, dtype=np.float32)


def test_the_value_is_the_root_of_a_kernel() -> None:
    """The scheduled value is stored by a kernel with those steps; what uses it reads it from
    memory, and is scheduled as ever."""
    y = (lw.asarray(X) * 2.0).schedule("UPCAST i 4 · TILE i/4 8")
    first, second = lw.kernels(y + 1.0)
    assert first.opts == ("UPCAST i 4", "TILE i/4 8")
    assert second.opts != first.opts
    np.testing.assert_array_equal((y + 1.0).numpy(), X * 2 + 1)


def test_other_values_have_no_part_in_it() -> None:
    """The array it was called on, and equal expressions, are scheduled as ever; so are those of a
    named function's results."""
    a = lw.asarray(X) * 2.0
    b = a.schedule("UPCAST i 2")
    named = lw.named_kernel("twice", lambda x: x * 2.0)(lw.asarray(X))
    assert lw.kernels(b)[0].opts == ("UPCAST i 2",)
    for other in (a, lw.asarray(X) * 2.0):
        assert lw.kernels(other)[0].opts != ("UPCAST i 2",)
        assert lw.kernels(other)[0].name != "twice"
    assert lw.kernels(named)[0].name == "twice"
    lw.evaluate(a, b)
    np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_several_schedules_in_one_expression() -> None:
    """Each value has its own; equal kernels scheduled apart have their own names."""
    a = (lw.asarray(X) * 2.0).schedule("UPCAST i 2")
    b = (lw.asarray(X + 1) * 2.0).schedule(["UPCAST i 8"])
    views = lw.kernels(a, b)
    assert [v.opts for v in views] == [("UPCAST i 2",), ("UPCAST i 8",)]
    assert len({v.name for v in views}) == 2
    lw.evaluate(a, b)
    np.testing.assert_array_equal(b.numpy(), (X + 1) * 2)


def test_it_comes_before_the_options() -> None:
    """Options say how all other kernels run."""
    y = (lw.asarray(X) - 3.0).schedule("UPCAST i 4")
    with lw.options(schedule="none"):
        assert [v.opts for v in lw.kernels(y)] == [("UPCAST i 4",)]
    z = lw.sqrt(y)
    with lw.options(opts=["UPCAST i 2"]):
        assert [v.opts for v in lw.kernels(z)] == [("UPCAST i 4",), ("UPCAST i 2",)]


def test_named_and_scheduled() -> None:
    """A value may have both, whichever comes first."""
    shift = lw.named_kernel("shift", lambda x: x + 5.0)
    (view,) = lw.kernels(shift(lw.asarray(X)).schedule("UPCAST i 4"))
    assert (view.name, view.opts) == ("shift", ("UPCAST i 4",))
    again = lw.named_kernel("again", lambda x: (x + 7.0).schedule("UPCAST i 2"))
    (view,) = lw.kernels(again(lw.asarray(X)))
    assert (view.name, view.opts) == ("again", ("UPCAST i 2",))


def test_within_jit() -> None:
    """A jitted function's kernels carry the schedules given while it was traced."""

    @lw.jit
    def f(x: lw.Array) -> lw.Array:
        return lw.sum((x * x).schedule("UPCAST i 4") + 1.0)

    assert f(X) == pytest.approx(float((X.astype(np.float64) ** 2 + 1).sum()), rel=1e-6)
    assert f.kernels(X)[0].opts == ("UPCAST i 4",)


def test_what_cannot_be_scheduled() -> None:
    """A computed array has no kernel; steps are text."""
    with pytest.raises(ArgumentError, match="its values are there already"):
        lw.asarray(X).schedule("UPCAST i 4")
    with pytest.raises(ArgumentError, match="at least one step"):
        (lw.asarray(X) * 2.0).schedule(" · ")
    with pytest.raises(ArgumentTypeError):
        (lw.asarray(X) * 2.0).schedule(4)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["NONSENSE", "UPCAST i", "UPCAST i 4 · TILE 4 i", ["ORDER i"]])
def test_texts_that_are_no_steps(text: str | list[str]) -> None:
    """They are refused where they are written, before any kernel is made."""
    x = lw.asarray(X) * 8.0
    line = sys._getframe().f_lineno + 2
    with pytest.raises(OptError) as told:
        x.schedule(text)
    assert told.value.__notes__ == [f"scheduled at {__file__}:{line}"]


@pytest.mark.parametrize("by", ["numpy", "kernels", "jit", "named options", "road"])
def test_steps_that_are_not_legal(by: str) -> None:
    """When the kernel is made the error names kernel, axis and the line that gave the schedule."""
    line = sys._getframe().f_lineno + 1
    y = (lw.asarray(X) * 9.0).schedule("UNROLL i 4")
    rule = r"UNROLL is for reduce axes \(in kernel \w*, axis i/1\)"
    with pytest.raises(OptError, match=rule) as told:
        if by == "numpy":
            (y + 1.0).numpy()
        elif by == "kernels":
            lw.kernels(y + 1.0)
        elif by == "road":
            follow([y._uop], "cpu", current())
        elif by == "named options":
            with lw.options(opts={"e_4096": ["UPCAST i 4"]}):
                y.numpy()
        else:
            line = sys._getframe().f_lineno + 1
            lw.jit(lambda x: (x * 9.0).schedule("UNROLL i 4"))(X)
    assert f"scheduled at {__file__}:{line}" in told.value.__notes__


def test_lines_do_not_meet() -> None:
    """Equal schedules of equal values on two lines are told apart in errors."""
    first = (lw.asarray(X) * 9.0).schedule("UNROLL i 4")
    x = lw.asarray(X)
    second, third = (x * 9.0).schedule("UNROLL i 4"), (x * 9.0).schedule("UNROLL i 4")
    lines = []
    for y in (first, second, third):
        with pytest.raises(OptError) as told:
            y.numpy()
        lines.append(told.value.__notes__[0])
    assert lines[0] != lines[1] == lines[2]
