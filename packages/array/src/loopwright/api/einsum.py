"""Sums of products by Einstein's notation: letters name axes, repeated ones are summed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from loopwright import graph
from loopwright.api.linalg import diagonal_node
from loopwright.array import Array
from loopwright.extents import most
from loopwright.promotion import accumulator, check, common, joint_device
from loopwright_core.errors import ArgumentError, ArgumentTypeError, ShapeError, fail
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

Labels = tuple[str, ...]
Part = tuple[UOp, Labels]

_FIRST_HIDDEN = 192  # the axes of an ellipsis are named by characters that no user may write
_ORDERS = (True, False, "greedy", "optimal")


def einsum(subscripts: str, /, *operands: Any, optimize: bool | str = True) -> Array:
    """The sum of products that the subscripts describe, "ij,jk->ik" for a matrix product.

    A letter twice in one operand takes the diagonal; "..." stands for axes that broadcast; without
    "->" the result has the letters that occur once, in alphabetical order. `optimize` says how an
    order of pairwise products is found, "greedy" or "optimal"; False: all operands at once.
    Integers keep the promoted dtype and wrap; small floats are summed in float32.

    Raises ArgumentError for subscripts that are malformed, ShapeError where sizes do not fit.
    """
    if not isinstance(subscripts, str):
        fail(
            ArgumentTypeError,
            f"einsum's subscripts are a text, got {type(subscripts).__name__}",
            fix='write einsum("ij,jk->ik", a, b)',
        )
    if not any(optimize is o or (isinstance(o, str) and optimize == o) for o in _ORDERS):
        fail(ArgumentError, f"optimize={optimize!r}", where="einsum", fix=f"use one of {_ORDERS}")
    values = check("einsum", operands)
    shapes = [graph.shape(x._uop) if isinstance(x, Array) else () for x in values]
    inputs, output = parse(subscripts, [len(s) for s in shapes])
    extents = _extents(inputs, shapes)
    dtype = common("einsum", values)
    parts: list[Part] = []
    for value, labels in zip(values, inputs, strict=True):
        if isinstance(value, Array):
            node = graph.cast(value._uop, dtype)
        else:
            node = graph.constant(value, dtype, "einsum")
        parts.append(_prepared(node, labels, extents))
    if len(parts) > 1:
        for i, part in enumerate(parts):
            others = _used([p for j, p in enumerate(parts) if j != i], output)
            parts[i] = _contract([part], [x for x in part[1] if x in others], extents)
    for step in _path(parts, output, extents, optimize):
        taken = [parts[i] for i in step]
        parts = [p for i, p in enumerate(parts) if i not in step]
        kept = _used(parts, output)
        final = [x for x in _used(taken, ()) if x in kept] if parts else list(output)
        parts.append(_contract(taken, final, extents))
    return Array(graph.cast(parts[0][0], dtype), joint_device("einsum", values))


def _used(parts: Sequence[Part], output: Sequence[str]) -> list[str]:
    """All labels in order of first use."""
    return list(dict.fromkeys([x for _, labels in parts for x in labels] + list(output)))


def _malformed(what: str, subscripts: str, fix: str) -> NoReturn:
    fail(ArgumentError, f"einsum {subscripts!r}: {what}", fix=fix)


def _term(term: str, subscripts: str) -> tuple[Labels, bool, Labels]:
    """The labels before an ellipsis, whether there is one, the labels after it."""
    before, dots, after = term.partition("...")
    for character in before + after:
        if character == ".":
            _malformed("a '.' that is not part of one '...'", subscripts, "write three dots, once")
        if not (character.isascii() and character.isalpha()):
            _malformed(f"{character!r} is no letter", subscripts, "axes are named a-z and A-Z")
    return tuple(before), bool(dots), tuple(after)


def parse(subscripts: str, n_axes: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The label of each axis of the operands and of the result; an ellipsis is spelt out.

    Raises ArgumentError.
    """
    left, arrow, right = "".join(subscripts.split()).partition("->")
    terms = left.split(",")
    if len(terms) != len(n_axes):
        _malformed(
            f"{len(terms)} terms for {len(n_axes)} operands",
            subscripts,
            "give one term per operand, with commas between",
        )
    inputs: list[Labels] = []
    n_hidden = 0
    for i, (term, n) in enumerate(zip(terms, n_axes, strict=True)):
        before, has_dots, after = _term(term, subscripts)
        hidden = n - len(before) - len(after)
        if hidden < 0 or (hidden and not has_dots):
            fix = "name every axis, or write '...' for the rest"
            _malformed(f"term {term!r} for operand {i} of {n} axes", subscripts, fix)
        n_hidden = max(n_hidden, hidden)
        inputs.append((*before, *_hidden(hidden), *after))
    letters = [x for labels in inputs for x in labels if ord(x) < _FIRST_HIDDEN]
    if not arrow:
        once = sorted(x for x in set(letters) if letters.count(x) == 1)
        return inputs, (*_hidden(n_hidden), *once)
    before, has_dots, after = _term(right, subscripts)
    if n_hidden and not has_dots:
        fix = "write '...' in it, or sum over those axes after"
        _malformed("the result has no place for the axes of '...'", subscripts, fix)
    output = (*before, *_hidden(n_hidden), *after)
    for label in output:
        if output.count(label) > 1:
            _malformed(f"the result names {label!r} twice", subscripts, "name each axis once")
        if label not in letters and ord(label) < _FIRST_HIDDEN:
            fix = "take it from an operand"
            _malformed(f"the result's {label!r} occurs in no operand", subscripts, fix)
    return inputs, output


