"""Who called: the line of the user's code that led here, and what it asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np

from loopwright_core import errors

_OURS = (str(Path(__file__).parent), str(Path(errors.__file__).parent))
# NumPy's own functions call methods of arrays for whoever called them.
_PASSING = (*_OURS, str(Path(np.__file__).parent))

_PROMPTS = ("<stdin", "<python-input", "<ipython", "<console", "<doctest")


def users_line() -> str:
    """File and line of the nearest caller outside of Loopwright; "" where there is none."""
    return users_call()[0]


def users_call() -> tuple[str, str]:
    """File and line of the nearest caller outside, and the name of the function it called."""
    called = ""
    for frame in _frames():
        path = frame.f_code.co_filename
        if _is_users(frame):
            return f"{path}:{frame.f_lineno}", called
        if path.startswith(_OURS):
            called = frame.f_code.co_name
    return "", called


def users_level() -> int:
    """The `stacklevel` of a warning that is to name the nearest caller outside."""
    for level, frame in enumerate(_frames()):
        if _is_users(frame):
            return level
    return 1


def _is_users(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    if path.startswith("<"):  # typed at a prompt, or a method that a decorator has written
        return path.startswith(_PROMPTS) or frame.f_globals.get("__name__") == "__main__"
    return not path.startswith(_PASSING)


def _frames() -> Iterator[FrameType]:
    """The frames from that of the function in this module that asks, outwards."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
