"""How well the cost model orders schedules: rank correlation of predicted and measured times.

    uv run python benchmarks/cost.py
    uv run python benchmarks/cost.py matmul conv --schedules 60 --save timed.json
    uv run python benchmarks/cost.py --load timed.json

Each kernel is timed under what the strategies propose with random parameters, that with a few
random steps more, and random legal lists of steps. `near`: the correlation among those within three
times the best alone, which is what a search has to tell apart. `--save` keeps the times, `--load`
prices kept ones again without running anything.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

OPTIONS = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
OPTIONS.add_argument("names", nargs="*", help="cases that begin with one of these; default all")
OPTIONS.add_argument("--schedules", type=int, default=80, help="how many for each kernel")
OPTIONS.add_argument("--threads", type=int, default=1)
OPTIONS.add_argument("--seed", type=int, default=0)
OPTIONS.add_argument("--save", help="file to keep the times in")
OPTIONS.add_argument("--load", help="file of kept times to price again")
OPTIONS.add_argument("--show", type=int, default=0, help="print so many worst misjudged schedules")
GIVEN = OPTIONS.parse_args()
os.environ["LOOPWRIGHT_THREADS"] = str(GIVEN.threads)  # read when the device is first asked

import numpy as np  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright_core.errors import LoopwrightError  # noqa: E402
from loopwright_core.kernel.kernel import Kernel  # noqa: E402
from loopwright_core.plugin.device import Device  # noqa: E402
from loopwright_core.plugin.loader import registry  # noqa: E402
from loopwright_opt import portable  # noqa: E402
from loopwright_opt.actions import moves  # noqa: E402
from loopwright_opt.apply import apply, apply_all  # noqa: E402
from loopwright_opt.comparison import correlate  # noqa: E402
from loopwright_opt.cost import predict  # noqa: E402
from loopwright_opt.strategies.choice import propose, strategies  # noqa: E402
from loopwright_opt.text import parse  # noqa: E402
from loopwright_opt.worker import Task, Worker  # noqa: E402

Shapes = tuple[tuple[int, ...], ...]
CASES: dict[str, tuple[Shapes, Callable[..., lw.Array]]] = {
    "matmul 511x509x513": (((511, 509), (509, 513)), lw.matmul),
    "conv 3x3 2x64x32x32": (
        ((2, 64, 32, 32), (64, 64, 3, 3)),
        lambda x, w: lw.conv(x, w, padding=1),
    ),
    "softmax 1024x1024": (((1024, 1024),), lambda x: lw.softmax(x, axis=-1)),
    "matvec 2048": (((2048, 2048), (2048,)), lw.matmul),
    "transpose 2048": (((2048, 2048),), lambda x: lw.permute_dims(x, (1, 0)) + 0),
    "sum axis 0 2048": (((2048, 2048),), lambda x: lw.sum(x, axis=0)),
    "sum axis 1 2048": (((2048, 2048),), lambda x: lw.sum(x, axis=1)),
    "matmul 512": (((512, 512), (512, 512)), lw.matmul),
    "gelu 1M": (((1 << 20,),), lambda x: lw.gelu(x, "tanh")),
}
# A schedule that takes longer than this tells nothing about good ones.
MOST_S = 1.0
# One that takes three times this is timed once more, not for long.
LONG_S = 0.02
# What is within so many times the best is timed so often again.
NEAR, AGAIN = 3.0, 2


def plain(name: str) -> Kernel:
    shapes, expression = CASES[name]
    arrays = [lw.asarray(np.zeros(s, np.float32)) for s in shapes]
    with lw.options(schedule="none"):
        (view,) = lw.kernels(expression(*arrays))
    return view.built.kernel


def schedules(kernel: Kernel, device: Device, rng: random.Random) -> Iterator[Kernel]:
    """Endless: proposals, their neighbourhood, random lists; none twice."""
    target = device.target
    seen = set()
    yield kernel
    yield propose(kernel, target).kernel
    while True:
        settings = {
            p.name: rng.choice(p.choices)
            for s in strategies()
            for p in s.parameters
            if rng.random() < 0.4
        }
        made = propose(kernel, target, settings=settings).kernel if rng.random() < 0.7 else kernel
        if made is not kernel and rng.random() < 0.5:
            opts = list(made.schedule.opts)
            del opts[rng.randrange(len(opts))]
            try:
                made = apply_all(kernel, opts, target)
            except LoopwrightError:
                continue
        for _ in range(rng.choice((0, 1, 2, 3)) if made.schedule.opts else rng.randrange(2, 7)):
            choices = moves(made, target)
            ops = sorted({o.op for o in choices})
            op = rng.choice(ops)
            try:
                made = apply(made, rng.choice([o for o in choices if o.op == op]), target)
            except LoopwrightError:
                continue
        key = (made.schedule.axes, made.schedule.stages)
        if key not in seen and made.schedule.opts:
            seen.add(key)
            yield made


def measure(name: str, device: Device) -> dict[str, float]:
    """Seconds by schedule."""
    kernel = plain(name)
    data = portable.dump(kernel)
    rng = random.Random(GIVEN.seed)
    found: dict[str, float] = {}
    kept: dict[str, Task] = {}
    begin = time.monotonic()
    with Worker() as worker, tempfile.TemporaryDirectory() as folder:
        for made in schedules(kernel, device, rng):
            opts = tuple(map(str, made.schedule.opts))
            task = Task(data, opts, "cpu", device.target.key, str(Path(folder) / "expected"))
            binary = worker.perform(task, 20.0).binary
            if binary is None:
                continue
            timed = replace(task, binary=binary, best_s=LONG_S)
            outcome = worker.perform(timed, MOST_S * 4)
            if outcome.times and outcome.best_s < MOST_S:
                found[" · ".join(opts)] = outcome.best_s
                kept[" · ".join(opts)] = timed
            if len(found) >= GIVEN.schedules or time.monotonic() - begin > 20 * GIVEN.schedules:
                break
        # The fast ones again, in turns: what is close must not be told apart by the hour.
        for _ in range(AGAIN):
            for text, timed in kept.items():
                if found[text] < NEAR * min(found.values()):
                    found[text] = min(found[text], worker.perform(timed, MOST_S * 4).best_s)
    return found


def row(name: str, times: dict[str, float], device: Device) -> str:
    """One line of the table."""
    kernel = plain(name)
    pairs: list[tuple[float, float, str]] = []
    for text, measured in times.items():
        try:
            made = apply_all(kernel, parse(text), device.target)
        except LoopwrightError:  # kept times of another version
            continue
        pairs.append((predict(made, device.target), measured, text))
    best = min(m for _, m, _ in pairs)
    near = [(p, m) for p, m, _ in pairs if m <= NEAR * best]
    whole = correlate([p for p, _, _ in pairs], [m for _, m, _ in pairs])
    close = correlate([p for p, _ in near], [m for _, m in near])
    first = min(pairs)[1] / best
    line = f"{name:22}{len(pairs):6}{whole:8.2f}{len(near):6}{close:8.2f}{first:8.2f}"
    worst = sorted(pairs, key=lambda p: -abs(np.log(p[0] / p[1])))[: GIVEN.show]
    return "\n".join([line, *(f"    {p * 1e3:9.3f} {m * 1e3:9.3f} {t}" for p, m, t in worst)])


def main() -> None:
    """Print the table."""
    device = registry().device("cpu")
    kept: dict[str, dict[str, float]] = {}
    if GIVEN.load:
        kept = json.loads(Path(GIVEN.load).read_text())
    print(f"{'kernel':22}{'timed':>6}{'rank r':>8}{'near':>6}{'rank r':>8}{'first':>8}")
    for name in CASES:
        if GIVEN.names and not name.startswith(tuple(GIVEN.names)):
            continue
        if not GIVEN.load:
            kept[name] = measure(name, device)
        if kept.get(name):
            print(row(name, kept[name], device), flush=True)
        if GIVEN.save:
            Path(GIVEN.save).write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
