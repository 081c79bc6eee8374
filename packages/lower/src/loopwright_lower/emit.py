"""From the nest tree to the program's list: loops, peeled tails, guards, leaves."""

from __future__ import annotations

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, extent_uop
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel, buffer_name
from loopwright_core.kernel.nest import Leaf, LoopNode, Tree
from loopwright_core.kernel.statements import Statement
from loopwright_lower.accumulate import Accumulators
from loopwright_lower.blocks import block_depths
from loopwright_lower.dims import DimState, Entered, Trips
from loopwright_lower.grid import OF_WORKGROUP, PARALLEL, Grid
from loopwright_lower.group import Groups
from loopwright_lower.prefetch import Prefetches
from loopwright_lower.scan import Scans
from loopwright_lower.stage import Stages
from loopwright_lower.tensor import Products


class Emitter:
    """Walks the tree once; every loop, guard and leaf in the order they run."""

    def __init__(
        self,
        kernel: Kernel,
        accumulators: Accumulators,
        stages: Stages,
        grid: Grid | None = None,
    ) -> None:
        self.grid = grid
        if grid is not None:
            accumulators.is_first = grid.is_first
            accumulators.groups = Groups(accumulators.values, grid)
        values = accumulators.values
        self.builder, self.indices, self.dims = values.builder, values.indices, values.dims
        self.values, self.accumulators, self.stages = values, accumulators, stages
        self.scans = Scans(accumulators)
        use = kernel.schedule.tensor_core
        self.products: Products | None = None
        if use is not None:
            self.products = Products(accumulators, use, grid.core_lane if grid else None)
        self.prefetches = Prefetches(kernel, accumulators)
        accumulators.after_values = stages.keep
        self.n_bindings = 0
        self.nt_stores = frozenset(kernel.schedule.nt_stores)
        self.streamed = frozenset(
            b for b in kernel.buffers if buffer_name(b.arg.slot) in self.nt_stores
        )

    def prepare(self, statements: list[Statement]) -> list[Statement]:
        """Choose where escaping reduces live; the statements that remain to be nested."""
        sunk: set[Statement] = set()
        for s in statements:
            if s.kind == "scan":
                self.scans.check(s)
                self.scans.declare_arrays(s)
            elif self.products is not None and s.by_core and self.products.core.is_tile:
                store = self.products.declare(s, self.streamed)
                if store is not None:
                    sunk.add(store)
            elif s.kind == "reduce" and s.escapes():
                if s.is_sunk:
                    self.accumulators.sinks[s] = s.consumers[0]
                    sunk.add(s.consumers[0])
                else:
                    self.accumulators.declare_arrays(s)
        return [s for s in statements if s not in sunk]

    def tree(self, nodes: Tree, depth: int) -> None:
        """Emit the children of one tree level; accumulators open around the child they span."""
        for node in nodes:
            inside = [node.statement] if isinstance(node, Leaf) else node.statements
            opening = [s for s in inside if s.kind in ("reduce", "scan") and s.open_depth == depth]
            blocks = [s for s in inside if depth in block_depths(s)]
            meets = self.stages.meet(inside, depth) or any(
                self.accumulators.shared_depths.get(s) == depth for s in inside
            )
            if meets:
                self.builder.barrier()
            for s in opening:
                self.prefetches.before(s)
                self._owner(s).open(s)
            for s in blocks:
                self.accumulators.open_block(s)
            if isinstance(node, Leaf):
                self.leaf(node.statement)
            else:
                self.loop(node, depth)
            for s in blocks:
                self.accumulators.close_block(s)
            for s in opening:
                self._close(s)
            if meets:
                self.builder.barrier()

    def _close(self, statement: Statement) -> None:
        """What other threads read is written between barriers, those that are needed stay."""
        shared = statement in self.accumulators.shared_depths
        if shared:
            self.builder.barrier()
        self._owner(statement).close(statement)
        if shared:
            self.builder.barrier()

    def _owner(self, statement: Statement) -> Accumulators | Scans | Products:
        if statement.by_core and self.products is not None:
            return self.products
        return self.scans if statement.kind == "scan" else self.accumulators

    def leaf(self, statement: Statement) -> None:
        self.prefetches.inside(statement)
        if statement.kind == "copy":
            if self.stages.tiles.writes(statement):
                self._write_tile(statement)
            else:
                self.stages.emit_copy(statement)
        elif statement.kind == "store":
            self._store(statement)
        else:
            self._owner(statement).step(statement)

    def _store(self, statement: Statement) -> None:
        vector = self.values.vector_dim(statement)
        node = statement.node
        name = buffer_name(node.src[0].src[0].arg.slot)
        hint = "nt" if name in self.nt_stores else None
        if self.stages.keeps(statement):  # each thread its own, though one alone stores the result
            for offsets in self.accumulators.coordinates(statement.free):
                known = self.values.evaluate(statement, offsets)
                self.stages.keep(statement, offsets, known)
        with self.accumulators.once(statement):
            if self.stages.tiles.fills(statement):
                for offsets in self.accumulators.coordinates(statement.free):
                    known = self.values.evaluate(statement, offsets)
                    self.stages.tiles.fill(statement, offsets, known, vector)
                return
            if self.values.runs is None:
                for offsets in self.accumulators.coordinates(statement.free):
                    known = self.values.evaluate(statement, offsets)
                    self.values.store(node, known, offsets, vector, hint)
                return
            together = []
            for offsets in self.accumulators.coordinates(statement.free):
                known = self.values.evaluate(statement, offsets)
                together.append((offsets, known))
            self.values.store_all(node, together, vector, hint)

    def _write_tile(self, writer: Statement) -> None:
        """Write out what a staged store has put in its tile."""
        name = buffer_name(writer.node.src[0].src[0].arg.slot)
        coordinates = self.accumulators.coordinates(writer.free)
        self.stages.tiles.write(writer, coordinates, "nt" if name in self.nt_stores else None)

    # Loops

    def loop(self, node: LoopNode, depth: int) -> None:
        axis = node.step.axis
        state = self.dims[axis.dim]
        if self.grid is not None and axis.kind in PARALLEL:
            self._parallel(node, depth, self.grid)
            return
        if self.products is not None and self.products.are_lanes(node):
            self._lanes(node, depth)
            return
        trips = state.trips(axis, node.is_last)
        if self._differs(state) or (axis.kind is AxisKind.TENSOR and node.step.owner):
            # Threads stay together: each runs every step, under masks. So do copies of tiles,
            # which a tensor core reads whole.
            whole = extent_uop(axis.size)
            trips = Trips(whole, whole, False)
        if axis.kind is AxisKind.THREAD and axis.size != 1:
            self._thread(node, depth, trips.total, trips.full, trips.has_tail)
            return
        _, most = integer.bounds(trips.full)
        if most > 0:
            self._whole(node, depth, trips.full, trips.total)
        if trips.has_tail:
            self._tail(node, depth, trips.full, trips.total, trips.full)

    def _whole(self, node: LoopNode, depth: int, count: UOp, total: UOp) -> None:
        """The loop over whole blocks; a single step needs no loop."""
        axis = node.step.axis
        if count.op is Op.CONST and count.arg == 1:
            zero = integer.add(0, 0)
            self._inside(node, depth, zero, TRUE, integer.eq(total, 1), None)
            return
        emitted = self.indices.emit(count)
        loop = self.builder.open_loop(emitted, _loop_name(axis))
        variable = UOp(Op.RANGE, dt.index, (count,), loop.arg)
        self.indices.loops[variable] = loop
        first = integer.eq(variable, 0)
        last = integer.eq(variable, integer.sub(total, 1))
        self._inside(node, depth, variable, first, last, None)
        self.builder.close()

    def _lanes(self, node: LoopNode, depth: int) -> None:
        """The steps of an axis at once, as the lanes of a vector."""
        state = self.dims[node.step.axis.dim]
        before = state.binding
        self.n_bindings += 1
        state.binding, state.vector = self.n_bindings, node.step.axis
        self.tree(node.children, depth + 1)
        state.binding, state.vector = before, None

    def _tail(self, node: LoopNode, depth: int, value: UOp, total: UOp, full: UOp) -> None:
        """The partial block behind the whole ones, where there is one."""
        state = self.dims[node.step.axis.dim]
        left = int(state.dim.size) % state.block  # type: ignore[arg-type]
        condition = integer.lt(full, total)
        if condition is not TRUE:
            self.builder.open_if(self.indices.emit(condition))
        first = integer.eq(full, 0)
        self._inside(node, depth, value, first, TRUE, left)
        if condition is not TRUE:
            self.builder.close()

    def _thread(self, node: LoopNode, depth: int, total: UOp, full: UOp, has_tail: bool) -> None:
        """One slice per worker thread: the axis' value is the thread's number."""
        count = int(node.step.axis.size)  # type: ignore[arg-type]
        value = UOp(Op.SPECIAL, dt.index, (), ("thread", count))
        runs = integer.lt(value, full)
        never = integer.eq(integer.add(0, 0), 1)
        if runs is not never:
            if runs is not TRUE:
                self.builder.open_if(self.indices.emit(runs))
            self._inside(node, depth, value, TRUE, TRUE, None)
            if runs is not TRUE:
                self.builder.close()
        if has_tail:
            state = self.dims[node.step.axis.dim]
            left = int(state.dim.size) % state.block  # type: ignore[arg-type]
            condition = integer.and_(integer.eq(value, full), integer.lt(full, total))
            if condition is not never:
                self.builder.open_if(self.indices.emit(condition))
                self._inside(node, depth, value, TRUE, TRUE, left)
                self.builder.close()

    def _differs(self, state: DimState) -> bool:
        """Whether threads that must stay together would run a loop of this dim unequally often."""
        if self.grid is None or not self.grid.meets or state.mode != "guard":
            return False
        return any(e.axis.kind in OF_WORKGROUP for e in state.entered)

    def _parallel(self, node: LoopNode, depth: int, grid: Grid) -> None:
        """An axis whose value is an id of the launch."""
        axis = node.step.axis
        state = self.dims[axis.dim]
        value, runs = grid.bound(node.statements[0].path, depth)
        outermost = all(a.stride <= axis.stride or a.size == 1 for a in state.axes)
        if state.mode != "exact" and not state.dim.is_symbolic:
            # Beyond an outermost axis no position exists: whoever asks that asks enough. A part of
            # a split reduce stores its value wherever its steps end.
            if outermost and not any(axis.dim in s.bound for s in node.statements):
                runs = TRUE
            if state.mode == "peel" and node.is_last:
                at = integer.add(state.base, integer.mul(value, axis.stride))
                runs = integer.and_(runs, integer.lt(at, state.size))
        if runs is not TRUE:
            self.builder.open_if(self.indices.emit(runs))
        self._inside(node, depth, value, TRUE, TRUE, None)
        if runs is not TRUE:
            self.builder.close()

    def _inside(
        self, node: LoopNode, depth: int, value: UOp, first: UOp, last: UOp, tail: int | None
    ) -> None:
        """The loop's body with its variable bound."""
        axis = node.step.axis
        state = self.dims[axis.dim]
        before = state.binding, state.tail
        self.n_bindings += 1
        state.binding = self.n_bindings
        state.entered.append(Entered(axis, value, first, last))
        if tail is not None:
            state.tail = tail
        self.tree(node.children, depth + 1)
        state.entered.pop()
        state.binding, state.tail = before


def _loop_name(axis: Axis) -> str:
    dim = axis.dim.replace(".", "")
    return dim if axis.stride == 1 else f"{dim}_{axis.stride}"


def check_threads(tree: Tree, threads: int) -> None:
    """All work lies inside the one THREAD loop. Raises LoweringError."""
    if threads > 1 and (len(tree) != 1 or isinstance(tree[0], Leaf) or not _is_thread(tree[0])):
        fail(
            LoweringError,
            "part of the kernel would run in every thread: THREAD needs an outermost loop that "
            "all statements share",
            fix="Thread an outer dim of every output, or drop the opt",
        )


def _is_thread(node: LoopNode) -> bool:
    return node.step.axis.kind is AxisKind.THREAD


def thread_count(kernel: Kernel) -> int:
    """How many threads the schedule uses."""
    counts = [a.size for a in kernel.schedule.axes if a.kind is AxisKind.THREAD]
    return int(counts[0]) if counts else 1  # type: ignore[arg-type]
