"""Sources: what the engine asks of everything that gives messages.

A source is one task of a spout, or the replays of dead letters. Planner, bookkeeper and coordinator
know sources by the protocol :class:`Source` alone. A new kind of source (a queue with leases, say)
implements the protocol, is made in :mod:`sources`, and is done:

1. :meth:`Source.plan` gives the loads of the next batch, within an :class:`Order`. Each message of
   a load gets a root; :class:`InFlight` keeps the load until all its roots have ended.
2. :meth:`Source.deliver` gets the verdicts. ``InFlight.verdicts`` hands them out by load. A failed
   message is asked for again from its origin, or waits in :class:`Retries`, or is given up and gets
   a dead letter (:class:`LetterWriter`).
3. :meth:`Source.progress` is written into each plan, and :meth:`Source.recover` gets it back under
   the next driver. :meth:`Source.adopt` makes loads of the last batch of a driver that has died
   runnable again, if the source can.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.metrics import PartitionStatistics
from sparkstorm.packets.load import Load
from sparkstorm.sources.blame import Tries
from sparkstorm.sources.planned import Outstanding, PlannedLoad
from sparkstorm.sources.unfinished import Messages

__all__ = ["Order", "Progress", "RootNumbers", "Source"]


@final
class RootNumbers:
    """The numbers of roots and loads: of each spout task, the next one.

    A number is never given twice, over restarts too, since each plan carries the numbers on.
    """

    def __init__(self) -> None:
        self.sequences: dict[int, int] = {}
        self._lanes: Counter[int] = Counter()

    def begin_batch(self) -> None:
        """Count the loads of the next batch from 0."""
        self._lanes.clear()

    def first(self, task: int) -> int:
        """Return the root of the task's next message."""
        return make_root(task, self.sequences.get(task, 0))

    def lane(self, task: int) -> int:
        """Return the number of the task's next load in this batch."""
        return self._lanes[task]

    def note(self, load: Load) -> Load:
        """Use up the numbers of a load; return the load."""
        self._lanes[load.task] += 1
        if load.first is not None:
            self.sequences[load.task] = self.sequences.get(load.task, 0) + load.count
        return load


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The planner's order to a source for one batch.

    Attributes:
        limit: how many messages, at most.
        now: the time.
        numbers: number the roots and loads.
        fresh: whether new messages are wanted, not only retries.
        room: how many messages may be new.
        partitions: over how many partitions the batch is spread.
        pieces: into how many loads messages should come at least, if the source can read them
            apart: so that no partition is idle.
        with_ids: whether the ids of hosted messages are to be written down.
    """

    limit: int
    now: float
    numbers: RootNumbers
    fresh: bool = True
    room: int = 1 << 62
    partitions: int = 1
    pieces: int = 1
    with_ids: bool = False

    def pieces_of(self, messages: int) -> int:
        """Return into how many loads so many messages should be cut."""
        return min(self.partitions, max(self.pieces, messages // SPREAD_FROM))


SPREAD_FROM = 64
"""Messages of one source are spread over the partitions if each load gets at least this many."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a source has come: the part of a plan that the next driver needs.

    Attributes:
        cursor: how far the source has planned, in its own words; JSON.
        outstanding: splits that are given out and not in the planned batch.
        tries: how often messages were tried.
    """

    cursor: Any = None
    outstanding: Sequence[Outstanding] = ()
    tries: Sequence[Tries] = field(default=())


class Source(Protocol):
    """Gives messages and hears of their ends. All methods run on one thread at a time.

    A source may hand verdicts to a thread of its own, and take messages from one.
    """

    @property
    def messages(self) -> Messages:
        """Names the source's messages, for people."""
        ...

    @property
    def component(self) -> str:
        """The spout; empty if the messages are of several."""
        ...

    @property
    def owner(self) -> str:
        """The spout's task as ``component/index``, which names the source in the checkpoint.

        Task numbers shift when components are added, so nothing durable is named by them. Empty
        if nothing of the source is kept in plans.
        """
        ...

    @property
    def bounds(self) -> tuple[int, int]:
        """The first root that may be the source's, and the first that no longer may."""
        ...

    @property
    def pending(self) -> int:
        """Messages given out, and neither acked nor given up."""
        ...

    @property
    def in_flight(self) -> int:
        """Messages in a batch, or open after it."""
        ...

    @property
    def ready(self) -> bool:
        """Whether a batch may have to hold messages of the source; else it gets no share."""
        ...

    @property
    def given_up(self) -> int:
        """Messages that will not be tried again."""
        ...

    @property
    def left_failed(self) -> int:
        """Messages whose last attempt failed and whose origin has not given them again."""
        ...

    @property
    def message_bytes(self) -> float:
        """How large a message is, about; 0 if nothing is known."""
        ...

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects that wait (:mod:`sparkstorm.sources.blame`)."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no message of the source keeps a closing run from its end."""
        ...

    @property
    def drained(self) -> bool:
        """Whether nothing is pending, and nothing new will come."""
        ...

    def plan(self, order: Order) -> list[PlannedLoad]:
        """Return loads for the next batch; the planner chooses their partitions."""
        ...

    def plan_suspects(self, order: Order, width: int) -> list[PlannedLoad]:
        """Return loads of suspects of a width."""
        ...

    def deliver(self, acked: U64, failed: FailedRoots, now: float) -> None:
        """Hear of the ends of messages: roots within the bounds, perhaps of others, too."""
        ...

    def ack_untracked(self, load: Load) -> None:
        """Hear that a load is committed, in a topology without ackers."""
        ...

    def progress(self, planned: Collection[int]) -> Progress:
        """Return how far the source has come.

        Args:
            planned: the first roots of the loads in the planned batch.
        """
        ...

    def recover(self, progress: Progress | None, now: float) -> None:
        """Begin, with the progress under an earlier driver if there is any."""
        ...

    def forget_earlier(self) -> None:
        """Forget the tries under an earlier driver: its messages have come again, or never will."""
        ...

    def adopt(self, planned: PlannedLoad, order: Order, *, whole: bool) -> PlannedLoad | None:
        """Return a load of an earlier driver's last batch as a load of this one; None if it cannot.

        Args:
            planned: the load, as the earlier driver planned it.
            order: numbers the roots.
            whole: whether the batch must remain what it was.
        """
        ...

    def take_back(self, planned: PlannedLoad, width: int, now: float) -> None:
        """Let the messages of an adopted load wait, since its batch will not be run as it was.

        Args:
            planned: the load.
            width: how many messages ran when the earlier driver died; 0 if it ended in good order.
            now: the time.
        """
        ...

    def partitions(self) -> Sequence[PartitionStatistics]:
        """Return how the source's partitions stand, if it has any."""
        ...

    def close(self) -> None:
        """End the source; nothing is asked of it afterwards."""
        ...
