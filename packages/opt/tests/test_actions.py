"""The moves of a search."""

from __future__ import annotations

import bodies
from bodies import CPU

from loopwright_core.kernel.grid import with_grid
from loopwright_core.targets.cuda import cuda
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


def test_steps_over_workgroups_are_appended() -> None:
    """On a GPU the threads of workgroups, groups and their absence are moves too."""
    target = cuda("sm_80")
    base = with_grid(bodies.row_sums(64, 4096), target)
    found = {k.schedule.opts[-1].op for k in neighbours(base, base, target)}
    assert {"LOCAL", "GROUP", "GROUPTOP", "NOLOCALS", "UPCAST", "UNROLL", "TILE"} <= found
    assert "THREAD" not in found


def test_copies_are_packed_and_moved() -> None:
    """A load is copied as it lies and packed along the lanes; a copy may go into another loop."""
    base = bodies.matmul()
    kernel = apply_all(base, parse(["TILE k 64", "VECTOR j 16"]), CPU)
    found = texts(kernel, base)
    before = show(kernel.schedule.opts)
    packed = "layout j/16,k/64,k/1,j/1 order k/64,k/1,j/16,j/1"
    assert f"{before} · STAGE B @i/1" in found
    assert f"{before} · STAGE B @i/1 {packed}" in found
    held = apply_all(base, parse(["TILE k 64", "STAGE B @k/64"]), CPU)
    assert "TILE k 64 · STAGE B @j/1" in texts(held, base)


def test_ragged_axes_are_cut_evenly() -> None:
    """513 columns are cut in halves and thirds besides the usual lengths."""
    base = bodies.matmul(64, 513, 64)
    found = texts(base, base)
    assert "TILE j/1 257" in found and "TILE j/1 171" in found


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
