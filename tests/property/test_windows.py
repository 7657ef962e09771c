"""WindowBolt beside a naive model, through random histories: same windows, same acks."""

from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.bolts import (
    CountWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    Window,
    WindowBolt,
)
from sparkstorm.tasks.worker import Worker
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock

Event = tuple[str, int, int]
"""The key, the time, and the number of a tuple."""

Shown = tuple[str, float, float, tuple[int, ...]]
"""A window: its key, start, end, and the numbers of its tuples."""

sliding = st.tuples(st.integers(1, 12), st.integers(1, 12)).map(
    lambda pair: SlidingWindow(max(pair), every_secs=min(pair))
)
time_windows = (
    st.integers(1, 10).map(TumblingWindow) | sliding | st.integers(1, 6).map(SessionWindow)
)
batches = st.lists(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30)), max_size=6), max_size=8
)


class Show(WindowBolt):
    """Emits what is in each window."""

    outputs = ("shown",)
    key_fields = ("key",)

    def __init__(self, window: Any, timestamp: str | None = None, lag: float = 0.0) -> None:
        self.window = window
        self.timestamp_field = timestamp
        self.lag_secs = lag

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        """Show it."""
        numbers = tuple(tup["n"] for tup in window)
        collector.emit([(window.key[0], window.start, window.end, numbers)])


class Model:
    """Windows by time, kept the plain way: each one lists its tuples."""

    def __init__(self, window: Any) -> None:
        self.window = window
        self.open: dict[tuple[str, int, int], list[Event]] = {}
        self.loose: dict[str, list[Event]] = {}
        self.waiting: dict[int, int] = {}
        self.acked: set[int] = set()

    def add(self, event: Event, watermark: float) -> None:
        """Put a tuple into all of its windows that are not over."""
        key, at, number = event
        if isinstance(self.window, SessionWindow):
            if at + self.window.gap_secs <= watermark:
                self.acked.add(number)
            else:
                self.loose.setdefault(key, []).append(event)
            return
        length, step = int(self.window.secs), int(self.window.every_secs)
        starts = [s for s in range(at - length, at + 1) if s % step == 0 and s <= at < s + length]
        mine = [(key, s, s + length) for s in starts if s + length > watermark]
        for one in mine:
            self.open.setdefault(one, []).append(event)
        self.waiting[number] = len(mine)
        if not mine:
            self.acked.add(number)

    def close(self, watermark: float) -> list[Shown]:
        """Take out the windows that are over."""
        over = sorted(one for one in self.open if one[2] <= watermark)
        shown = []
        for key, start, end in over:
            events = sorted(self.open.pop((key, start, end)), key=lambda event: event[1:])
            shown.append((key, float(start), float(end), tuple(number for *_, number in events)))
            for *_, number in events:
                self.waiting[number] -= 1
                if not self.waiting[number]:
                    self.acked.add(number)
        return shown + self._sessions(watermark)

    def _sessions(self, watermark: float) -> list[Shown]:
        shown = []
        for key, events in self.loose.items():
            left: list[list[Event]] = []
            for event in sorted(events, key=lambda event: event[1:]):
                if left and event[1] - left[-1][-1][1] < self.window.gap_secs:
                    left[-1].append(event)
                else:
                    left.append([event])
            for session in list(left):
                end = session[-1][1] + self.window.gap_secs
                if end <= watermark:
                    numbers = tuple(number for *_, number in session)
                    shown.append((key, float(session[0][1]), float(end), numbers))
                    self.acked.update(numbers)
                    left.remove(session)
            self.loose[key] = [event for session in left for event in session]
        return shown


