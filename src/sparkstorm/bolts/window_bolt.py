"""The WindowBolt: acts on windows of tuples, and acks a tuple after its last window."""

import sys
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, final

from sparkstorm.bolts.windowing import CountWindow, TimeWindow, Windowing, is_seconds, to_micros
from sparkstorm.components.collector import BasicCollector, BoltCollector
from sparkstorm.components.context import TaskContext
from sparkstorm.components.stateful import State, StatefulBolt
from sparkstorm.components.wiring import Wiring
from sparkstorm.config import Config
from sparkstorm.errors import ComponentError, ConfigError, TopologyError, TrackingError
from sparkstorm.streams import declare
from sparkstorm.texts.user_errors import refuse_result
from sparkstorm.tuples import Tuple

__all__ = ["Window", "WindowBolt"]

_NEVER = -sys.maxsize
_ALWAYS = sys.maxsize
_MICROS = 1_000_000

_WATERMARK, _NEXT, _LATE, _BEGAN = "watermark", "next", "late", "began"
"""Keys of the bolt's own state, kept in ``_notes``."""


@final
@dataclass(frozen=True, slots=True)
class Window:
    """Tuples of one window.

    Attributes:
        key: the common values of the bolt's ``key_fields``.
        start: when the window begins, in seconds since 1970; a session begins with its first tuple.
        end: the first moment after the window. For a window by count, start and end are the moment
            of its completion.
        tuples: the tuples, in order of timestamps with a ``timestamp_field``, else in order of
            arrival.
    """

    key: tuple[Any, ...]
    start: float
    end: float
    tuples: list[Tuple]

    def __len__(self) -> int:
        return len(self.tuples)

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self.tuples)


