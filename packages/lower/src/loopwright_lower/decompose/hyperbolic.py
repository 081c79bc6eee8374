"""TANH: an odd polynomial near zero, 1 - 2/(exp(2x) + 1) elsewhere."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose import coefficients as co
from loopwright_lower.decompose.build import abs_, add, copy_sign, div, lt, mul, sub, where
from loopwright_lower.decompose.double import polynomial
from loopwright_lower.decompose.exponential import clamp, exp_parts, power_of_two
from loopwright_lower.decompose.table import Emit, Rule, is_float


def tanh_float(e: Emit, node: UOp) -> UOp:
    """tanh(x) --> x + x**3*P(x**2) up to a bound, beyond it through exp, 1 where that rounds."""
    x = node.src[0]
    is_32 = x.dtype is dt.float32
    size = abs_(x)
    z = mul(size, size)
    near = e.fma(mul(size, z), polynomial(e, z, co.TANH_32 if is_32 else co.TANH_64), size)
    # tanh(12) and tanh(24) round to 1.
    p, n = exp_parts(e, mul(clamp(size, None, 12.0 if is_32 else 24.0), 2.0))
    power = mul(p, power_of_two(n, x.dtype))
    far = sub(const(1.0, x.dtype), div(2.0, add(power, 1.0)))
    bound = co.TANH_BOUND_32 if is_32 else co.TANH_BOUND_64
    return copy_sign(where(lt(size, bound), near, far), x)


hyperbolic_rules: tuple[Rule, ...] = (Rule("tanh_float", (Op.TANH,), is_float, tanh_float),)
