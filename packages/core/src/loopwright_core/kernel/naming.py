"""Names of dims: by position, so that equal kernels have equal names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

OUTPUTS = "ijmnopqrstuvwxyz"
REDUCES = "kl"


def output_names() -> Iterator[str]:
    """i, j, m, n, ..., z, i2, j2, ...

    >>> names = output_names(); [next(names) for _ in range(4)]
    ['i', 'j', 'm', 'n']
    """
    return _names(OUTPUTS)


def reduce_names() -> Iterator[str]:
    """k, l, k2, l2, k3, ...

    >>> names = reduce_names(); [next(names) for _ in range(4)]
    ['k', 'l', 'k2', 'l2']
    """
    return _names(REDUCES)


def _names(letters: str) -> Iterator[str]:
    yield from letters
    for turn in count(2):
        for letter in letters:
            yield f"{letter}{turn}"
