"""The names and parameters of the array API standard against the namespace."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from standard_names import (
    ATTRIBUTES,
    CONSTANTS,
    DTYPES,
    EXTENSIONS,
    FUNCTIONS,
    LINALG,
    METHODS,
    OPERATORS,
)

import loopwright as lw
from loopwright.linalg import _MISSING
from loopwright_core.errors import LoopwrightError

ABSENT = {"complex64", "complex128", "fft"}


def test_every_name_of_the_standard_is_here_or_named() -> None:
    """The namespace lacks complex dtypes and Fourier transforms, and nothing else."""
    names = [*CONSTANTS, *DTYPES, *FUNCTIONS, *EXTENSIONS]
    assert {name for name in names if not hasattr(lw, name)} == ABSENT
    assert {name for name in names if name not in lw.__all__} == ABSENT


def test_every_name_of_the_linalg_extension_is_here_or_named() -> None:
    """What linalg lacks is refused as an attribute that is not there, with what to write."""
    assert set(LINALG) == {*lw.linalg.__all__, *_MISSING}
    assert {name for name in LINALG if not hasattr(lw.linalg, name)} == _MISSING
    with pytest.raises(LoopwrightError, match=r"no inv.*np.linalg.inv\(x.numpy\(\)\)"):
        _ = lw.linalg.inv
    with pytest.raises(AttributeError, match="no 'nonsense'; it has cross, diagonal"):
        _ = lw.linalg.nonsense


def test_every_attribute_of_the_standards_array() -> None:
    """An array has all methods and attributes of the standard's array object."""
    names = [*METHODS, *OPERATORS.split(), *ATTRIBUTES]
    assert [name for name in names if not hasattr(lw.Array, name)] == []


def parameters(text: str) -> list[tuple[str, str, Any]]:
    """Name, kind and default of the parameters that a signature's text lists."""
    (function,) = ast.parse(f"def f{text}: ...").body
    assert isinstance(function, ast.FunctionDef)
    args = function.args
    placed = [(a.arg, "positional-only") for a in args.posonlyargs]
    placed += [(a.arg, "positional or keyword") for a in args.args]
    missing = [inspect.Parameter.empty] * (len(placed) - len(args.defaults))
    defaults = [*missing, *(ast.literal_eval(d) for d in args.defaults)]
    rows = [(*p, d) for p, d in zip(placed, defaults)]
    if args.vararg:
        rows.append((args.vararg.arg, "variadic positional", inspect.Parameter.empty))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults):
        assert default is not None
        rows.append((arg.arg, "keyword-only", ast.literal_eval(default)))
    return rows


def differs(function: Callable[..., Any], text: str) -> bool:
    """Whether a function's parameters are others than the text's; defaults may be more.

    How `self` is named and passed is nobody's business.
    """
    ours = [
        (p.name, p.kind.description, p.default)
        for p in inspect.signature(function).parameters.values()
    ]
    theirs = parameters(text)
    if theirs and theirs[0][0] == "self":
        ours, theirs = ours[1:], theirs[1:]
    if len(ours) != len(theirs):
        return True
    return any(
        a[:2] != b[:2] or (b[2] is not inspect.Parameter.empty and a[2] != b[2])
        for a, b in zip(ours, theirs)
    )


def test_parameters_of_every_function() -> None:
    """Names, order, what is positional or by keyword only, and defaults are the standard's."""
    assert [n for n, text in FUNCTIONS.items() if differs(getattr(lw, n), text)] == []
    here = {name: text for name, text in LINALG.items() if name not in _MISSING}
    assert [n for n, text in here.items() if differs(getattr(lw.linalg, n), text)] == []


def test_parameters_of_the_arrays_methods() -> None:
    """The same for what consumers of arrays call."""
    assert [n for n, text in METHODS.items() if differs(getattr(lw.Array, n), text)] == []


def test_every_function_has_a_test_of_its_text() -> None:
    """Each name of the standard that is here appears in the tests that follow its text."""
    folder = Path(__file__).parent / "standard"
    text = "\n".join(p.read_text("utf-8") for p in sorted(folder.glob("*.py")))
    words = set(re.findall(r"\w+", text))
    here = [*FUNCTIONS, *(name for name in LINALG if name not in _MISSING), *METHODS, *ATTRIBUTES]
    assert [name for name in here if name not in words] == []
