"""Random arrays against the generator's published blocks and a NumPy counterpart of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from array_oracle import oracle, same
from random_oracle import block, host_below, host_wide, host_words

import loopwright as lw
from loopwright.api.threefry import DRAW, DRAW_MORE, FOLD, SPLIT, threefry
from loopwright.memory import attach, buffer_node, new_buffer, storage
from loopwright_core.errors import ArgumentError, DTypeError, LoopwrightError, ShapeError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op

Host = np.ndarray[Any, Any]
FLOATS = [d.name for d in dt.FLOATS]
INTS = [d.name for d in dt.INTS]

# counter, key, block of Threefry-2x32 with 20 rounds, from the authors' table of known answers
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def key(seed: int = 1) -> lw.Array:
    return lw.random.key(seed, device="cpu")


@pytest.mark.parametrize(("counter", "words", "want"), KNOWN)
def test_known_answers(counter: Any, words: Any, want: Any) -> None:
    """Blocks are the published ones, interpreted and compiled."""
    data = np.array([*words, *counter], np.uint32)
    node = new_buffer(data, "cpu", copy=False)
    parts = [lw.Array(node, "cpu")[i]._uop for i in range(4)]
    found = threefry((parts[0], parts[1]), (parts[2], parts[3]))
    assert tuple(int(oracle(lw.Array(word, "cpu"))) for word in found) == want
    assert tuple(int(lw.Array(word, "cpu")) for word in found) == want
    assert tuple(int(w) for w in block(words, *counter)) == want


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (4, 1, 9), 6])
def test_bits_are_those_of_the_places(shape: Any) -> None:
    """Element i in row-major order is the block of counter i, in every unsigned dtype."""
    k = key(2**63 + 12345)
    sizes = (shape,) if isinstance(shape, int) else shape
    at = np.arange(math.prod(sizes)).reshape(sizes)
    want = host_wide(k.numpy(), at)
    for name in ("uint8", "uint16", "uint32", "uint64"):
        x = lw.random.bits(k, shape, name)
        same(x, want.astype(name))
        np.testing.assert_array_equal(x.numpy(), want.astype(name))


def test_the_words_of_a_key() -> None:
    """A key is its seed's two halves; every seed of 64 bits is one."""
    assert key(5).numpy().tolist() == [5, 0]
    assert key(2**64 - 2).numpy().tolist() == [2**32 - 2, 2**32 - 1]
    for seed in (-1, 2**64):
        with pytest.raises(ArgumentError, match="out of range"):
            key(seed)


def test_counters_beyond_32_bits() -> None:
    """A slice of an array that no memory holds has its own places' bits, at 2**32 and above."""
    k = key(3)
    for n, start in ((2**32, 2**32 - 3), (2**33, 2**32 - 2), (2**45, 2**44 + 2**31 - 1)):
        x = lw.random.bits(k, (n,))[start : start + 4]
        at = np.arange(start, min(start + 4, n))
        np.testing.assert_array_equal(x.numpy(), host_wide(k.numpy(), at).astype(np.uint32))
    x = lw.random.bits(k, (2**20, 2**20), "uint64")[-1, -2:]
    want = host_wide(k.numpy(), np.array([2**40 - 2, 2**40 - 1]))
    np.testing.assert_array_equal(x.numpy(), want)


def test_too_many_elements() -> None:
    """What the counter cannot count is refused."""
    with pytest.raises(ShapeError, match=r"2\*\*60"):
        lw.random.bits(key(), (2**61,), "uint8")


