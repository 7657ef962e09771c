"""The counts of a lease keeper."""

from dataclasses import dataclass
from typing import final

__all__ = ["KeeperCounts"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperCounts:
    """A keeper's counts, for metrics and views.

    Attributes:
        leased: the leases held now.
        taken: the deliveries taken so far, redeliveries included.
        redelivered: the deliveries of messages that were under way or settled here already.
        settled: the messages that the queue has deleted.
        ended: the leases that ended while their message was under way.
        reconnects: how often the keeper has connected again.
    """

    leased: int = 0
    taken: int = 0
    redelivered: int = 0
    settled: int = 0
    ended: int = 0
    reconnects: int = 0
