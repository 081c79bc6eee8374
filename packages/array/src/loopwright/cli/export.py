"""`export`: a function as C that needs no Python: kernels, a header, and a main that runs it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from loopwright.cli.arguments import located
from loopwright.cli.output import Output
from loopwright.cli.request import Request
from loopwright.identifiers import legal_name
from loopwright.jit import Jitted, jit
from loopwright.jit.export import export_c
from loopwright_core.errors import ArgumentError, fail


def export_function(request: Request, directory: str, out: Output) -> bool:
    """Write the files. The directory appears whole or not at all."""
    function = request.function
    if isinstance(function, Jitted):
        function = function.__wrapped__
    name = legal_name(getattr(function, "__name__", "kernel"))
    names = [a.name for a in request.arguments]
    with request.options(), located(request.text):
        captured = jit(function).captured(**dict(zip(names, request.empty(), strict=True)))
        exported = export_c(captured, name)
    _write(Path(directory), exported.files)
    for file in exported.files:
        out.text(f"{Path(directory) / file}")
    out.text(f"compile it there with\n  {exported.command}")
    out.document(
        {"directory": directory, "files": list(exported.files), "command": exported.command}
    )
    return True


def _write(directory: Path, files: dict[str, str]) -> None:
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            fail(
                ArgumentError,
                f"{directory} is there already and not empty",
                where="export",
                fix="name a directory that is new or empty",
            )
        parent = directory.resolve().parent
        parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".export-", dir=parent))
        try:
            for name, text in files.items():
                (made / name).write_text(text, encoding="utf-8", newline="\n")
            made.chmod(0o755)
            os.replace(made, directory)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        fail(
            ArgumentError,
            f"cannot write {directory}: {error.strerror or error}",
            where="export",
            fix="choose another",
        )
