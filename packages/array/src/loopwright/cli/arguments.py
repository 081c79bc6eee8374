"""What `FILE.py:FUNC`, `--arg` and `--opts` mean."""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from loopwright_core.errors import ArgumentError, LoopwrightError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType

_SHORT = {
    "f": {16: dt.float16, 32: dt.float32, 64: dt.float64},
    "i": {n: dt.signed(n) for n in (8, 16, 32, 64)},
    "u": {n: dt.unsigned(n) for n in (8, 16, 32, 64)},
    "bf": {16: dt.bfloat16},
}
DTYPES: dict[str, DType] = {
    **{d.name: d for d in dt.ARRAY_DTYPES},
    **{f"{letter}{bits}": d for letter, by in _SHORT.items() for bits, d in by.items()},
    "f8e4m3": dt.float8_e4m3fn,
    "f8e4m3fn": dt.float8_e4m3fn,
    "f8e5m2": dt.float8_e5m2,
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One `--arg`: its name, dtype and shape."""

    name: str
    dtype: DType
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}={self.dtype}[{','.join(map(str, self.shape))}]"


def parse_argument(text: str) -> Argument:
    """`x=f32[1024,1024]`; `s=f64` and `s=f64[]` are 0-d. Raises ArgumentError.

    >>> parse_argument("x=f32[2, 3]")
    Argument(name='x', dtype=float32, shape=(2, 3))
    """
    match = re.fullmatch(r"\s*(\w+)\s*=\s*(\w+)\s*(?:\[([\d\s,]*)\])?\s*", text)
    if match is None or not match[1].isidentifier():
        fail(ArgumentError, f"--arg {text!r} is not NAME=DTYPE[SHAPE]", fix="write x=f32[8,16]")
    name, dtype, sizes = match[1], match[2], match[3] or ""
    if dtype not in DTYPES:
        fail(ArgumentError, f"--arg {text!r}: no dtype {dtype!r}", fix="use " + ", ".join(DTYPES))
    parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
    if parts and not parts[-1]:
        parts.pop()
    if not all(part.isdigit() for part in parts):
        fail(ArgumentError, f"--arg {text!r}: the shape is not numbers", fix="write x=f32[8,16]")
    return Argument(name, DTYPES[dtype], tuple(map(int, parts)))


def load_function(text: str) -> Callable[..., Any]:
    """The function that FILE.py:FUNC names. Raises ArgumentError, for the file's own errors too."""
    file, name = _parts(text)
    path = Path(file)
    if not path.is_file():
        fail(ArgumentError, f"there is no file {file}", fix="give the path of a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        fail(ArgumentError, f"{file} is no Python file", fix="give the path of a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        with located(text):
            spec.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{error.filename or file}:{error.lineno}"
        fail(ArgumentError, f"{where}: {error.msg}", fix="correct the file")
    finally:
        sys.path.pop(0)
    found = getattr(module, name, None)
    if not callable(found):
        functions = [n for n, v in vars(module).items() if inspect.isfunction(v)]
        fail(
            ArgumentError,
            f"{file} has no function {name!r}",
            fix="it has " + (", ".join(functions) or "none"),
        )
    return found  # type: ignore[no-any-return]


@contextmanager
def located(text: str) -> Iterator[None]:
    """Where the code of FILE.py:FUNC fails inside the block, say in which line of its file.

    Raises ArgumentError for what the user's own code raises. Our refusals gain a note, and what
    fails inside Loopwright passes as it is: the traceback is wanted then.
    """
    try:
        yield
    except LoopwrightError as error:
        for place in _places(text, error)[-1:]:
            error.add_note(f"in {place}")
        raise
    except (SyntaxError, MemoryError):
        raise
    except Exception as error:
        places = _places(text, error)
        if not places or _is_ours(error):
            raise
        said = "".join(traceback.format_exception_only(error)).strip()
        raise ArgumentError(f"{places[-1]}: {said}. Correct the file.") from error


def _places(text: str, error: Exception) -> list[str]:
    """The lines of the named file that the error passed through, outermost first."""
    file = _parts(text)[0]
    path = Path(file).resolve()
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{file}:{f.lineno}" for f in frames if Path(f.filename).resolve() == path]


def _is_ours(error: Exception) -> bool:
    """Whether the innermost frame of the error runs code of one of Loopwright's packages."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package == "loopwright" or package.startswith("loopwright_")


def _parts(text: str) -> tuple[str, str]:
    """The file and the function's name. Raises ArgumentError."""
    file, _, name = text.rpartition(":")
    if not file or not name.isidentifier():
        fail(ArgumentError, f"{text!r} is not FILE.py:FUNC", fix="write examples/matmul.py:f")
    return file, name


def parse_arguments(function: Callable[..., Any], texts: Sequence[str]) -> list[Argument]:
    """The `--arg`s in the order of the function's parameters. Raises ArgumentError."""
    given: dict[str, Argument] = {}
    for text in texts:
        argument = parse_argument(text)
        if argument.name in given:
            fail(ArgumentError, f"--arg {argument.name} is given twice", fix="give it once")
        given[argument.name] = argument
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    required = [p.name for p in parameters if p.name in names and p.default is p.empty]
    unknown = [name for name in given if name not in names]
    missing = [name for name in required if name not in given]
    if unknown or missing:
        parts = [f"no parameter {n!r}" for n in unknown] + [f"no --arg for {n!r}" for n in missing]
        fail(
            ArgumentError,
            f"the function takes ({', '.join(names)}): " + ", ".join(parts),
            fix=" ".join(f"--arg {name}=f32[SHAPE]" for name in required),
        )
    return [given[name] for name in names if name in given]


def parse_opts(texts: Sequence[str]) -> list[str] | dict[str, list[str]] | None:
    """Scheduling steps separated by `·`, `;` or new lines; `NAME: steps` for one kernel by name.

    Raises ArgumentError for texts with and without names together.

    >>> parse_opts(["UPCAST i 4 · UNROLL k 4; VECTOR j 8"])
    ['UPCAST i 4', 'UNROLL k 4', 'VECTOR j 8']
    >>> parse_opts(["r_8_16: UNROLL k 4", "e_8: UPCAST i 4"])
    {'r_8_16': ['UNROLL k 4'], 'e_8': ['UPCAST i 4']}
    """
    named: dict[str, list[str]] = {}
    plain: list[str] = []
    for text in texts:
        match = re.fullmatch(r"\s*(\w+)\s*:(.*)", text, re.DOTALL)
        steps = [part.strip() for part in re.split(r"[·;\n]", match[2] if match else text)]
        into = named.setdefault(match[1], []) if match else plain
        into += [step for step in steps if step]
    if named and plain:
        fail(
            ArgumentError,
            "--opts with and without a kernel's name do not go together",
            fix='write --opts "NAME: UPCAST i 4" for each kernel',
        )
    return named or (plain if texts else None)


def random_array(
    argument: Argument, rng: np.random.Generator, limit: int | None = None
) -> np.ndarray[Any, Any]:
    """Normal floats, small integers (or any below a limit), fair bools."""
    n, dtype = math.prod(argument.shape), argument.dtype
    if dtype.is_bool:
        values: Any = rng.integers(0, 2, n)
    elif dtype.is_int and limit is not None:
        most = np.iinfo(dtype.numpy).max
        values = rng.integers(0, min(limit, int(most) + 1), n)
    elif dtype.is_int:
        low = -8 if dtype.is_signed else 0
        values = rng.integers(low, 9, n)
    else:
        values = rng.standard_normal(n)
    return values.astype(dtype.numpy).reshape(argument.shape)  # type: ignore[no-any-return]
