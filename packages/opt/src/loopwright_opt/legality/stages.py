"""Rules of what is held near: copies of what an access touches, tiles of results."""

from __future__ import annotations

from math import prod

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.access import Access
from loopwright_core.kernel.copies import conversions
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel, buffer_name
from loopwright_core.kernel.schedule import Opt, Schedule, Stage
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import inside, named, refuse
from loopwright_opt.facts import facts_of
from loopwright_opt.legality.parts import held_in_one_launch

# A copy that outgrows the caches gains nothing.
MAX_STAGE_BYTES = 4 << 20


def access_exists(kernel: Kernel, opt: Opt, name: str) -> Access:
    """An access goes by its buffer's name, `B`, or `B.1` for further index tuples."""
    found = facts_of(kernel).accesses.get(name)
    if found is None:
        known = ", ".join(sorted(facts_of(kernel).accesses))
        refuse(kernel, opt, f"there is no access {name}", fix=f"The accesses are {known}")
    return found


# Copies


def held_once(kernel: Kernel, opt: Opt, made: Stage) -> None:
    """An access is staged, a value kept, at one place."""
    if any(s.access == made.access for s in kernel.schedule.stages):
        done = "kept" if made.mode == "keep" else "staged"
        refuse(kernel, opt, f"{made.access} is {done} already")