def test_split_and_fold_in() -> None:
    """New keys are blocks of their own counters, apart from those of draws."""
    k = key(9)
    for n in (0, 1, 2, 5):
        want = np.stack(host_words(k.numpy(), np.arange(n), SPLIT), axis=-1)
        assert [one.tolist() for one in lw.random.split(k, n)] == want.tolist()
    first, second = lw.random.split(k)
    drawn = lw.random.bits(first, (4,)).numpy()
    np.testing.assert_array_equal(drawn, host_wide(first.numpy(), np.arange(4)).astype(np.uint32))
    assert not np.any(drawn == lw.random.bits(second, (4,)).numpy())
    for data in (0, 1, 2**32 + 1, 2**60 - 1):
        want = np.array(host_words(k.numpy(), data, FOLD)).astype(np.uint32)
        same(lw.random.fold_in(k, data), want)
        same(lw.random.fold_in(k, lw.asarray(data)), want)
    keys = [*lw.random.split(k, 3), lw.random.fold_in(k, 0), lw.random.fold_in(k, 1), k]
    assert len({tuple(one.numpy().tolist()) for one in keys}) == 6


def test_new_keys_are_small() -> None:
    """A key that comes from a thousand others is in memory, and its draws are the same kernel."""
    k = key(20)
    first = lw.kernels(lw.random.uniform(k, (9,)))[0].source
    for i in range(100):
        k, other = lw.random.split(lw.random.fold_in(k, i))
    assert lw.kernels(lw.random.uniform(other, (9,)))[0].source == first
    assert k._uop.op is Op.BUFFER


def test_new_keys_of_what_is_not_known_yet() -> None:
    """Where the key has no memory, as while a function is compiled, new keys are expressions."""
    node = buffer_node(dt.uint32, (2,))
    first, second = lw.random.split(lw.random.fold_in(lw.Array(node, "cpu"), 3))
    attach(node, storage(key(21)._uop))
    want = lw.random.split(lw.random.fold_in(key(21), 3))
    np.testing.assert_array_equal(first.numpy(), want[0].numpy())
    np.testing.assert_array_equal(second.numpy(), want[1].numpy())


def test_keys_of_a_jitted_function() -> None:
    """A function compiled once draws by the key of each call, new keys included."""

    def step(k: lw.Array, x: lw.Array) -> tuple[lw.Array, lw.Array]:
        first, second = lw.random.split(lw.random.fold_in(k, 5))
        return x + lw.random.normal(first, x.shape, lw.float64), second

    x, compiled = np.ones((3, 4)), lw.jit(step)
    for seed in range(3):
        (got, following), (want, other) = compiled(key(seed), lw.asarray(x)), step(key(seed), x)
        np.testing.assert_array_equal(got.numpy(), want.numpy())
        np.testing.assert_array_equal(following.numpy(), other.numpy())


def test_nothing_is_kept() -> None:
    """One key gives the same values at every call, others different ones."""
    a, b = lw.random.normal(key(4), (20,)).numpy(), lw.random.normal(key(4), (20,)).numpy()
    assert a.tobytes() == b.tobytes()
    assert not np.any(a == lw.random.normal(key(5), (20,)).numpy())


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_is_a_multiple_of_what_the_dtype_has(dtype: str) -> None:
    """From 0 to 1 the highest bits of the word count, as many as the dtype has."""
    k = key(6)
    words = host_wide(k.numpy(), np.arange(300))
    n = 1 - round(math.log2(lw.finfo(dtype).eps))
    if dtype == "float64":
        want = (words >> np.uint64(64 - n)).astype(np.float64) / 2.0**n
    else:
        want = ((words & np.uint64(0xFFFFFFFF)) >> np.uint64(32 - n)).astype(np.float64) / 2.0**n
    x = lw.random.uniform(k, (300,), dtype)
    same(x, want.astype(dt.BY_NAME[dtype].numpy))
    np.testing.assert_array_equal(x.numpy().astype(np.float64), want)


RANGES = [
    (0.0, 1.0), (-1.0, 1.0), (0.1, 0.3), (5.0, 6.0), (-7.5, -7.0), (100.0, 240.0), (0.0, 1e-7),
    (-0.0, 0.9), (2.0, 2.0),
]  # fmt: skip


