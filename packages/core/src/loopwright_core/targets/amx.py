"""Intel AMX: one thread, eight tile registers of 16 rows of 64 bytes.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS and TDPBSSD. B lies
in memory with the two (four) elements that meet in one 32-bit product side by side (VNNI).
"""

from __future__ import annotations

from itertools import product

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.plugin.tensor_core import Digit, Operand, TensorCore

_ROWS = 16
_ROW_BYTES = 64
_TILES = 8


def _amx(a: DType, b: DType, out: DType, instruction: str) -> TensorCore:
    packed = 4 // a.itemsize
    m = n = _ROWS
    k = _ROW_BYTES // a.itemsize
    return TensorCore(
        name=f"amx_{m}x{n}x{k}_{a}_{b}",
        dims=(m, n, k),
        threads=1,
        dtype_in=(a, b),
        dtype_out=out,
        operands=(
            Operand(m, k, register_rows=(Digit(k, m, 1),), register_columns=(Digit(1, k, 1),)),
            Operand(
                k,
                n,
                register_rows=(Digit(1, packed, 1), Digit(packed * n, k // packed, packed)),
                register_columns=(Digit(packed, n, 1),),
            ),
            Operand(m, n, register_rows=(Digit(n, m, 1),), register_columns=(Digit(1, n, 1),)),
        ),
        instruction=instruction,
        row_bytes=_ROW_BYTES,
        tiles=_TILES,
    )


AMX_BF16 = (_amx(dt.bfloat16, dt.bfloat16, dt.float32, "tdpbf16ps"),)
AMX_INT8 = tuple(
    _amx(a, b, dt.int32, f"tdpb{'s' if a is dt.int8 else 'u'}{'s' if b is dt.int8 else 'u'}d")
    for a, b in product((dt.int8, dt.uint8), repeat=2)
)
