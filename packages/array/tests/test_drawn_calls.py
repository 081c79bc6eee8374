"""Calls with drawn arguments: values, dtypes, shapes and errors against NumPy.

LOOPWRIGHT_LONG=1 draws a hundred times as many.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from drawn_calls import FAMILIES, Call, Host

import loopwright as lw
from loopwright_core.errors import LoopwrightError

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
N_DRAWN = 1200 if LONG else 12
BUILT_IN = (TypeError, IndexError, OverflowError, ValueError)


def tried(call: Call, xp: Any) -> tuple[Any, Exception | None]:
    """The call's answer in a namespace, or what it raises."""
    own = [xp.asarray(a, copy=True) if isinstance(a, np.ndarray) else a for a in call.arrays]
    try:
        return call.make(xp, *own, **call.settings), None
    except (*BUILT_IN, LoopwrightError) as error:
        return None, error


def flat(answer: Any) -> list[Any]:
    return list(answer) if isinstance(answer, (tuple, list)) else [answer]


def apart(got: Host, want: Host, call: Call) -> Host:
    """Where two arrays differ; -0.0 from 0.0 too, NaN from NaN not."""
    if want.dtype.kind != "f":
        return got != want
    nan = np.isnan(want)
    bad = (np.isnan(got) != nan) | (~nan & (np.signbit(got) != np.signbit(want)))
    if not call.has_signed_zeros:
        bad &= ~((got == 0) & (want == 0))
    near = np.abs(got.astype(np.longdouble) - want) <= call.ulps * np.spacing(np.abs(want))
    return bad | (~nan & (got != want) & ~(np.isfinite(want) & np.isfinite(got) & near))


def check(what: str, got: Any, want: Any, call: Call) -> None:
    if isinstance(want, (np.ndarray, np.generic)):
        assert isinstance(got, lw.Array), what
        mine, theirs = got.numpy(), np.asarray(want)
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype), what
        bad = apart(mine, theirs, call)
        assert not bad.any(), f"{what}: {mine[bad][:3]}, not {theirs[bad][:3]}"
    else:
        assert type(got) is type(want), what
        assert got == want or (got != got and want != want), f"{what}: {got}, not {want}"


@pytest.mark.parametrize("schedule", ["heuristic", "none"])
@pytest.mark.parametrize("family", FAMILIES)
def test_drawn(family: str, schedule: str) -> None:
    """What NumPy answers, or an error of the kind that NumPy raises."""
    found = []
    with np.errstate(all="ignore"), lw.options(schedule=schedule):
        for seed in range(N_DRAWN):
            call = FAMILIES[family](random.Random(f"{family} {schedule} {seed}"))
            given = [f"{a.dtype}{list(a.shape)}" if np.ndim(a) else repr(a) for a in call.arrays]
            what = f"{family} {seed} of {', '.join(given)} {call.settings}"
            want, refused = tried(call, np)
            got, error = tried(call, lw)
            assert (refused is None) == (error is None), f"{what}: {error!r}, NumPy: {refused!r}"
            if error is None:
                found.append((what, flat(got), flat(want), call))
                continue
            assert isinstance(error, LoopwrightError), f"{what}: {error!r}"
            shared = [k for k in BUILT_IN if isinstance(error, k) and isinstance(refused, k)]
            assert shared, f"{what}: {error!r}, NumPy: {refused!r}"
        lw.evaluate(*[a for _, got, _, _ in found for a in got if isinstance(a, lw.Array)])
        for what, got, want, call in found:
            assert len(got) == len(want), what
            for mine, theirs in zip(got, want, strict=True):
                check(what, mine, theirs, call)