def every_number(dtype: str) -> Host:
    """All numbers of a float dtype of 8 bits."""
    return np.arange(256, dtype=np.uint8).view(dt.BY_NAME[dtype].numpy).astype(np.float64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_stays_in_its_range(dtype: str) -> None:
    """low <= x < high as the numbers were given, over all of the range."""
    is_wide = dt.BY_NAME[dtype].bits >= 32
    for i, (low, high) in enumerate(RANGES):
        try:
            values = lw.random.uniform(key(i), (20_000,), dtype, low, high).numpy()
        except ArgumentError:
            every = every_number(dtype)
            assert not np.any((every >= low) & (every < high))
            continue
        values = values.astype(np.float64)
        assert values.min() >= low
        assert values.max() < high or low == high == values.max()
        if is_wide and low < high:
            assert values.min() < low + (high - low) / 500
            assert values.max() > high - (high - low) / 500


def test_uniform_refuses_what_has_no_numbers() -> None:
    """Ends in the wrong order, infinite ones, and ranges wider than the dtype."""
    for low, high in ((1.0, 0.0), (0.0, math.inf), (math.nan, 1.0), (-3e38, 3e38)):
        with pytest.raises(ArgumentError):
            lw.random.uniform(key(), (3,), "float32", low, high)
    with pytest.raises(ArgumentError, match="has no numbers from"):
        lw.random.uniform(key(), (3,), "float8_e5m2", 7.1, 7.9)
    with pytest.raises(DTypeError, match="gives floats"):
        lw.random.uniform(key(), (3,), "int32")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_is_box_and_mullers(dtype: str) -> None:
    """Within a few roundings of the transform of its words, and the same bits interpreted."""
    k, at = key(8), np.arange(4000)
    low, high = host_words(k.numpy(), at)
    if dtype == "float64":
        low, high = host_wide(k.numpy(), at), host_wide(k.numpy(), at, DRAW_MORE)
        share = (low | np.uint64(1)).astype(np.float64) * 2.0**-64
        turn = high.view(np.int64).astype(np.float64) * 2.0**-64
    else:
        share = (low | np.uint64(1)).astype(np.float32).astype(np.float64) * 2.0**-32
        turn = (
            high.astype(np.uint32).view(np.int32).astype(np.float32).astype(np.float64) * 2.0**-32
        )
    x = lw.random.normal(k, (4000,), dtype)
    wide = share.astype(np.longdouble)
    want = np.sqrt(-2 * np.log(wide)) * np.sin(np.pi * turn.astype(np.longdouble))
    got = x.numpy()
    error = np.abs(got - want) / np.spacing(np.abs(got))
    # the logarithm loses what the number next to 1 does not hold, a root of it half of that
    assert error.max() < 12
    same(x, got)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_has_its_moments(dtype: str) -> None:
    """Mean, variance, skewness and kurtosis of 100,000 numbers, also moved and scaled."""
    n = 100_000
    x = lw.random.normal(key(10), (n,), dtype).numpy().astype(np.float64)
    loose = 1 if dt.BY_NAME[dtype].bits > 8 else 8  # the dtype's own rounding shows
    assert abs(x.mean()) < loose * 4 / math.sqrt(n)
    assert abs(x.var() - 1) < loose * 4 * math.sqrt(2 / n)
    assert abs((x**3).mean()) < loose * 4 * math.sqrt(15 / n)
    assert abs((x**4).mean() - 3) < loose * 4 * math.sqrt(96 / n)
    y = lw.random.normal(key(10), (n,), dtype, loc=2, scale=0.5).numpy().astype(np.float64)
    assert abs(y.mean() - 2) < loose * 2 / math.sqrt(n)
    assert abs(y.std() - 0.5) < loose * 2 / math.sqrt(2 * n)
    if dtype == "float32":
        np.testing.assert_array_equal(y, np.float32(x.astype(np.float32) * np.float32(0.5)) + 2)


def test_normal_of_the_extreme_words() -> None:
    """The smallest and the greatest words give finite numbers."""
    from loopwright.api.draws import standard_normal

    for word, wide in ((dt.uint32, dt.float32), (dt.uint64, dt.float64)):
        ends = np.array([0, 1, 2 ** (word.bits - 1), word.max], word.numpy)
        a, b = [lw.asarray(v.ravel(), device="cpu") for v in np.meshgrid(ends, ends)]
        x = lw.Array(standard_normal(a._uop, b._uop, wide), "cpu")
        assert np.all(np.isfinite(x.numpy()))
        same(x, x.numpy())


@pytest.mark.parametrize("dtype", INTS)
def test_integers_are_the_fractions_times_their_number(dtype: str) -> None:
    """Exactly the product's whole part, for ranges of every size up to the whole dtype."""
    least, most = int(dt.BY_NAME[dtype].min), int(dt.BY_NAME[dtype].max)
    ranges = [(0, 1), (0, 2), (0, 100), (5, 6), (most - 2, most + 1), (least, most + 1)]
    ranges += [(least, most), (least + 1, most + 1), (0, 3 * 2**30), (0, 2**32), (0, 2**32 + 1)]
    ranges += [(-(2**40), 2**50 + 12345), (0, 2**63 + 2**62)]
    k = key(11)
    words, more = [host_wide(k.numpy(), np.arange(60), use) for use in (DRAW, DRAW_MORE)]
    for low, high in ranges:
        if low < least or high - 1 > most:
            with pytest.raises(ArgumentError, match="does not hold"):
                lw.random.integers(k, (60,), low, high, dtype)
            continue
        want = [low + v for v in host_below(high - low, words, more)]
        assert min(want) >= low
        assert max(want) < high
        for x in (
            lw.random.integers(k, (60,), low, high, dtype),
            lw.random.integers(k, (60,), low, high - 1, dtype, endpoint=True),
        ):
            same(x, np.array(want, dtype))
            assert x.numpy().tolist() == want


def test_integers_are_equally_likely() -> None:
    """Each of six, and each third of a range that no power of two divides, in its share."""
    n = 60_000
    counts = np.bincount(lw.random.integers(key(12), (n,), 6).numpy(), minlength=6)
    chi = ((counts - n / 6) ** 2 / (n / 6)).sum()
    assert chi < 20.5  # 0.1 % of all keys go beyond
    for size in (3 * 2**30, 3 * 2**61):
        thirds = lw.random.integers(key(13), (n,), size, dtype="uint64").numpy() // (size // 3)
        assert np.all(np.abs(np.bincount(thirds.astype(np.int64)) - n / 3) < 4 * math.sqrt(n / 4))


def test_integers_refuse() -> None:
    """Empty ranges, floats as bounds, dtypes that are no integers."""
    for low, high in ((0, 0), (3, 2), (5, 5)):
        with pytest.raises(ArgumentError, match="no integer"):
            lw.random.integers(key(), (3,), low, high)
    with pytest.raises(LoopwrightError):
        lw.random.integers(key(), (3,), 0.5)  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="integer dtype"):
        lw.random.integers(key(), (3,), 5, dtype="float32")


