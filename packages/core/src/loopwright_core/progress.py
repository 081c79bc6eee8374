"""How a search tells whoever listens how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands. Units: best_s and start_s seconds of one launch, left_s seconds.

    `best_s` is 0 where the budget ended before anything ran.

    `n_ranked`: candidates the cost model has priced, `n_timed` and `n_failed` those that ran and
    those that did not. `flops` and `bytes`: of one launch, by counting.
    `done`: one sentence on why the search ended, "" while it runs. `correlation`: of predicted
    and timed order, -1 to 1, 0 while unknown. `is_replay`: taken from the tuning database.
    `is_interrupted`: somebody pressed Ctrl-C.
    """

    kernel: str
    step: int
    n_ranked: int
    n_timed: int
    n_failed: int
    best_s: float
    start_s: float
    left_s: float
    opts: tuple[str, ...]
    flops: int
    bytes: int
    done: str = ""
    correlation: float = 0.0
    is_replay: bool = False
    is_interrupted: bool = False


Listener = Callable[[Progress], None]
_listener: ContextVar[Listener | None] = ContextVar("loopwright_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Searches that run inside the block call `listener` at every change."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(progress: Progress) -> None:
    """Hand it to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)
