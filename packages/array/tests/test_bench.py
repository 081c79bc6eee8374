"""bench/: workloads, workers, and the table made of what they measure."""

from __future__ import annotations

import importlib
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from loopwright.bench import table
from loopwright.bench.measure import LIMIT, OURS, PEERS, Cell, Plan, disagreement, measure
from loopwright.bench.workloads import BY_NAME, WORKLOADS, Workload
from loopwright.cli.program import program

SMALL = BY_NAME["small_add_16"]


def test_inputs_are_the_same_everywhere() -> None:
    """A workload's operands depend on its name alone, and have its shapes."""
    for workload in (SMALL, BY_NAME["int8_matmul_1024"], BY_NAME["bf16_matmul_1024"]):
        first, second = workload.inputs(), workload.inputs()
        assert [a.shape for a in first] == list(workload.shapes)
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)


def test_every_peer_names_known_workloads() -> None:
    """What a peer says it runs is a row of the table, and ours runs every row."""
    for peer in ("numpy", "loopwright"):
        known = importlib.import_module(f"loopwright.bench.peers.{peer}").WORKLOADS
        assert set(known) <= set(BY_NAME)
    assert set(known) == set(BY_NAME)


def test_work_is_counted() -> None:
    """Every row that is told in GFLOP/s or GB/s says how much work it is."""
    for workload in WORKLOADS:
        work = {"GFLOP/s": workload.flops, "GB/s": workload.read, "us": 1}[workload.unit]
        assert work > 0, workload.name


def test_wrong_results_are_seen() -> None:
    """A result of another shape, off by more than the tolerance, or NaN is told."""
    expected = np.linspace(-1, 2, 8)
    workload = Workload("w", "us", ((8,),), np.exp, tolerance=1e-6)
    assert disagreement(workload, expected.astype(np.float32), expected) == ""
    assert "shape" in disagreement(workload, expected[:4], expected)
    assert "off by" in disagreement(workload, expected + 1e-5, expected)
    assert "off by" in disagreement(workload, expected * np.nan, expected)


def test_ratios() -> None:
    """Ours is compared with the fastest right peer; the limit is no peer."""
    row = {
        OURS: Cell([2.0, 2.0]),
        "numpy": Cell([4.0]),
        "torch": Cell([3.0]),
        "jax": Cell([1.0], error="wrong: off by 1"),
        LIMIT: Cell([1.0]),
    }
    assert table.best_peer(row) == "torch"
    assert (table.ratio(row), table.share(row)) == (1.5, 0.5)
    assert math.isnan(table.ratio({OURS: Cell([1.0])}))
    assert table.mean_ratio([row, {OURS: Cell([1.0])}]) == pytest.approx(1.5)


def test_peers_run_in_turns(tmp_path: Path) -> None:
    """NumPy and Loopwright run a row in processes of their own and agree with float64; a peer
    whose interpreter lacks it is named with the reason, and the others go on."""
    plan = Plan((SMALL,), (OURS, "numpy", "torch"), (("torch", sys.executable),), 1, 2, 0.01)
    told: dict[str, str] = {}
    versions, rows = measure(plan, told.__setitem__, lambda workload, row: None)
    assert versions == told
    row = rows[SMALL.name]
    for peer in (OURS, "numpy"):
        assert row[peer].error == ""
        assert len(row[peer].times) == 10
    if "torch" not in row:
        assert "No module named 'torch'" in versions["torch"]
    text = table.markdown(plan, versions, rows)
    assert f"| {SMALL.name} | us |" in text
    assert "nan" not in text


def test_command() -> None:
    """`bench --json` prints one document with a cell for each peer; unknown names are told."""
    run = CliRunner()
    options = ["--peers", "numpy", "--rounds", "1", "--json"]
    done = run.invoke(program, ["bench", "small_add", *options])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["rows"][SMALL.name]["cells"]["numpy"]["times_s"]
    for wrong in (["nothing"], ["--peers", "nobody"], ["--python", "torch"]):
        done = run.invoke(program, ["bench", *wrong])
        assert done.exit_code == 1
        assert "error" in done.output


def test_peers_are_modules() -> None:
    """Each peer of the table has its module."""
    folder = Path(table.__file__).parent / "peers"
    assert {*PEERS, LIMIT} == {p.stem for p in folder.glob("*.py")} - {"__init__", "worker"}


def test_cold() -> None:
    """`bench --cold` starts a process for each time; compilation is part of ours."""
    run = CliRunner()
    options = ["--peers", "numpy,loopwright", "--rounds", "2", "--json", "--cold"]
    done = run.invoke(program, ["bench", "small_add", *options])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["cold"] is True
    for name in (SMALL.name, "(import)"):
        cells = document["rows"][name]["cells"]
        assert [len(cells[peer]["times_s"]) for peer in ("numpy", "loopwright")] == [2, 2]
    done = run.invoke(program, ["bench", "small_add", *options[:4], "--cold"])
    assert f"| {SMALL.name} |" in done.stdout and "nan" not in done.stdout
