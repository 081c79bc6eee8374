"""The command line: `loopwright demo`, `loopwright compile FILE.py:FUNC ...` and the rest."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit with its status."""
    from loopwright.cli.program import program

    program()


__all__ = ["main"]
