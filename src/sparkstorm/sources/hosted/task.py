"""Tasks of hosted spouts: they live in the driver, each on a thread of its own."""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, final

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.components.spout import Spout
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.blame import digests_of
from sparkstorm.sources.hosted.intake import EmittedMessages, Intake, LoadKey
from sparkstorm.sources.hosted.loads import LoadMaker, PendingLoad
from sparkstorm.sources.hosted.spout import HostedSpout
from sparkstorm.sources.hosted.unfinished import HostedMessages
from sparkstorm.sources.in_flight import InFlight
from sparkstorm.sources.message_bytes import MeanBytes
from sparkstorm.sources.planned import PlannedLoad
from sparkstorm.sources.source import SPREAD_FROM, Order, Progress

__all__ = ["HostedTask"]


@final
class HostedTask:
    """One task of a hosted spout: its instance, and the messages that it emitted.

    A :class:`sparkstorm.sources.source.Source`. ``step`` and ``hear`` run on the task's own thread
    (or on the one thread of the in-process runner); the planner may run on another. Between them
    stand the intake and the window of messages in flight.

    Args:
        plan: the topology's plan.
        component: the spout's id.
        task: the task's number.
        log: shows what the spout reports.
        arrived: set when the spout has emitted.
        dead_letters: where dead letters go.
    """

    def __init__(
        self,
        plan: Plan,
        component: str,
        task: int,
        arrived: threading.Event,
        dead_letters: DeadLetterQueue,
    ) -> None:
        self.component = component
        self.task = task
        self.owner = plan.name_of(task)
        self.bounds = make_root(task, 0), make_root(task + 1, 0)
        self._courier: Callable[[U64, FailedRoots], None] | None = None
        self._intake = Intake()
        self._window = InFlight[PendingLoad]()
        self._spout = HostedSpout(plan, component, task, self._intake, arrived, dead_letters)
        self._loads = LoadMaker(plan, component, task, self._intake, self._spout.refuse)
        self._planned_bytes = MeanBytes()
        self.messages = HostedMessages(
            component, task, self.owner, self._intake, self._window, self._spout
        )
        """Names the task's messages."""

    @property
    def spout(self) -> Spout:
        """The user's spout."""
        return self._spout.user

    @property
    def given_up(self) -> int:
        """Messages that will not be tried again."""
        return self._spout.given_up

    # --- how the task stands ---------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Messages emitted with an id and not yet acked or failed."""
        return self._intake.tracked + len(self._window) + self._spout.refused

    @property
    def ready(self) -> bool:
        """Always: the spout is asked for each batch."""
        return True

    @property
    def seen(self) -> float:
        """When the task last came by to call its spout, on the clock of the batches."""
        return self._spout.seen

    @property
    def in_flight(self) -> int:
        """Messages in a batch, or open after it."""
        return len(self._window)

    @property
    def waiting(self) -> int:
        """Messages emitted and not yet in a batch."""
        return len(self._intake)

    @property
    def left_failed(self) -> int:
        """Messages whose last attempt failed and that the spout has not emitted again."""
        return self._spout.attempts.left_failed

    @property
    def message_bytes(self) -> float:
        """How large a message is, about; 0 before the first.

        The larger of two means: some messages are measured as they come, all once encoded. Objects
        show their size only by their encoding.
        """
        return max(self._planned_bytes.value, self._intake.message_bytes.value)

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects that wait (:mod:`sparkstorm.sources.blame`)."""
        return self._intake.widths

    @property
    def idle(self) -> bool:
        """Whether nothing waits for a batch, or is pending."""
        return not self.waiting and not self.pending

    @property
    def drained(self) -> bool:
        """Whether nothing is pending and the spout will emit nothing more."""
        done = self._spout.exhausted  # first: earlier messages are then seen below
        return done and self.idle

    def partitions(self) -> Sequence[Any]:
        """Return nothing: a hosted spout has no partitions."""
        return ()

    # --- the life of the spout, on the task's thread ---------------------------------------------

    def open(self) -> None:
        """Open the spout."""
        self._spout.open()

    def shut(self) -> None:
        """Close the spout, once, if it was opened."""
        self._spout.shut()

    def close(self) -> None:
        """Nothing: whoever runs the task's thread shuts the spout."""

    def step(self, limit: int) -> bool:
        """Ask for messages once, if fewer than ``limit`` are pending; return whether any came."""
        self._spout.fail_refused()
        self._spout.retry_hurried()
        if self.pending >= limit or self.waiting >= limit:
            return False
        before = self.waiting
        self._spout.next_tuple()
        return self.waiting > before

    # --- from one driver to the next -------------------------------------------------------------

    def recover(self, progress: Progress | None, now: float) -> None:
        """Remember the tries under an earlier driver, to know its messages again."""
        if progress is not None:
            self._spout.attempts.remember({tries.digest: tries for tries in progress.tries})

    def forget_earlier(self) -> None:
        """Forget the tries under an earlier driver."""
        self._spout.attempts.remember({})

    def progress(self, planned: Collection[int]) -> Progress:
        """Return the tries of messages that have failed."""
        return Progress(tries=self._spout.attempts.known())

    def adopt(self, planned: PlannedLoad, order: Order, *, whole: bool) -> PlannedLoad | None:
        """Return None: hosted messages come again from their source."""
        return None

    def take_back(self, planned: PlannedLoad, width: int, now: float) -> None:
        """Nothing: no hosted load is ever adopted."""

    # --- planning --------------------------------------------------------------------------------

    def plan(self, order: Order) -> list[PlannedLoad]:
        """Return loads of messages from the intake, spread if there are many."""
        wanted = min(order.limit, self.waiting)
        pieces = order.partitions if wanted >= SPREAD_FROM * order.partitions else 1
        planned: list[PlannedLoad] = []
        for piece in range(pieces):
            count = -(-wanted // (pieces - piece))
            planned += self._loads_of(replace(order, limit=count), width=0)
            wanted -= count
        return planned

    def plan_suspects(self, order: Order, width: int) -> list[PlannedLoad]:
        """Return loads of suspects of a width."""
        return self._loads_of(order, width)

    def _loads_of(self, order: Order, width: int) -> list[PlannedLoad]:
        """Put up to ``order.limit`` messages into loads; only suspects of a width, if above 0."""
        planned: list[PlannedLoad] = []
        limit = order.limit
        for key in self._intake.keys(width):
            taken = self._intake.take(key, limit)
            load = self._load(key, taken, order) if len(taken) else None
            if load is not None:
                limit -= load.count
                ids = digests_of(taken.msg_ids) if order.with_ids and key.tracked else b""
                planned.append(
                    PlannedLoad(load=load, attempt=key.attempt, owner=self.owner, ids=ids)
                )
        return planned

    def _load(self, key: LoadKey, taken: EmittedMessages, order: Order) -> Load | None:
        load = self._loads.make(key, taken, order.numbers)
        if load is None:
            return None
        self._planned_bytes.note(len(load.packet or b"") / load.count, load.count)
        if load.first is not None:
            pending = PendingLoad.of(load, taken, key.attempt, self._spout.now())
            self._window.add(load.first, load.count, pending)
        return load

    # --- verdicts --------------------------------------------------------------------------------

    def deliver_by(self, courier: Callable[[U64, FailedRoots], None]) -> None:
        """Let a courier carry all verdicts to the task's thread, which calls :meth:`hear`."""
        self._courier = courier

    def deliver(self, acked: U64, failed: FailedRoots, now: float) -> None:
        """Hear of ends at once, or by the courier."""
        (self._courier or self.hear)(acked, failed)

    def ack_untracked(self, load: Load) -> None:
        """Nothing: in a topology without ackers a message is acked as it is emitted."""

    def hear(self, acked: U64, failed: FailedRoots) -> None:
        """Call the spout's ack and fail; messages that are not in flight are passed over."""
        touched: list[int] = []
        for first, pending, done, broken in self._window.verdicts(acked, failed):
            self._spout.ack(pending, done.tolist())
            self._spout.fail(pending, [(root - first, why) for root, why in broken.items()])
            touched.append(first)
        for first in touched:
            if first in self._window:
                self._window[first].shrink(self._window.left(first))

    def fail_refused(self) -> None:
        """Call the spout's fail for the messages that could not be sent."""
        self._spout.fail_refused()
