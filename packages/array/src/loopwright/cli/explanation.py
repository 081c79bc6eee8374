"""What `explain` says: a function's road with its own text, as plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from loopwright.road import KernelRoad, Road
from loopwright_core.kernel.describe import describe


@dataclass(frozen=True)
class Explanation:
    """`code`: the function's own text, "" where it has none; `first_line`: of it in its file."""

    title: str
    arguments: tuple[str, ...]
    device: str
    code: str
    first_line: int
    road: Road


def as_text(shown: Explanation, colour: bool = False) -> str:
    """Readable in a terminal: the essence of every stage, and the source."""
    road = shown.road
    lines = [shown.title, ", ".join(shown.arguments), "", "Expression", *_in(road.expression)]
    lines += ["", "Fusion"]
    for d in road.decisions:
        place = f"%{d.place} " if d.place >= 0 else ""
        lines.append(f"  {place}{d.value}: {d.text}")
    if not road.kernels:
        lines.append("  no kernel: every result is in memory already")
    for kernel in road.kernels:
        lines += ["", *_kernel(kernel, colour)]
    return "\n".join(lines)


def _kernel(road: KernelRoad, colour: bool) -> list[str]:
    counts = road.program.estimate
    lines = [
        f"Kernel {describe(road.kernel, colour=colour)}",
        f"  {counts.flops:,} operations on {counts.bytes:,} bytes: {road.intensity:.2f} operations "
        f"per byte. {road.launch}",
        "",
        "  Reads and writes",
        *[f"    {row.way} {row.place}, strides {row.strides}" for row in road.accesses],
        "",
        "  Why this schedule",
        *[f"    {reason}" for reason in road.why],
    ]
    if road.steps:
        lines += ["", "  Step by step"]
        for step in road.steps:
            lines += [f"    {step.opt}", f"      {step.nest}"]
    lines += ["", "  In words", *[f"    {sentence}" for sentence in road.kernel.explain()]]
    fired = [(s.name, s.rules) for s in road.stages if s.rules]
    if fired:
        lines += ["", "  Rewrite rules that fired"]
        for stage, rules in fired:
            lines.append(f"    {stage}: {', '.join(f'{rule} {n}' for rule, n in rules)}")
    return [*lines, "", "  Source", *_in(road.source, 4)]


def _in(text: str, by: int = 2) -> Iterable[str]:
    return [f"{' ' * by}{line}".rstrip() for line in text.splitlines()]


def as_json(shown: Explanation) -> dict[str, Any]:
    """Everything, for machines."""
    road = shown.road
    return {
        "title": shown.title,
        "arguments": list(shown.arguments),
        "device": shown.device,
        "expression": road.expression,
        "fusion": [asdict(d) for d in road.decisions],
        "kernels": [_kernel_json(k) for k in road.kernels],
    }


def _kernel_json(road: KernelRoad) -> dict[str, Any]:
    return {
        "name": road.kernel.name,
        "nest": describe(road.kernel),
        "opts": [str(o) for o in road.kernel.schedule.opts],
        "why": list(road.why),
        "explain": list(road.kernel.explain()),
        "accesses": [row._asdict() for row in road.accesses],
        "steps": [asdict(step) for step in road.steps],
        "stages": [{"name": s.name, "after": s.after, "rules": dict(s.rules)} for s in road.stages],
        "launch": road.launch,
        "launches": road.n_uses,
        "flops": road.program.estimate.flops,
        "bytes": road.program.estimate.bytes,
        "source": road.source,
    }
