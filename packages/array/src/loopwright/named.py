"""Names users give to kernels."""

from __future__ import annotations

import functools
import hashlib
import re
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from loopwright.fuse import FusedKernel
from loopwright.memory import buffer_node
from loopwright_core.errors import ArgumentTypeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, toposort

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Mark:
    """The result of a named function and the nodes it was computed from."""

    name: str
    inputs: tuple[UOp, ...]


_marks: weakref.WeakKeyDictionary[UOp, Mark] = weakref.WeakKeyDictionary()


def named_kernel(name: str, fn: Callable[..., R]) -> Callable[..., R]:
    """`fn`, whose kernels carry that name; what is no C identifier is made one.

    Its results are stored as kernels of their own: nothing computed from them joins.
    """
    if not isinstance(name, str):
        fail(ArgumentTypeError, f"a kernel's name is a text, not {name!r}")
    legal = legal_name(name)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> R:
        from loopwright.array import Array

        given = [a._uop for a in (*args, *kwargs.values()) if isinstance(a, Array)]
        result = fn(*args, **kwargs)
        results = result if isinstance(result, (tuple, list)) else (result,)
        for array in results:
            if isinstance(array, Array) and array._uop.op is not Op.BUFFER:
                if array._uop not in given:
                    _marks[array._uop] = Mark(legal, tuple(given))
        return result

    return call


def stores_of(stores: Sequence[UOp]) -> list[UOp]:
    """Further STOREs: a named value inside the graph gets memory, so that its kernel ends there."""
    if not _marks:
        return []
    asked = {store.src[1] for store in stores}
    return [
        UOp(Op.STORE, dt.void, (buffer_node(node.dtype, shape_of(node)), node))  # type: ignore[arg-type]
        for node in toposort(asked_value for asked_value in (s.src[1] for s in stores))
        if node in _marks and node not in asked and 0 not in shape_of(node)
    ]


def names_of(kernels: Sequence[FusedKernel]) -> tuple[str | None, ...]:
    """Each kernel's given name: the first of a function gets it plain, others `_1`, `_2`, ..."""
    if not _marks:
        return (None,) * len(kernels)
    owner: dict[UOp, str] = {}
    for node in toposort([v for k in kernels for v in k.values]):
        mark = _marks.get(node)
        if mark is not None:
            inputs = set(mark.inputs)
            for inner in node.toposort(lambda n, stop=inputs: n not in stop):  # type: ignore[misc]
                if inner not in inputs:
                    owner.setdefault(inner, mark.name)
    asts: dict[str, dict[UOp, str]] = {}
    names: list[str | None] = []
    for kernel in kernels:
        given = next((owner[v] for v in kernel.values if v in owner), None)
        if given is None:
            names.append(None)
            continue
        known = asts.setdefault(given, {})
        suffix = f"_{len(known)}" if known else ""
        names.append(known.setdefault(kernel.ast, given + suffix))
    return tuple(names)


_LONGEST = 63  # what C99 promises to tell apart

# Keywords and names with a meaning of C, C++, CUDA, Metal and OpenCL that start with a letter.
_RESERVED = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
    char32_t class compl complex concept const consteval constexpr constinit const_cast continue
    co_await co_return co_yield decltype default delete do double dynamic_cast else enum explicit
    export extern false final float for friend goto half if imaginary import inline int long module
    mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected
    public register reinterpret_cast requires restrict return short signed sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef
    typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
    fragment global kernel local constant device private thread threadgroup vertex metal simd
    read_only write_only read_write pipe image1d_t image2d_t image3d_t sampler_t event_t queue_t
    uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t int8_t int16_t int32_t int64_t
    uint8_t uint16_t uint32_t uint64_t bfloat threadIdx blockIdx blockDim gridDim warpSize
    main abort abs acos acosh asin asinh atan atan2 atanh atexit bsearch calloc cbrt ceil copysign
    cos cosh div erf erfc exit exp exp2 expm1 fabs fdim floor fma fmax fmin fmod fopen free frexp
    getenv hypot ilogb labs ldexp lgamma llabs llrint llround log log10 log1p log2 logb lrint
    lround malloc memchr memcmp memcpy memmove memset modf nan nearbyint nextafter nexttoward
    max min pow printf puts putchar qsort rand read realloc remainder remquo rint round scalbln
    scalbn signbit sin sinh sprintf sqrt srand strcat strcmp strcpy strlen system tan tanh tgamma
    time trunc write clock clamp dot cross length normalize mix step smoothstep sign select
    assert errno linux unix index j0 j1 jn y0 y1 yn gamma vector pixel
    """.split()
)
_VECTOR_TYPE = re.compile(
    r"(bool|u?char|u?short|u?int|u?long|u?longlong|half|float|double)\d+(x\d+)?"
)


def legal_name(name: str) -> str:
    """The name, if it is a free identifier in every language we write, else one made from it.

    >>> legal_name("my_op"), legal_name("double"), legal_name("a b"), legal_name("3x")
    ('my_op', 'k_double', 'k_a_b', 'k_3x')
    """
    is_free = (
        re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None
        and "__" not in name
        and name not in _RESERVED
        and not _VECTOR_TYPE.fullmatch(name)
        and len(name) <= _LONGEST
    )
    if is_free:
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "unnamed"
    if not name.isascii() or len(plain) > _LONGEST - 12:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        plain = f"{plain[: _LONGEST - 12]}_{digest}"
    return f"k_{plain}"
