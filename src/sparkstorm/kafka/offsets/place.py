"""A partition of a spout task: progress, the last seen log, and limits of planning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.offsets.arrivals import Arrivals
from sparkstorm.kafka.offsets.progress import PartitionProgress
from sparkstorm.kafka.offsets.stored import CommittedOffset
from sparkstorm.metrics import PartitionStatistics

__all__ = ["Place", "end_of", "statistics_of"]


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

    def succeed(self, before: "Place", *, cut: bool) -> "Place | None":
        """Go on with the counts of the partition's earlier place; return that if its log is gone.

        Args:
            before: the earlier place.
            cut: whether the log is still the same one, and was cut.
        """
        self.progress.expired += before.progress.expired
        self.cuts += before.cuts
        if not cut and self.topic_id == before.topic_id:
            self.end = max(self.end, before.end)
            return None
        self.progress.expired += before.unread
        return before

    def snapshot(self) -> dict[str, Any]:
        """Return it as JSON's types, for :meth:`restore`."""
        return {
            "id": self.topic_id,
            "held": self.held,
            # nothing else tells how much is gone if the topic is deleted meanwhile
            "end": self.end,
            **self.progress.snapshot(),
        }

    @classmethod
    def restore(cls, data: Mapping[str, Any]) -> "Place":
        """Build it from a :meth:`snapshot`."""
        progress = PartitionProgress.restore(dict(data))
        held = None if data["held"] is None else CommittedOffset(*data["held"])
        end = max(data.get("end", 0), progress.emitted_to)
        return cls(progress, data["id"], end=end, held=held)

    def allowed(self, rate: float | None, now: float) -> int:
        """How many messages the rate allows now; an unused rest counts for a second."""
        if rate is None:
            return self.end
        passed = 1.0 if self.filled is None else now - self.filled
        self.tokens = min(self.tokens + passed * rate, max(rate, 1.0))
        self.filled = now
        return int(self.tokens)


def end_of(log: Place | None, topic_id: str) -> str:
    """Return the words on the end of a log that is gone, and on its offsets that were not planned.

    Args:
        log: the partition with that log; None if no log is gone.
        topic_id: the topic that the partition belongs to now.
    """
    if log is None:
        return ""
    if log.topic_id != topic_id:
        return (
            f". The old topic was planned up to the offset {log.progress.emitted_to}, and its last "
            f"known end is {log.end}: {log.unread} offsets were not read, nor any that came later"
        )
    if not log.unread:
        return ""
    return f"; {log.unread} offsets before its old end {log.end} were not read"


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
