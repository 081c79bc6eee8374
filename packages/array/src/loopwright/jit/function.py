"""`lw.jit`: what a user holds, and how a call of it goes."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np

from loopwright.array import Array, from_host
from loopwright.identifiers import legal_name
from loopwright.jit import tree
from loopwright.jit.call import Call, Roles, take_call
from loopwright.jit.capture import Captured
from loopwright.jit.dynamic import checked
from loopwright.jit.one_step import Recent, recent_of
from loopwright.jit.outputs import Out
from loopwright.jit.signature import Signature
from loopwright.jit.trace import trace
from loopwright.jit.variant import Variant
from loopwright.jit.variants import Variants
from loopwright.kernels import KernelView
from loopwright.options import current, note_kernel
from loopwright.tracing import is_tracing, trace_device
from loopwright_core.built import Built
from loopwright_core.errors import ArgumentError, ArgumentTypeError, TraceError, fail
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.loader import registry
from loopwright_core.sequence import begin_sequences

_N_RECENT = 4

Names = str | int | Sequence[str | int]


class Jitted:
    """A function that runs compiled: traced once for each kind of arguments.

    It is traced again for other shapes, dtypes or memory orders of its arrays, other Python
    numbers and texts, other static values, and other options in force. Safe to call from several
    threads at once. Within the trace of another function it is part of that function.
    """

    __wrapped__: Callable[..., Any]
    __name__: str

    def __init__(
        self,
        f: Callable[..., Any],
        static: Names = (),
        dynamic: Mapping[str, Any] | None = None,
        donate: Names = (),
        name: str | None = None,
    ) -> None:
        if not callable(f):
            fail(ArgumentTypeError, f"lw.jit takes a function, not {f!r}")
        if name is not None and not isinstance(name, str):
            fail(ArgumentTypeError, f"a kernel's name is a text, not {name!r}")
        functools.update_wrapper(self, f)
        self._f = f
        self._name: str = getattr(f, "__name__", type(f).__name__)
        self._kernel_name = None if name is None else legal_name(name)
        self._signature = Signature(f, self._name)
        self._static = self._signature.select(static, "static")
        donated = self._signature.select(donate, "donate")
        axes = checked(dynamic or {}, self._signature.names, self._static)
        self._roles = Roles(self._static, donated, axes)
        both = [one for one in donated if one in self._static]
        if both:
            fail(ArgumentError, f"{', '.join(both)} cannot be static and donated")
        self._variants = Variants(self._name)
        self._owners: dict[int, Any] = {}
        # Calls in one step, the latest first, each with the options it was made under.
        self._recent: tuple[tuple[Options, Recent], ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recent = self._recent
        if recent and not is_tracing():
            out = kwargs.pop("out", None) if kwargs and not self._signature.takes_out else None
            options = current()
            for made_under, one in recent:
                if made_under is options:
                    if out is not None:
                        if one.call_into(args, kwargs, out):
                            return out
                    else:
                        found = one.call(args, kwargs)
                        if found is not None:
                            return found
            if out is not None:
                kwargs["out"] = out
        return self._call(args, kwargs, None)

    def kernels(self, *args: Any, **kwargs: Any) -> list[KernelView]:
        """The kernels that such a call runs, in order, equal ones once. No compiler runs."""
        return self._kernels(args, kwargs, None)

    def captured(self, *args: Any, **kwargs: Any) -> Captured:
        """The computation of such a call: its kernels and arrays, without running them. Python
        floats are constants of it."""
        return self._captured(args, kwargs, None)

    @property
    def n_variants(self) -> int:
        """For how many kinds of arguments it is compiled."""
        return len(self._variants)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """As a method: the object is told apart by its identity, unless it is a dataclass."""
        return self if owner is None else Method(self, owner)

    def __reduce__(self) -> str:
        """Copied and pickled as functions are: by name."""
        return self.__wrapped__.__qualname__

    def __repr__(self) -> str:
        return f"<lw.jit of {self._name}>"

    def _captured(self, args: Sequence[Any], kwargs: dict[str, Any], owner: Any) -> Captured:
        return self._inspect(args, kwargs, owner, True).captured

    def _kernels(self, args: Sequence[Any], kwargs: dict[str, Any], owner: Any) -> list[KernelView]:
        kernels = self._inspect(args, kwargs, owner, False).captured.kernels
        return [KernelView(b) for b in dict.fromkeys(k.built for k in kernels)]

    def _inspect(
        self, args: Sequence[Any], kwargs: dict[str, Any], owner: Any, keeps_numbers: bool
    ) -> Variant:
        if is_tracing():
            fail(TraceError, "the kernels of a call are not known while another one is traced")
        return self._variant(self._take(args, kwargs, owner, keeps_numbers), owner)

    def _call(self, args: Sequence[Any], kwargs: dict[str, Any], owner: Any) -> Any:
        out = None if self._signature.takes_out else kwargs.pop("out", None)
        if is_tracing():
            return self._inline(args, kwargs, out)
        call = self._take(args, kwargs, owner, False)
        variant = self._variant(call, owner)
        if call.options.opts_by_kernel:
            for kernel in variant.captured.kernels:
                if isinstance(kernel.built, Built):  # nothing schedules a hand-written text
                    note_kernel(kernel.built.kernel.name)
        self._remember(call, variant, args, kwargs)
        if out is not None:
            return self._call_into(Out(out, variant.captured, call.values), call, variant)
        given = (*call.inputs, *variant.numbers)
        inputs, table = variant.run(given, {}, call.values, self._name)
        results = variant.results(inputs, table, call.values)
        return tree.put_together(variant.result, iter(results))

    def _call_into(self, out: Out, call: Call, variant: Variant) -> Any:
        inputs = (*call.inputs, *variant.numbers)
        direct = out.direct(inputs)
        given = {row: variant.device.from_host(array) for row, array in direct.items()}
        # a device that copies instead is no way to write the array
        given = {row: m for row, m in given.items() if hasattr(m, "__array_interface__")}
        own, table = variant.run(inputs, given, call.values, self._name)
        out.fill(variant.results(own, table, call.values), [direct[row] for row in given])
        return out.value

    def _remember(
        self, call: Call, variant: Variant, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        """Let the next call like this go straight to its one step, which takes memory as it is."""
        if call.options.opts_by_kernel or any(
            kind.axes is not None or not kind.has_memory for kind in call.kinds
        ):
            return
        step = variant.one_step()
        if step is None:
            return
        new = recent_of(step, tuple(args), kwargs, call.arrays)
        if new is not None:
            others = [one for one in self._recent if one[1].step is not step]
            self._recent = ((call.options, new), *others)[:_N_RECENT]

    def _take(
        self, args: Sequence[Any], kwargs: dict[str, Any], owner: Any, keeps_numbers: bool
    ) -> Call:
        arguments = self._signature.bind(args, kwargs)
        return take_call(arguments, self._roles, self._owned(owner), keeps_numbers)

    def _owned(self, owner: Any) -> str | None:
        """The parameter of an object that is told apart by its identity."""
        is_owned = owner is not None and not tree.is_container(owner)
        return self._signature.names[0] if is_owned else None

    def _variant(self, call: Call, owner: Any) -> Variant:
        def make() -> Variant:
            static, parameter = self._static, self._owned(owner)
            if parameter is not None:
                static = (*static, parameter)
                self._watch(owner)
            begin_sequences(registry().device(call.device))
            full = self._signature.full
            traced = trace(self._f, self._name, full, call, static, self._kernel_name)
            return Variant(
                traced.captured, traced.result, call.is_numpy, call.donated, traced.numbers
            )

        return self._variants.get(call, make)

    def _watch(self, owner: Any) -> None:
        """Forget an object's variants when it is gone: another may get its identity."""
        place = id(owner)
        if place in self._owners:
            return
        variants, owners = self._variants, self._owners

        def forget(_: Any) -> None:
            owners.pop(place, None)
            variants.forget(("owner", place))

        try:
            owners[place] = weakref.ref(owner, forget)
        except TypeError:  # an object that cannot be watched is kept instead
            owners[place] = owner

    def _inline(self, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> Any:
        """The call as part of the trace that runs: NumPy's arrays become constants of it."""

        def as_array(value: Any) -> Any:
            if isinstance(value, Array):
                return value
            return from_host(np.asarray(value), trace_device(), None)

        arguments = self._signature.bind(args, kwargs)
        for name, value in arguments.items():
            if name not in self._static:
                arguments[name] = tree.map_known_arrays(value, as_array)
        bound = inspect.BoundArguments(self._signature.full, arguments)
        result = self._f(*bound.args, **bound.kwargs)
        if out is None:
            return result
        targets: list[Any] = []
        values: list[Any] = []
        tree.take_apart(out, "out", targets, [])
        tree.take_apart(result, "the result", values, [])
        if len(targets) != len(values) or not all(isinstance(t, Array) for t in targets):
            fail(
                TraceError,
                "while a function is traced, out= takes a Loopwright array for each result",
                fix="leave out= out",
            )
        for target, value in zip(targets, values, strict=True):
            target._uop = value._uop
        return out


class Method:
    """A jitted function as the method of an object."""

    def __init__(self, jitted: Jitted, owner: Any) -> None:
        self.__func__, self.__self__ = jitted, owner
        functools.update_wrapper(self, jitted)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__._call((self.__self__, *args), kwargs, self.__self__)

    def captured(self, *args: Any, **kwargs: Any) -> Captured:
        """As `Jitted.captured`."""
        return self.__func__._captured((self.__self__, *args), kwargs, self.__self__)

    def kernels(self, *args: Any, **kwargs: Any) -> list[KernelView]:
        """As `Jitted.kernels`."""
        return self.__func__._kernels((self.__self__, *args), kwargs, self.__self__)


@overload
def jit(
    f: Callable[..., Any],
    static: Names = ...,
    dynamic: Mapping[str, Any] | None = ...,
    donate: Names = ...,
    name: str | None = ...,
) -> Jitted: ...


@overload
def jit(
    f: None = ...,
    static: Names = ...,
    dynamic: Mapping[str, Any] | None = ...,
    donate: Names = ...,
    name: str | None = ...,
) -> Callable[[Callable[..., Any]], Jitted]: ...


def jit(
    f: Callable[..., Any] | None = None,
    static: Names = (),
    dynamic: Mapping[str, Any] | None = None,
    donate: Names = (),
    name: str | None = None,
) -> Any:
    """`f` compiled: traced once for each kind of arguments, then one call into native code.

    A decorator with and without settings. NumPy arrays in give NumPy arrays out; with a Loopwright
    array among them results are Loopwright arrays. `static`: parameters, by name or position,
    whose values are part of what is compiled; they are hashable. `donate`: parameters whose arrays
    are not used again, so that results may take their memory. `dynamic`: axes of parameters that
    are Variables, like {"x": {0: n}}: compiled once for every size in their range.
    `name`: what its kernels are called.
    Calls take `out=`: an array, or as many as are returned, for the results.
    Raises ArgumentError and ArgumentTypeError; a call raises TraceError where `f` asks for values.
    """
    if f is None:
        return lambda f: Jitted(f, static, dynamic, donate, name)
    return Jitted(f, static, dynamic, donate, name)
