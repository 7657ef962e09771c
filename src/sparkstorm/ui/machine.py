"""The topologies of this machine: the registry of this user, as the page needs it."""

from collections.abc import Mapping
from typing import final

from sparkstorm.control.client import connect
from sparkstorm.control.control import Control
from sparkstorm.control.registry import Registry

__all__ = ["Machine"]

_WAIT_SECS = 5.0
"""An answer takes milliseconds; a driver that is stopped must not hold up the page."""


@final
class Machine:
    """Knows the topologies that run on this machine under this user.

    A killed driver stays listed for a day, so its topology is still shown, with its last state.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        self._registry = registry or Registry()

    def topologies(self) -> Mapping[str, Control]:
        """Return the controls of all topologies, killed ones too."""
        return {entry.id: connect(entry, _WAIT_SECS) for entry in self._registry.entries()}
