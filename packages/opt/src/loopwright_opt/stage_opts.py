"""STAGE, KEEP, PREFETCH and NTSTORE: steps on accesses and values."""

from __future__ import annotations

from dataclasses import replace

from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt, Schedule, Stage
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import refuse, resolve
from loopwright_opt.legality import hints, keeps, stages


def stage(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """STAGE access @axis [layout axes] [order axes] [panel | halo] [cast]."""
    at, mode, lists = _words(kernel, opt)
    dtype = stages.converted_alike(kernel, opt, target) if "cast" in opt.arg else None
    made = Stage(opt.axis, at, mode, lists.get("layout", ()), lists.get("order", ()), dtype)
    stages.held_once(kernel, opt, made)
    stages.check_stage(kernel, opt, made)
    return kernel.schedule.with_stage(made)


def keep(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """KEEP value @axis: written once, read by the value's other instances."""
    at, mode, lists = _words(kernel, opt)
    keeps.keep_is_plain(kernel, opt, bool(lists) or mode != "panel" or "cast" in opt.arg)
    made = Stage(opt.axis, at, "keep")
    stages.held_once(kernel, opt, made)
    keeps.check_keep(kernel, opt, kernel.schedule, made)
    return kernel.schedule.with_stage(made)


def prefetch(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """PREFETCH access [steps]."""
    hints.next_place_is_affine(kernel, opt, stages.access_exists(kernel, opt, opt.axis))
    hints.prefetched_once(kernel, opt)
    steps = hints.prefetch_is_ahead(kernel, opt)
    return replace(kernel.schedule, prefetch=(*kernel.schedule.prefetch, (opt.axis, steps)))


def nt_store(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """NTSTORE buffer: whole lines of an output that is larger than L2 and not read here."""
    name = opt.axis
    found = hints.is_stored(kernel, opt)
    hints.has_nt_stores(kernel, opt, target)
    hints.is_not_read(kernel, opt, found[0])
    hints.nt_stored_once(kernel, opt)
    hints.exceeds_cache(kernel, opt, found[0], target)
    hints.lines_are_whole(kernel, opt, kernel.schedule, name, target)
    return replace(kernel.schedule, nt_stores=(*kernel.schedule.nt_stores, name))


def _words(kernel: Kernel, opt: Opt) -> tuple[str, str, dict[str, tuple[str, ...]]]:
    """(axis name or "", mode, the lists behind `layout` and `order` as full axis names)."""
    at, mode = "", "panel"
    lists: dict[str, tuple[str, ...]] = {}
    words = iter(opt.arg)
    for word in words:
        if word.startswith("@"):
            if word != "@":
                axis = resolve(kernel, opt, word[1:])
                stages.stands_in_a_loop(kernel, opt, axis)
                at = axis.name
        elif word in ("layout", "order"):
            names = next(words, "").split(",")
            lists[word] = tuple([resolve(kernel, opt, n).name for n in names if n])
        elif word.strip("()") in ("panel", "halo"):
            mode = word.strip("()")
        elif word != "cast":
            words_known = "@axis layout .. order .. halo cast"
            refuse(kernel, opt, f"{word!r} is not understood", fix=words_known)
    return at, mode, lists
