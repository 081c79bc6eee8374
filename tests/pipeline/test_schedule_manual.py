"""docs/schedule.md: every example of a step on that page does what the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loopwright.evaluate import make_plan
from loopwright_core import pipeline
from loopwright_core.errors import OptError
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.outline import nest
from loopwright_core.targets.cuda import cuda
from loopwright_opt.apply import apply
from loopwright_opt.text import AMOUNT_OPS, WORD_OPS, parse
from loopwright_render_clang.device import CpuDevice

PAGE = (Path(__file__).parents[2] / "docs" / "schedule.md").read_text(encoding="utf-8")
TARGETS = {
    "cpu": replace(CpuDevice("x86-64-v3").target, threads=4, caches=(32 << 10, 1 << 20, 0)),
    "cuda": cuda("sm_80"),
}


@dataclass(frozen=True)
class Example:
    """A block of the page, at `line`: each step with the nest or the refusal told under it."""

    line: int
    kernel: str
    target: str
    told: tuple[tuple[str, str], ...]


def examples() -> Iterator[Example]:
    """The blocks "```opt KERNEL TARGET"; steps stand at the margin, what they do is indented."""
    blocks = re.compile(r"^```opt (\w+) (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for found in blocks.finditer(PAGE):
        told: list[tuple[str, str]] = []
        step = ""
        for row in found[3].splitlines():
            if row.startswith("  "):
                told.append((step, row.strip()))
            else:
                step = row
        yield Example(PAGE.count("\n", 0, found.start()) + 1, found[1], found[2], tuple(told))


EXAMPLES = list(examples())


@cache
def expressions() -> dict[str, Any]:
    """What the page's first Python block defines."""
    code = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    return names


def plain(name: str) -> Kernel:
    (fused,) = make_plan([expressions()[name]._uop], "cpu").kernels
    return pipeline.index(fused.ast)


def done(kernel: Kernel, step: str, target: str) -> tuple[Kernel, str]:
    """The kernel after a step, and what the page should say of it."""
    made = kernel
    try:
        for opt in parse(step):
            made = apply(made, opt, TARGETS[target])
    except OptError as error:
        return kernel, f"refused: {error}"
    return made, nest(made)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"line {e.line}")
def test_example(example: Example) -> None:
    """Each step gives the nest that stands under it, or is refused with the words under it."""
    kernel = with_grid(plain(example.kernel), TARGETS[example.target])
    assert example.told[0] == ("", nest(kernel))
    for step, told in example.told[1:]:
        kernel, actual = done(kernel, step, example.target)
        if told.startswith("refused:"):
            assert actual.startswith(told.rstrip(".")), actual
        else:
            assert actual == told


def test_every_step_has_an_example() -> None:
    """Each scheduling step has a section with an example of it, and every kind is named."""
    for op in sorted(AMOUNT_OPS | WORD_OPS):
        section = re.search(rf"^### .*\b{op}\b.*?(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
        assert section is not None, op
        assert re.search(rf"^```opt [^`]*^{op}\b", section[0], re.MULTILINE), op
    for kind in AxisKind:
        assert f"| {kind.name} | `{kind.letter}` |" in PAGE, kind


def test_what_describe_and_explain_say() -> None:
    """The lines that the page quotes are those that `describe` and `explain` give."""
    kernel, _ = done(plain("matmul"), TOLD[1], "cpu")
    assert TOLD[2] == kernel.describe()
    assert TOLD[3].splitlines() == list(kernel.explain())


TOLD = re.search(
    r"^```text\n(TILE.*?)\n\n(r_.*?)\n\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL
) or pytest.fail("docs/schedule.md quotes no schedule with its explanation")
