"""The size of records, from a few of the log: limits in bytes hold from the first batch on."""

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import final

from sparkstorm.clock import Clock
from sparkstorm.components.spout import Split
from sparkstorm.errors import SpoutConnectionError
from sparkstorm.kafka.records import Record
from sparkstorm.texts.logs import logger_of

__all__ = ["RecordSizes"]

_SAMPLE = 16
_BLIND = 16
"""Records that may be pending before anything is known; each may be large."""
_AGAIN_SECS = 10.0
_FRAME = 100
"""Bytes that a record takes beside its content."""

_logger = logger_of("sparkstorm.kafka")


@final
class RecordSizes:
    """The mean size of records, from a few that are read in the driver now and then.

    No method but :meth:`learn` blocks. The latest sample counts, at first and every ten seconds.

    Args:
        read: reads the records of a split whose ``only`` is set; called on threads of its own.
        most_bytes: what the pending records may take together.
        clock: tells when the next sample is due.
    """

    def __init__(
        self, read: Callable[[Split], Iterable[Record]], most_bytes: int, clock: Clock
    ) -> None:
        self._read = read
        self._most = most_bytes
        self._clock = clock
        self._due = float("-inf")
        self._thread: threading.Thread | None = None
        self.mean = 0
        """Bytes of a record; 0 if no record was seen yet."""

    @property
    def limit(self) -> int:
        """How many records may be pending at once."""
        return max(1, self._most // self.mean) if self.mean else _BLIND

    def note(self, splits: Sequence[Split]) -> None:
        """Sample the first of these splits, if the time has come; they need not be planned."""
        now = self._clock.monotonic()
        busy = self._thread is not None and self._thread.is_alive()
        if splits and not busy and (now >= self._due or not self.mean):
            self._due = now + _AGAIN_SECS
            name = "sparkstorm-kafka-sizes"
            self._thread = threading.Thread(
                target=self.learn, args=(splits[0],), name=name, daemon=True
            )
            self._thread.start()

    def learn(self, split: Split) -> None:
        """Read a few records of a split and remember their size."""
        places = range(split.count) if split.only is None else split.only
        first = tuple(islice(places, _SAMPLE))
        try:
            sizes = [_size(one) for one in self._read(split.narrow(range(len(first))))]
        except SpoutConnectionError as error:  # the spout itself says so aloud
            _logger.debug("the size of records is not known yet: %s", error)
            return
        if sizes:
            self.mean = -(-sum(sizes) // len(sizes))

    def close(self, secs: float = 5.0) -> None:
        """Wait for a sample that is under way."""
        if self._thread is not None:
            self._thread.join(secs)


def _size(record: Record) -> int:
    # names of headers may be undecodable, and are short
    return _FRAME + len(record.key() or b"") + len(record.value() or b"")
