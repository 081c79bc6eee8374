"""The moves of a search."""

from __future__ import annotations

import bodies
from bodies import CPU

from loopwright_opt.actions import neighbours
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse, show


def texts(kernel: bodies.Kernel, base: bodies.Kernel) -> list[str]:
    return [show(k.schedule.opts) for k in neighbours(base, kernel, CPU)]


def test_every_kind_of_step_is_appended() -> None:
    """From the initial schedule of a matrix product each op that is legal there is one move."""
    base = bodies.matmul()
    found = {text.split()[0] for text in texts(base, base)}
    assert {"UPCAST", "UNROLL", "VECTOR", "TILE", "THREAD", "SWAP", "ORDER", "STAGE"} <= found
    assert "PREFETCH" in found


def test_a_step_is_removed_changed_and_exchanged() -> None:
    """A list of two steps leads to each alone, to other amounts, and to the other order."""
    base = bodies.matmul()
    kernel = apply_all(base, parse(["UPCAST i 4", "UNROLL k 4"]), CPU)
    found = texts(kernel, base)
    for wanted in (
        "UPCAST i 4",
        "UNROLL k 4",
        "UPCAST i 8 · UNROLL k 4",
        "UPCAST i 4 · UNROLL k 8",
        "UNROLL k 4 · UPCAST i 4",
        "UPCAST i 4 · UNROLL k 4 · VECTOR j/1 16",
    ):
        assert wanted in found


def test_steps_on_a_part_follow_its_new_size() -> None:
    """When a split changes its amount, later steps name the axis it leaves by its new stride."""
    base = bodies.matmul()
    kernel = apply_all(base, parse(["UPCAST i 4", "TILE i/4 8"]), CPU)
    assert "UPCAST i 6 · TILE i/6 8" in texts(kernel, base)


def test_every_neighbour_can_be_replayed() -> None:
    """The list of each neighbour, applied to the plain kernel, gives that very schedule."""
    base = bodies.softmax()
    kernel = apply_all(base, parse(["VECTOR j* 8", "KEEP v0 @i"]), CPU)
    for made in neighbours(base, kernel, CPU):
        again = apply_all(base, parse(list(map(str, made.schedule.opts))), CPU)
        assert again.schedule == made.schedule
