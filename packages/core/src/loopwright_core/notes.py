"""Reasons for decisions, told to whoever listens: why fusion cut, why a strategy chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple


class Note(NamedTuple):
    """`stage`: who decided ("fuse", "schedule"). `subject`: the node or the kernel's name."""

    stage: str
    subject: Any
    text: str


Listener = Callable[[Note], None]
_listener: ContextVar[Listener | None] = ContextVar("loopwright_notes", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """What is decided inside the block is told to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_heard() -> bool:
    """Whether somebody listens: texts that cost time are made only then."""
    return _listener.get() is not None


def note(stage: str, subject: Any, text: str) -> None:
    """Hand a reason to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(Note(stage, subject, text))
