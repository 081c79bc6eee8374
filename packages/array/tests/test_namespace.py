"""The names of the array API standard against the namespace."""

from __future__ import annotations

import pytest

import loopwright as lw
from loopwright.linalg import _MISSING
from loopwright_core.errors import LoopwrightError

# The standard's names, 2024.12, chapter by chapter.
STANDARD = {
    "constants": "e inf nan newaxis pi",
    "creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid "
    "ones ones_like tril triu zeros zeros_like",
    "dtype functions": "astype can_cast finfo iinfo isdtype result_type",
    "dtypes": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 "
    "complex128",
    "elementwise": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift "
    "bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh "
    "divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf "
    "isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or "
    "logical_xor maximum minimum multiply negative nextafter not_equal positive pow real "
    "reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc",
    "indexing": "take take_along_axis",
    "inspection": "__array_namespace_info__ __array_api_version__",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims "
    "repeat reshape roll squeeze stack tile unstack",
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "sets": "unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistical": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utility": "all any diff",
    "extensions": "fft linalg",
    "of 2025.12": "broadcast_shapes isin",
}
LINALG = (
    "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
    "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
)
ARRAY = (
    "__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__ "
    "__dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __iadd__ __iand__ "
    "__ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __index__ __int__ __invert__ __ior__ "
    "__ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__ __matmul__ "
    "__mod__ __mul__ __ne__ __neg__ __or__ __pos__ __pow__ __radd__ __rand__ __rfloordiv__ "
    "__rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rshift__ __rsub__ "
    "__rtruediv__ __rxor__ __setitem__ __sub__ __truediv__ __xor__ T device dtype mT ndim shape "
    "size to_device"
)


def test_every_name_of_the_standard_is_here_or_named() -> None:
    """The namespace lacks complex dtypes and Fourier transforms, and nothing else."""
    names = [name for names in STANDARD.values() for name in names.split()]
    assert {name for name in names if not hasattr(lw, name)} == {"complex64", "complex128", "fft"}
    assert {name for name in names if name not in lw.__all__} == {"complex64", "complex128", "fft"}


def test_every_name_of_the_linalg_extension_is_here_or_named() -> None:
    """What linalg lacks is refused as an attribute that is not there, with what to write."""
    names = set(LINALG.split())
    assert names == {*lw.linalg.__all__, *_MISSING}
    assert {name for name in names if not hasattr(lw.linalg, name)} == _MISSING
    with pytest.raises(LoopwrightError, match=r"no inv.*np.linalg.inv\(x.numpy\(\)\)"):
        _ = lw.linalg.inv
    with pytest.raises(AttributeError, match="no 'nonsense'; it has cross, diagonal"):
        _ = lw.linalg.nonsense


def test_every_attribute_of_the_standards_array() -> None:
    """An array has all methods and attributes of the standard's array object."""
    assert [name for name in ARRAY.split() if not hasattr(lw.Array, name)] == []
