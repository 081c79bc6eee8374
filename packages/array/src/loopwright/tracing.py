"""Traces: functions that run once over arrays without values, and what they may not ask of them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from loopwright.callers import users_call, users_line
from loopwright_core.errors import ArgumentError, TraceError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort

if TYPE_CHECKING:
    from loopwright.own import OwnLaunch

# What a user wrote, by the function of ours that was called first.
_WRITTEN = {
    "__bool__": "bool(x)",
    "__int__": "int(x)",
    "__float__": "float(x)",
    "__complex__": "complex(x)",
    "__index__": "x as an index",
    "__array__": "np.asarray(x)",
    "__buffer__": "memoryview(x)",
    "__array_ufunc__": "a NumPy function of x",
    "__array_function__": "a NumPy function of x",
    "__contains__": "value in x",
    "__getitem__": "x[mask]",
    "__setitem__": "x[mask] = v",
    "__format__": "format(x)",
    "__reduce__": "a pickle of x",
    "__dlpack__": "np.from_dlpack(x)",
    "item": "x.item()",
    "numpy": "x.numpy()",
    "tolist": "x.tolist()",
    "to_device": "x.to_device(...)",
}
_HANDED_OVER = (
    *("numpy", "__array__", "__array_ufunc__", "__array_function__", "__buffer__", "__dlpack__"),
)
_NUMBERS = ("__int__", "__float__", "__index__", "__complex__", "item", "tolist")


class Trace:
    """One run of a function over arrays without values, on a device. `name`: the function's.
    `is_captured`: False where its arrays have memory and are evaluated as they are."""

    __slots__ = ("__weakref__", "calls", "device", "is_captured", "is_running", "name", "numbers")

    def __init__(self, name: str, device: str, is_captured: bool) -> None:
        self.name, self.device, self.is_captured = name, device, is_captured
        self.is_running = True
        # The inputs that Python floats became, by float and dtype, each with its value.
        self.numbers: dict[tuple[int, DType], tuple[UOp, float]] = {}
        # The launches of hand-written kernels, in the order in which they were asked for.
        self.calls: list[OwnLaunch] = []


class Number(float):
    """A Python float given to a traced function: whatever Python does with it sees the float, and
    kernels that it is an operand of take it as an input, so that another float needs no other
    kernel. `place` tells the floats of a trace apart."""

    __slots__ = ("_place", "_trace")
    _trace: Trace
    _place: int

    @classmethod
    def of(cls, value: float, trace: Trace, place: int) -> Number:
        """The float as an argument of that trace."""
        made = cls(value)
        made._trace, made._place = trace, place
        return made

    def operand(self, constant: UOp) -> UOp:
        """What stands for it in an expression: an input that holds the constant's value."""
        trace = self._trace
        if trace is not _running.trace:
            return constant
        from loopwright.memory import buffer_node

        key = (self._place, constant.dtype)
        known = trace.numbers.get(key)
        if known is None:
            node = add_input(trace, buffer_node(constant.dtype, ()))
            known = trace.numbers[key] = (node, constant.arg)
        return known[0]


class _Running(threading.local):
    trace: Trace | None = None


_running = _Running()
# Why a BUFFER has no memory, by its slot: it stands for an input of a trace, or was donated to the
# function of that name.
_absent: dict[int, Trace | str] = {}


def add_input(trace: Trace, node: UOp) -> UOp:
    """Let a BUFFER stand for an input of the trace: it has no memory, ever."""
    return _without_memory(node, trace)


def add_call(launch: OwnLaunch) -> None:
    """Let the trace that runs in this thread launch a hand-written kernel."""
    trace = _running.trace
    assert trace is not None
    for node in launch.results:
        _without_memory(node, trace)
    trace.calls.append(launch)


def add_donated(node: UOp, name: str) -> None:
    """Say why the memory of a BUFFER is gone: the function of that name has it."""
    _without_memory(node, name)


def forget_donated(node: UOp) -> None:
    """The memory of a BUFFER is there again."""
    _absent.pop(node.arg.slot, None)


def _without_memory(node: UOp, why: Trace | str) -> UOp:
    _absent[node.arg.slot] = why
    weakref.finalize(node, _absent.pop, node.arg.slot, None).atexit = False
    return node


@contextmanager
def tracing(name: str, device: str, is_captured: bool = True) -> Iterator[Trace]:
    """A trace that runs inside the block, in this thread."""
    trace = _running.trace = Trace(name, device, is_captured)
    try:
        yield trace
    finally:
        _running.trace = None
        trace.is_running = False


def is_tracing() -> bool:
    """Whether a trace runs in this thread."""
    return _running.trace is not None


def is_capturing() -> bool:
    """Whether what this thread does now will run later, over other arrays."""
    return _running.trace is not None and _running.trace.is_captured


def trace_device() -> str | None:
    """The device of the trace that runs in this thread."""
    return None if _running.trace is None else _running.trace.device


def depends_on_trace(node: UOp) -> bool:
    """Whether a value is computed from the inputs of a trace that runs in this thread."""
    if not is_tracing():
        return False
    leaves = [leaf for leaf in toposort((node,)) if leaf.op is Op.BUFFER]
    return any(isinstance(_absent.get(leaf.arg.slot), Trace) for leaf in leaves)


def refuse_absent(buffers: Iterable[UOp]) -> None:
    """Raise the error of the first BUFFER that stands for an input of a trace, or was donated."""
    if not _absent:
        return
    for node in buffers:
        why = _absent.get(node.arg.slot)
        if isinstance(why, Trace):
            _refuse(why)
        elif why is not None:
            refuse_donated(why)


def refuse_donated(name: str) -> NoReturn:
    """Raise the error of an array whose memory the function of that name has."""
    fail(
        ArgumentError,
        f"this array was donated to {name}, which may have used its memory for results",
        where=users_line(),
        fix="use the result instead, or leave the argument out of donate=",
    )


def refuse_foreign(node: UOp) -> None:
    """Raise the error of a BUFFER in a graph that is captured, if another trace's input it is."""
    why = _absent.get(node.arg.slot)
    if isinstance(why, Trace):
        refuse_leak(why)
    refuse_absent((node,))


def refuse_leak(trace: Trace) -> NoReturn:
    """Raise the error of an array that left the function it was traced in."""
    fail(
        TraceError,
        f"this array was made while {trace.name} was traced and has no value outside of it",
        where=users_line(),
        fix=f"return it from {trace.name}, and keep what the call returns",
    )


def _refuse(trace: Trace) -> NoReturn:
    if not trace.is_running:
        refuse_leak(trace)
    line, called = users_call()
    written = _WRITTEN.get(called, f"{called}(...)")
    if called == "__bool__":
        fix = "choose with lw.where(condition, a, b), or decide by an argument named in static="
    elif called in _NUMBERS:
        fix = "name the argument it comes from in static=, or keep it an array"
    elif called in ("__getitem__", "__setitem__"):
        fix = "choose with lw.where(mask, a, b): the shape of x[mask] depends on values"
    elif called in (
        "numpy",
        "__array__",
        "__array_ufunc__",
        "__array_function__",
        "__dlpack__",
        "__buffer__",
    ):
        fix = "use the function of the same name in lw, or do this outside of lw.jit"
    else:
        fix = "it runs on the host: call it outside of lw.jit"
    fail(
        TraceError,
        f"{written} needs values, and {trace.name} is being traced: they are not known yet",
        where=line,
        fix=fix,
    )
