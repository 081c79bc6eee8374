"""An expression followed through every stage, with all that was decided on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loopwright.evaluate import check_opts, distinct_names, make_plan, options_of
from loopwright.named import telling_schedule
from loopwright.options import note_kernel
from loopwright_core import dump, notes, pipeline, progress
from loopwright_core.dump import AccessRow
from loopwright_core.ir.fired import fired_rules
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.show import listed, show
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.kernel.outline import nest, outline
from loopwright_core.notes import Note
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.program.program import Program

STAGES = ("fuse", "index", "schedule", "lower", "render")


@dataclass(frozen=True)
class Stage:
    """One stage of one kernel. `rules`: how often each rewrite rule fired in it, by name."""

    name: str
    before: str
    after: str
    rules: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Step:
    """One scheduling step: the nest before and after, one loop a line and (`nest`) in one line,
    and what can be said only after it."""

    opt: str
    before: str
    after: str
    nest: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class KernelRoad:
    """One kernel at every stage. `why`: the reasons for its schedule, one sentence each.
    `n_uses`: how often it is launched."""

    kernel: Kernel
    program: Program
    source: str
    stages: tuple[Stage, ...]
    steps: tuple[Step, ...]
    why: tuple[str, ...]
    n_uses: int

    @property
    def accesses(self) -> list[AccessRow]:
        return dump.access_rows(self.kernel)

    @property
    def intensity(self) -> float:
        """Floating point operations per byte, by counting."""
        counts = self.program.estimate
        return counts.flops / max(counts.bytes, 1)

    @property
    def launch(self) -> str:
        """How each phase is launched, one sentence."""
        return f"It runs {', then '.join(map(dump.launch_text, self.program.phases))}."


@dataclass(frozen=True)
class Decision:
    """What fusion did with one value: its place in the expression's listing, -1 if it has none."""

    place: int
    value: str
    text: str


@dataclass(frozen=True)
class Road:
    """`expression`: the values asked for, as one listing."""

    expression: str
    decisions: tuple[Decision, ...]
    kernels: tuple[KernelRoad, ...]


def follow(uops: Sequence[UOp], device_name: str, options: Options) -> Road:
    """Every kernel of the values, built anew for the device. No compiler runs."""
    told: list[Note] = []
    with notes.listening(told.append):
        plan = make_plan(uops, device_name)
    device = registry().device(device_name)
    kernels: dict[tuple[UOp, object], KernelRoad] = {}
    check_opts(plan, options)
    for fused, wanted, name in distinct_names(plan, lambda ast: pipeline.index(ast).name):
        note_kernel(name)
        own = fused.ast, fused.opts
        known = kernels.get(own)
        if known is None:
            with telling_schedule(fused):
                kernels[own] = _follow_kernel(fused.ast, device, options_of(fused, options), wanted)
        else:
            kernels[own] = replace(known, n_uses=known.n_uses + 1)
    return Road(show(tuple(uops)), _decisions(uops, told), tuple(kernels.values()))


def _follow_kernel(ast: UOp, device: Device, options: Options, name: str | None) -> KernelRoad:
    told: list[Note] = []
    searched: list[progress.Progress] = []
    rules = _Rules()
    with notes.listening(told.append), progress.listening(searched.append):
        plain = pipeline.index(ast, name)
        of_index = rules.since()
        kernel = pipeline.schedule(plain, device.target, options)
        of_schedule = rules.since()
        program = pipeline.lower(kernel, device.target)
        of_lower = rules.since()
        source = pipeline.render(program, device)
        of_render = rules.since()
    texts = [
        dump.dump_ast(ast),
        dump.dump_kernel(plain),
        dump.dump_schedule(kernel),
        dump.dump_program(program),
        source,
    ]
    fired = [(), of_index, of_schedule, of_lower, of_render]
    before = ["", texts[0], dump.dump_schedule(plain), texts[2], texts[3]]
    stages = [Stage(*row) for row in zip(STAGES, before, texts, fired, strict=True)]
    why = [note.text for note in told if note.stage == "schedule"]
    why += [f"beam search: {p.done}" for p in searched if p.done]
    return KernelRoad(
        kernel,
        program,
        source,
        tuple(stages),
        _steps(plain, kernel, device, options),
        tuple(why) or (_reason(kernel, options),),
        1,
    )


def _reason(kernel: Kernel, options: Options) -> str:
    if options.given(kernel.name) is not None:
        return "the steps were given"
    if options.schedule == "none":
        return "the option schedule is none: every dim is a loop as it stands"
    return "no strategy said why"


def _steps(plain: Kernel, kernel: Kernel, device: Device, options: Options) -> tuple[Step, ...]:
    """The schedule's steps applied one after another to the kernel as it was."""
    texts = tuple(map(str, kernel.schedule.opts))
    steps = []
    last = with_grid(plain, device.target)
    for n, text in enumerate(texts, 1):
        given = replace(options, schedule="heuristic", opts=texts[:n], opts_by_kernel=())
        made = pipeline.schedule(plain, device.target, given)
        known = set(last.explain())
        new = tuple([sentence for sentence in made.explain() if sentence not in known])
        steps.append(Step(text, outline(last), outline(made), nest(made), new))
        last = made
    return tuple(steps)


def _decisions(uops: Sequence[UOp], told: Sequence[Note]) -> tuple[Decision, ...]:
    places = {node: place for place, node in enumerate(listed(uops))}
    found = [
        Decision(places.get(note.subject, -1), _value(note.subject), note.text)
        for note in told
        if note.stage == "fuse"
    ]
    return tuple(sorted(found, key=lambda d: d.place))


def _value(node: UOp) -> str:
    return f"{node.op.name} {node.dtype}{list(shape_of(node))}"


class _Rules:
    """Which rewrite rules fire between two looks."""

    def __init__(self) -> None:
        self._last = fired_rules()

    def since(self) -> tuple[tuple[str, int], ...]:
        now = fired_rules()
        new = {name: n - self._last.get(name, 0) for name, n in now.items()}
        self._last = now
        return tuple(sorted(((r, n) for r, n in new.items() if n), key=lambda r: (-r[1], r[0])))
