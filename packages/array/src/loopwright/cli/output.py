"""What the commands print: plain text, colour on a terminal, or one JSON document."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loopwright_core.errors import ArgumentError, fail
from loopwright_core.whole import write_whole

Rows = Sequence[Sequence[str]]


class Output:
    """Where a command's results go. In JSON mode only `document` prints."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.is_colour = not as_json and sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def text(self, line: str = "") -> None:
        """A line of text."""
        if not self.as_json:
            print(line, flush=True)

    def heading(self, line: str) -> None:
        """A line that stands out."""
        self.text(f"\x1b[1m{line}\x1b[0m" if self.is_colour else line)

    def verdict(self, is_good: bool, line: str) -> None:
        """A line that says whether something holds."""
        word = "ok  " if is_good else "FAIL"
        if self.is_colour:
            word = f"\x1b[{32 if is_good else 31}m{word}\x1b[0m"
        self.text(f"{word} {line}")

    def table(self, head: Sequence[str], rows: Rows) -> None:
        """Aligned columns."""
        if self.as_json:
            return
        if self.is_colour:
            from rich import box
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            table = Table(*head, box=box.SIMPLE_HEAD, pad_edge=False)
            for row in rows:
                table.add_row(*map(Text, row))
            Console().print(table)
            return
        lines = [tuple(head), *(tuple(r) for r in rows)]
        widths = [max(len(line[c]) for line in lines) for c in range(len(head))]
        for line in lines:
            cells = [cell.ljust(w) for cell, w in zip(line, widths, strict=True)]
            print("  ".join(cells).rstrip())

    def source(self, text: str, language: str | None) -> None:
        """A kernel's text."""
        if self.as_json:
            return
        if not self.is_colour:
            print(text, end="" if text.endswith("\n") else "\n")
            return
        from rich.console import Console
        from rich.syntax import Syntax

        lexer = "c" if language in (None, "opencl", "metal") else language
        # As one text, not as a block: a block crops lines at the terminal's width.
        styled = Syntax(text, lexer, background_color="default").highlight(text)
        Console().print(styled, soft_wrap=True, end="")

    def document(self, value: Any) -> None:
        """The whole result, in JSON mode."""
        if self.as_json:
            print(json.dumps(value, indent=2, ensure_ascii=False))


def write_file(path: str | Path, text: str) -> None:
    """Write a file whole or not at all. Raises ArgumentError where the place does not allow it."""
    try:
        write_whole(Path(path), text.encode())
    except OSError as error:
        fail(ArgumentError, f"cannot write {path}: {error.strerror or error}", fix="choose another")


def seconds(value: float) -> str:
    """A time a person can read.

    >>> seconds(0.00123), seconds(2e-7), seconds(3.0)
    ('1.23 ms', '0.2 us', '3 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def size(n_bytes: int) -> str:
    """A number of bytes a person can read.

    >>> size(512), size(2048), size(3 << 20)
    ('512 B', '2.0 KiB', '3.0 MiB')
    """
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