class WindowBolt(StatefulBolt):
    """Calls :meth:`execute_window` for each window of its input.

    Class attributes choose the windows. Emits are anchored to all tuples of the window. The bolt
    holds a tuple over batches and acks it after its last window.

    With a ``timestamp_field``, windows go by the time in the tuples. Such a window is over when the
    *watermark* reaches its end. The watermark is the highest timestamp seen, less ``lag_secs``; of
    several input streams the lowest counts. The watermark moves at the end of each batch, and only
    by tuples this task received. Without a ``timestamp_field``, windows go by the time of the batch
    in which a tuple came, and ticks close windows even without input.

    If ``execute_window`` raises, all tuples of the window fail. A held tuple whose message times
    out leaves its windows, and comes back with its message.
    """

    window: Windowing
    """The kind of window."""

    key_fields: Sequence[str] = ()
    """Fields whose values have windows of their own; without any, all tuples of the task share
    windows."""

    timestamp_field: str | None = None
    """The field with a tuple's time: seconds since 1970, or a datetime (UTC without a zone).
    None: the time of receipt."""

    lag_secs: float = 0.0
    """How much later than the highest timestamp a tuple may come."""

    idle_secs: float | None = None
    """How long the watermark waits for an input stream without tuples. If all streams are idle,
    all windows are closed. None: for ever."""

    late_stream: str | None = None
    """Where tuples go, unchanged, that came after their last window. None: late tuples are
    acked, counted (``late_tuples``) and reported."""

    @abstractmethod
    def execute_window(self, window: Window, collector: BasicCollector) -> None:
        """Process one window; emits are anchored to all its tuples. Do not ack the tuples."""

    def component_configuration(self) -> Mapping[str, object]:
        """Ask for ticks if windows may end without input.

        Raises:
            TopologyError: the attributes do not fit together.
        """
        self._check()
        step = self._waits_for_ticks()
        return {} if step is None else {"tick_tuple_freq_secs": min(1.0, max(0.05, step / 10))}

    def faults(self, wiring: Wiring, tasks: int) -> Iterator[str]:
        """Find fields that a stream lacks, and groupings that tear windows apart."""
        stamp = () if self.timestamp_field is None else (self.timestamp_field,)
        keys = tuple(self.key_fields)
        for name, edge, fields in wiring.inputs():
            for role, wanted in (("timestamp_field", stamp), ("key_fields", keys)):
                for field in wanted:
                    if field not in fields:
                        yield (
                            f"its {role} names {field!r}, but the stream {name!r} has the fields "
                            f"{', '.join(fields) or 'none'}"
                        )
            if keys and tasks > 1 and not edge.keeps_together(keys):
                yield (
                    f"it has {tasks} tasks and windows by {', '.join(keys)}, but reads {name!r} by "
                    f"a grouping that spreads equal keys over tasks, so each window would get a "
                    f"part. Use fields_grouping({name!r}, {list(keys)})"
                )

    def prepare(self, config: Config, context: TaskContext, collector: BoltCollector) -> None:
        """Check windows against the time-out. An override has to call it."""
        window = self.window
        if self.timestamp_field is None and isinstance(window, TimeWindow):
            enough = config.message_timeout_secs > window.hold_secs
            if config.enable_message_timeouts and not enough:
                raise ConfigError(
                    f"{window!r} holds tuples for {window.hold_secs} s, but they time out after "
                    f"{config.message_timeout_secs} s: raise message_timeout_secs"
                )

    def init_state(self, state: State) -> None:
        """Take up the held tuples. An override has to call it."""
        super().init_state(state)
        self._notes = state.named("__window")
        self._held = state.tuples("__window")

    def execute(self, tup: Tuple) -> None:
        """Put a tuple into its windows."""
        window = self.window
        if tup.is_tick:
            self.collector.ack(tup)
        elif isinstance(window, CountWindow):
            self._count(window, tup)
        else:
            self._place(window, tup)

    def finish_batch(self) -> None:
        """Move the watermark and execute finished windows. An override has to call it."""
        window = self.window
        if isinstance(window, TimeWindow):
            before = self._notes.get(_WATERMARK, _NEVER)
            watermark = max(before, self._new_watermark())
            if watermark >= self._notes.get(_NEXT, _ALWAYS + 1):
                watermark = self._close(window, before, watermark)
            # All streams being idle is no fact to keep: the next tuple may bring any time.
            if watermark not in (before, _ALWAYS):
                self._notes.put(_WATERMARK, watermark)
        self._tell_late()

    # --- windows by time -----------------------------------------------------------------------

    def _place(self, window: TimeWindow, tup: Tuple) -> None:
        notes = self._notes
        watermark = notes.get(_WATERMARK, _NEVER)
        if self.timestamp_field is None:
            at = max(watermark, to_micros(self.context.batch_time))
        else:
            at = _micros_of(tup[self.timestamp_field])
            self._note_source(tup, at)
        slot = window.slot(at)
        if window.last_end(slot) <= watermark:
            self._reject(tup)
            return
        self._held.add((self._key_of(tup), slot), tup)
        end = window.first_end(slot, watermark)
        if end < notes.get(_NEXT, _ALWAYS + 1):
            notes.put(_NEXT, end)

    def _note_source(self, tup: Tuple, at: int) -> None:
        notes, source = self._notes, f"{tup.component}/{tup.stream}"
        highest, seen = f"highest/{source}", f"seen/{source}"
        if at > notes.get(highest, _NEVER):
            notes.put(highest, at)
        # Once per batch and source is enough, and each put travels with the batch.
        if notes.get(seen) != self.context.batch_time:
            notes.put(seen, self.context.batch_time)

    def _new_watermark(self) -> int:
        """Return the watermark: _NEVER while waiting for a stream, _ALWAYS if all are idle."""
        if self.timestamp_field is None:
            return to_micros(self.context.batch_time)
        highest: list[int] = [
            self._notes.get(f"highest/{component}/{stream}", _NEVER)
            for component, stream in self.context.sources
            if not self._is_idle(component, stream)
        ]
        if not highest:
            return _ALWAYS
        lowest = min(highest)
        return lowest if lowest == _NEVER else lowest - to_micros(self.lag_secs)

    def _is_idle(self, component: str, stream: str) -> bool:
        if self.idle_secs is None:
            return False
        now, began = self.context.batch_time, self._notes.get(_BEGAN)
        if began is None:
            began = now
            self._notes.put(_BEGAN, now)
        seen: float = self._notes.get(f"seen/{component}/{stream}", began)
        return now - seen >= self.idle_secs

    def _close(self, window: TimeWindow, before: int, watermark: int) -> int:
        """Execute all finished windows; return the watermark, or how far the windows brought it."""
        found = [
            (key, due)
            for key, slots in self._slots().items()
            for due in window.due(slots, before, watermark)
        ]
        last = before
        for key, due in sorted(found, key=lambda pair: pair[1].end):
            self._run(key, due.start / _MICROS, due.end / _MICROS, self._gather(key, due.slots))
            for tup in self._gather(key, due.done):
                self.collector.ack(tup)
            last = due.end
        # Closing everything must not leave the watermark at the end of time: later tuples would all
        # be late.
        reached = last if watermark == _ALWAYS else watermark
        left = [window.next_end(slots, reached) for slots in self._slots().values()]
        if left:
            self._notes.put(_NEXT, min(left))
        else:
            self._notes.delete(_NEXT)
        return reached

    def _slots(self) -> dict[tuple[Any, ...], list[int]]:
        """Return the held slots by key, in order of the keys' first tuples."""
        slots: dict[tuple[Any, ...], list[int]] = {}
        held = self._held.keys()
        for key, slot in held:
            slots.setdefault(key, []).append(slot)
        return slots

    def _gather(self, key: tuple[Any, ...], slots: Sequence[int]) -> list[Tuple]:
        return [tup for slot in slots for tup in self._held.get((key, slot))]

    # --- windows by count ----------------------------------------------------------------------

    def _count(self, window: CountWindow, tup: Tuple) -> None:
        key = self._key_of(tup)
        self._held.add(key, tup)
        counter = ("count", key)
        new = self._notes.get(counter, 0) + 1
        if new < window.step:
            self._notes.put(counter, new)
            return
        tuples = self._held.get(key)
        if len(tuples) < window.step:  # some counted tuples have timed out
            self._notes.put(counter, len(tuples))
            return
        self._notes.delete(counter)
        now = self.context.batch_time
        self._run(key, now, now, tuples[-window.size :])
        left = self._held.get(key)
        for tup in left[: max(0, len(left) - (window.size - window.step))]:
            self.collector.ack(tup)

    # --- both ----------------------------------------------------------------------------------

    def _run(self, key: tuple[Any, ...], start: float, end: float, tuples: list[Tuple]) -> None:
        if not tuples:  # all failed with an earlier window, or timed out
            return
        field = self.timestamp_field
        if field is not None:
            tuples.sort(key=lambda tup: _micros_of(tup[field]))
        window = Window(key, start, end, tuples)
        try:
            execute_window: Callable[..., object] = self.execute_window
            collector = _WindowCollector(self.collector, tuples)
            refuse_result(execute_window(window, collector), "execute_window")
        except Exception as error:  # noqa: BLE001 - user code: the window fails, the others go on
            self.collector.report_error("".join(traceback.format_exception(error)))
            for tup in tuples:
                with suppress(TrackingError):  # the bolt itself has failed the tuple
                    self.collector.fail(tup, error)

    def _reject(self, tup: Tuple) -> None:
        if self.late_stream is not None:
            self.collector.emit(tup.values, anchors=tup, stream=self.late_stream)
        else:
            self._notes.add(_LATE)
        self.collector.ack(tup)

    def _tell_late(self) -> None:
        count = self._notes.get(_LATE, 0)
        if count:
            self._notes.delete(_LATE)
            self.context.count("late_tuples", count)
            self.collector.report_error(
                f"{count} tuples came after their windows and were left out: raise lag_secs, or "
                f"name a late_stream to get them"
            )

    def _key_of(self, tup: Tuple) -> tuple[Any, ...]:
        return tuple(tup[field] for field in self.key_fields)

    def _waits_for_ticks(self) -> float | None:
        """Return the shortest time the bolt has to notice without input; None if there is none."""
        if isinstance(self.window, CountWindow):
            return None
        return self.window.step_secs if self.timestamp_field is None else self.idle_secs

    def _check(self) -> None:
        name = type(self).__name__
        window = getattr(self, "window", None)
        if not isinstance(window, TimeWindow | CountWindow):
            raise TopologyError(
                f"{name}.window is {window!r}: set it to a TumblingWindow, SlidingWindow, "
                f"SessionWindow or CountWindow"
            )
        if isinstance(self.key_fields, str):
            raise TopologyError(f"{name}.key_fields is text: write a list of names")
        if isinstance(window, CountWindow) and self.timestamp_field is not None:
            raise TopologyError(f"{name} counts tuples: it has no use for a timestamp_field")
        if self.timestamp_field is None and (self.late_stream, self.idle_secs) != (None, None):
            raise TopologyError(
                f"{name} has no timestamp_field: nothing is late, and no stream is idle"
            )
        if self.late_stream is not None and self.late_stream not in declare(self.outputs):
            raise TopologyError(f"{name} has the late_stream {self.late_stream!r}: declare it")
        if not is_seconds(self.lag_secs):
            raise TopologyError(f"{name}.lag_secs is {self.lag_secs!r}: give 0 or more seconds")
        if self.idle_secs is not None and not is_seconds(self.idle_secs):
            raise TopologyError(
                f"{name}.idle_secs is {self.idle_secs!r}: give 0 or more seconds, or None"
            )


