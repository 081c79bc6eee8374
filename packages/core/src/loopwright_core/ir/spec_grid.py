"""What is legal in a phase that runs on a grid of workgroups: sizes, ids, barriers, memory."""

from __future__ import annotations

from math import prod
from typing import NoReturn

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.bounds import bounds
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec_common import need
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Phase

_MOST = 3  # dimensions of a launch


def check_grid(phase: Phase, target: Target | None) -> None:
    """Launch sizes are within three dimensions and the target's limits, and so is shared memory."""
    if phase.global_size is None:
        if phase.local_size is not None:
            _refuse(phase, "has workgroups but no grid")
        return
    if any(n.op not in (Op.CONST, Op.VAR) for n in phase.global_size):
        _refuse(phase, "has a grid of other sizes than numbers and variables")
    sizes = [bounds(n) for n in phase.global_size]
    local = phase.local_size or (1,)
    if not 1 <= len(sizes) <= _MOST or not 1 <= len(local) <= _MOST:
        _refuse(phase, f"launches in {len(sizes)} by {len(local)} dimensions: up to three may be")
    if any(lo < 1 for lo, _ in sizes) or any(n < 1 for n in local):
        _refuse(phase, "launches nothing: every size is 1 or more")
    if target is None:
        return
    _check_limits(phase, "global_size", [hi for _, hi in sizes], target.global_max)
    _check_limits(phase, "local_size", list(local), target.local_max)
    if prod(local) > target.max_threads:
        _refuse(phase, f"has {prod(local)} threads a workgroup: {target.max_threads} may be")
    shared = [n for n in phase.uops if n.op is Op.DEFINE_LOCAL and n.arg.shared]
    used = sum(n.arg.size * n.dtype.itemsize for n in shared)
    if used > target.shared_bytes:
        _refuse(phase, f"has {used} bytes of shared memory: {target.shared_bytes} may be")


def _check_limits(
    phase: Phase, what: str, sizes: list[int], limits: tuple[int, ...] | None
) -> None:
    for n, (size, limit) in enumerate(zip(sizes, limits or ())):
        if size > limit:
            _refuse(phase, f"{what}[{n}] is {size}, more than {limit}")


def check_id(phase: Phase, node: UOp) -> None:
    """`gidx0` .. `gidx2` and `lidx0` .. `lidx2` have the sizes of the launch."""
    name, size = node.arg
    kind, number = str(name)[:4], str(name)[4:]
    sizes: tuple[UOp, ...] | tuple[int, ...] | None = None
    if kind == "gidx":
        sizes = phase.global_size
    elif kind == "lidx":
        sizes = phase.local_size
    need(sizes is not None and number.isdigit(), node, "is no id of the launch")
    assert sizes is not None
    need(int(number) < len(sizes), node, f"the launch has {len(sizes)} dimensions")
    launched = sizes[int(number)]
    fits = size == (launched.arg if isinstance(launched, UOp) else launched)
    need(fits, node, f"the launch has {launched!r} there")


def check_barrier(node: UOp, openers: list[UOp]) -> None:
    """All threads of a workgroup reach a barrier: no branch or loop around it asks a thread's id
    or what a thread computed."""
    need(node.dtype is dt.void and not node.src, node, "a BARRIER has no sources")
    for opener in openers:
        for n in toposort(opener.src):
            local = n.op is Op.SPECIAL and str(n.arg[0]).startswith("lidx")
            if local or n.op in (Op.LOAD, Op.DEFINE_REG):
                need(False, node, f"stands in {opener!r}, which threads of one group may leave out")


def _refuse(phase: Phase, rule: str) -> NoReturn:
    fail(VerifyError, rule, where=f"phase {phase.name}")
