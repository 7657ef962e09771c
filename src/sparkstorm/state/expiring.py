"""A named state with a time to live: keys go some time after their last put.

The time is the batch's, so a repeated run removes the same keys. Time is cut into *spans* of a
hundredth of the time to live. All keys put in a span go together, when the last of them has lived
long enough. Two more spaces stand beside the values: *times* has the end of each key's span, and
*due* has the keys of each span. So a batch looks at no more keys than the batch removes, wherever
the keys are stored. In *due* there are:

``batches``         the ends of all spans with keys, a hundred or so
``<end>``           the number of the span's lists of keys
``(<end>, <n>)``    the keys that a batch put first in the span

So a key that every batch puts is noted once per span, and no batch writes lists that grow with the
keys of other batches.
"""

from collections.abc import Iterator
from typing import Any, final

from sparkstorm.state.spaces.key_values import KeyValues

__all__ = ["Expiring"]

_ENDS = "batches"
"""An old name: before there were spans, the times of single batches stood here."""

_SPANS = 100
"""The number of spans in a time to live."""


@final
class Expiring:
    """A key-value state with a time to live (a :class:`sparkstorm.KeyValueState`).

    Args:
        values: the values.
        times: the end of each key's span.
        due: the keys of each span.
        ttl_secs: the life of a key. None: for ever; then the notes of an earlier time to live are
            deleted, and the bolt uses the values directly.
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
        """Set the value of a key; the key's time begins anew."""
        self._values.put(key, value)
        self._note(key)

    def add(self, key: Any, amount: Any = 1) -> Any:
        """Add to the value of a key and return the sum; the key's time begins anew."""
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
        """Start a batch: remove the keys that have lived long enough."""
        ends: list[float] | None = self._due.get(_ENDS)
        if self.ttl_secs is None:
            for end in ends or ():
                self._end_span(end)
            self._due.delete(_ENDS)
            return
        self._end = self._end_of(ends or [], now, self.ttl_secs / _SPANS)
        if ends is None:  # the state had no time to live: all of its keys begin to live now
            for key in self._values.keys():  # noqa: SIM118 - not a dict
                self._times.put(key, self._end)
            self._due.put(_ENDS, [])
        elif over := [end for end in ends if end + self.ttl_secs <= now]:
            for end in over:
                for key in self._end_span(end):
                    self._values.delete(key)
            self._due.put(_ENDS, [end for end in ends if end + self.ttl_secs > now])

    def finish(self) -> None:
        """End a batch: list the keys put in the batch."""
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
        """Return the end of the batch's span: the newest span, or a span that begins now."""
        newest = ends[-1] if ends else now
        return newest if now < newest <= now + span else now + span

    def _note(self, key: Any) -> None:
        # Once per span is enough: a second put in the span changes no time.
        if self._times.get(key) != self._end:
            self._times.put(key, self._end)

    def _end_span(self, end: float) -> list[Any]:
        """Delete the notes of a span; return the keys without a later put."""
        keys: list[Any] = []
        for number in range(self._lists(end)):
            keys += [key for key in self._due.get((end, number)) if self._times.get(key) == end]
            self._due.delete((end, number))
        self._due.delete(end)
        # A key put again since then has a later end in times, so it is not among these.
        for key in keys:
            self._times.delete(key)
        return keys

    def _lists(self, end: float) -> int:
        """Return the number of a span's lists of keys.

        A state of a version without spans has a single list per batch, under the batch's time:
        here, a span with a single list.
        """
        lists: int | list[Any] = self._due.get(end, 0)
        if isinstance(lists, int):
            return lists
        self._due.put((end, 0), lists)
        self._due.put(end, 1)
        return 1
