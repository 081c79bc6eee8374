"""A target's key tells any two different targets apart."""

from __future__ import annotations

from dataclasses import fields, replace

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.plugin.target import Target

TARGET = Target("cpu", "x86_64", frozenset({dt.float32}), frozenset(), frozenset({Op.ADD}))
OTHER = {
    "name": "gpu",
    "arch": "aarch64",
    "arith": frozenset({dt.float64}),
    "storage": frozenset({dt.float16}),
    "ops": frozenset({Op.MUL}),
    "local_max": (8,),
    "global_max": (8,),
    "vector_bytes": (16,),
    "caches": (1, 2, 3),
    "features": frozenset({"cast-float16"}),
    "tensor_cores": ("some",),
}


def test_every_field_is_in_the_key() -> None:
    """Changing any one field changes the key: caches by key never mix targets."""
    for f in fields(TARGET):
        old = getattr(TARGET, f.name)
        new = OTHER.get(f.name)
        if new is None:
            new = (not old) if isinstance(old, bool) else (old or 0) + 1
        assert replace(TARGET, **{f.name: new}).key != TARGET.key, f.name


def test_sets_have_one_order() -> None:
    """Equal targets have equal keys however their sets were built."""
    a = replace(TARGET, ops=frozenset([Op.ADD, Op.MUL, Op.SUB]))
    b = replace(TARGET, ops=frozenset([Op.SUB, Op.MUL, Op.ADD]))
    assert a.key == b.key
