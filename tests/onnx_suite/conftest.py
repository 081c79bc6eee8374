"""The suite's figures, printed when the tests are done."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests recorded as "figure", a line each."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "figure":
                terminalreporter.write_line(str(value))
