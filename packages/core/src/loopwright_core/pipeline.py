"""The road from a kernel AST to a running kernel: the stages in order, one hook call a line.

    kernel AST --index--> Kernel --schedule--> Kernel --lower--> Program --render--> text
    text --compile--> binary --load--> something the device launches        (built.py, on demand)

Fusion, which cuts a user's graph into kernel ASTs, comes before this, in the array package.
"""

from __future__ import annotations

from loopwright_core.built import Built, Memo
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_core.reproduce import Recipe, reproducible
from loopwright_core.stage import run_device_stage, run_optional_stage, run_stage

_memo = Memo()


def build(ast: UOp, device: Device, options: Options, name: str | None = None) -> Built:
    """A kernel AST as text for that device; equal arguments give the same object.

    No compiler runs before `Built.binary`, `Built.loaded` or `Built.launch` is asked for.
    """
    found = _memo.get(ast, device, options, name)
    if found is not None:
        return found
    recipe = Recipe(ast, device, options, name)
    with reproducible(recipe):
        kernel = index(ast, name)
        kernel = schedule(kernel, device.target, options)
        program = lower(kernel, device.target)
        source = render(program, device)
    return _memo.put(Built(recipe, kernel, program, source))


def index(ast: UOp, name: str | None = None) -> Kernel:
    """Movement ops become index expressions over dims."""
    made: Kernel = run_stage("index", ast, lambda hook: hook.loopwright_index(ast=ast, name=name))
    return made


def schedule(kernel: Kernel, target: Target, options: Options) -> Kernel:
    """How the loops run: given opts, strategies or a search; without a scheduler, as it stands."""
    return run_optional_stage(
        "schedule",
        kernel,
        lambda hook: hook.loopwright_schedule(kernel=kernel, target=target, options=options),
        wanted=options.schedule == "beam" or bool(options.given(kernel.name)),
    )


def lower(kernel: Kernel, target: Target) -> Program:
    """Axes become loops, lanes and threads: flat lists of the target's own ops."""
    program: Program = run_stage(
        "lower", kernel, lambda hook: hook.loopwright_lower(kernel=kernel, target=target), target
    )
    return program


def render(program: Program, device: Device) -> str:
    """The program as text in the device's language."""
    return run_device_stage("render", program, lambda: device.render(program), device)


def forget_built() -> None:
    """Drop every kernel built so far in this process: for tests and measurements of building."""
    _memo.clear()
