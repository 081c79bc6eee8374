"""Kernel names that are free identifiers in every language we write."""

from __future__ import annotations

import hashlib
import re

_LONGEST = 63  # what C99 promises to tell apart

# Keywords and names with a meaning of C, C++, CUDA, Metal and OpenCL that start with a letter.
_RESERVED_TEXT = """
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
"""
_RESERVED = frozenset(_RESERVED_TEXT.split())
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
