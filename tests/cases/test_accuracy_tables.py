"""NumPy's own accuracy tables, at their own tolerances, on the compiled path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from support.numeric import Host, array

FOLDER = Path(np.__file__).parent / "_core" / "tests" / "data"
TABLES = sorted(FOLDER.glob("umath-validation-set-*.csv"))


def read(table: Path, dtype: type) -> tuple[Host, Host, Host]:
    """Inputs, expected results and tolerances of the rows of one dtype; values stand as bits."""
    rows = [line.split(",") for line in table.read_text().splitlines() if line.startswith("np.")]
    rows = [row for row in rows if row[0] == f"np.{dtype.__name__}"]
    unsigned = f"u{np.dtype(dtype).itemsize}"
    x, want = (np.array([int(row[at], 16) for row in rows], unsigned).view(dtype) for at in (1, 2))
    return x, want, np.array([int(row[3]) for row in rows])


def rank(x: Host) -> Host:
    """Numbers as integers in their order, neighbours one apart; both zeros are 0."""
    bits = x.view(f"i{x.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.iinfo(f"i{x.itemsize}").min - bits, bits)


def test_tables_are_there() -> None:
    """NumPy ships its twenty tables, so that the test below has something to hold."""
    assert len(TABLES) == 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", TABLES, ids=lambda p: p.stem.rsplit("-", 1)[-1])
def test_table(table: Path, dtype: type) -> None:
    """Every row is within its tolerance, NaN exactly where the table has NaN."""
    name = table.stem.rsplit("-", 1)[-1].replace("arc", "a")
    x, want, allowed = read(table, dtype)
    assert len(x) > 100
    got = np.asarray(getattr(lw, name)(array(x)))
    assert got.dtype == dtype
    nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), nan)
    # Neighbouring infinities and opposite signs are far apart as ranks, so wrong ends fail too.
    a, b = rank(got[~nan]).astype(object), rank(want[~nan]).astype(object)
    bad = np.flatnonzero(np.abs(a - b) > allowed[~nan])
    shown = [(x[~nan][i].hex(), got[~nan][i].hex(), want[~nan][i].hex()) for i in bad[:3]]
    assert not len(bad), f"{len(bad)} rows of {table.name}: {shown}"
