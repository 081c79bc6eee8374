"""Lines and pages that nests of loops move."""

from __future__ import annotations

from loopwright_opt.traffic import Walk, foot, traffic

CACHES = (32 << 10, 512 << 10, 16 << 20)


def walk(*loops: int, total: int = 1 << 30, leaf: tuple[tuple[int, int], ...] = ()) -> Walk:
    return Walk(0, 4, total, loops, leaf)


def cycles(made: Walk, *sizes: int) -> float:
    return traffic([made], sizes, [float(n) for n in sizes], CACHES)


def test_a_foot_counts_lines_and_pages() -> None:
    """A row is one run of lines; a column is one line a row, and a page where rows are long."""
    assert foot(walk(4), (1024,), 0)[:3] == (64, 1, 4096)
    assert foot(walk(4096), (100,), 0)[:3] == (100, 100, 4)
    assert foot(walk(4096, 4), (100, 16), 0)[:3] == (100, 100, 64)
    assert foot(walk(4096, 4), (100, 16), 1)[:3] == (1, 1, 64)


def test_windows_overlap() -> None:
    """Two loops that move an access by the same stride touch what they share once."""
    assert foot(walk(4096, 4096), (8, 3), 0).lines == 10


def test_a_foot_is_no_larger_than_its_array() -> None:
    """Loops over sums of dims do not touch more lines than there are."""
    assert foot(walk(64, 4096, total=6400), (100, 100), 0).lines <= 101


def test_what_fits_a_cache_comes_once() -> None:
    """An array that the first cache holds costs nothing however often it is read; one beyond it
    costs more with every pass."""
    assert cycles(walk(0, 4), 100, 1024) == 0
    assert cycles(walk(0, 4), 100, 1 << 15) > 10 * cycles(walk(0, 4), 5, 1 << 15)


def test_rows_cost_less_than_columns() -> None:
    """Walking a matrix of 16 MB along its rows costs less than across them."""
    n = 2048
    assert cycles(walk(4 * n, 4), n, n) < cycles(walk(4, 4 * n), n, n) / 3


def test_strides_of_a_power_of_two_waste_the_cache() -> None:
    """Two hundred lines that lie 4096 bytes apart share eight places; 4160 bytes apart they do
    not."""
    near, far = (
        traffic([walk(0, s, 0)], (9, 200, 9), (9.0, 200.0, 9.0), CACHES) for s in (4160, 4096)
    )
    assert far > near


def test_writes_past_the_caches() -> None:
    """Whole lines cost less than lines that would come and go back; parts of lines cost more."""
    n = 1 << 24
    plain = Walk(0, 4, 4 * n, (32,), ((8, 4),), 1.0)
    past = Walk(0, 4, 4 * n, (32,), ((8, 4),), 1.0, around=True)
    parts = Walk(0, 4, 4 * n, (32, 32 * 1024), ((8, 4),), 1.0, around=True)
    assert cycles(past, n // 8) < cycles(plain, n // 8)
    assert cycles(parts, 1024, n // 8192) > cycles(past, n // 8)
