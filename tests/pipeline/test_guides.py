"""docs/*.md: what the pages' Python sessions print is what they say."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def session(page: Path) -> doctest.DocTest:
    """The page's blocks with prompts, as one session; lines keep the numbers of the page."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        if ">>> " in block[1]:
            first = text.count("\n", 0, block.start(1))
            rows = block[1].splitlines()
            lines[first : first + len(rows)] = rows
    return doctest.DocTestParser().get_doctest("\n".join(lines), {}, page.name, str(page), 0)


SESSIONS = {page.name: session(page) for page in sorted(DOCS.glob("*.md"))}


@pytest.mark.parametrize("page", [name for name, found in SESSIONS.items() if found.examples])
def test_sessions(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed from the top of the page to its end, each statement prints what stands under it."""
    monkeypatch.chdir(tmp_path)  # pages may write files
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(SESSIONS[page], out=told.append)
    assert not runner.failures, "".join(told)


def test_the_guides_have_sessions() -> None:
    """The pages for users show sessions; a change of format does not hide them from the test."""
    for page in ("guide.md", "from-numpy.md", "jit.md"):
        assert len(SESSIONS[page].examples) >= 10, page
