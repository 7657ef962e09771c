"""Spouts: the sources of messages."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from sparkstorm.components.collector import SpoutCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.errors import ConfigError
from sparkstorm.metrics import PartitionStatistics
from sparkstorm.streams import Outputs
from sparkstorm.verdicts import Failure

if TYPE_CHECKING:  # sparkstorm/__init__.py tells why
    from sparkstorm.config import Config

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
"""Positions of messages within a split, as half-open ranges: ``[(0, 10), (12, 13)]``."""


class Expired(Enum):
    """The type of :data:`EXPIRED`."""

    EXPIRED = "expired"


EXPIRED: Final = Expired.EXPIRED
"""The mark :meth:`PartitionedSpout.read` yields for a message its source no longer has."""


@final
@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message in the source whose values cannot be decoded; it becomes a dead letter."""

    why: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Messages by their positions in the whole split, for a source with holes.

    A position neither in ``positions`` nor in ``unfit`` holds no message. Yield about a thousand
    rows at a time, and declare the types of the fields: then the rows are encoded as they come, and
    the objects of a whole split never fill the memory.

    Attributes:
        positions: the position of each row. Rows of one position are tuples of one message: acked
            together and retried together.
        columns: for each field of the stream its values, one per row.
        unfit: the messages that cannot be emitted, each with the reason.
    """

    positions: Sequence[int]
    columns: Mapping[str, Sequence[Any]]
    unfit: Mapping[int, Expired | Unreadable] = field(default_factory=dict)


ReadItem: TypeAlias = Sequence[Any] | Messages | Expired | Unreadable | None
"""The items :meth:`PartitionedSpout.read` may yield, besides :class:`pyarrow.RecordBatch`."""


class Spout(ABC):
    """A source in the driver: queues, sockets, any source with one message at a time.

    Every task is one instance with its own thread. The engine never calls two methods of an
    instance at the same time, except ``exhausted``. The instance is a copy, by pickle, of the
    instance in the topology.
    """

    outputs: Outputs = ()
    """The declared streams; see :class:`sparkstorm.Stream`."""

    collector: SpoutCollector
    """The engine sets the collector before ``open``."""

    context: TaskContext
    """The engine sets the context before ``open``."""

    def open(self, config: "Config", context: TaskContext, collector: SpoutCollector) -> None:
        """Called once, first of all methods: connect here."""

    def close(self) -> None:
        """Called once at the end, if the process ends in good order."""

    def activate(self) -> None:
        """Called before ``next_tuple`` is called again after a ``deactivate``."""

    def deactivate(self) -> None:
        """Called when ``next_tuple`` will not be called for a while."""

    @abstractmethod
    def next_tuple(self) -> None:
        """Emit the next messages, or return at once if the source has none.

        The engine calls it again and again while the task may have more messages pending. Do not
        block: acks and fails wait meanwhile.
        """

    def ack(self, msg_id: Any) -> None:
        """Called when a message is fully processed and its batch is committed."""

    def fail(self, msg_id: Any, failure: Failure) -> None:
        """Called when a message failed: emit the message again later, or give up.

        The spout decides, as in Storm. Without an override the engine gives up the message at once,
        as a dead letter. :class:`sparkstorm.spouts.ReplayingSpout` emits failed messages again by
        the retry policy.
        """

    def retry_now(self, msg_id: Any) -> None:
        """Called when people ask that a failed message be tried at once.

        Without an override the spout itself decides when, as after any ``fail``.
        """

    def exhausted(self) -> bool:
        """Return whether the spout will never emit again; a bounded run then drains and ends.

        Another thread may call it beside the other methods. It must not block.
        """
        return False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A piece of a partitioned source, read by one executor.

    Attributes:
        count: how many messages (positions) the split holds.
        data: how ``read`` finds the messages; JSON types only.
        size: estimated bytes, for the limit of pending bytes.
        only: the wanted positions, if not all; the engine sets them for retries.
        whole: the count before ``only`` narrowed the split; the engine sets it.
        kept: for each of ``only`` the record the spout has kept of its message, of JSON types, or
            None. The spout's ``merge`` sets the records. A record stays with its message to the
            end.
    """

    count: int
    data: dict[str, Any] = field(default_factory=dict)
    size: int = 0
    only: tuple[int, ...] | None = None
    whole: int | None = field(default=None, repr=False)
    kept: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def to_read(self) -> int:
        """How many positions ``read`` has to give: all, or up to the last wanted position.

        >>> Split(count=5).to_read, Split(count=5).narrow([1, 3]).to_read
        (5, 4)
        """
        return self.count if self.only is None else max(self.only, default=-1) + 1

    def narrow(self, positions: Sequence[int]) -> "Split":
        """Return the split of some positions alone, numbered from 0 in the given order."""
        source = self.only
        picked = tuple(positions) if source is None else tuple(source[p] for p in positions)
        # The engine knows no message's own size, so the bytes are shared evenly.
        size = self.size * len(picked) // max(self.count, 1)
        kept = None if self.kept is None else tuple(self.kept[p] for p in positions)
        whole = self.count if source is None else self.whole
        return replace(self, count=len(picked), only=picked, whole=whole, size=size, kept=kept)


