"""The work of the commands on running topologies: ask a driver, or give it an order."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from sparkstorm.control.client import DriverGoneError, connect
from sparkstorm.control.control import Control
from sparkstorm.control.registry import Entry, Registry
from sparkstorm.control.views import MessageDetailView, SituationView
from sparkstorm.errors import ConfigError

__all__ = ["Standing", "deaf", "find", "kill", "listed", "standings", "trace"]

_LOOK_SECS = 0.2
_QUICK_SECS = 3.0
"""How long ``list`` waits for each driver."""

Standing = tuple[Entry, SituationView | None]
"""A topology of the registry, and how it stands; None if its driver does not answer."""


def listed() -> list[Standing]:
    """Return all topologies of this user on this machine, the newest first."""
    return [(entry, _situation(entry)) for entry in Registry().entries()]


def find(name: str) -> tuple[Entry, Control]:
    """Return a running topology by its name, or by how its id begins.

    Raises:
        ConfigError: none is of that name, or several.
    """
    entry = Registry().find(name)
    return entry, connect(entry)


def standings(name: str, every_secs: float | None) -> Iterator[dict[str, Any]]:
    """Yield how a topology stands: once, or again and again until it ends."""
    _, control = find(name)
    while True:
        try:
            yield {
                "topology": asdict(control.topology()),
                "situation": asdict(control.situation()),
                "window": asdict(control.window(":all-time")),
            }
        except DriverGoneError:
            if every_secs is None:
                raise
            return
        if every_secs is None:
            return
        time.sleep(every_secs)


def kill(
    name: str, wait_secs: float | None, *, until_gone: bool, told: Callable[[str], None]
) -> None:
    """Order a topology to end; perhaps wait until it has."""
    entry, control = find(name)
    control.kill(wait_secs)
    told(f"{entry.name} ends: pending messages may still finish")
    while until_gone and _situation(entry) is not None:
        time.sleep(_LOOK_SECS)
    if until_gone:
        told(f"{entry.name} has ended")


def trace(name: str, message: str) -> MessageDetailView:
    """Return a message with its attempts.

    Raises:
        ConfigError: nothing is known of the message.
    """
    _, control = find(name)
    found = control.message(message)
    if found is None:
        raise ConfigError(
            f"nothing is known of a message {message!r} in {name!r}: it has ended, or never was. "
            f"sparkstorm messages {name} lists the unfinished ones, and sparkstorm trace {name} "
            f"--follow TEXT keeps the trees of those to come"
        )
    return found


def deaf(entry: Entry) -> str:
    """Return in a word why a topology does not answer."""
    return "DEAD" if entry.is_dead else "DEAF"


def _situation(entry: Entry) -> SituationView | None:
    if entry.is_dead:
        return None
    try:
        return connect(entry, _QUICK_SECS).situation()
    except DriverGoneError:
        return None
