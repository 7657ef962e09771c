"""Tasks of hosted spouts: they live in the driver, each on a thread of its own."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, final

import cloudpickle
import numpy as np

from sparkstorm.acking.ids import U64, make_root
from sparkstorm.acking.lineage import Lineage
from sparkstorm.components.context import TaskContext
from sparkstorm.components.spout import Spout
from sparkstorm.delivery.remembered import DIED_OF_IT, Tries, digest_of, digests_of
from sparkstorm.delivery.retry import RetryPolicy
from sparkstorm.errors import EmitError, SparkstormError, SpoutConnectionError
from sparkstorm.execution.columns import CoderError, make_column
from sparkstorm.execution.packet import Body, PacketWriter
from sparkstorm.execution.reading import Load
from sparkstorm.planning.plan import Plan, StreamKey
from sparkstorm.streams import DEFAULT_STREAM
from sparkstorm.verdicts import Failure, Reason

__all__ = ["HostedTask", "SpoutLog"]

SpoutLog = Callable[[str, int, str, str], None]
"""Called with component, task, level and text, for what a spout reports."""

_MAX_FAILED_IDS = 100_000
"""Failed messages whose attempts are remembered; a spout may never emit them again."""

_MAX_LOAD_BYTES = 16 * 1024 * 1024
"""A load travels inside a Spark task, which may not exceed 128 MB (spark.rpc.message.maxSize)."""


class _Lot(NamedTuple):
    """What messages must have in common to travel in one load."""

    stream: str
    tracked: bool
    attempt: int
    width: int = 0


@dataclass(slots=True)
class _Intake:
    """Messages emitted to one stream and not yet planned; tracked and untracked ones apart."""

    rows: list[Sequence[Any]] = field(default_factory=list)
    msg_ids: list[Hashable] = field(default_factory=list)
    direct: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, limit: int) -> "_Intake":
        """Split off the first messages."""
        taken = _Intake(self.rows[:limit], self.msg_ids[:limit], self.direct[:limit])
        del self.rows[:limit], self.msg_ids[:limit], self.direct[:limit]
        return taken


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
        self._task.log("error", str(error) or type(error).__name__)


@final
class HostedTask:
    """One task of a hosted spout: its instance, what it emitted, what is pending.

    ``step`` and ``deliver`` run on the task's own thread (or on the one thread of the in-process
    runner); ``plan`` may run on another. Between them stands the lock of the intake.
    """

    def __init__(
        self, plan: Plan, component: str, task: int, log: SpoutLog, arrived: threading.Event
    ) -> None:
        spec = plan.spec(component)
        self.component = component
        self.task = task
        self.given_up = 0
        self._plan = plan
        self._log = log
        self._arrived = arrived
        self._spout: Spout = cloudpickle.loads(cloudpickle.dumps(spec.component))
        self._lock = threading.Lock()
        self._is_open = False
        self._tries: dict[Hashable, Tries] = {}
        self._earlier: dict[int, Tries] = {}
        self._left_failed: set[Hashable] = set()
        self._intake: dict[_Lot, _Intake] = {}
        self._pending: dict[int, _Pending] = {}
        self._in_flight = 0
        self._refused: deque[tuple[Hashable, Failure]] = deque()
        self._config = plan.config.override(dict(spec.settings))
        self._policy = RetryPolicy.of(self._config)

    @property
    def spout(self) -> Spout:
        """The user's spout."""
        return self._spout

    @property
    def pending(self) -> int:
        """Messages emitted with an id and not yet acked or failed."""
        with self._lock:
            waiting = sum(len(box) for lot, box in self._intake.items() if lot.tracked)
            return waiting + self._in_flight + len(self._refused)

    @property
    def left_failed(self) -> int:
        """Messages whose last attempt failed and that the spout has not emitted again."""
        return len(self._left_failed)

    @property
    def waiting(self) -> int:
        """Messages emitted and not yet in a batch."""
        with self._lock:
            return sum(len(box) for box in self._intake.values())

    @property
    def widths(self) -> set[int]:
        """The widths of the suspects that wait (:mod:`remembered`)."""
        with self._lock:
            return {lot.width for lot, box in self._intake.items() if lot.width and len(box)}

    @property
    def drained(self) -> bool:
        """Whether nothing is pending and the spout will emit nothing more."""
        # in this order: what it emitted before it was exhausted is then seen
        return self._spout.exhausted() and not self.waiting and not self.pending

    def open(self) -> None:
        """Open the spout."""
        context = TaskContext(
            topology=self._plan.name,
            component=self.component,
            task=self.task,
            tasks=self._plan.tasks,
            config=self._config,
        )
        try:
            self._spout.open(self._config, context, _Collector(self))
        except SparkstormError:
            raise
        except Exception as error:  # user code: whatever keeps the source from opening
            raise SpoutConnectionError(
                f"spout {self.component!r} could not be opened: {type(error).__name__}: {error}"
            ) from error
        self._is_open = True

    def close(self) -> None:
        """Close the spout, once, if it was opened."""
        if self._is_open:
            self._is_open = False
            self._spout.close()

    def step(self, limit: int) -> bool:
        """Ask for messages once, if fewer than ``limit`` are pending; returns whether any came."""
        self.fail_refused()
        if self.pending >= limit or self.waiting >= limit:
            return False
        before = self.waiting
        self._spout.next_tuple()
        return self.waiting > before

    def take_in(
        self, values: Sequence[Any], msg_id: Hashable, stream: str, direct: int | None
    ) -> None:
        """Take in one emitted message."""
        declared = self._plan.spec(self.component).streams.get(stream)
        if declared is None:
            raise EmitError(f"spout {self.component!r} declares no stream {stream!r}")
        if len(values) != len(declared.fields) or (direct is None) == declared.direct:
            raise EmitError(
                f"spout {self.component!r} emitted {list(values)!r} to stream {stream!r}, which "
                f"has the fields {', '.join(declared.names)}"
                f"{' and is direct' if declared.direct else ''}"
            )
        tracked = msg_id is not None and self._plan.tracked
        self._left_failed.discard(msg_id)
        tries = self._tries_of(msg_id) if tracked else _FIRST_TRY
        if tries.width == 1 and self._policy.delay(attempt=tries.attempt - 1, key=0) is None:
            self._refused.append((msg_id, DIED_OF_IT))
            return
        with self._lock:
            lot = _Lot(stream, tracked, tries.attempt, tries.width)
            box = self._intake.setdefault(lot, _Intake())
            box.rows.append(tuple(values))
            box.msg_ids.append(msg_id)
            if direct is not None:
                box.direct.append(direct)
        self._arrived.set()
        if msg_id is not None and not tracked:
            self._spout.ack(msg_id)

    def plan(self, limit: int, sequence: int, lane: int, width: int = 0) -> list[tuple[Load, int]]:
        """Put up to ``limit`` messages into (load, attempt), numbered from ``sequence``.

        Only suspects of a ``width``; by default only messages that are no suspects.
        """
        loads: list[tuple[Load, int]] = []
        for lot in [lot for lot in list(self._intake) if lot.width == width]:
            with self._lock:
                taken = self._intake[lot].take(limit)
                if not len(self._intake[lot]):
                    del self._intake[lot]
            if len(taken):
                load = self._load(lot, taken, sequence, lane + len(loads))
                if load is not None:
                    limit -= load.count
                    sequence += load.count if load.first is not None else 0
                    loads.append((load, lot.attempt))
        return loads

    def remember(self, earlier: dict[int, Tries]) -> None:
        """Take in what an earlier driver left behind, to know its messages again."""
        self._earlier = earlier

    def known(self) -> list[Tries]:
        """What a later driver is to know, should this one end."""
        # copies, since the spout's thread goes on
        return list(self._tries.values()) + list(self._earlier.values())

    def ids_of(self, load: Load) -> bytes:
        """The digests of a load's message ids, as an array's bytes."""
        return b"" if load.first is None else digests_of(self._pending[load.first])

    def deliver(self, acked: U64, failed: Sequence[tuple[int, Failure]]) -> None:
        """Call the spout's ack and fail; roots that are not pending here are passed over."""
        for first, ids in list(self._pending.items()):
            start, stop = np.searchsorted(acked, np.array([first, first + len(ids)], np.uint64))
            for root in acked[start:stop].tolist():
                msg_id = self._forget(ids, root - first)
                if msg_id is not _GONE:
                    self._tries.pop(msg_id, None)
                    self._spout.ack(msg_id)
                    self._ended()
            for root, failure in failed:
                if first <= root < first + len(ids):
                    msg_id = self._forget(ids, root - first)
                    if msg_id is not _GONE:
                        self._fail(msg_id, failure)
                        self._ended()
            if not ids.left:
                del self._pending[first]

    def fail_refused(self) -> None:
        """Call the spout's fail for the messages that could not be encoded."""
        while self._refused:
            self._fail(*self._refused[0])
            self._refused.popleft()

    def give_up(self, msg_id: Hashable, failure: Failure) -> None:
        """Note that a message will not be tried again."""
        self._tries.pop(msg_id, None)
        self._left_failed.discard(msg_id)
        self.given_up += 1
        self.log("error", f"message {msg_id!r} was given up: {failure}")

    def log(self, level: str, text: str) -> None:
        """Report something to whoever watches."""
        self._log(self.component, self.task, level, text)

    def _fail(self, msg_id: Hashable, failure: Failure) -> None:
        tries = self._tries.get(msg_id) or Tries(digest_of(msg_id))
        known_to_kill = failure is DIED_OF_IT
        tried = tries.attempt - known_to_kill
        failure = replace(failure, attempt=tried)
        if type(self._spout).fail is Spout.fail:
            self.give_up(msg_id, failure)
            return
        self._tries[msg_id] = Tries(tries.digest, tried + 1, tries.width if known_to_kill else 0)
        self._left_failed.add(msg_id)
        if len(self._tries) > _MAX_FAILED_IDS:
            oldest = next(iter(self._tries))
            del self._tries[oldest]
            self._left_failed.discard(oldest)
        self._spout.fail(msg_id, failure)

    def _load(self, lot: _Lot, taken: _Intake, sequence: int, lane: int) -> Load | None:
        key = StreamKey(self.component, lot.stream)
        body = self._encode(key, taken)
        while body is not None and body.nbytes > _MAX_LOAD_BYTES and len(taken) > 1:
            self._put_back(lot, taken, len(taken) // 2)
            body = self._encode(key, taken)
        if body is None:
            return None
        first = make_root(self.task, sequence) if lot.tracked else None
        if first is not None:
            self._pending[first] = _Pending(taken.msg_ids)
            with self._lock:
                self._in_flight += body.count
        return Load(
            component=self.component,
            task=self.task,
            stream=lot.stream,
            lane=lane,
            count=body.count,
            first=first,
            packet=PacketWriter(self.task).data(
                stream=0, target=0, body=body, lineage=Lineage.untracked(body.count)
            ),
            direct=np.array(taken.direct, np.int32).tobytes()
            if self._plan.stream(key).direct
            else None,
        )

    def _put_back(self, lot: _Lot, taken: _Intake, keep: int) -> None:
        """Leave all but the first messages to a later load: they are too large together."""
        with self._lock:
            box = self._intake.setdefault(lot, _Intake())
            pairs: tuple[tuple[list[Any], list[Any]], ...] = (
                (taken.rows, box.rows),
                (taken.msg_ids, box.msg_ids),
                (taken.direct, box.direct),
            )
            for mine, theirs in pairs:
                theirs[:0] = mine[keep:]
                del mine[keep:]

    def _encode(self, key: StreamKey, taken: _Intake) -> Body | None:
        """Encode the messages; those that do not fit the declared fields fail and are left out."""
        stream = self._plan.stream(key)
        while taken.rows:
            try:
                columns = [
                    make_column(field, [row[index] for row in taken.rows])
                    for index, field in enumerate(stream.fields)
                ]
                return Body.encode(columns, len(taken))
            except CoderError as error:
                self._refuse(key, taken, error)
        return None

    def _refuse(self, key: StreamKey, taken: _Intake, error: CoderError) -> None:
        failure = Failure(
            reason=Reason.ERROR,
            component=self.component,
            task=self.task,
            message=f"stream {str(key)!r}: {error}",
            final=True,
        )
        bad = set(error.rows)
        for row in error.rows:
            msg_id = taken.msg_ids[row]
            self.log("error", f"message {msg_id!r} cannot be sent: {failure.message}")
            if msg_id is not None and self._plan.tracked:
                self._refused.append((msg_id, failure))
        columns: tuple[list[Any], ...] = (taken.rows, taken.msg_ids, taken.direct)
        for values in columns:
            values[:] = [value for row, value in enumerate(values) if row not in bad]

    def _tries_of(self, msg_id: Hashable) -> Tries:
        known = self._tries.get(msg_id)
        if known is None and self._earlier:
            known = self._earlier.pop(digest_of(msg_id), None)
            if known is not None:
                self._tries[msg_id] = known
        return known or _FIRST_TRY

    def _forget(self, ids: "_Pending", index: int) -> Hashable:
        msg_id, ids[index] = ids[index], _GONE
        if msg_id is not _GONE:
            ids.left -= 1
        return msg_id

    def _ended(self) -> None:
        """Count a message out; after the spout has heard of it, lest it look drained early."""
        with self._lock:
            self._in_flight -= 1


_GONE: Hashable = object()

_FIRST_TRY = Tries(0)


class _Pending(list[Hashable]):
    """The message ids of consecutive roots; ``left`` of them have not ended."""

    def __init__(self, ids: Sequence[Hashable]) -> None:
        super().__init__(ids)
        self.left = len(ids)
