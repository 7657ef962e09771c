"""Tick tuples: each task of a bolt hears that time has passed, also when nothing else comes."""

from typing import Any

import sparkstorm as ss
from sparkstorm.testing import FeederSpout

OFTEN = 0.2
"""Seconds between ticks on Spark; the local runner's time passes a second at a time."""


class Clockwork(ss.Bolt):
    """Emits what it hears, ticks told from data."""

    outputs = "what string, rate double, component string, stream string, source long, at double"

    def execute(self, tup: ss.Tuple) -> None:
        what, rate = ("tick", tup["rate_secs"]) if tup.is_tick else (tup["word"], 0.0)
        at = self.context.batch_time
        values = [what, rate, tup.component, tup.stream, tup.task, at]
        self.collector.emit(values, anchors=tup)
        self.collector.ack(tup)


class BasicClockwork(ss.BasicBolt):
    """The same for a basic bolt, which acks by itself."""

    outputs = "what string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit(["tick" if tup.is_tick else tup["word"]])


class Until(ss.StatefulBolt):
    """Holds what comes until the next tick."""

    def init_state(self, state: ss.State) -> None:
        self.waiting = state.tuples("waiting")

    def execute(self, tup: ss.Tuple) -> None:
        if not tup.is_tick:
            self.waiting.add("", tup)
            return
        for held in self.waiting.pop(""):
            self.collector.ack(held)
        self.collector.ack(tup)


def wired(bolt: Any, tick: float | None = OFTEN, tasks: int = 1) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout("word string")
    builder = ss.TopologyBuilder()
    builder.set_spout("words", feeder)
    declared = builder.set_bolt("bolt", bolt, tasks).shuffle_grouping("words")
    if tick is not None:
        declared.add_configuration("tick_tuple_freq_secs", tick)
    return feeder, builder.create_topology()


def test_ticks_come_to_every_task_without_any_message(run_topology: Any) -> None:
    """An idle query runs batches for them; they come from the system's task, as in Storm."""
    _, topology = wired(Clockwork(), tasks=2)
    with run_topology(topology) as play:
        play.pass_time(lambda: len(play.emitted("bolt")) >= 6)
        by_task = play.by_task("bolt")
        rows = play.emitted("bolt")
        assert len(by_task) == 2
        assert {row[:5] for row in rows} == {("tick", OFTEN, "__system", "__tick", -1)}
        for mine in by_task.values():
            times = [row[5] for row in mine]
            assert times == sorted(set(times))
        assert play.statistics().pending == 0


def test_data_and_ticks_go_together(run_topology: Any) -> None:
    """Ticks are tracked by nobody, and disturb no message."""
    feeder, topology = wired(BasicClockwork())
    with run_topology(topology, {"message_timeout_secs": 600}) as play:
        for number in range(20):
            feeder.feed([f"w{number}"], msg_id=number)
        play.pass_time(lambda: len(feeder.acked) == 20 and ("tick",) in play.emitted("bolt"))
        words = [word for (word,) in play.emitted("bolt") if word != "tick"]
        assert sorted(words) == sorted(f"w{number}" for number in range(20))
        assert play.statistics().failed == 0


def test_a_run_drains_in_spite_of_ticks(run_topology: Any) -> None:
    """Ticks never end, so nobody waits for them."""
    feeder, topology = wired(Clockwork(), tick=0.001)
    with run_topology(topology, {"message_timeout_secs": 600}) as play:
        feeder.feed(["w"], msg_id=1)
        feeder.end()
        assert play.drain().acked == 1


def test_what_waits_for_a_tick_gets_it_before_the_run_has_drained(run_topology: Any) -> None:
    """A held tuple is pending, so the run goes on until a tick has let it go."""
    feeder, topology = wired(Until())
    with run_topology(topology, {"message_timeout_secs": 600}) as play:
        feeder.feed(["w"], msg_id=1)
        feeder.end()
        play.pass_time(lambda: feeder.acked == [1])
        assert play.drain().pending == 0


def test_a_setting_of_the_topology_is_for_every_bolt(run_locally: Any) -> None:
    """As in Storm: the component's own setting goes over it."""
    _, topology = wired(Clockwork(), tick=None)
    with run_locally(topology, {"topology.tick.tuple.freq.secs": 2}) as play:
        play.clock.advance(1.5)
        play.settle()
        assert play.emitted("bolt") == []
        play.clock.advance(0.5)
        play.settle()
        assert [row[:2] for row in play.emitted("bolt")] == [("tick", 2.0)]


def test_missed_ticks_are_one_and_the_rhythm_stays(run_locally: Any) -> None:
    """After a long batch a bolt is not flooded."""
    _, topology = wired(Clockwork(), tick=2.0)
    with run_locally(topology) as play:
        for step in (7.0, 0.5, 0.5):  # ticks were due at 2, 4, 6; the next is at 8
            play.clock.advance(step)
            play.settle()
        times = [row[5] - play.clock.wall() for row in play.emitted("bolt")]
        assert times == [-1.0, 0.0]


def test_a_bolt_that_does_not_know_ticks_says_so_and_goes_on(run_locally: Any) -> None:
    """Its error is shown; no message fails by it."""

    class Unaware(ss.BasicBolt):
        outputs = "word string"

        def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            collector.emit([tup["word"]])

    feeder, topology = wired(Unaware(), tick=1.0)
    with run_locally(topology) as play:
        play.clock.advance(1.0)
        feeder.feed(["w"], msg_id=1)
        play.settle()
        assert (feeder.acked, play.emitted("bolt")) == ([1], [("w",)])
        [line] = play.texts("bolt")
        assert line.startswith("an untracked tuple failed: KeyError")
        assert "rate_secs" in line


def test_a_bolt_can_ask_for_ticks_by_itself(run_locally: Any) -> None:
    """``component_configuration``, as in Storm, below what ``add_configuration`` says."""

    class Punctual(Clockwork):
        def component_configuration(self) -> dict[str, object]:
            return {"topology.tick.tuple.freq.secs": 1.0}

    for tick, expected in ((None, 1.0), (3.0, 3.0)):
        _, topology = wired(Punctual(), tick=tick)
        with run_locally(topology) as play:
            play.pass_time(lambda play=play: len(play.emitted("bolt")) > 0)
            assert play.emitted("bolt")[0][:2] == ("tick", expected)
