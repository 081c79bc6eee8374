"""`tune`: beam search for a function's kernels, with live progress; the results are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from loopwright.cli.output import Output, seconds
from loopwright.cli.request import Request
from loopwright.evaluate import check_opts, distinct_names, make_plan
from loopwright.options import current, note_kernel
from loopwright_core import pipeline
from loopwright_core.errors import ArgumentError, fail
from loopwright_core.plugin.loader import registry
from loopwright_core.progress import Progress, listening
from loopwright_core.tuning import TuningDatabase

# Plain text gets a line at a new best, at a new step and at the end, not at every candidate.
_LIVE_PER_SECOND = 8


def tune_function(
    request: Request | None,
    beam: int,
    budget_s: float,
    export: str | None,
    import_: str | None,
    out: Output,
) -> bool:
    """Search for each kernel of a function; export and import what searches found."""
    if request is None and export is None and import_ is None:
        fail(ArgumentError, "there is nothing to do", fix="name FILE.py:FUNC, --export or --import")
    database = TuningDatabase()
    document: dict[str, Any] = {}
    if import_ is not None:
        n_taken, n_damaged = database.import_(Path(import_))
        out.text(f"{import_}: {n_taken} results taken, {n_damaged} damaged")
        document |= {"imported": n_taken, "damaged": n_damaged}
    if request is not None:
        document["kernels"] = _tune(request, beam, budget_s, out)
    if export is not None:
        n = database.export(Path(export))
        out.text(f"{export}: {n} results")
        document["exported"] = n
    out.document(document)
    return True


def _tune(request: Request, beam: int, budget_s: float, out: Output) -> list[dict[str, Any]]:
    if request.schedule not in (None, "beam"):
        fail(
            ArgumentError,
            f"tune searches; --schedule {request.schedule} does not",
            fix="leave it out, or time that schedule with loopwright run",
        )
    request = replace(request, schedule="beam")
    results = request.results(request.empty())
    device = registry().device(request.device)
    plan = make_plan([r._uop for r in results], request.device)
    named = distinct_names(plan, lambda ast: pipeline.index(ast).name)
    with request.options():  # names in --opts that are nobody's are told before any search
        check_opts(plan, current())
        for _, _, name in named:
            note_kernel(name)
    ended: list[Progress] = []
    begin = time.monotonic()
    with request.options(beam=beam, budget_s=budget_s), _shown(out, ended):
        for kernel, wanted, name in named:
            note_kernel(name)
            pipeline.build(kernel.ast, device, current(), wanted)
    if not named:
        out.text("no kernel: every result is a view of an argument, or empty")
    rows = []
    for p in ended:
        gain = f"{p.start_s / p.best_s:.2f}x" if p.best_s else "-"
        rows.append([p.kernel, seconds(p.start_s), seconds(p.best_s), gain, " · ".join(p.opts)])
    if rows:
        out.table(["kernel", "began with", "best", "gain", "schedule"], rows)
        out.text(f"{time.monotonic() - begin:.1f} s; the results are kept")
    return [asdict(p) for p in ended]


@contextmanager
def _shown(out: Output, ended: list[Progress]) -> Iterator[None]:
    """Progress as it comes: a live line on a terminal, plain lines elsewhere."""
    if not out.is_colour:
        with listening(_plain(out, ended)):
            yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), refresh_per_second=_LIVE_PER_SECOND) as live:

        def show(p: Progress) -> None:
            live.update(_bar(p))
            if p.done:
                live.console.print(_line(p), highlight=False, markup=False)
                ended.append(p)

        with listening(show):
            yield


def _plain(out: Output, ended: list[Progress]) -> Callable[[Progress], None]:
    last: tuple[str, int, float] = ("", -1, 0.0)

    def show(p: Progress) -> None:
        nonlocal last
        now = (p.kernel, p.step, p.best_s)
        if now != last or p.done:
            out.text(_line(p))
            last = now
        if p.done:
            ended.append(p)

    return show


def _line(p: Progress) -> str:
    if not p.best_s:
        return f"{p.kernel}: {p.done} before anything ran; the schedule is the strategies'"
    if p.is_replay:
        return f"{p.kernel}: best {seconds(p.best_s)}, {p.done}"
    text = (
        f"{p.kernel}: step {p.step}, {p.n_ranked} ranked, {p.n_timed} timed, {p.n_failed} failed, "
        f"best {seconds(p.best_s)} ({_rate(p)})"
    )
    if p.done:
        return f"{text}, rank correlation {p.correlation:.2f}: {p.done}"
    return f"{text}, {p.left_s:.0f} s left"


def _rate(p: Progress) -> str:
    """What the best reaches, of arithmetic or of memory, whichever the kernel does more of."""
    if p.flops > 4 * p.bytes:
        return f"{p.flops / p.best_s / 1e9:.1f} GFLOP/s"
    return f"{p.bytes / p.best_s / 1e9:.1f} GB/s"


def _bar(p: Progress) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(p.n_ranked, 1), completed=p.n_timed + p.n_failed, width=20)
    row.add_row(bar, Text(_line(p)))
    return row
