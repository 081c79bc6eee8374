"""Names users give to kernels."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from loopwright.fuse import FusedKernel
from loopwright.identifiers import legal_name
from loopwright.memory import buffer_node
from loopwright_core.errors import ArgumentTypeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, toposort

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Mark:
    """The result of a named function and the nodes it was computed from."""

    name: str
    inputs: tuple[UOp, ...]


_marks: weakref.WeakKeyDictionary[UOp, Mark] = weakref.WeakKeyDictionary()


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
                _marks[array._uop] = Mark(legal, tuple(given))
        return result

    return call


@dataclass(frozen=True, slots=True)
class Stage:
    """STOREs that are fused by themselves. `mark`: what they are called, from which inputs on."""

    stores: tuple[UOp, ...]
    mark: Mark | None = None


def stages(stores: Sequence[UOp]) -> list[Stage]:
    """The graph cut at every named value: later stages read it from memory."""
    order = toposort([store.src[1] for store in stores])
    if not any(node in _marks for node in order):
        return [Stage(tuple(stores))]
    targets: dict[UOp, list[UOp]] = {}
    for store in stores:
        targets.setdefault(store.src[1], []).append(store.src[0])
    done: dict[UOp, UOp] = {}
    result: list[Stage] = []
    for node in order:
        new = node.replace(tuple([done[s] for s in node.src]))
        mark = _marks.get(node)
        if mark is None or 0 in shape_of(node):
            done[node] = new
            continue
        asked = targets.pop(node, None) or [buffer_node(node.dtype, shape_of(node))]  # type: ignore[arg-type]
        inputs = tuple([done[i] for i in mark.inputs if i in done])
        made = tuple([UOp(Op.STORE, dt.void, (target, new)) for target in asked])
        result.append(Stage(made, Mark(mark.name, inputs)))
        done[node] = asked[0]
    rest = [
        UOp(Op.STORE, dt.void, (target, done[value]))
        for value, asked in targets.items()
        for target in asked
    ]
    return [*result, Stage(tuple(rest))] if rest else result


class Names:
    """Hands out the given names: a further kernel of one name gets `_1`, `_2`, ..."""

    def __init__(self) -> None:
        self._known: dict[str, dict[UOp, str]] = {}

    def of(self, stage: Stage, kernels: Sequence[FusedKernel]) -> list[str | None]:
        """A name for each kernel of a stage that computes something of a named function."""
        if stage.mark is None:
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
