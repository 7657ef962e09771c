"""The registry, as the page needs one: running topologies by their ids."""

from collections.abc import Mapping
from typing import Protocol

from sparkstorm.control.control import Control

__all__ = ["Registry"]


class Registry(Protocol):
    """Knows the running topologies of a machine."""

    def topologies(self) -> Mapping[str, Control]:
        """Return the control of each topology by the topology's id; called once a second at most.

        An ended topology may be left out. The page shows the last known state of one it has seen.
        """
        ...
