"""A trial run of a loaded program on made-up data: its results compared, its runs timed."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import Variable
from loopwright_core.plugin.device import Device
from loopwright_core.program.program import Param, Program

_ALIGNMENT = 64
# Written behind every output: a kernel that changes it writes where it must not.
_GUARD = 0xA5
_SLOWER = 3.0
# One more than the largest value that integers of so many bits have, with or without a sign.
_MOST = {8: 1 << 7, 16: 1 << 15, 32: 1 << 31}
# A kernel that runs so many seconds needs no second run to tell its time.
_LONG_S = 0.05


def run_trial(
    device: Device,
    loaded: Any,
    program: Program,
    seed: int = 0,
    expected: Path | None = None,
    best_s: float = 0.0,
    timed_s: float = 0.05,
    limits: Mapping[int, int] = MappingProxyType({}),
) -> tuple[float, ...] | str:
    """Seconds of each run, or what is wrong with the results.

    `seed`: an even one gives numbers that sums hold exactly, an odd one any.
    `expected`: a file of results to compare with; one that does not exist is written instead.
    `best_s`: the time to beat; what is three times slower is not timed further. `timed_s`: how
    long to time about, 0 for two runs, one where it takes that long. `limits`: what integers of a
    slot stay below, as positions in another buffer do.
    """
    held = _memory.take(program.params, seed, limits)
    memory = [device.from_host(h) for h in held]
    variables = [v.hi for v in program.variables]
    times = device.time(loaded, memory, variables, 1)
    device.synchronize()
    results: list[np.ndarray[Any, Any]] = []
    outputs = [p for p in program.params if p.is_output]
    for p, where in zip(program.params, memory, strict=True):
        if p.is_output:
            back = np.empty(_n_bytes(p) + _ALIGNMENT, np.uint8)
            device.to_host(where, back)
            if not (back[_n_bytes(p) :] == _GUARD).all():
                return f"wrote behind the end of {p.name}"
            results.append(back[: _n_bytes(p)].view(p.dtype.numpy))
    if (name := _memory.changed(program.params)) is not None:
        return f"wrote into the input {name}"
    if expected is not None and expected.exists():
        with open(expected, "rb") as file:
            for p, got in zip(outputs, results, strict=True):
                wanted = np.load(file, allow_pickle=False).view(got.dtype)
                if not agrees(got, wanted, p.dtype):
                    return "wrong numbers"
    elif expected is not None:
        with open(expected, "xb") as out:
            for r in results:
                np.save(out, r.view(np.uint8), allow_pickle=False)
    if times[0] < max(timed_s, _LONG_S, best_s * _SLOWER):
        times = [min(times[0], device.time(loaded, memory, variables, 1)[0])]
    if timed_s and (not best_s or times[0] < best_s * _SLOWER):
        n = int(min(200, max(3, timed_s / max(times[0], 1e-7))))
        times += device.time(loaded, memory, variables, n)
    return tuple(times)


class _Memory:
    """Buffers of the last program, kept for trials of the same one: filling them takes longer
    than most runs. An input that a trial changed is filled anew."""

    def __init__(self) -> None:
        self._key: object = None
        self._held: list[np.ndarray[Any, Any]] = []
        self._before: list[Any] = []

    def take(
        self, params: tuple[Param, ...], seed: int, limits: Mapping[int, int]
    ) -> list[np.ndarray[Any, Any]]:
        """One array for each parameter, with guard bytes behind it."""
        kinds = tuple([(p.slot, p.dtype.name, _n_bytes(p), p.is_output) for p in params])
        key = seed, kinds, tuple(sorted(limits.items()))
        if key != self._key:
            self._held, self._key = [], None
            self._held = [contents(p, seed, limits.get(p.slot, 5)) for p in params]
            # a checksum of each input, a copy of each output
            self._before = [
                h.copy() if p.is_output else _sum(h)
                for h, p in zip(self._held, params, strict=True)
            ]
            self._key = key
        for h, p, before in zip(self._held, params, self._before, strict=True):
            if p.is_output:
                h[:] = before
        return self._held

    def changed(self, params: tuple[Param, ...]) -> str | None:
        """The name of an input that is not what it was."""
        for h, p, before in zip(self._held, params, self._before, strict=True):
            if not p.is_output and _sum(h) != before:
                self._key = None
                return p.name
        return None


_memory = _Memory()


def _sum(held: np.ndarray[Any, Any]) -> int:
    n = len(held) // 8 * 8
    return int(held[:n].view(np.uint64).sum()) + int(held[n:].sum())


def agrees(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], dtype: DType) -> bool:
    """Whether two results differ by no more than another order of summation explains."""
    if not dtype.is_float:
        return bool(np.array_equal(got, wanted))
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = np.isfinite(b)
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return False
        if not np.array_equal(a[np.isinf(b)], b[np.isinf(b)]):
            return False
        if not finite.any():
            return True
        typical = float(np.sqrt(np.mean(np.square(b[finite]))))
        tolerance = 512 * float(_epsilon(dtype))
        return bool((abs(a - b)[finite] <= tolerance * (abs(b[finite]) + typical)).all())


def _epsilon(dtype: DType) -> float:
    """Sums of small floats are taken in float32 and rounded once: a step, not many."""
    if dtype.bits >= 32:
        return float(np.finfo(dtype.numpy).eps)
    return 2.0 ** -{"float16": 18, "bfloat16": 15}.get(dtype.name, 10)


def contents(param: Param, seed: int, limit: int = 5) -> np.ndarray[Any, Any]:
    """Made-up values: integers below a limit; for an even seed multiples of a quarter, such that
    sums of products are exact, for an odd one any floats.

    An output starts from the same, and ends in guard bytes.
    """
    n = _n_bytes(param) // param.dtype.itemsize
    rng = np.random.default_rng((seed, param.slot))
    if param.dtype.is_bool:
        values: Any = rng.integers(0, 2, n)
    elif not param.dtype.is_float:
        values = rng.integers(0, min(limit, _MOST.get(param.dtype.bits, limit)), n)
    elif seed % 2:
        values = rng.standard_normal(n, np.float32)
    else:
        values = rng.integers(-4, 5, n, np.int8) / np.float32(4)
    raw = np.empty(n * param.dtype.itemsize + 2 * _ALIGNMENT, np.uint8)
    begin = -raw.__array_interface__["data"][0] % _ALIGNMENT
    held = raw[begin : begin + n * param.dtype.itemsize + _ALIGNMENT]
    held[: n * param.dtype.itemsize] = values.astype(param.dtype.numpy).view(np.uint8)
    held[n * param.dtype.itemsize :] = _GUARD
    return held


def _n_bytes(param: Param) -> int:
    sizes = [s.hi if isinstance(s, Variable) else s for s in param.shape]
    return prod(sizes) * param.dtype.itemsize
