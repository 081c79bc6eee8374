"""Opts as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright_core.errors import OptError
from loopwright_core.kernel.schedule import Opt
from loopwright_opt.text import AMOUNT_OPS, parse, show


def test_ragged_ends() -> None:
    """A cut may say what becomes of what it leaves over."""
    assert parse("UPCAST i 6 PEEL · TILE j 64 guard · LOCAL j 4 pad") == (
        Opt("UPCAST", "i", 6, ("peel",)),
        Opt("TILE", "j", 64, ("guard",)),
        Opt("LOCAL", "j", 4, ("pad",)),
    )


def test_separators_and_case() -> None:
    """Steps stand between dots, semicolons, line ends or in a list; case does not matter."""
    expected = (Opt("UPCAST", "i", 4), Opt("UNROLL", "k", 8))
    assert parse("UPCAST i 4 · UNROLL k 8") == expected
    assert parse("upcast i 4; unroll k 8;") == expected
    assert parse("UPCAST i 4\n\nUNROLL k 8\n") == expected
    assert parse(["UPCAST i 4", "UNROLL k 8"]) == expected
    assert parse("") == ()


def test_words_beyond_the_amount() -> None:
    """ORDER, STAGE, KEEP and PREFETCH keep what they say beyond axis and amount."""
    assert parse("ORDER j/64 i k") == (Opt("ORDER", arg=("j/64", "i", "k")),)
    assert parse("STAGE B.1 @j/64 layout j/8,k order k,j/8 halo") == (
        Opt("STAGE", "B.1", None, ("@j/64", "layout", "j/8,k", "order", "k,j/8", "halo")),
    )
    assert parse("KEEP v0 @i; PREFETCH C; PREFETCH C 2; NTSTORE C") == (
        Opt("KEEP", "v0", None, ("@i",)),
        Opt("PREFETCH", "C"),
        Opt("PREFETCH", "C", 2),
        Opt("NTSTORE", "C"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "JUMP i 4",
        "UPCAST i",
        "UPCAST i four",
        "UPCAST i -4",
        "UPCAST i 4 5",
        "UPCAST i 4 tail",
        "UPCAST i 4 pad peel",
        "PADTO k 32 pad",
        "UPCAST /4 4",
        "ORDER i",
        "SWAP i",
        "SWAP i j k",
        "STAGE",
        "PREFETCH",
        "PREFETCH C x",
        "NTSTORE",
    ],
)
def test_wrong_forms_are_refused(text: str) -> None:
    """A word that is no step, or a step of the wrong form, is refused with an example."""
    with pytest.raises(OptError):
        parse(text)


axes = st.from_regex(r"\A[ijk][2-9]?(\.[0-9])?(/[1-9][0-9]{0,3})?\Z")
amounts = st.builds(Opt, st.sampled_from(sorted(AMOUNT_OPS)), axes, st.integers(0, 999))
cuts = st.builds(
    Opt,
    st.sampled_from(sorted(AMOUNT_OPS - {"PADTO"})),
    axes,
    st.integers(0, 999),
    st.sampled_from([("guard",), ("peel",), ("pad",)]),
)
orders = st.builds(
    lambda a: Opt("ORDER", arg=tuple(a)), st.lists(axes, min_size=2, max_size=5, unique=True)
)
stages = st.builds(
    lambda a, b: Opt("STAGE", "B", None, (f"@{a}", "layout", f"{a},{b}")), axes, axes
)


@given(st.lists(amounts | cuts | orders | stages, max_size=8))
def test_round_trip(opts: list[Opt]) -> None:
    """What is shown is read back as the same steps."""
    assert parse(show(opts)) == tuple(opts)
    assert parse([str(o) for o in opts]) == tuple(opts)
