"""What a user may say about scheduling and numerics, in force inside a `with` block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any

from loopwright_core.errors import ArgumentError, ArgumentTypeError, fail
from loopwright_core.kernel.options import Options

_current: ContextVar[Options] = ContextVar("loopwright_options", default=Options())  # noqa: B039
# Names of the kernels made in the block that gave opts by name; None outside of such a block.
_made: ContextVar[dict[str, None] | None] = ContextVar("loopwright_kernels_made", default=None)
_CHOICES = {
    "schedule": ("none", "heuristic", "beam"),
    "tensor_cores": ("use", "off", "shape"),
}
_NUMBERS = {"beam": (int,), "budget_s": (int, float), "tensor_core_level": (int,)}
_FLAGS = ("no_locals", "parity", "fast_math", "tf32", "half_accumulate")
_NAMES = [f.name for f in fields(Options) if f.name != "opts_by_kernel"]


def current() -> Options:
    """The options in force here: this thread's, or this task's."""
    return _current.get()


@contextmanager
def options(**changes: Any) -> Iterator[Options]:
    """Options for all that is evaluated inside the block; those not named stay as they are.

    `opts` is a list of texts for the one kernel in scope, or a dict from kernel name to such a
    list. Raises ArgumentError and ArgumentTypeError for what is no option and, at the end of the
    block, for a name in that dict that no kernel of the block had.
    """
    token = _current.set(changed(_current.get(), changes))
    given = changes.get("opts")
    names = [str(name) for name in given] if isinstance(given, Mapping) else []
    made: dict[str, None] = {}
    names_token = _made.set(made if names else None) if "opts" in changes else None
    try:
        yield _current.get()
    finally:
        _current.reset(token)
        if names_token is not None:
            _made.reset(names_token)
    # Only here: the kernels of one dict may belong to several evaluations.
    unknown = [name for name in names if name not in made]
    if made and unknown:
        fail(
            ArgumentError,
            f"opts are given for {', '.join(unknown)}, and no kernel here has that name",
            fix=f"the kernels are {', '.join(made)}",
        )


def note_kernel(name: str) -> None:
    """Tell the block that gave opts by name of a kernel made in it."""
    made = _made.get()
    if made is not None:
        made[name] = None


def changed(base: Options, changes: Mapping[str, Any]) -> Options:
    """`base` with the named options changed."""
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name == "opts":
            values |= _opts(value)
        elif name in _CHOICES:
            if not isinstance(value, str) or value not in _CHOICES[name]:
                _refuse(name, value, "one of " + ", ".join(map(repr, _CHOICES[name])))
            values[name] = value
        elif name in _FLAGS:
            if not isinstance(value, bool):
                fail(ArgumentTypeError, f"the option {name} takes True or False, not {value!r}")
            values[name] = value
        elif name in _NUMBERS:
            if not isinstance(value, _NUMBERS[name]) or isinstance(value, bool):
                fail(ArgumentTypeError, f"the option {name} takes a number, not {value!r}")
            if not value >= 0:
                _refuse(name, value, "a number of at least 0")
            values[name] = value
        else:
            fail(
                ArgumentError,
                f"there is no option {name!r}",
                fix="the options are " + ", ".join(_NAMES),
            )
    return replace(base, **values)


def _opts(value: Any) -> dict[str, Any]:
    if value is None:
        return {"opts": None, "opts_by_kernel": ()}
    if isinstance(value, Mapping):
        pairs = tuple((str(name), _texts(texts)) for name, texts in value.items())
        return {"opts": None, "opts_by_kernel": pairs}
    return {"opts": _texts(value), "opts_by_kernel": ()}


def steps(text: Any, where: str) -> tuple[str, ...]:
    """The steps of a schedule written as one text or as a list of texts.

    Raises ArgumentTypeError, ArgumentError where there is none.
    """
    parts = text.split("·") if isinstance(text, str) else _texts(text)
    found = tuple([part.strip() for part in parts if part.strip()])
    if not found:
        fail(
            ArgumentError,
            "a schedule has at least one step",
            where=where,
            fix='write "UPCAST i 4 · UNROLL k 8"',
        )
    return found


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        fail(
            ArgumentTypeError,
            f"opts is a list of texts, not {value!r}",
            fix='write opts=["UPCAST i 4", "UNROLL k 4"]',
        )
    return tuple(str(text) for text in value)


def _refuse(name: str, value: Any, allowed: str) -> None:
    fail(ArgumentError, f"the option {name} cannot be {value!r}", fix=f"give {allowed}")
