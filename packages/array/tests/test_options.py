"""Options: in force inside the block, per thread, and refused where they make no sense."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import loopwright as lw
from loopwright.options import current
from loopwright_core.errors import ArgumentError
from loopwright_core.kernel.options import Options


def test_nesting() -> None:
    """An inner block changes what it names and keeps the rest; both end."""
    assert current() == Options()
    with lw.options(schedule="beam", beam=8):
        with lw.options(budget_s=1.5, no_locals=True) as inner:
            assert inner == current()
            assert (inner.schedule, inner.beam, inner.budget_s) == ("beam", 8, 1.5)
        assert not current().no_locals
    assert current() == Options()


def test_opts_for_one_kernel_and_by_name() -> None:
    """A list is for the one kernel, a dict is by kernel name."""
    with lw.options(opts=["UPCAST i 4"]):
        assert current().given("r_2") == ("UPCAST i 4",)
        with lw.options(opts={"r_2": ["UNROLL k 4"], "e_3": []}):
            assert current().given("r_2") == ("UNROLL k 4",)
            assert current().given("e_3") == ()
            assert current().given("e_4") is None
        with lw.options(opts=None):
            assert current().given("r_2") is None


def test_block_ends_with_an_exception() -> None:
    """An exception leaves no option behind."""
    with pytest.raises(ZeroDivisionError), lw.options(schedule="none"):
        raise ZeroDivisionError
    assert current() == Options()


def test_other_threads_are_not_touched() -> None:
    """A thread started inside a block has the defaults."""
    seen: list[Options] = []
    with lw.options(schedule="none"):
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()
    assert seen == [Options()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "fastest"}, "'none', 'heuristic', 'beam'"),
        ({"tensor_cores": True}, "tensor_cores"),
        ({"beam": "4"}, "takes a number"),
        ({"beam": -1}, "at least 0"),
        ({"beam": True}, "takes a number"),
        ({"no_locals": 1}, "True or False"),
        ({"opts": "UPCAST i 4"}, "list of texts"),
        ({"vectorize": 4}, "there is no option 'vectorize'"),
    ],
)
def test_what_is_no_option(changes: dict[str, Any], message: str) -> None:
    """Unknown names, wrong types and wrong values say what is allowed."""
    with pytest.raises((ArgumentError, TypeError), match=message), lw.options(**changes):
        pass
    assert current() == Options()


def lazy(n: int) -> lw.Array:
    return lw.ones(n, device="cpu") + lw.arange(n, dtype=lw.float32, device="cpu")


def test_opts_for_a_kernel_that_is_not_there() -> None:
    """A name that no kernel of the block had is an error that names those there are."""
    message = "given for nosuch, and no kernel here has that name.*the kernels are e_64, e_32"
    opts = {"e_64": ["UPCAST i 4"], "nosuch": ["UPCAST i 4"]}
    with pytest.raises(ArgumentError, match=message), lw.options(opts=opts):
        lw.kernels(lazy(64))
        lazy(32).numpy()
    assert current() == Options()


def test_opts_for_several_evaluations() -> None:
    """The kernels that one dict names may belong to several evaluations and inner blocks."""
    with lw.options(opts={"e_64": ["UPCAST i 4"], "e_32": ["UPCAST i 2"]}):
        (first,) = lw.kernels(lazy(64))
        with lw.options(schedule="none"):
            (second,) = lw.kernels(lazy(32))
        with lw.options(opts=["UPCAST i 8"]):
            (third,) = lw.kernels(lazy(16))
    assert (first.opts, second.opts) == (("UPCAST i 4",), ("UPCAST i 2",))
    assert third.opts == ("UPCAST i 8",)
    with lw.options(opts={"e_64": ["UPCAST i 4"]}):
        pass  # nothing was made here, so nothing can be said of names


def test_an_error_inside_comes_first() -> None:
    """A failure in the block is not hidden by what its names are missing."""
    with pytest.raises(ZeroDivisionError), lw.options(opts={"nosuch": []}):
        lazy(8).numpy()
        raise ZeroDivisionError
