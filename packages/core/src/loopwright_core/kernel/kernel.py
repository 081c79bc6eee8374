"""A kernel: what is computed (body over dims) and how it runs (schedule)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.schedule import Schedule


@dataclass(frozen=True)
class Kernel:
    """`body` is a level-2 SINK of STOREs over DIM leaves; no optimization touches it.

    `dims`: output dims in nest order, then each reduce's. `shared`: values that indexing met at
    several index tuples, each entry the tuple of its instances (for KEEP: v0, v1, ...).
    `unused`: BUFFERs of the AST that no access is left of; they stay parameters.
    """

    name: str
    body: UOp
    dims: tuple[Dim, ...]
    schedule: Schedule
    shared: tuple[tuple[UOp, ...], ...] = ()
    unused: tuple[UOp, ...] = ()

    def with_schedule(self, schedule: Schedule) -> Kernel:
        """The same body under another schedule."""
        made = Kernel(self.name, self.body, self.dims, schedule, self.shared, self.unused)
        for name in ("nodes", "buffers", "reduce_dims"):  # what is known of the body stays known
            if name in self.__dict__:
                made.__dict__[name] = self.__dict__[name]
        return made

    def dim(self, name: str) -> Dim:
        """The dim of that name. Raises KeyError."""
        for d in self.dims:
            if d.name == name:
                return d
        raise KeyError(name)

    def describe(self, width: int | None = None, colour: bool = False) -> str:
        """One line: the name and the axes in nest order, cut to `width` characters."""
        from loopwright_core.kernel.describe import describe

        return describe(self, width, colour)

    def explain(self) -> tuple[str, ...]:
        """The schedule in sentences, one for each thing that was decided."""
        from loopwright_core.kernel.explain import explain

        return explain(self)

    @cached_property
    def nodes(self) -> tuple[UOp, ...]:
        """The body's nodes, sources first."""
        return tuple(self.body.toposort())

    @cached_property
    def reduce_dims(self) -> frozenset[str]:
        """The names of the dims that REDUCEs bind."""
        return frozenset(d.name for d in self.dims if d.is_reduce)

    @cached_property
    def buffers(self) -> tuple[UOp, ...]:
        """One BUFFER node per slot, by slot."""
        found = {n.arg.slot: n for n in (*self.nodes, *self.unused) if n.op is Op.BUFFER}
        return tuple(found[s] for s in sorted(found))


def buffer_name(slot: int) -> str:
    """A, B, ..., Z, AA, AB, ... for slots 0, 1, ...

    >>> buffer_name(0), buffer_name(25), buffer_name(26)
    ('A', 'Z', 'AA')
    """
    name = ""
    slot += 1
    while slot:
        slot, digit = divmod(slot - 1, 26)
        name = chr(65 + digit) + name
    return name
