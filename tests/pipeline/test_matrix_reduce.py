"""The numeric matrix: reductions, also of reductions, and products in every dtype and size.

Compiled for the CPU and compared with NumPy. LOOPWRIGHT_LONG=1 runs the full product.
"""

from __future__ import annotations

from loopwright_core.ir.dtype import DType
from support.matrix import cells, check


@cells("reduce", "reduce of reduce", "matmul")
def test_matrix(group: str, dtype: DType, n: int, m: int) -> None:
    """Integers and bool are NumPy's bit for bit; floats within the bounds of the numerics."""
    check(group, dtype, n, m, seed=n + 100)
