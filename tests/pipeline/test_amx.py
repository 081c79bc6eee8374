"""Products on AMX's tile registers, the whole road: the default schedule's text, with the
instructions in plain C where the processor does not have them."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright_render_clang import compilers, cpu
from loopwright_render_clang.compile import compile_c, entries
from loopwright_render_clang.runtime import Loaded, from_host
from repo_files import ROOT

HEADER = ROOT / "packages/render-clang/tests/tiles_in_c.h"
BF16 = ml_dtypes.bfloat16
DEVICE = "cpu:tiles"
SIZES = [(64, 64, 128), (100, 300, 130), (45, 40, 120)]


@pytest.fixture(autouse=True)
def tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor like this one that has tiles."""
    if cpu.architecture() != "x86_64":
        pytest.skip("AMX is x86-64's: its text is not for this processor")
    features = cpu.features() | {"amx_tile", "amx_bf16", "amx_int8"}
    monkeypatch.setitem(cpu.VARIANTS, "tiles", ("x86_64", features))


def product(a: lw.Array, b: lw.Array, kind: str) -> lw.Array:
    """a @ b as users write it for each kind of core."""
    if kind == "bfloat16":
        return a @ b
    out = lw.int32 if kind == "int8" else lw.float32
    made = lw.matmul(lw.astype(a, out), lw.astype(b, out))
    return made if kind == "int8" else lw.maximum(made + 1, 0)


def run_in_c(y: lw.Array, arrays: list[np.ndarray]) -> lw.KernelView:
    """Run the one kernel of `y` on these buffers; its tiles are arrays."""
    (kernel,) = lw.kernels(y, device=DEVICE)
    program = kernel._built.program
    text = re.sub(r"#define TILE(.*\\\n)*.*\n", "", kernel.source)
    text = HEADER.read_text(encoding="utf-8") + text + entries(program)
    Loaded(compile_c(text, kernel.name, compilers.find()), program).bind(
        [from_host(x) for x in arrays]
    )()
    return kernel


@pytest.mark.parametrize("kind", ["bfloat16", "float32", "int8"])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
@pytest.mark.parametrize("sizes", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_products(kind: str, turned: str, sizes: tuple[int, int, int]) -> None:
    """Whole and ragged tiles, either operand transposed, with and without an epilogue: one kernel
    on tiles, whose small-integer results are exact."""
    m, n, k = sizes
    random = np.random.default_rng(3)
    dtype = np.int8 if kind == "int8" else BF16
    a = random.integers(-3, 4, (k, m) if "a" in turned else (m, k)).astype(dtype)
    b = random.integers(-3, 4, (n, k) if "b" in turned else (k, n)).astype(dtype)
    x, y = lw.asarray(a), lw.asarray(b)
    left, right = (x.T, a.T) if "a" in turned else (x, a)
    other, factor = (y.T, b.T) if "b" in turned else (y, b)
    want = left_product = right.astype(np.int32) @ factor.astype(np.int32)
    if kind == "float32":
        want = np.maximum(left_product + 1, 0)
    out = np.zeros((m, n), {"bfloat16": BF16, "float32": np.float32, "int8": np.int32}[kind])
    kernel = run_in_c(product(left, other, kind), [a, b, out])
    instruction = "tdpbssd" if kind == "int8" else "tdpbf16ps"
    assert instruction in kernel.source
    np.testing.assert_array_equal(want.astype(out.dtype), out)


def test_tensor_cores_off_leaves_them_out() -> None:
    """With the option the same product runs on vectors."""
    a = lw.asarray(np.zeros((64, 64), BF16))
    with lw.options(tensor_cores="off"):
        (kernel,) = lw.kernels(a @ a, device=DEVICE)
    assert "TILE_" not in kernel.source
    with lw.options(tensor_cores="shape"):
        (kernel,) = lw.kernels(a @ a, device=DEVICE)
    assert "tdp" not in kernel.source


def test_small_products_use_vectors() -> None:
    """A product that would fill less than half of its tiles is left to vectors."""
    a, b = lw.asarray(np.zeros((3, 64), BF16)), lw.asarray(np.zeros((64, 16), BF16))
    assert all("TILE_" not in k.source for k in lw.kernels(a @ b, device=DEVICE))
