"""What the array API standard, version 2024.12, names: functions with their parameters.

`isin` and `broadcast_shapes` are of 2025.12. Complex dtypes and Fourier transforms are left out
of this library, and are named here all the same.
"""

from __future__ import annotations

_REDUCTION = "(x, /, *, axis=None, keepdims=False)"
_SPREAD = "(x, /, *, axis=None, correction=0.0, keepdims=False)"
_SUM = "(x, /, *, axis=None, dtype=None, keepdims=False)"
_SCAN = "(x, /, *, axis=None, dtype=None, include_initial=False)"
_SORT = "(x, /, *, axis=-1, descending=False, stable=True)"
_MADE = "(shape, *, dtype=None, device=None)"
_LIKE = "(x, /, *, dtype=None, device=None)"

# Parameters -> the functions that have them, space-separated.
_FUNCTIONS = {
    "creation": {
        "(start, /, stop=None, step=1, *, dtype=None, device=None)": "arange",
        "(obj, /, *, dtype=None, device=None, copy=None)": "asarray",
        _MADE: "empty ones zeros",
        _LIKE: "empty_like ones_like zeros_like",
        "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)": "eye",
        "(x, /, *, device=None, copy=None)": "from_dlpack",
        "(shape, fill_value, *, dtype=None, device=None)": "full",
        "(x, /, fill_value, *, dtype=None, device=None)": "full_like",
        "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)": "linspace",
        "(*arrays, indexing='xy')": "meshgrid",
        "(x, /, *, k=0)": "tril triu",
    },
    "dtype functions": {
        "(x, dtype, /, *, copy=True, device=None)": "astype",
        "(from_, to, /)": "can_cast",
        "(type, /)": "finfo iinfo",
        "(dtype, kind)": "isdtype",
        "(*arrays_and_dtypes)": "result_type",
    },
    "elementwise": {
        "(x, /)": "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp "
        "expm1 floor imag isfinite isinf isnan log log1p log2 log10 logical_not negative positive "
        "real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc",
        "(x1, x2, /)": "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift "
        "bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less "
        "less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply "
        "nextafter not_equal pow remainder subtract",
        "(x, /, min=None, max=None)": "clip",
    },
    "indexing": {
        "(x, indices, /, *, axis=None)": "take",
        "(x, indices, /, *, axis=-1)": "take_along_axis",
    },
    "linear algebra": {
        "(x1, x2, /)": "matmul",
        "(x, /)": "matrix_transpose",
        "(x1, x2, /, *, axes=2)": "tensordot",
        "(x1, x2, /, *, axis=-1)": "vecdot",
    },
    "manipulation": {
        "(*arrays)": "broadcast_arrays",
        "(*shapes)": "broadcast_shapes",
        "(x, /, shape)": "broadcast_to",
        "(arrays, /, *, axis=0)": "concat stack",
        "(x, /, axis)": "expand_dims squeeze",
        "(x, /, *, axis=None)": "flip",
        "(x, source, destination, /)": "moveaxis",
        "(x, /, axes)": "permute_dims",
        "(x, repeats, /, *, axis=None)": "repeat",
        "(x, /, shape, *, copy=None)": "reshape",
        "(x, /, shift, *, axis=None)": "roll",
        "(x, repetitions, /)": "tile",
        "(x, /, *, axis=0)": "unstack",
    },
    "searching": {
        _REDUCTION: "argmax argmin count_nonzero",
        "(x, /)": "nonzero",
        "(x1, x2, /, *, side='left', sorter=None)": "searchsorted",
        "(condition, x1, x2, /)": "where",
    },
    "sets": {
        "(x1, x2, /, *, invert=False)": "isin",
        "(x, /)": "unique_all unique_counts unique_inverse unique_values",
    },
    "sorting": {_SORT: "argsort sort"},
    "statistical": {
        _SCAN: "cumulative_prod cumulative_sum",
        _REDUCTION: "max mean min",
        _SUM: "prod sum",
        _SPREAD: "std var",
    },
    "utility": {
        _REDUCTION: "all any",
        "(x, /, *, axis=-1, n=1, prepend=None, append=None)": "diff",
    },
    "inspection": {"()": "__array_namespace_info__"},
}
_LINALG = {
    "(x, /, *, upper=False)": "cholesky",
    "(x1, x2, /, *, axis=-1)": "cross vecdot",
    "(x, /)": "det eigh eigvalsh inv matrix_transpose slogdet svdvals",
    "(x, /, *, offset=0)": "diagonal",
    "(x1, x2, /)": "matmul outer solve",
    "(x, /, *, keepdims=False, ord='fro')": "matrix_norm",
    "(x, n, /)": "matrix_power",
    "(x, /, *, rtol=None)": "matrix_rank pinv",
    "(x, /, *, mode='reduced')": "qr",
    "(x, /, *, full_matrices=True)": "svd",
    "(x1, x2, /, *, axes=2)": "tensordot",
    "(x, /, *, offset=0, dtype=None)": "trace",
    "(x, /, *, axis=None, keepdims=False, ord=2)": "vector_norm",
}


def _by_name(table: dict[str, str]) -> dict[str, str]:
    return {name: parameters for parameters, names in table.items() for name in names.split()}


# Function -> its parameters as the standard has them; of the namespace, and of lw.linalg.
FUNCTIONS = {name: p for table in _FUNCTIONS.values() for name, p in _by_name(table).items()}
LINALG = _by_name(_LINALG)

# Names of the namespace that are no functions.
CONSTANTS = ["e", "inf", "nan", "newaxis", "pi", "__array_api_version__"]
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float32", "float64", "complex64", "complex128"]
EXTENSIONS = ["fft", "linalg"]

# The array: methods -> parameters, other methods (space-separated), attributes.
METHODS = {
    "__array_namespace__": "(self, /, *, api_version=None)",
    "__dlpack__": "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
    "__dlpack_device__": "(self, /)",
    "to_device": "(self, device, /, *, stream=None)",
}
OPERATORS = (
    "__abs__ __add__ __and__ __bool__ __complex__ __eq__ __float__ __floordiv__ __ge__ "
    "__getitem__ __gt__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ "
    "__imul__ __index__ __int__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ "
    "__ixor__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ "
    "__pow__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ "
    "__rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __sub__ "
    "__truediv__ __xor__"
)
ATTRIBUTES = ["T", "device", "dtype", "mT", "ndim", "shape", "size"]
