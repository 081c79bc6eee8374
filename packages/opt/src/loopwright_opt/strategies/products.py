"""Sums of products in register tiles: rows of broadcasts times vectors, over packed panels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.access import Access
from loopwright_core.kernel.copies import conversions
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.axes import inside
from loopwright_opt.facts import Facts, Statement
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import below, lanes_along, reduces, stores
from loopwright_opt.strategies.threads import balanced, thread_one_of, wanted_threads

# Steps of the sum at a time where few rows pass over a matrix that is not copied; where it comes
# from beyond so many times L2, half of them: each is a stream that the processor fetches ahead.
STRIP = 16
FAR = 8


@dataclass(frozen=True)
class Product:
    """sum over `bound` of row * column: `column` moves along the dim of the lanes, `row` stands.

    `bound`: the longest last. `u`: the dim whose rows share a vector of the column operand.
    """

    row: Access
    column: Access
    bound: tuple[str, ...]
    lanes: str
    n_lanes: int
    u: str
    others: tuple[str, ...]

    @property
    def rows(self) -> tuple[str, ...]:
        """The output dims along which the column operand is read again."""
        return tuple([d for d in (*self.others, self.u) if d not in self.column.dims])

    @property
    def is_window(self) -> bool:
        """Whether an operand is read at sums of dims or under a condition."""
        return any(
            a.valid or any(len(f.terms) > 1 for f in a.form) for a in (self.row, self.column)
        )


def find(draft: Draft) -> Product | None:
    """The product of two loads that a kernel's only reduce sums up, where both are reused."""
    pair = operands(draft)
    if pair is None:
        return None
    statement, x, y = pair
    facts = draft.facts
    out = stores(facts)[0]
    best: tuple[tuple[bool, int, bool], Access, Access, str, int] | None = None
    for column, row in ((x, y), (y, x)):
        for dim in statement.free & (column.dims - row.dims):
            n = lanes_along(draft, dim) if dim not in column.opaque | out.opaque else 0
            if not n:
                continue
            whole = out.stride(dim) == 1 == column.stride(dim)
            score = (whole, n, out.stride(dim) == 1)
            if best is None or (score, dim) > (best[0], best[3]):
                best = score, column, row, dim, n
    if best is None:
        return None
    _, column, row, lanes, n = best
    rows = [d.name for d in reversed(draft.kernel.dims) if d.name in statement.free]
    rows = [d for d in rows if d in row.dims and d not in column.dims and draft.size(d) > 1]
    if not rows:
        return None
    u = next((d for d in rows if draft.size(d) >= 4), rows[0])
    bound = tuple(
        sorted([d.name for d in draft.kernel.dims if d.name in statement.bound], key=draft.size)
    )
    others = tuple(
        [d.name for d in draft.kernel.dims if d.name in statement.free and d.name not in (lanes, u)]
    )
    return Product(row, column, bound, lanes, n, u, others)


def operands(draft: Draft) -> tuple[Statement, Access, Access] | None:
    """(the only reduce, the loads it multiplies) of a kernel that adds up products."""
    kernel, facts = draft.kernel, draft.facts
    found = reduces(kernel)
    if len(found) != 1 or found[0].arg[0] != "add" or facts.scanned:
        return None
    statement = next(s for s in facts.statements if s.bound)
    if any(s.free != statement.free for s in facts.statements):
        return None
    value = _uncast(found[0].src[0])
    if value.op is not Op.MUL:
        return None
    x, y = (_load(facts, s) for s in value.src)
    return None if x is None or y is None else (statement, x, y)


def _uncast(value: UOp) -> UOp:
    while value.op is Op.CAST:
        value = value.src[0]
    return value


def _load(facts: Facts, operand: UOp) -> Access | None:
    """The load of an operand that moves along the most dims, where all is known of it."""
    inside = {n for n in below(operand) if n.op is Op.INDEX}
    found = [a for a in facts.accesses.values() if a.node in inside]
    if not found or any(a.opaque or not a.is_plain for a in found):
        return None
    return max(found, key=lambda a: len(a.dims))


