"""Held tuples through random histories: nothing is lost, counted twice, or held for ever."""

from collections import Counter
from typing import Any, Literal, cast

from hypothesis import given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.state.image import StateImage
from sparkstorm.tasks.worker import Worker
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock

_TIMEOUT_SECS = 10

keys = st.integers(0, 3)
actions = st.lists(
    st.tuples(st.just("feed"), keys)
    | st.tuples(st.just("raise"), keys)
    | st.tuples(st.just("fail"), keys)
    | st.tuples(st.sampled_from(["batch", "wait", "other process"]), st.just(0)),
    max_size=30,
)


class Pair(ss.StatefulBolt):
    """Joins each tuple with the one that waits; may raise after that, or fail both."""

    outputs = "first long, second long"

    def init_state(self, state: ss.State) -> None:
        """Keep the waiting ones."""
        self.waiting = state.tuples("waiting")

    def execute(self, tup: ss.Tuple) -> None:
        """Join."""
        others = self.waiting.pop(tup["key"])
        if tup["what"] == "raise":
            for other in others:
                self.collector.ack(other)
            raise ValueError("told to")
        if tup["what"] == "fail":
            for one in (*others, tup):
                self.collector.fail(one)
        elif others:
            self.collector.emit([others[0]["n"], tup["n"]], anchors=[*others, tup])
            for one in (*others, tup):
                self.collector.ack(one)
        else:
            self.waiting.add(tup["key"], tup)


class Sink(ss.BasicBolt):
    """Takes the pairs."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Ack it."""


def make_topology() -> tuple[FeederSpout, ss.Topology]:
    """Return the pairs' topology and what feeds it."""
    feeder = FeederSpout("key long, n long, what string")
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feeder)
    builder.set_bolt("pair", Pair(), parallelism=2).fields_grouping("feed", ["key"])
    builder.set_bolt("sink", Sink()).shuffle_grouping("pair")
    return feeder, builder.create_topology()


def held(runner: LocalRunner) -> int:
    """Count what the committed state holds."""
    count = 0
    for store in runner._jobs.stores().values():
        image = StateImage()
        image.load(store)
        count += len(image.tuples("waiting"))
    return count


@given(actions, st.sampled_from(["memory", "rocksdb"]), st.sampled_from([0, 2000, 1 << 30]))
@settings(max_examples=settings().max_examples // 2)
def test_every_message_ends_once_and_nothing_stays_held(
    history: list[tuple[str, int]], backend: Literal["memory", "rocksdb"], room: int
) -> None:
    """Whatever raises, fails, times out, runs elsewhere or is let go, the books agree at last."""
    feeder, topology = make_topology()
    clock, pairs = ManualClock(), list[Any]()

    def take(key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
        pairs.extend(tuple(row) for row in rows)

    config = ss.Config(
        message_timeout_secs=_TIMEOUT_SECS, state_backend=backend, state_memory_bytes=room
    )
    with LocalRunner(topology, config=config, clock=clock, taps=["pair"], on_tap=take) as runner:
        fed = 0
        for what, key in history:
            if what in ("feed", "raise", "fail"):
                feeder.feed([key, fed, what], msg_id=fed)
                fed += 1
            elif what == "batch":
                runner.run_until_idle()
            elif what == "wait":
                clock.advance(_TIMEOUT_SECS / 3)
                runner.run_until_idle()
            else:  # the image is gone: what the next batch sees comes from the store
                cast("Any", runner._jobs)._worker = Worker(runner.plan)
            assert held(runner) <= runner.statistics().pending
        runner.run_until_idle()
        clock.advance(2 * _TIMEOUT_SECS)
        runner.run_until_idle()
        ended = Counter([*feeder.acked, *feeder.failed])
        assert ended == Counter(range(fed))
        assert sorted(n for pair in pairs for n in pair) == sorted(feeder.acked)
        assert (runner.statistics().pending, held(runner)) == (0, 0)
