"""Memory, launches, threads: right under concurrency, forks, and use after use."""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import test_memory
from level3 import I32, Builder

from loopwright_core.errors import ArgumentError, DeviceError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.plugin.device import Device
from loopwright_core.program.program import Program
from loopwright_render_clang import cpu, launcher, runtime
from loopwright_render_clang.compile import compile_program
from loopwright_render_clang.device import CpuDevice
from loopwright_render_clang.plugin import REQUIRES_API, loopwright_devices
from loopwright_render_clang.runtime import Bound, Loaded
from loopwright_render_clang.shared_object import open_library


def load(program: Program) -> Loaded:
    device = CpuDevice()
    loaded: Loaded = device.load(device.compile(device.render(program), program), program)
    return loaded


def counting(threads: int, n: int) -> Program:
    """Each thread adds 1 to its n numbers and writes its own number behind them."""
    b = Builder("counting")
    b.threads = threads
    out = b.buffer("out", dt.int32, (threads, n + 1), True)
    thread = UOp(Op.SPECIAL, I32, (), ("thread", threads))
    row = b.op(Op.MUL, thread, const(n + 1, I32))
    with b.loop(n, "i") as i:
        at = b.op(Op.ADD, row, i)
        b.store(out, at, b.op(Op.ADD, b.load(out, at), const(1, I32)))
    b.store(out, b.op(Op.ADD, row, const(n, I32)), thread)
    return b.program()


def fresh(threads: int, n: int) -> np.ndarray:
    return np.zeros((threads, n + 1), np.int32)


def test_plugin() -> None:
    """The plugin asks for an API and brings one device."""
    (device,) = loopwright_devices()
    assert isinstance(device, Device)
    assert (device.name, device.language, device.count) == ("cpu", "c", 1)
    assert REQUIRES_API == (1, 0)
    assert device.state()[0] == "ready"


def test_variants() -> None:
    """Named processors render and nothing more; others are refused with the list."""
    device = CpuDevice().with_variant("armv8")
    assert device.name == "cpu:armv8" and device.target.vector_bytes == (16,)
    assert device.state()[0] == "render only"
    with pytest.raises(DeviceError, match="cannot run kernels here"):
        device.compile("", counting(2, 2))
    with pytest.raises(DeviceError, match="x86-64-v4"):
        CpuDevice().with_variant("z80")


def test_memory_is_aligned_and_shared() -> None:
    """Allocated memory is 64-byte aligned; a host array is used where it lies."""
    for n in (0, 1, 63, 64, 65, 4097):
        m = runtime.allocate(n)
        assert m.address % 64 == 0 and np.asarray(m).nbytes == n
    a = np.arange(6, dtype=np.float64)
    m = runtime.from_host(a)
    assert (m.address, m.n_bytes) == (a.ctypes.data, 48)
    view = np.asarray(m)
    a[0] = 5.0
    assert view[:8].view(np.float64)[0] == 5.0
    b = np.zeros(6)
    runtime.to_host(m, b)
    assert (a == b).all()
    runtime.to_host(runtime.allocate(0), np.zeros(0))


def test_memory_lives_as_long_as_its_views() -> None:
    """The bytes stay while a view of them does."""
    view = np.asarray(runtime.allocate(1 << 20))
    view[:] = 7
    gc.collect()
    other = np.asarray(runtime.allocate(1 << 20))
    other[:] = 8
    assert (view == 7).all()


def test_wrong_memory_is_refused() -> None:
    """What cannot be used in place, or does not fit, is refused."""
    with pytest.raises(ArgumentError, match="contiguous"):
        runtime.from_host(np.zeros((4, 4))[:, 1])
    with pytest.raises(ArgumentError, match="bytes are wanted"):
        runtime.to_host(runtime.allocate(4), np.zeros(2))
    with pytest.raises(ArgumentError):
        runtime.allocate(-1)
    with pytest.raises(ArgumentError, match="1 buffers and 0 variables"):
        load(counting(2, 4)).bind([], [])


@pytest.mark.parametrize("threads", [2, 3, 8, 64])
def test_each_part_runs_once(threads: int) -> None:
    """Every launch runs every part exactly once, however many there are."""
    loaded, out = load(counting(threads, 50)), fresh(threads, 50)
    run = loaded.bind([runtime.from_host(out)])
    for _ in range(500):
        run()
    assert (out[:, :50] == 500).all()
    assert out[:, 50].tolist() == list(range(threads))


def test_sleeping_workers_wake() -> None:
    """A launch after a pause finds workers asleep and still runs every part."""
    loaded, out = load(counting(4, 20)), fresh(4, 20)
    run = loaded.bind([runtime.from_host(out)])
    for _ in range(20):
        run()
        time.sleep(0.005)
    assert (out[:, :20] == 20).all()


def test_launches_from_many_threads() -> None:
    """Python threads that launch at once neither block for ever nor mix their work."""
    loaded = load(counting(4, 200))
    outs = [fresh(4, 200) for _ in range(6)]

    def work(out: np.ndarray) -> None:
        run = loaded.bind([runtime.from_host(out)])
        for _ in range(300):
            run()

    threads = [threading.Thread(target=work, args=(o,), daemon=True) for o in outs]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
        assert not t.is_alive()
    assert all((o[:, :200] == 300).all() for o in outs)


