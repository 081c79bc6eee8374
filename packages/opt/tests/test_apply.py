"""What each opt does to the axes."""

from __future__ import annotations

from dataclasses import replace

import bodies
import pytest
from bodies import CPU, GPU, forbid_graph_walks
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright_core.errors import OptError
from loopwright_core.kernel.dims import Axis
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.outline import nest
from loopwright_core.kernel.schedule import Opt, Stage, initial_schedule
from loopwright_core.plugin.target import Target
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_opt.apply import apply, apply_all
from loopwright_opt.text import AMOUNT_OPS, parse, show


def done(kernel: Kernel, text: str) -> Kernel:
    return apply_all(kernel, parse(text), CPU)


def axes(kernel: Kernel) -> list[str]:
    return [f"{a.name}({a.size}) {a.kind.name}" for a in kernel.schedule.axes]


def test_upcast_splits_inside() -> None:
    """UPCAST i 4 of 10 leaves three steps of 4, the last one ragged; 0 takes the whole axis."""
    kernel = done(bodies.matmul(10, 6, 8), "UPCAST i 4")
    assert axes(kernel) == ["i/4(3) LOOP", "j/1(6) LOOP", "k/1(8) REDUCE", "i/1(4) UPCAST"]
    kernel = done(kernel, "UPCAST i/4 0")
    assert axes(kernel)[-2:] == ["i/1(4) UPCAST", "i/4(3) UPCAST"]


def test_unroll_and_vector() -> None:
    """UNROLL splits a reduce axis, VECTOR any; expanded axes stand last, in order of making."""
    kernel = done(bodies.matmul(8, 32, 16), "UNROLL k 4 · VECTOR j 16")
    assert axes(kernel) == [
        "i/1(8) LOOP",
        "j/16(2) LOOP",
        "k/4(4) REDUCE",
        "k/1(4) UNROLL",
        "j/1(16) VECTOR",
    ]


def test_tile_and_order() -> None:
    """TILE leaves both halves in place; ORDER fills the places of the axes it names."""
    kernel = done(bodies.matmul(), "TILE j 256 · TILE j/1 64 · TILE k 512")
    names = ["i/1", "j/256", "j/64", "j/1", "k/512", "k/1"]
    assert [a.name for a in kernel.schedule.axes] == names
    kernel = done(kernel, "ORDER j/256 k/512 i j/64 j k")
    names = ["j/256", "k/512", "i/1", "j/64", "j/1", "k/1"]
    assert [a.name for a in kernel.schedule.axes] == names
    kernel = done(kernel, "SWAP i j/256")
    assert [a.name for a in kernel.schedule.axes][:3] == ["i/1", "k/512", "j/256"]


def test_tile_larger_than_the_axis() -> None:
    """A tile at least as large as its axis leaves an outer axis of size 1."""
    kernel = done(bodies.matmul(8, 100, 4), "TILE j 256")
    assert axes(kernel)[1:3] == ["j/256(1) LOOP", "j/1(256) LOOP"]


def test_a_piece_as_large_as_an_inner_axis() -> None:
    """A piece that is a whole inner axis leaves no axis of size 1 that would double a name."""
    kernel = done(bodies.matmul(8, 64, 4), "TILE j 16 · TILE j/1 16")
    assert axes(kernel)[1:3] == ["j/16(4) LOOP", "j/1(16) LOOP"]
    kernel = done(kernel, "VECTOR j/1 16")
    assert axes(kernel)[1:] == ["j/16(4) LOOP", "k/1(4) REDUCE", "j/1(16) VECTOR"]


def test_thread_splits_outside() -> None:
    """THREAD takes equal slices of an axis, outermost, also of one that is tiled."""
    kernel = done(bodies.matmul(), "UPCAST i 8 · THREAD i/8 2")
    assert axes(kernel)[0] == "i/512(2) THREAD"
    assert axes(kernel)[1] == "i/8(64) LOOP"
    kernel = done(bodies.matmul(10), "THREAD i 4")
    assert axes(kernel)[:2] == ["i/3(4) THREAD", "i/1(3) LOOP"]
    kernel = done(bodies.matmul(9), "THREAD i 4")
    assert axes(kernel)[:2] == ["i/3(3) THREAD", "i/1(3) LOOP"]


def test_starred_axes() -> None:
    """j* means j and the reduce dims that walk the same data."""
    kernel = done(bodies.softmax(), "VECTOR j* 4")
    found = [a.dim for a in kernel.schedule.axes if a.kind.name == "VECTOR"]
    assert found == ["j", "j.0", "j.1"]
    assert show(kernel.schedule.opts) == "VECTOR j* 4"


