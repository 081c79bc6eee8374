"""A process that runs one peer's workloads as it is told, one JSON line a command.

    python worker.py PEER

Commands: {"prepare": NAME, "result": PATH}, {"time": SECONDS}; each is answered by one line. It
runs under the peer's own Python, which need not have Loopwright.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).resolve().parents[1])

import numpy as np  # noqa: E402
from workloads import BY_NAME  # noqa: E402


def main(peer_name: str) -> None:
    """Answer commands until the input ends."""
    # What a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(value: dict[str, Any]) -> None:
        print(json.dumps(value), file=answers, flush=True)

    start = time.perf_counter()
    try:
        peer = importlib.import_module(f"peers.{peer_name}")
    except ImportError as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    answer(
        {
            "version": peer.version(),
            "import_s": time.perf_counter() - start,
            "workloads": list(peer.WORKLOADS),
        }
    )
    run: Callable[[], Any] | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "prepare" in command:
                run = None  # its memory goes before the next one's comes
                arrays = BY_NAME[command["prepare"]].inputs()
                start = time.perf_counter()
                run = peer.WORKLOADS[command["prepare"]](*arrays)
                result = run()
                first_s = time.perf_counter() - start
                np.save(command["result"], peer.to_numpy(result))
                answer({"first_s": first_s})
            else:
                assert run is not None
                answer({"times": timed(run, command["time"])})
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})


def timed(run: Callable[[], Any], seconds: float) -> list[float]:
    """Seconds a call, in some five batches that together take about `seconds`."""
    start = time.perf_counter()
    run()  # also brings the data back that others have pushed out of the caches
    one = max(time.perf_counter() - start, 1e-8)
    n = max(1, int(seconds / 5 / one))
    times = []
    for _ in range(5 if n > 1 or one < seconds else 2):
        start = time.perf_counter()
        for _ in range(n):
            run()
        times.append((time.perf_counter() - start) / n)
    return times


if __name__ == "__main__":
    main(sys.argv[1])
