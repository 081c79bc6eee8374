"""Lazy arrays that become fast, readable kernels: `import loopwright as lw`.

The namespace follows the Python array API standard 2024.12; docs say where NumPy's and the
field's usual extras join it.
"""

from __future__ import annotations

import importlib
import math
import sys
from types import ModuleType
from typing import Any

from loopwright import linalg
from loopwright.api.counting import bincount, histogram, scatter_add
from loopwright.api.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from loopwright.api.dtypes import (
    astype,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from loopwright.api.einsum import einsum
from loopwright.api.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    copysign,
    divide,
    equal,
    floor,
    floor_divide,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    remainder,
    round,
    sign,
    signbit,
    square,
    subtract,
    trunc,
    where,
)
from loopwright.api.exponential import (
    cos,
    exp,
    exp2,
    expm1,
    hypot,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    sigmoid,
    sin,
    tan,
    tanh,
)
from loopwright.api.hyperbolic import acosh, asinh, atanh, cosh, sinh
from loopwright.api.indexing import take, take_along_axis
from loopwright.api.info import __array_namespace_info__
from loopwright.api.inverse import acos, asin, atan, atan2
from loopwright.api.linalg import matmul, matrix_transpose, tensordot, vecdot
from loopwright.api.manipulation import (
    concat,
    expand_dims,
    flip,
    moveaxis,
    pad,
    permute_dims,
    repeat,
    reshape,
    roll,
    sliding_window_view,
    squeeze,
    stack,
    tile,
    unstack,
)
from loopwright.api.nn import (
    avg_pool,
    conv,
    gelu,
    layer_norm,
    log_softmax,
    logsumexp,
    max_pool,
    one_hot,
    relu,
    silu,
    softmax,
)
from loopwright.api.parts import conj, imag, nextafter, real
from loopwright.api.power import pow, reciprocal, sqrt
from loopwright.api.searching import (
    all,
    any,
    argmax,
    argmin,
    argsort,
    count_nonzero,
    isin,
    nonzero,
    searchsorted,
    sort,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from loopwright.api.special import cbrt, erf
from loopwright.api.statistical import (
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from loopwright.array import Array
from loopwright_core.errors import LoopwrightError
from loopwright_core.ir.dtype import (
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from loopwright_core.ir.dtype import bool_ as bool
from loopwright_core.ir.uop import Variable

__version__ = "0.1.0"
__array_api_version__ = "2024.12"

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None

# Functions that live in a module of their own name, imported when first used: they bring in the
# compiler, which `import loopwright` alone does not need.
_LAZY = ("devices", "evaluate", "jit", "kernels", "options")
_LAZY_FROM = {**{name: name for name in _LAZY}, "kernel": "own", "named_kernel": "kernels"}


class _Namespace(ModuleType):
    """This package: importing `loopwright.evaluate` must not hide the function `lw.evaluate`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _LAZY or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    if name == "random":
        return importlib.import_module("loopwright.random")
    home = _LAZY_FROM.get(name)
    if home is not None:
        found = getattr(importlib.import_module(f"loopwright.{home}"), name)
        globals()[name] = found
        return found
    raise AttributeError(
        f"loopwright has no {name!r}; dir(loopwright) lists what there is, by the names of the "
        "array API standard"
    )


def __dir__() -> list[str]:
    return sorted(__all__)


sys.modules[__name__].__class__ = _Namespace

__all__ = [
    "Array",
    "LoopwrightError",
    "Variable",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "avg_pool",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "cbrt",
    "ceil",
    "clip",
    "concat",
    "conj",
    "conv",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "devices",
    "diff",
    "divide",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "evaluate",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "gelu",
    "greater",
    "greater_equal",
    "histogram",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "jit",
    "kernel",
    "kernels",
    "layer_norm",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "matmul",
    "matrix_transpose",
    "max",
    "max_pool",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "named_kernel",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "options",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "random",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "scatter_add",
    "searchsorted",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "sliding_window_view",
    "softmax",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]
