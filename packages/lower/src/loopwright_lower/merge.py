"""A combine's merge as program values: built once over placeholders, decomposed, then copied in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from loopwright_core.ir.combine import COMBINES, Values
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.plugin.target import Target
from loopwright_lower.build import Builder
from loopwright_lower.decompose import decompose
from loopwright_lower.functions import functions_of

# Values over placeholders, and the nodes below them in order.
_Template: TypeAlias = tuple[tuple[UOp, ...], list[UOp]]


class Merger:
    """Emits `merge(a, b)`, identities and masked values of one combine over given dtypes."""

    def __init__(self, name: str, dtypes: tuple[DType, ...], target: Target) -> None:
        combine = COMBINES[name]
        self.name, self.dtypes = name, tuple(d.scalar for d in dtypes)
        self.identity: Values = combine.identity(self.dtypes)
        self._a = tuple(_placeholder("a", n, d) for n, d in enumerate(self.dtypes))
        self._b = tuple(_placeholder("b", n, d) for n, d in enumerate(self.dtypes))
        self._target = target
        self._merge = self._template(combine.merge)
        self._append = self._template(combine.append) if combine.append else None
        self.can_fuse = (
            name == "add"
            and self.dtypes[0].is_float
            and self.dtypes[0] in target.arith
            and target.has_fma
            and Op.FMA in target.ops
        )

    @property
    def can_append(self) -> bool:
        """Whether later values may be joined in a cheaper way."""
        return self._append is not None

    def merge(self, builder: Builder, a: Values, b: Values) -> Values:
        """The joined partial results, emitted."""
        return self._emit(builder, self._merge, a, b)

    def append(self, builder: Builder, a: Values, b: Values) -> Values:
        """The joined partial results, emitted, all positions of `b` behind those of `a`."""
        assert self._append is not None
        return self._emit(builder, self._append, a, b)

    def _template(self, combine: Callable[[Values, Values], Values]) -> _Template:
        made = combine(self._a, self._b)
        roots = decompose(made, self._target, functions=functions_of(self._target))
        return roots, [n for n in toposort(roots) if n.op is not Op.SPECIAL]

    def _emit(self, builder: Builder, template: _Template, a: Values, b: Values) -> Values:
        roots, order = template
        env = dict(zip(self._a + self._b, a + b, strict=True))
        for node in order:
            if node.op is Op.CONST:
                env[node] = node
            else:
                src = [env[s] for s in node.src]
                env[node] = builder.alu(node.op, node.dtype, *src, arg=node.arg)
        return tuple(env[r] for r in roots)

    def masked(self, builder: Builder, mask: UOp | None, values: Values) -> Values:
        """The values where the mask holds, elsewhere the identity."""
        if mask is None:
            return values
        return tuple(
            builder.alu(Op.WHERE, v.dtype.scalar, mask, v, i)
            for v, i in zip(values, self.identity, strict=True)
        )

    def horizontal(self, builder: Builder, values: Values, lanes: int) -> Values:
        """All lanes joined into scalars, halves against halves (keeps log2 depth)."""
        parts = [
            tuple(
                builder.place(UOp(Op.LANE, v.dtype.scalar, (v,), lane)) if v.dtype.lanes > 1 else v
                for v in values
            )
            for lane in range(lanes)
        ]
        return self.join(builder, parts)

    def join(self, builder: Builder, parts: list[Values]) -> Values:
        """Partial results joined pairwise, keeping their order."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            joined = [self.merge(builder, a, b) for a, b in pairs]
            if len(parts) % 2:
                joined.append(parts[-1])
            parts = joined
        return parts[0]


def _placeholder(side: str, n: int, dtype: DType) -> UOp:
    return UOp(Op.SPECIAL, dtype, (), (f"merge {side}{n}", 1))


_cache: dict[tuple[str, tuple[DType, ...], str], Merger] = {}


def merger(name: str, dtypes: tuple[DType, ...], target: Target) -> Merger:
    """The merger of a combine over these dtypes (void and index never occur)."""
    key = (name, dtypes, target.key)
    found = _cache.get(key)
    if found is None:
        found = _cache[key] = Merger(name, dtypes, target)
    return found
