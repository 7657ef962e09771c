"""Spouts: where messages come from."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias, final

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.config import Config
from sparkstorm.errors import ConfigError
from sparkstorm.metrics import PartitionStatistics
from sparkstorm.streams import Outputs
from sparkstorm.verdicts import Failure

__all__ = [
    "EXPIRED",
    "Expired",
    "Messages",
    "PartitionedSpout",
    "Positions",
    "ReadItem",
    "Split",
    "Spout",
    "Unreadable",
]

Positions = list[tuple[int, int]]
"""Positions of messages within a split, as half-open ranges ``[(0, 10), (12, 13)]``."""


class Expired(Enum):
    """The type of :data:`EXPIRED`."""

    EXPIRED = "expired"


EXPIRED: Final = Expired.EXPIRED
"""What :meth:`PartitionedSpout.read` yields for a message that its source no longer has."""


@final
@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that is there and whose values cannot be made out: it becomes a dead letter."""

    why: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Messages by their positions in the whole split, for a source that has holes.

    A position that is neither among ``positions`` nor in ``unfit`` holds no message.

    Attributes:
        positions: where each row belongs. Several rows of one position are tuples of one message:
            they are acked together, and come again together.
        columns: for each field of the stream its values, one per row.
        unfit: the messages that cannot be emitted, and why.
    """

    positions: Sequence[int]
    columns: Mapping[str, Sequence[Any]]
    unfit: Mapping[int, Expired | Unreadable] = field(default_factory=dict)


ReadItem: TypeAlias = Sequence[Any] | Messages | Expired | Unreadable | None
"""What :meth:`PartitionedSpout.read` may yield; and :class:`pyarrow.RecordBatch`."""


class Spout(ABC):
    """A source that lives in the driver, for queues, sockets, anything that gives one by one.

    Each task is one instance with one thread of its own: none of its methods (but ``exhausted``)
    ever run at the same time. An instance is a copy (by pickle) of what the topology was built
    with.
    """

    outputs: Outputs = ()
    """The declared streams; see :class:`sparkstorm.Stream`."""

    def open(self, config: Config, context: TaskContext, collector: SpoutCollector) -> None:
        """Called once before anything else; connect here and keep the collector."""

    def close(self) -> None:
        """Called once at the end, if the process ends in good order."""

    def activate(self) -> None:
        """Called when ``next_tuple`` is going to be called again after a ``deactivate``."""

    def deactivate(self) -> None:
        """Called when ``next_tuple`` is not going to be called for a while."""

    @abstractmethod
    def next_tuple(self) -> None:
        """Emit what there is, or return at once if there is nothing.

        Called again and again while the task may have more messages pending. It should not block:
        acks and fails wait meanwhile.
        """

    def ack(self, msg_id: Any) -> None:
        """The message was fully processed, and the batch that did so is committed."""

    def fail(self, msg_id: Any, failure: Failure) -> None:
        """The message failed: emit it again later, or give it up. The spout decides, as in Storm.

        For a spout that does not override this the engine gives it up at once: it becomes a dead
        letter. :class:`sparkstorm.spouts.ReplayingSpout` emits again by the retry policy.
        """

    def exhausted(self) -> bool:
        """Whether this spout will never emit anything again; lets a bounded run drain and end.

        The one method that may be called beside the others, from another thread; it must not block.
        """
        return False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A piece of a partitioned source that one executor reads: ``count`` messages.

    Attributes:
        count: how many messages (positions) it holds.
        data: what ``read`` needs to find them, of JSON's types only.
        size: estimated bytes, for the limit of pending bytes.
        only: the positions wanted, if not all; set by the engine for retries.
        whole: how many it held before only some were wanted; set by the engine.
        kept: for each of ``only`` what the spout has kept of its message, of JSON's types, or None.
            Set by the spout's ``merge``; it stays with the message until that is done.
    """

    count: int
    data: dict[str, Any] = field(default_factory=dict)
    size: int = 0
    only: tuple[int, ...] | None = None
    whole: int | None = field(default=None, repr=False)
    kept: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def to_read(self) -> int:
        """How many positions ``read`` has to give: all, or up to the last one that is wanted.

        >>> Split(count=5).to_read, Split(count=5).narrow([1, 3]).to_read
        (5, 4)
        """
        return self.count if self.only is None else max(self.only, default=-1) + 1

    def narrow(self, positions: Sequence[int]) -> "Split":
        """Return the split of these positions alone, numbered from 0 in this order."""
        source = self.only
        picked = tuple(positions) if source is None else tuple(source[p] for p in positions)
        size = self.size * len(picked) // max(self.count, 1)
        kept = None if self.kept is None else tuple(self.kept[p] for p in positions)
        whole = self.count if source is None else self.whole
        return replace(self, count=len(picked), only=picked, whole=whole, size=size, kept=kept)


