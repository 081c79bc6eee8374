"""`tune`: beam search for a function's kernels, with live progress; the results are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from loopwright.cli.limits import Limits, measure_limits
from loopwright.cli.output import Output, seconds
from loopwright.cli.request import Request
from loopwright.evaluate import check_opts, distinct_names, make_plan, options_of
from loopwright.fuse import FusedKernel
from loopwright.options import current, note_kernel
from loopwright_core import pipeline
from loopwright_core.errors import ArgumentError, fail
from loopwright_core.plugin.device import Device
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
    if not budget_s < float("inf"):
        fail(ArgumentError, f"--budget {budget_s} is no number of seconds", fix="such as 30")
    database = TuningDatabase()
    if request is not None or import_ is not None:
        database.need_room()
    document: dict[str, Any] = {}
    if import_ is not None:
        n_taken, n_damaged = database.import_(Path(import_))
        out.text(f"{import_}: {n_taken} results taken, {n_damaged} damaged")
        document |= {"imported": n_taken, "damaged": n_damaged}
    if request is not None:
        document |= _tune(request, beam, budget_s, out)
    if export is not None:
        n = database.export(Path(export))
        out.text(f"{export}: {n} results")
        document["exported"] = n
    out.document(document)
    return True


def _tune(request: Request, beam: int, budget_s: float, out: Output) -> dict[str, Any]:
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
    if not named:
        out.text("no kernel: every result is a view of an argument, or empty")
        return {"kernels": []}
    limits = measure_limits(request.device)
    limits.show(out)
    ended: list[Progress] = []
    rows: list[list[str]] = []
    begin = time.monotonic()
    with request.options(beam=beam, budget_s=budget_s), _shown(out, ended, limits, budget_s):
        n_done = _search_each(named, device, ended)
    for p in ended:
        gain = f"{p.start_s / p.best_s:.2f}x" if p.best_s else "-"
        times = [seconds(p.start_s), seconds(p.best_s), gain] if p.best_s else ["-", "-", "-"]
        rows.append([p.kernel, *times, " · ".join(p.opts)])
    searched = {p.kernel for p in ended}
    for _, _, name in named[:n_done]:
        if name not in searched:
            rows.append([name, "-", "-", "-", "given, not searched for"])
    out.table(["kernel", "began with", "best", "gain", "schedule"], rows)
    n_kept = sum(1 for p in ended if p.best_s)
    out.text(f"{time.monotonic() - begin:.1f} s; {n_kept} of {len(named)} results are kept")
    if n_done < len(named):
        names = ", ".join(name for _, _, name in named[n_done:])
        out.text(f"interrupted: not searched for {names}")
    return {
        "kernels": [asdict(p) | {"share_of_limit": _share(p, limits)} for p in ended],
        "limits": asdict(limits),
        "interrupted": n_done < len(named) or any(p.is_interrupted for p in ended),
    }


def _search_each(
    named: Sequence[tuple[FusedKernel, str | None, str]], device: Device, ended: list[Progress]
) -> int:
    """Build each kernel, which searches for it; how many, up to the one that Ctrl-C ended."""
    for n, (kernel, wanted, name) in enumerate(named):
        note_kernel(name)
        try:
            pipeline.build(kernel.ast, device, options_of(kernel, current()), wanted)
        except KeyboardInterrupt:
            return n
        if ended and ended[-1].is_interrupted:
            return n + 1
    return len(named)


@contextmanager
def _shown(out: Output, ended: list[Progress], limits: Limits, budget_s: float) -> Iterator[None]:
    """Progress as it comes: a live display on a terminal, plain lines elsewhere."""
    if not out.is_colour:
        with listening(_plain(out, ended, limits)):
            yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(), refresh_per_second=_LIVE_PER_SECOND, transient=True) as live:

        def show(p: Progress) -> None:
            live.update(_bar(p, limits, budget_s))
            if p.done:
                live.console.print(_line(p, limits), highlight=False, markup=False)
                ended.append(p)

        with listening(show):
            yield


def _plain(out: Output, ended: list[Progress], limits: Limits) -> Callable[[Progress], None]:
    last: tuple[str, int, float] = ("", -1, 0.0)

    def show(p: Progress) -> None:
        nonlocal last
        now = (p.kernel, p.step, p.best_s)
        if now != last or p.done:
            out.text(_line(p, limits))
            last = now
        if p.done:
            ended.append(p)

    return show


def _line(p: Progress, limits: Limits) -> str:
    if not p.best_s:
        why = "interrupted" if p.is_interrupted else p.done
        return f"{p.kernel}: {why} before enough ran; the schedule is the strategies'"
    if p.is_replay:
        return f"{p.kernel}: {_best(p, limits)}, {p.done}"
    text = f"{p.kernel}: step {p.step}, {_counts(p)}, {_best(p, limits)}"
    if p.done:
        return f"{text}, rank correlation {p.correlation:.2f}: {p.done}"
    return f"{text}, {p.left_s:.0f} s left"


def _counts(p: Progress) -> str:
    return f"{p.n_ranked} ranked, {p.n_timed} timed, {p.n_failed} failed"


def _best(p: Progress, limits: Limits) -> str:
    """`best 2.1 ms, 126.0 GFLOP/s: 81% of the arithmetic limit`"""
    share, which = limits.share(p.flops, p.bytes, p.best_s)
    if which == "arithmetic":
        rate = f"{p.flops / p.best_s / 1e9:.1f} GFLOP/s"
    else:
        rate = f"{p.bytes / p.best_s / 1e9:.1f} GB/s"
    return f"best {seconds(p.best_s)}, {rate}: {share:.0%} of the {which} limit"


def _share(p: Progress, limits: Limits) -> float:
    return limits.share(p.flops, p.bytes, p.best_s)[0] if p.best_s else 0.0


def _bar(p: Progress, limits: Limits, budget_s: float) -> Any:
    """The budget as a bar, and below it what the search has found, within 80 columns."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=budget_s, completed=budget_s - p.left_s, width=24)
    row.add_row(Text(p.kernel, style="bold"), bar, Text(f"{p.left_s:.0f} s left, step {p.step}"))
    best = _best(p, limits) if p.best_s else "nothing has run yet"
    return Group(row, Text(f"  {_counts(p)}", style="dim"), Text(f"  {best}"))
