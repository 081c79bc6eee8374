"""The special cases of the array API standard as rows: domains of the operands, and the result.

A domain names numbers ("+0", ">0", "odd>0", "nan", ...); a row holds for every number of its
domains. A result is a number's name, "x1" or "x2", or a multiple of pi, which may be rounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Host = np.ndarray[Any, Any]
Row = tuple[str, ...]

NAMED = {
    "+0": 0.0,
    "-0": -0.0,
    "+inf": math.inf,
    "-inf": -math.inf,
    "nan": math.nan,
    "+1": 1.0,
    "-1": -1.0,
}
PI = {"pi": 1.0, "-pi": -1.0, "pi/2": 0.5, "-pi/2": -0.5}
PI |= {"pi/4": 0.25, "-pi/4": -0.25, "3pi/4": 0.75, "-3pi/4": -0.75}

# Whole numbers, odd and even, small and as large as a dtype holds them; fractions; extremes.
_ODD = [1.0, 3.0, 7.0, 101.0]
_EVEN = [2.0, 4.0, 8.0, 64.0]
_FRACTIONS = [0.5, 0.75, 1.25, 2.5, 6.125]


def positive(dtype: Any) -> list[float]:
    """Finite positive numbers of a dtype, its extremes among them."""
    info = np.finfo(dtype)
    edges = [info.smallest_subnormal, info.smallest_normal, info.eps, info.max]
    return [*_ODD, *_EVEN, *_FRACTIONS, *(float(v) for v in edges)]


def domain(name: str, dtype: Any) -> list[float]:
    """The numbers that a name stands for."""
    above = positive(dtype)
    finite = [*above, *(-v for v in above)]
    sets = {
        ">0": above,
        "<0": [-v for v in above],
        ">1": [v for v in above if v > 1],
        "<1": [*(v for v in above if v < 1), 0.0, -0.0, *(-v for v in above), -math.inf],
        "<-1": [-v for v in above if v > 1],
        "|x|>1": [v for v in finite if abs(v) > 1],
        "|x|<1": [v for v in finite if abs(v) < 1],
        "|x|=1": [1.0, -1.0],
        "|x|not1": [v for v in finite if v != 1],
        "integer": [v for v in finite if v.is_integer()],
        "fraction": [v for v in finite if not v.is_integer()],
        "odd>0": _ODD,
        "odd<0": [-v for v in _ODD],
        "notodd>0": [*_EVEN, *_FRACTIONS],
        "notodd<0": [-v for v in (*_EVEN, *_FRACTIONS)],
        "nonzero": finite,
        "finite": [*finite, 0.0, -0.0],
        "0": [0.0, -0.0],
        "inf": [math.inf, -math.inf],
        "numbers": [*finite, 0.0, -0.0, math.inf, -math.inf],
        "not0": [*finite, math.inf, -math.inf, math.nan],
        "any": [*finite, 0.0, -0.0, math.inf, -math.inf, math.nan],
    }
    return sets[name] if name in sets else [NAMED[name]]


def cases(rows: Iterable[Row], dtype: Any) -> tuple[list[Host], list[tuple[Row, Any]]]:
    """The operands of all rows as arrays, and for each place its row and the result it names."""
    operands: list[tuple[float, ...]] = []
    results: list[tuple[Row, Any]] = []
    for row in rows:
        *domains, result = row
        for values in itertools.product(*(domain(d, dtype) for d in domains)):
            operands.append(values)
            results.append((row, _result(result, values)))
    return [np.array(column, dtype) for column in zip(*operands)], results


def _result(name: str, values: Sequence[float]) -> Any:
    if name in ("x1", "x2"):
        return values[int(name[1]) - 1]
    if name in ("-x1", "-x2"):
        return -values[int(name[2]) - 1]
    if name in ("True", "False"):
        return name == "True"
    return name if name in PI else NAMED[name]


def check(got: Host, results: list[tuple[Row, Any]]) -> None:
    """Every place is what its row says: NaN, or the number with its sign, or close to it."""
    assert got.shape == (len(results),)
    wrong = [(*row, got[i]) for i, (row, want) in enumerate(results) if not _is(got[i], want)]
    assert not wrong, f"{len(wrong)} of {len(results)} differ (row, got): {wrong[:10]}"


def _is(got: Any, want: Any) -> bool:
    if isinstance(want, bool):
        return bool(got) is want
    if isinstance(want, str):
        exact = PI[want] * math.pi
        return abs(float(got) - exact) <= 2 * float(np.spacing(abs(got)))
    if math.isnan(want):
        return math.isnan(got)
    # A number of float32 was rounded when it was written down as an operand.
    return bool(got == got.dtype.type(want)) and math.copysign(1, got) == math.copysign(1, want)
