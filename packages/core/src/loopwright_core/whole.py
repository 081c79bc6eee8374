"""Files that appear whole or not at all, whoever else writes them."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

PARTIAL_PREFIX = ".partial-"


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in place of the one there: readers see the old one or the new one.

    Raises OSError and ValueError as `open` does; then, and on Ctrl-C, nothing is left behind.
    """
    # In the same folder: a rename is atomic only within one file system.
    partial = path.with_name(f"{PARTIAL_PREFIX}{os.getpid()}-{secrets.token_hex(8)}")
    try:
        with open(partial, "xb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError, ValueError):
            partial.unlink()
        raise
