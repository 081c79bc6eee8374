"""STAGE and KEEP: what one access touches, or a shared value, in a local array of its own."""

from __future__ import annotations

from itertools import product
from math import prod

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, const, extent_uop, toposort
from loopwright_core.kernel.copies import is_own
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.renaming import renaming
from loopwright_core.kernel.schedule import Schedule, Stage
from loopwright_core.kernel.statements import Statement, Step, link_kept
from loopwright_core.plugin.tensor_core import Digits
from loopwright_lower.cooperate import Cooperation
from loopwright_lower.grid import OF_WORKGROUP, Grid
from loopwright_lower.indices import Offsets, Place
from loopwright_lower.memory import AxisArray, axis_strides
from loopwright_lower.tensor import tile_digits
from loopwright_lower.tiles import Tiles
from loopwright_lower.values import Values
from loopwright_lower.windows import PositionArray, limits_of


def prefix_of(statement: Statement, at: str) -> tuple[Step, ...]:
    """The statement's loops down to and including axis `at`; () outside every loop."""
    if not at:
        return ()
    for n, step in enumerate(statement.path):
        if step.axis.name == at and step.owner == 0:
            return statement.path[: n + 1]
    raise fail(LoweringError, f"no loop {at} around the statement that reads the staged access")


class Stages:
    """Plans copies as statements and emits them."""

    def __init__(self, values: Values, grid: Grid | None = None) -> None:
        self.grid = grid if grid is not None and grid.stages else None
        self.together = Cooperation(values, self.grid) if self.grid is not None else None
        self.builder, self.indices, self.memory = values.builder, values.indices, values.memory
        self.values, self.dims, self.facts = values, values.dims, values.facts
        self.tiles = Tiles(values, self.together)
        self._keep_writers: dict[Statement, list[tuple[UOp, PositionArray]]] = {}
        # Of writers of shared memory: the depths where other threads begin to read.
        self._meetings: dict[Statement, set[int]] = {}
        self._extents: dict[PositionArray, tuple[int, ...]] = {}
        self._inner: dict[PositionArray, list[Axis]] = {}

    # Copies of a load

    def plan_load(
        self,
        stage: Stage,
        load: UOp,
        value: UOp,
        statements: list[Statement],
        schedule: Schedule,
    ) -> Statement:
        """A copy statement for one LOAD; its consumers then read the local array.

        `value`: what the copy holds, the load itself or what its readers convert it to.
        """
        consumers = [s for s in statements if value in s.order]
        prefixes = [prefix_of(s, stage.at) for s in consumers]
        if not consumers or any(p != prefixes[0] for p in prefixes):
            fail(LoweringError, f"STAGE {stage.access}: its readers share no loop {stage.at}")
        prefix = prefixes[0]
        names = self.facts.free(load)
        inner = [
            a for a in schedule.axes if a.dim in names and not any(p.axis == a for p in prefix)
        ]
        number = len(statements) + 1
        use = schedule.tensor_core
        tile = tile_digits(use, schedule, load, statements) if use is not None else ()
        array: AxisArray | PositionArray
        if self.together is not None:
            around = [p.axis for p in prefix if p.axis.dim in names]
            inner = [*(a for a in around if a.kind in OF_WORKGROUP), *inner]
        path = prefix
        if stage.mode == "halo":
            array = self._halo_array(load, inner)
        elif self.together is not None:
            array = self._panel(stage, load, inner, shared=True)
        else:
            order = _by_names(inner, stage.order) if stage.order else inner
            own = [Step(a, number) for a in order if not a.kind.is_expanded]
            missing = [a for a in inner if not a.kind.is_expanded and a not in order]
            path = (*prefix, *own, *(Step(a, number) for a in missing))
            array = self._panel(stage, value, inner, tile=tile)
        copy = Statement(number, "copy", load, (value,), names, (), path)
        below = load.src if value is load else (value,)
        copy.order = [
            n for n in toposort(below) if n.op not in _NOT_VALUES and not self.facts.is_index[n]
        ]
        copy.copy = array
        if value is not load:
            for s in consumers:
                needed = set(toposort(s.values, lambda n: n is not value))
                s.order = [n for n in s.order if n in needed]
        if self.together is not None and stage.mode != "halo":
            self.together.plan(copy, inner, _by_names(inner, stage.order))
        for s in consumers:
            s.reads.append(copy)
            copy.consumers.append(s)
        return copy

    def plan_store(
        self, stage: Stage, store: Statement, number: int, schedule: Schedule
    ) -> Statement:
        """A statement that writes a STORE's results, which go to a local array until then."""
        if schedule.tensor_core is not None:
            fail(LoweringError, f"STAGE {stage.access}: a tensor core's results are stored at once")
        prefix = prefix_of(store, stage.at)
        inner = [
            a for a in schedule.axes if a.dim in store.free and all(p.axis != a for p in prefix)
        ]
        path = prefix
        if self.together is not None:
            around = [p.axis for p in prefix if p.axis.dim in store.free]
            inner = [*(a for a in around if a.kind in OF_WORKGROUP), *inner]
        else:
            order = _by_names(inner, stage.order) if stage.order else inner
            order = [*order, *(a for a in inner if a not in order)]
            path = (*prefix, *(Step(a, number) for a in order if not a.kind.is_expanded))
        writer = Statement(number, "copy", store.node, (), store.free, (), path)
        array = self._panel(stage, store.node.src[0], inner, shared=self.together is not None)
        self.tiles.plan(store, writer, array)
        if self.together is not None:
            self.together.plan(writer, inner, _by_names(inner, stage.order))
        return writer

    def _panel(
        self,
        stage: Stage,
        load: UOp,
        inner: list[Axis],
        shared: bool = False,
        tile: tuple[tuple[Axis, Digits], ...] = (),
    ) -> AxisArray:
        """The array of a copy, over the axes inside it; whole tiles of a tensor core innermost."""
        layout = _by_names(inner, stage.layout) if stage.layout else _lanes_last(inner)
        layout = [*(a for a in inner if a not in layout), *layout]
        tiled = [a for a, _ in tile]
        outer = [a for a in layout if a not in tiled]
        strides, size = axis_strides((*outer, *tiled))
        storage = self.builder.local(f"{stage.access}_tile", load.dtype, size, shared)
        return AxisArray(storage, strides[: len(outer)], tile)

    def _halo_array(self, load: UOp, inner: list[Axis]) -> PositionArray:
        """Extents per buffer dimension: `h + a - 1` over a block of 8 rows and 3 taps is 10."""
        index = load.src[0]
        if limits_of(index) is None:
            fail(
                LoweringError,
                "a halo STAGE is masked by bounds of single indices, but this access is by more",
                fix="Stage it as a panel",
            )
        extents = []
        for i in index.src[1:-1]:
            affine = integer.affine(i)
            extent = 1
            for atom, coef in affine.terms:
                if atom.op is not Op.DIM:
                    fail(LoweringError, "a halo STAGE needs an affine access")
                extent += abs(coef) * (_span(inner, atom.arg.name) - 1)
            extents.append(extent)
        strides, size = [], 1
        for extent in reversed(extents):
            strides.append(size)
            size *= extent
        storage = self.builder.local("halo", load.dtype, size, self.together is not None)

        def locate(n: int, offsets: Offsets, vector: str | None) -> Place:
            return self.indices.at(index.src[1 + n], offsets, {}, vector)

        array = PositionArray(storage, tuple(reversed(strides)), locate, [])
        self._extents[array] = tuple(extents)
        self._inner[array] = inner
        return array

    def emit_copy(self, copy: Statement) -> None:
        """The copy's leaf."""
        array = copy.copy
        (held,) = copy.values
        if held is not copy.node:  # what an earlier copy of it holds is no longer there
            self.values.arrays.pop(held, None)
        if isinstance(array, PositionArray):
            self._emit_halo(copy, array)
        elif self.together is not None:
            self.together.emit(copy)
            return
        else:
            assert isinstance(array, AxisArray)
            self._emit_panel(copy, array)
        self.values.arrays[held] = (array,)

    def _emit_panel(self, copy: Statement, array: AxisArray) -> None:
        """Every expanded position; what does not exist is filled, so readers need no mask."""
        load, (held,), vector = copy.node, copy.values, self.values.vector_dim(copy)
        lanes = self.dims[vector].lanes if vector else 1
        for choice in product(*[self.dims[d].all_offsets for d in copy.free]):
            offsets = dict(zip(copy.free, choice, strict=True))
            exists = all(o in self.dims[d].offsets for d, o in offsets.items())
            if exists:
                known = self.values.evaluate(copy, offsets)
                value = known.get(held) or self.values.load(load, known, offsets, vector)
            else:
                value = load.src[1] if held is load else const(0, held.dtype)
            place = array.place(self.dims, offsets, vector)
            self.memory.store(array.storage, place, value, lanes, None, None)

    def _emit_halo(self, copy: Statement, array: PositionArray) -> None:
        """Every element of the box, in loops of its own or dealt out to all threads."""
        array.origins = [self._origin(i, self._inner[array]) for i in copy.node.src[0].src[1:-1]]
        extents = self._extents[array]
        if self.together is not None:
            with self.together.numbered(prod(extents), copy) as number:
                steps: list[UOp] = []
                for extent in reversed(extents):
                    steps.append(integer.mod(number, extent))
                    number = integer.floordiv(number, extent)
                self._halo_element(copy, array, steps[::-1])
            return
        b, steps, opened = self.builder, [], 0
        for n, extent in enumerate(extents):
            step = integer.add(0, 0)
            if extent > 1:
                loop = b.open_loop(const(extent, b.int_dtype), f"h{n}")
                step = UOp(Op.RANGE, dt.index, (const(extent, dt.index),), loop.arg)
                self.indices.loops[step] = loop
                opened += 1
            steps.append(step)
        self._halo_element(copy, array, steps)
        for _ in range(opened):
            b.close()

    def _halo_element(self, copy: Statement, array: PositionArray, steps: list[UOp]) -> None:
        """One element of the box; where the access is masked, its fill stands."""
        index, fill = copy.node.src
        offset, local, valid = integer.add(0, 0), integer.add(0, 0), TRUE
        limits = limits_of(index) or []
        for n, (origin, step) in enumerate(zip(array.origins, steps, strict=True)):
            at = integer.add(origin, step)
            size = extent_uop(index.arg[n])
            valid = integer.and_(valid, integer.ge(at, 0))
            valid = integer.and_(valid, integer.lt(at, size))
            for limit in limits:
                if limit.dimension == n:
                    valid = integer.and_(valid, limit.holds(at))
            offset = integer.add(integer.mul(offset, size), at)
            local = integer.add(local, integer.mul(step, array.strides[n]))
        mask = None if valid is TRUE else self.indices.emit(valid)
        value = self.memory.load(index.src[0], Place(offset, 0), 1, mask, fill)
        self.memory.store(array.storage, Place(local, 0), value, 1, None, None)

    def _origin(self, index: UOp, inner: list[Axis]) -> UOp:
        """The smallest value of an affine index over the inner axes, at the present loops."""
        affine = integer.affine(index)
        at = integer.add(0, affine.const)
        for atom, coef in affine.terms:
            state = self.dims[atom.arg.name]
            start = integer.add(0, 0)
            for e in state.entered:
                if e.axis not in inner:  # threads that copy together stand at different steps
                    start = integer.add(start, integer.mul(e.value, state.step(e.axis)))
            if state.is_reversed:
                start = integer.sub(integer.sub(state.size, 1), start)
            sign = -coef if state.is_reversed else coef
            at = integer.add(at, integer.mul(start, coef))
            if sign < 0:
                at = integer.add(at, sign * (_span(inner, atom.arg.name) - 1))
        return at

    # Kept values

    def plan_keep(
        self,
        stage: Stage,
        instances: tuple[UOp, ...],
        statements: list[Statement],
        schedule: Schedule,
    ) -> None:
        """One instance writes the value to a local array, the others read it there: each thread
        what it wrote itself, or all threads what they wrote together."""
        found = link_kept(instances, statements, self.facts.free)
        if found is None:
            fail(LoweringError, f"KEEP {stage.access}: no statement computes it exactly once")
        writer, owner, users = found
        prefix = prefix_of(owner, stage.at)
        names = {v: self._names(stage, writer, v) for v, _ in users}
        dims = [d for found in names.values() for d in found]
        shared = self.grid is not None and not is_own(schedule, stage.at, dims)
        outer = {p.axis for p in prefix if not (shared and p.axis.kind in OF_WORKGROUP)}
        sizes = [self._room(same, outer) for same in zip(*names.values(), strict=True)]
        strides, size = [], 1
        for n in reversed(sizes):
            strides.append(size)
            size *= n
        storage = self.builder.local(stage.access, writer.dtype, size, shared)
        written = self._position_array(storage, tuple(reversed(strides)), names[writer], outer)
        self._keep_writers.setdefault(owner, []).append((writer, written))
        for value, reader in users:
            if value is writer:
                continue
            if prefix_of(reader, stage.at) != prefix:
                fail(LoweringError, f"KEEP {stage.access}: a reader lies outside {stage.at}")
            array = self._position_array(storage, tuple(reversed(strides)), names[value], outer)
            self.values.arrays[value] = (array,)
            if shared:
                self._meetings.setdefault(owner, set()).add(_common_depth(owner, reader))

    def _names(self, stage: Stage, writer: UOp, value: UOp) -> tuple[str, ...]:
        """The dims of an instance, in the order of the writer's that they stand for."""
        same = renaming(writer, value)
        if same is None:
            fail(LoweringError, f"KEEP {stage.access}: a reader is at a shifted place")
        if any(self.dims[a].is_reversed != self.dims[b].is_reversed for a, b in same.items()):
            fail(LoweringError, f"KEEP {stage.access}: a reader runs the other way than its writer")
        return tuple([same[d] for d in self.facts.free(writer)])

    def _room(self, same: tuple[str, ...], outer: set[Axis]) -> int:
        """Elements along a dim of the value, whole blocks of every instance's included."""
        return max(_span([a for a in self.dims[d].axes if a not in outer], d) for d in same)

    def _position_array(
        self, storage: UOp, strides: tuple[int, ...], names: tuple[str, ...], outer: set[Axis]
    ) -> PositionArray:
        def locate(n: int, offsets: Offsets, vector: str | None) -> Place:
            state = self.dims[names[n]]
            at = integer.add(0, offsets.get(names[n], 0))
            for e in state.entered:
                if e.axis not in outer:
                    at = integer.add(at, integer.mul(e.value, state.step(e.axis)))
            is_lanes = names[n] == vector and state.vector is not None
            return Place(at, state.vector.stride if is_lanes and state.vector else 0)

        origins = [integer.add(0, 0)] * len(strides)
        return PositionArray(storage, strides, locate, origins, names)

    def keeps(self, statement: Statement) -> bool:
        """Whether the statement writes values that others read."""
        return statement in self._keep_writers

    def meet(self, statements: list[Statement], depth: int) -> bool:
        """Whether what some of them, in one loop or leaf at this depth, keep is read behind it by
        other threads, which wait for it there (and whose readers are waited for before it)."""
        return any(depth in self._meetings.get(s, ()) for s in statements)

    def keep(self, statement: Statement, offsets: Offsets, known: dict[UOp, UOp]) -> None:
        """After a leaf's values: write those that are kept."""
        if statement in self._meetings and self.grid is not None:
            runs = self.grid.is_first_thread(statement.path, grouped=True)
            if runs is not TRUE:  # threads beyond the statement's own repeat another's work
                self.builder.open_if(self.indices.emit(runs))
                self._keep(statement, offsets, known)
                self.builder.close()
                return
        self._keep(statement, offsets, known)

    def _keep(self, statement: Statement, offsets: Offsets, known: dict[UOp, UOp]) -> None:
        for value, array in self._keep_writers.get(statement, ()):
            vector = self.values.vector_dim(statement)
            vector = vector if vector in self.facts.free(value) else None
            lanes = self.dims[vector].lanes if vector else 1
            place = array.place(self.dims, offsets, vector)
            emitted = self.values.operand(value, known, offsets, vector)
            self.memory.store(array.storage, place, emitted, lanes, None, None)


