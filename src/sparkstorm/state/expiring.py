"""A named state whose keys go some time after they were last put.

The time is the batch's, so a repeated run removes the same keys. It is cut into *spans* of a
hundredth of the time to live; the keys that were put in one go together, when the last of them has
lived long enough. Beside the values are kept: the end of the span in which each key was put
(*times*), and for each span which keys those are (*due*), so that a batch looks at no more keys
than those that it removes, wherever they are kept. In *due* there are:

``batches``         the ends of the spans that keys were put in, a hundred or so
``<end>``           how many lists of keys the span has
``(<end>, <n>)``    the keys that one batch put, and none before it in the span

So a key that is put in each batch is noted once in a span, and no batch writes anything that grows
with what other batches put.
"""

from collections.abc import Iterator
from typing import Any, final

from sparkstorm.state.key_values import KeyValues

__all__ = ["Expiring"]

_ENDS = "batches"
"""Named for what it held before there were spans: the times of single batches."""

_SPANS = 100
"""How many there are in a time to live."""


@final
class Expiring:
    """A key-value state with a time to live (a :class:`sparkstorm.KeyValueState`).

    Args:
        values: the values.
        times: the end of the span in which each key was put.
        due: which keys were put in each span.
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
        self._end = 0.0
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
        ends: list[float] | None = self._due.get(_ENDS)
        if self.ttl_secs is None:
            for end in ends or ():
                self._take(end)
            self._due.delete(_ENDS)
            return
        self._end = self._end_of(ends or [], now, self.ttl_secs / _SPANS)
        if ends is None:  # it has none so far: all that is there begins to live now
            for key in self._values.keys():  # noqa: SIM118 - not a dict
                self._times.put(key, self._end)
            self._due.put(_ENDS, [])
        elif over := [end for end in ends if end + self.ttl_secs <= now]:
            for end in over:
                for key in self._take(end):
                    self._values.delete(key)
            self._due.put(_ENDS, [end for end in ends if end + self.ttl_secs > now])

    def finish(self) -> None:
        """End a batch: list the keys that it put."""
        if self.ttl_secs is None:
            return
        put = [key for key, end in self._times.fresh().items() if end == self._end]
        if put:
            lists = self._lists(self._end)
            if not lists:
                self._due.put(_ENDS, [*self._due.get(_ENDS, []), self._end])
            self._due.put((self._end, lists), put)
            self._due.put(self._end, lists + 1)

    @staticmethod
    def _end_of(ends: list[float], now: float, span: float) -> float:
        """The end of the span that a batch is in: the newest, or one that begins now."""
        newest = ends[-1] if ends else now
        return newest if now < newest <= now + span else now + span

    def _note(self, key: Any) -> None:
        if self._times.get(key) != self._end:
            self._times.put(key, self._end)

    def _take(self, end: float) -> list[Any]:
        """Forget a span; return the keys that were not put again after it."""
        keys: list[Any] = []
        for number in range(self._lists(end)):
            keys += [key for key in self._due.get((end, number)) if self._times.get(key) == end]
            self._due.delete((end, number))
        self._due.delete(end)
        for key in keys:
            self._times.delete(key)
        return keys

    def _lists(self, end: float) -> int:
        """How many lists of keys a span has.

        In a state of a version without spans, each batch had one, under its time. That is a span
        with a single list.
        """
        lists: int | list[Any] = self._due.get(end, 0)
        if isinstance(lists, int):
            return lists
        self._due.put((end, 0), lists)
        self._due.put(end, 1)
        return 1
