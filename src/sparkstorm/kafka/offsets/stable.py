"""Last stable offsets that stand still: a transaction that nobody ends holds readers back."""

from collections.abc import Mapping
from typing import NamedTuple, final

from sparkstorm.kafka.cluster import Partition
from sparkstorm.texts.logs import logger_of

__all__ = ["StableOffsets"]

_LOOKS = 3
"""Looks at which a last stable offset stood at the same place, before anything is said."""

_logger = logger_of("sparkstorm.kafka")


class _Standing(NamedTuple):
    offset: int
    looks: int


@final
class StableOffsets:
    """Notices partitions whose last stable offset stands still before the end of the log.

    A transaction in use is open for moments. A transaction whose producer died, or hangs, stays
    open until the broker aborts it, and readers of committed records get nothing behind it.

    >>> stable, p = StableOffsets(), Partition("t", 0)
    >>> [stable.note({p: 5}, {p: 9}) for _ in range(4)]
    [[], [], [Partition(topic='t', number=0)], []]
    """

    def __init__(self) -> None:
        self._standing: dict[Partition, _Standing] = {}

    def note(
        self, stable: Mapping[Partition, int], ends: Mapping[Partition, int]
    ) -> list[Partition]:
        """Return the partitions that turn out to be stuck at this look, and warn of each once.

        Args:
            stable: the last stable offsets.
            ends: the ends of the logs, asked for after the last stable offsets.
        """
        stuck = []
        for partition, offset in stable.items():
            before = self._standing.pop(partition, None)
            if offset >= ends.get(partition, offset):
                self._say_free(partition, before)
                continue
            looks = before.looks + 1 if before is not None and before.offset == offset else 1
            self._standing[partition] = _Standing(offset, looks)
            if looks == _LOOKS:
                stuck.append(partition)
                _logger.warning(
                    "%s: the last stable offset is stuck at %s, and the log ends at %s: a "
                    "transaction is open. What lies behind is read when its producer ends it, or "
                    "when the broker aborts it (transaction.timeout.ms; kafka-transactions.sh "
                    "finds and aborts one that hangs)",
                    *(partition, offset, ends[partition]),
                )
        return stuck

    def _say_free(self, partition: Partition, before: _Standing | None) -> None:
        if before is not None and before.looks >= _LOOKS:
            _logger.warning("%s: the last stable offset moves again", partition)