def _hidden(n: int) -> Labels:
    """Labels of an ellipsis of n axes; they are aligned at the last one."""
    return tuple([chr(_FIRST_HIDDEN + k) for k in range(n - 1, -1, -1)])


def _extents(inputs: Sequence[Labels], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The size of each label's axis; sizes of 1 broadcast between operands."""
    extents: dict[str, int] = {}
    for i, (labels, shape) in enumerate(zip(inputs, shapes, strict=True)):
        own: dict[str, int] = {}
        for label, n in zip(labels, shape, strict=True):
            if own.setdefault(label, n) != n:
                fail(
                    ShapeError,
                    f"einsum: operand {i} of shape {shape} has no diagonal over {label!r}: "
                    f"{own[label]} and {n}",
                    fix="axes of one letter in one operand must be equal",
                )
        for label, n in own.items():
            known = extents.get(label, 1)
            if known != 1 and n not in (1, known):
                name = f"{label!r}" if ord(label) < _FIRST_HIDDEN else "an axis of '...'"
                fail(
                    ShapeError,
                    f"einsum: {name} is {known} and, in operand {i} of shape {shape}, {n}",
                    fix="axes of one letter must be equal, or 1",
                )
            extents[label] = n if known == 1 else known
    return extents


def _prepared(node: UOp, labels: Labels, extents: dict[str, int]) -> Part:
    """An operand with each label once, without the axes of size 1 that others broadcast."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rest = [a for a in range(len(labels)) if a not in (first, second)]
            node = diagonal_node(graph.permute(node, (*rest, first, second)), 0)
            labels = (*[labels[a] for a in rest], label)
    sizes = graph.shape(node)
    kept = [a for a, x in enumerate(labels) if sizes[a] == extents[x]]
    return graph.reshape(node, tuple([sizes[a] for a in kept])), tuple([labels[a] for a in kept])


def _contract(parts: Sequence[Part], final: Sequence[str], extents: dict[str, int]) -> Part:
    """The product of some operands, summed over all labels that the result has not.

    It stays in the accumulator's dtype: only einsum's result is rounded. One operand whose axes
    are only moved keeps its dtype.
    """
    order = [*final, *[x for x in _used(parts, ()) if x not in final]]
    sizes = tuple([extents[x] for x in order])
    product: UOp | None = None
    for node, labels in parts:
        places = [order.index(x) for x in labels]
        node = graph.permute(node, sorted(range(len(labels)), key=places.__getitem__))
        node = graph.reshape(node, tuple([extents[x] if x in labels else 1 for x in order]))
        node = graph.expand(node, sizes)
        if len(parts) > 1 or len(order) > len(final):
            node = graph.cast(node, accumulator(node.dtype))
        op = Op.AND if node.dtype.is_bool else Op.MUL
        product = node if product is None else graph.alu(op, product, node)
    assert product is not None
    combine = "or" if product.dtype.is_bool else "add"
    return graph.reduce(combine, range(len(final), len(order)), product), tuple(final)


def _path(
    parts: Sequence[Part], output: Labels, extents: dict[str, int], optimize: bool | str
) -> list[tuple[int, ...]]:
    """Which operands are multiplied at each step; a step's result goes to the end of the list."""
    everything = [tuple(range(len(parts)))]
    if len(parts) <= 2 or optimize is False or 0 in extents.values():
        return everything
    import opt_einsum

    text = ",".join("".join(labels) for _, labels in parts) + "->" + "".join(output)
    shapes = [most(graph.shape(node)) for node, _ in parts]
    how = "auto" if optimize is True else optimize
    path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=how)
    return [tuple(step) for step in path]
