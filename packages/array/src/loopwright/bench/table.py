"""What was measured, as people read it: units, ratios, shares of the machine's limit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from loopwright.bench.measure import LIMIT, OURS, Cell, Plan, Row
from loopwright.bench.workloads import Workload


def amount(workload: Workload, seconds: float) -> float:
    """A time in the workload's unit."""
    if workload.unit == "us":
        return seconds * 1e6
    work = workload.flops if workload.unit == "GFLOP/s" else workload.read + workload.written
    return work / seconds / 1e9


def best_peer(row: Row) -> str:
    """The fastest but for ours and the limit; "" where there is none."""
    others = {p: c for p, c in row.items() if p not in (OURS, LIMIT) and not c.error and c.times}
    return min(others, key=lambda p: others[p].median) if others else ""


def ratio(row: Row) -> float:
    """How many times as long as ours the best peer takes; NaN where one of them is missing."""
    best = best_peer(row)
    if not best or OURS not in row or row[OURS].error or not row[OURS].times:
        return math.nan
    return row[best].median / row[OURS].median


def share(row: Row) -> float:
    """How near ours comes to the limit of the machine."""
    if LIMIT not in row or OURS not in row or row[OURS].error:
        return math.nan
    return row[LIMIT].median / row[OURS].median


def line(workload: Workload, row: Row) -> str:
    """One row, as it is told while the table is in the making."""
    cells = [f"{peer} {_cell(workload, cell)}" for peer, cell in row.items()]
    return f"{workload.name:17} {workload.unit:8} ours x{_number(ratio(row))}  {'  '.join(cells)}"


def markdown(plan: Plan, versions: dict[str, str], rows: dict[str, Row]) -> str:
    """The whole table."""
    peers = [p for p in plan.peers if any(p in row for row in rows.values())]
    head = ["workload", "unit", *peers, "ours / best peer", "best peer", "limit", "share"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for workload in plan.workloads:
        row = rows[workload.name]
        cells = [workload.name, workload.unit]
        cells += [_cell(workload, row.get(peer)) for peer in peers]
        limit = f"{amount(workload, row[LIMIT].median):.3g}" if LIMIT in row else "-"
        cells += [_number(ratio(row)), best_peer(row) or "-", limit, _percent(share(row))]
        lines.append("| " + " | ".join(cells) + " |")
    told = ", ".join(f"{p} {versions[p]}" for p in peers)
    return (
        f"{plan.threads} thread(s), medians of {plan.rounds} rounds in turns; {told}.\n\n"
        + "\n".join(lines)
        + f"\n\nGeometric mean of ours / best peer: {_number(mean_ratio(rows.values()))}\n"
    )


def mean_ratio(rows: Iterable[Row]) -> float:
    """The geometric mean of the rows that have one."""
    known = [r for r in map(ratio, rows) if not math.isnan(r)]
    return math.exp(statistics.fmean(map(math.log, known))) if known else math.nan


def _cell(workload: Workload, cell: Cell | None) -> str:
    if cell is None:
        return "-"
    return cell.error.split(":")[0] if cell.error else f"{amount(workload, cell.median):.3g}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"
