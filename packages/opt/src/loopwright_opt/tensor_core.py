"""TC and PADTO: which products a tensor core can do, and the axes it is bound to.

A reduce ADD over a product matches where one factor moves along an output axis that the other
does not, the other along one of its own, and both along the reduce: M, N and K. The factor that
moves along the innermost output axis is B.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.kernel.product import factors_as, product_of
from loopwright_core.kernel.schedule import Opt, Schedule, TensorUse
from loopwright_core.kernel.statements import bound_dims
from loopwright_core.plugin.target import Target
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_opt.axes import refuse, resolve
from loopwright_opt.facts import facts_of
from loopwright_opt.legality import cores, loops

# Words of a TC step that name an option; each lets cores be used that need it.
_PERMITS = ("tf32", "half_accumulate")
_LEVELS = ("0", "1", "2")


@dataclass(frozen=True)
class Triple:
    """A reduce of products and the dims that a core's M, N and K may run along.

    `is_swapped`: the product's second factor is A.
    """

    reduce: UOp
    m: str
    n: str
    k: str
    is_swapped: bool

    def factors(self, core: TensorCore) -> tuple[UOp, UOp] | None:
        """A and B as a core would read them."""
        value = product_of(self.reduce)
        return factors_as(value, core, self.is_swapped) if value is not None else None

    def fits(self, core: TensorCore) -> bool:
        """Whether the core takes these factors and sums as the reduce does, or as it may."""
        coarser = core.option == "half_accumulate"
        sums = self.reduce.dtype is core.dtype_out
        wider = coarser and self.reduce.dtype.is_float
        return (sums or wider) and self.factors(core) is not None


@dataclass(frozen=True)
class How:
    """What the words behind `TC n` say."""

    level: int
    multiplies: bool
    permits: tuple[str, ...]
    core: str

    def allows(self, core: TensorCore) -> bool:
        """Whether a core may be used by its options and, if one was named, by its name."""
        named = self.core in ("", core.name)
        return named and (not core.option or core.option in self.permits)


def triples(kernel: Kernel) -> list[Triple]:
    """Every M, N, K of every reduce of products, innermost dims first."""
    free = facts_of(kernel).free
    inward = {d.name: n for n, d in enumerate(reversed(kernel.dims)) if not d.is_symbolic}
    outputs = {d.name for d in kernel.dims if not d.is_reduce}
    found: list[Triple] = []
    for node in kernel.nodes:
        value = product_of(node)
        if value is None:
            continue
        x, y = (free[s] for s in value.src)
        reduced = sorted(x & y & set(bound_dims(node)) & inward.keys(), key=inward.__getitem__)
        own = [
            sorted(d & outputs & free[node] & inward.keys(), key=inward.__getitem__)
            for d in (x - y, y - x)
        ]
        if not own[0] or not own[1]:
            continue
        is_swapped = inward[own[0][0]] < inward[own[1][0]]
        rows, columns = reversed(own) if is_swapped else own
        found += [Triple(node, *t, is_swapped) for t in product(rows, columns, reduced)]
    return found


def bind(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """TC n [level 0|1|2] [shape] [tf32] [half_accumulate] [core NAME]: axis triple n is done by
    a tensor core, and so is every other reduce of products along the same M and N it can do."""
    how = _how(kernel, opt)
    cores.core_comes_first(kernel, opt)
    cores.target_has_cores(kernel, opt, target)
    found = triples(kernel)
    cores.product_is_there(kernel, opt, len(found))
    cores.triple_is_there(kernel, opt, len(found))
    triple = found[opt.amount or 0]
    core = _choose(kernel, opt, triple, target, how)
    cores.threads_stand_side_by_side(kernel, opt, core, target)
    bound = [triple, *_others(found, triple, core)]
    for dim in (triple.m, triple.n):
        loops.not_along_a_scan(kernel, opt, resolve(kernel, opt, dim))
    depths = tuple(dict.fromkeys(t.k for t in bound))
    cores.reduces_are_products(kernel, opt, depths, {t.reduce for t in bound})
    for t in bound:
        factors = t.factors(core)
        assert factors is not None
        cores.operands_stand_alone(kernel, opt, factors, {t.m, t.n, t.k})
    schedule = replace(
        kernel.schedule, tensor_core=TensorUse(core, triple.m, triple.n, how.multiplies)
    )
    sizes = dict(zip((triple.m, triple.n), core.dims[:2], strict=True))
    for dim, size in (*sizes.items(), *((k, core.dims[2]) for k in depths)):
        schedule = _cut(schedule, resolve(kernel, opt, dim), size)
    return schedule


def pad(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """PADTO axis n: what a TENSOR axis' dim covers becomes a multiple of n."""
    axis = resolve(kernel, opt, opt.axis)
    cores.padding_is_of_a_core(kernel, opt, axis)
    schedule, size = kernel.schedule, kernel.dim(axis.dim).max_size
    outer = schedule.of_dim(axis.dim)[0]
    wanted = -(-size // cores.padding_is_real(kernel, opt)) * (opt.amount or 1)
    cores.padding_is_of_whole_blocks(kernel, opt, outer, wanted)
    cores.padding_pads(kernel, opt, outer, wanted)
    padded = replace(outer, size=wanted // outer.stride)
    axes = tuple([padded if a is outer else a for a in schedule.axes])
    made = schedule.with_axes(axes)
    cores.padding_is_small(kernel, opt, cores.padded_work(kernel, made))
    return made


def tc_words(options: Options) -> tuple[str, ...]:
    """What a TC step says for a user's options, where that is not the default."""
    level = min(options.tensor_core_level, 1) if options.parity else options.tensor_core_level
    words = [] if level == 2 else ["level", str(level)]
    words += ["shape"] if options.tensor_cores == "shape" else []
    words += [name for name in _PERMITS if getattr(options, name)]
    return tuple(words)


def with_options(opts: Iterable[Opt], options: Options) -> tuple[Opt, ...]:
    """The steps with a user's options said at each TC that says nothing itself."""
    words = tc_words(options)
    return tuple([replace(o, arg=words) if o.op == "TC" and not o.arg else o for o in opts])


def _how(kernel: Kernel, opt: Opt) -> How:
    level, multiplies, name = 2, True, ""
    permits: list[str] = []
    words = iter(opt.arg)
    for word in words:
        value = next(words, "") if word in ("level", "core") else ""
        if word == "level" and value in _LEVELS:
            level = int(value)
        elif word == "core" and value:
            name = value
        elif word == "shape":
            multiplies = False
        elif word in _PERMITS:
            permits.append(word)
        else:
            known = "level 0, 1 or 2; shape; core NAME; " + "; ".join(_PERMITS)
            refuse(kernel, opt, f"{word} says nothing about a tensor core", fix=f"Known: {known}")
    return How(level, multiplies, tuple(permits), name)


def _choose(kernel: Kernel, opt: Opt, triple: Triple, target: Target, how: How) -> TensorCore:
    """The first core of the target's table that does the triple as the level allows."""
    fitting = [c for c in target.tensor_cores if how.allows(c) and triple.fits(c)]
    cores.dtypes_fit(kernel, opt, triple.reduce, target, bool(fitting))
    if how.level == 0:
        cores.one_reduce_axis(kernel, opt, triple.reduce)
        fitting = cores.operands_are_loads(kernel, opt, fitting, triple.factors)
    sizes = [kernel.dim(d).max_size for d in (triple.m, triple.n, triple.k)]
    if how.level < 2:
        return cores.sizes_are_whole(kernel, opt, fitting, sizes)
    small = [c for c in fitting if _work(sizes, c) <= cores.MAX_PADDING]
    cores.padding_is_small(kernel, opt, 1 if small else min(_work(sizes, c) for c in fitting))
    return small[0]


def _work(sizes: list[int], core: TensorCore) -> float:
    """How many times the product's work whole tiles are."""
    return prod([-(-n // size) * size / n for n, size in zip(sizes, core.dims, strict=True)])


def _others(found: list[Triple], first: Triple, core: TensorCore) -> list[Triple]:
    """One triple for each other reduce along the same M and N that the core can do too."""
    others: dict[UOp, Triple] = {}
    for t in found:
        same = t.reduce is not first.reduce and (t.m, t.n) == (first.m, first.n)
        if same and t.fits(core):
            kept = others.get(t.reduce)
            if kept is None or t.k == first.k:
                others[t.reduce] = t
    return list(others.values())


def _cut(schedule: Schedule, axis: Axis, size: int) -> Schedule:
    """An axis in an outer part and the core's share of it."""
    assert isinstance(axis.size, int)
    outer = Axis(axis.dim, axis.stride * size, -(-axis.size // size), axis.kind)
    inner = Axis(axis.dim, axis.stride, size, AxisKind.TENSOR)
    at = schedule.axes.index(axis)
    return schedule.with_axes((*schedule.axes[:at], outer, inner, *schedule.axes[at + 1 :]))
