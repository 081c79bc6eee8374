"""The variants of one jitted function: one for each kind of arguments, a bounded number kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable

from loopwright.callers import users_level
from loopwright.handwritten import HandWritten
from loopwright.jit.call import Call
from loopwright.jit.variant import Variant
from loopwright_core.built import Built
from loopwright_core.locks import new_rlock

# More kinds of arguments than a program means to have: each costs a trace and a compilation.
_MANY = 24
_MOST = 256


class RetraceWarning(UserWarning):
    """A jitted function is compiled again and again."""


class Variants:
    """Variants by key, the oldest out first. Safe to use from several threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._by_key: dict[tuple[Hashable, ...], Variant] = {}
        self._labels: dict[tuple[Hashable, ...], tuple[str, ...]] = {}
        self._lock = new_rlock()
        self._kernels: set[tuple[Built | HandWritten, ...]] = set()

    def get(self, call: Call, make: Callable[[], Variant]) -> Variant:
        """The variant for that call; one thread makes it while others wait."""
        key = call.key
        found = self._by_key.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._by_key.get(key)
            if found is not None:
                return found
            made = make()
            self._by_key[key] = made
            self._count(call, made)
            if len(self._by_key) > _MOST:
                del self._by_key[next(iter(self._by_key))]
            return made

    def forget(self, part: Hashable) -> None:
        """Drop the variants whose key has that part."""
        with self._lock:
            for key in [key for key in self._by_key if part in key]:
                del self._by_key[key]

    def __len__(self) -> int:
        return len(self._by_key)

    def _count(self, call: Call, made: Variant) -> None:
        """Warn at the first time that there are too many. Only new kernels count: another Python
        float, as a rule, takes those that are there."""
        if len(self._labels) >= _MANY:
            return
        kernels = tuple([kernel.built for kernel in made.captured.kernels])
        if kernels not in self._kernels:
            self._kernels.add(kernels)
            self._labels[call.key] = call.labels
            if len(self._labels) == _MANY:
                self._warn()
                self._kernels.clear()

    def _warn(self) -> None:
        seen: dict[str, set[Hashable]] = {}
        for key, labels in self._labels.items():
            for label, part in zip(labels, key, strict=True):
                seen.setdefault(label, set()).add(part)
        varied = [
            f"{label} ({len(parts)} kinds)" for label, parts in seen.items() if len(parts) > 1
        ]
        warnings.warn(
            f"{self._name} was compiled {_MANY} times: {', '.join(varied)} varied. Every new "
            "shape, dtype or Python integer compiles anew. Give numbers that change as arrays or "
            "NumPy scalars (np.int64(n)), and pad to fewer shapes.",
            RetraceWarning,
            stacklevel=users_level(),
        )
