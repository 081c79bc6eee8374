"""Long decompositions become functions of the program instead of being written out at each use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort

# Expansions of at most this many ops are written in place.
SHORT = 6

_LETTERS = {"int": "i", "uint": "u", "float": "f", "bool": "b"}
_CODES = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3fn", "float8_e5m2": "e5m2"}


class _Rule(Protocol):
    @property
    def make(self) -> Callable[[Any, UOp], UOp]: ...


@dataclass(frozen=True, slots=True)
class Template:
    """A function of scalars: its body over PARAM leaves, in primitive ops and CALLs."""

    name: str
    params: tuple[UOp, ...]
    body: UOp


class Functions:
    """The functions that decompositions for one target have needed so far, by name."""

    def __init__(self) -> None:
        self.templates: dict[str, Template] = {}
        self._known: dict[tuple[Op, DType, tuple[DType, ...], object], Template | None] = {}

    def call(self, emit: object, rule: _Rule, node: UOp) -> UOp:
        """The node as a CALL, or written out where that is short."""
        dtypes = tuple([s.dtype for s in node.src])
        key = (node.op, node.dtype, dtypes, node.arg)
        if key not in self._known:
            self._known[key] = self._template(emit, rule, node, dtypes)
        template = self._known[key]
        if template is None:
            return rule.make(emit, node)
        return UOp(Op.CALL, node.dtype, node.src, template.name)

    def _template(
        self, emit: object, rule: _Rule, node: UOp, dtypes: tuple[DType, ...]
    ) -> Template | None:
        params = tuple([UOp(Op.PARAM, d, (), n) for n, d in enumerate(dtypes)])
        body = rule.make(emit, UOp(node.op, node.dtype, params, node.arg))
        n_ops = sum(n.op not in (Op.CONST, Op.PARAM) for n in toposort((body,)))
        if n_ops <= SHORT:
            return None
        template = Template(_name(node, dtypes), params, body)
        self.templates[template.name] = template
        return template


def can_call(node: UOp) -> bool:
    """Whether the node may be a CALL: constants are worth a form of their own, truth values have
    no one representation in vectors, and index values are not program values yet."""
    if node.dtype.is_bool or node.dtype.kind == "index":
        return False
    return all(
        s.op is not Op.CONST and not s.dtype.is_bool and s.dtype.kind != "index" for s in node.src
    )


def _code(dtype: DType) -> str:
    return _CODES.get(dtype.name) or f"{_LETTERS[dtype.kind]}{dtype.bits}"


def _name(node: UOp, dtypes: tuple[DType, ...]) -> str:
    """`exp_f32`, `f32_to_bf16`, `floordiv_i32`."""
    if node.op is Op.CAST:
        return f"{_code(dtypes[0])}_to_{_code(node.dtype)}"
    return f"{node.op.name.lower()}_{_code(node.dtype)}"
