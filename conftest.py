"""What every test of this repository runs under: examples, cache, verifier."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every machine and in every run; LOOPWRIGHT_HYPOTHESIS=explore draws new ones.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("fixed"), derandomize=False, max_examples=1000
)
settings.load_profile(os.environ.get("LOOPWRIGHT_HYPOTHESIS", "fixed"))

# Each runs under the Python of the peer it is named after, which need not be installed here.
collect_ignore_glob = ["packages/array/src/loopwright/bench/peers/*.py"]

_own_cache: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """The verifier runs between all stages; nobody's own cache is read or filled."""
    os.environ.setdefault("LOOPWRIGHT_CHECK", "1")
    if "LOOPWRIGHT_CACHE_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="loopwright-tests-")
        os.environ["LOOPWRIGHT_CACHE_DIR"] = folder  # xdist's workers inherit it
        _own_cache.append(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache of this run."""
    while _own_cache:
        shutil.rmtree(_own_cache.pop(), ignore_errors=True)
