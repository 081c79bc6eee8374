"""NumPy's functions on lazy arrays: `np.sin(x)` is `lw.sin(x)` where both mean the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from loopwright_core.errors import ArgumentTypeError, fail

# NumPy's name -> ours, where the array API standard gave the function another name.
_RENAMED = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "concatenate": "concat",
    "conjugate": "conj",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
}
# Functions of our namespace that mean what NumPy's function of that name means.
_SAME = frozenset({
    *("all", "any", "argmax", "argmin", "astype", "broadcast_to", "clip", "concat"),
    *("count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "empty_like", "expand_dims"),
    *("flip", "full_like", "imag", "isin", "matrix_transpose", "max", "mean", "min", "moveaxis"),
    *("ones_like", "pad", "prod", "real", "repeat", "reshape", "roll", "round", "squeeze"),
    *("stack", "std", "sum", "take", "take_along_axis", "tensordot", "tile", "tril", "triu"),
    *("unstack", "var", "where", "zeros_like"),
})  # fmt: skip
# Parameters that are called otherwise here.
_PARAMETERS = {"ddof": "correction", "pad_width": "widths", "a_min": "min", "a_max": "max"}


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], settings: Mapping[str, Any]
) -> Any:
    """`ufunc(*inputs)` as the function of its name here; `out=` a NumPy array is computed at once.

    Raises ArgumentTypeError where there is none, and for its methods and keywords.
    """
    import loopwright

    name = _RENAMED.get(ufunc.__name__, ufunc.__name__)
    ours = getattr(loopwright, name) if name in loopwright.__all__ else None
    if ours is None:
        fix = f"np.{ufunc.__name__}(x.numpy()) computes x and hands it to NumPy"
        fail(ArgumentTypeError, f"Loopwright has no {ufunc.__name__} for lazy arrays", fix=fix)
    if method != "__call__":
        what = f"np.{ufunc.__name__}.{method} does not work on lazy arrays"
        fail(ArgumentTypeError, what, fix=f"use lw.{name}, lw.sum, lw.max, ..., or x.numpy()")
    settings = dict(settings)
    out = settings.pop("out", (None,))[0]  # no ufunc of ours has two results
    if settings:
        words = ", ".join(f"{word}=" for word in settings)
        fail(
            ArgumentTypeError,
            f"np.{ufunc.__name__} of a lazy array takes no {words}",
            fix=f"write lw.{name}(...), and lw.astype or lw.where around it",
        )
    if out is None:
        return ours(*inputs)
    if not isinstance(out, np.ndarray):
        what = f"np.{ufunc.__name__} does not write into a lazy array: arrays are values"
        fail(ArgumentTypeError, what, fix=f"write x = lw.{name}(...)")
    np.copyto(out, ours(*inputs).numpy(), casting="same_kind")
    return out


def call_function(
    function: Callable[..., Any], args: Sequence[Any], settings: Mapping[str, Any]
) -> Any:
    """A function of NumPy's as ours of that name; any other one is NumPy's, on computed values.

    Raises ArgumentTypeError for parameters that ours has not.
    """
    import loopwright

    name = _RENAMED.get(function.__name__, function.__name__)
    if function.__module__ != "numpy" or name not in (*_SAME, "einsum", "transpose"):
        return function(*_computed(args), **{k: _computed(v) for k, v in settings.items()})
    if name == "einsum":
        return _einsum(args, settings)
    bound = _signature(function).bind(*args, **settings)
    if name == "transpose":
        x, axes = loopwright.asarray(bound.arguments["a"]), bound.arguments.get("axes")
        return loopwright.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else axes)
    ours = getattr(loopwright, name)
    known = list(_signature(ours).parameters.values())
    slots = [p.name for p in known if p.kind is p.POSITIONAL_ONLY] or [known[0].name]
    words = [p.name for p in known if p.name not in slots]
    values = dict(bound.arguments)
    placed = [values.pop(word) for word in list(values)[: len(slots)]]
    named: dict[str, Any] = {}
    for word, value in values.items():
        mine = _PARAMETERS.get(word, word)
        if mine not in words:
            fail(
                ArgumentTypeError,
                f"np.{function.__name__} of a lazy array takes no {word}=",
                fix=f"leave it out; lw.{name}{_signature(ours)} is what is called",
            )
        named[mine] = value
    return ours(*placed, **named)


def _einsum(args: Sequence[Any], settings: Mapping[str, Any]) -> Any:
    """np.einsum has no signature to bind: any number of operands, and settings by name."""
    import loopwright

    wrong = [word for word in settings if word != "optimize"]
    if wrong:
        fail(
            ArgumentTypeError,
            f"np.einsum of a lazy array takes no {wrong[0]}=",
            fix="leave it out; lw.astype and lw.where around it do the rest",
        )
    return loopwright.einsum(*args, **settings)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Its parameters without annotations."""
    found = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return inspect.Signature(bare)


def _computed(value: Any) -> Any:
    """The same arguments with every lazy array as NumPy's; lists and tuples are looked into."""
    from loopwright.array import Array

    if isinstance(value, Array):
        return value.numpy()
    if type(value) in (list, tuple):
        return type(value)(map(_computed, value))
    return value
