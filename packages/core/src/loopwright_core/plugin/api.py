"""The contract between core and plugins: its version, its entry-point group, its markers."""

from __future__ import annotations

from typing import Final

import pluggy

# Added hook, argument, defaulted field, op or dtype: minor. Anything removed or re-meant: major.
API: Final = (1, 0)

PROJECT: Final = "loopwright"
GROUP_PREFIX: Final = "loopwright.api"
# The group carries the major version: a plugin of another major is never even imported.
GROUP: Final = f"{GROUP_PREFIX}{API[0]}"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
