"""Apple's simdgroup matrices: 8 x 8 x 8, two neighbouring elements in each of 32 threads.

Source: the order in which `thread_elements()` of a simdgroup matrix shows them, which Apple does
not document and which every family so far has.
"""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.plugin.tensor_core import Digit, Operand, TensorCore

_MATRIX = Operand(
    8,
    8,
    lane_rows=(Digit(2, 4, 1), Digit(16, 2, 4)),
    lane_columns=(Digit(1, 2, 2), Digit(8, 2, 4)),
    register_columns=(Digit(1, 2, 1),),
)
_NAMES = {dt.float32: "f32", dt.float16: "f16", dt.bfloat16: "bf16"}


def _simdgroup(dtype: DType, out: DType, option: str = "") -> TensorCore:
    return TensorCore(
        name=f"simdgroup_8x8x8_{_NAMES[dtype]}_{_NAMES[out]}",
        dims=(8, 8, 8),
        threads=32,
        dtype_in=(dtype, dtype),
        dtype_out=out,
        operands=(_MATRIX, _MATRIX, _MATRIX),
        instruction="simdgroup_multiply_accumulate",
        option=option,
    )


SIMDGROUP = (
    _simdgroup(dt.float16, dt.float16, "half_accumulate"),
    _simdgroup(dt.float32, dt.float32),
    _simdgroup(dt.float16, dt.float32),
    _simdgroup(dt.bfloat16, dt.float32),
)