class PartitionedSpout(ABC):
    """A source planned by the driver and read by executors, for data at scale.

    The driver calls ``open``, ``plan``, ``ack``, ``fail``, ``snapshot``, ``restore`` and ``close``,
    on one thread per task. Executors call ``read``, on a copy of the spout that was never opened.
    """

    outputs: Outputs = ()
    """The declared streams; a partitioned spout emits to the default stream."""

    replayable: bool = False
    """Whether ``read`` always gives the same messages for a split, as files and logs do.

    ``processing.guarantee = "exactly-once"`` needs such a spout."""

    def check(self) -> None:
        """Look whether the source is there; called before Spark starts, which takes seconds.

        Raise what ``open`` would raise. The source must stay as it is.
        """

    def open(self, config: "Config", context: TaskContext) -> None:
        """Called once, after ``restore`` if there is a snapshot to restore."""

    def close(self) -> None:
        """Called once at the end, if the process ends in good order."""

    @abstractmethod
    def plan(self, limit: int) -> list[Split]:
        """Return the next splits, together at most ``limit`` messages; [] if the source has none.

        Do not block. Returned messages count as given out: the engine reads unacked messages again
        by itself, through ``read`` with a narrower split.
        """

    @abstractmethod
    def read(self, split: Split) -> Iterable[ReadItem]:
        """Yield the values of each of the split's messages, in order; executors call it.

        Yield ``split.to_read`` items. With ``split.only`` this includes unwanted positions: the
        engine picks the wanted ones, and ``split.count`` is their number. The engine ignores items
        behind the last wanted position. Fewer items, or more than the split held when planned, are
        an error, since no message may be left out silently.

        Yield None for a position without a message; the engine counts it as skipped. Yield
        :data:`EXPIRED` for a message the source no longer has, and :class:`Unreadable` for a broken
        message: both become dead letters. Two faster ways: yield :class:`pyarrow.RecordBatch`
        objects of many messages, or :class:`Messages`, which may hold only the positions of
        ``split.only``.

        Raise :class:`sparkstorm.errors.SpoutConnectionError` if the source does not answer: the
        engine tries the messages again and counts no attempt. Any other error fails the messages.
        Without ackers no message can fail, so any error fails the batch, and the batch runs again.

        The driver also calls ``read``, on a copy of its own, for the payloads of dead letters.
        """

    def reads(self, place: Hashable) -> bool:
        """Return whether this spout would take messages from a place by mistake.

        Called once for each place that a bolt of the topology names as ``writes_to``, when the
        topology is built. A topology that feeds on its own output is refused.
        """
        return False

    def merge(self, splits: Sequence[Split]) -> Sequence[Split]:
        """Return fewer splits of the same messages, if merged splits are cheaper to read.

        The driver calls it for retries due at the same time. The spout may add its records of the
        messages, as ``kept``.
        """
        return splits

    def origins(self, split: Split) -> Sequence[Mapping[str, Any]]:
        """Return a dead letter's facts about the source, for each message of ``split.only``.

        The driver calls it, like ``read``, on a copy that was never opened.
        """
        return [{}] * split.count

    def msg_id(self, split: Split, position: int) -> Hashable:
        """Return the name of a message for people: in errors, dead letters and logs."""
        return (str(split.data), split.only[position] if split.only else position)

    def ack(self, split: Split, positions: Positions) -> None:
        """Called when messages are fully processed and their batch is committed."""

    def fail(self, split: Split, positions: Positions, failure: Failure) -> None:
        """Called when messages failed; the engine retries them by the retry policy, or gives up."""

    def give_up(self, split: Split, positions: Positions, failure: Failure) -> None:
        """Called after ``fail`` when messages have become dead letters, for good.

        A source that tracks progress moves on past the messages, as if they were acked.
        """

    def partition(self, split: Split) -> str:
        """Return the partition of a split, named as in :meth:`partitions`; "" for none.

        Executors call it, to count skipped positions by partition.
        """
        return ""

    def partitions(self) -> Sequence[PartitionStatistics]:
        """Return the state of each partition of this task, for metrics and views."""
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
        """Return how far ``plan`` has given out messages, as JSON types.

        The engine calls it after each ``plan`` and stores the result with the batch. The engine
        stores unacked messages itself, and reads them again after a restart. So a snapshot must
        cover them as given out: otherwise they are processed twice.
        """
        return None

    def restore(self, snapshot: Any) -> None:
        """Take up the progress of an earlier run; called before ``open``."""

    def exhausted(self) -> bool:
        """Return whether ``plan`` will never return splits again, so a bounded run can end."""
        return False