def play(
    bolt: WindowBolt,
    history: list[list[tuple[str, int]]],
    check: Callable[[list[Event], list[Shown], set[Any]], None],
    clock: ManualClock,
    pauses: list[int],
) -> None:
    """Run batch by batch; ``check`` gets what went in, the windows that came out, and the acks."""
    feeder = FeederSpout("key string, at double, n long")
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feeder)
    builder.set_bolt("show", bolt, parallelism=2).fields_grouping("feed", ["key"])
    shown: list[Shown] = []

    def take(key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
        shown.extend(row[0] for row in rows)

    config = ss.Config(message_timeout_secs=1e6)
    topology = builder.create_topology()
    with LocalRunner(topology, config=config, clock=clock, taps=["show"], on_tap=take) as runner:
        number = 0
        for batch, pause in zip(history, pauses, strict=False):
            clock.advance(pause)
            events = []
            for key, at in batch:
                feeder.feed([key, float(at), number], msg_id=number)
                events.append((key, at, number))
                number += 1
            runner.run_until_idle()
            check(events, sorted(shown), set(feeder.acked))
            shown.clear()
            if pause % 2:  # the image is gone: what the next batch sees comes from the store
                cast("Any", runner._jobs)._worker = Worker(runner.plan)
        assert feeder.failed == []


@given(window=time_windows, history=batches, lag=st.integers(0, 5), pauses=st.data())
def test_windows_by_event_time(
    window: Any, history: list[list[tuple[str, int]]], lag: int, pauses: Any
) -> None:
    """Out of order, late, over many batches: each window once, with all that is not late in it."""
    model, highest = Model(window), dict[Any, Any]()
    marks = {"a": -1e9, "b": -1e9}
    owner: dict[str, Any] = {}

    def check(events: list[Event], shown: list[Shown], acked: set[Any]) -> None:
        # both keys may live in one task, whose watermark is common to them
        for key, at, number in events:
            model.add((key, at, number), marks[key])
        for key, at, _ in events:
            for other in owner[key]:
                highest[other] = max(highest.get(other, -1e9), at)
        expected = []
        for key in "ab":
            marks[key] = max(marks[key], highest.get(key, -1e9) - lag)
        expected = close_by_key(model, marks)
        assert shown == expected
        assert acked == model.acked

    owner.update(tasks_of_keys())
    drawn = pauses.draw(st.lists(st.integers(1, 3), min_size=8, max_size=8))
    play(Show(window, "at", lag), history, check, ManualClock(), drawn)


@given(
    window=time_windows,
    history=batches,
    pauses=st.lists(st.integers(1, 9), min_size=8, max_size=8),
)
def test_windows_by_processing_time(
    window: Any, history: list[list[tuple[str, int]]], pauses: list[int]
) -> None:
    """A tuple's time is that of its batch; ticks close windows without any input."""
    model, clock = Model(window), ManualClock()

    def check(events: list[Event], shown: list[Shown], acked: set[Any]) -> None:
        now = int(clock.wall())
        for key, _, number in events:
            model.add((key, now, number), -1e9)
        assert shown == sorted(model.close(now))
        assert acked == model.acked

    play(Show(window), history, check, clock, pauses)


@given(
    st.integers(1, 6).flatmap(lambda n: st.builds(CountWindow, st.just(n), st.integers(1, n))),
    st.lists(st.lists(st.sampled_from([("a", 0), ("b", 0)]), min_size=4, max_size=12), max_size=4),
)
def test_windows_by_count(window: CountWindow, history: list[list[tuple[str, int]]]) -> None:
    """The last ``size`` of a key, after ``every`` new ones; acked once no later one needs them."""
    came: dict[str, list[int]] = {"a": [], "b": []}
    done: set[int] = set()

    def check(events: list[Event], shown: list[Shown], acked: set[Any]) -> None:
        expected = []
        for key, _, number in events:
            mine = came[key]
            mine.append(number)
            if len(mine) % window.step == 0:
                expected.append((key, tuple(mine[-window.size :])))
                done.update(mine[: max(0, len(mine) - (window.size - window.step))])
        assert sorted((key, numbers) for key, _, _, numbers in shown) == sorted(expected)
        assert acked == done

    play(Show(window), history, check, ManualClock(), [1] * len(history))


def close_by_key(model: Model, marks: dict[str, float]) -> list[Shown]:
    """Close what is over for each key by its own watermark."""
    shown: list[Shown] = []
    for key, mark in marks.items():
        part = Model(model.window)
        part.open = {one: model.open[one] for one in model.open if one[0] == key}
        part.loose = {key: model.loose.get(key, [])}
        part.waiting, part.acked = model.waiting, model.acked
        shown += part.close(mark)
        for one in [one for one in model.open if one[0] == key and one not in part.open]:
            del model.open[one]
        model.loose[key] = part.loose[key]
    return sorted(shown)


def tasks_of_keys() -> dict[str, list[str]]:
    """For each key, those that live in the same task."""
    from sparkstorm.testing import complete_topology

    class Where(ss.BasicBolt):
        """Tells its task."""

        outputs = "key string, task long"

        def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            """Tell."""
            collector.emit([tup["key"], self.context.task])

    builder = ss.TopologyBuilder()
    builder.set_spout("feed", FeederSpout("key string"))
    builder.set_bolt("where", Where(), parallelism=2).fields_grouping("feed", ["key"])
    done = complete_topology(builder.create_topology(), mock_sources={"feed": [["a"], ["b"]]})
    task = {str(key): number for key, number in done.values("where")}
    return {key: [other for other in task if task[other] == task[key]] for key in task}
