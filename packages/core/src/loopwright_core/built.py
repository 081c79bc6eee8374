"""A built kernel: its text at once, its binary and its loaded form when they are asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from loopwright_core.cache import Cache
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.locks import new_lock
from loopwright_core.plugin.device import Device
from loopwright_core.program.program import Program
from loopwright_core.reproduce import Recipe, reproducible

_ABSENT: Any = object()


class Built:
    """What `pipeline.build` returns. Safe to share between threads."""

    def __init__(self, recipe: Recipe, kernel: Kernel, program: Program, source: str) -> None:
        self.recipe = recipe
        self.kernel = kernel
        self.program = program
        self.source = source
        self._lock = new_lock()
        self._binary: bytes | None = None
        self._loaded: Any = _ABSENT

    @property
    def device(self) -> Device:
        """The device it was built for."""
        return self.recipe.device

    @property
    def binary(self) -> bytes:
        """The compiled text, from the disk cache where it is there. Raises CompileError."""
        with self._lock:
            return self._compile()

    @property
    def loaded(self) -> Any:
        """What `Device.launch` takes; compiled and loaded by the first use."""
        if self._loaded is _ABSENT:
            with self._lock:
                if self._loaded is _ABSENT:
                    self._loaded = self.device.load(self._compile(), self.program)
        return self._loaded

    def launch(
        self, buffers: Sequence[Any], variables: Sequence[int] = (), queue: Any = None
    ) -> None:
        """Run it over device memory: buffers by slot, variables in the program's order."""
        self.device.launch(self.loaded, buffers, variables, queue)

    def _compile(self) -> bytes:
        if self._binary is None:
            device, cache = self.device, Cache()
            # compile_key names compiler, version, flags and CPU features: a binary from a shared
            # cache is only ever loaded where it would have been compiled the same way.
            key = "\0".join((device.name, device.compile_key(), self.source))
            self._binary = cache.get("binary", key)
            if self._binary is None:
                with reproducible(self.recipe):
                    self._binary = device.compile(self.source, self.program)
                cache.put("binary", key, self._binary)
        return self._binary


class Memo:
    """The kernels built in this process, least recently used out first."""

    def __init__(self, n_max: int = 2048) -> None:
        self._n_max = n_max
        self._lock = new_lock()
        self._built: OrderedDict[Any, Built] = OrderedDict()

    def get(self, ast: UOp, device: Device, options: Options, name: str | None) -> Built | None:
        """The kernel built from these before. ASTs are hash-consed: equal means identical."""
        key = _key(ast, device, options, name)
        with self._lock:
            found = self._built.get(key)
            if found is not None:
                self._built.move_to_end(key)
            return found

    def put(self, built: Built) -> Built:
        """Keep it; the one kept first where two threads built the same."""
        recipe = built.recipe
        key = _key(recipe.ast, recipe.device, recipe.options, recipe.name)
        with self._lock:
            kept = self._built.setdefault(key, built)
            if len(self._built) > self._n_max:
                self._built.popitem(last=False)
            return kept

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._built.clear()


def _key(ast: UOp, device: Device, options: Options, name: str | None) -> Any:
    # A device may not be hashable. Its id stays its own: the kept value holds the device.
    return ast, id(device), options, name