@final
class _WindowCollector:
    """Emits with all tuples of a window as anchors (a :class:`BasicCollector`)."""

    def __init__(self, collector: BoltCollector, tuples: list[Tuple]) -> None:
        self._collector = collector
        # The engine knows the same object again, so each further emit resolves no anchors.
        self._tuples = tuple(tuples)

    def emit(self, values: Sequence[Any], *, stream: str = "default") -> None:
        """Emit a tuple caused by the window."""
        self._collector.emit(values, anchors=self._tuples, stream=stream)

    def emit_direct(self, task: int, values: Sequence[Any], *, stream: str = "default") -> None:
        """Emit to one task, on a stream declared direct."""
        self._collector.emit_direct(task, values, anchors=self._tuples, stream=stream)

    def reset_timeout(self, tup: Tuple) -> None:
        """Start the time-out of the tuple's trees anew."""
        self._collector.reset_timeout(tup)

    def report_error(self, error: BaseException | str) -> None:
        """Show an error to people watching the topology. No message fails."""
        self._collector.report_error(error)


def _micros_of(time: Any) -> int:
    if isinstance(time, datetime):
        aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return to_micros(aware.timestamp())
    if isinstance(time, int | float) and not isinstance(time, bool):
        return to_micros(time)
    # No try of the same value has another end, so the message fails at once for good.
    raise ComponentError(f"{time!r} is not a time: give seconds since 1970, or a datetime")
