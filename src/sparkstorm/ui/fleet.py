"""Fleet: all topologies that the page knows, also those that have ended."""

import threading
from contextlib import suppress
from typing import final

from sparkstorm.clock import Clock
from sparkstorm.control.prometheus import exposition
from sparkstorm.errors import SparkstormError
from sparkstorm.ui.registry import Registry
from sparkstorm.ui.watch import FRESH_SECS, Watch

__all__ = ["Fleet"]

_MOST_ENDED = 50
"""So many ended topologies are remembered."""

_ROUND_SECS = 5.0
"""How often the keeper asks every driver, whether pages are open or not."""


@final
class Fleet:
    """The watches of all topologies by their ids."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._lock = threading.Lock()
        self._watches: dict[str, Watch] = {}
        self._listed_until = -1.0
        self._began = clock.monotonic()
        self._exposing = threading.Lock()
        self._exposed = ""
        self._exposed_until = -1.0

    def watches(self) -> dict[str, Watch]:
        """Return all watches: the running topologies, and those that ended while they were seen."""
        with self._lock:
            if self._clock.monotonic() >= self._listed_until:
                self._list()
                self._listed_until = self._clock.monotonic() + FRESH_SECS
            return dict(self._watches)

    def watch(self, topology: str) -> Watch | None:
        """Return the watch of a topology; None if it was never seen."""
        return self.watches().get(topology)

    def _list(self) -> None:
        listed = self._registry.topologies()
        for name, control in listed.items():
            watch = self._watches.get(name)
            if watch is None:
                self._watches[name] = Watch(control, self._clock)
            else:
                watch.join(control)
        ended = [name for name in self._watches if name not in listed]
        for name in ended:
            self._watches[name].leave()
        for name in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._watches[name]

    def age_secs(self) -> float:
        """Return for how long the page has been running."""
        return self._clock.monotonic() - self._began

    def exposition(self) -> str:
        """Return the metrics of all listed topologies for Prometheus, once a second anew."""
        controls = {name: one.control for name, one in self.watches().items() if one.listed}
        with self._exposing:
            if self._clock.monotonic() >= self._exposed_until:
                self._exposed = exposition(controls)
                self._exposed_until = self._clock.monotonic() + FRESH_SECS
            return self._exposed

    def keep(self, stop: threading.Event) -> None:
        """Ask every driver now and then, so that the last state is known when a driver ends."""
        while not stop.is_set():
            with suppress(SparkstormError):  # the page of topologies says so
                for watch in self.watches().values():
                    with suppress(SparkstormError):  # and so does each page of this topology
                        _look(watch)
            stop.wait(_ROUND_SECS)


def _look(watch: Watch) -> None:
    """Ask what the first pages of a topology show."""
    watch.topology()
    watch.situation()
    for window in ("600", ":all-time"):
        watch.window(window)
    watch.messages()
    watch.letter_groups()
    watch.letters()
    watch.replays()
    watch.followed()
    watch.lines()
