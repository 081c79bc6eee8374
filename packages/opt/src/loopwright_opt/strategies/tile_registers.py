"""Matrix instructions of a CPU: 2 x 2 tiles of sums in registers, panels packed as they are read.

Two tiles of rows and two of columns are four sums; each step then loads four tiles for four
products, and eight registers are all there are.
"""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.kernel.access import Access
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.schedule import TensorUse
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.legality.cores import padded_work
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.tensor_cores import bind

# Above it ordinary vectors are the better choice: most of each tile would be padding.
MOST_PADDING = 2.0


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    before = draft.kernel
    if before.schedule.opts or not bind(draft):
        return False
    use = draft.kernel.schedule.tensor_core
    assert use is not None
    if not use.core.is_tile or padded_work(draft.kernel, draft.kernel.schedule) > MOST_PADDING:
        draft.kernel = before
        return False
    rows, columns, _ = use.core.dims
    _split(draft, f"UPCAST {use.m}/{rows}", use.m, p["rows"])
    _split(draft, f"UPCAST {use.n}/{columns}", use.n, p["columns"])
    inner = draft.kernel.schedule.of_dim(use.n)[0]
    per_block = max(1, p["block"] // inner.stride)
    _split(draft, f"TILE {inner.name}", use.n, per_block)
    at = _order(draft, use)
    for which in (1, 0):
        _stage(draft, use, which, at[which])
    draft.note(f"{use.core.name} does the products along {use.m} and {use.n}")
    return True


def _split(draft: Draft, step: str, dim: str, amount: int) -> None:
    """Cut the outermost axis of a dim where it has more steps than that."""
    size = draft.kernel.schedule.of_dim(dim)[0].size
    if isinstance(size, int) and size >= amount > 1:
        draft.do(f"{step} {amount}")


def _order(draft: Draft, use: TensorUse) -> tuple[str, str]:
    """Blocks of columns outside, rows within them, the sum's steps innermost; inside which axes
    a panel of A and one of B lie."""
    schedule = draft.kernel.schedule
    loops = [a for a in schedule.axes if not a.kind.is_expanded and a.kind is not AxisKind.TENSOR]
    bound = {d.name for d in draft.kernel.dims if d.is_reduce}
    rows = [a.name for a in loops if a.dim == use.m]
    columns = [a.name for a in loops if a.dim == use.n]
    others = [a.name for a in loops if a.dim not in {use.m, use.n, *bound}]
    sums = [a.name for a in loops if a.dim in bound]
    blocks, strips = (columns[:1], columns[1:]) if len(columns) > 1 else ([], columns)
    draft.do("ORDER " + " ".join([*others, *blocks, *rows, *strips, *sums]))
    outside = (others + blocks)[-1:]
    return (rows or outside or [""])[-1], (outside or [""])[-1]


def _stage(draft: Draft, use: TensorUse, which: int, at: str) -> None:
    """Pack an operand in whole tiles, unless its rows lie in memory as the core reads them."""
    found = _operand(draft, use, which)
    if found is None or (which == 0 and _is_ready(draft, found, use)):
        return
    schedule = draft.kernel.schedule
    own = (use.m, use.n)[which]
    axes = [a for a in schedule.axes if a.dim in found.dims and a.kind is not AxisKind.TENSOR]
    outer = [a.name for a in axes if a.dim == own and a.name not in (at, own)]
    tensor = [a for a in schedule.axes if a.kind is AxisKind.TENSOR and a.dim in found.dims]
    steps = [a.name for a in axes if a.dim != own]
    # read along the rows of memory, whichever of the two dims they run along
    inward = sorted(tensor, key=lambda a: found.stride(a.dim) == 1)
    first = inward[0].dim
    copy = [a.name for a in axes if a.dim == first and a.name != at] + [inward[0].name]
    copy += [a.name for a in axes if a.dim != first and a.name != at] + [inward[1].name]
    words = f"STAGE {found.name} @{at} layout {','.join([*outer, *steps])}"
    if not draft.do(f"{words} order {','.join(copy)}"):
        draft.do(f"STAGE {found.name} @{at}")


def _operand(draft: Draft, use: TensorUse, which: int) -> Access | None:
    """The load that moves along the operand's own dim and not along the other one."""
    own, other = (use.m, use.n) if which == 0 else (use.n, use.m)
    for access in draft.facts.accesses.values():
        if not access.is_store and own in access.dims and other not in access.dims:
            return access
    return None


def _is_ready(draft: Draft, access: Access, use: TensorUse) -> bool:
    """Whether rows of A are whole and their elements side by side."""
    depths = [a for a in draft.kernel.schedule.axes if a.kind is AxisKind.TENSOR and a.dim != use.n]
    whole = all(not draft.size(a.dim) % a.size for a in depths if isinstance(a.size, int))
    return whole and not access.valid and any(access.stride(a.dim) == 1 for a in depths[1:])


TILE_REGISTERS = Heuristic(
    "tile_registers",
    (
        Parameter("rows", 2, (1, 2, 3)),
        Parameter("columns", 2, (1, 2)),
        Parameter("block", 256, (64, 128, 256, 512, 1024)),
    ),
    _run,
)
