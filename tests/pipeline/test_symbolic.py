"""Extents that are known at launch: one text, one binary, every value in the range."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright_core import pipeline
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp, Variable
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.loader import registry

N = Variable("n", 1, 4096)


def row_sums(n: Variable, width: int) -> UOp:
    x = UOp(Op.BUFFER, dt.float32, (), Buffer(0, (n, width)))
    out = UOp(Op.BUFFER, dt.float32, (), Buffer(1, (n,)))
    total = UOp(Op.REDUCE, dt.float32, (x,), ("add", (1,)))
    return UOp(Op.SINK, dt.void, (UOp(Op.STORE, dt.void, (out, total)),))


@pytest.mark.parametrize("options", [Options(schedule="none"), Options()], ids=["none", "default"])
def test_row_sum_of_n_rows(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row sums of [n, 64] at several n run from one compile, and touch no row beyond n."""
    device = registry().device("cpu")
    if device.state()[0] != "ready":
        pytest.skip(f"no compiler: {device.state()[1]}")
    pipeline.forget_built()
    compiled: list[str] = []
    compile_ = type(device).compile
    monkeypatch.setattr(
        type(device),
        "compile",
        lambda self, source, program: compiled.append(source) or compile_(self, source, program),
    )
    monkeypatch.setattr("loopwright_core.built.Cache.get", lambda self, kind, key: None)
    built = pipeline.build(row_sums(N, 64), device, options)
    assert built.program.variables == (N,)
    for n in (1, 2, 7, 64, 1000, 4096):
        x = np.random.default_rng(n).integers(-8, 9, (n, 64)).astype(np.float32)
        out = np.full(n + 3, -1, np.float32)
        built.launch([device.from_host(x), device.from_host(out)], [n])
        device.synchronize()
        np.testing.assert_array_equal(out[:n], x.sum(axis=1))
        assert (out[n:] == -1).all()
    assert len(compiled) == 1
