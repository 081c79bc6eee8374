"""What the optimizer and the lowering know of a device."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.plugin.tensor_core import TensorCore


@dataclass(frozen=True)
class Target:
    """All that opt and lower may ask about a device; frozen, hashable by `key`.

    An op or dtype that is not listed is decomposed to ones that are, or refused.

    arith: dtypes with arithmetic of their own; a dtype in `storage` alone is loaded, stored and
        BITCAST to the unsigned integer of its width, and computed in float32.
    ops: level-3 elementwise ops the renderer accepts.
    vector_bytes: widths of a SIMD value in bytes, ascending; () = scalars only.
    computes_in_vectors: whether arithmetic takes vectors too; else they are for memory alone, a
        load or store of up to the widest, which is aligned to its own size.
    registers: SIMD registers; caches: bytes of L1d, L2, L3 per core (0: absent).
    threads: worker threads one launch may use.
    tensor_cores: in the order in which they are tried.
    """

    name: str
    arch: str
    arith: frozenset[DType]
    storage: frozenset[DType]
    ops: frozenset[Op]
    has_fma: bool = True
    vector_bytes: tuple[int, ...] = ()
    registers: int = 16
    threads: int = 1
    caches: tuple[int, int, int] = (32 << 10, 1 << 20, 0)
    max_upcast: int = 16
    max_buffers: int | None = None
    has_local: bool = False
    has_shared: bool = False
    shared_bytes: int = 0
    max_threads: int = 1
    local_max: tuple[int, ...] | None = None
    global_max: tuple[int, ...] | None = None
    subgroup: int = 1
    has_images: bool = False
    tensor_cores: tuple[TensorCore, ...] = ()
    features: frozenset[str] = field(default_factory=frozenset)
    computes_in_vectors: bool = True

    def lanes(self, dtype: DType) -> tuple[int, ...]:
        """Lane counts a VECTOR axis over that dtype may have, ascending."""
        return tuple(n for w in self.vector_bytes if (n := w // dtype.itemsize) > 1)

    @cached_property
    def key(self) -> str:
        """Every field as text: what a kernel's text may depend on."""
        return ";".join(f"{f.name}={_text(getattr(self, f.name))}" for f in fields(self))


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    return repr(value)
