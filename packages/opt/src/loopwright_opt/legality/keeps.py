"""Rules of kept values: written once by one statement, read by others."""

from __future__ import annotations

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.copies import is_own
from loopwright_core.kernel.dims import Axis
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt, Schedule, Stage
from loopwright_opt.axes import inside, refuse
from loopwright_opt.facts import Facts, facts_of
from loopwright_opt.legality import stages
from loopwright_opt.legality.parts import held_in_one_launch, kept_in_one_form


def keep_is_plain(kernel: Kernel, opt: Opt, has_lists: bool) -> None:
    """A kept value lies by its own dims."""
    if has_lists:
        refuse(kernel, opt, "KEEP takes a value and an axis only")


def value_is_shared(kernel: Kernel, opt: Opt, made: Stage) -> tuple[UOp, ...]:
    """What is kept is a value that several statements need."""
    place = made.access[1:]
    if made.access[:1] != "v" or not place.isdigit() or int(place) >= len(kernel.shared):
        known = ", ".join(f"v{n}" for n in range(len(kernel.shared))) or "there is none"
        refuse(kernel, opt, f"{made.access} is no shared value", fix=f"Shared: {known}")
    return kernel.shared[int(place)]


def value_is_computed_at_leaves(
    kernel: Kernel, opt: Opt, made: Stage, instances: tuple[UOp, ...]
) -> None:
    """A reduce or scan has loops of its own, a leaf's values are kept."""
    if instances[0].op in (Op.REDUCE, Op.SCAN):
        what = instances[0].op.name
        refuse(kernel, opt, f"{made.access} is a {what} itself: what is computed of it can be kept")


def instances_agree(kernel: Kernel, opt: Opt, made: Stage, instances: tuple[UOp, ...]) -> None:
    """One instance writes for the others: they differ in the names of their dims only."""
    for other in instances[1:]:
        if facts_of(kernel).renamed(instances[0], other) is None:
            refuse(kernel, opt, f"the instances of {made.access} are at shifted places")


def instances_run_one_way(
    kernel: Kernel, opt: Opt, made: Stage, instances: tuple[UOp, ...]
) -> None:
    """Written and read by position, a value runs along its dims the same way in all instances."""
    facts = facts_of(kernel)
    backwards = facts.backwards
    for other in instances[1:] if backwards else ():
        for a, b in (facts.renamed(instances[0], other) or {}).items():
            if (a in backwards) != (b in backwards):
                refuse(kernel, opt, f"{made.access} runs backwards along one of {a} and {b} only")


def instances_run_apart(kernel: Kernel, opt: Opt, made: Stage, users: tuple[int, ...]) -> None:
    """What a statement reads is written before it runs: not by itself."""
    for place in users:
        if users.count(place) > 1:
            label = facts_of(kernel).statements[place].label
            refuse(kernel, opt, f"{label} holds {made.access} at two places")


def value_has_a_writer(kernel: Kernel, opt: Opt, made: Stage, instances: tuple[UOp, ...]) -> None:
    """Some statement computes the value once: it has no dims beyond the value's own."""
    facts = facts_of(kernel)
    for u in instances:
        if any(facts.statements[s].dims <= facts.free[u] for s in facts.within.get(u, ())):
            return
    refuse(kernel, opt, f"every user of {made.access} repeats it along another dim")


def instances_meet_at_one_step(
    kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage, instances: tuple[UOp, ...]
) -> None:
    """In a loop that writer and reader share both are at the same step of the value."""
    facts = facts_of(kernel)
    users = [(place, u) for u in instances for place in facts.within.get(u, ())]
    owner, written = min(
        [user for user in users if facts.statements[user[0]].dims <= facts.free[user[1]]],
        key=lambda user: user[0],
    )
    loops = [a for a in schedule.axes if not a.kind.is_expanded]
    for place, read in users:
        if read is written:
            continue
        same = facts.renamed(written, read) or {}
        both = [[a for a in loops if a.dim in facts.statements[p].dims] for p in (owner, place)]
        for a, b in zip(*both, strict=False):
            if a is not b:
                break
            if same.get(a.dim, a.dim) != a.dim:
                reason = (
                    f"in the loop over {a.dim} {made.access} is read at other steps than its own"
                )
                refuse(kernel, opt, reason, a.name)


def check_keep(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """All rules of a kept value under a schedule."""
    instances = value_is_shared(kernel, opt, made)
    facts = facts_of(kernel)
    value_is_computed_at_leaves(kernel, opt, made, instances)
    instances_agree(kernel, opt, made, instances)
    instances_run_one_way(kernel, opt, made, instances)
    value_has_a_writer(kernel, opt, made, instances)
    users = tuple([place for u in instances for place in facts.within.get(u, ())])
    instances_run_apart(kernel, opt, made, users)
    stages.threads_have_room(kernel, opt, schedule, made)
    stages.holder_stays(kernel, opt, schedule, made)
    stages.users_run_inside(kernel, opt, made, users)
    stages.users_share_the_loop(kernel, opt, schedule, made, users)
    stages.stands_in_its_workgroup(kernel, opt, schedule, made, users)
    instances_meet_at_one_step(kernel, opt, schedule, made, instances)
    held_in_one_launch(kernel, opt, schedule, made)
    kept_in_one_form(kernel, opt, schedule, made)
    for u in instances:
        stages.has_a_size(kernel, opt, made, inside(schedule, made.at, facts.free[u]))
    stages.fits(kernel, opt, made, kept_bytes(facts, schedule, made.at, instances))


def kept_bytes(facts: Facts, schedule: Schedule, at: str, instances: tuple[UOp, ...]) -> int:
    """What a kept value takes, in the instance that reaches farthest along each dim."""
    own = is_own(schedule, at, [dim for u in instances for dim in facts.free[u]])
    names = [facts.renamed(instances[0], u) or {} for u in instances]
    size = instances[0].dtype.itemsize
    for name in facts.free[instances[0]]:
        here = [same.get(name, name) for same in names]
        size *= max(_reach(inside(schedule, at, frozenset({dim}), own)) for dim in here)
    return size


def _reach(axes: tuple[Axis, ...]) -> int:
    """How many positions these axes of one dim cover."""
    return 1 + sum([a.stride * (a.size - 1) for a in axes if isinstance(a.size, int)])
