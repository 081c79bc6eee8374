"""Our schedules beside those of the predecessors' parity table, kernel by kernel, in one process.

    uv run python benchmarks/parity.py            # all rows
    uv run python benchmarks/parity.py matmul --rounds 15 --show

CPU, one thread: both schedules run in turns into the same memory; times are medians of the thread's
own processor time, `ratio` is how many times as long the table's takes: above 1 ours is faster.
Metal and CUDA: per schedule the global loads and stores that one launch executes (a vector is one),
the bytes of shared memory that a workgroup holds, and the subgroups that are launched, counted in
the lowered program.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

_parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
_parser.add_argument("names", nargs="*", help="rows that begin with one of these; all by default")
_parser.add_argument("--rounds", type=int, default=9)
_parser.add_argument("--only", choices=("cpu", "metal", "cuda"), help="one column")
_parser.add_argument("--show", action="store_true", help="print both schedules")
OPTIONS = _parser.parse_args()

os.environ["LOOPWRIGHT_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np  # noqa: E402

from loopwright_core import pipeline  # noqa: E402
from loopwright_core.kernel.options import Options  # noqa: E402
from loopwright_core.plugin.loader import registry  # noqa: E402
from loopwright_core.plugin.target import Target  # noqa: E402
from loopwright_core.targets.cuda import cuda  # noqa: E402
from loopwright_core.targets.metal import metal  # noqa: E402
from support.access_counts import count  # noqa: E402
from support.parity_rows import ROWS, Row  # noqa: E402

GPUS: dict[str, Target] = {"metal": metal(), "cuda": cuda("sm_80")}
# A run is repeated until it takes about so long.
SHORTEST_S = 2e-3


def times(row: Row) -> str:
    """Both times of a row on this processor, and their ratio."""
    device = registry().device("cpu")
    ast = row.ast()
    built = [pipeline.build(ast, device, Options(parity=p), None) for p in (False, True)]
    rng = np.random.default_rng(0)
    memory = []
    for p in built[0].program.params:
        numbers = rng.standard_normal(p.shape).astype(p.dtype.numpy)
        memory.append(device.from_host(np.zeros_like(numbers) if p.is_output else numbers))
    runs = [b.loaded.bind(memory, ()) for b in built]
    repeats = [max(1, int(SHORTEST_S / max(_seconds(run, 1), 1e-7))) for run in runs]
    rounds = []
    for _ in range(OPTIONS.rounds):  # whoever comes first or last in a round gains nothing
        a, b, c, d = [_seconds(runs[n], repeats[n]) for n in (0, 1, 1, 0)]
        rounds.append((a + d, b + c))
    ours, theirs = [statistics.median(r[n] / 2 for r in rounds) for n in (0, 1)]
    ratio = statistics.median(r[1] / r[0] for r in rounds)
    line = f"{row.name:30} cpu   {ours * 1e6:10.1f} us {theirs * 1e6:10.1f} us {ratio:7.2f}"
    return line + _schedules(*[b.kernel.schedule for b in built])


def _seconds(run: Callable[[], None], repeats: int) -> float:
    start = time.thread_time()
    for _ in range(repeats):
        run()
    return (time.thread_time() - start) / repeats


def counts(row: Row, which: str) -> str:
    """Loads, stores and shared bytes of both schedules of a row on a GPU."""
    kernel, target = row.kernel(), GPUS[which]
    made = [pipeline.schedule(kernel, target, Options(parity=p)) for p in (False, True)]
    ours, theirs = [count(pipeline.lower(k, target)) for k in made]
    words = [
        f"{c.loads:11} {c.stores:8} {c.shared_bytes:6} {c.subgroups:7}" for c in (ours, theirs)
    ]
    line = f"{row.name:28} {which:5}" + " | ".join(words)
    return line + _schedules(*[k.schedule for k in made])


def _schedules(*found: object) -> str:
    return "".join(f"\n    {s}" for s in found) if OPTIONS.show else ""


def main() -> int:
    rows = [r for r in ROWS if not OPTIONS.names or r.name.startswith(tuple(OPTIONS.names))]
    if OPTIONS.only in (None, "cpu"):
        print(f"{'':36} {'ours':>13} {'table':>13} {'ratio':>7}")
        for row in rows:
            print(times(row), flush=True)
    for which in GPUS:
        if OPTIONS.only in (None, which):
            head = f"{'loads':>11} {'stores':>8} {'shared':>6} {'subgr.':>7}"
            print(f"{'':33}{head} | {head}  (ours | table)")
            for row in rows:
                print(counts(row, which), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
