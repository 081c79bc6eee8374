"""Loads and stores of a level-3 program as closures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.oracle.memory import Cells

Env = list[Any]
Step = Callable[[Env], None]


class Places(Protocol):
    """What a step needs to know of the compiler."""

    def place(self, node: UOp, user: str) -> int:
        """Where a node's value lies in the environment."""

    def cells(self, storage: UOp, user: str) -> Cells:
        """The memory behind a storage node."""

    def declare(self, node: UOp) -> int:
        """A new place for a node's value."""


def load_step(places: Places, node: UOp, where: str) -> Step:
    """A LOAD: plain scalar, plain run of lanes, or the general gather under a mask."""
    index = node.src[0]
    cells = places.cells(index.src[0], where)
    offset = places.place(index.src[1], where)
    lanes = node.dtype.lanes
    if len(index.src) > 2:
        valid, fill = places.place(index.src[2], where), places.place(node.src[1], where)
        return _masked_load(cells, offset, valid, fill, places.declare(node), node, where)
    target = places.declare(node)
    plain = cells.owner is None and cells.written is None and cells.unread is None
    if lanes > 1 or not plain:
        spread = _spread(lanes, index.src[1].dtype.lanes)

        def load(env: Env) -> None:
            env[target] = cells.read(where, spread(env[offset]), env[0])

        return load
    data, size = cells.data, cells.size

    def load_scalar(env: Env) -> None:
        o = env[offset]
        if not 0 <= o < size:
            cells.check(where, o)
        env[target] = data[o]

    return load_scalar


def _spread(lanes: int, offset_lanes: int) -> Callable[[Any], Any]:
    """From the offset to that of each lane."""
    if lanes == 1 or offset_lanes > 1:
        return lambda o: o
    steps = np.arange(lanes, dtype=np.int64)
    return lambda o: o + steps


def _masked_load(
    cells: Cells, offset: int, valid: int, fill: int, target: int, node: UOp, where: str
) -> Step:
    lanes = node.dtype.lanes
    spread = _spread(lanes, node.src[0].src[1].dtype.lanes)

    def load(env: Env) -> None:
        mask = env[valid]
        if not np.any(mask):
            env[target] = env[fill]
        elif np.all(mask):
            env[target] = cells.read(where, spread(env[offset]), env[0])
        else:
            result = np.array(env[fill])
            result[mask] = cells.read(where, spread(env[offset])[mask], env[0])
            env[target] = result

    return load


def store_step(places: Places, node: UOp, where: str) -> Step:
    """A STORE of a scalar or of lanes, under a mask where the INDEX has one."""
    index, stored = node.src
    cells = places.cells(index.src[0], where)
    offset = places.place(index.src[1], where)
    value = places.place(stored, where)
    spread = _spread(stored.dtype.lanes, index.src[1].dtype.lanes)
    once = stores_once(index)
    if len(index.src) == 2:

        def store(env: Env) -> None:
            cells.write(where, spread(env[offset]), env[value], env[0], once)

        return store
    valid = places.place(index.src[2], where)

    def store_masked(env: Env) -> None:
        mask = env[valid]
        if np.all(mask):
            cells.write(where, spread(env[offset]), env[value], env[0], once)
        elif np.any(mask):
            cells.write(where, spread(env[offset])[mask], env[value][mask], env[0], once)

    return store_masked


def stores_once(index: UOp) -> bool:
    """Whether a store goes to a place of its own each time: one that no data decides."""
    return all(n.op is not Op.LOAD for n in toposort(index.src[1:2]))
