"""Results of a search belong to the options, target and kernel they were found under."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import bodies
import pytest

from loopwright_core.kernel.options import Options
from loopwright_core.plugin.loader import registry
from loopwright_core.plugin.target import Target
from loopwright_core.tuning import Result, TuningDatabase
from loopwright_opt.tuning import key_of

# What tells how long a search looks, not what is right to find.
EFFORT = {"schedule": "beam", "beam": 9, "budget_s": 1.0}
OTHER: dict[str, object] = {
    "opts": ("UPCAST i 4",),
    "opts_by_kernel": (("kernel", ("UPCAST i 4",)),),
    "tensor_cores": "off",
    "tensor_core_level": 0,
    "no_locals": True,
    "parity": True,
    "fast_math": True,
    "tf32": True,
    "half_accumulate": True,
}
CPU = registry().device("cpu")
KERNEL = bodies.matmul(64, 64, 64)


def test_every_option_is_named_here() -> None:
    """An option that is added is either effort or part of the key."""
    assert {f.name for f in fields(Options)} == EFFORT.keys() | OTHER.keys()


@pytest.mark.parametrize("name", OTHER)
def test_results_are_not_reused_under_other_options(name: str, tmp_path: Path) -> None:
    """What was found under one value of an option is not found under another."""
    database = TuningDatabase(tmp_path)
    key = key_of(KERNEL, CPU, Options())
    database.put(Result(key, "kernel", ("UPCAST i 4",), 1.0, 2.0))
    assert database.get(key_of(KERNEL, CPU, replace(Options(), **EFFORT))) is not None
    other = replace(Options(), **{name: OTHER[name]})
    assert getattr(other, name) != getattr(Options(), name)
    assert database.get(key_of(KERNEL, CPU, other)) is None


def test_every_field_of_a_target_is_in_the_key() -> None:
    """Nor on a target that differs in any one thing."""
    target = CPU.target
    for field in fields(Target):
        value = getattr(target, field.name)
        changed = replace(target, **{field.name: _changed(value)})
        assert changed.key != target.key, field.name


def _changed(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, frozenset):
        return frozenset(list(value)[1:]) if value else frozenset({"x"})
    return (1, 2, 3) if value != (1, 2, 3) else None