def test_stage_names_axes_in_full() -> None:
    """The stage keeps full axis names, whatever the text left out."""
    text = (
        "TILE j 256 · TILE k 1024 · UPCAST i 6 · TILE j/1 64 · VECTOR j/1 16 · UPCAST j/16 0 · "
        "ORDER j/256 k/1024 i/6 j/64 k/1 · "
        "STAGE B @k/1024 layout j/64,k,j/16,j order k,j/64,j/16,j · PREFETCH C"
    )
    kernel = done(bodies.matmul(), text)
    assert kernel.schedule.stages == (
        Stage(
            "B",
            "k/1024",
            "panel",
            ("j/64", "k/1", "j/16", "j/1"),
            ("k/1", "j/64", "j/16", "j/1"),
        ),
    )
    assert kernel.schedule.prefetch == (("C", 1),)
    assert show(kernel.schedule.opts) == text
    assert nest(kernel) == (
        "nest  loop j/256(4) { reduce k/1024(1) [stage B] { loop i/6(171) { loop j/64(4) "
        "{ reduce k(1024) } } } }  upcast i(6) j/16(4)  vector j(16)  prefetch C(1)"
    )


def test_keep() -> None:
    """KEEP holds a shared value inside an axis."""
    kernel = done(bodies.softmax(), "KEEP v0 @i")
    assert kernel.schedule.stages == (Stage("v0", "i/1", "keep"),)


def test_halo() -> None:
    """A halo copy is legal where every condition bounds one index."""
    kernel = done(bodies.stencil(), "TILE i 16 · STAGE A @i/16 halo")
    assert kernel.schedule.stages[0].mode == "halo"


def test_nt_store() -> None:
    """Whole aligned vectors of a large output may go around the cache."""
    kernel = done(bodies.add(), "VECTOR i 16 · NTSTORE C")
    assert kernel.schedule.nt_stores == ("C",)


def test_the_body_stays() -> None:
    """An opt exchanges the schedule only; the kernel given stays as it was."""
    before = bodies.matmul()
    after = done(before, "UPCAST i 4")
    assert after.body is before.body
    assert before.schedule.opts == ()
    assert after.schedule.opts == (Opt("UPCAST", "i", 4),)


