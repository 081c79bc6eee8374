"""What measured times say: how two orders agree, and whether one of two schedules is faster."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median


def is_faster(mine: list[float], theirs: list[float], noise: float) -> bool:
    """Whether times taken in turns are lower beyond chance: in every turn, and by more than noise.

    >>> is_faster([1.0, 1.1], [1.2, 1.2], 0.05), is_faster([1.0, 1.3], [1.1, 1.1], 0.05)
    (True, False)
    """
    won = sum(a < b for a, b in zip(mine, theirs, strict=True))
    return won == len(mine) > 1 and median(mine) < median(theirs) * (1 - noise)


def correlate(first: Iterable[float], second: Iterable[float]) -> float:
    """Spearman's rank correlation, 0 where there is none to speak of.

    >>> correlate([1, 2, 3, 4], [10, 20, 30, 40]), correlate([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    a, b = _ranks(list(first)), _ranks(list(second))
    n = len(a)
    if n < 3:
        return 0.0
    mean = (n - 1) / 2
    above = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    below = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return round(above / below**0.5, 4) if below else 0.0


def _ranks(values: list[float]) -> list[float]:
    """Ranks from 0; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    place = 0
    while place < len(order):
        end = place
        while end < len(order) and values[order[end]] == values[order[place]]:
            end += 1
        for at in order[place:end]:
            ranks[at] = (place + end - 1) / 2
        place = end
    return ranks
