"""A script that reproduces a failure, made of nothing but the kernel AST that led to it."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from loopwright_core.cache import Cache
from loopwright_core.errors import (
    CompileError,
    LoopwrightError,
    LoweringError,
    PluginError,
    RewriteError,
    VerifyError,
)
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.device import Device

# Failures below the user's code; the other kinds are answers to what the user wrote.
_DEEP = (CompileError, LoweringError, PluginError, RewriteError, VerifyError)


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """All that a build depends on besides the plugins."""

    ast: UOp
    device: Device
    options: Options
    name: str | None


@contextmanager
def reproducible(recipe: Recipe) -> Iterator[None]:
    """Failures inside gain the path of a script that reproduces them, at the message's end."""
    try:
        yield
    except _DEEP as error:
        path = write_script(recipe, error)
        if path is not None:
            error.args = (f"{error}\nReproduce it with: python {path}", *error.args[1:])
        raise


def write_script(recipe: Recipe, error: LoopwrightError) -> Path | None:
    """Where the script is, or None if no folder takes it."""
    text = script(recipe, error)
    name = f"reproduce_{hashlib.sha256(text.encode()).hexdigest()[:16]}.py"
    for folder in (
        Cache().root / "failures",
        Path(tempfile.gettempdir()) / f"loopwright-{_user()}",
    ):
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / name
            with suppress(FileExistsError), open(path, "x", encoding="utf-8") as file:
                file.write(text)
            return path
    return None


def script(recipe: Recipe, error: LoopwrightError | None = None) -> str:
    """The script's text: rebuilds the AST node by node, then builds and compiles it."""
    writer = _Writer()
    nodes = recipe.ast.toposort()
    names = {node: f"n{i}" for i, node in enumerate(nodes)}
    lines = []
    for node in nodes:
        src = "".join(f"{names[s]}, " for s in node.src)
        made = f"UOp(Op.{node.op.name}, {writer.text(node.dtype)}, ({src.rstrip()})"
        lines.append(f"{names[node]} = {made}, {writer.text(node.arg)})")
    options = writer.text(recipe.options)
    said = [f"# {line}" for line in str(error).splitlines()] if error else []
    return "\n".join(
        [
            "# Reproduces a failure of Loopwright. Run it where the same packages are installed.",
            f"# loopwright-core {_version('loopwright-core')}, Python {platform.python_version()}, "
            f"{platform.system()} {platform.machine()}",
            *said,
            "from loopwright_core.ir import dtype as dt",
            "from loopwright_core.ir.ops import Op",
            "from loopwright_core.ir.uop import UOp",
            "from loopwright_core.pipeline import build",
            "from loopwright_core.plugin.loader import registry",
            *(f"from {module} import {name}" for module, name in sorted(writer.imports)),
            "",
            *lines,
            "",
            f'device = registry().device("{recipe.device.name}")',
            f"built = build({names[recipe.ast]}, device, {options}, {recipe.name!r})",
            "print(built.source)",
            "print(len(built.binary), 'bytes compiled')",
            "",
        ]
    )


class _Writer:
    """Values as Python text, and what has to be imported to read it back."""

    def __init__(self) -> None:
        self.imports: set[tuple[str, str]] = set()

    def text(self, value: Any) -> str:
        if isinstance(value, DType):
            scalar = f'dt.BY_NAME["{value.scalar.name}"]'
            return scalar if value.lanes == 1 else f"{scalar}.vec({value.lanes})"
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if isinstance(value, tuple):
            inner = "".join(f"{self.text(v)}, " for v in value)
            return f"({inner.rstrip()})"
        if isinstance(value, Enum):
            self.imports.add((type(value).__module__, type(value).__name__))
            return f"{type(value).__name__}.{value.name}"
        if is_dataclass(value) and not isinstance(value, type):
            self.imports.add((type(value).__module__, type(value).__name__))
            inner = ", ".join(
                f"{f.name}={self.text(getattr(value, f.name))}" for f in fields(value)
            )
            return f"{type(value).__name__}({inner})"
        return repr(value)


def _version(dist: str) -> str:
    try:
        return version(dist)
    except PackageNotFoundError:
        return "from a source tree"


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"
