"""The schedule: how a kernel's dims run, as one small immutable value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from loopwright_core.ir.dtype import DType
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.plugin.tensor_core import TensorCore


@dataclass(frozen=True, slots=True, order=True)
class Opt:
    """One scheduling step; `str(opt)` is the text users write: `UPCAST i 4`.

    `amount` 0 is the whole axis. `arg` holds what ORDER, STAGE, KEEP, PREFETCH and TC say beyond.
    """

    op: str
    axis: str = ""
    amount: int | None = None
    arg: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [self.op]
        if self.axis:
            words.append(self.axis)
        if self.amount is not None:
            words.append(str(self.amount))
        return " ".join([*words, *self.arg])


@dataclass(frozen=True, slots=True)
class Stage:
    """A copy of what one access touches inside axis `at` (an axis name, e.g. `k/1024`).

    `access` is `B`, `B.1`, ... for a load, the buffer's name for a store, or `v0`, `v1`, ... for a
    KEEP value. `layout`: the axes of the local buffer, outermost first; `order`: the copy's own
    loops, outermost first; both name axes inside `at`. Empty: the schedule's order.
    `mode` is "panel", "halo" or "keep". `at` "" is outside every loop. `dtype`: what a copy of
    converted elements holds, where every reader converts them alike; None: elements as they lie.
    """

    access: str
    at: str
    mode: str = "panel"
    layout: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class TensorUse:
    """What a schedule's TENSOR axes are bound to: the rows of `core` run along output dim `m`,
    its columns along output dim `n`, and the reduce dims that have a TENSOR axis are its K.

    `multiplies` false ("shape"): the same axes and threads, but plain multiplications.
    """

    core: TensorCore
    m: str
    n: str
    multiplies: bool = True

    def __str__(self) -> str:
        return self.core.name if self.multiplies else f"{self.core.name}, plain multiplications"

    def is_looped(self, axis: Axis) -> bool:
        """Whether a TENSOR axis is a loop of the statements around the core's: where one thread
        does all, and along K where nothing but the axes is the core's."""
        return self.core.is_tile or not (self.multiplies or axis.dim in (self.m, self.n))


@dataclass(frozen=True, slots=True)
class Schedule:
    """`axes` in nest order, outermost first; TENSOR axes are inside all other loops, expanded axes
    have no place and stand last.

    `opts` is the list that made it, for replay and display. `prefetch`: (access, steps) pairs.
    `nt_stores`: buffer names stored around the cache. `tails`: (dim, policy) pairs, of dims whose
    ragged end a step says something about (see `kernel/tails.py`).
    """

    axes: tuple[Axis, ...]
    stages: tuple[Stage, ...] = ()
    opts: tuple[Opt, ...] = ()
    prefetch: tuple[tuple[str, int], ...] = ()
    nt_stores: tuple[str, ...] = ()
    tensor_core: TensorUse | None = None
    no_locals: bool = False
    tails: tuple[tuple[str, str], ...] = ()

    def of_dim(self, dim: str) -> tuple[Axis, ...]:
        """The axes of one dim, outermost stride first."""
        return tuple(sorted((a for a in self.axes if a.dim == dim), key=lambda a: -a.stride))

    def with_axes(self, axes: tuple[Axis, ...]) -> Schedule:
        """The same schedule over other axes, loop-kind axes first."""
        loops = [a for a in axes if not a.kind.is_expanded]
        use = self.tensor_core
        if use is not None:
            tensor = {use.m: 1, use.n: 2}
            loops.sort(key=lambda a: tensor.get(a.dim, 3) if a.kind is AxisKind.TENSOR else 0)
        if len(loops) < len(axes):
            loops += [a for a in axes if a.kind.is_expanded]
        return self._changed(tuple(loops), self.opts, self.stages)

    def with_opts(self, opts: tuple[Opt, ...]) -> Schedule:
        """The same schedule, made by another list."""
        return self._changed(self.axes, opts, self.stages)

    def with_stage(self, made: Stage) -> Schedule:
        """The same schedule with one more copy or kept value."""
        return self._changed(self.axes, self.opts, (*self.stages, made))

    def tail(self, dim: str) -> str:
        """What was said of a dim's ragged end: a policy, or "" for the usual one."""
        return dict(self.tails).get(dim, "")

    def with_tail(self, dim: str, policy: str) -> Schedule:
        """The same schedule, a dim's ragged end handled so."""
        return replace(self, tails=tuple({**dict(self.tails), dim: policy}.items()))

    def _changed(
        self, axes: tuple[Axis, ...], opts: tuple[Opt, ...], stages: tuple[Stage, ...]
    ) -> Schedule:
        # dataclasses.replace takes longer than all the rest of a step.
        return Schedule(
            axes,
            stages,
            opts,
            self.prefetch,
            self.nt_stores,
            self.tensor_core,
            self.no_locals,
            self.tails,
        )

    def explain(self) -> tuple[str, ...]:
        """The decisions in sentences, as far as they can be told without the kernel."""
        from loopwright_core.kernel.explain import explain_schedule

        return explain_schedule(self)

    def __str__(self) -> str:
        return " · ".join(map(str, self.opts))


def initial_schedule(dims: tuple[Dim, ...], has_local: bool = False) -> Schedule:
    """One axis per dim, in the order given: REDUCE, LOOP, or GLOBAL where there are workgroups."""
    outer = AxisKind.GLOBAL if has_local else AxisKind.LOOP
    return Schedule(
        tuple(Axis(d.name, 1, d.size, AxisKind.REDUCE if d.is_reduce else outer) for d in dims)
    )
