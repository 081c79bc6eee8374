"""Opts as text: `UPCAST i 4 · UNROLL k 8`, one step between two of `·`, `;` and line ends."""

from __future__ import annotations

import re
from collections.abc import Iterable

from loopwright_core.errors import OptError, fail
from loopwright_core.kernel.schedule import Opt
from loopwright_core.kernel.tails import POLICIES

# Steps of the form OP axis amount; all that cut may say what becomes of a ragged end.
AMOUNT_OPS = frozenset(
    {"UPCAST", "UNROLL", "VECTOR", "TILE", "THREAD", "SPLITK", "LOCAL", "GROUP", "GROUPTOP"}
    | {"STREAM", "PADTO"}
)
# Steps that need threads which work together, and what the target must have for them.
WORKGROUP_OPS = {
    "LOCAL": "workgroups (has_local)",
    "GROUP": "workgroups with shared memory (has_local and has_shared)",
    "GROUPTOP": "workgroups with shared memory (has_local and has_shared)",
    "NOLOCALS": "workgroups (has_local)",
}
WORD_OPS = frozenset({"ORDER", "SWAP", "STAGE", "KEEP", "PREFETCH", "NTSTORE", "NOLOCALS", "TC"})

_BETWEEN = re.compile(r"[·;\n]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(\.\d+)?(\*)?(/\d+)?")


def parse(text: str | Iterable[str]) -> tuple[Opt, ...]:
    """The steps of a schedule's text, or of several texts in a row.

    Raises OptError for a word that is no step or a step of the wrong form.

    >>> [str(opt) for opt in parse("UPCAST i 4 · order j/64 k; STAGE B @k")]
    ['UPCAST i 4', 'ORDER j/64 k', 'STAGE B @k']
    """
    texts = [text] if isinstance(text, str) else list(text)
    steps = [step.split() for t in texts for step in _BETWEEN.split(t)]
    return tuple([_parse(words) for words in steps if words])


def show(opts: Iterable[Opt]) -> str:
    """The text that `parse` reads back as the same steps."""
    return " · ".join(map(str, opts))


def _parse(words: list[str]) -> Opt:
    op, rest = words[0].upper(), words[1:]
    if op in AMOUNT_OPS:
        policy = tuple([w.lower() for w in rest[2:]])
        policies = () if op == "PADTO" else POLICIES
        if len(rest) < 2 or not _is_count(rest[1]) or policy not in ((), *zip(policies)):
            also = f", then {', '.join(policies)} or nothing" if policies else ""
            _refuse(words, f"{op} is followed by an axis and an amount{also}", f"{op} i 4")
        return Opt(op, _axis(words, rest[0]), int(rest[1]), policy)
    if op == "ORDER":
        if len(rest) < 2:
            _refuse(words, "ORDER is followed by two axes or more", "ORDER j/64 i k")
        return Opt(op, arg=tuple([_axis(words, w) for w in rest]))
    if op == "SWAP":
        if len(rest) != 2:
            _refuse(words, "SWAP is followed by two axes", "SWAP i j")
        return Opt(op, arg=tuple([_axis(words, w) for w in rest]))
    if op in ("STAGE", "KEEP"):
        if not rest:
            _refuse(words, f"{op} is followed by what to hold", f"{op} B @k")
        return Opt(op, rest[0], None, tuple(rest[1:]))
    if op == "PREFETCH":
        if len(rest) not in (1, 2) or (len(rest) == 2 and not _is_count(rest[1])):
            _refuse(
                words, "PREFETCH is followed by an access and a number of steps", "PREFETCH C 1"
            )
        return Opt(op, rest[0], int(rest[1]) if len(rest) == 2 else None)
    if op == "NTSTORE":
        if len(rest) != 1:
            _refuse(words, "NTSTORE is followed by the name of a stored buffer", "NTSTORE C")
        return Opt(op, rest[0])
    if op == "TC":
        if not rest or not _is_count(rest[0]):
            _refuse(words, "TC is followed by the number of an axis triple", "TC 0 level 1")
        return Opt(op, "", int(rest[0]), tuple(rest[1:]))
    if op == "NOLOCALS":
        if rest:
            _refuse(words, "NOLOCALS stands alone", "NOLOCALS")
        return Opt(op)
    known = ", ".join(sorted(AMOUNT_OPS | WORD_OPS))
    fail(OptError, f"{' '.join(words)!r} is no scheduling step", fix=f"Known are {known}")


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _axis(words: list[str], word: str) -> str:
    if not _NAME.fullmatch(word):
        _refuse(words, f"{word!r} is no axis", "an axis is written j, j/64 or j.0/64")
    return word


def _refuse(words: list[str], rule: str, example: str) -> None:
    fail(OptError, f"{' '.join(words)!r}: {rule}", fix=f"For example: {example}")
