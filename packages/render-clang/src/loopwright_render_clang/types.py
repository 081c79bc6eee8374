"""How C spells dtypes: scalars, and the vector types that a text defines as it needs them."""

from __future__ import annotations

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.dtype import DType

C_TYPES = {
    "bool": "_Bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "index": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
    # Bits only: arithmetic on these is decomposed before it gets here.
    "float16": "unsigned short",
    "bfloat16": "unsigned short",
    "float8_e4m3fn": "unsigned char",
    "float8_e5m2": "unsigned char",
}


def code(dtype: DType) -> str:
    """The scalar part of a vector type's name: f32, i8, u16."""
    if dtype.is_float and dtype.bits >= 32:
        return f"f{dtype.bits}"
    return f"{'u' if dtype.is_float or dtype.kind in ('uint', 'bool') else 'i'}{dtype.bits}"


_ELEMENTS = {
    "f32": "float",
    "f64": "double",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "u8": "unsigned char",
    "u16": "unsigned short",
    "u32": "unsigned",
    "u64": "unsigned long long",
}


class VectorTypes:
    """The vector types one text uses, defined in the order of first use."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}

    def name(self, code: str, lanes: int, *, unaligned: bool = False) -> str:
        """The type of so many lanes; unaligned: for memory of any alignment and dtype."""
        bits = int(code[1:])
        if lanes < 2 or lanes & (lanes - 1):
            fail(LoweringError, f"C has no vector of {lanes} lanes", fix="use a power of two")
        name = f"{code}x{lanes}"
        attributes = f"vector_size({lanes * bits // 8})"
        if unaligned:
            name += "_u"
            attributes += ", aligned(1), may_alias"
        if name not in self._lines:
            element = _ELEMENTS[code]
            self._lines[name] = f"typedef {element} {name} __attribute__(({attributes}));"
        return name

    def lines(self) -> list[str]:
        """The definitions."""
        return list(self._lines.values())


def element(code: str) -> str:
    """The C type of one lane."""
    return _ELEMENTS[code]
