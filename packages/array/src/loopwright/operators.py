"""The operators and methods of an Array, in terms of the functions of `loopwright.api`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import loopwright.api as api
from loopwright.extents import DynamicSize, number
from loopwright_core.errors import DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.uop import UOp

if TYPE_CHECKING:  # at run time `loopwright/__init__.py` has imported them before any call
    from loopwright.array import Array

Binary = Callable[[Any, Any], "Array"]


def _apply(f: Binary, a: Any, b: Any) -> Array:
    """f(a, b), or NotImplemented so that another type's operator may answer."""
    known = (Operators, bool, int, float, complex, np.ndarray, np.generic)
    if type(b) is DynamicSize:
        b = _size(b, a)
    elif type(a) is DynamicSize:
        a = _size(a, b)
    return f(a, b) if isinstance(a, known) and isinstance(b, known) else NotImplemented


def _size(size: DynamicSize, beside: Any) -> Array:
    """A size as an operand: as Python's ints it takes the array's dtype."""
    dtype = dt.int64 if beside.dtype.is_bool else beside.dtype
    if dtype.is_int and size.hi > dtype.max:
        size.refuse(f"whether {dtype} holds it")
    return type(beside)(number(size, dtype), beside.device)  # type: ignore[no-any-return]


class Operators:
    """What Python's operators do to arrays."""

    __slots__ = ()
    _uop: UOp

    def __add__(self, other: Any) -> Array:
        return _apply(api.elementwise.add, self, other)

    def __radd__(self, other: Any) -> Array:
        return _apply(api.elementwise.add, other, self)

    def __sub__(self, other: Any) -> Array:
        return _apply(api.elementwise.subtract, self, other)

    def __rsub__(self, other: Any) -> Array:
        return _apply(api.elementwise.subtract, other, self)

    def __mul__(self, other: Any) -> Array:
        return _apply(api.elementwise.multiply, self, other)

    def __rmul__(self, other: Any) -> Array:
        return _apply(api.elementwise.multiply, other, self)

    def __truediv__(self, other: Any) -> Array:
        return _apply(api.elementwise.divide, self, other)

    def __rtruediv__(self, other: Any) -> Array:
        return _apply(api.elementwise.divide, other, self)

    def __floordiv__(self, other: Any) -> Array:
        return _apply(api.elementwise.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Array:
        return _apply(api.elementwise.floor_divide, other, self)

    def __mod__(self, other: Any) -> Array:
        return _apply(api.elementwise.remainder, self, other)

    def __rmod__(self, other: Any) -> Array:
        return _apply(api.elementwise.remainder, other, self)

    def __divmod__(self, other: Any) -> tuple[Array, Array]:
        return _apply(api.elementwise.floor_divide, self, other), _apply(
            api.elementwise.remainder, self, other
        )

    def __rdivmod__(self, other: Any) -> tuple[Array, Array]:
        return _apply(api.elementwise.floor_divide, other, self), _apply(
            api.elementwise.remainder, other, self
        )

    def __pow__(self, other: Any) -> Array:
        return _apply(api.power.pow, self, other)

    def __rpow__(self, other: Any) -> Array:
        return _apply(api.power.pow, other, self)

    def __matmul__(self, other: Any) -> Array:
        return _apply(api.linalg.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Array:
        return _apply(api.linalg.matmul, other, self)

    def __and__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_and, self, other)

    def __rand__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_and, other, self)

    def __or__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_or, self, other)

    def __ror__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_or, other, self)

    def __xor__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_xor, self, other)

    def __rxor__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_xor, other, self)

    def __lshift__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_left_shift, self, other)

    def __rlshift__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_left_shift, other, self)

    def __rshift__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_right_shift, self, other)

    def __rrshift__(self, other: Any) -> Array:
        return _apply(api.elementwise.bitwise_right_shift, other, self)

    def __lt__(self, other: Any) -> Array:
        return _apply(api.elementwise.less, self, other)

    def __le__(self, other: Any) -> Array:
        return _apply(api.elementwise.less_equal, self, other)

    def __gt__(self, other: Any) -> Array:
        return _apply(api.elementwise.greater, self, other)

    def __ge__(self, other: Any) -> Array:
        return _apply(api.elementwise.greater_equal, self, other)

    def __eq__(self, other: Any) -> Array:  # type: ignore[override]  # elementwise, as in NumPy
        return _apply(api.elementwise.equal, self, other)

    def __ne__(self, other: Any) -> Array:  # type: ignore[override]  # elementwise, as in NumPy
        return _apply(api.elementwise.not_equal, self, other)

    def __neg__(self) -> Array:
        return api.elementwise.negative(self)

    def __pos__(self) -> Array:
        return api.elementwise.positive(self)

    def __abs__(self) -> Array:
        return api.elementwise.abs(self)

    def __invert__(self) -> Array:
        return api.elementwise.bitwise_invert(self)

    def _rebind(self, new: Any) -> Any:
        """This array bound to a value of its own shape and dtype."""
        if new is NotImplemented:
            return new
        own: Any = self
        if new.shape != own.shape:
            fail(
                ShapeError,
                f"an in-place operator on shape {own.shape} would give shape {new.shape}",
                fix="write x = x + y instead of x += y",
            )
        if not np.can_cast(new.dtype.numpy, own.dtype.numpy, "same_kind"):
            fail(
                DTypeError,
                f"an in-place operator on {own.dtype} would give {new.dtype}",
                fix="write x = x + y instead of x += y, or lw.astype the result",
            )
        own._uop = api.dtypes.astype(new, own.dtype)._uop
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._rebind(self + other)

    def __isub__(self, other: Any) -> Any:
        return self._rebind(self - other)

    def __imul__(self, other: Any) -> Any:
        return self._rebind(self * other)

    def __itruediv__(self, other: Any) -> Any:
        return self._rebind(self / other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._rebind(self // other)

    def __imod__(self, other: Any) -> Any:
        return self._rebind(self % other)

    def __ipow__(self, other: Any) -> Any:
        return self._rebind(self**other)

    def __imatmul__(self, other: Any) -> Any:
        return self._rebind(self @ other)

    def __iand__(self, other: Any) -> Any:
        return self._rebind(self & other)

    def __ior__(self, other: Any) -> Any:
        return self._rebind(self | other)

    def __ixor__(self, other: Any) -> Any:
        return self._rebind(self ^ other)

    def __ilshift__(self, other: Any) -> Any:
        return self._rebind(self << other)

    def __irshift__(self, other: Any) -> Any:
        return self._rebind(self >> other)
