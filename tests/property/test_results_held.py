"""Results of many tuples, held over batches: each message ends once, and only when all is done."""

from collections import Counter
from typing import Any, Literal, cast

from hypothesis import example, given, settings
from hypothesis import strategies as st

import sparkstorm as ss
from sparkstorm.acking.anchors import MANY_ROOTS
from sparkstorm.state.image import StateImage
from sparkstorm.tasks.worker import Worker
from sparkstorm.testing import FeederSpout, LocalRunner, ManualClock

_TIMEOUT_SECS = 9

actions = st.lists(
    st.tuples(st.just("item"), st.sampled_from([1, MANY_ROOTS - 1, MANY_ROOTS + 5]))
    | st.tuples(st.just("close"), st.integers(0, 5))
    | st.tuples(st.sampled_from(["release", "fail", "wait", "other process"]), st.just(1)),
    max_size=12,
)


class Gather(ss.StatefulBolt):
    """Holds items; when told to close, emits results anchored to all, every third to one more."""

    def __init__(self) -> None:
        self.outputs = {"default": "window long, n long", "made": ["window", "items", "results"]}

    def init_state(self, state: ss.State) -> None:
        """Keep the items."""
        self.items = state.tuples("items")

    def execute(self, tup: ss.Tuple) -> None:
        """Hold an item, or make a window of all."""
        if tup["what"] == "item":
            self.items.add("all", tup)
            return
        window = self.items.pop("all") if tup["what"] == "close" else []
        if window:
            for n in range(tup["count"]):
                anchors = [*window, tup] if n % 3 == 2 else window
                self.collector.emit([tup["n"], n], anchors=anchors)
            self.collector.emit(
                [tup["n"], [item["n"] for item in window], tup["count"]], stream="made"
            )
            for item in window:
                self.collector.ack(item)
        self.collector.ack(tup)


class Pass(ss.BasicBolt):
    """Passes results on, twice."""

    outputs = "window long, n long"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Emit two of one."""
        for half in range(2):
            collector.emit([tup["window"], 2 * tup["n"] + half])


class Keep(ss.StatefulBolt):
    """Holds results until they are released, or one of them is to fail."""

    outputs = "window long"

    def init_state(self, state: ss.State) -> None:
        """Keep the results."""
        self.results = state.tuples("results")

    def execute(self, tup: ss.Tuple) -> None:
        """Hold a result; else do as told."""
        if "what" not in tup:
            self.results.add(tup["window"], tup)
            return
        for window in self.results.keys() if tup["what"] in ("release", "fail") else []:
            for result in self.results.get(window):
                if tup["what"] == "fail":
                    self.collector.fail(result)
                    break
                self.collector.emit([window])
                self.collector.ack(result)
        self.collector.ack(tup)


def make_topology() -> tuple[FeederSpout, ss.Topology]:
    """Return the topology and what feeds it."""
    feeder = FeederSpout("what string, n long, count long")
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feeder)
    builder.set_bolt("gather", Gather()).global_grouping("feed")
    builder.set_bolt("pass", Pass(), 2).shuffle_grouping("gather")
    keep = builder.set_bolt("keep", Keep(), 2)
    keep.fields_grouping("pass", ["n"]).all_grouping("feed")
    return feeder, builder.create_topology()


class Play:
    """Runs a history, and notes which windows were made and what of them was done."""

    def __init__(self, runner: LocalRunner, feeder: FeederSpout, clock: ManualClock) -> None:
        self.runner = runner
        self.feeder = feeder
        self.clock = clock
        self.fed = 0
        self.times_out = False

    def act(self, what: str, count: int) -> None:
        """Do one thing, and run until nothing is left to do."""
        if what == "wait":
            self.times_out = True
            self.clock.advance(_TIMEOUT_SECS / 3)
        elif what == "other process":
            cast("Any", self.runner._jobs)._worker = Worker(self.runner.plan)
        else:
            for _ in range(count if what == "item" else 1):
                self.feeder.feed([what, self.fed, count], msg_id=self.fed)
                self.fed += 1
        self.runner.run_until_idle()

    def held(self, name: str) -> int:
        """Count what the committed state holds under a name."""
        count = 0
        for store in self.runner._jobs.stores().values():
            image = StateImage()
            image.load(store)
            count += len(image.tuples(name))
        return count


@given(actions, st.sampled_from(["memory", "rocksdb"]))
@settings(max_examples=settings().max_examples // 2)
@example([("item", 37), ("close", 4), ("other process", 1), ("release", 1)], "memory")
@example(
    [("item", 37), ("wait", 1), ("item", 37), ("close", 4), ("wait", 1), ("wait", 1)], "memory"
)
@example([("item", 37), ("close", 4), ("fail", 1), ("item", 37), ("close", 1)], "memory")
def test_a_message_is_acked_when_all_results_of_its_window_are_done(
    history: list[tuple[str, int]], backend: Literal["memory", "rocksdb"]
) -> None:
    """Whatever fails, times out or runs elsewhere; and nothing stays held in the end."""
    feeder, topology = make_topology()
    clock, windows, done = ManualClock(), {}, Counter[int]()

    def take(key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
        if key.stream == "made":
            windows.update({window: (items, results) for window, items, results in rows})
        elif key.component == "keep":
            done.update(window for (window,) in rows)

    config = ss.Config(message_timeout_secs=_TIMEOUT_SECS, state_backend=backend)
    taps = ["gather", "keep"]
    with LocalRunner(topology, config=config, clock=clock, taps=taps, on_tap=take) as runner:
        play = Play(runner, feeder, clock)
        for what, count in history:
            play.act(what, count)
            acked, ended = set(feeder.acked), {*feeder.acked, *feeder.failed}
            for window, (items, results) in windows.items():
                is_done = done[window] == 2 * results
                assert is_done or not acked & {*items}
                assert acked >= {*items} or not is_done or play.times_out
                assert play.held("results") or ended >= {*items}
        clock.advance(2 * _TIMEOUT_SECS)
        runner.run_until_idle()
        assert Counter([*feeder.acked, *feeder.failed]) == Counter(range(play.fed))
        play.act("nothing", 1)  # brings the tasks the news of what has ended
        assert (play.held("items"), play.held("results")) == (0, 0)
