"""What a program for workgroups does to memory in one launch, counted without running it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.oracle.alu import apply, constant
from loopwright_core.program.program import Phase, Program

# Points at which conditions are evaluated together.
MOST_POINTS = 1 << 26


@dataclass(frozen=True)
class Counts:
    """Executed loads and stores of buffers, all threads together; elements side by side in one
    vector are one access, a gather is one for each lane.

    `subgroups`: how many are launched, busy or not. Units: shared_bytes is what one workgroup
    holds in shared memory.
    """

    loads: int
    stores: int
    shared_bytes: int
    subgroups: int


def count(program: Program, subgroup: int = 32) -> Counts:
    """The sum over the phases; of shared memory the largest."""
    parts = [_count(phase, subgroup) for phase in program.phases]
    return Counts(
        sum(p.loads for p in parts),
        sum(p.stores for p in parts),
        max(p.shared_bytes for p in parts),
        sum(p.subgroups for p in parts),
    )


def _count(phase: Phase, subgroup: int) -> Counts:
    n_groups = prod(int(n.arg) for n in phase.global_size or ())
    n_threads = prod(phase.local_size or (1,))
    open_: list[UOp] = []
    found = {Op.LOAD: 0, Op.STORE: 0}
    shared = 0
    for node in phase.uops:
        if node.op in (Op.RANGE, Op.IF):
            open_.append(node)
        elif node.op in (Op.END, Op.ENDIF):
            open_.pop()
        elif node.op is Op.DEFINE_LOCAL and node.arg.shared:
            shared += node.arg.size * node.dtype.itemsize
        elif node.op in found and _is_global(node.src[0].src[0]):
            lanes = node.src[0].src[1].dtype.lanes
            found[node.op] += lanes * _executions(node, open_, n_groups * n_threads)
    subgroups = n_groups * -(-n_threads // subgroup)
    return Counts(found[Op.LOAD], found[Op.STORE], shared, subgroups)


def _is_global(storage: UOp) -> bool:
    while storage.op is Op.AFTER:
        storage = storage.src[0]
    return storage.op is Op.BUFFER


def _executions(node: UOp, open_: list[UOp], threads: int) -> int:
    """How often an access touches memory: over all threads and steps of its loops at which every
    condition around it holds."""
    conditions = [n.src[0] for n in open_ if n.op is Op.IF]
    conditions += node.src[0].src[2:]
    loops = [n for n in open_ if n.op is Op.RANGE]
    ragged = [n for n in loops if n.src[0].op is not Op.CONST]
    used: set[UOp] = set()
    stack = [*conditions, *ragged]
    while stack:
        n = stack.pop()
        if n not in used:
            used.add(n)
            stack.extend(n.src)
    ids = sorted([n for n in used if n.op is Op.SPECIAL], key=lambda n: str(n.arg))
    order = [*ids, *(n for n in loops if n in used)]
    free = threads // prod(int(n.arg[1]) for n in ids)
    free *= prod(int(n.src[0].arg) for n in loops if n not in used)
    values: dict[UOp, Any] = {}
    sizes = []
    for place, n in enumerate(order):
        extent = int(n.arg[1]) if n.op is Op.SPECIAL else int(np.max(_value(n.src[0], values)))
        sizes.append(extent)
        values[n] = np.arange(extent).reshape((extent,) + (1,) * (len(order) - place))
    if prod(sizes) > MOST_POINTS:
        raise ValueError(f"{prod(sizes)} points are too many to evaluate conditions at")
    holds: Any = np.ones((1,) * (len(order) + 1), bool)
    for n in ragged:
        holds = holds & (values[n] < _value(n.src[0], values))
    for c in conditions:
        holds = holds & _value(c, values)
    holds = holds.any(-1)
    missing = prod(s for s, n in zip(sizes, np.shape(holds), strict=True) if n == 1)
    return free * int(np.sum(holds)) * missing


def _value(root: UOp, values: dict[UOp, Any]) -> Any:
    """An expression over ids and loops, at all their values at once, lanes on the last axis.

    Raises VerifyError for what is no elementwise op of those.
    """
    done: dict[UOp, Any] = dict(values)
    for n in root.toposort():
        if n not in done and n.op is Op.CONST:
            done[n] = constant(n)
        elif n in done:
            continue
        elif n.op is Op.BROADCAST:
            done[n] = done[n.src[0]]
        elif n.op is Op.VECTORIZE:
            lanes = np.broadcast_arrays(*[done[s] for s in n.src])
            done[n] = np.concatenate([np.atleast_1d(x) for x in lanes], axis=-1)
        else:
            done[n] = apply(n.op, n.dtype, [s.dtype for s in n.src], [done[s] for s in n.src])
    return done[root]
