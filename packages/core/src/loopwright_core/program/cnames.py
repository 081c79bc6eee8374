"""Identifiers of C-family text: legal, unique where they are seen, the same every time."""

from __future__ import annotations

import re

C_KEYWORDS = frozenset(
    (  # noqa: SIM905
        "alignas alignof auto bool break case char const constexpr continue default do double "
        "else enum extern false float for goto if inline int long nullptr register restrict "
        "return short signed sizeof static static_assert struct switch thread_local true "
        "typedef typeof typeof_unqual union unsigned void volatile while asm linux unix i386"
    ).split(" ")
)
# Functions a compiler knows or calls by itself: a kernel of that name would be called instead.
LIBRARY = frozenset(
    (  # noqa: SIM905
        "abort abs calloc ceil cos exit exp exp2 expm1 fabs floor fma fmax fmin fmod free frexp "
        "ldexp log log10 log1p log2 main malloc memchr memcmp memcpy memmove memset modf pow "
        "printf puts realloc rint round sin sinh sqrt strlen tan tanh trunc"
    ).split(" ")
)
_ILLEGAL = re.compile(r"[^A-Za-z0-9_]")
# Vector types (f32x8, f32x8_u) and the helpers named after them (splat_f32x8).
_VECTOR = re.compile(r"(\w+_)?[fiu](8|16|32|64)(x\d+)?(_\w+)?")


def identifier(name: str, keywords: frozenset[str] = C_KEYWORDS) -> str:
    """The name itself where it can stand in C text, else the nearest one that can.

    >>> identifier("x"), identifier("int"), identifier("2nd row"), identifier("__x")
    ('x', 'int_', 'v2nd_row', 'v__x')
    """
    name = _ILLEGAL.sub("_", name)
    if not name or name[0].isdigit() or name[0] == "_":
        name = f"v{name}"
    if name in keywords or _VECTOR.fullmatch(name):
        name += "_"
    return name


class Names:
    """The names in use, by open scope: siblings may share a name, nested scopes may not."""

    def __init__(self, keywords: frozenset[str]) -> None:
        self._keywords = keywords
        self._scopes: list[set[str]] = [set()]
        self._numbers: list[dict[str, int]] = [{}]

    def push(self) -> None:
        """Open a scope."""
        self._scopes.append(set())
        self._numbers.append({})

    def pop(self) -> None:
        """Close the innermost scope: its names are free again."""
        self._scopes.pop()
        self._numbers.pop()

    def take(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2`, ...: the first that no open scope has."""
        base = identifier(wanted, self._keywords)
        name = base
        if self._is_used(name):
            k = self._next(base)
            while self._is_used(f"{base}_{k}"):
                k += 1
            self._numbers[-1][base] = k + 1
            name = f"{base}_{k}"
        self._scopes[-1].add(name)
        return name

    def number(self, prefix: str) -> str:
        """`prefix0`, `prefix1`, ...: the first that no open scope has."""
        k = self._next(prefix + "#") - 1
        while self._is_used(f"{prefix}{k}") or f"{prefix}{k}" in self._keywords:
            k += 1
        self._numbers[-1][prefix + "#"] = k + 2
        self._scopes[-1].add(f"{prefix}{k}")
        return f"{prefix}{k}"

    def _next(self, base: str) -> int:
        # Numbers below were taken in this scope or one around it.
        return max((n.get(base, 1) for n in self._numbers), default=1)

    def _is_used(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)
