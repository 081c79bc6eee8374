"""The parts of numbers and their neighbours: conj, real, imag, nextafter."""

from __future__ import annotations

from typing import Any

from loopwright import graph
from loopwright.api.dtypes import operand
from loopwright.api.elementwise import magnitude, sign_mask
from loopwright.array import Array
from loopwright.promotion import check, common_float, unify
from loopwright_core.errors import DTypeError, fail
from loopwright_core.ir.ops import Op


def _real_number(name: str, x: Any) -> Array:
    found = operand(name, x)
    if found.dtype.is_bool:
        fail(DTypeError, f"{name} takes numbers, not bool", fix="convert with lw.astype")
    return Array(found._uop, found.device)  # writing into the result leaves x alone


def conj(x: Any, /) -> Array:
    """The complex conjugate: the value of x, as there are no complex dtypes here."""
    return _real_number("conj", x)


def real(x: Any, /) -> Array:
    """The real part: the value of x, as there are no complex dtypes here."""
    return _real_number("real", x)


def imag(x: Any, /) -> Array:
    """The imaginary part: zeros, as there are no complex dtypes here."""
    x = _real_number("imag", x)
    return Array(graph.full(x.shape, graph.constant(0, x.dtype)), x.device)


def nextafter(x1: Any, x2: Any, /) -> Array:
    """The next number of the dtype after x1 toward x2; x2 where they are equal."""
    operands = check("nextafter", (x1, x2))
    (a, b), dtype, device = unify("nextafter", operands, common_float("nextafter", operands))
    bits, _, _ = sign_mask(a)
    one = graph.constant(1, bits.dtype)
    zero = graph.constant(0, dtype)
    # floats of one sign are ordered as their bits are: one more is one further from 0
    is_positive = graph.alu(Op.CMPLT, zero, a)
    grows = graph.alu(Op.CMPEQ, is_positive, graph.alu(Op.CMPLT, a, b))
    further, nearer = graph.alu(Op.ADD, bits, one), graph.alu(Op.SUB, bits, one)
    stepped = graph.bitcast(graph.where(grows, further, nearer), dtype)
    other, _, sign = sign_mask(b)
    smallest = graph.bitcast(graph.alu(Op.OR, graph.alu(Op.AND, other, sign), one), dtype)
    value = graph.where(graph.alu(Op.CMPEQ, magnitude(a), zero), smallest, stepped)
    value = graph.where(graph.alu(Op.CMPEQ, a, b), b, value)
    value = graph.where(graph.alu(Op.CMPEQ, b, b), value, b)
    return Array(graph.where(graph.alu(Op.CMPEQ, a, a), value, a), device)