def test_bernoulli() -> None:
    """Never at 0, always at 1, in its share between; with an array each element has its own."""
    n = 40_000
    for p in (0.0, 1e-30, 1 / 3, 0.5, 1 - 2**-53, 1.0, 0, 1, True):
        hits = lw.random.bernoulli(key(14), (n,), p)
        assert hits.dtype == lw.bool
        assert abs(hits.numpy().mean() - float(p)) <= 4 * math.sqrt(p * (1 - p) / n)
    chances = np.array([0.0, 0.25, 1.0], np.float32)
    found = lw.random.bernoulli(key(15), (n, 3), chances).numpy().mean(axis=0)
    assert found[0] == 0
    assert found[2] == 1
    assert abs(found[1] - 0.25) < 4 * math.sqrt(3 / 16 / n)
    for p in (-0.1, 1.1, math.nan):
        with pytest.raises(ArgumentError, match="no probability"):
            lw.random.bernoulli(key(), (3,), p)
    with pytest.raises(ShapeError):
        lw.random.bernoulli(key(), (2,), chances)


def test_permutation() -> None:
    """Every element once, along the axis asked for; all orders of three are equally likely."""
    k = key(16)
    order = np.argsort(host_wide(k.numpy(), np.arange(50)), kind="stable")
    np.testing.assert_array_equal(lw.random.permutation(k, 50).numpy(), order)
    x = np.arange(100).reshape(2, 50)
    np.testing.assert_array_equal(lw.random.permutation(k, x, axis=1).numpy(), x[:, order])
    assert lw.random.permutation(k, 0).shape == (0,)
    found = [tuple(lw.random.permutation(one, 3).tolist()) for one in lw.random.split(k, 300)]
    counts = [found.count(order) for order in set(found)]
    assert len(counts) == 6
    assert all(abs(c - 50) < 4 * math.sqrt(50) for c in counts)