_NOT_VALUES = frozenset({Op.CONST, Op.INDEX, Op.BUFFER, Op.DIM, Op.VAR})


def _common_depth(a: Statement, b: Statement) -> int:
    """How many loops two statements share."""
    steps = zip(a.path, b.path, strict=False)
    return next((n for n, (x, y) in enumerate(steps) if x != y), min(len(a.path), len(b.path)))


def _span(inner: list[Axis], dim: str) -> int:
    """How many positions of a dim the inner axes cover."""
    span = 1
    for a in inner:
        if a.dim == dim:
            span += a.stride * (int(a.size) - 1)  # type: ignore[arg-type]
    return span


def _lanes_last(axes: list[Axis]) -> list[Axis]:
    return sorted(axes, key=lambda a: a.kind is AxisKind.VECTOR)


def _by_names(axes: list[Axis], names: tuple[str, ...]) -> list[Axis]:
    """Axes by their texts; `j` alone is the only or innermost axis of the dim."""
    found = []
    for name in names:
        for a in axes:
            inner = [x for x in axes if x.dim == a.dim]
            if a.name == name or (a.dim == name and a.stride == min(x.stride for x in inner)):
                found.append(a)
                break
        else:
            fail(LoweringError, f"STAGE names axis {name}, which does not lie inside it")
    return found


def check_dims(dims: tuple[Dim, ...]) -> None:
    """Every dim is positive: arrays of size 0 need no kernel."""
    for d in dims:
        if d.max_size < 1:
            fail(LoweringError, f"dim {d.name} has size 0: nothing is to be computed")
