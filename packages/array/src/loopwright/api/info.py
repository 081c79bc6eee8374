"""What this namespace offers, as the array API standard asks for it."""

from __future__ import annotations

from typing import Any

from loopwright.api.dtypes import isdtype
from loopwright.array import as_device, default_device
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType


class Info:
    """Capabilities, devices and dtypes of the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """Masks as indices and shapes that depend on data work, evaluated on the host."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The device of arrays made without one."""
        return default_device()

    def devices(self) -> list[str]:
        """The devices that run here."""
        from loopwright.devices import devices

        return [name for name, state in devices().items() if str(state).startswith("ready")]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The dtypes of Python numbers and of indices; complex is not supported."""
        as_device(device)  # every device has them all; one that is not there raises
        return {
            "real floating": dt.float64,
            "integral": dt.int64,
            "indexing": dt.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, DType]:
        """All dtypes, or those of a kind, by name."""
        as_device(device)
        return {d.name: d for d in dt.ARRAY_DTYPES if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> Info:
    """What this namespace offers."""
    return Info()