@pytest.mark.parametrize(
    ("kernel", "target", "text"),
    [
        (
            bodies.matmul(),
            CPU,
            "TILE j 256 · TILE k 512 · UPCAST i 4 · VECTOR j/1 16 · ORDER j/256 k/512 i/4 j/16 k"
            " · STAGE B @k/512 · PREFETCH C",
        ),
        (bodies.softmax(), CPU, "THREAD i 4 · UPCAST j* 4 · KEEP v0 @i · SWAP j/4 j.0/4"),
        (bodies.stencil(), CPU, "TILE i 16 · VECTOR i/1 8 · STAGE A @i/16 halo"),
        (
            bodies.matmul(),
            cuda(),
            "UPCAST i 4 · LOCAL j 16 · TILE k 16 · STAGE B @k/16 · UNROLL k/1 4 · SWAP i/4 j/16",
        ),
        (bodies.softmax(), cuda(), "GROUP j.0 32 · GROUPTOP j.1 16 · LOCAL j 32"),
    ],
    ids=["product", "softmax", "halo", "product in workgroups", "softmax in workgroups"],
)
def test_opts_walk_no_graph(
    kernel: Kernel, target: Target, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a step asks about the body is found once for all schedules of it."""
    opts = parse(text)
    scheduled = apply_all(kernel, opts, target)
    forbid_graph_walks(monkeypatch)
    assert apply_all(kernel, opts, target) == scheduled


KERNELS = [
    bodies.matmul(10, 24, 17),
    bodies.softmax(6, 33),
    bodies.add(97),
    bodies.running_sum(5, 24),
    bodies.stencil(30),
]
AMOUNTS = [0, 2, 3, 4, 6, 8, 16]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_axes_stay_a_mixed_radix(data: st.DataObject) -> None:
    """After any legal steps each dim is covered exactly, only its outermost axis ragged."""
    kernel = data.draw(st.sampled_from(KERNELS))
    for _ in range(data.draw(st.integers(1, 8))):
        names = [a.name for a in kernel.schedule.axes]
        which = data.draw(
            st.sampled_from(["UPCAST", "UNROLL", "VECTOR", "TILE", "THREAD", "ORDER"])
        )
        if which == "ORDER":
            if len(names) < 2:
                continue
            opt = Opt("ORDER", arg=tuple(data.draw(st.permutations(names))[:2]))
        else:
            axis = data.draw(st.sampled_from(names))
            opt = Opt(which, axis, data.draw(st.sampled_from(AMOUNTS)))
        try:
            kernel = apply(kernel, opt, CPU)
        except OptError:
            continue
    for dim in kernel.dims:
        parts = sorted(kernel.schedule.of_dim(dim.name), key=lambda a: a.stride)
        covered = 1
        for part in parts:
            assert part.stride == covered
            covered *= int(part.size)  # type: ignore[arg-type]
        assert covered >= int(dim.size)  # type: ignore[arg-type]
        assert all(int(dim.size) > p.stride for p in parts[1:]) or parts[-1].size == 1  # type: ignore[arg-type]
    replayed = apply_all(
        kernel.with_schedule(initial_schedule(kernel.dims)), kernel.schedule.opts, CPU
    )
    assert replayed == kernel


def splits(kernel: Kernel) -> list[Opt]:
    """Every step of some amounts on every axis, and the first core."""
    names, known = [a.name for a in kernel.schedule.axes], sorted(AMOUNT_OPS - {"TC"})
    steps = [Opt(op, name, n) for op in known for name in names for n in (0, 2, 1024)]
    return [*steps, Opt("TC", "", 0)]


@pytest.mark.parametrize("target", [CPU, GPU, metal()], ids=["cpu", "gpu", "cores"])
@pytest.mark.parametrize(
    "kernel",
    [bodies.matmul(8, 8, 8), bodies.add(1 << 20), bodies.row_sums(1, 3)],
    ids=["product", "add", "one row"],
)
def test_no_two_axes_have_one_name(kernel: Kernel, target: Target) -> None:
    """After any two legal steps, also on what one leaves of size 1, each axis has its name."""
    made = [kernel]
    for _ in range(2):
        following: dict[tuple[Axis, ...], Kernel] = {}
        for before in made:
            for opt in splits(before):
                try:
                    after = apply(before, opt, target)
                except OptError:
                    continue
                axes = after.schedule.axes
                assert len({a.name for a in axes}) == len(axes), str(after.schedule)
                following[axes] = after
        made = list(following.values())


def test_nothing_is_half_applied() -> None:
    """A starred step that fails on one of its axes raises and leaves the kernel alone."""
    kernel = done(bodies.softmax(), "VECTOR j.0 4")
    with pytest.raises(OptError):
        done(kernel, "VECTOR j* 4")
    assert show(kernel.schedule.opts) == "VECTOR j.0 4"


@pytest.mark.parametrize(
    ("kernel", "text", "axes"),
    [
        (bodies.add(), "STREAM i 4", "Li/4096(256) Li/1(1024) ui/1024(4)"),
        (bodies.add(), "VECTOR i 16 · STREAM i/16 2", "Li/2048(512) Li/16(64) vi/1(16) ui/1024(2)"),
        (bodies.add(), "TILE i 1024 · STREAM i/1024 2", "Li/2048(512) Li/1(1024) ui/1024(2)"),
        (bodies.add(1000004), "STREAM i 4", "Li/1(250001) ui/250001(4)"),
        (bodies.add((1 << 20) + 1), "STREAM i 4", "Li/4096(257) Li/1(1024) ui/1024(4)"),
        (bodies.row_sums(4, 1 << 20), "STREAM k 4", "Li/1(4) Rk/4096(256) Rk/1(1024) uk/1024(4)"),
        (bodies.matmul(), "SPLITK k 4", "Lk/256(4) Li/1(1024) Lj/1(1024) Rk/1(256)"),
        (bodies.matmul(), "THREAD k 4", "tk/256(4) Li/1(1024) Lj/1(1024) Rk/1(256)"),
        (
            bodies.matmul(),
            "SPLITK k 4 · THREAD k/256 0",
            "tk/256(4) Li/1(1024) Lj/1(1024) Rk/1(256)",
        ),
        (
            bodies.matmul(),
            "TILE k 1024 · SPLITK k/1024 4",
            "Li/1(1024) Lj/1(1024) Rk/1024(1) Rk/1(1024)",
        ),
    ],
)
def test_pages_and_parts(kernel: Kernel, text: str, axes: str) -> None:
    """STREAM cuts pages out of the middle of an axis; a split reduce's parts stand outermost."""
    made = apply_all(kernel, parse(text), CPU)
    assert " ".join(f"{a.kind.value[0]}{a.name}({a.size})" for a in made.schedule.axes) == axes


def test_wide_targets_upcast_more() -> None:
    """A DSP with long vectors says how many elements one UPCAST may hold."""
    dsp = replace(CPU, max_upcast=128)
    made = apply_all(bodies.matmul(), parse("UPCAST i 128"), dsp)
    assert made.schedule.axes[-1].size == 128
    with pytest.raises(OptError, match="more than the target's 128"):
        apply_all(bodies.matmul(), parse("UPCAST i 129"), dsp)
