"""Where to begin with partitions: new partitions, and partitions whose topic or log has changed."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, final

from sparkstorm.errors import CheckpointError, SpoutConnectionError
from sparkstorm.kafka.cluster import Partition
from sparkstorm.kafka.offsets.ranges import Range
from sparkstorm.kafka.offsets.stored import CommittedOffset, Stored
from sparkstorm.kafka.subscription import OutOfRange, Start, Subscription, millis_of
from sparkstorm.texts.logs import logger_of

__all__ = [
    "Beginning",
    "Beginnings",
    "CommittedOffsets",
    "InvalidOffsetError",
    "Jump",
    "Known",
    "Offsets",
    "is_ours",
]

_logger = logger_of("sparkstorm.kafka")


class InvalidOffsetError(SpoutConnectionError):
    """Stored offsets contradict the user's settings: waiting is of no use."""


class Offsets(Protocol):
    """Where the logs of partitions begin and end."""

    def starts(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The first offsets of the logs."""
        ...

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The last stable offsets."""
        ...

    def at(self, partitions: Collection[Partition], millis: int) -> dict[Partition, int]:
        """The first offsets of a time or later."""
        ...


class CommittedOffsets(Protocol):
    """The stored progress of partitions (:class:`sparkstorm.kafka.offsets.committer.Committer`)."""

    def load(self, ids: Mapping[Partition, str]) -> dict[Partition, Stored]:
        """Return the stored progress, given the id of each partition's topic."""
        ...


class Beginning(NamedTuple):
    """Where to begin with a partition, and the reason for an unexpected place."""

    topic_id: str
    offset: int
    done: Sequence[Range] = ()
    why: str = ""
    skipped: int = 0
    held: CommittedOffset | None = None
    """The partition's stored progress, if there is any."""
    cut: bool = False
    """Whether the log ends before the offset read last."""
    regrown: bool = False
    """Whether the log was cut at the offset and has grown again; before it, nothing has changed."""


class Known(NamedTuple):
    """A partition, as in the checkpoint."""

    topic_id: str
    position: int
    """The end of the planned offsets."""
    point: int
    """The commit point."""
    held: CommittedOffset | None


class Jump(NamedTuple):
    """Where to go on with a partition after its next offset is gone."""

    partition: Partition
    low: int
    """The first remaining offset."""
    to: int


@final
class Beginnings:
    """Says where to begin, by the user's settings, the cluster and the store.

    Args:
        cluster: answers with offsets.
        progress: the stored progress.
        source: the user's settings.
        run: the name under which this run stores progress.
    """

    def __init__(
        self, cluster: Offsets, progress: CommittedOffsets, source: Subscription, run: str
    ) -> None:
        self._cluster = cluster
        self._progress = progress
        self._source = source
        self._run = run

    def of_new(self, ids: Mapping[Partition, str], *, first: bool) -> dict[Partition, Beginning]:
        """Return where to begin with partitions that the checkpoint does not have.

        Args:
            ids: the partitions, each with the id of its topic.
            first: whether the run has just begun; a later partition is read whole.

        Raises:
            InvalidOffsetError: progress is required, and the store has none.
        """
        stored = {} if self._source.force_from_start else self._progress.load(ids)
        fresh = [p for p in ids if p not in stored]
        if fresh and self._source.start == "committed":
            raise InvalidOffsetError(
                f"there is no progress stored for {fresh[0]}, and start is 'committed': choose "
                f"another start"
            )
        begun = self._of_fresh(fresh, ids) if first else self._of_later(fresh, ids)
        more = ". The stored progress {} is all that is known of the old topic"
        anew = {p: one.topic_id for p, one in stored.items() if one.topic_id not in ("", ids[p])}
        begun |= {
            p: one._replace(why=one.why + more.format(stored[p].offset))
            for p, one in self.of_made_anew(anew, ids).items()
        }
        same = {p: one for p, one in stored.items() if p not in anew}
        begun |= self._from_stored(same, ids)
        silent = [p for p in ids if p not in begun]
        if first and silent:  # found later, it would be read whole, whatever start says
            raise SpoutConnectionError(f"{silent[0]} does not say where it begins and ends")
        return begun

    def of_made_anew(
        self, known: Mapping[Partition, str], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        """Return where to begin with partitions of a topic that was deleted and made anew.

        Args:
            known: the known topic ids.
            ids: the topic ids now.
        """
        begun = self._at_earliest(known, ids)
        why = (
            "its topic was deleted and made anew, the topic id {} became {}: it is read from its "
            "beginning, the offset {}"
        )
        return {
            # every log begins at 0, so what comes before its beginning is gone already
            p: one._replace(why=why.format(known[p], ids[p], one.offset), skipped=one.offset)
            for p, one in begun.items()
        }

    def of_restored(
        self, known: Mapping[Partition, Known], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        """Return where to go on with partitions whose stored offset somebody has set.

        Raises:
            CheckpointError: an offset was set, and no setting says whether the store counts.
        """
        stored = self._progress.load({p: ids[p] for p in known})
        reset = {p: one for p, one in stored.items() if not is_ours(one, known[p], self._run)}
        if not reset:
            return {}
        if self._source.on_reset == "fail":
            partition, one = min(reset.items())
            raise CheckpointError(
                f"{partition} was reset while the topology was stopped: its stored offset is "
                f"{one.offset} now, and the checkpoint goes on at {known[partition].point}. Set "
                f"on_reset='follow' to go on at {one.offset}, or on_reset='ignore' to go on with "
                f"the checkpoint and to overwrite what is stored"
            )
        if self._source.on_reset == "ignore":
            for partition, one in reset.items():
                _logger.warning(
                    "%s was reset to the offset %s while the topology was stopped: that is ignored",
                    *(partition, one.offset),
                )
            return {}
        begun = self._from_stored(reset, ids)
        return {
            p: one._replace(
                why=one.why
                or f"it was reset: going on at {one.offset}, and not at {known[p].point}"
            )
            for p, one in begun.items()
        }

    def of_cut(
        self, positions: Mapping[Partition, int], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        """Find partitions whose logs still end before the next offset to read."""
        ends = self._cluster.ends(list(positions))
        starts = self._cluster.starts(list(positions))
        return {
            p: self._elsewhere(p, positions[p], starts[p], end, ids[p])._replace(cut=True)
            for p, end in ends.items()
            if end < positions[p] and p in starts
        }

    def of_regrown(
        self, cuts: Mapping[Partition, int], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        """Find partitions whose logs were cut and grew again: new records have old offsets."""
        for partition, cut in cuts.items():
            if self._source.out_of_range == "fail":
                raise InvalidOffsetError(
                    f"the log of {partition} was cut at {cut} and has grown again, and "
                    f"out_of_range is 'fail': choose where to go on"
                )
        why = "the log was cut at {0} and has grown again: going on at {0}"
        return {
            p: Beginning(ids[p], cut, why=why.format(cut), cut=True, regrown=True)
            for p, cut in cuts.items()
        }

    def jumps(self, positions: Mapping[Partition, int]) -> tuple[Jump, ...]:
        """Find partitions whose logs now begin behind the next offset to read."""
        starts = self._cluster.starts(list(positions))
        late = {p: low for p, low in starts.items() if low > positions[p]}
        ends = self._cluster.ends(list(late))
        return tuple(
            Jump(p, low, self._policy(p, positions[p], low, ends.get(p, low)))
            for p, low in late.items()
        )

    def _of_fresh(
        self, partitions: Collection[Partition], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        """Return where to begin with partitions without progress: where the user says."""
        given = {p: at for p in partitions if (at := self._source.given(p)) is not None}
        start: Start = "earliest" if isinstance(self._source.start, Mapping) else self._source.start
        others = self._at(start, [p for p in partitions if p not in given])
        begun = {p: Beginning(ids[p], offset) for p, offset in others.items()}
        return begun | self._from_stored(
            {p: Stored(at) for p, at in given.items()}, ids, held=False
        )

    def _of_later(
        self, partitions: Collection[Partition], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        """Partitions that came into being while we run: all that they ever held is wanted."""
        why = "it begins at {0}: {0} offsets were gone before they were read"
        return {
            p: one._replace(why=why.format(one.offset), skipped=one.offset) if one.offset else one
            for p, one in self._at_earliest(partitions, ids).items()
        }

    def _at_earliest(
        self, partitions: Collection[Partition], ids: Mapping[Partition, str]
    ) -> dict[Partition, Beginning]:
        found = self._cluster.starts(list(partitions))
        return {p: Beginning(ids[p], offset) for p, offset in found.items()}

    def _from_stored(
        self,
        stored: Mapping[Partition, Stored],
        ids: Mapping[Partition, str],
        *,
        held: bool = True,
    ) -> dict[Partition, Beginning]:
        """Return partitions that go on at an offset of the log.

        The log must also have all finished offsets beyond.
        """
        starts, ends = self._cluster.starts(list(stored)), self._cluster.ends(list(stored))
        begun = {}
        for p in starts.keys() & ends.keys():
            one, low, high = stored[p], starts[p], ends[p]
            last = max([one.offset, *(stop for _, stop in one.done[-1:])])
            if low <= one.offset and last <= high:
                begun[p] = Beginning(ids[p], one.offset, one.done)
            else:
                wanted = last if last > high else one.offset
                begun[p] = self._elsewhere(p, wanted, low, high, ids[p])
            if held:
                begun[p] = begun[p]._replace(held=CommittedOffset(one.offset, one.run))
        return begun

    def _elsewhere(
        self, partition: Partition, offset: int, low: int, high: int, topic_id: str
    ) -> Beginning:
        to = self._policy(partition, offset, low, high)
        why = f"the log has no offset {offset}, it goes from {low} to {high}: going on at {to}"
        return Beginning(topic_id, to, why=why, skipped=max(0, to - offset))

    def _policy(self, partition: Partition, offset: int, low: int, high: int) -> int:
        """Return where to go on, by the user's setting."""
        wanted: OutOfRange = self._source.out_of_range
        if wanted == "fail":
            raise InvalidOffsetError(
                f"{partition} has no offset {offset}, it goes from {low} to {high}, and "
                f"out_of_range is 'fail': choose where to go on"
            )
        if wanted == "earliest":
            return low
        return max(low, self._at(wanted, [partition]).get(partition, high))

    def _at(
        self, start: Start | OutOfRange, partitions: Collection[Partition]
    ) -> dict[Partition, int]:
        if start == "earliest":
            return self._cluster.starts(partitions)
        if isinstance(start, str | Mapping):
            return self._cluster.ends(partitions)
        return self._cluster.at(partitions, millis_of(start))


def is_ours(stored: Stored, known: Known, run: str) -> bool:
    """Whether this run stored an offset, or the offset was there when the run began.

    A dead driver may have stored more than is in its checkpoint; the name of the run beside the
    offset tells. Where a store has no room for the name, an offset of this run lies between the
    checkpoint's last stored offset and the end of the planned offsets.
    """
    if stored.run == run:
        return True
    last = known.held
    if last is None:
        return False
    if last.bare:
        return not stored.run and last.offset <= stored.offset <= known.position
    return (stored.offset, stored.run) == (last.offset, last.run)
