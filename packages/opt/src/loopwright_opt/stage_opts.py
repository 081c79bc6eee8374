"""STAGE, KEEP, PREFETCH and NTSTORE: steps on accesses and values, and when they are legal."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from loopwright_core.ir.affine import affine, plus, scale
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.access import Access, dims_below
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel, buffer_name
from loopwright_core.kernel.schedule import Opt, Schedule, Stage
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import inside, refuse, resolve
from loopwright_opt.facts import facts_of

# A copy that outgrows the caches gains nothing.
MAX_STAGE_BYTES = 4 << 20


def stage(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """STAGE access @axis [layout axes] [order axes] [panel | halo]."""
    at, mode, lists = _words(kernel, opt)
    made = Stage(opt.axis, at, mode, lists.get("layout", ()), lists.get("order", ()))
    if any(s.access == made.access for s in kernel.schedule.stages):
        refuse(kernel, opt, f"{made.access} is staged already")
    check_stage(kernel, opt, kernel.schedule, made)
    return replace(kernel.schedule, stages=(*kernel.schedule.stages, made))


def keep(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """KEEP value @axis: written once, read by the value's other instances."""
    at, mode, lists = _words(kernel, opt)
    if lists or mode != "panel":
        refuse(kernel, opt, "KEEP takes a value and an axis only")
    made = Stage(opt.axis, at, "keep")
    if any(s.access == made.access for s in kernel.schedule.stages):
        refuse(kernel, opt, f"{made.access} is kept already")
    check_keep(kernel, opt, kernel.schedule, made)
    return replace(kernel.schedule, stages=(*kernel.schedule.stages, made))


