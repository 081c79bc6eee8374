"""The methods of an Array that NumPy's arrays have too, in terms of `loopwright.api`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import loopwright.api as api

if TYPE_CHECKING:  # at run time `loopwright/__init__.py` has imported them before any call
    from loopwright.api.statistical import Axis
    from loopwright.array import Array


class Methods:
    """Methods; each is the function of its name applied to this array."""

    __slots__ = ()

    def astype(self, dtype: Any, /, *, copy: bool = True) -> Array:
        return api.dtypes.astype(self, dtype, copy=copy)

    def reshape(self, *shape: Any) -> Array:
        sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return api.manipulation.reshape(self, sizes)

    def transpose(self, *axes: Any) -> Array:
        if not axes or (len(axes) == 1 and axes[0] is None):
            return self.T  # type: ignore[attr-defined,no-any-return]  # of the Array
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return api.manipulation.permute_dims(self, order)

    def flatten(self) -> Array:
        return api.manipulation.reshape(self, (-1,))

    ravel = flatten

    def squeeze(self, axis: Axis = None) -> Array:
        return api.manipulation.squeeze(self, axis)

    def sum(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
        return api.statistical.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
        return api.statistical.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return api.statistical.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return api.statistical.min(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return api.statistical.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
        return api.statistical.var(self, axis=axis, correction=correction, keepdims=keepdims)

    def std(self, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
        return api.statistical.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return api.searching.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return api.searching.all(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return api.searching.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Array:
        return api.searching.argmin(self, axis=axis, keepdims=keepdims)

    def clip(self, min: Any = None, max: Any = None) -> Array:
        return api.elementwise.clip(self, min, max)

    def round(self) -> Array:
        return api.elementwise.round(self)
