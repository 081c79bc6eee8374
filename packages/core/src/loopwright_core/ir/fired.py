"""How often each rewrite rule fired in this process, whichever driver ran it."""

from __future__ import annotations

from collections import Counter

_fired: Counter[str] = Counter()


def count_fired(rule: str) -> None:
    """A rule of that name changed something."""
    _fired[rule] += 1


def fired_rules() -> dict[str, int]:
    """How often each rule, by name, fired in this process."""
    return dict(_fired)