def prefetch(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """PREFETCH access [steps]."""
    found = _access(kernel, opt, opt.axis)
    if found.opaque:
        refuse(kernel, opt, f"where {opt.axis} goes next is not affine")
    if any(name == opt.axis for name, _ in kernel.schedule.prefetch):
        refuse(kernel, opt, f"{opt.axis} is prefetched already")
    steps = 1 if opt.amount is None else opt.amount
    if steps < 1:
        refuse(kernel, opt, "a prefetch runs one step ahead at least")
    return replace(kernel.schedule, prefetch=(*kernel.schedule.prefetch, (opt.axis, steps)))


def nt_store(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """NTSTORE buffer: whole lines of an output that is larger than L2 and not read here."""
    name = opt.axis
    facts = facts_of(kernel)
    stores = [a for a in facts.accesses.values() if a.is_store and _buffer(a) == name]
    if not stores:
        refuse(kernel, opt, f"{name} is not stored to")
    if target.has_local:
        refuse(kernel, opt, "stores around the cache are for CPU targets")
    if any(_buffer(a) == name for a in facts.accesses.values() if not a.is_store):
        refuse(kernel, opt, f"{name} is read in this kernel")
    if name in kernel.schedule.nt_stores:
        refuse(kernel, opt, f"{name} is stored around the cache already")
    sizes = [n.hi if isinstance(n, Variable) else n for n in stores[0].shape]
    if prod(sizes) * stores[0].dtype.itemsize <= target.caches[1]:
        refuse(kernel, opt, f"{name} fits the L2 cache, where its reader would find it")
    check_lines(kernel, opt, kernel.schedule, name, target)
    return replace(kernel.schedule, nt_stores=(*kernel.schedule.nt_stores, name))


def check_again(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """Stages, kept values and lines of a schedule after a step that moved or split axes."""
    for made in schedule.stages:
        if made.mode == "keep":
            check_keep(kernel, opt, schedule, made)
        else:
            check_stage(kernel, opt, schedule, made)
    for name in schedule.nt_stores:
        check_lines(kernel, opt, schedule, name, target)


def check_stage(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """An affine load that nobody writes, whole in its axis, small enough, its axes all named."""
    access = _access(kernel, opt, made.access)
    facts = facts_of(kernel)
    if access.is_store:
        refuse(kernel, opt, "only loads are staged in this version")
    if access.buffer in facts.stored:
        refuse(kernel, opt, f"{_buffer(access)} is written in this kernel")
    if access.opaque or not access.is_plain:
        refuse(kernel, opt, f"the index of {made.access} is not affine in the dims")
    _reaches(kernel, opt, schedule, made, facts.within[access.node])
    axes = inside(schedule, made.at, access.dims)
    if not axes:
        refuse(kernel, opt, f"{made.access} touches one element inside {made.at}", made.at)
    if any(isinstance(a.size, Variable) for a in axes):
        refuse(kernel, opt, "a symbolic axis inside leaves the copy without a size", made.at)
    if made.mode == "halo":
        elements = _halo(kernel, opt, access, axes, made)
    else:
        elements = prod(a.size for a in axes if isinstance(a.size, int))
        if not all(dims_below((c,)) <= access.dims for c in access.valid):
            refuse(kernel, opt, f"whether {made.access} is valid depends on other dims")
    if elements * access.dtype.itemsize > MAX_STAGE_BYTES:
        size = elements * access.dtype.itemsize
        refuse(kernel, opt, f"the copy of {size} bytes exceeds {MAX_STAGE_BYTES}", made.at)
    wanted = {a.name for a in axes}
    for what, names in (("layout", made.layout), ("order", made.order)):
        if names and (set(names) != wanted or len(names) != len(wanted)):
            known = ", ".join(a.name for a in axes)
            reason = f"the {what} of {made.access} must name each axis inside once"
            refuse(kernel, opt, reason, made.at, f"They are {known}")


def check_keep(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """A value of several equal instances, one of which can write it for the others."""
    place = made.access[1:]
    if made.access[:1] != "v" or not place.isdigit() or int(place) >= len(kernel.shared):
        known = ", ".join(f"v{n}" for n in range(len(kernel.shared))) or "there is none"
        refuse(kernel, opt, f"{made.access} is no shared value", fix=f"Shared: {known}")
    instances = kernel.shared[int(place)]
    facts = facts_of(kernel)
    for other in instances[1:]:
        if not _is_renamed(instances[0], other):
            refuse(kernel, opt, f"the instances of {made.access} are at shifted places")
    writers = [
        u
        for u in instances
        for s in facts.within.get(u, ())
        if facts.statements[s].dims <= facts.free[u]
    ]
    if not writers:
        refuse(kernel, opt, f"every user of {made.access} repeats it along another dim")
    users = [place for u in instances for place in facts.within.get(u, ())]
    _reaches(kernel, opt, schedule, made, tuple(users))
    if len({_path(schedule, made.at, facts.statements[place].dims) for place in users}) > 1:
        refuse(kernel, opt, f"not all users of {made.access} run in one loop {made.at}", made.at)
    for u in instances:
        axes = inside(schedule, made.at, facts.free[u])
        if any(isinstance(a.size, Variable) for a in axes):
            refuse(kernel, opt, "a symbolic axis inside leaves the value without a size", made.at)
        size = u.dtype.itemsize
        for dim in facts.free[u]:
            steps = [a.stride * (a.size - 1) for a in axes if a.dim == dim]  # type: ignore[operator]
            size *= 1 + sum(steps)
        if size > MAX_STAGE_BYTES:
            refuse(kernel, opt, f"{size} bytes exceed {MAX_STAGE_BYTES}", made.at)


def check_lines(kernel: Kernel, opt: Opt, schedule: Schedule, name: str, target: Target) -> None:
    """Every store writes whole aligned vectors: a VECTOR axis of unit stride that divides all."""
    for access in facts_of(kernel).accesses.values():
        if not access.is_store or _buffer(access) != name:
            continue
        lanes = [
            a.size
            for a in schedule.axes
            if a.kind is AxisKind.VECTOR and access.stride(a.dim) * a.stride == 1
        ]
        steps = [s for d, s in access.strides.items() if s != 1]
        widest = max(target.vector_bytes, default=0)
        if (
            len(lanes) != 1
            or not isinstance(lanes[0], int)
            or lanes[0] * access.dtype.itemsize != widest
            or any(s % lanes[0] for s in steps)
            or any(kernel.dim(d).max_size % lanes[0] for d, s in access.strides.items() if s == 1)
            or access.valid
            or any(f.const for f in access.form)
        ):
            refuse(kernel, opt, f"the stores to {name} are not whole aligned vectors")


def _words(kernel: Kernel, opt: Opt) -> tuple[str, str, dict[str, tuple[str, ...]]]:
    """(axis name or "", mode, the lists behind `layout` and `order` as full axis names)."""
    at, mode = "", "panel"
    lists: dict[str, tuple[str, ...]] = {}
    words = iter(opt.arg)
    for word in words:
        if word.startswith("@"):
            if word != "@":
                axis = resolve(kernel, opt, word[1:])
                if axis.kind.is_expanded:
                    refuse(kernel, opt, "a copy stands in a loop, not in expanded axes", axis.name)
                at = axis.name
        elif word in ("layout", "order"):
            names = next(words, "").split(",")
            lists[word] = tuple([resolve(kernel, opt, n).name for n in names if n])
        elif word.strip("()") in ("panel", "halo"):
            mode = word.strip("()")
        else:
            refuse(kernel, opt, f"{word!r} is not understood", fix="@axis layout .. order .. halo")
    return at, mode, lists


def _access(kernel: Kernel, opt: Opt, name: str) -> Access:
    found = facts_of(kernel).accesses.get(name)
    if found is None:
        known = ", ".join(sorted(facts_of(kernel).accesses))
        refuse(kernel, opt, f"there is no access {name}", fix=f"The accesses are {known}")
    return found


def _buffer(access: Access) -> str:
    return buffer_name(access.buffer.arg.slot)


def _reaches(
    kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage, users: tuple[int, ...]
) -> None:
    """The axis of a copy is a loop around every user, inside the threads."""
    if not made.at:
        if any(a.kind is AxisKind.THREAD for a in schedule.axes):
            refuse(kernel, opt, f"outside the threads there is no room for {made.access}")
        return
    axis = next((a for a in schedule.axes if a.name == made.at), None)
    if axis is None or axis.kind.is_expanded:
        refuse(kernel, opt, f"{made.access} is held in {made.at}, which this step changes", made.at)
    for place in users:
        statement = facts_of(kernel).statements[place]
        if axis.dim not in statement.dims:
            refuse(kernel, opt, f"{statement.label} does not run inside {made.at}", made.at)


def _path(schedule: Schedule, at: str, dims: frozenset[str]) -> tuple[str, ...]:
    """The loops around a statement from the outermost to the axis `at`."""
    found: list[str] = []
    for axis in schedule.axes:
        if not at or axis.kind.is_expanded:
            break
        if axis.dim in dims:
            found.append(axis.name)
        if axis.name == at:
            break
    return tuple(found)


def _halo(kernel: Kernel, opt: Opt, access: Access, axes: tuple[Axis, ...], made: Stage) -> int:
    """Elements of the box an access reaches; its conditions are bounds of single indices."""
    if made.layout or made.order:
        refuse(kernel, opt, "a halo copy has the buffer's own layout and order")
    for condition in access.valid:
        if not _is_bound(access, condition):
            refuse(kernel, opt, f"a condition of {made.access} is no bound of one index")
    elements = 1
    for form in access.form:
        reach = 0
        for atom, k in form.terms:
            for a in axes:
                if a.dim == atom.arg.name and isinstance(a.size, int):
                    reach += abs(k) * a.stride * (a.size - 1)
        elements *= reach + 1
    return elements


def _is_bound(access: Access, condition: UOp) -> bool:
    """Whether a condition is `+-index + const < 0` for one of the access's indices."""
    if condition.op is not Op.CMPLT:
        return False
    terms = plus(affine(condition.src[0]), affine(condition.src[1]), -1).terms
    return any(terms == f.terms or terms == scale(f, -1).terms for f in access.form)


def _is_renamed(a: UOp, b: UOp) -> bool:
    """Whether two values differ in the names of their dims only."""
    names: dict[UOp, UOp] = {}
    stack, seen = [(a, b)], set()
    while stack:
        pair = stack.pop()
        x, y = pair
        if pair in seen:
            continue
        seen.add(pair)
        if x.op is Op.DIM and y.op is Op.DIM:
            if names.setdefault(x, y) is not y or x.arg.size != y.arg.size:
                return False
        elif x.op is not y.op or x.arg != y.arg or len(x.src) != len(y.src):
            return False
        else:
            stack.extend(zip(x.src, y.src, strict=True))
    return len(set(names.values())) == len(names)
