"""How a search judges times on a machine that does other things too."""

from __future__ import annotations

from loopwright_opt.comparison import correlate, is_faster
from loopwright_opt.measure import MAX_NOISE, MIN_NOISE, Pace


def paced(*times: float) -> Pace:
    made = Pace()
    for t in times:
        made.add(t)
    return made


def test_noise_is_how_one_schedules_times_differ() -> None:
    """The middle of the differences from one to the next, within bounds."""
    assert paced().noise == paced(1.0).noise == paced(1.0, 1.0, 1.0).noise == MIN_NOISE
    assert round(paced(1.0, 1.05, 1.0, 1.05).noise, 3) == 0.05
    assert paced(1.0, 9.0, 1.0).noise == MAX_NOISE


def test_pace_is_what_the_yardstick_takes_now() -> None:
    """One slow time is an accident, three in a row are a slower machine."""
    assert paced().now == 1.0
    assert paced(1.0, 1.0, 4.0).now == 1.0
    assert paced(1.0, 2.0, 2.0, 2.0).now == 2.0


def test_a_winner_wins_every_turn() -> None:
    """One lost turn is too many; a gain that noise would explain and a single turn say nothing."""
    assert is_faster([1.0] * 5, [1.1] * 5, 0.05)
    assert not is_faster([1.0] * 5, [1.1] * 5, 0.15)
    assert not is_faster([1.0, 1.0, 1.0, 1.0, 1.2], [1.1] * 5, 0.05)
    assert not is_faster([1.0], [2.0], 0.05)


def test_equal_values_share_a_rank() -> None:
    """Ties say nothing, in whatever order they come."""
    assert correlate([1, 1, 1], [1, 2, 3]) == 0
    assert correlate([1, 1, 2, 2], [1, 2, 3, 4]) == correlate([1, 1, 2, 2], [2, 1, 4, 3])
