"""A named state whose keys go some time after they were last put.

The time is the batch's, so a repeated run removes the same keys. Beside the values are kept: when
each key was put (*times*), and for each batch which keys it put (*due*), so that a batch looks at
no more keys than those that it removes, wherever they are kept.
"""

from collections.abc import Iterator
from typing import Any, final

from sparkstorm.execution.key_values import KeyValues

__all__ = ["Expiring"]

_BATCHES = "batches"
"""The key of *due* with the times of the batches that it lists."""


@final
class Expiring:
    """A key-value state with a time to live (a :class:`sparkstorm.KeyValueState`).

    Args:
        values: the values.
        times: when each key was put.
        due: which keys were put when.
        ttl_secs: how long a key stays; if None, for ever: what was noted while it had a time to
            live is then forgotten, and the bolt uses the values directly.
    """

    def __init__(
        self, values: KeyValues, times: KeyValues, due: KeyValues, ttl_secs: float | None
    ) -> None:
        self.ttl_secs = ttl_secs
        self._values = values
        self._times = times
        self._due = due
        self._now = 0.0
        self.get = values.get
        self.items = values.items
        self.keys = values.keys

    # --- for the bolt --------------------------------------------------------------------------

    def put(self, key: Any, value: Any) -> None:
        """Set the value of a key; its time begins anew."""
        self._values.put(key, value)
        self._note(key)

    def add(self, key: Any, amount: Any = 1) -> Any:
        """Add to the value of a key and return the sum; its time begins anew."""
        total = self._values.add(key, amount)
        self._note(key)
        return total

    def delete(self, key: Any) -> None:
        """Remove a key."""
        self._values.delete(key)
        self._times.delete(key)

    def __contains__(self, key: Any) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> Any:
        raise TypeError("the state cannot be pickled; it is kept by the engine")

    # --- for the engine ------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Start a batch: remove what has lived long enough."""
        self._now = now
        batches: list[float] | None = self._due.get(_BATCHES)
        if self.ttl_secs is None:
            for time in batches or ():
                self._due.delete(time)
            self._due.delete(_BATCHES)
        elif batches is None:  # it has none so far: all that is there begins to live now
            for key in self._values.keys():  # noqa: SIM118 - not a dict
                self._times.put(key, now)
            self._due.put(_BATCHES, [])
        elif over := [time for time in batches if time + self.ttl_secs <= now]:
            for time in over:
                self._remove(time)
            self._due.put(_BATCHES, [time for time in batches if time not in over])

    def finish(self) -> None:
        """End a batch: list the keys that it put."""
        if self.ttl_secs is None:
            return
        put = [key for key, time in self._times.fresh().items() if time == self._now]
        if put:
            batches: list[float] = self._due.get(_BATCHES, [])
            if self._now in batches:
                put = list(dict.fromkeys([*self._due.get(self._now), *put]))
            else:
                self._due.put(_BATCHES, [*batches, self._now])
            self._due.put(self._now, put)

    def _note(self, key: Any) -> None:
        if self._times.get(key) != self._now:
            self._times.put(key, self._now)

    def _remove(self, time: float) -> None:
        for key in self._due.get(time, ()):
            if self._times.get(key) == time:  # else it was put again since
                self.delete(key)
        self._due.delete(time)
