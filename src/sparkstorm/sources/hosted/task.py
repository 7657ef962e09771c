"""Tasks of hosted spouts: they live in the driver, each on a thread of its own."""

import os
import secrets
import threading
from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, final

import cloudpickle

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.letter_queue import DeadLetterQueue
from sparkstorm.errors import SparkstormError, SpoutConnectionError
from sparkstorm.packets.load import Load
from sparkstorm.planning.plan import Plan
from sparkstorm.planning.wiring import wiring_of
from sparkstorm.processes.client import KeeperClient, end_keeper
from sparkstorm.sources.blame import DIED_OF_IT, FIRST_TRY, Attempts, digests_of
from sparkstorm.sources.hosted.collector import (
    HostedCollector,
    emitted_row,
    failure_of,
    known_task,
)
from sparkstorm.sources.hosted.intake import EmittedMessages, Intake, LoadKey
from sparkstorm.sources.hosted.letters import HostedLetters
from sparkstorm.sources.hosted.loads import LoadMaker, PendingLoad, Refused
from sparkstorm.sources.in_flight import InFlight
from sparkstorm.sources.message_bytes import MeanBytes
from sparkstorm.sources.originals import Original, Originals
from sparkstorm.sources.planned import PlannedLoad
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.sources.source import SPREAD_FROM, Order, Progress
from sparkstorm.sources.spout_calls import calling
from sparkstorm.tasks.report import LogLine, log_line
from sparkstorm.texts.credentials import untold
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import message_of
from sparkstorm.verdicts import Failure

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
        spec = plan.spec(component)
        self.component = component
        self.task = task
        self.owner = plan.name_of(task)
        self.bounds = make_root(task, 0), make_root(task + 1, 0)
        self.given_up = 0
        self._plan = plan
        self._arrived = arrived
        self._spout: Spout = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._keeper = secrets.token_hex(8)
        self._is_open = False
        self._at_rest = True
        self._courier: Callable[[U64, FailedRoots], None] | None = None
        self._attempts = Attempts()
        self._clock = dead_letters.clock
        self._letters = HostedLetters(
            plan, component, task, dead_letters, lambda text: self.log("error", text)
        )
        self._intake = Intake()
        self._window = InFlight[PendingLoad]()
        self._refused: deque[Refused] = deque()
        self._loads = LoadMaker(plan, component, task, self._intake, self._refuse)
        self._planned_bytes = MeanBytes()
        self._config = plan.settings(component)
        self._policy = RetryPolicy.of(self._config)

    @property
    def spout(self) -> Spout:
        """The user's spout."""
        return self._spout

    # --- how the task stands ---------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Messages emitted with an id and not yet acked or failed."""
        return self._intake.tracked + len(self._window) + len(self._refused)

    @property
    def ready(self) -> bool:
        """Always: the spout is asked for each batch."""
        return True

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
        return self._attempts.left_failed

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
        """Whether nothing is pending and the spout will emit nothing more.

        A spout that takes the last message in ``next_tuple`` is exhausted before it emits it or
        gives it up, so its answer while it runs does not count.
        """
        with calling(self.component, "exhausted"):  # first: earlier messages are then seen below
            done = self._spout.exhausted() and self._at_rest
        return done and self.idle

    def partitions(self) -> Sequence[Any]:
        """Return nothing: a hosted spout has no partitions."""
        return ()

    # --- the life of the spout -------------------------------------------------------------------

    def open(self) -> None:
        """Open the spout."""
        context = TaskContext(
            topology=self._plan.name,
            component=self.component,
            task=self.task,
            tasks=self._plan.tasks,
            config=self._config,
            clock=self._clock,
            wiring=wiring_of(self._plan, self.component),
        )
        context.set_processes(KeeperClient(self._keeper, os.getpid()))
        try:
            self._spout.open(self._config, context, HostedCollector(self))
        except SparkstormError:
            raise
        except Exception as error:  # noqa: BLE001 - user code: whatever keeps it from opening
            raise SpoutConnectionError(
                f"spout {self.component!r} could not be opened: {message_of(error)}"
            ) from untold(error)
        self._is_open = True

    def shut(self) -> None:
        """Close the spout, once, if it was opened; called on its thread."""
        if self._is_open:
            self._is_open = False
            self._spout.close()
            end_keeper(self._keeper)

    def close(self) -> None:
        """Nothing: whoever runs the task's thread shuts the spout."""

    def step(self, limit: int) -> bool:
        """Ask for messages once, if fewer than ``limit`` are pending; return whether any came."""
        self.fail_refused()
        if self.pending >= limit or self.waiting >= limit:
            return False
        before = self.waiting
        self._at_rest = self._spout.exhausted()
        self._spout.next_tuple()
        self._at_rest = True
        return self.waiting > before

    def emitted(
        self, values: Sequence[Any], msg_id: Hashable, stream: str, direct: int | None
    ) -> None:
        """Put an emitted message into the intake."""
        row = emitted_row(self._plan, self.component, values, stream, direct=direct is not None)
        if direct is not None:
            direct = known_task(self._plan, self.component, direct)
        tracked = msg_id is not None and self._plan.tracked
        tries = self._attempts.emitted(msg_id) if tracked else FIRST_TRY
        if tries.width == 1 and self._policy.delay(attempt=tries.attempt - 1, key=0) is None:
            original = Original(stream, row, direct, self._letters.now())
            self._refused.append(Refused(msg_id, DIED_OF_IT, original))
            return
        key = LoadKey(stream, tracked, tries.attempt, tries.width)
        self._intake.add(key, row, msg_id, direct)
        self._arrived.set()
        if msg_id is not None and not tracked:
            self._spout.ack(msg_id)

    def give_up(self, msg_id: Hashable, failure: Failure) -> None:
        """Note that a message will not be tried again; on return its dead letter is written."""
        failure = failure_of(failure, self.component, self.task)
        self._letters.write(self._bury(msg_id, failure))

    def log(self, level: str, text: str) -> None:
        """Report something to whoever watches."""
        log_line(LogLine(self.component, self.task, level, text))

    # --- from one driver to the next -------------------------------------------------------------

    def recover(self, progress: Progress | None, now: float) -> None:
        """Remember the tries under an earlier driver, to know its messages again."""
        if progress is not None:
            self._attempts.remember({tries.digest: tries for tries in progress.tries})

    def forget_earlier(self) -> None:
        """Forget the tries under an earlier driver."""
        self._attempts.remember({})

    def progress(self, planned: Collection[int]) -> Progress:
        """Return the tries of messages that have failed."""
        return Progress(tries=self._attempts.known())

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
            pending = PendingLoad(taken.msg_ids, Originals(load, self._letters.now()))
            self._window.add(load.first, load.count, pending)
        return load

    def _refuse(
        self, msg_id: Hashable, failure: Failure, stream: str, values: Any, direct: int | None
    ) -> None:
        """Let a message that cannot be sent fail, on the spout's thread."""
        self.log("error", f"message {shown(msg_id)} cannot be sent: {failure.message}")
        if msg_id is not None and self._plan.tracked:
            original = Original(stream, values, direct, self._letters.now())
            self._refused.append(Refused(msg_id, failure, original))

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
            for place in done.tolist():
                msg_id = pending.ids[place]
                self._attempts.forget(msg_id)
                self._spout.ack(msg_id)
            self._fail_some(pending, [(root - first, why) for root, why in broken.items()])
            touched.append(first)
        for first in touched:
            if first in self._window:
                self._window[first].shrink(self._window.left(first))

    def fail_refused(self) -> None:
        """Call the spout's fail for the messages that could not be sent."""
        while self._refused:
            msg_id, failure, original = self._refused[0]
            self._letters.write(self._fail(msg_id, failure, original, nbytes=0))
            self._refused.popleft()

    def _fail_some(self, pending: PendingLoad, failed: list[tuple[int, Failure]]) -> None:
        """Fail messages of one load; letters that the engine writes itself are written at once.

        A message that did not run waits for the next batch, as if emitted once more: the spout
        hears nothing, since it may count failures, or give up.
        """
        if not failed:
            return
        originals = pending.originals.of([place for place, _ in failed])
        letters: list[DeadLetter] = []
        for (place, why), original in zip(failed, originals, strict=True):
            msg_id = pending.ids[place]
            if why.counted:
                letters += self._fail(msg_id, why, original, pending.bytes_each)
            else:
                self.emitted(original.values, msg_id, original.stream, original.direct)
        self._letters.write(letters)

    def _fail(
        self, msg_id: Hashable, failure: Failure, original: Original, nbytes: int
    ) -> list[DeadLetter]:
        """Tell the spout; return the letter of a message that the spout takes no interest in."""
        ran = failure is not DIED_OF_IT
        known = self._attempts.failed(msg_id, original, nbytes, ran=ran)
        failure = _as_attempt(failure, known.attempts)
        if type(self._spout).fail is Spout.fail:
            return self._bury(msg_id, failure)
        self._spout.fail(msg_id, failure)
        return []

    def _bury(self, msg_id: Hashable, failure: Failure) -> list[DeadLetter]:
        """Count a message as given up and return its letter."""
        known = self._attempts.forget(msg_id)
        self.given_up += 1
        return [self._letters.letter(msg_id, failure, known)]


@lru_cache(maxsize=100)
def _as_attempt(failure: Failure, attempt: int) -> Failure:
    """Return a failure as that of this attempt: one object for all messages that failed alike."""
    return replace(failure, attempt=attempt)
