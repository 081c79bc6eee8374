"""What a plugin imports: the marker for its hook functions and the version it may ask for."""

from loopwright_core.plugin.api import API, hookimpl

__all__ = ["API", "hookimpl"]