def tile(draft: Draft, rows: int, columns: int) -> tuple[int, int]:
    """(rows, vectors) of the register tile: as many accumulators as leave room for the operands.

    Both fall to the next size that cuts the extents evenly.
    """
    room = draft.target.registers - 4
    most = 6
    mr = -(-rows // -(-rows // most))
    nv = max(1, min(room // mr, 8))
    return mr, -(-columns // -(-columns // nv))


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    found = find(draft)
    if (
        found is None
        or (found.is_window and found.column.stride(found.lanes) == 1)
        or not draft.target.vector_bytes
    ):
        return False
    m, n = draft.size(found.u), draft.size(found.lanes)
    if _prefers_dots(draft, found) and _dots(draft, found):
        return True
    mr, nv = tile(draft, m, -(-n // found.n_lanes))
    if p["rows"] or p["vectors"]:
        mr, nv = p["rows"] or mr, p["vectors"] or nv
    if _is_staged(draft, found, nv * found.n_lanes):
        if _panels(draft, found, mr, nv, p):
            return True
    return _plain(draft, found, mr, nv)


def _is_unit(access: Access, dims: tuple[str, ...]) -> bool:
    return any(access.stride(d) == 1 for d in dims)


def _prefers_dots(draft: Draft, found: Product) -> bool:
    """The larger operand lies along the sum, and too few rows share a panel to copy it for them.

    The other one lies along the sum too, or is so small that a turned copy of it stays near.
    """
    if found.column.stride(found.lanes) == 1 or len(found.bound) != 1:
        return False
    (k,) = found.bound
    if not _is_unit(found.column, found.bound) or lanes_along(draft, k) < 2:
        return False
    m = draft.size(found.u)
    if _is_unit(found.row, found.bound):
        return m < 32
    if draft.size(k) < 4 * lanes_along(draft, k):  # joining the lanes would cost more
        return False
    near = draft.target.caches[1] // 2
    return m * draft.size(k) * found.row.dtype.itemsize <= near and 8 * m <= draft.size(found.lanes)


def _dots(draft: Draft, found: Product) -> bool:
    """Lanes along the sum: a few rows by a few columns of dot products."""
    (k,) = found.bound
    m, n = draft.size(found.u), draft.size(found.lanes)
    rows = min(m, 4)
    columns = min(n, max(1, (draft.target.registers - 4) // rows), 4)
    steps = [f"VECTOR {k} {lanes_along(draft, k)}"]
    steps += [f"UPCAST {d} {c}" for d, c in ((found.u, rows), (found.lanes, columns)) if c > 1]
    if not draft.do(*steps):
        return False
    inner = [f"{d}/{c}" for d, c in ((found.u, rows), (found.lanes, columns))]
    # The side that is read again and again stays in cache: the shorter one.
    draft.do("ORDER " + " ".join(inner if m >= n else reversed(inner)))
    draft.note(f"dot products along {k}: {rows} rows by {columns} columns share their loads")
    thread_one_of(draft, (*found.others, found.lanes, found.u))
    if not _is_unit(found.row, found.bound):
        _turn_row(draft, found)
    return True


def _turn_row(draft: Draft, found: Product) -> None:
    """Copy the row operand so that it lies along the sum, as far outside as it stands still."""
    moving = [d for d in found.others if d in found.row.dims]
    at = ""
    for axis in draft.kernel.schedule.axes:
        is_thread = axis.kind is AxisKind.THREAD
        at = axis.name if is_thread or (axis.dim in moving and axis.kind is AxisKind.LOOP) else at
    within = inside(draft.kernel.schedule, at, found.row.dims)
    layout = [a.name for a in within if a.dim not in found.bound]
    layout += [a.name for a in within if a.dim in found.bound]
    if draft.do(f"STAGE {found.row.name} @{at} layout {','.join(layout)}"):
        draft.note(f"{found.row.name} turned to lie along the sum")


def _is_staged(draft: Draft, found: Product, width: int) -> bool:
    """Whether a packed copy of the column operand pays: rows enough that read it again."""
    n = draft.size(found.lanes)
    m = prod(draft.size(d) for d in found.rows)
    k = prod(draft.size(d) for d in found.bound)
    if found.column.stride(found.lanes) != 1:
        return m >= 8 and k >= 4
    cast, bytes_ = _held(draft, found.column)
    first, second, _ = draft.target.caches
    if k * n * bytes_ <= first * 3 // 2 and not cast:
        return False  # what stays in L1 is read as well where it lies
    is_far = k * n * bytes_ > second // 4
    return m >= (8 if is_far else 32) and k >= 32 and n > width


def _plain(draft: Draft, found: Product, mr: int, nv: int) -> bool:
    """The register tile alone, over operands as they lie."""
    v, u, width = found.lanes, found.u, nv * found.n_lanes
    steps = tile_steps(found, mr, nv)
    axes = [*found.others, f"{u}/{mr}", f"{v}/{width}", *found.bound]
    k = found.bound[-1]
    reach = draft.size(k) * draft.size(v) * found.column.dtype.itemsize
    second = draft.target.caches[1]
    if draft.size(k) >= 8 * STRIP and reach > second // 4:
        # lines are read to their ends, by all rows in turn
        strip = STRIP // 2 if reach > FAR * second else STRIP
        steps.append(f"TILE {k} {strip}")
        axes = [*found.others, f"{k}/{strip}", f"{v}/{width}", f"{u}/{mr}", *found.bound]
    if not draft.do(*steps, "ORDER " + " ".join(axes)):
        return False
    draft.note(f"sum of products: {mr} rows of {u} by {nv} vectors of {v} stay in registers")
    thread_one_of(draft, (*found.others, f"{u}/{mr}", f"{v}/{width}"))
    return True


def tile_steps(found: Product, mr: int, nv: int) -> list[str]:
    v, n = found.lanes, found.n_lanes
    steps = [f"UPCAST {found.u} {mr}"] if mr > 1 else []
    if nv > 1:
        return [*steps, f"TILE {v} {nv * n}", f"VECTOR {v} {n}", f"UPCAST {v}/{n} 0"]
    return [*steps, f"VECTOR {v} {n}"]


def _panels(draft: Draft, found: Product, mr: int, nv: int, p: Mapping[str, int]) -> bool:
    """The register tile over a packed copy of the column operand's panel.

    With 32 registers the panel stays in L2 and is read once for each strip of rows. With 16 each
    strip of the panel stays in L1 for a block of rows, which itself stays in L2.
    """
    v, u, width = found.lanes, found.u, nv * found.n_lanes
    m, n, threads = draft.size(u), draft.size(v), wanted_threads(draft)
    is_wide = draft.target.registers >= 32
    cast, bytes_ = _held(draft, found.column)
    depth = prod(draft.size(d) for d in found.bound)
    one_sum = len(found.bound) == 1
    kc = _even(depth, _depth(draft, bytes_, is_wide, p)) if one_sum else depth
    if is_wide:
        most = p["panel"] or 1024 // bytes_
    else:
        most = p["panel"] or (2 << 20) // (kc * bytes_)
    most = max(width, min(most, (4 << 20) // (kc * bytes_)) // width * width)
    outer = next((d for d in found.others if balanced(draft.size(d), threads)), "")
    # Threads along the columns copy a part of the panel each, along the rows the whole of it.
    by_columns = n >= threads * width or m < threads * 32
    split = "" if outer or threads < 2 else v if by_columns else u
    parts = -(-n // most)
    if split == v:
        parts = -(-parts // threads) * threads
    nc = -(-n // (parts * width)) * width
    ic = 0 if is_wide else _block(m, mr, p["block"], threads if split == u else 1)
    steps, order = [], [d for d in found.others if d in found.column.dims]
    if nc < n or not one_sum:
        steps.append(f"TILE {v} {nc}")
        order.append(f"{v}/{nc}")
        at = order[-1]
    if one_sum:
        (k,) = found.bound
        steps.append(f"TILE {k} {kc}")
        order.append(f"{k}/{kc}")
        at = order[-1]
    order += [d for d in found.others if d not in found.column.dims]
    if ic:
        steps.append(f"TILE {u} {ic}")
        order.append(f"{u}/{ic}")
    steps += tile_steps(found, mr, nv)
    inner = [f"{u}/{mr}", f"{v}/{width}"]
    order += inner if is_wide else reversed(inner)
    sums = [f"{d}/1" for d in found.bound]
    strip = [f"{v}/{found.n_lanes}"] if nv > 1 else []
    layout = [f"{v}/{width}", *_used(found.column, sums), *strip, f"{v}/1"]
    copy = [*_used(found.column, sums), f"{v}/{width}", *strip, f"{v}/1"]
    if found.column.stride(v) != 1:
        copy = [f"{v}/{width}", *_used(found.column, sums), *strip, f"{v}/1"]
    stage = (
        f"STAGE {found.column.name} @{at} layout {','.join(layout)} order {','.join(copy)}{cast}"
    )
    steps.append("ORDER " + " ".join([*order, *sums]))
    if not draft.do(*steps, stage):
        return False
    draft.note(
        f"sum of products: {mr} rows of {u} by {nv} vectors of {v} in registers, "
        f"{found.column.name} packed in panels of {kc} by {min(nc, n)}"
    )
    cast, _ = _held(draft, found.row)
    if cast or _rows_are_staged(found, n // width, is_wide or kc < 256):
        where = f"{u}/{ic}" if ic else f"{u}/{mr}" if is_wide else at
        names = [f"{u}/{mr}", *sums, f"{u}/1"] if where != f"{u}/{mr}" else [*sums, f"{u}/1"]
        words = ",".join([w for w in names if w.partition("/")[0] in found.row.dims])
        if draft.do(f"STAGE {found.row.name} @{where} layout {words} order {words}{cast}"):
            why = "it is converted once" if cast else "its rows lie side by side for all strips"
            draft.note(f"{found.row.name} packed too: {why}")
    draft.do(f"PREFETCH {stores(draft.facts)[0].name}")
    if outer:
        thread = outer
    elif split == v:
        thread = f"{v}/{nc}"
    else:
        thread = f"{u}/{ic}" if ic else f"{u}/{mr}"
    thread_one_of(draft, (thread,))
    return True


def _held(draft: Draft, access: Access) -> tuple[str, int]:
    """What STAGE says of a copy, and the bytes of its elements: what its readers convert it to,
    where they all do."""
    casts = conversions(draft.kernel, access.name)
    return (" cast", casts[0].dtype.itemsize) if casts else ("", access.dtype.itemsize)


def _used(access: Access, axes: list[str]) -> list[str]:
    return [a for a in axes if a.partition("/")[0] in access.dims]


def _even(size: int, most: int) -> int:
    """The length of equal pieces of at most that size."""
    return -(-size // -(-size // most))


def _depth(draft: Draft, bytes_: int, is_wide: bool, p: Mapping[str, int]) -> int:
    """Steps of the sum in one panel."""
    if p["depth"]:
        return p["depth"]
    if is_wide:  # half of L2 for 256 columns of floats
        return max(128, min(1024, draft.target.caches[1] // 2 // 1024))
    return 512


def _block(m: int, mr: int, rows: int, threads: int) -> int:
    """Rows of the block that stays in L2; 0 for all."""
    most = max(rows // mr, 1) * mr
    parts = -(-m // most)
    if threads > 1:
        parts = -(-parts // threads) * threads
    elif m <= 2 * most:
        return 0
    return -(-m // (parts * mr)) * mr


def _rows_are_staged(found: Product, strips: int, are_near: bool) -> bool:
    """Whether the row operand is packed too, for as many strips of columns as read the copy.

    Rows across the sum leave their line at each step. Rows along it lie pages apart: where each
    strip of the panel meets all of them again, from L2, they are better side by side. `are_near`:
    rows are short, or there are registers enough that each is met once.
    """
    if not _is_unit(found.row, found.bound):
        return strips >= 4
    return strips >= 16 and not are_near


PRODUCTS = Heuristic(
    "products",
    (
        Parameter("rows", 0, (0, 2, 3, 4, 5, 6, 8, 12)),
        Parameter("vectors", 0, (0, 1, 2, 3, 4)),
        Parameter("depth", 0, (0, 128, 256, 384, 512, 1024)),
        Parameter("panel", 0, (0, 64, 128, 256, 512, 1024)),
        Parameter("block", 72, (24, 48, 72, 96, 144, 192)),
    ),
    _run,
)
