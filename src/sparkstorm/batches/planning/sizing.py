"""The size of batches: how many messages the next batch should hold.

A batch takes a *fixed* time, however few messages it holds (Spark plans the job, starts its tasks,
writes its files), and a time for each message. The size follows from these two:

- A batch takes the target time.
- If the fixed time leaves too little of the target, a batch grows until its messages take half as
  long again as the fixed time. A backlog is then worked off at three fifths of the rate of endless
  batches.
- A batch does not grow over the most time that a batch may take. If the fixed time alone comes near
  to that limit, the messages still get the target time, since smaller batches never end a backlog.

One batch shows only the sum of both times; two batches of different sizes show the *share* of the
messages. So the real sizes lie below and above the wanted size in turns. Throughput does not
suffer, as the mean is the same. The sizes lie far apart while the size has to be found, and where
the fixed time decides; near together where batches take the target time.

The share is averaged over pairs of batches. Noise disturbs a pair the less the further its sizes
lie apart, so the square of the distance is the pair's weight. The sizer keeps the *even* size, at
which messages and fixed time take equally long. How long both take comes from the last batch alone:
a machine that is slow for a while is slow in both.

Doubt counts as a smaller share, so doubt lets batches grow. The messages of too large a batch have
a large share, which is easily seen. In too small a batch the share drowns in noise, and the size
would stay small for ever.
"""

import math
from typing import NamedTuple, final

__all__ = ["BatchSizer"]

_FIRST_TO_LEAST = 3.0
"""How many times the least size the first batch may hold: its fixed time is seconds in any case,
while Java and Python warm up."""

_VARIABLE_TO_FIXED = 1.5
"""How long the messages of a batch take beside the fixed time, if the target leaves less."""

_NEAR, _FAR, _STEEP = 0.25, 0.5, 3
"""How far real sizes lie from the wanted one, as shares of it.

They are far if it is to grow by a quarter, or if a batch is to take a quarter more than its target.
"""

_FAST = 2.0
"""From such a change on, sizes differ enough by themselves, and no noise explains the change."""

_LEAST_GROWTH, _MOST_GROWTH, _GROWTH_TO = 3.0, 8.0, 4.0
"""How far to grow at once: to four targets, were all time that of messages; within these two."""

_DOUBT = 0.12
"""How much smaller the share is taken than it seems."""

_FIRST_SHARE, _FIRST_WEIGHT, _MOST_WEIGHT = 0.5, 0.05, 1.4
"""The average forgets: a pair of sizes that are far apart always counts for two fifths."""

_LEAST_SHARE, _MOST_SHARE = 0.01, 0.9
_LEAST_SEEN, _MOST_SEEN = -0.5, 1.5
"""Noise may go this far. Beyond it, the load has changed between the two batches of a pair."""


class _Batch(NamedTuple):
    messages: int
    secs: float


@final
class BatchSizer:
    """Adapts the size of batches to their times; pure but for what the sizer has learned.

    >>> sizer = BatchSizer(target_secs=1.0, most_secs=60.0)
    >>> sizer.limit
    3000
    >>> sizer.observe(messages=3000, secs=0.2)
    >>> sizer.limit
    14250

    Args:
        target_secs: how long a batch should take.
        most_secs: how long a batch may take so that the fixed time is worth while.
        minimum: how many messages a batch may always hold.
        maximum: how many messages a batch may hold at most.
    """

    def __init__(
        self,
        target_secs: float,
        most_secs: float,
        minimum: int = 1_000,
        maximum: int | None = None,
    ) -> None:
        self._target = target_secs
        self._most_secs = most_secs
        self._most = math.inf if maximum is None else float(maximum)
        self._least = min(float(minimum), self._most)
        self._wanted = min(_FIRST_TO_LEAST * self._least, self._most)
        self._off = 0.0
        self._even = self._least * (1 - _FIRST_SHARE) / _FIRST_SHARE
        self._weight = _FIRST_WEIGHT
        self._before: _Batch | None = None
        self._is_warm = False

    @property
    def limit(self) -> int:
        """How many messages the next batch may hold."""
        return self._size(self._off)

    @property
    def highest(self) -> int:
        """How many messages the next batch or the one after it may hold, whichever is larger."""
        return self._size(abs(self._off))

    def observe(self, *, messages: int, secs: float) -> None:
        """Learn from a batch; the size grows only after a full batch."""
        if not messages or secs <= 0:
            return
        self._compare(_Batch(messages, secs))
        fixed = secs * self._even / (self._even + messages)
        variable = self._good_secs(fixed)
        is_full = messages >= self.limit / 2
        if is_full or secs > fixed + variable:
            wanted = min(variable * (self._even + messages) / secs, self._most)
            change = min(wanted / self._wanted, self._most_growth(secs) if is_full else 1.0)
            self._off = self._next_off(change, (fixed + variable) / self._target)
            self._move(change)

    def _good_secs(self, fixed: float) -> float:
        """How long the messages of a batch should take beside its fixed time."""
        good = max(self._target - fixed, _VARIABLE_TO_FIXED * fixed)
        return min(good, max(self._most_secs - fixed, self._target))

    def _most_growth(self, secs: float) -> float:
        """How far to grow at once: less far from where a mistake takes long."""
        return min(max(_GROWTH_TO * self._target / secs, _LEAST_GROWTH), _MOST_GROWTH)

    def _compare(self, batch: _Batch) -> None:
        """Learn the share from a batch and the one before; the first of a run only warms it up."""
        if self._before is not None and self._before.messages != batch.messages:
            self._learn_share(self._before, batch)
        if self._is_warm:
            self._before = batch
        self._is_warm = True

    def _learn_share(self, one: _Batch, other: _Batch) -> None:
        messages, secs = (one.messages + other.messages) / 2, (one.secs + other.secs) / 2
        apart = (one.messages - other.messages) / messages
        seen = (one.secs - other.secs) / secs / apart
        seen = min(max(seen, _LEAST_SEEN), _MOST_SEEN) - _DOUBT
        share = messages / (self._even + messages)
        self._weight = min(self._weight, _MOST_WEIGHT) + apart**2
        share += (seen - share) * apart**2 / self._weight
        share = min(max(share, _LEAST_SHARE), _MOST_SHARE)
        self._even = messages * (1 - share) / share

    def _next_off(self, change: float, targets: float) -> float:
        """Return the other side of the wanted size; but sizes that grow fast differ anyway."""
        if change >= _FAST:
            return -_NEAR
        excess = min(max(change, targets, 1.0), _FAST)
        off = min(_NEAR * excess**_STEEP, _FAR)
        return off if self._off < 0 else -off

    def _move(self, change: float) -> None:
        """Change the wanted size; go half way in small changes, since times are noisy."""
        if 1 / _FAST < change < _FAST:
            change = math.sqrt(change)
        self._wanted = min(self._most, max(self._least, self._wanted * change))

    def _size(self, off: float) -> int:
        """Return the size so far from the wanted size; the bounds limit it."""
        size = self._wanted * (1 + off)
        whole = math.ceil(size) if off > 0 else math.floor(size)
        return int(min(self._most, max(self._least, whole)))
