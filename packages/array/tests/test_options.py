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
