"""Tensor cores of a GPU: the axes that one matches, then register tiles and threads around it."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.errors import OptError
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.apply import apply
from loopwright_opt.legality.cores import padded_work
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.tensor_core import tc_words, triples
from loopwright_opt.text import parse

_UPCASTS = (5, 4, 3, 2)
_LOCALS = (4, 2)


def _run(draft: Draft, values: Mapping[str, int]) -> bool:
    """Rows, then columns, in the largest register tile that divides; 4 or 2 tiles of columns to
    a workgroup."""
    if draft.kernel.schedule.opts or not bind(draft):
        return False
    use = draft.kernel.schedule.tensor_core
    assert use is not None
    rows = _divide(draft, "UPCAST", use.m, [n for n in _UPCASTS if n <= values["rows"]])
    columns = _divide(draft, "UPCAST", use.n, [n for n in _UPCASTS if n <= values["columns"]])
    groups = _divide(draft, "LOCAL", use.n, [n for n in _LOCALS if n <= values["groups"]])
    tile = f"{rows} x {columns} tiles a thread, {groups} side by side"
    draft.note(f"{use.core.name} does the products along {use.m} and {use.n}: {tile}")
    return True


def bind(draft: Draft) -> bool:
    """The axis triple that some core does with least padding, the first of equals; where the
    predecessors' choice is asked for, the first or none."""
    words = tc_words(draft.options)
    found = []
    count = len(triples(draft.kernel))
    for number in range(min(count, 1) if draft.options.parity else count):
        (step,) = parse(" ".join(["TC", str(number), *words]))
        try:
            made = apply(draft.kernel, step, draft.target)
        except OptError:
            continue
        found.append((padded_work(made, made.schedule), number, made))
    if found:
        draft.kernel = min(found, key=lambda triple: triple[:2])[2]
    return bool(found)


def _divide(draft: Draft, step: str, dim: str, amounts: list[int]) -> int:
    """Apply the first amount that divides what is left of a dim's blocks; 1 where none does."""
    axis = draft.kernel.schedule.of_dim(dim)[0]
    for amount in amounts:
        divides = isinstance(axis.size, int) and axis.size % amount == 0
        if divides and draft.do(f"{step} {axis.name} {amount}"):
            return amount
    return 1


TENSOR_CORES = Heuristic(
    "tensor_cores",
    (
        Parameter("rows", 5, (1, 2, 3, 4, 5)),
        Parameter("columns", 5, (1, 2, 3, 4, 5)),
        Parameter("groups", 4, (1, 2, 4)),
    ),
    _run,
)
