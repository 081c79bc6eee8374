"""What the text looks like: literals, names, what is written in place, the same bytes always."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from level3 import I32, I64, Builder, check, installed, run_c

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.program.cnames import C_KEYWORDS, LIBRARY
from loopwright_render_clang.compile import compile_c, entries
from loopwright_render_clang.cpu import VARIANTS, variant
from loopwright_render_clang.render import render

V3 = variant("x86-64-v3")
LITERALS: dict[DType, list[bool | int | float]] = {
    dt.bool_: [False, True],
    dt.int8: [-128, 127],
    dt.int32: [-(2**31), 2**31 - 1, -1],
    dt.int64: [-(2**63), 2**63 - 1, -(2**31), 2**40],
    dt.uint8: [255],
    dt.uint32: [2**32 - 1],
    dt.uint64: [2**64 - 1, 2**63],
    dt.float16: [1.5, float("inf"), float("nan"), 6e-8],
    dt.bfloat16: [-0.1, 3e38],
    dt.float8_e4m3fn: [448.0, 1000.0],
    dt.float8_e5m2: [float("-inf"), 0.3],
    dt.float32: [0.1, -0.0, 0.0, 1e-45, float(np.finfo("f4").max), 1e39, 16777216.0, 1e16, 1e-5],
    dt.float64: [0.1, -0.0, 5e-324, float(np.finfo("f8").max), float("-inf"), float("nan"), 1e22],
}


@pytest.mark.parametrize("compiler", sorted(installed()))
def test_literals_are_exact(compiler: str) -> None:
    """Every literal reads back with the bits of the value it stands for."""
    b = Builder("literals")
    arrays, want = [], []
    for dtype, values in LITERALS.items():
        out = b.buffer(f"o_{dtype}", dtype, (len(values),), True)
        with np.errstate(all="ignore"):
            want.append(np.array(values).astype(dtype.numpy))
        arrays.append(np.zeros(len(values), dtype.numpy))
        for k, v in enumerate(values):
            b.store(out, k, const(v, dtype))
    got = run_c(b.program(), arrays, compiler=installed()[compiler])
    for g, w in zip(got, want, strict=True):
        bits = f"u{g.dtype.itemsize}"
        # All quiet NaNs will do.
        same = (g.view(bits) == w.view(bits)) | ((g != g) & (w != w))
        assert same.all(), (g.dtype, g, w)


def test_literals_are_short() -> None:
    """Literals are the shortest that are exact."""
    b = Builder()
    f, d = b.buffer("f", dt.float32, (4,), True), b.buffer("d", dt.int64, (2,), True)
    for k, v in enumerate([0.1, 1e-45, 1e30, 3.0]):
        b.store(f, k, const(v, dt.float32))
    b.store(d, 0, const(5, I64))
    b.store(d, 1, const(2**40, I64))
    values = re.findall(r"= (\S+);", render(b.program(), V3))
    assert values == ["0.1f", "1.0e-45f", "1.0e+30f", "3.0f", "5", "1099511627776LL"]


def test_int64_literals_are_64_bits_wide() -> None:
    """Operations between literals alone are computed in their own width."""
    b = Builder()
    out = b.buffer("out", dt.int64, (3,), True)
    unsigned = b.buffer("u", dt.uint32, (1,), True)
    n = b.variable("n", 0, 9)
    big = b.op(Op.MUL, const(2**30, I64), const(2**30, I64))
    b.store(out, 0, big)
    b.store(out, 1, b.op(Op.CSHL, const(1, I64), const(40, I64)))
    c = b.op(Op.CMPLT, n, const(5, I32))
    x = b.op(Op.WHERE, c, const(2**30, I64), const(2**29, I64))
    b.store(out, 2, b.op(Op.MUL, x, b.op(Op.WHERE, c, const(2**20, I64), const(3, I64))))
    u = b.op(Op.SUB, const(1, dt.uint32), const(2, dt.uint32))
    b.store(unsigned, 0, b.op(Op.CSHR, u, const(1, dt.uint32)))
    check(b.program(), [np.zeros(3, np.int64), np.zeros(1, np.uint32)], [1])


def chain(n: int) -> Builder:
    b = Builder("chain")
    x, y = b.buffer("x", dt.float32, (8,)), b.buffer("y", dt.float32, (8,), True)
    value = b.load(x, 0)
    for k in range(n):
        value = UOp(Op.ADD, dt.float32, (value, const(float(k % 3), dt.float32)))
        b.uops.append(value)
    b.store(y, 0, value)
    return b


def test_long_expressions_are_cut() -> None:
    """A chain of 100,000 operations renders at once, in lines a compiler and a reader can take."""
    text = render(chain(100_000).program(), V3)
    assert max(map(len, text.splitlines())) <= 100
    check(chain(300).program(), [np.ones(8, np.float32), np.zeros(8, np.float32)])


def test_values_used_twice_get_a_name() -> None:
    """What is used once is written in place, what is used twice is computed once."""
    b = Builder()
    x, y = b.buffer("x", dt.float32, (64,)), b.buffer("y", dt.float32, (64,), True)
    with b.loop(64, "i") as i:
        v = b.load(x, i)
        one = b.op(Op.SUB, v, const(1.0, dt.float32))
        b.store(y, i, b.op(Op.DIV, b.op(Op.MUL, v, one), b.op(Op.ADD, v, one)))
    assert render(b.program(), V3).splitlines()[2:-1] == [
        "    for (int i = 0; i < 64; i++) {",
        "        const float x0 = x[i];",
        "        const float t0 = x0 - 1.0f;",
        "        y[i] = x0 * t0 / (x0 + t0);",
        "    }",
    ]


def test_values_stay_outside_of_inner_loops() -> None:
    """A value that stands before a loop is computed before it."""
    b = Builder()
    x, y = b.buffer("x", dt.float32, (4,)), b.buffer("y", dt.float32, (64,), True)
    with b.loop(4, "i") as i:
        v = b.op(Op.SQRT, b.load(x, i))
        with b.loop(16, "j") as j:
            b.store(y, b.op(Op.ADD, b.op(Op.MUL, i, const(16, I32)), j), v)
    assert "        const float t0 = __builtin_sqrtf(x[i]);" in render(b.program(), V3).splitlines()


def test_parentheses_are_minimal_and_right() -> None:
    """Grouping survives; parentheses stand only where C or a reader needs them."""
    b = Builder()
    a, c, d = (b.variable(n, -9, 9) for n in ("a", "c", "d"))
    out = b.buffer("out", I32, (9,), True)
    cases = [
        (b.op(Op.SUB, a, b.op(Op.SUB, c, d)), "a - (c - d)"),
        (b.op(Op.ADD, b.op(Op.MUL, a, c), d), "a * c + d"),
        (b.op(Op.MUL, b.op(Op.ADD, a, d), c), "(a + d) * c"),
        (b.op(Op.AND, a, b.op(Op.CSHL, c, const(2, I32))), "a & (c << 2)"),
        (b.op(Op.NEG, b.op(Op.NEG, d)), "-(-d)"),
        (b.op(Op.ADD, c, const(-3, I32)), "c - 3"),
        (b.op(Op.SUB, c, const(-3, I32)), "c - -3"),
        (b.op(Op.XOR, b.op(Op.XOR, a, c), d), "(a ^ c) ^ d"),
        (b.op(Op.WHERE, b.op(Op.CMPLT, a, c), a, d), "a < c ? a : d"),
    ]
    for k, (value, _) in enumerate(cases):
        b.store(out, k, value)
    program = b.program()
    assert re.findall(r"= (.*);", render(program, V3)) == [text for _, text in cases]
    check(program, [np.zeros(9, np.int32)], [-7, 3, 5])


@pytest.mark.parametrize("compiler", sorted(installed()))
def test_any_name_compiles(compiler: str) -> None:
    """Names that are keywords, library functions, helpers or no identifiers are made legal."""
    names = ["int", "restrict", "memcpy", "f32x8", "splat_f32x8", "linux", "2nd row", "kernel"]
    names += ["__AVX2__", "thread", "scratch", "i", "é", "", "x", "x_1"]
    b = Builder("exp")
    outs = [b.buffer(n, dt.float32, (8,), True) for n in names]
    with b.loop(8, "x") as i, b.loop(1, "x"):
        for out in outs:
            b.store(out, i, const(1.0, dt.float32))
    for out in outs:
        b.store(out, 0, b.splat(const(2.0, dt.float32), 8))
    got = run_c(b.program(), [np.zeros(8, "f4")] * len(names), compiler=installed()[compiler])
    assert all((g == 2.0).all() for g in got)
    for name in sorted(C_KEYWORDS | LIBRARY):
        program = Builder(name).program()
        assert f"void {name}_(void) {{" in render(program, V3)


def test_sibling_loops_share_a_name() -> None:
    """Loops beside each other have the same variable, nested ones do not."""
    b = Builder()
    y = b.buffer("y", I32, (9,), True)
    with b.loop(3, "i") as i:
        b.store(y, i, i)
        with b.loop(2, "i") as j:
            b.store(y, b.op(Op.ADD, i, j), j)
    with b.loop(9, "i") as i:
        b.store(y, i, i)
    assert re.findall(r"for \(int (\w+)", render(b.program(), V3)) == ["i", "i_1", "i"]


def test_same_bytes_under_every_hash_seed() -> None:
    """The text does not depend on the process that renders it."""
    here = Path(__file__).parent
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_values, test_memory, test_text\n"
        "from loopwright_core.ir import dtype as dt\n"
        "programs = [test_values.every_op(dt.int16, 8)[0], test_values.casts(8)[0],\n"
        "            test_memory.masked(dt.float64, 4, True)[0], test_memory.row_sum()]\n"
        "for p in programs:\n"
        "    sys.stdout.write(test_text.render(p, test_text.V3))\n"
    )
    texts = set()
    for seed in ("0", "1", "4242"):
        env = dict(os.environ, PYTHONHASHSEED=seed)
        command = [sys.executable, "-c", script, str(here)]
        texts.add(subprocess.run(command, env=env, capture_output=True, check=True).stdout)
    assert len(texts) == 1
    (text,) = texts
    assert text.endswith(b"}\n") and b"\r" not in text and b"\t" not in text


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_render(name: str) -> None:
    """Text for named processors does not depend on this machine, and compiles where it can."""
    import test_memory
    import test_values

    target = variant(name)
    size = max(target.vector_bytes)
    for program in (
        test_values.every_op(dt.float32, size // 4)[0],
        test_memory.masked(dt.float32, size // 4, True)[0],
        test_memory.masked(dt.int64, size // 8, False)[0],
        test_memory.masked(dt.uint8, size, False)[0],
    ):
        if Op.FMA not in target.ops and any(u.op is Op.FMA for u in program.phases[0].uops):
            continue
        text = render(program, target)
        assert f"vector_size({size})" in text
        if target.arch != "x86_64":
            assert "ia32" not in text
            continue
        for compiler in installed().values():
            march = name.replace("-", "_") if compiler.kind == "zig" else name
            flag = f"-mcpu={march}" if compiler.kind == "zig" else f"-march={march}"
            compile_c(text + entries(program), name, compiler, (flag,))


def test_refusals_are_clear() -> None:
    """What C has not, or a list that is wrong, is refused with a LoweringError that says what."""
    b = Builder()
    x = b.buffer("x", dt.float32, (8,), True)
    b.store(x, 0, b.op(Op.EXP, b.load(x, 0)))
    with pytest.raises(LoweringError, match="C has no EXP of float32"):
        render(b.program(), V3)
    b = Builder()
    x = b.buffer("x", dt.float32, (8,), True)
    b.store(x, 0, b.load(x, 0, 3))
    with pytest.raises(LoweringError, match="no vector of 3 lanes"):
        render(b.program(), V3)
    b = Builder()
    x = b.buffer("x", dt.float32, (8,), True)
    b.range(8, "i")
    with pytest.raises(LoweringError, match="not closed"):
        render(b.program(), V3)
    b = Builder()
    b.add(Op.BARRIER, dt.void)
    with pytest.raises(LoweringError, match="no barriers"):
        render(b.program(), V3)
