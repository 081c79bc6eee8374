"""What users say of the kernels of a value: their name, and its schedule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from loopwright.callers import users_line
from loopwright.fuse import FusedKernel
from loopwright.identifiers import legal_name
from loopwright.memory import buffer_node
from loopwright_core.errors import ArgumentTypeError, OptError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.plugin.loader import registry

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Mark:
    """What is said of a value's kernels. `name`: of those that compute it from `inputs`, nodes of
    the graph; None: their usual ones. `opts`: the schedule of the kernel that stores the value;
    `scheduled_at`: the user's line that gave it."""

    name: str | None
    inputs: tuple[UOp, ...]
    opts: tuple[str, ...] | None = None
    scheduled_at: str = ""


def mark_of(node: UOp) -> Mark | None:
    """What is said of the node's kernels: a marked value is a CAST to its own dtype, which holds
    the mark. Equal expressions elsewhere, and the value it was made from, have none."""
    return node.arg if isinstance(node.arg, Mark) else None


def _marked(node: UOp, **said: Any) -> UOp:
    """The value with more said of its kernels."""
    known = mark_of(node)
    value = node if known is None else node.src[0]
    return UOp(Op.CAST, value.dtype, (value,), replace(known or Mark(None, ()), **said))


def named_kernel(name: str, fn: Callable[..., R]) -> Callable[..., R]:
    """`fn`, whose kernels carry that name; what is no C identifier is made one.

    Its results are stored as kernels of their own: nothing computed from them joins.
    """
    if not isinstance(name, str):
        fail(ArgumentTypeError, f"a kernel's name is a text, not {name!r}")
    legal = legal_name(name)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> R:
        from loopwright.array import Array

        given = [a._uop for a in (*args, *kwargs.values()) if isinstance(a, Array)]
        result = fn(*args, **kwargs)
        results = result if isinstance(result, (tuple, list)) else (result,)
        for array in results:
            if not isinstance(array, Array) or array._uop in given:
                continue
            if array._uop.op is not Op.BUFFER:
                array._uop = _marked(array._uop, name=legal, inputs=tuple(given))
        return result

    return call


def with_schedule(node: UOp, opts: tuple[str, ...]) -> UOp:
    """The value, stored by a kernel that is scheduled by these steps and no others.

    Raises OptError for a text that is no step; one that is not legal shows when the kernel is made.
    """
    line = users_line()
    try:
        registry().hook.loopwright_opts(texts=list(opts))
    except OptError as error:
        error.add_note(f"scheduled at {line}")
        raise
    return _marked(node, opts=opts, scheduled_at=line)


@contextmanager
def telling_schedule(kernel: FusedKernel) -> Iterator[None]:
    """An error in the schedule that the user gave the kernel names the line that gave it."""
    try:
        yield
    except OptError as error:
        if kernel.opts is not None:
            error.add_note(f"scheduled at {kernel.scheduled_at}")
        raise


@dataclass(frozen=True, slots=True)
class Stage:
    """STOREs that are fused by themselves. `mark`: what is said of the one value they store."""

    stores: tuple[UOp, ...]
    mark: Mark | None = None


def stages(stores: Sequence[UOp]) -> list[Stage]:
    """The graph cut at every named value: later stages read it from memory."""
    order = toposort([store.src[1] for store in stores])
    if all(mark_of(node) is None for node in order):
        return [Stage(tuple(stores))]
    targets: dict[UOp, list[UOp]] = {}
    for store in stores:
        targets.setdefault(store.src[1], []).append(store.src[0])
    done: dict[UOp, UOp] = {}
    result: list[Stage] = []
    for node in order:
        mark = mark_of(node)
        if mark is None:
            done[node] = node.replace(tuple([done[s] for s in node.src]))
            continue
        new = done[node.src[0]]
        if 0 in shape_of(node):
            done[node] = new
            continue
        asked = targets.pop(node, None) or [buffer_node(node.dtype, shape_of(node))]
        inputs = tuple([done[i] for i in mark.inputs if i in done])
        made = tuple([UOp(Op.STORE, dt.void, (target, new)) for target in asked])
        result.append(Stage(made, replace(mark, inputs=inputs)))
        done[node] = asked[0]
    rest = [
        UOp(Op.STORE, dt.void, (target, done[value]))
        for value, asked in targets.items()
        for target in asked
    ]
    return [*result, Stage(tuple(rest))] if rest else result


def scheduled(stage: Stage, kernels: Sequence[FusedKernel]) -> list[FusedKernel]:
    """The stage's kernels; the one that stores the marked value with the schedule given to it."""
    mark = stage.mark
    if mark is None or mark.opts is None:
        return list(kernels)
    value = stage.stores[0].src[1]
    return [
        replace(k, opts=mark.opts, scheduled_at=mark.scheduled_at) if value in k.values else k
        for k in kernels
    ]


class Names:
    """Hands out the given names: a further kernel of one name gets `_1`, `_2`, ..."""

    def __init__(self) -> None:
        self._known: dict[str, dict[UOp, str]] = {}

    def of(self, stage: Stage, kernels: Sequence[FusedKernel]) -> list[str | None]:
        """A name for each kernel of a stage that computes something of a named function."""
        if stage.mark is None or stage.mark.name is None:
            return [None] * len(kernels)
        inputs = set(stage.mark.inputs)
        roots = [store.src[1] for store in stage.stores]
        region = set(toposort(roots, lambda node: node not in inputs)) - inputs
        names: list[str | None] = []
        for kernel in kernels:
            if not any(value in region for value in kernel.values):
                names.append(None)
                continue
            known = self._known.setdefault(stage.mark.name, {})
            suffix = f"_{len(known)}" if known else ""
            names.append(known.setdefault(kernel.ast, stage.mark.name + suffix))
        return names
