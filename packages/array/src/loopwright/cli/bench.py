"""`loopwright bench`: the benchmark table on this machine, against the peers that are installed."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from loopwright.bench import cold, table
from loopwright.bench.measure import LIMIT, OURS, PEERS, Plan, Row, measure
from loopwright.bench.workloads import WORKLOADS, Workload
from loopwright.cli.output import Output
from loopwright_core.errors import ArgumentError, fail


def bench(
    names: Sequence[str],
    peers: str | None,
    pythons: Sequence[str],
    threads: int,
    rounds: int,
    is_cold: bool,
    out: Output,
) -> bool:
    """Measure and print; whether every result of ours was right."""
    plan = Plan(_chosen(names), _peers(peers), _pythons(pythons), threads, rounds)

    def tell_peer(peer: str, version: str) -> None:
        if not out.as_json:
            print(f"{peer}: {version}", file=sys.stderr)

    def tell_row(workload: Workload, row: Row) -> None:
        if not out.as_json:
            told = cold.line(workload.name, row) if is_cold else table.line(workload, row)
            print(told, file=sys.stderr)

    measured = cold.measure_cold if is_cold else measure
    versions, rows = measured(plan, tell_peer, tell_row)
    out.text((cold if is_cold else table).markdown(plan, versions, rows))
    out.document(
        {
            "threads": threads,
            "cold": is_cold,
            "versions": versions,
            "rows": {name: _document(row) for name, row in rows.items()},
        }
    )
    return all(not row[OURS].error for row in rows.values() if OURS in row)


def _document(row: Row) -> dict[str, object]:
    cells = {
        peer: {"error": c.error} if c.error else {"first_s": c.first_s, "times_s": c.times}
        for peer, c in row.items()
    }
    numbers = {"ratio": table.ratio(row), "share": table.share(row)}
    return {"cells": cells, **{k: None if math.isnan(v) else v for k, v in numbers.items()}}


def _chosen(names: Sequence[str]) -> tuple[Workload, ...]:
    for name in names:
        if not any(w.name.startswith(name) for w in WORKLOADS):
            fail(
                ArgumentError,
                f"no workload begins with {name!r}",
                fix="the workloads are " + ", ".join(w.name for w in WORKLOADS),
            )
    return tuple([w for w in WORKLOADS if w.name.startswith(tuple(names) or "")])


def _peers(text: str | None) -> tuple[str, ...]:
    if text is None:
        return PEERS
    chosen = tuple(text.split(","))
    for peer in chosen:
        if peer not in PEERS:
            fail(ArgumentError, f"no peer {peer!r}", fix="the peers are " + ", ".join(PEERS))
    return chosen


def _pythons(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found = []
    for text in texts:
        peer, _, path = text.partition("=")
        if peer not in (*PEERS, LIMIT) or not path:
            fail(
                ArgumentError,
                f"--python takes PEER=PATH, not {text!r}",
                fix="such as --python torch=venv/bin/python",
            )
        found.append((peer, path))
    return tuple(found)