def test_scratch_is_per_caller() -> None:
    """Two Python threads in kernels with scratch memory do not share it."""
    program, _ = test_memory.with_locals([100, 5000, 9000], 3)
    loaded, wrong = load(program), []

    def work() -> None:
        out = np.zeros(9, np.float32)
        run = loaded.bind([runtime.from_host(out)])
        want = [t * 1000 + s - 1 for t in range(3) for s in (100, 5000, 9000)]
        for _ in range(100):
            run()
            if out.tolist() != want:
                wrong.append(out.copy())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
        assert not t.is_alive()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks() -> None:
    """A child has a pool of its own, also when the parent was in a launch meanwhile."""
    loaded, out = load(counting(4, 100)), fresh(4, 100)
    run = loaded.bind([runtime.from_host(out)])
    run()
    stop = threading.Event()
    other = fresh(4, 100)

    def keep_busy() -> None:
        again = loaded.bind([runtime.from_host(other)])
        while not stop.is_set():
            again()

    busy = threading.Thread(target=keep_busy, daemon=True)
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                mine = fresh(4, 100)
                mine_run = loaded.bind([runtime.from_host(mine)])
                for _ in range(50):
                    mine_run()
                os._exit(0 if (mine[:, :100] == 50).all() else 1)
            for _ in range(2000):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    break
                time.sleep(0.01)
            else:
                os.kill(child, 9)
                pytest.fail("the child hangs")
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        stop.set()
        busy.join(10)
    run()
    assert (out[:, :100] == 2).all()


def test_same_name_twice() -> None:
    """Kernels of one name in one process stay apart."""
    a, b = load(counting(2, 3)), load(counting(2, 5))
    x, y = fresh(2, 3), fresh(2, 5)
    a.bind([runtime.from_host(x)])()
    b.bind([runtime.from_host(y)])()
    assert x[:, :3].all() and y[:, :5].all()


def test_load_without_a_usable_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder that cannot be written is no obstacle to loading."""
    program = counting(2, 3)
    device = CpuDevice()
    binary = compile_program(device.render(program), program)

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    for _ in range(3):
        out = fresh(2, 3)
        Loaded(binary, program).bind([runtime.from_host(out)])()
        assert out[:, :3].all()


def test_damaged_binary() -> None:
    """Bytes that are no library are refused with a DeviceError."""
    with pytest.raises(DeviceError, match="could not be loaded"):
        open_library(b"nonsense")


def test_gil_is_released() -> None:
    """Other Python threads run while a kernel does."""
    b = Builder("slow")
    n = b.variable("n", 1, 2**31 - 1)
    out = b.buffer("out", dt.float64, (1,), True)
    acc = b.reg(const(1.0, dt.float64), "acc")
    with b.loop(n, "i") as i:
        old = b.after(acc, i)
        b.assign(old, b.op(Op.SQRT, b.op(Op.ADD, old, const(1.0, dt.float64))))
    b.store(out, 0, b.after(acc, b.uops[-1]))
    loaded, counted, done = load(b.program()), [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    run: Bound = loaded.bind([runtime.allocate(8)], [20_000_000])
    t = threading.Thread(target=count, daemon=True)
    t.start()
    before = counted[0]
    run()
    during = counted[0] - before
    done.set()
    t.join(10)
    assert during >= 5


def test_timing() -> None:
    """Timing gives one positive number a run."""
    device, program = CpuDevice(), counting(2, 3)
    memory = device.allocate(32)
    times = device.time(load(program), [memory], [], 4)
    assert len(times) == 4 and all(t > 0 for t in times)
    with pytest.raises(ArgumentError):
        device.time(load(program), [memory], [], 0)


def test_threads_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_THREADS decides; nonsense in it is refused."""
    monkeypatch.setenv("LOOPWRIGHT_THREADS", "3")
    assert cpu.host().threads == 3
    for wrong in ("0", "-1", "many", "1.5", "99999"):
        monkeypatch.setenv("LOOPWRIGHT_THREADS", wrong)
        with pytest.raises(ArgumentError, match="LOOPWRIGHT_THREADS"):
            cpu.n_threads()
        # The plugin still loads: the reason is told where a kernel is to run.
        state, reason = CpuDevice().state()
        assert state == "render only" and "LOOPWRIGHT_THREADS" in reason
    monkeypatch.setenv("LOOPWRIGHT_THREADS", "")
    assert cpu.n_threads() >= 1


def test_this_machine() -> None:
    """The target says of this machine what holds."""
    target = cpu.host()
    assert target.arch in ("x86_64", "aarch64") and target.vector_bytes[0] == 16
    assert all(c >= 0 for c in target.caches) and 8 << 10 <= target.caches[0] <= 1 << 20
    assert dt.float16 in target.storage and dt.float16 not in target.arith
    assert (Op.FMA in target.ops) == target.has_fma


def test_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other systems the device renders and says where it would run."""
    monkeypatch.setattr(cpu.sys, "platform", "win32")
    state, reason = CpuDevice().state()
    assert state == "render only" and "not on win32" in reason
    assert CpuDevice().render(counting(2, 3)).startswith("//")


def test_pool_source_has_no_warnings(tmp_path: Path) -> None:
    """The pool compiles cleanly and its entry is found."""
    assert ctypes.cast(launcher.library().loopwright_pool_run, ctypes.c_void_p).value
    assert launcher.library().loopwright_pool_workers() >= 0
