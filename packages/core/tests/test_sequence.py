"""Sequences on devices that offer none of their own."""

from __future__ import annotations

from typing import Any

from loopwright_core.sequence import Launch, load_sequence


class Recorder:
    """A device that notes its launches."""

    def __init__(self) -> None:
        self.launched: list[Any] = []

    def launch(self, loaded: Any, buffers: Any, variables: Any, queue: Any = None) -> None:
        self.launched.append((loaded, buffers, variables))


def test_launches_go_one_by_one() -> None:
    """Each launch gets the rows and variables that it names, in order."""
    device = Recorder()
    run = load_sequence(device, [Launch("a", (2, 0), (1,)), Launch("b", (1,))])  # type: ignore[arg-type]
    run(["x", "y", "z"], (7, 8))
    assert device.launched == [("a", ["z", "x"], [8]), ("b", ["y"], [])]
