"""The numeric matrix: conv, pool, gather, scatter, cumulative, einsum, sort, random.

Compiled for the CPU and compared with NumPy. LOOPWRIGHT_LONG=1 runs the full product.
"""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.matrix import SIZES
from support.matrix_kernels import GROUPS, cells, check, rows


def test_every_pair_is_covered() -> None:
    """The short form leaves out no pair of group and dtype, group and size."""
    found = rows()
    assert len({(g, d) for g, d, _, _ in found}) == len(GROUPS) * len(dt.ARRAY_DTYPES)
    assert len({(g, n) for g, _, n, _ in found}) == len(GROUPS) * len(SIZES)


@cells()
def test_matrix(group: str, dtype: DType, n: int, m: int) -> None:
    """Integers and bool are NumPy's bit for bit; floats are the exact values rounded once."""
    check(group, dtype, n, m)
