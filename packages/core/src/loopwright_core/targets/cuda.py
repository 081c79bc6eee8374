"""NVIDIA GPUs by compute capability.

Source: CUDA C++ Programming Guide, tables of technical specifications per compute capability.
"""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.plugin.target import Target
from loopwright_core.targets.common import OPS
from loopwright_core.targets.mma import mma

_ARITH = frozenset({dt.bool_, *dt.INTS, dt.float32, dt.float64})
# Opt-in shared memory of one workgroup, in KiB, by compute capability.
_SHARED_KIB = {"sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_89": 99, "sm_90": 227}
ARCHITECTURES = tuple(_SHARED_KIB)


def cuda(arch: str = "sm_80") -> Target:
    """The target of one architecture, `sm_75` to `sm_90`. Raises KeyError for another name."""
    return Target(
        name=f"cuda:{arch}",
        arch=arch,
        arith=_ARITH,
        storage=frozenset(dt.ARRAY_DTYPES) - _ARITH,
        ops=OPS | {Op.WMMA},
        vector_bytes=(4, 8, 16),
        computes_in_vectors=False,
        registers=255,
        caches=(128 << 10, 4 << 20, 0),
        has_local=True,
        has_shared=True,
        shared_bytes=_SHARED_KIB[arch] << 10,
        max_threads=1024,
        local_max=(1024, 1024, 64),
        global_max=(2**31 - 1, 65535, 65535),
        subgroup=32,
        tensor_cores=mma(arch),
    )
