"""Common kernels, and how the predecessors schedule each on a CPU, on Metal and on CUDA sm_80."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import loopwright as lw
from loopwright_core import pipeline
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel

_MATMUL = "UPCAST(1,4) UPCAST(0,4) UNROLL(0,4)"
_LOCALS = "LOCAL(0,8) LOCAL(1,16)"
_TENSOR = "TC(0) UPCAST(0,4) UPCAST(1,4) LOCAL(1,4)"


@dataclass(frozen=True)
class Row:
    """`build` makes the expression of zeros; the three columns are the predecessors' choices.

    `ours`: by column, what we choose where that differs; on a CPU with 16 registers of 32 bytes.
    """

    name: str
    build: Callable[[], lw.Array]
    cpu: str
    metal: str
    cuda: str
    ours: dict[str, str]

    def ast(self) -> UOp:
        """The kernel AST of its one kernel."""
        (view,) = lw.kernels(self.build(), device="cpu")
        return view.built.recipe.ast

    def kernel(self) -> Kernel:
        """Its one kernel, not scheduled."""
        return pipeline.index(self.ast())

    def column(self, which: str) -> str:
        return {"cpu": self.cpu, "metal": self.metal, "cuda": self.cuda}[which]


def _zeros(*shape: int, dtype: str = "float32") -> lw.Array:
    return lw.asarray(np.zeros(shape, dtype), device="cpu")


def _square(dtype: str = "float32") -> lw.Array:
    return _zeros(512, 512, dtype=dtype) @ _zeros(512, 512, dtype=dtype)


def _padded_stack() -> lw.Array:
    """Three arrays side by side, each padded by zeros where the others are."""
    parts = [lw.expand_dims(_zeros(1024), axis=1) for _ in range(3)]
    placed = [lw.pad(x, ((0, 0), (n, 2 - n))) for n, x in enumerate(parts)]
    return placed[0] + placed[1] + placed[2]


def _row(
    name: str,
    build: Callable[[], lw.Array],
    cpu: str,
    metal: str,
    cuda: str = "",
    cpu_ours: str = "",
    gpu_ours: str = "",
    cuda_ours: str = "",
    metal_ours: str = "",
) -> Row:
    ours = {"cpu": cpu_ours, "metal": metal_ours or gpu_ours, "cuda": cuda_ours or gpu_ours}
    given = {which: text for which, text in ours.items() if text}
    return Row(name, build, cpu, metal, cuda or metal, given)


# Tiles of both operands in shared memory.
_TILES = (
    "{0} j 4 · UPCAST i 4 · LOCAL i/4 16 · LOCAL j/4 16 · TILE k 16 · STAGE A @k/16 · STAGE B @k/16"
)
_PANELS = (
    "TILE k {0} · TILE i 66 · UPCAST i 6 · TILE j 16 · VECTOR j 8 · UPCAST j/8 0"
    " · ORDER k/{0} i/66 j/16 i/6 k/1"
    " · STAGE B @k/{0} layout j/16,k/1,j/8,j/1 order k/1,j/16,j/8,j/1{1}"
    " · STAGE A @i/66 layout i/6,k/1,i/1 order i/6,k/1,i/1{1} · PREFETCH C"
)


ROWS: tuple[Row, ...] = (
    _row(
        "add 1024x1024",
        lambda: _zeros(1024, 1024) + _zeros(1024, 1024),
        "UPCAST(0,4)",
        "UPCAST(0,4) LOCAL(0,32)",
        cpu_ours="VECTOR i 8 · UPCAST i/8 4",
        gpu_ours="VECTOR i 4 · LOCAL i/4 128",
    ),
    _row(
        "add 511x509",
        lambda: _zeros(511, 509) + _zeros(511, 509),
        "",
        "",
        cpu_ours="VECTOR i 8 · UPCAST i/8 4",
        gpu_ours="LOCAL i/1 128",
    ),
    _row(
        "sum of 4096",
        lambda: lw.sum(_zeros(4096)),
        "UNROLL(0,4)",
        "GROUPTOP(0,16)",
        cpu_ours="VECTOR k 8 · UPCAST k/8 4",
        gpu_ours="VECTOR k 4 · GROUP k/4 256",
    ),
    _row(
        "sum over axis 0 of 1024x1024",
        lambda: lw.sum(_zeros(1024, 1024), axis=0),
        "UPCAST(0,4) UNROLL(0,4)",
        "GROUPTOP(0,16)",
        cpu_ours="TILE k 8 · UNROLL k 0 · VECTOR i 8 · UPCAST i/8 4 · ORDER k/8 i/32",
        gpu_ours="VECTOR i 4 · LOCAL i/4 16 · GROUP k 16",
    ),
    _row(
        "sum over axis 1 of 1024x1024",
        lambda: lw.sum(_zeros(1024, 1024), axis=1),
        "UPCAST(0,4) UNROLL(0,4)",
        "GROUPTOP(0,16)",
        cpu_ours="VECTOR k 8 · UPCAST i 4 · UPCAST k/8 2",
        gpu_ours="VECTOR k 4 · GROUP k/4 64",
    ),
    _row(
        "max over axis 1 of 128x100",
        lambda: lw.max(_zeros(128, 100), axis=1),
        "UNROLL(0,4)",
        "UNROLL(0,4) LOCAL(0,32)",
        cpu_ours="VECTOR k 8 · UPCAST i 4 · UPCAST k/8 2",
        gpu_ours="VECTOR k 4 · GROUP k/4 32",
    ),
    _row(
        "matmul 512",
        _square,
        _MATMUL,
        _TENSOR,
        f"{_MATMUL} {_LOCALS}",
        cpu_ours=_PANELS.format(512, ""),
        cuda_ours=_TILES.format("VECTOR"),
    ),
    _row(
        "float16 matmul 512",
        lambda: _square("float16"),
        _MATMUL,
        _TENSOR,
        _TENSOR,
        cpu_ours=_PANELS.format(512, " cast"),
    ),
    _row(
        "matmul 511x509x513",
        lambda: _zeros(511, 509) @ _zeros(509, 513),
        "UPCAST(1,3)",
        "UPCAST(1,3) LOCAL(1,3)",
        cpu_ours=_PANELS.format(509, ""),
        cuda_ours=_TILES.format("UPCAST"),
        metal_ours="TC 0 · UPCAST i/8 4 · UPCAST j/8 5",
    ),
    _row(
        "matvec 4096",
        lambda: _zeros(4096, 4096) @ _zeros(4096),
        "UPCAST(0,4) UNROLL(0,4)",
        "GROUP(0,8) LOCAL(0,4) UPCAST(0,4)",
        cpu_ours="VECTOR k 8 · UPCAST i 4 · UPCAST k/8 2",
        gpu_ours="VECTOR k 4 · UPCAST i 4 · LOCAL i/4 2 · GROUP k/4 32",
    ),
    _row(
        "transpose copy 1024",
        lambda: lw.permute_dims(_zeros(1024, 1024), (1, 0)) + 0,
        "UPCAST(0,4)",
        f"UPCAST(0,4) {_LOCALS}",
        cpu_ours=(
            "TILE i 64 · TILE j 64 · VECTOR j 8 · ORDER j/64 i/64 i/1 j/8"
            " · STAGE A @i/64 order j/8,j/1,i/1"
        ),
        gpu_ours=(
            "TILE i 32 · TILE j 32 · VECTOR j/1 4 · LOCAL i/1 32 · LOCAL j/4 8 · STAGE A @j/32"
        ),
    ),
    _row(
        "row-broadcast add 1024",
        lambda: _zeros(1024, 1024) + _zeros(1024),
        "UPCAST(0,4)",
        f"UPCAST(0,4) {_LOCALS}",
        cpu_ours="VECTOR j 8 · UPCAST j/8 4",
        gpu_ours="VECTOR j 4 · UPCAST i/1 4 · LOCAL j/4 128",
    ),
    _row(
        "conv 3x3 8x64x32x32",
        lambda: lw.conv(_zeros(8, 64, 32, 32), _zeros(64, 64, 3, 3), padding=1),
        "UPCAST(3,4) UPCAST(1,4) UNROLL(2,0) UNROLL(1,0)",
        "UPCAST(3,4) UPCAST(1,4) UNROLL(2,0) UNROLL(1,0) LOCAL(2,16) LOCAL(3,8)",
        cpu_ours=(
            "TILE m 8 · UPCAST j 6 · TILE n 16 · VECTOR n 8 · UPCAST n/8 0"
            " · ORDER i m/8 j/6 m/1 n/16 l k2 k · STAGE A @m/8 halo · STAGE B @j/6"
        ),
        gpu_ours=(
            "UPCAST n/1 4 · UPCAST j/1 4 · UNROLL k2/1 0 · UNROLL l/1 0 · LOCAL m/1 16"
            " · LOCAL n/4 8 · TILE k/1 8 · STAGE B @k/8"
        ),
        metal_ours="TC 2 · UPCAST j/8 4 · UPCAST n/8 4",
    ),
    _row("stack of 3 x 1024", _padded_stack, "UPCAST(1,0)", "UPCAST(1,0) LOCAL(0,32)"),
)
