"""The numeric matrix: elementwise operations, casts and concats in every dtype and size.

Compiled for the CPU and compared with NumPy. LOOPWRIGHT_LONG=1 runs the full product.
"""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.matrix import GROUPS, SIZES, cells, check, rows


def test_every_pair_is_covered() -> None:
    """The short form leaves out no pair of group and dtype, group and size, dtype and size."""
    found = [r for r in rows() if r[2] in SIZES]
    assert len({(g, d) for g, d, _, _ in found}) == len(GROUPS) * len(dt.ARRAY_DTYPES)
    assert len({(g, n) for g, _, n, _ in found}) == len(GROUPS) * len(SIZES)
    assert len({(d, n) for _, d, n, _ in found}) == len(dt.ARRAY_DTYPES) * len(SIZES)


@cells("elementwise", "cast", "concat")
def test_matrix(group: str, dtype: DType, n: int, m: int) -> None:
    """Integers and bool are NumPy's bit for bit; floats within the bounds of the numerics."""
    check(group, dtype, n, m, seed=n + 100)