def test_choice() -> None:
    """With and without replacement, along axes, by probabilities."""
    k, x = key(17), np.arange(12.0).reshape(3, 4)
    picks = lw.random.integers(k, (5, 2), 3).numpy()
    np.testing.assert_array_equal(lw.random.choice(k, x, (5, 2)).numpy(), x[picks])
    np.testing.assert_array_equal(lw.random.choice(k, x, (), axis=1).numpy().shape, (3,))
    few = lw.random.choice(k, 10, (2, 4), replace=False).numpy()
    assert few.shape == (2, 4)
    assert len(set(few.ravel().tolist())) == 8
    shares = [0.5, 0.0, 0.2, 0.3]
    drawn = lw.random.choice(k, 4, 20_000, p=shares).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, shares, atol=0.015)
    for wrong in (
        lambda: lw.random.choice(k, 3, 4, replace=False),
        lambda: lw.random.choice(k, 3, 2, p=[0.5, 0.6, 0.2]),
        lambda: lw.random.choice(k, 3, 2, p=[0.5, 0.5]),
        lambda: lw.random.choice(k, 0, 2),
        lambda: lw.random.choice(k, 3, 2, replace=False, p=[0.2, 0.3, 0.5]),
    ):
        with pytest.raises(ValueError):
            wrong()
    assert lw.random.choice(k, 0, 0).shape == (0,)


def test_a_key_that_is_none() -> None:
    """An int, an array of another dtype or several keys are refused with what to write."""
    for wrong in (5, np.zeros(2), np.zeros((3, 2), np.uint32), np.zeros(3, np.uint32)):
        with pytest.raises(LoopwrightError, match=r"lw.random.key\(seed\)"):
            lw.random.uniform(wrong, (3,))


def test_draws_fuse() -> None:
    """A draw and what is computed from it are one kernel; seeds share it."""
    x = lw.asarray(np.ones((50, 40), np.float32), device="cpu")

    def dropped(k: lw.Array) -> lw.Array:
        return lw.where(lw.random.bernoulli(k, x.shape, 0.3), x * 2, 0.0) + lw.random.normal(
            k, x.shape
        )

    (one,), (other,) = lw.kernels(dropped(key(1))), lw.kernels(dropped(key(2)))
    assert one.source == other.source


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "float16", "float32", "float64"])
def test_schedules_and_cuts_change_no_bit(dtype: str) -> None:
    """Bits are the same under every schedule, in slices, and in whatever they are fused with."""
    k, shape = key(18), (37, 65)

    def draw() -> lw.Array:
        if dtype.startswith("uint"):
            return lw.random.bits(k, shape, dtype)
        return lw.random.normal(k, shape, dtype)

    whole = draw().numpy()
    same(draw(), whole)
    for options in ({"schedule": "none"}, {"opts": ["UPCAST j 5"]}, {"opts": ["VECTOR j 4"]}):
        with lw.options(**options):
            assert draw().numpy().tobytes() == whole.tobytes()
    parts = [draw()[i : i + 9, 3::2] for i in range(0, 37, 9)]
    np.testing.assert_array_equal(lw.concat(parts).numpy(), whole[:, 3::2])
    np.testing.assert_array_equal(lw.flip(draw().T).numpy(), np.flip(whole.T))
