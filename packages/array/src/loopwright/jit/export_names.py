"""Names in exported C: of the arrays, as the function's parameters are, and of the functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loopwright.handwritten import HandWritten
from loopwright.identifiers import legal_name
from loopwright.jit.capture import Captured, CapturedKernel
from loopwright_core.built import Built
from loopwright_core.program.clayout import function_names

# What the texts around the kernels call their own.
_RESERVED = re.compile(
    r"constant\d+|array_\w+|aligned_alloc|argc|argv|best|checksum|failed|fill|main|round|seconds"
    r"|size_t|start|stderr|stdin|stdout|stop|thread|timespec|transfer|uintptr_t|work|workspace"
    r"|NULL|EOF"
)


@dataclass(frozen=True, slots=True)
class Names:
    """`function`: the one exported, `with_workspace` its other form. `inputs`, `outputs`: of the
    arrays. `kernels`: the functions of each kernel, one a phase. All are C's, and unique."""

    function: str
    with_workspace: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernels: dict[Built | HandWritten, tuple[str, ...]]

    @property
    def arrays(self) -> tuple[str, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    def macro(self, what: str) -> str:
        """What the header calls a number of the function, or of an array."""
        return f"{self.function}_{what}".upper()


def names_of(captured: Captured, function: str) -> Names:
    """Names for an export called `function` (`function_f` where the texts have such a name)."""
    if _RESERVED.fullmatch(function):
        function = f"{function}_f"
    with_workspace = f"{function}_with_workspace"
    taken = {function.upper(), with_workspace.upper()}
    paths = (*captured.input_paths, *captured.output_paths)
    arrays = tuple([_free(_identifier(path), taken) for path in paths])
    n = captured.n_inputs
    kernels = _kernel_names(captured.kernels, taken)
    return Names(function, with_workspace, arrays[:n], arrays[n:], kernels)


def _identifier(path: str) -> str:
    """What C may call the array at a place like `params['w'][0]`.

    >>> _identifier("x"), _identifier("params['w'][0].scale"), _identifier("double")
    ('x', 'params_w_0_scale', 'k_double')
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", path).strip("_") if path.isascii() else path
    return legal_name(plain)


def _free(wanted: str, taken: set[str]) -> str:
    """The name, or with a number behind it, that no other has; macros know no small letters."""
    free, n = wanted, 1
    while free.upper() in taken or _RESERVED.fullmatch(free):
        n += 1
        free = f"{wanted}_{n}"
    taken.add(free.upper())
    return free


def _kernel_names(
    kernels: Iterable[CapturedKernel], taken: set[str]
) -> dict[Built | HandWritten, tuple[str, ...]]:
    found: dict[Built | HandWritten, tuple[str, ...]] = {}
    for kernel in kernels:
        if kernel.built not in found:
            wanted: Sequence[str] = function_names(kernel.built.program)
            found[kernel.built] = tuple([_free(name, taken) for name in wanted])
    return found