def stands_in_a_loop(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """What is expanded at the leaf has no room for a copy."""
    if axis.kind.is_expanded:
        refuse(kernel, opt, "a copy stands in a loop, not in expanded axes", axis.name)


def is_read_only(kernel: Kernel, opt: Opt, access: Access) -> None:
    """A copy would miss what the kernel itself writes to the buffer."""
    if not access.is_store and access.buffer in facts_of(kernel).stored:
        refuse(kernel, opt, f"{_buffer(access)} is written in this kernel")


def is_written_only(kernel: Kernel, opt: Opt, access: Access) -> None:
    """What is read again must not wait in a tile."""
    if access.is_store and access.buffer in facts_of(kernel).loaded:
        refuse(kernel, opt, f"{_buffer(access)} is read in this kernel")


def every_step_has_a_place(
    kernel: Kernel, opt: Opt, access: Access, users: tuple[int, ...]
) -> None:
    """A tile of results has a place for each step of the store."""
    dims = facts_of(kernel).statements[users[0]].dims
    if access.is_store and dims != access.dims:
        others = ", ".join(sorted(dims - access.dims))
        refuse(kernel, opt, f"all steps of {others} are stored to one place of {access.name}")


def tile_is_of_the_whole_grid(
    kernel: Kernel, opt: Opt, schedule: Schedule, access: Access, users: tuple[int, ...]
) -> None:
    """A tile of results is written where its store runs: at every workgroup there is."""
    dims = facts_of(kernel).statements[users[0]].dims
    for axis in schedule.axes if access.is_store else ():
        if axis.kind is AxisKind.GLOBAL and axis.size != 1 and axis.dim not in dims:
            refuse(
                kernel, opt, f"{access.name} is stored at one step of the grid's {axis.name} only"
            )


def core_stores_at_once(kernel: Kernel, opt: Opt, schedule: Schedule, access: Access) -> None:
    """What a tensor core's threads hold is stored from where it lies."""
    if access.is_store and schedule.tensor_core is not None:
        refuse(kernel, opt, "the results of a tensor core are not staged")


def results_are_panels(kernel: Kernel, opt: Opt, access: Access, made: Stage) -> None:
    """A halo is read, not written."""
    if access.is_store and made.mode == "halo":
        refuse(kernel, opt, "a halo copy is of a load")


def index_is_affine(kernel: Kernel, opt: Opt, access: Access) -> None:
    """Which elements a copy holds follows from the dims alone."""
    if access.opaque or not access.is_plain:
        refuse(kernel, opt, f"the index of {access.name} is not affine in the dims")


def threads_have_room(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """What stands outside every loop would stand outside the threads too."""
    if not made.at and any(a.kind is AxisKind.THREAD for a in schedule.axes):
        refuse(kernel, opt, f"outside the threads there is no room for {made.access}")


def holder_stays(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """The loop that a copy stands in stays one."""
    if not made.at:
        return
    axis = named(schedule, made.at)
    if axis is None or axis.kind.is_expanded:
        refuse(kernel, opt, f"{made.access} is held in {made.at}, which this step changes", made.at)


def stands_in_its_workgroup(
    kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage, users: tuple[int, ...]
) -> None:
    """Each workgroup has a copy of its own: the grid lies around it."""
    dims = frozenset().union(*[facts_of(kernel).statements[place].dims for place in users])
    is_behind = not made.at
    around = named(schedule, made.at) if made.at else None
    for axis in schedule.axes:
        if is_behind and axis.kind is AxisKind.GLOBAL and axis.size != 1 and axis.dim in dims:
            reason = f"{made.access} is held in one workgroup, inside {axis.name} of the grid"
            refuse(kernel, opt, reason, made.at, f"Use @{axis.name} or a loop in it")
        is_behind = is_behind or axis is around


def users_run_inside(kernel: Kernel, opt: Opt, made: Stage, users: tuple[int, ...]) -> None:
    """The loop of a copy is one around every statement that reads it."""
    dim = made.at.partition("/")[0]
    for place in users:
        statement = facts_of(kernel).statements[place]
        if made.at and dim not in statement.dims:
            refuse(kernel, opt, f"{statement.label} does not run inside {made.at}", made.at)


def users_share_the_loop(
    kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage, users: tuple[int, ...]
) -> None:
    """Writer and readers run in the same loops, down to the one that holds the copy or value."""
    if len(users) < 2:
        return
    facts = facts_of(kernel)
    if len({path(schedule, made.at, facts.statements[place].dims) for place in users}) > 1:
        refuse(kernel, opt, f"not all users of {made.access} run in one loop {made.at}", made.at)


def has_elements(kernel: Kernel, opt: Opt, made: Stage, axes: tuple[Axis, ...]) -> None:
    """A copy of one element is a register."""
    if not axes:
        refuse(kernel, opt, f"{made.access} touches one element inside {made.at}", made.at)


def has_a_size(kernel: Kernel, opt: Opt, made: Stage, axes: tuple[Axis, ...]) -> None:
    """An array is declared with its size before launch."""
    if any(isinstance(a.size, Variable) for a in axes):
        refuse(kernel, opt, "a symbolic axis inside leaves the copy without a size", made.at)


def validity_is_its_own(kernel: Kernel, opt: Opt, access: Access) -> None:
    """Readers of a panel take it unmasked: whether an element is valid asks only where it lies."""
    if not access.valid_dims <= access.dims:
        refuse(kernel, opt, f"whether {access.name} is valid depends on other dims")


def halo_is_plain(kernel: Kernel, opt: Opt, made: Stage) -> None:
    """A halo copy lies as the buffer does."""
    if made.layout or made.order or made.dtype is not None:
        refuse(kernel, opt, "a halo copy has the buffer's own layout, order and type")


def halo_is_masked_by_bounds(kernel: Kernel, opt: Opt, access: Access) -> None:
    """A halo copy is filled outside the buffer: each condition bounds one index."""
    if not access.is_window:
        refuse(kernel, opt, f"a condition of {access.name} is no bound of one index")


def converted_alike(kernel: Kernel, opt: Opt, target: Target) -> DType:
    """A copy of converted elements serves readers that all convert them to one type; threads that
    copy together and tensor cores take elements as they lie."""
    found = conversions(kernel, opt.axis)
    if not found:
        refuse(kernel, opt, f"not every reader of {opt.axis} converts it to one type")
    if target.has_local or kernel.schedule.tensor_core is not None:
        refuse(kernel, opt, "workgroups and tensor cores take elements as they lie")
    return found[0].dtype


def fits(kernel: Kernel, opt: Opt, made: Stage, size: int) -> None:
    """A copy fits the caches."""
    if size > MAX_STAGE_BYTES:
        refuse(kernel, opt, f"the copy of {size} bytes exceeds {MAX_STAGE_BYTES}", made.at)


def lists_name_axes(kernel: Kernel, opt: Opt, made: Stage, axes: tuple[Axis, ...]) -> None:
    """A layout and an order are permutations of the axes inside; a layout may leave out those of
    a tensor core, whose tiles are its innermost part."""
    for what, names in (("layout", made.layout), ("order", made.order)):
        tiles = {a.name for a in axes if a.kind is AxisKind.TENSOR} - set(names)
        named = sorted([*names, *(tiles if what == "layout" else ())])
        if names and named != sorted(a.name for a in axes):
            known = ", ".join(a.name for a in axes)
            reason = f"the {what} of {made.access} must name each axis inside once"
            refuse(kernel, opt, reason, made.at, f"They are {known}")


def check_stage(kernel: Kernel, opt: Opt, made: Stage) -> None:
    """All rules of a staged access, those of the schedule as it is among them."""
    access = access_exists(kernel, opt, made.access)
    is_read_only(kernel, opt, access)
    is_written_only(kernel, opt, access)
    results_are_panels(kernel, opt, access, made)
    index_is_affine(kernel, opt, access)
    every_step_has_a_place(kernel, opt, access, facts_of(kernel).within[access.node])
    if made.mode == "halo":
        halo_is_plain(kernel, opt, made)
        halo_is_masked_by_bounds(kernel, opt, access)
    else:
        validity_is_its_own(kernel, opt, access)
    check_placed(kernel, opt, kernel.schedule, made)


def check_placed(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """The rules of a staged access that a step may break which moves, cuts or turns axes."""
    facts = facts_of(kernel)
    access = facts.accesses[made.access]
    users = facts.within[access.node]
    core_stores_at_once(kernel, opt, schedule, access)
    tile_is_of_the_whole_grid(kernel, opt, schedule, access, users)
    threads_have_room(kernel, opt, schedule, made)
    holder_stays(kernel, opt, schedule, made)
    users_run_inside(kernel, opt, made, users)
    users_share_the_loop(kernel, opt, schedule, made, users)
    stands_in_its_workgroup(kernel, opt, schedule, made, users)
    held_in_one_launch(kernel, opt, schedule, made)
    axes = inside(schedule, made.at, access.dims)
    has_elements(kernel, opt, made, axes)
    has_a_size(kernel, opt, made, axes)
    fits(kernel, opt, made, staged_bytes(made, access, axes))
    lists_name_axes(kernel, opt, made, axes)


def staged_bytes(made: Stage, access: Access, axes: tuple[Axis, ...]) -> int:
    """What a copy takes that holds what these axes, those inside it, walk over."""
    if made.mode == "halo":
        return halo_elements(access, axes) * access.dtype.itemsize
    itemsize = (made.dtype or access.dtype).itemsize
    return prod([a.size for a in axes if isinstance(a.size, int)]) * itemsize


def halo_elements(access: Access, axes: tuple[Axis, ...]) -> int:
    """Elements of the box that an access reaches while these axes run."""
    elements = 1
    for form in access.form:
        reach = 0
        for atom, k in form.terms:
            for a in axes:
                if a.dim == atom.arg.name and isinstance(a.size, int):
                    reach += abs(k) * a.stride * (a.size - 1)
        elements *= reach + 1
    return elements


def _buffer(access: Access) -> str:
    return buffer_name(access.buffer.arg.slot)


def path(schedule: Schedule, at: str, dims: frozenset[str]) -> tuple[str, ...]:
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
