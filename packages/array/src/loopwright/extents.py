"""What a traced array's shape holds for a dynamic axis: a size known when the function runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from loopwright_core.errors import DynamicShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, const


class DynamicSize:
    """A product of an int and Variables, as shapes of traced arrays hold it.

    Products, exact quotients and comparisons that the bounds decide work; all else raises
    DynamicShapeError.
    """

    __slots__ = ("factor", "variables")

    def __init__(self, factor: int, variables: Sequence[Variable]) -> None:
        self.factor = factor
        self.variables = tuple(sorted(variables, key=lambda v: (v.name, v.lo, v.hi)))

    @property
    def lo(self) -> int:
        """The least it can be."""
        return self.factor * math.prod([v.lo for v in self.variables])

    @property
    def hi(self) -> int:
        """The most it can be."""
        return self.factor * math.prod([v.hi for v in self.variables])

    def __repr__(self) -> str:
        names = [v.name for v in self.variables]
        return "*".join(names if self.factor == 1 else [str(self.factor), *names])

    def __hash__(self) -> int:
        return hash((self.factor, self.variables))

    def _refuse(self, *others: object) -> Any:
        """NotImplemented for arrays, which take sizes as operands."""
        if any(hasattr(other, "_uop") for other in others):
            return NotImplemented
        self.refuse("this")

    def refuse(self, what: str) -> NoReturn:
        """Raise DynamicShapeError: `what` cannot be known yet."""
        known = ", ".join(f"{v.name} from {v.lo} to {v.hi}" for v in dict.fromkeys(self.variables))
        fail(
            DynamicShapeError,
            f"{what} needs the value of the dynamic size {self}, which is known only when the "
            f"function runs ({known})",
            fix="keep that axis as it is here, or leave it out of dynamic=",
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Variable):
            other = DynamicSize(1, (other,))
        if isinstance(other, DynamicSize):
            if (self.factor, self.variables) == (other.factor, other.variables):
                return True
            lo, hi = other.lo, other.hi
        elif isinstance(other, int):
            lo = hi = other
        else:
            return NotImplemented
        if hi < self.lo or self.hi < lo:
            return False
        self.refuse(f"== {other}")

    def __lt__(self, other: Any) -> bool:
        lo, hi = _bounds(other)
        if self.hi < lo:
            return True
        return False if self.lo >= hi else self.refuse(f"< {other}")

    def __le__(self, other: Any) -> bool:
        lo, hi = _bounds(other)
        if self.hi <= lo:
            return True
        return False if self.lo > hi else self.refuse(f"<= {other}")

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, DynamicSize):
            return DynamicSize(self.factor * other.factor, self.variables + other.variables)
        if type(other) is not int:
            return self._refuse(other)
        return DynamicSize(self.factor * other, self.variables) if other > 0 else self._refuse()

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        left = list(self.variables)
        factor = other
        divisors: tuple[Variable, ...] = ()
        if isinstance(other, DynamicSize):
            factor, divisors = other.factor, other.variables
        for variable in divisors:
            if variable not in left:
                self.refuse(f"// {other}")
            left.remove(variable)
        if type(factor) is not int or factor < 1 or self.factor % factor:
            return self._refuse(other)
        found = self.factor // factor
        return DynamicSize(found, left) if left else found

    def __mod__(self, other: Any) -> Any:
        exact = self // other
        return exact if exact is NotImplemented else 0

    __add__ = __radd__ = __sub__ = __rsub__ = __rfloordiv__ = __rmod__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _refuse
    __neg__ = __abs__ = __round__ = __index__ = __int__ = __float__ = _refuse


def _bounds(value: Any) -> tuple[Any, Any]:
    return (value.lo, value.hi) if isinstance(value, DynamicSize) else (value, value)


def shown(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """A node's shape as users see it."""
    return tuple([DynamicSize(1, (n,)) if isinstance(n, Variable) else n for n in sizes])


def bare(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Sizes as nodes hold them: ints and Variables. Raises DynamicShapeError for products."""
    return tuple([_bare(n) if type(n) is DynamicSize else n for n in sizes])


def _bare(size: DynamicSize) -> Variable:
    if size.factor != 1 or len(size.variables) != 1:
        fail(
            DynamicShapeError,
            f"an axis of size {size} is no dynamic axis of its own",
            fix="keep each dynamic axis apart from the others in shapes",
        )
    return size.variables[0]


def keeps_dynamic(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether a reshape leaves every dynamic axis as it is, with as much before and after it."""
    return _parts(old) == _parts(new)


def _parts(sizes: Sequence[Any]) -> list[Any]:
    """The products of the sizes between Variables, and the Variables."""
    found: list[Any] = [1]
    for n in sizes:
        if isinstance(n, Variable):
            found += [n, 1]
        else:
            found[-1] *= n
    return found


def number(size: Any, dtype: DType) -> UOp:
    """A count of elements as a value of shape ()."""
    if not isinstance(size, DynamicSize):
        return const(size, dtype)
    node = const(size.factor, dtype)
    for variable in size.variables:
        own = UOp(Op.CAST, dtype, (UOp(Op.VAR, dt.index, (), variable),))
        node = own if node.arg == 1 else UOp(Op.MUL, dtype, (node, own))
    return node


def most(sizes: Sequence[Any]) -> tuple[int, ...]:
    """A shape at its largest."""
    return tuple([n.hi if isinstance(n, Variable) else n for n in sizes])


def actual(sizes: Sequence[Any], values: Mapping[Variable, int]) -> tuple[int, ...]:
    """A shape with the values of one call."""
    return tuple([values[n] if isinstance(n, Variable) else n for n in sizes])
