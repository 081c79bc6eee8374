"""One tree of errors. Each message says what failed, where, and what to do.

Each child is also the built-in error that NumPy raises in that situation.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np


class LoopwrightError(Exception):
    """Everything Loopwright raises on purpose."""


class ShapeError(LoopwrightError, ValueError):
    """Shapes that do not fit each other or the operation."""


class DynamicShapeError(ShapeError):
    """An extent that is known only at launch, used where its value would be needed before."""


class DTypeError(LoopwrightError, TypeError):
    """A dtype the operation or the device does not take."""


class ArgumentError(LoopwrightError, ValueError):
    """A value outside what the argument allows."""


class ArgumentTypeError(LoopwrightError, TypeError):
    """An argument of the wrong Python type."""


class MissingFunctionError(LoopwrightError, AttributeError):
    """A function that NumPy or the array API standard has and Loopwright has not."""


class MissingMethodError(LoopwrightError, AttributeError):
    """A method that an argument must have and has not."""


class AxisError(LoopwrightError, np.exceptions.AxisError):
    """An axis the array does not have."""


class OutOfBoundsError(LoopwrightError, IndexError):
    """An index outside the array."""


class ConstantRangeError(LoopwrightError, OverflowError):
    """A Python number the array's dtype cannot hold."""


class SharingError(LoopwrightError, BufferError):
    """Memory that cannot be handed over as it was asked for."""


class TraceError(LoopwrightError, RuntimeError):
    """The values of a traced array, asked for where there are none."""


class DeviceError(LoopwrightError, RuntimeError):
    """A device that is missing, refused or cannot run on this machine."""


class PluginError(LoopwrightError, RuntimeError):
    """A plugin that is missing, broken or was refused."""


class CompileError(LoopwrightError, RuntimeError):
    """A compiler refused generated source: command, its message, the source's path."""


class OptError(LoopwrightError, ValueError):
    """A scheduling step that is not legal: kernel, axis and the rule in one sentence."""


class VerifyError(LoopwrightError, RuntimeError):
    """IR that breaks its level's rules: which pass made it, which node, which rule."""


class RewriteError(LoopwrightError, RuntimeError):
    """Rewriting that does not end: the two rules that undo each other."""


class LoweringError(LoopwrightError, RuntimeError):
    """A kernel or schedule this version cannot lower, and why."""


def fail(kind: type[LoopwrightError], what: str, *, where: str = "", fix: str = "") -> NoReturn:
    """Raise `kind` with a message of one form: what failed, where, what to do."""
    message = what if not where else f"{what} (in {where})"
    raise kind(f"{message}. {fix}." if fix else message)