class PartitionedSpout(ABC):
    """A source that is planned in the driver and read by the executors, for data at scale.

    ``open``, ``plan``, ``ack``, ``fail``, ``snapshot``, ``restore`` and ``close`` run in the
    driver, on one thread per task; ``read`` runs on executors, on a copy that was never opened.
    """

    outputs: Outputs = ()
    """The declared streams; a partitioned spout emits to the default one."""

    replayable: bool = False
    """Whether ``read`` gives the same messages for a split at any time, as files and logs do.

    Asked for by ``processing.guarantee = "exactly-once"``.
    """

    def open(self, config: Config, context: TaskContext) -> None:
        """Called once, after ``restore`` if there is something to restore."""

    def close(self) -> None:
        """Called once at the end, if the process ends in good order."""

    @abstractmethod
    def plan(self, limit: int) -> list[Split]:
        """Return the next splits, together at most ``limit`` messages; [] if there is nothing.

        Must not block. What is returned counts as given out; what is not acked comes back by
        itself through ``read`` with a narrower split.
        """

    @abstractmethod
    def read(self, split: Split) -> Iterable[ReadItem]:
        """Yield the values of each of the split's messages, in order (on an executor).

        There are ``split.to_read`` of them: those that are not wanted, too, if ``split.only`` says
        which are (``split.count`` is their number then); the engine picks them, and takes no notice
        of what stands behind them in the split. Fewer, or more than the split held when it was
        planned, are an error: none must be left out without a word. Yield None for a
        position that holds no message; it is counted as skipped. Yield :data:`EXPIRED` for one
        whose message the source no longer has, :class:`Unreadable` for one that is broken: they
        become dead letters. Two faster ways: yield :class:`pyarrow.RecordBatch` objects of many
        messages, or :class:`Messages`, which need hold only what ``split.only`` asks for.

        Raise :class:`sparkstorm.errors.SpoutConnectionError` if the source does not answer: the
        messages are tried again, and that does not count as an attempt. What else it raises fails
        them. Without ackers no message can fail, so either fails the batch, which is run again.

        The driver calls it, too, on a copy of its own: for the payload of a dead letter.
        """

    def merge(self, splits: Sequence[Split]) -> Sequence[Split]:
        """Return fewer splits of the same messages, if these are cheaper to read together.

        Called in the driver for retries that are due at the same time. What the spout has kept of
        their messages it may hand over now, as ``kept``.
        """
        return splits

    def origins(self, split: Split) -> Sequence[Mapping[str, Any]]:
        """What a dead letter should say of the source of each message in ``split.only``.

        Called in the driver, like ``read``, on a copy that was never opened.
        """
        return [{}] * split.count

    def msg_id(self, split: Split, position: int) -> Hashable:
        """The name of a message, for people: in errors, dead letters and logs."""
        return (str(split.data), split.only[position] if split.only else position)

    def ack(self, split: Split, positions: Positions) -> None:
        """These messages were fully processed, and the batch that did so is committed."""

    def fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        """These messages failed; the engine emits them again by the retry policy, or gives up."""

    def give_up(self, split: Split, positions: Positions, failure: Failure) -> None:
        """These messages are dead letters now and will not come back; called after ``fail``.

        For a source that keeps track of what is done: go on across them as if they were acked.
        """

    def partition(self, split: Split) -> str:
        """The partition that a split belongs to, as :meth:`partitions` names it; "" for none.

        Called on executors, to count by partition what was skipped.
        """
        return ""

    def partitions(self) -> Sequence[PartitionStatistics]:
        """How each partition of this task stands, for metrics and views."""
        return ()

    def pause(self, partitions: Collection[str] = ()) -> None:
        """Plan nothing of these partitions until :meth:`resume`; of all if none is named.

        Called for ``Run.pause``, at any time and on any thread; it must not block. Messages that
        were planned go on, and come back if they fail.

        Args:
            partitions: as :meth:`partitions` names them.

        Raises:
            ConfigError: this source cannot be paused.
        """
        raise ConfigError(f"{type(self).__name__} cannot be paused: it has no partitions to name")

    def resume(self, partitions: Collection[str] = ()) -> None:
        """Plan these partitions again, or all if none is named; see :meth:`pause`."""

    def snapshot(self) -> Any:
        """Return how far ``plan`` has given out, of JSON's types.

        Called after each ``plan``, and written down with the batch. What was given out and not
        acked the engine writes down itself, and reads it again after a restart; were it given out
        anew, too, it would be processed twice.
        """
        return None

    def restore(self, snapshot: Any) -> None:
        """Take up the progress of an earlier run; called before ``open``."""

    def exhausted(self) -> bool:
        """Whether ``plan`` will never return anything again; lets a bounded run drain and end."""
        return False
