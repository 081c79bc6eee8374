"""Several kernels as one call of C: which launch takes which arrays is a table in memory."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from loopwright_core.errors import ArgumentError, fail
from loopwright_core.sequence import Launch, NumpyCall
from loopwright_render_clang import launcher, runtime
from loopwright_render_clang.numpy_call import make_call


class _Launch(ctypes.Structure):
    """`launch_t` of pool.c."""

    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("rows", ctypes.POINTER(ctypes.c_int)),
        ("variables", ctypes.POINTER(ctypes.c_int)),
        ("shared", ctypes.POINTER(ctypes.c_longlong)),
        ("n_rows", ctypes.c_int),
        ("n_variables", ctypes.c_int),
        ("n_shared", ctypes.c_int),
        ("parts", ctypes.c_int),
        ("stride", ctypes.c_longlong),
    )


class LoadedSequence:
    """Launches in order over one table of memory; safe to call from several threads at once."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._kept: list[Any] = list(launches)  # the libraries stay open as long as they are named
        steps = []
        self._n_rows = self._n_variables = self._total = 0
        n_most = 1
        for launch in launches:
            loaded: runtime.Loaded = launch.loaded
            if (len(launch.rows), len(launch.variables)) != (
                loaded.n_buffers,
                loaded.n_variables,
            ):
                fail(
                    ArgumentError,
                    f"a kernel of {loaded.n_buffers} buffers and {loaded.n_variables} variables "
                    f"is given {len(launch.rows)} and {len(launch.variables)} in a sequence",
                )
            rows = _ints(launch.rows)
            variables = _ints(launch.variables)
            shared = (ctypes.c_longlong * max(len(loaded.shared), 1))(*loaded.shared)
            self._kept += [rows, variables, shared]
            for _, pointer, parts in loaded.entries:
                steps.append(
                    _Launch(
                        pointer.value,
                        rows,
                        variables,
                        shared,
                        len(launch.rows),
                        len(launch.variables),
                        len(loaded.shared),
                        parts,
                        loaded.stride,
                    )
                )
            n_most = max(n_most, len(launch.rows) + len(loaded.shared), len(launch.variables))
            self._n_rows = max(self._n_rows, *[row + 1 for row in launch.rows], 0)
            self._n_variables = max(self._n_variables, *[v + 1 for v in launch.variables], 0)
            self._total = max(self._total, loaded.total)
        self._steps = (_Launch * max(len(steps), 1))(*steps)
        self._n_most = ctypes.c_int(n_most)
        self._n = ctypes.c_int(len(steps))
        self._run: Any = launcher.library().loopwright_sequence_run
        self._run.restype = None

    def __call__(self, table: Sequence[Any], variables: Sequence[int] = ()) -> None:
        """Run over memory of this device."""
        if len(table) < self._n_rows or len(variables) < self._n_variables:
            fail(
                ArgumentError,
                f"a sequence of {self._n_rows} arrays and {self._n_variables} variables was run "
                f"with {len(table)} and {len(variables)}",
            )
        own = runtime.scratch.get(self._total) if self._total else None
        values = struct.pack(f"{self._n_variables}q", *variables) if self._n_variables else None
        self._run(
            self._steps,
            self._n,
            self._n_most,
            struct.pack(f"{len(table)}P", *[memory.address for memory in table]),
            values,
            None if own is None else ctypes.c_void_p(own.address),
        )

    def numpy_call(
        self,
        arguments: Sequence[tuple[Any, tuple[int, ...]]],
        outputs: Sequence[tuple[Any, tuple[int, ...]]],
        constants: Sequence[Any],
        temporaries: Sequence[int],
    ) -> NumpyCall | None:
        """The sequence over a table of arguments, outputs, constants and temporaries, as a function
        of NumPy's arrays. None: not here.

        `arguments`, `outputs`: (dtype, shape) of each.
        `constants`: memory. `temporaries`: sizes in bytes.
        """
        return make_call(
            self._steps,
            self._n.value,
            self._n_most.value,
            self._total,
            arguments,
            outputs,
            constants,
            temporaries,
        )


def _ints(values: Sequence[int]) -> Any:
    return (ctypes.c_int * max(len(values), 1))(*values)
