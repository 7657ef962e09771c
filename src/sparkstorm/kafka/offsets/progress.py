"""The progress of one partition, without any I/O.

Every offset of the partition is in one of these states, and only moves down the list:

    not planned      from ``emitted_to`` on
    pending          planned, neither done nor failed: in a batch, or open after the batch
    failed           waits for the next try; holds back the commit point, and nothing else
    done             acked, empty (compacted, aborted, a control record), or given up

The *commit point* is the first offset that is not done. Only done offsets decide on the commit
point, in any order (see :func:`commit_point`); done offsets beyond are stored beside. The engine's
``RetryPolicy`` decides when a failed message is due again, as for every partitioned source.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

from sparkstorm.kafka.offsets.ranges import Range, Ranges

__all__ = ["FailedOffset", "PartitionProgress", "commit_point"]


def commit_point(begin: int, done: Ranges) -> int:
    """Return the first offset that is not done, if all offsets before ``begin`` are done.

    >>> commit_point(3, Ranges([(3, 7), (8, 9)]))
    7
    """
    return done.end_of_run(begin)


@final
@dataclass(frozen=True, slots=True)
class FailedOffset:
    """A failed message: how often, in which component, and whether a task ever read the message."""

    failures: int
    component: str
    message: str
    seen: bool


@final
class PartitionProgress:
    """The progress of one partition.

    Args:
        start: all offsets before are done.
        done: done offsets beyond ``start``, from an earlier run.
        emitted_to: all offsets before have been planned; by default ``start``. The planner still
            owes offsets between the two that are not done.
        epoch: the number of the topic's life; see :meth:`is_of`.
    """

    def __init__(
        self,
        start: int,
        done: Iterable[Range] = (),
        *,
        emitted_to: int | None = None,
        epoch: int = 0,
    ) -> None:
        self.epoch = epoch
        self.emitted_to = start if emitted_to is None else emitted_to
        self.retries = self.dead_letters = self.expired = 0
        self._failed: dict[int, FailedOffset] = {}
        self._point = start
        self._done = Ranges(done)
        self._advance()

    @property
    def commit_to(self) -> int:
        """The commit point."""
        return self._point

    @property
    def done_beyond(self) -> Ranges:
        """The done offsets beyond the commit point."""
        return self._done

    @property
    def failed(self) -> int:
        """How many messages wait for the next try, or are being tried again."""
        return len(self._failed)

    @property
    def pending(self) -> int:
        """How many planned offsets are not done, failed offsets included."""
        return max(0, self.emitted_to - self._point) - self._done_before(self.emitted_to)

    @property
    def oldest(self) -> int | None:
        """The first planned offset that is not done."""
        return self._point if self._point < self.emitted_to else None

    def held(self, offset: int) -> FailedOffset | None:
        """Return why a tried message is not done, or None."""
        return self._failed.get(offset)

    def emit(self, limit: int, end: int, max_uncommitted: int | None = None) -> list[Range]:
        """Plan up to ``limit`` offsets before ``end``, without done offsets.

        Args:
            limit: the most offsets.
            end: where the partition's readable part ends.
            max_uncommitted: the most offsets between the commit point and the last planned offset.
        """
        if max_uncommitted is not None:
            end = min(end, self._point + max_uncommitted)
        taken: list[Range] = []
        for start, stop in self._done.gaps(self.emitted_to, end):
            stop = min(stop, start + limit)
            taken.append((start, stop))
            limit -= stop - start
            self.emitted_to = stop
            if not limit:
                return taken
        self.emitted_to = max(self.emitted_to, end) if taken else self.emitted_to
        self._advance()
        return taken

    def finish(self, ranges: Sequence[Range]) -> None:
        """Note offsets as done: acked, empty or given up."""
        self._done.add(ranges)
        if self._failed:
            for start, stop in ranges:
                self._forget_failed(start, stop)
        self._advance()

    def fail(self, ranges: Iterable[Range], component: str, message: str, *, seen: bool) -> None:
        """Note offsets to try again; ``seen`` if a bolt had the messages, so the records exist."""
        for start, stop in ranges:
            for offset in range(start, stop):
                if offset >= self._point and offset not in self._done:
                    was = self._failed.get(offset)
                    failures = was.failures + 1 if was else 1
                    known = seen or (was is not None and was.seen)
                    self._failed[offset] = FailedOffset(failures, component, message, known)
                    self.retries += 1

    def jump(self, offset: int) -> int:
        """Plan nothing before ``offset``; return how many offsets are passed over for good."""
        lost = list(self._done.gaps(self.emitted_to, offset))
        self.emitted_to = max(self.emitted_to, offset)
        self.finish(lost)
        count = sum(stop - start for start, stop in lost)
        self.expired += count
        return count

    def until(self, cut: int, epoch: int) -> "PartitionProgress":
        """Return the progress of the same log, cut at an offset. Offsets not done are planned anew.

        >>> PartitionProgress(3, [(5, 9)], emitted_to=20).until(7, epoch=1)
        PartitionProgress(commit_to=3, emitted_to=3, failed=0, done_beyond=2)
        """
        done = [(start, min(stop, cut)) for start, stop in self._done if start < cut]
        return PartitionProgress(min(self._point, cut), done, epoch=epoch)

    def snapshot(self) -> dict[str, Any]:
        """Return the progress as JSON's types, for :meth:`restore`."""
        return {
            "point": self._point,
            "emitted_to": self.emitted_to,
            "epoch": self.epoch,
            "expired": self.expired,
            "done": [edge for pair in self._done for edge in pair],
        }

    @classmethod
    def restore(cls, data: dict[str, Any]) -> "PartitionProgress":
        """Build a progress from a :meth:`snapshot`."""
        edges = data["done"]
        progress = cls(
            data["point"],
            zip(edges[::2], edges[1::2], strict=True),
            emitted_to=data["emitted_to"],
            epoch=data["epoch"],
        )
        # nothing else would tell of lost records once the driver that noticed is gone
        progress.expired = data.get("expired", 0)
        return progress

    def __repr__(self) -> str:
        return (
            f"PartitionProgress(commit_to={self._point}, emitted_to={self.emitted_to}, "
            f"failed={self.failed}, done_beyond={len(self._done)})"
        )

    def _advance(self) -> None:
        self._point = commit_point(self._point, self._done)
        self._done.drop_below(self._point)
        self.emitted_to = max(self.emitted_to, self._point)

    def _done_before(self, offset: int) -> int:
        return sum(
            max(0, min(stop, offset) - start) for start, stop in self._done if start < offset
        )

    def _forget_failed(self, start: int, stop: int) -> None:
        if stop - start < len(self._failed):
            for offset in range(start, stop):
                self._failed.pop(offset, None)
        else:
            for offset in [o for o in self._failed if start <= o < stop]:
                del self._failed[offset]
