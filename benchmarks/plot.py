"""How near every row of the benchmark table comes to the machine's limit, ours and the peers'.

    uv run --group bench benchmarks/run.py --json > table.json
    uv run --group examples benchmarks/plot.py table.json -o docs/performance/one-thread.svg

A bar is a share of the row's limit, measured in the same run with arrays of the row's own sizes;
rows without one (latencies) are left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OURS, LIMIT = "loopwright", "limit"


def main() -> None:
    """Draw the table in a file; the suffix says in which format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("table", type=Path, help="what run.py --json printed")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    document = json.loads(given.table.read_text("utf-8"))
    shares = {name: _shares(row["cells"]) for name, row in document["rows"].items()}
    rows = [(name, found) for name, found in shares.items() if found]
    figure, axes = plt.subplots(figsize=(8, 0.3 * len(rows) + 1.2))
    peers = sorted({peer for _, found in rows for peer in found} - {OURS})
    places = range(len(rows))
    axes.barh(places, [found.get(OURS, 0) for _, found in rows], color="#b8c4d8", label=OURS)
    for peer, marker in zip(peers, "osD^vP*Xh", strict=False):
        known = [(found[peer], place) for place, (_, found) in enumerate(rows) if peer in found]
        axes.scatter(*zip(*known, strict=True), s=22, marker=marker, label=peer, zorder=3)
    axes.set_yticks(places, [name for name, _ in rows])
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlim(0, 1.15)
    axes.set_xlabel(f"share of the limit, {document['threads']} thread(s)")
    axes.legend(loc="lower right", fontsize=8)
    figure.tight_layout()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(given.out)


def _shares(cells: dict[str, dict[str, list[float]]]) -> dict[str, float]:
    """Each peer's share of the row's limit; none without a limit."""
    times = {p: statistics.median(c["times_s"]) for p, c in cells.items() if c.get("times_s")}
    limit = times.pop(LIMIT, None)
    return {} if limit is None else {peer: limit / time for peer, time in times.items()}


if __name__ == "__main__":
    main()
