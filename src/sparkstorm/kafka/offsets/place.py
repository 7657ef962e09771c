"""A partition of a spout task: progress, the last seen log, and limits of planning."""

from dataclasses import dataclass, field
from typing import final

from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.offsets.arrivals import Arrivals
from sparkstorm.kafka.offsets.progress import PartitionProgress
from sparkstorm.kafka.offsets.stored import CommittedOffset
from sparkstorm.metrics import PartitionStatistics

__all__ = ["Place", "statistics_of", "unread_of"]


@final
@dataclass(slots=True)
class Place:
    """One partition."""

    progress: PartitionProgress
    topic_id: str
    end: int
    until: int | None = None
    there: bool = True
    paused: bool = False
    dirty: bool = True
    held: CommittedOffset | None = None
    cuts: int = 0
    arrivals: Arrivals = field(default_factory=Arrivals)
    filled: float | None = None
    tokens: float = 0.0

    @property
    def unread(self) -> int:
        """How many offsets up to the end are not planned."""
        return max(0, self.end - self.progress.emitted_to)

    @property
    def stop(self) -> int:
        """The end of the offsets that may be planned."""
        return self.end if self.until is None else min(self.end, self.until)

    def allowed(self, rate: float | None, now: float) -> int:
        """How many messages the rate allows now; an unused rest counts for a second."""
        if rate is None:
            return self.end
        passed = 1.0 if self.filled is None else now - self.filled
        self.tokens = min(self.tokens + passed * rate, max(rate, 1.0))
        self.filled = now
        return int(self.tokens)


def unread_of(before: Place | None) -> str:
    """Return the warning about a lost log with offsets not yet planned."""
    if before is None or not before.unread:
        return ""
    return f"; {before.unread} offsets before its old end {before.end} were not read"


def statistics_of(partition: Partition, place: Place, now: float) -> PartitionStatistics:
    """Return a partition's statistics."""
    progress = place.progress
    oldest = progress.oldest
    held = None if oldest is None else progress.held(oldest)
    return PartitionStatistics(
        partition=str(partition),
        lag=max(0, place.end - progress.commit_to),
        committed=progress.commit_to,
        acked_beyond=len(progress.done_beyond),
        in_flight=progress.pending - progress.failed,
        in_retry=progress.failed,
        oldest=oldest,
        held_by=held.component if held else "",
        held_why=held.message if held else "",
        retries=progress.retries,
        dead_letters=progress.dead_letters,
        expired=progress.expired,
        log_cuts=place.cuts,
        lag_secs=place.arrivals.age(progress.commit_to, now),
        paused=place.paused,
    )
