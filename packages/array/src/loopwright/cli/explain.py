"""`explain`: every stage, decision and schedule of a function's kernels, on a page or as text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loopwright.cli.explanation import Explanation, as_json, as_text
from loopwright.cli.output import Output, write_file
from loopwright.cli.page import page
from loopwright.cli.request import Request
from loopwright.options import current
from loopwright.road import follow


def explain_function(request: Request, output: str | None, out: Output) -> bool:
    """Print the explanation, or write it as one HTML page. Nothing is compiled or run."""
    uops = [r._uop for r in request.results(request.empty())]
    with request.options():
        road = follow(uops, request.device, current())
    code, first_line = _code(request.function)
    arguments = tuple(map(str, request.arguments))
    shown = Explanation(request.text, arguments, request.device, code, first_line, road)
    document = as_json(shown)
    if output is None:
        out.text(as_text(shown, out.is_colour))
    else:
        write_file(Path(output), page(shown))
        n = len(road.kernels)
        out.text(f"{output}: {n} kernel{'' if n == 1 else 's'}")
        document["file"] = output
    out.document(document)
    return True


def _code(function: Callable[..., Any]) -> tuple[str, int]:
    """The function's text and where it begins; "" for what has none, as a builtin."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return "", 1
    return "".join(lines), first
