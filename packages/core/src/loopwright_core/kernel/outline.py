"""The nest of a kernel's loops as text: in one line, or one loop a line."""

from __future__ import annotations

from collections.abc import Callable

from loopwright_core.kernel.describe import axis_size
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.nest import Leaf, LoopNode, Tree, build_nest
from loopwright_core.kernel.phases import phases
from loopwright_core.kernel.schedule import Stage
from loopwright_core.kernel.statements import statements_of

_EXPANDED = {AxisKind.UPCAST: "upcast", AxisKind.UNROLL: "unroll", AxisKind.VECTOR: "vector"}


def nest(kernel: Kernel) -> str:
    """One line, what is expanded at the leaves and what else holds behind it.

    `nest  loop i/4(25) { reduce k(64) }  upcast i(4)  prefetch C(1)`
    """
    label = _labels(kernel)

    def loops(tree: Tree) -> str:
        texts = []
        for node in tree:
            if isinstance(node, LoopNode):
                inside = loops(node.children)
                texts.append(_loop(node, kernel, label) + (f" {{ {inside} }}" if inside else ""))
        return "; ".join(texts)

    stages = [_stage(s) for s in kernel.schedule.stages if not s.at]
    launches = " then ".join([loops(_tree(launch)) for launch in phases(kernel).kernels])
    parts = ["nest ", *stages, launches]
    return "  ".join([" ".join(filter(None, parts)), *_rest(kernel, label)])


def outline(kernel: Kernel) -> str:
    """One loop or statement a line, indented by depth."""
    label = _labels(kernel)
    lines = [_stage(s) for s in kernel.schedule.stages if not s.at]

    def add(tree: Tree, depth: int) -> None:
        for node in tree:
            if isinstance(node, Leaf):
                lines.append("  " * depth + node.statement.label)
            else:
                lines.append("  " * depth + _loop(node, kernel, label))
                add(node.children, depth + 1)

    for n, launch in enumerate(phases(kernel).kernels):
        lines += ["then"] * (n > 0)
        add(_tree(launch), 0)
    return "\n".join([*lines, *_rest(kernel, label)])


def _tree(kernel: Kernel) -> Tree:
    """The nest of what keeps loops of its own: a store that a reduce takes in has none."""
    statements = statements_of(kernel)
    taken = [s.consumers[0] for s in statements if s.is_sunk]
    return build_nest([s for s in statements if s not in taken])


def _labels(kernel: Kernel) -> Callable[[Axis], str]:
    """`j/64`; `j` for the only and the innermost axis of a dim."""
    alone = {d.name for d in kernel.dims if len(kernel.schedule.of_dim(d.name)) == 1}
    return lambda a: a.dim if a.stride == 1 or a.dim in alone else a.name


def _loop(node: LoopNode, kernel: Kernel, label: Callable[[Axis], str]) -> str:
    axis = node.step.axis
    stages = [_stage(s) for s in kernel.schedule.stages if s.at == axis.name]
    return " ".join([f"{axis.kind.name.lower()} {label(axis)}({axis_size(axis)})", *stages])


def _rest(kernel: Kernel, label: Callable[[Axis], str]) -> list[str]:
    """What is no loop: `upcast i(4) j/8(2)`, `vector j(8)`, `prefetch C(1)`."""
    found = []
    for kind, word in _EXPANDED.items():
        axes = [a for a in kernel.schedule.axes if a.kind is kind]
        if axes:
            found.append(" ".join([word, *[f"{label(a)}({axis_size(a)})" for a in axes]]))
    schedule = kernel.schedule
    found += [f"prefetch {access}({steps})" for access, steps in schedule.prefetch]
    found += [f"ntstore {name}" for name in schedule.nt_stores]
    found += [f"{policy} {dim}" for dim, policy in schedule.tails]
    if schedule.tensor_core is not None:
        found.append(f"core {schedule.tensor_core.core.name}")
    return [*found, *(["no locals"] if schedule.no_locals else [])]


def _stage(stage: Stage) -> str:
    return f"[keep {stage.access}]" if stage.mode == "keep" else f"[stage {stage.access}]"
