"""Steps on tensor cores that break a rule, by target."""

from __future__ import annotations

from dataclasses import replace

import bodies
from bodies import CPU, kernel, load, op, place, reduce

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.targets.amx import AMX_BF16, AMX_INT8
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal

METAL, CUDA = metal(), cuda("sm_80")
AMX = replace(CPU, name="amx", tensor_cores=(*AMX_BF16, *AMX_INT8))


def cast(x: UOp, dtype: DType) -> UOp:
    return x if x.dtype is dtype else UOp(Op.CAST, dtype, (x,))


def matmul(m: int, n: int, k: int, dtype: DType = dt.float16, out: DType = dt.float32) -> Kernel:
    """C = A @ B, both widened before the product."""
    dims = Dim("i", m), Dim("j", n), Dim("k", k, True)
    i, j, p = (d.uop for d in dims)
    a, b = place(0, (m, k), dtype, i, p), place(1, (k, n), dtype, p, j)
    value = op(Op.MUL, cast(load(a), out), cast(load(b), out))
    return kernel(dims, (place(2, (m, n), out, i, j), reduce("add", value, dims[2].uop)))


def relu_matmul(n: int = 32) -> Kernel:
    """max(A, 0) @ B: an operand is computed."""
    dims = Dim("i", n), Dim("j", n), Dim("k", n, True)
    i, j, k = (d.uop for d in dims)
    a, b = load(bodies.at(0, (n, n), i, k)), load(bodies.at(1, (n, n), k, j))
    value = op(Op.MUL, op(Op.MAX, a, UOp(Op.CONST, dt.float32, (), 0.0)), b)
    return kernel(dims, (bodies.at(2, (n, n), i, j), reduce("add", value, k)))


def deep(n: int = 16) -> Kernel:
    """A reduce over two dims, as convolutions have."""
    dims = Dim("i", n), Dim("j", n), Dim("k", n, True), Dim("l", 3, True)
    i, j, k, window = (d.uop for d in dims)
    a = load(bodies.at(0, (n, n, 3), i, k, window))
    b = load(bodies.at(1, (n, 3, n), k, window, j))
    total = reduce("add", op(Op.MUL, a, b), k, window)
    return kernel(dims, (bodies.at(2, (n, n), i, j), total))


def two_products(second: str = "product", n: int = 16) -> Kernel:
    """A @ B + C @ D over one K; or sum(A + B), which is no product, over the same K."""
    dims = Dim("i", n), Dim("j", n), Dim("k", n, True)
    i, j, k = (d.uop for d in dims)
    a, b = load(bodies.at(0, (n, n), i, k)), load(bodies.at(1, (n, n), k, j))
    c, d = load(bodies.at(2, (n, n), i, k)), load(bodies.at(3, (n, n), k, j))
    other = op(Op.MUL, c, d) if second == "product" else op(Op.ADD, c, d)
    total = op(Op.ADD, reduce("add", op(Op.MUL, a, b), k), reduce("add", other, k))
    return kernel(dims, (bodies.at(4, (n, n), i, j), total))


def scaled(n: int = 16) -> Kernel:
    """(A - rowmax(A)) @ B: an operand reads another reduce along its rows."""
    dims = Dim("i", n), Dim("j", n), Dim("k", n, True), Dim("k.0", n, True)
    i, j, k, inner = (d.uop for d in dims)
    largest = reduce("max", load(bodies.at(0, (n, n), i, inner)), inner)
    a = op(Op.SUB, load(bodies.at(0, (n, n), i, k)), largest)
    total = reduce("add", op(Op.MUL, a, load(bodies.at(1, (n, n), k, j))), k)
    return kernel(dims, (bodies.at(2, (n, n), i, j), total))


N = Variable("n", 1, 100)
BF16 = dt.bfloat16
# name: (target, kernel, steps, reason)
CASES = {
    "a narrow workgroup": (
        replace(CUDA, name="narrow", local_max=(16, 8, 4)),
        matmul(32, 32, 32),
        "TC 0",
        "takes 32 threads side by side, narrow has 16",
    ),
    "cores come first": (METAL, bodies.matmul(), "UPCAST i 4 · TC 0", "before every other step"),
    "no product": (METAL, bodies.row_sums(64), "TC 0", "no reduce adds up products"),
    "no such triple": (METAL, bodies.matmul(), "TC 1", "has 1 axis triples"),
    "other dtypes": (CUDA, bodies.matmul(), "TC 0", "multiplies float32 by float32 into float32"),
    "a core by another name": (METAL, bodies.matmul(), "TC 0 core mma", "no tensor core"),
    "an unknown word": (METAL, bodies.matmul(), "TC 0 level 3", "says nothing"),
    "two reduce axes at level 0": (METAL, deep(), "TC 0 level 0", "one reduce axis"),
    "computed operand at level 0": (METAL, relu_matmul(), "TC 0 level 0", "plain loads"),
    "ragged below level 2": (METAL, matmul(30, 32, 32), "TC 0 level 1", "no multiple of 8x8x8"),
    "too much padding": (CUDA, matmul(2, 8, 16), "TC 0", "times the work"),
    "a sum beside the product": (METAL, two_products("sum"), "TC 0", "none of the core's"),
    "an operand of a reduce": (METAL, scaled(), "TC 0", "reads another reduce"),
    "upcast of a core's axis": (METAL, bodies.matmul(), "TC 0 · UPCAST i 4", "TENSOR already"),
    "order of a core's axis": (METAL, bodies.matmul(), "TC 0 · ORDER i j", "stays innermost"),
    "group beside a core": (METAL, bodies.matmul(), "TC 0 · GROUP k/8 4", "not grouped"),
    "parts beside a core": (METAL, bodies.matmul(), "TC 0 · SPLITK k/8 4", "not split in parts"),
    "tile of a core's results": (METAL, bodies.matmul(), "TC 0 · STAGE C @j/8", "are not staged"),
    "no locals around a core": (METAL, bodies.matmul(), "TC 0 · NOLOCALS", "neighbouring threads"),
    "too many threads around": (METAL, bodies.matmul(), "TC 0 · LOCAL i/8 64", "2048 threads"),
    "halo beside a core": (METAL, bodies.matmul(), "TC 0 · STAGE A @k/8 halo", "tensor core"),
    "copy in a core's axis": (METAL, bodies.matmul(), "TC 0 · STAGE B @i/1", "no loop to copy in"),
    "lanes of a core": (METAL, bodies.matmul(), "TC 0 · VECTOR j/8 4", "has no lanes"),
    "loop inside the sums": (AMX, matmul(64, 64, 64, BF16), "TC 0 · SWAP j/16 k/32", "stay in"),
    "too many tiles": (
        AMX,
        matmul(64, 64, 64, BF16),
        "TC 0 · UPCAST i/16 2 · UPCAST j/16 3",
        "10 tiles are needed at once",
    ),
    "pad without a core": (METAL, bodies.matmul(), "PADTO i 32", "for TENSOR axes"),
    "pad to nothing": (METAL, bodies.matmul(), "TC 0 · PADTO i 1", "2 or more"),
    "pad by parts of a tile": (METAL, matmul(20, 32, 32), "TC 0 · PADTO i 9", "no multiple"),
    "pad what is whole": (METAL, matmul(20, 32, 32), "TC 0 · PADTO i 8", "cover 24 already"),
    "pad too much": (METAL, matmul(20, 32, 32), "TC 0 · PADTO i 128", "times the work"),
}
