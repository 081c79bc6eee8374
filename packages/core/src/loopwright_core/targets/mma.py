"""NVIDIA's `mma.sync` instructions: 32 threads, each holding a few elements of every operand.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" and its neighbours. There a lane is a group
(lane // 4) and a place in it (lane % 4); elements of one 32-bit register lie side by side in K.
"""

from __future__ import annotations

from itertools import product

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.plugin.tensor_core import Digit, Digits, Operand, TensorCore

_THREADS = 32
_GROUP = (Digit(4, 8, 1),)


def _operands(m: int, n: int, k: int, packed: int) -> tuple[Operand, Operand, Operand]:
    """A, B and C; `packed` inputs share a 32-bit register."""
    place = (Digit(1, 4, packed),)
    lower = m // 8  # halves of A and C: rows 0..7 and 8..15
    inside = _digits(1, packed, 1)
    rows = _digits(packed, lower, 8)
    a = Operand(
        m, k, _GROUP, place, rows, inside + _digits(packed * lower, k // packed // 4, packed * 4)
    )
    b = Operand(k, n, place, _GROUP, inside + _digits(packed, k // packed // 4, packed * 4), ())
    c = Operand(m, n, _GROUP, (Digit(1, 4, 2),), _digits(2, lower, 8), (Digit(1, 2, 1),))
    return a, b, c


def _digits(divisor: int, modulus: int, stride: int) -> Digits:
    return (Digit(divisor, modulus, stride),) if modulus > 1 else ()


# Dtypes as PTX spells them.
_PTX = {
    dt.float16: "f16",
    dt.bfloat16: "bf16",
    dt.float32: "f32",
    dt.int8: "s8",
    dt.uint8: "u8",
    dt.int32: "s32",
    dt.float8_e4m3fn: "e4m3",
    dt.float8_e5m2: "e5m2",
}


def _mma(
    dims: tuple[int, int, int],
    a: DType,
    b: DType,
    out: DType,
    option: str = "",
) -> TensorCore:
    m, n, k = dims
    is_tf32 = a is dt.float32
    x, y, z = ("tf32", "tf32", "f32") if is_tf32 else (_PTX[a], _PTX[b], _PTX[out])
    return TensorCore(
        name=f"m{m}n{n}k{k}_{x}_{y}_{z}",
        dims=dims,
        threads=_THREADS,
        dtype_in=(a, b),
        dtype_out=out,
        operands=_operands(m, n, k, 4 // a.itemsize),
        instruction=f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{z}.{x}.{y}.{z}",
        option=option,
        mantissa=10 if is_tf32 else 0,
    )


def _pairs(dims: tuple[int, int, int], inputs: tuple[DType, ...], out: DType) -> list[TensorCore]:
    return [_mma(dims, a, b, out) for a, b in product(inputs, inputs)]


_BYTES = (dt.int8, dt.uint8)
_FP8 = (dt.float8_e4m3fn, dt.float8_e5m2)
_SM_75 = [
    _mma((16, 8, 8), dt.float16, dt.float16, dt.float32),
    *_pairs((8, 8, 16), _BYTES, dt.int32),
]
# A row that needs an option stands before the one it replaces; larger tiles before smaller ones.
_SM_80 = [
    _mma((16, 8, 16), dt.float16, dt.float16, dt.float16, "half_accumulate"),
    _mma((16, 8, 16), dt.float16, dt.float16, dt.float32),
    _mma((16, 8, 16), dt.bfloat16, dt.bfloat16, dt.float32),
    _mma((16, 8, 8), dt.float32, dt.float32, dt.float32, "tf32"),
    *_pairs((16, 8, 32), _BYTES, dt.int32),
    *_SM_75,
]
_SM_89 = [*_SM_80, *_pairs((16, 8, 32), _FP8, dt.float32)]


def mma(arch: str) -> tuple[TensorCore, ...]:
    """The instructions of an architecture, in the order in which they are tried."""
    number = int(arch.removeprefix("sm_"))
    return tuple(_SM_89 if number >= 89 else _SM_80 if number >= 80 else _SM_75)
