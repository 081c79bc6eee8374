"""How long it takes from an imported library to the first result, compilation included."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from loopwright.bench.measure import (
    Cell,
    Plan,
    Row,
    TellPeer,
    TellRow,
    Versions,
    Worker,
    first_result,
)

IMPORT = "(import)"


def measure_cold(
    plan: Plan, tell_peer: TellPeer, tell_row: TellRow
) -> tuple[Versions, dict[str, Row]]:
    """Every workload by every peer in turns, each time in a new process with empty caches.

    The row `IMPORT` holds how long the imports took that come before.
    """
    versions: Versions = {}
    rows: dict[str, Row] = {IMPORT: {}}
    for workload in plan.workloads:
        row = rows[workload.name] = {}
        expected = workload.expected()
        for _ in range(plan.rounds):
            for peer in plan.peers:
                if peer in row and row[peer].error:
                    continue
                with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
                    worker = Worker(peer, plan.python(peer), plan.threads, f"{folder}/cache")
                    if peer not in versions:
                        versions[peer] = worker.version or f"not measured: {worker.error}"
                        tell_peer(peer, versions[peer])
                    if workload.name in worker.workloads:
                        first = first_result(workload, worker, Path(folder), expected)
                        cell = row.setdefault(peer, Cell())
                        cell.times.append(first.first_s)
                        cell.error = first.error
                        rows[IMPORT].setdefault(peer, Cell()).times.append(worker.import_s)
                    worker.close()
        tell_row(workload, row)
    return versions, rows


def markdown(plan: Plan, versions: Versions, rows: dict[str, Row]) -> str:
    """The table, in milliseconds."""
    peers = [p for p in plan.peers if any(p in row for row in rows.values())]
    lines = ["| workload | " + " | ".join(peers) + " |", "|---|" + "---:|" * len(peers)]
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(_cell(row.get(peer)) for peer in peers) + " |")
    told = ", ".join(f"{p} {versions[p]}" for p in peers)
    return (
        f"Milliseconds from the imported library to the first result, {plan.threads} thread(s), "
        f"a new process and empty caches each time; medians of {plan.rounds} in turns; {told}.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def line(name: str, row: Row) -> str:
    """One row, as it is told while the table is in the making."""
    return f"{name:17} ms       " + "  ".join(f"{peer} {_cell(c)}" for peer, c in row.items())


def _cell(cell: Cell | None) -> str:
    if cell is None or (not cell.error and math.isnan(cell.median)):
        return "-"
    return cell.error.split(":")[0] if cell.error else f"{cell.median * 1e3:.3g}"
