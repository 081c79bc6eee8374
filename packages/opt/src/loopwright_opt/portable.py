"""Kernels as bytes for another process, and as text for a key: UOps themselves do not travel."""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import Any

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.kernel.kernel import Kernel

_Node = tuple[str, DType, tuple[int, ...], Any]


def dump(kernel: Kernel) -> bytes:
    """A kernel for a process of the same installation to `load`."""
    nodes, numbers = _flat(kernel)
    places = (
        numbers[kernel.body],
        tuple([tuple([numbers[u] for u in group]) for group in kernel.shared]),
        tuple([numbers[u] for u in kernel.unused]),
    )
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump((kernel.name, nodes, kernel.dims, kernel.schedule, places))
    return file.getvalue()


def load(data: bytes) -> Kernel:
    """What `dump` was given. Only for bytes from a process that this one started, or its parent."""
    name, nodes, dims, schedule, (body, shared, unused) = _Unpickler(io.BytesIO(data)).load()
    made: list[UOp] = []
    for op, dtype, src, arg in nodes:
        made.append(UOp(Op[op], dtype, tuple([made[s] for s in src]), arg))
    return Kernel(
        name,
        made[body],
        dims,
        schedule,
        tuple([tuple([made[u] for u in group]) for group in shared]),
        tuple([made[u] for u in unused]),
    )


def structure(kernel: Kernel) -> str:
    """A digest of body and dims: equal for equal kernels, whatever their names and schedules."""
    nodes, _ = _flat(kernel)
    digest = hashlib.sha256()
    for op, dtype, src, arg in nodes:
        digest.update(f"{op} {dtype.name} {dtype.lanes} {src} {arg!r}\n".encode())
    digest.update(repr(kernel.dims).encode())
    return digest.hexdigest()


def _flat(kernel: Kernel) -> tuple[list[_Node], dict[UOp, int]]:
    roots = (kernel.body, *(u for group in kernel.shared for u in group), *kernel.unused)
    numbers: dict[UOp, int] = {}
    nodes: list[_Node] = []
    for u in toposort(roots):
        numbers[u] = len(nodes)
        nodes.append((u.op.name, u.dtype, tuple([numbers[s] for s in u.src]), u.arg))
    return nodes, numbers


class _Pickler(pickle.Pickler):
    """DTypes are compared by identity: they travel by name."""

    def persistent_id(self, obj: Any) -> Any:
        return (obj.scalar.name, obj.lanes) if isinstance(obj, DType) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> DType:
        name, lanes = pid
        return dt.BY_NAME[name].vec(lanes)
