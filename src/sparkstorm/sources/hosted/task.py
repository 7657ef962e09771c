"""Tasks of hosted spouts: they live in the driver, each on a thread of its own."""

import os
import secrets
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, final

import cloudpickle

from sparkstorm.acking.failed import FailedRoots
from sparkstorm.acking.ids import U64, make_root
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.dead_letters.letter import DeadLetter
from sparkstorm.dead_letters.office import DeadLetterOffice
from sparkstorm.errors import SparkstormError, SpoutConnectionError
from sparkstorm.packets.columns import CoderError
from sparkstorm.packets.load import Load
from sparkstorm.packets.packet import Body
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.planning.wiring import wiring_of
from sparkstorm.processes.client import KeeperClient, end_keeper
from sparkstorm.sources.blame import DIED_OF_IT, FIRST_TRY, Tries, digests_of
from sparkstorm.sources.calling import calling
from sparkstorm.sources.hosted.attempts import Attempts, FailedMessage
from sparkstorm.sources.hosted.handed_over import emitted_row, failure_of, known_task
from sparkstorm.sources.hosted.intake import Intake, Lot, Messages
from sparkstorm.sources.hosted.originals import GONE, Original, Originals, PendingLoad
from sparkstorm.sources.letters import Ended, LetterWriter, given_up_texts
from sparkstorm.sources.load_verdicts import verdicts_by_load
from sparkstorm.sources.packing import encode_rows, packed_load
from sparkstorm.sources.retry import RetryPolicy
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.texts.credentials import untold
from sparkstorm.texts.showing import shown
from sparkstorm.texts.user_errors import message_of, reason_of
from sparkstorm.verdicts import Failure, Reason

__all__ = ["HostedTask", "SpoutLog"]

SpoutLog = Callable[[str, int, str, str], None]
"""Called with component, task, level and text, for what a spout reports."""

_MAX_LOAD_BYTES = 16 * 1024 * 1024
"""A load travels inside a Spark task, which may not exceed 128 MB (spark.rpc.message.maxSize)."""


