"""Each scheduling step changes the C text as it says."""

from __future__ import annotations

import re

import asts
import pytest

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import UOp
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from loopwright_render_clang.device import CpuDevice

MATMUL = asts.matmul(8, 64, 12)
SOFTMAX = asts.softmax(4, 32)
STENCIL = asts.conv(1, 9, 11, 1)


def text(ast: UOp, opts: str = "", variant: str = "x86-64-v3") -> str:
    """The C text of a kernel under these opts, for a named processor."""
    device = CpuDevice(variant)
    kernel = apply_all(index(ast), parse(opts), device.target)
    return device.render(lower(kernel, device.target))


def body(source: str) -> str:
    """The kernel's own function, without what it calls."""
    return source[source.rindex("\nvoid ") :]


def accumulators(source: str) -> list[str]:
    return re.findall(r"(\w+) acc\w* = ", body(source))


def loops(source: str) -> list[str]:
    """Loop variables with their literal extents, in the order of the text."""
    return re.findall(r"for \(int (\w+ = 0; \w+ < \w+);", body(source))


def test_plain() -> None:
    """Without a step: three loops, one accumulator, scalars."""
    plain = text(MATMUL)
    assert accumulators(plain) == ["float"]
    assert loops(plain) == ["i = 0; i < 8", "j = 0; j < 64", "k = 0; k < 12"]
    assert "f32x" not in plain


@pytest.mark.parametrize(("n", "extra"), [(2, ""), (4, ""), (3, "tail")])
def test_upcast(n: int, extra: str) -> None:
    """UPCAST: that many accumulators, and one body more where it does not divide."""
    found = accumulators(text(MATMUL, f"UPCAST i {n}"))
    assert found == ["float"] * (n + 8 % n if extra else n)


@pytest.mark.parametrize(
    ("variant", "lanes"),
    [("x86-64", 4), ("x86-64-v3", 4), ("x86-64-v3", 8), ("x86-64-v4", 16), ("armv8", 4)],
)
def test_vector(variant: str, lanes: int) -> None:
    """VECTOR: accumulators of that many lanes, loads and stores of whole vectors."""
    found = text(MATMUL, f"VECTOR j {lanes}", variant)
    assert accumulators(found) == [f"f32x{lanes}"]
    assert f"*(const f32x{lanes}_u *)(B + " in found
    assert f"*(f32x{lanes}_u *)(C + " in found


@pytest.mark.parametrize(("variant", "lanes"), [("x86-64", 8), ("x86-64-v3", 16), ("armv8", 8)])
def test_vectors_a_processor_lacks(variant: str, lanes: int) -> None:
    """A lane count that the target has not is refused before any text is made."""
    with pytest.raises(OptError, match=f"no vector of {lanes} lanes"):
        text(MATMUL, f"VECTOR j {lanes}", variant)


def test_vector_tail() -> None:
    """A vector axis that does not divide: whole vectors, then one masked body, no mask before."""
    found = body(text(asts.matmul(8, 61, 12), "VECTOR j 8"))
    assert found.index("*(f32x8_u *)(C + ") < found.index("store_if_f32x8(C + ")
    assert found.count("store_if_f32x8(C + ") == 1


def test_vector_along_a_reduce() -> None:
    """Lanes of partial sums, added up behind the loop."""
    found = text(asts.matmul(8, 8, 64), "VECTOR k 8")
    assert accumulators(found) == ["f32x8"]
    assert "acc[0] + acc[1]" in found


def test_unroll() -> None:
    """UNROLL: that many products a step into one accumulator; the whole axis leaves no loop."""
    found = text(MATMUL, "UNROLL k 4")
    assert accumulators(found) == ["float"]
    assert body(found).count("fmaf(") == 4
    assert "k_4 = 0; k_4 < 3" in loops(found)
    assert loops(text(MATMUL, "UNROLL k 0")) == ["i = 0; i < 8", "j = 0; j < 64"]


def test_upcast_of_a_reduce() -> None:
    """Partial accumulators, joined behind the loop."""
    found = text(MATMUL, "UPCAST k 4")
    assert accumulators(found) == ["float"] * 4
    assert "acc + acc_1 + (acc_2 + acc_3)" in found


def test_tile_and_order() -> None:
    """TILE: a loop over tiles and one in a tile; ORDER: the loops in the order that was said."""
    found = loops(text(MATMUL, "TILE j 16 · ORDER j/16 i j/1"))
    assert found[:3] == ["j_16 = 0; j_16 < 4", "i = 0; i < 8", "j = 0; j < 16"]
    assert loops(text(MATMUL, "SWAP i j"))[:2] == ["j = 0; j < 64", "i = 0; i < 8"]


def test_thread() -> None:
    """THREAD: the function takes its thread's number and does one slice."""
    found = text(MATMUL, "THREAD i 2")
    assert "float *restrict C, int thread)" in found
    assert loops(found)[0] == "i = 0; i < 4"
    assert "thread" not in text(MATMUL)


def test_panel() -> None:
    """STAGE: a local array of what is inside the axis, filled before the loops that read it."""
    found = body(text(MATMUL, "TILE j 16 · ORDER j/16 i j/1 · STAGE B @j/16"))
    assert "float B_tile[192];" in found
    assert found.index("B_tile[o") < found.index("for (int i = 0")
    assert "B[" not in found[found.index("for (int i = 0") :]


def test_halo() -> None:
    """STAGE halo: a tile with its border, zeros outside; the reader has no condition left."""
    found = body(text(STENCIL, "TILE i 4 · ORDER i/4 j i/1 · STAGE A @i/4 halo"))
    assert f"float halo[{6 * 13}];" in found
    assert "? A[" in found
    reader = found[found.index("for (int j = 0") :]
    assert "A[" not in reader and "?" not in reader


def test_keep() -> None:
    """KEEP: the exponential is evaluated once and read again for the quotient."""
    assert body(text(SOFTMAX, "VECTOR j* 8")).count("exp_f32x8(") == 2
    found = body(text(SOFTMAX, "VECTOR j* 8 · KEEP v0 @i"))
    assert found.count("exp_f32x8(") == 1
    assert "float v0[32];" in found


def test_prefetch() -> None:
    """PREFETCH: the output tile is touched before the loop that computes it."""
    found = body(text(MATMUL, "VECTOR j 8 · PREFETCH C"))
    assert found.count("__builtin_prefetch(") == 1
    assert found.index("__builtin_prefetch(") < found.index("acc = ")


def test_nt_store() -> None:
    """NTSTORE: stores around the cache, for an output larger than L2."""
    x, y = (asts.buffer(slot, 1024, 1024) for slot in range(2))
    ast = asts.sink((asts.buffer(2, 1024, 1024), asts.op(asts.Op.ADD, x, y)))
    found = body(text(ast, "VECTOR i 8 · NTSTORE C"))
    assert "stream_f32x8(C + " in found


def test_starred_steps() -> None:
    """A step on `j*` goes to every loop over that axis: maximum, sum and quotient."""
    found = text(SOFTMAX, "VECTOR j* 8 · UPCAST j*/8 2")
    assert accumulators(found) == ["f32x8"] * 4
    assert [name.split(" ")[0] for name in loops(found)] == ["i", "j0_16", "j1_16", "j_16"]
