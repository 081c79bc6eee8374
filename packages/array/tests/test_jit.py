"""`lw.jit`: the same results as without it, for containers, static arguments and methods."""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
import math
import pickle
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import loopwright as lw
from loopwright.jit.variants import RetraceWarning
from loopwright_core.errors import ArgumentError, ArgumentTypeError, DeviceError


def f32(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_arrays_come_out_as_they_went_in() -> None:
    """NumPy's arrays and scalars give NumPy's arrays, a Loopwright array among them its own."""
    twice = lw.jit(lambda x, y: x + y)
    x = f32(3)
    assert type(twice(x, x)) is np.ndarray
    assert twice(x, x).flags.writeable
    assert type(twice(np.float32(1), 2)) is np.ndarray
    assert isinstance(twice(lw.asarray(x), 1), lw.Array)
    assert isinstance(twice(x, lw.asarray(x)), lw.Array)
    np.testing.assert_array_equal(twice(x, lw.asarray(x)).numpy(), x + x)
    assert isinstance(lw.jit(lambda: lw.arange(3))(), lw.Array)


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class State:
    weights: Any
    name: str = "s"


def test_containers_go_in_and_come_out() -> None:
    """Tuples, named tuples, lists, dicts, dataclasses, None and plain values, at any depth."""

    @lw.jit
    def f(tree: Any, more: Any = None) -> Any:
        w, x = tree["state"].weights, tree["pair"].second
        return {"sum": [w + x], "pair": Pair(w, None), "state": State(x * 2, tree["state"].name)}

    w, x = f32(4), f32(4, seed=1)
    out = f({"state": State(w, "mine"), "pair": Pair(None, x)})
    np.testing.assert_array_equal(out["sum"][0], w + x)
    assert isinstance(out["pair"], Pair)
    np.testing.assert_array_equal(out["pair"].first, w)
    assert out["pair"].second is None
    assert (type(out["state"]), out["state"].name) == (State, "mine")
    np.testing.assert_array_equal(out["state"].weights, x * 2)


def test_what_is_no_argument_is_refused() -> None:
    """Other objects, sets and complex numbers are refused by the name of the place they are at."""
    f = lw.jit(lambda x: x)
    for bad in (object(), {1, 2}, 1j, print):
        with pytest.raises(ArgumentTypeError, match=r"x\[0\]\['a'\] is a .*static="):
            f([{"a": bad}])
    with pytest.raises(ArgumentTypeError, match="the result of <lambda>"):
        lw.jit(lambda x: {1, 2})(f32(2))
    with pytest.raises(ArgumentTypeError, match="missing a required argument"):
        f()
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        lw.jit(3)  # type: ignore[call-overload]


def test_python_numbers_are_weak_and_part_of_the_key() -> None:
    """`x * 2` keeps x's dtype as in NumPy; 1, 1.0, True and -0.0 are different arguments."""
    f = lw.jit(lambda x, s: x * s)
    x = np.ones(3, np.int8)
    for s in (2, True, 2.0, np.int16(2)):
        assert f(x, s).dtype == (x * s).dtype
    made = f.n_variants
    for s in (1, 1.0, True, 0.0, -0.0):
        f(f32(2), s)
    assert f.n_variants == made + 5
    one = np.ones(1, np.float32)
    assert np.signbit(f(one, -0.0)).all()
    assert not np.signbit(f(one, 0.0)).any()
    assert np.isnan(f(one, float("nan"))).all()
    with pytest.raises(OverflowError, match="300 is out of range for int8"):
        f(x, 300)


def test_floats_share_their_kernels() -> None:
    """Another float needs no other kernel where it is an operand; what Python makes of it does."""

    @lw.jit
    def f(x: Any, s: float, more: Any, eps: float = 0.25) -> Any:
        return x * s + math.sqrt(more["a"]) + eps if s > 0 else x / s, s

    x = f32(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for s in np.linspace(-3, 3, 60).tolist():
            got, back = f(x, s, {"a": 4.0})
            want = f.__wrapped__(lw.asarray(x), s, {"a": 4.0})[0].numpy()
            assert got.tobytes() == want.tobytes()
            assert (type(back), back) == (float, s)
    kernels = {k.built for s in (-2.0, -1.0, 1.5, 2.5) for k in f.kernels(x, s, {"a": 4.0})}
    assert len(kernels) == 2
    assert f.kernels(x, 1.5, {"a": 9.0})[0].built not in kernels
    source = f.kernels(x, 1.5, {"a": 4.0})[0].source
    assert "0.25" in source
    assert "1.5" not in source
    assert "1.5" in f.captured(x, 1.5, {"a": 4.0}).kernels[0].built.source
    assert f.captured(x, 1.5, {"a": 4.0}).n_inputs == 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bool"])
def test_floats_are_rounded_as_constants_are(dtype: str) -> None:
    """An operand has the value that it has where it is written down, at every dtype."""
    f = lw.jit(lambda x, s: (x + s, x > s, s - x, lw.maximum(x, s), lw.where(x > 0, x, s)))
    kernels = {tuple(k.built for k in f.kernels(np.ones(4, dtype), s)) for s in (0.5, 0.75, 2.5)}
    assert len(kernels) == 1
    x = lw.asarray(np.arange(4).astype(dtype))
    for s in (0.1, 1 + 2**-30, 1e30, -7e4, float("inf")):
        for got, want in zip(f(x, s), f.__wrapped__(x, s), strict=True):
            assert got.dtype == want.dtype
            assert got.numpy().tobytes() == want.numpy().tobytes()


def test_static_arguments() -> None:
    """Named or numbered, with defaults, compared by value and type; must be hashable."""

    @lw.jit(static=("axes", -1))
    def f(x: Any, axes: Any = (0,), *, scale: int = 1) -> Any:
        return lw.sum(x, axis=axes) * scale

    x = f32(3, 4)
    np.testing.assert_array_equal(f(x), np.asarray(lw.sum(lw.asarray(x), axis=0)))
    assert f(x, axes=(0, 1)).shape == ()
    assert f(x, (1,), scale=2).shape == (3,)
    assert f.n_variants == 3
    with pytest.raises(ArgumentTypeError, match="axes is a list, which cannot be hashed"):
        f(x, [0])
    with pytest.raises(ArgumentError, match=r"no parameter 'n' \(in static=\)"):
        lw.jit(lambda x: x, static="n")
    with pytest.raises(ArgumentError, match="no parameter 2"):
        lw.jit(lambda x: x, static=2)
    with pytest.raises(ArgumentError, match="cannot be static and donated"):
        lw.jit(lambda x: x, static="x", donate=0)


def test_defaults_and_keywords() -> None:
    """Defaults may be arrays; arguments go by position or by name, and are missed by name."""
    w = f32(3, seed=1)

    @lw.jit
    def f(x: Any, w: Any = w, b: Any = None, *, k: float = 2.0) -> Any:
        y = x * w * k
        return y if b is None else y + b

    x = f32(3)
    want = x * w * np.float32(2)
    for got in (f(x), f(x, w), f(x=x), f(w=w, x=x), f(x, w, None), f(x, k=2.0)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(f(x, b=w), want + w)
    for bad in (lambda: f(), lambda: f(x, w, w, w), lambda: f(x, q=1), lambda: f(x, x=x)):
        with pytest.raises(ArgumentTypeError, match=r"f\(\) "):
            bad()


def test_what_a_call_is_told_apart_by() -> None:
    """Shapes, dtypes, memory order and options each make a variant; values do not."""
    f = lw.jit(lambda x: x + x)
    x = f32(4, 4)
    f(x), f(x + 1), f(np.ascontiguousarray(x))
    assert f.n_variants == 1
    f(x.T)
    assert f.n_variants == 2
    f(x.astype(np.float64)), f(f32(2, 8))
    assert f.n_variants == 4
    with lw.options(schedule="none"):
        f(x)
    assert f.n_variants == 5
    f(x)
    assert f.n_variants == 5


def test_layouts_and_byte_orders() -> None:
    """Odd strides, misaligned, read-only, byte-swapped and empty arrays give NumPy's values."""
    f = lw.jit(lambda x: x * 2 + 1)
    x = f32(6, 8)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(x.shape)
    misaligned[...] = x
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (
        x[::2, ::-1],
        x.T,
        misaligned,
        frozen,
        x.astype(">f4"),
        x[:0],
        x[1, 2],
        x[1:, 3:],
    ):
        got = f(given)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, given * 2 + 1)
    y = lw.asarray(x)
    for view, want in ((y.T, x.T), (y[::2], x[::2]), (y + 1, x + 1), (y[None], x[None])):
        np.testing.assert_array_equal(f(view).numpy(), want * 2 + 1)


def test_results_are_nobody_elses() -> None:
    """Results that are an argument, one value twice, or a constant are memory of their own."""
    table = f32(3)
    f = lw.jit(lambda x: (x, x[None], x + 1, x + 1, lw.asarray(table)))
    x = f32(3, seed=2)
    before = x.copy()
    first = f(x)
    kept = [r.copy() for r in first]
    for r in first:
        r += 100
    np.testing.assert_array_equal(x, before)
    for got, want in zip(f(x), kept, strict=True):
        np.testing.assert_array_equal(got, want)
    y = lw.asarray(x)
    same, view, *_ = f(y)
    assert same._uop is y._uop  # values that never change need no copy
    np.testing.assert_array_equal(view.numpy(), x[None])


def test_jitted_functions_inline() -> None:
    """A jitted function within another is part of it; NumPy's arrays it is given are constants."""
    inner = lw.jit(lambda x, y: lw.exp(x) * y)
    outer = lw.jit(lambda x: inner(x, np.float32(2)) + inner(x, np.ones(4, np.float32)))
    x = f32(4)
    want = lw.exp(lw.asarray(x)) * np.float32(2) + lw.exp(lw.asarray(x))
    np.testing.assert_array_equal(outer(x), want.numpy())
    assert inner.n_variants == 0
    assert len(outer.kernels(x)) == 1


def test_methods_are_told_apart_by_their_object() -> None:
    """Each object has its own variants, which go with it; a dataclass is looked into."""

    class Layer:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @lw.jit
        def __call__(self, x: Any) -> Any:
            return x * self.scale

    one, two = Layer(2.0), Layer(3.0)
    x = f32(3)
    np.testing.assert_array_equal(one(x), x * np.float32(2))
    np.testing.assert_array_equal(two(x), x * np.float32(3))
    jitted = Layer.__dict__["__call__"]
    assert jitted.n_variants == 2
    assert len(one.__call__.kernels(x)) == 1  # type: ignore[attr-defined]
    del two
    assert jitted.n_variants == 1

    @dataclasses.dataclass
    class Model:
        w: Any

        @lw.jit
        def run(self, x: Any) -> Any:
            return self.w * x

    model = Model(f32(3, seed=1))
    np.testing.assert_array_equal(model.run(x), model.w * x)
    model.w = model.w + 1
    np.testing.assert_array_equal(model.run(x), model.w * x)


class Kind(enum.Enum):
    SUM = 1
    MAX = 2


def test_plain_values_decide() -> None:
    """Members of enumerations, texts and dtypes are arguments that the function may branch on."""

    @lw.jit
    def f(x: Any, kind: Kind, *more: Any, dtype: Any = None, **rest: Any) -> Any:
        y = lw.sum(x) if kind is Kind.SUM else lw.max(x)
        for part in (*more, *rest.values()):
            y = y + part
        return y if dtype is None else lw.astype(y, dtype)

    x = np.arange(5)
    assert f(x, Kind.SUM) == 10
    assert f(x, Kind.MAX, np.int64(1), 2, z=x[0]) == 7
    assert f(x, kind=Kind.MAX, dtype=lw.float32).dtype == np.float32
    assert f(x, Kind.MAX, dtype=np.dtype("int8")).dtype == np.int8
    assert f.n_variants == 4


def test_options_given_by_kernel_name_are_checked_in_every_call() -> None:
    """A name that is no kernel's is an error also where the variant was there before."""
    f = lw.jit(lambda x: lw.exp(x) * 2, name="doubled_exp")
    x = f32(64)
    for _ in range(2):
        with lw.options(opts={"doubled_exp": ["UPCAST i 4"]}):
            assert f.kernels(x)[0].opts == ("UPCAST i 4",)
            f(x)
        with (
            pytest.raises(ArgumentError, match="other"),
            lw.options(opts={"doubled_exp": ["UPCAST i 4"], "other": []}),
        ):
            f(x)


def test_metadata_is_the_functions() -> None:
    """Name, docstring and signature are kept; the function itself is `__wrapped__`."""

    def f(x: Any, n: int = 2) -> Any:
        """Doubles."""
        return x * n

    g = lw.jit(f, static="n")
    assert (g.__name__, g.__doc__, g.__wrapped__) == ("f", "Doubles.", f)
    assert inspect.signature(g) == inspect.signature(f)
    assert repr(g) == "<lw.jit of f>"


def test_functions_of_numpy() -> None:
    """NumPy's own functions are called with their operands alone, and take `out=`."""
    x = f32(5)
    np.testing.assert_array_equal(lw.jit(np.add)(x, x), x + x)
    np.testing.assert_array_equal(lw.jit(np.negative)(x), -x)
    out = np.empty_like(x)
    assert lw.jit(np.multiply)(x, 2, out=out) is out
    np.testing.assert_array_equal(out, x * 2)


def test_containers_without_an_end_are_refused() -> None:
    """A list that contains itself is an error with the argument's name, as a result too."""
    endless: list[Any] = [f32(3)]
    endless.append(endless)
    with pytest.raises(ArgumentTypeError, match=r"^x contains itself"):
        lw.jit(lambda x: x[0])(endless)
    with pytest.raises(ArgumentTypeError, match=r"^the result of .* contains itself"):
        lw.jit(lambda x: endless)(f32(3))


@lw.jit
def by_name(x: Any) -> Any:
    return x + 1


def test_pickled_by_name() -> None:
    """A jitted function of a module travels and is copied as the function it is."""
    assert pickle.loads(pickle.dumps(by_name)) is by_name
    assert copy.deepcopy({"f": by_name})["f"] is by_name


def test_kernels_without_a_run() -> None:
    """`kernels` shows what a call would run, under the name given, and compiles nothing."""
    f = lw.jit(lambda x: lw.softmax(x) @ lw.ones((8, 2), dtype=lw.float32), name="my_op")
    names = [k.name for k in f.kernels(f32(4, 8))]
    assert names[0] == "my_op"
    assert len(set(names)) == len(names)
    assert all(k.built._binary is None for k in f.kernels(f32(4, 8)))


def test_compiling_too_often_is_told() -> None:
    """A whole number that changes with every call is named by one warning, at the user's line."""
    f = lw.jit(lambda x, n: x * n)
    x = f32(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for i in range(40):
            f(x, i + 2)
    assert [(w.category, w.filename) for w in told] == [(RetraceWarning, __file__)]
    assert "n (24 kinds) varied" in str(told[0].message)


def test_two_devices_are_refused() -> None:
    """Arrays on different devices cannot be arguments of one call."""
    x, y = lw.asarray(f32(2)), lw.asarray(f32(2))
    y._device = "elsewhere"
    with pytest.raises(DeviceError, match=r"y: one array is on cpu, another on elsewhere"):
        lw.jit(lambda x, y: x + y)(x, y)
