"""Tensor cores: instructions that multiply small matrices, and which thread holds which element.

The layout of an operand is a rule from (lane, register) to (row, column). Both coordinates are
sums of digits of the lane's and of the register's number, which covers every instruction known
and reads like the vendor's tables: `Digit(4, 8, 1)` is "lane // 4 % 8".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from loopwright_core.ir.dtype import DType


class Digit(NamedTuple):
    """`number // divisor % modulus * stride`: one digit of a number, and what it is worth."""

    divisor: int
    modulus: int
    stride: int

    def of(self, number: int) -> int:
        return number // self.divisor % self.modulus * self.stride


Digits = tuple[Digit, ...]


def value(digits: Digits, number: int) -> int:
    """The sum of a number's digits.

    >>> value((Digit(1, 2, 1), Digit(4, 2, 8)), 5)
    9
    """
    return sum(d.of(number) for d in digits)


@dataclass(frozen=True, slots=True)
class Operand:
    """One matrix of an instruction. Element (row, column) of lane `l`, register `r`:

    row = digits of l by `lane_rows` + digits of r by `register_rows`, the column likewise.
    A: rows M, columns K. B: rows K, columns N. C and the result: rows M, columns N.
    """

    rows: int
    columns: int
    lane_rows: Digits = ()
    lane_columns: Digits = ()
    register_rows: Digits = ()
    register_columns: Digits = ()

    def registers(self, threads: int) -> int:
        """Elements that each of the threads holds."""
        return self.rows * self.columns // threads

    def offset(self, register: int) -> tuple[int, int]:
        """(row, column) of a register counted from its lane's first element."""
        return value(self.register_rows, register), value(self.register_columns, register)

    def at(self, lane: int, register: int) -> tuple[int, int]:
        """The element that a lane's register holds."""
        row, column = self.offset(register)
        return value(self.lane_rows, lane) + row, value(self.lane_columns, lane) + column

    def register_of(self, row: int, column: int) -> int:
        """The register that holds an element, where one lane holds them all."""
        digits = [(d, row) for d in self.register_rows]
        digits += [(d, column) for d in self.register_columns]
        return sum(place // d.stride % d.modulus * d.divisor for d, place in digits)


@dataclass(frozen=True, slots=True)
class TensorCore:
    """`D = A x B + C` on tiles of M x N x K elements by `threads` threads together.

    dtype_in: what A and B hold. dtype_out: C and the result; products are exact, sums are rounded
        to it. mantissa: bits that are kept of each input's mantissa, 0 for all.
    operands: A, B, C.
    instruction: the device's name of it.
    option: the user option without which it is not used, for it is less exact than the kernel.
    row_bytes: 0 where an operand lies in ordinary registers, a slice in each thread; else one
        thread holds whole tiles in registers of their own, loaded from memory rows of so many
        bytes, element `register_of(row, column)` after the other; `tiles`: how many such.
    """

    name: str
    dims: tuple[int, int, int]
    threads: int
    dtype_in: tuple[DType, DType]
    dtype_out: DType
    operands: tuple[Operand, Operand, Operand]
    instruction: str
    option: str = ""
    mantissa: int = 0
    row_bytes: int = 0
    tiles: int = 0

    @property
    def is_tile(self) -> bool:
        """Whether operands are whole tiles that memory is copied to and from by rows."""
        return self.row_bytes > 0

    @property
    def elements(self) -> tuple[int, int, int]:
        """Elements of A, B and C in each thread."""
        a, b, c = (o.registers(self.threads) for o in self.operands)
        return a, b, c

    def dtype(self, operand: int) -> DType:
        """What one thread holds of A (0), B (1) or C (2), as a vector."""
        scalar = self.dtype_out if operand == 2 else self.dtype_in[operand]
        return scalar.vec(self.elements[operand])

    def tile_shape(self, operand: int) -> tuple[int, int]:
        """(rows in memory, elements of each) of a tile."""
        dtype = self.dtype(operand)
        columns = self.row_bytes // dtype.itemsize
        return dtype.lanes // columns, columns

    def is_row_major(self, operand: int) -> bool:
        """Whether a tile's rows in memory are the operand's rows."""
        shape = self.operands[operand]
        return self.tile_shape(operand) == (shape.rows, shape.columns)
