"""Reduces of products: the factors that a tensor core would multiply."""

from __future__ import annotations

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.statements import reduce_values
from loopwright_core.plugin.tensor_core import TensorCore


def product_of(reduce: UOp) -> UOp | None:
    """The product that a reduce adds up; None for any other."""
    if reduce.op is not Op.REDUCE or reduce.arg[0] != "add":
        return None
    value = reduce_values(reduce)[0]
    return value if value.op is Op.MUL else None


def factor_as(factor: UOp, dtype: DType) -> UOp | None:
    """What a core that takes `dtype` reads for a factor of a product: itself, or what was widened
    to it before the product. None where it is neither."""
    if factor.dtype is dtype:
        return factor
    if factor.op is Op.CAST and factor.src[0].dtype is dtype:
        return factor.src[0]
    return None


def factors_as(product: UOp, core: TensorCore, is_swapped: bool) -> tuple[UOp, UOp] | None:
    """A and B of a product for a core; `is_swapped`: the second factor is A."""
    x, y = product.src[::-1] if is_swapped else product.src
    a, b = factor_as(x, core.dtype_in[0]), factor_as(y, core.dtype_in[1])
    return None if a is None or b is None else (a, b)
