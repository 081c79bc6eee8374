"""Apple GPUs, family 7 and newer (M1 on).

Source: Metal Feature Set Tables (threadgroup memory, threads per threadgroup, buffer arguments).
"""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.plugin.target import Target
from loopwright_core.targets.common import OPS
from loopwright_core.targets.simdgroup import SIMDGROUP

_ARITH = frozenset({dt.bool_, *dt.INTS, dt.float32})
# No double at all; 8-bit floats are stored as bytes.
_STORAGE = frozenset(dt.ARRAY_DTYPES) - _ARITH - {dt.float64}


def metal() -> Target:
    """The target of an Apple GPU: no float64, 31 buffers, 32 KiB of threadgroup memory."""
    return Target(
        name="metal",
        arch="apple7",
        arith=_ARITH,
        storage=_STORAGE,
        ops=OPS | {Op.WMMA},
        vector_bytes=(4, 8, 16),
        computes_in_vectors=False,
        registers=128,
        caches=(8 << 10, 4 << 20, 0),
        max_buffers=31,
        has_local=True,
        has_shared=True,
        shared_bytes=32 << 10,
        max_threads=1024,
        local_max=(1024, 1024, 1024),
        subgroup=32,
        tensor_cores=SIMDGROUP,
    )
