"""Level 1 to level 2: movement ops become index expressions over the kernel's dims."""

from __future__ import annotations

from math import prod

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.movement import ZERO, Index
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import Shape, shape_of
from loopwright_core.ir.uop import TRUE, UOp, Variable
from loopwright_core.kernel.access import flat_strides
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.naming import output_names
from loopwright_core.kernel.schedule import initial_schedule
from loopwright_lower.evaluate import Evaluator, place_of, view_of
from loopwright_lower.share import finish


def index(ast: UOp, name: str | None = None) -> Kernel:
    """The kernel that computes a level-1 SINK of STOREs, with its initial schedule.

    Raises LoweringError where a scan is not met at the identity index of its axis.
    """
    evaluator = Evaluator()
    outputs = _Outputs(evaluator)
    order = sorted(range(len(ast.src)), key=lambda s: -_elements(shape_of(ast.src[s].src[1])))
    stores: dict[int, UOp] = {}
    for s in order:
        target, value = _unshaped(*ast.src[s].src)
        at = outputs.index(target, value)
        place = _place(target, at)
        stores[s] = UOp(
            Op.STORE, ast.src[s].dtype, (place, evaluator.value(value, at)), ast.src[s].arg
        )
    body = UOp(Op.SINK, ast.dtype, tuple([stores[s] for s in range(len(ast.src))]))
    finished = finish(body, outputs.nest(), evaluator)
    dims = finished.dims
    left = {u for u in finished.body.toposort() if u.op is Op.BUFFER}
    unused = tuple([u for u in ast.toposort() if u.op is Op.BUFFER and u not in left])
    schedule = initial_schedule(dims)
    return Kernel(name or kernel_name(dims), finished.body, dims, schedule, finished.shared, unused)


def kernel_name(dims: tuple[Dim, ...]) -> str:
    """`r_` (there is a reduce) or `e_`, then the sizes of the dims.

    >>> kernel_name((Dim("i", 4), Dim("k", 8, True)))
    'r_4_8'
    """
    kind = "r" if any(d.is_reduce for d in dims) else "e"
    sizes = [d.size.name if isinstance(d.size, Variable) else str(d.size) for d in dims]
    return "_".join([kind, *sizes])


def _elements(shape: Shape) -> int:
    return prod(n.hi if isinstance(n, Variable) else n for n in shape)


class _Outputs:
    """The output dims of all stores. Each store's dims have levels: 0 walks its largest stride."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.made: list[tuple[int, UOp]] = []  # (level, DIM) in order of creation
        self.names = output_names()

    def nest(self) -> tuple[UOp, ...]:
        """Every output DIM, in nest order."""
        return tuple([dim for _, dim in sorted(self.made, key=lambda made: made[0])])

    def index(self, target: UOp, value: UOp) -> Index:
        """The index tuple at which a store writes: dims that exist where they fit, else new ones.

        A value that an earlier store met at bare dims is stored at those: it is one instance then.
        Else a dim is shared where level and extent are equal.
        """
        shape = shape_of(target)
        axes = [axis for axis, n in enumerate(shape) if n != 1]
        index = [ZERO] * len(shape)
        probe = {axis: Dim(f"?{axis}", shape[axis]).uop for axis in axes}
        for axis, dim in probe.items():
            index[axis] = dim
        known = self.evaluator.met_at(value, tuple(index))
        if known is not None:
            by_probe = dict(known)
            return tuple([by_probe.get(i, i) for i in index])
        order = axes if target.op is Op.BUFFER else _by_stride(target, tuple(index), probe)
        taken: set[UOp] = set()
        for level, axis in enumerate(order):
            found = None
            for at, dim in self.made:
                if at == level and dim.arg.size == shape[axis] and dim not in taken:
                    found = dim
                    break
            if found is None:
                found = Dim(next(self.names), shape[axis]).uop
                self.made.append((level, found))
            taken.add(found)
            index[axis] = found
        return tuple(index)


def _by_stride(target: UOp, index: Index, probe: dict[int, UOp]) -> list[int]:
    """The axes of a store's target, the one with the largest stride in the buffer first."""
    strides = flat_strides(_place(target, index))
    return sorted(probe, key=lambda axis: (-abs(strides.get(probe[axis].arg.name, 0)), axis))


def _place(target: UOp, index: Index) -> UOp:
    """The INDEX node that a store through a view of a buffer writes to."""
    buffer, at, shape = view_of(target, index)
    if buffer is None:
        fail(LoweringError, f"a store's target is no view of a buffer but a {target.op.name}")
    return place_of(buffer, at, shape, TRUE)


def _unshaped(target: UOp, value: UOp) -> tuple[UOp, UOp]:
    """A store of a reshaped value as a store of the value through a reshaped view.

    store(t, reshape(x)) --> store(reshape(t), x): no division in what x reads.
    """
    while value.op is Op.RESHAPE:
        value = value.src[0]
        target = UOp(Op.RESHAPE, target.dtype, (target,), shape_of(value))
    return target, value
