"""Data types: the scalars an array may hold, the index type, and their SIMD vectors.

A `DType` is interned: equal means identical, so comparisons and hashes cost nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes
import numpy as np

Kind = Literal["bool", "int", "uint", "float", "index", "void"]


class DType:
    """One scalar type, or `lanes` of it as a SIMD value.

    `bits` is the width of one lane; `bool` counts 8 because that is what memory holds.
    """

    __slots__ = ("__weakref__", "_vectors", "bits", "kind", "lanes", "name", "numpy", "scalar")

    name: str
    kind: Kind
    bits: int
    lanes: int
    scalar: DType
    numpy: np.dtype[Any]
    _vectors: dict[int, DType]

    def __init__(self, name: str, kind: Kind, bits: int, numpy: Any, lanes: int = 1) -> None:
        self.name, self.kind, self.bits, self.lanes = name, kind, bits, lanes
        self.numpy = np.dtype(numpy)
        self.scalar = self
        self._vectors = {1: self}

    def vec(self, lanes: int) -> DType:
        """The SIMD value of `lanes` lanes of this scalar; `vec(1)` is the scalar itself."""
        base = self.scalar
        found = base._vectors.get(lanes)
        if found is None:
            found = DType(f"{base.name}x{lanes}", base.kind, base.bits, base.numpy, lanes)
            found.scalar = base
            base._vectors[lanes] = found
        return found

    @property
    def itemsize(self) -> int:
        """Bytes of one lane in memory."""
        return self.bits // 8

    @property
    def dtype(self) -> np.dtype[Any]:
        """What NumPy reads: `np.zeros(3, lw.float32)` and `np.dtype(x) == lw.float32` work."""
        return self.numpy

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """Signed or unsigned integer; the index type counts, bool does not."""
        return self.kind in ("int", "uint", "index")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "index", "float")

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def min(self) -> int | float | bool:
        """The smallest value: the identity of max. Floats give -inf (fp8 e4m3fn: its lowest)."""
        return _limits(self.scalar)[0]

    @property
    def max(self) -> int | float | bool:
        """The largest value: the identity of min. Floats give inf (fp8 e4m3fn: its highest)."""
        return _limits(self.scalar)[1]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return (_named, (self.scalar.name, self.lanes))


bool_ = DType("bool", "bool", 8, np.bool_)
int8 = DType("int8", "int", 8, np.int8)
int16 = DType("int16", "int", 16, np.int16)
int32 = DType("int32", "int", 32, np.int32)
int64 = DType("int64", "int", 64, np.int64)
uint8 = DType("uint8", "uint", 8, np.uint8)
uint16 = DType("uint16", "uint", 16, np.uint16)
uint32 = DType("uint32", "uint", 32, np.uint32)
uint64 = DType("uint64", "uint", 64, np.uint64)
float16 = DType("float16", "float", 16, np.float16)
bfloat16 = DType("bfloat16", "float", 16, ml_dtypes.bfloat16)
float32 = DType("float32", "float", 32, np.float32)
float64 = DType("float64", "float", 64, np.float64)
float8_e4m3fn = DType("float8_e4m3fn", "float", 8, ml_dtypes.float8_e4m3fn)
float8_e5m2 = DType("float8_e5m2", "float", 8, ml_dtypes.float8_e5m2)

# Index arithmetic of levels 1 and 2. Lowering picks int32 or int64 for it by bounds.
index = DType("index", "index", 64, np.int64)
void = DType("void", "void", 0, "V0")

INTS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
FLOATS = (float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64)
ARRAY_DTYPES = (bool_, *INTS, *FLOATS)

BY_NAME: dict[str, DType] = {d.name: d for d in (*ARRAY_DTYPES, index, void)}
_BY_NUMPY: dict[np.dtype[Any], DType] = {d.numpy: d for d in ARRAY_DTYPES}


def _named(name: str, lanes: int) -> DType:
    return BY_NAME[name].vec(lanes)


def from_numpy(dtype: Any) -> DType | None:
    """The counterpart of a NumPy dtype in native byte order, or None where there is none."""
    return _BY_NUMPY.get(np.dtype(dtype))


def unsigned(bits: int) -> DType:
    """The unsigned integer of that many bits."""
    return BY_NAME[f"uint{bits}"]


def signed(bits: int) -> DType:
    """The signed integer of that many bits."""
    return BY_NAME[f"int{bits}"]


def _limits(dtype: DType) -> tuple[int | float | bool, int | float | bool]:
    if dtype.is_bool:
        return False, True
    if dtype.is_float:
        if dtype is float8_e4m3fn:  # no infinity
            return -448.0, 448.0
        return float("-inf"), float("inf")
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