@final
class _Collector:
    """What a hosted spout emits into; used on the spout's thread only."""

    def __init__(self, task: "HostedTask") -> None:
        self._task = task

    def emit(
        self,
        values: Sequence[Any],
        *,
        msg_id: Hashable = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emit a message."""
        self._task.take_in(values, msg_id, stream, None)

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        *,
        msg_id: Hashable = None,
        stream: str = DEFAULT_STREAM,
    ) -> None:
        """Emit to one task, on a stream declared direct."""
        self._task.take_in(values, msg_id, stream, task)

    def give_up(self, msg_id: Hashable, failure: Failure) -> None:
        """Say that a message will not be tried again."""
        self._task.give_up(msg_id, failure)

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to whoever watches the topology."""
        self._task.log("error", reason_of(error))


@final
class HostedTask:
    """One task of a hosted spout: its instance, what it emitted, what is pending.

    ``step`` and ``deliver`` run on the task's own thread (or on the one thread of the in-process
    runner); ``plan`` may run on another. Between them stand the intake, and the lock around what is
    in flight.
    """

    def __init__(
        self,
        plan: Plan,
        component: str,
        task: int,
        log: SpoutLog,
        arrived: threading.Event,
        office: DeadLetterOffice,
    ) -> None:
        spec = plan.spec(component)
        self.component = component
        self.task = task
        self.given_up = 0
        self._plan = plan
        self._log = log
        self._arrived = arrived
        self._spout: Spout = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._keeper = secrets.token_hex(8)
        self._is_open = False
        self._at_rest = True
        self._attempts = Attempts()
        self._clock = office.clock
        self._letters = LetterWriter(plan, component, task, office)
        self._intake = Intake()
        self.taken_bytes = self._intake.message_bytes
        self._pending: dict[int, PendingLoad] = {}
        self._lock = threading.Lock()
        self._in_flight = 0
        self._refused: deque[tuple[Hashable, Failure, Original]] = deque()
        self._config = plan.settings(component)
        self._policy = RetryPolicy.of(self._config)

    @property
    def spout(self) -> Spout:
        """The user's spout."""
        return self._spout

    @property
    def pending(self) -> int:
        """Messages emitted with an id and not yet acked or failed."""
        return self._intake.tracked + self._in_flight + len(self._refused)

    @property
    def in_flight(self) -> int:
        """Messages in a batch, or open after it."""
        return self._in_flight

    @property
    def left_failed(self) -> int:
        """Messages whose last attempt failed and that the spout has not emitted again."""
        return self._attempts.left_failed

    @property
    def waiting(self) -> int:
        """Messages emitted and not yet in a batch."""
        return len(self._intake)

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects that wait (:mod:`sparkstorm.sources.blame`)."""
        return self._intake.widths

    @property
    def drained(self) -> bool:
        """Whether nothing is pending and the spout will emit nothing more.

        A spout that takes the last message in ``next_tuple`` is exhausted before it emits it or
        gives it up, so what it says while it runs does not count.
        """
        with calling(self.component, "exhausted"):  # first: what it emitted before is then seen
            done = self._spout.exhausted() and self._at_rest
        return done and not self.waiting and not self.pending

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
            self._spout.open(self._config, context, _Collector(self))
        except SparkstormError:
            raise
        except Exception as error:  # noqa: BLE001 - user code: whatever keeps it from opening
            raise SpoutConnectionError(
                f"spout {self.component!r} could not be opened: {message_of(error)}"
            ) from untold(error)
        self._is_open = True

    def close(self) -> None:
        """Close the spout, once, if it was opened."""
        if self._is_open:
            self._is_open = False
            self._spout.close()
            end_keeper(self._keeper)

    def step(self, limit: int) -> bool:
        """Ask for messages once, if fewer than ``limit`` are pending; returns whether any came."""
        self.fail_refused()
        if self.pending >= limit or self.waiting >= limit:
            return False
        before = self.waiting
        self._at_rest = self._spout.exhausted()
        self._spout.next_tuple()
        self._at_rest = True
        return self.waiting > before

    def take_in(
        self, values: Sequence[Any], msg_id: Hashable, stream: str, direct: int | None
    ) -> None:
        """Take in one emitted message."""
        row = emitted_row(self._plan, self.component, values, stream, direct=direct is not None)
        if direct is not None:
            direct = known_task(self._plan, self.component, direct)
        tracked = msg_id is not None and self._plan.tracked
        tries = self._attempts.emitted(msg_id) if tracked else FIRST_TRY
        if tries.width == 1 and self._policy.delay(attempt=tries.attempt - 1, key=0) is None:
            original = Original(stream, row, direct, self._letters.now())
            self._refused.append((msg_id, DIED_OF_IT, original))
            return
        lot = Lot(stream, tracked, tries.attempt, tries.width)
        self._intake.add(lot, row, msg_id, direct)
        self._arrived.set()
        if msg_id is not None and not tracked:
            self._spout.ack(msg_id)

    def plan(self, limit: int, sequence: int, lane: int, width: int = 0) -> list[tuple[Load, int]]:
        """Put up to ``limit`` messages into (load, attempt), numbered from ``sequence``.

        Only suspects of a ``width``; by default only messages that are no suspects.
        """
        loads: list[tuple[Load, int]] = []
        for lot in self._intake.lots(width):
            taken = self._intake.take(lot, limit)
            if len(taken):
                load = self._load(lot, taken, sequence, lane + len(loads))
                if load is not None:
                    limit -= load.count
                    sequence += load.count if load.first is not None else 0
                    loads.append((load, lot.attempt))
        return loads

    def remember(self, earlier: dict[int, Tries]) -> None:
        """Take in what an earlier driver left behind, to know its messages again."""
        self._attempts.remember(earlier)

    def known(self) -> list[Tries]:
        """What a later driver is to know, should this one end."""
        return self._attempts.known()

    def ids_of(self, load: Load) -> bytes:
        """The digests of a load's message ids, as an array's bytes."""
        return b"" if load.first is None else digests_of(self._pending[load.first])

    def deliver(self, acked: U64, failed: FailedRoots) -> None:
        """Call the spout's ack and fail; roots that are not pending here are passed over."""
        counts = {first: len(ids) for first, ids in self._pending.items()}
        for first, done, broken in verdicts_by_load(counts, acked, failed):
            ids = self._pending[first]
            for root in done.tolist():
                msg_id = ids.take(root - first)
                if msg_id is not GONE:
                    self._attempts.forget(msg_id)
                    self._spout.ack(msg_id)
                    self._ended(1)
            self._fail_some(ids, [(root - first, why) for root, why in broken.items()])
            if not ids.left:
                del self._pending[first]
            else:
                ids.shrink()

    def fail_refused(self) -> None:
        """Call the spout's fail for the messages that could not be encoded."""
        while self._refused:
            msg_id, failure, original = self._refused[0]
            self._post(self._fail(msg_id, failure, original, nbytes=0))
            self._refused.popleft()

    def give_up(self, msg_id: Hashable, failure: Failure) -> None:
        """Note that a message will not be tried again: its dead letter is written on return."""
        failure = failure_of(failure, self.component, self.task)
        self._post(self._bury(msg_id, failure))

    def log(self, level: str, text: str) -> None:
        """Report something to whoever watches."""
        self._log(self.component, self.task, level, text)

    def _fail_some(self, ids: PendingLoad, failed: list[tuple[int, Failure]]) -> None:
        """Fail messages of one load; what the engine gives up itself is written in one go.

        Those that were left out of their batch wait for the next one, as if emitted once more.
        """
        ended = [(ids.take(place), place, why) for place, why in failed]
        ended = [(msg_id, place, why) for msg_id, place, why in ended if msg_id is not GONE]
        if not ended:
            return
        originals = ids.originals.of([place for _, place, _ in ended])
        letters: list[DeadLetter] = []
        for (msg_id, _, why), original in zip(ended, originals, strict=True):
            if why.counted:
                letters += self._fail(msg_id, why, original, ids.bytes_each)
            else:  # it has not run: no word to the spout, which may count what it hears, or give up
                self.take_in(original.values, msg_id, original.stream, original.direct)
        self._post(letters)
        self._ended(len(ended))

    def _fail(
        self, msg_id: Hashable, failure: Failure, original: Original, nbytes: int
    ) -> list[DeadLetter]:
        """Tell the spout; return the letter of a message that it takes no interest in."""
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
        return [self._letter(msg_id, failure, known)]

    def _letter(
        self, msg_id: Hashable, failure: Failure, known: FailedMessage | None
    ) -> DeadLetter:
        original = None if known is None else known.original
        return self._letters.letter(
            msg_id,
            failure,
            stream=DEFAULT_STREAM if original is None else original.stream,
            attempts=failure.attempt if known is None else known.attempts,
            began=self._letters.now() if known is None else known.began,
            values=None if original is None else original.values,
            direct=None if original is None else original.direct,
            note=_FORGOTTEN if original is None else "",
        )

    def _post(self, letters: Sequence[DeadLetter]) -> None:
        """Write letters, then tell people."""
        desk = self._letters.desk
        desk.post(letters)
        ended = [
            Ended(one.msg_id, 1, one.attempts, one.failure, one if desk.keeps else None)
            for one in letters
        ]
        for text in given_up_texts(ended):
            self.log("error", text)

    def _load(self, lot: Lot, taken: Messages, sequence: int, lane: int) -> Load | None:
        key = StreamKey(self.component, lot.stream)
        body = self._encode(key, taken)
        while body is not None and body.nbytes > _MAX_LOAD_BYTES and len(taken) > 1:
            self._intake.put_back(lot, taken.cut(len(taken) // 2))  # they are too large together
            body = self._encode(key, taken)
        if body is None:
            return None
        first = make_root(self.task, sequence) if lot.tracked else None
        load = packed_load(key, self.task, body, first=first, lane=lane, direct=taken.direct)
        if first is not None:
            originals = Originals(load, self._letters.now())
            self._pending[first] = PendingLoad(taken.msg_ids, originals)
            with self._lock:
                self._in_flight += body.count
        return load

    def _encode(self, key: StreamKey, taken: Messages) -> Body | None:
        """Encode the messages; those that do not fit the declared fields fail and are left out."""
        stream = self._plan.stream(key)
        while taken.rows:
            try:
                return encode_rows(stream, taken.rows)
            except CoderError as error:
                self._refuse(key, taken, error)
        return None

    def _refuse(self, key: StreamKey, taken: Messages, error: CoderError) -> None:
        for row, why in error.faults.items():
            failure = Failure(
                reason=Reason.ERROR,
                component=self.component,
                task=self.task,
                message=f"stream {str(key)!r}: {why}",
                final=True,
            )
            msg_id = taken.msg_ids[row]
            self.log("error", f"message {shown(msg_id)} cannot be sent: {failure.message}")
            if msg_id is not None and self._plan.tracked:
                values, direct = tuple(taken.rows[row]), taken.direct_of(row)
                original = Original(key.stream, values, direct, self._letters.now())
                self._refused.append((msg_id, failure, original))
        taken.drop(error.rows)

    def _ended(self, count: int) -> None:
        """Count messages out; after the spout has heard of them, lest it look drained early."""
        with self._lock:
            self._in_flight -= count


@lru_cache(maxsize=100)
def _as_attempt(failure: Failure, attempt: int) -> Failure:
    """A failure as that of this attempt: the same object for all messages that failed alike."""
    return replace(failure, attempt=attempt)


_FORGOTTEN = (
    "the payload is no longer known: it was given up long after it had failed, or never did"
)
