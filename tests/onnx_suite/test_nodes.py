"""ONNX's node cases, each at its own tolerance against the results stored with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("onnx.backend", reason="onnx is in the dependency group `onnx`")

from onnx_suite import cases

REACHED = [case for case in cases.all_cases() if cases.reason_out_of_reach(case) is None]
FAILING = cases.failing()


@pytest.mark.parametrize("case", REACHED, ids=[case.name for case in REACHED])
def test_case_passes_unless_it_is_listed(case: Any) -> None:
    """A case agrees with its stored results, or is listed as failing and does not."""
    if case.name not in FAILING:
        cases.check(case)
        return
    try:
        cases.check(case)
    except Exception:  # any failure is what the list says
        return
    pytest.fail(f"{case.name} passes: take it off the list of failing cases")


def test_list_of_failing_cases_names_reachable_ones_once() -> None:
    """The list holds nothing but names of cases that are asked, each once."""
    assert len(set(FAILING)) == len(FAILING)
    assert set(FAILING) <= {case.name for case in REACHED}


def test_cases_are_counted(record_property: Callable[[str, object], None]) -> None:
    """At least 1,100 reachable cases pass; the others are counted by reason."""
    n_passed = len(REACHED) - len(FAILING)
    reasons = Counter(cases.reason_out_of_reach(case) for case in cases.all_cases())
    del reasons[None]
    left_out = ", ".join(f"{reason} {n}" for reason, n in sorted(reasons.items()))
    record_property("figure", f"ONNX node cases: {n_passed:,} of {len(REACHED):,} pass")
    record_property("figure", f"ONNX node cases not asked: {left_out}")
    assert n_passed >= 1100
