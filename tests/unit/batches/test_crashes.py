"""A driver that dies at the worst moments: nothing is lost, nothing committed is run again.

The pieces of the in-process runner play Spark: its batch numbers, its commit log and its order of
calls after a restart.
"""

import contextlib
import random
from collections import Counter
from typing import Any, ClassVar

import pytest

import sparkstorm as ss
from sparkstorm.batches.assembly import make_coordinator
from sparkstorm.batches.job_result import JobResult
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.packets.load import Load
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan, StageKind
from sparkstorm.tasks.worker import StageJob, Worker
from sparkstorm.testing import FeederSpout, ManualClock

TOTAL = 40


class Numbers(ss.PartitionedSpout):
    """Forty numbers, ten in a split; progress is how far it planned."""

    outputs = "n int"

    def __init__(self) -> None:
        self.planned = 0
        self.acks: list[int] = []

    def plan(self, limit: int) -> list[ss.Split]:
        count = min(10, limit, TOTAL - self.planned)
        split = ss.Split(count=count, data={"from": self.planned, "count": count})
        self.planned += count
        return [split] if count else []

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return [(split.data["from"] + n,) for n in range(split.data["count"])]

    def ack(self, split: ss.Split, positions: Any) -> None:
        for start, stop in positions:
            for position in range(start, stop):
                picked = split.only[position] if split.only is not None else position
                self.acks.append(split.data["from"] + picked)

    def snapshot(self) -> int:
        return self.planned

    def restore(self, snapshot: int) -> None:
        self.planned = snapshot

    def exhausted(self) -> bool:
        return self.planned >= TOTAL


class Seen(ss.Bolt):
    """Acks all but sevens at first, which fail."""

    outputs = "n int"

    def execute(self, tup: ss.Tuple) -> None:
        if tup["n"] % 10 == 7 and tup.attempt == 1:
            self.collector.fail(tup, "a seven")
            return
        self.collector.emit([tup["n"]], anchors=tup)
        self.collector.ack(tup)


class Crash(Exception):
    """The driver dies."""


class Driver:
    """One life of a driver on given files, with Spark's part: ``committed`` batches."""

    def __init__(self, plan: Plan, files: MemoryFiles, spark: dict[str, int]) -> None:
        self.plan, self.spark = plan, spark
        self.taps: list[int] = []
        self.firsts: list[int | None] = []
        self.coordinator = make_coordinator(
            plan, files, ManualClock(), run="x", on_tap=self._on_tap
        )
        self.coordinator.open(
            EngineLog(heard=spark["planned"] - 1, committed=spark["committed"] - 1)
        )
        self.hosted = list(self.coordinator.hosted.values())
        for task in self.hosted:
            task.open()
        self.spout: Any = next((t.spout for t in self.coordinator.partitioned.values()), None)

    def run(self, crash_at: tuple[str, int] | None = None) -> None:
        """Run to the end, or until the moment of the crash."""
        number = self.spark["committed"]
        if self.spark["planned"] > number:  # Spark asks for the uncommitted batch first
            self._batch(number, crash_at)
            number += 1
        for _ in range(1000):
            for task in self.hosted:
                while task.step(10_000):
                    pass
            if not self.coordinator.next_batch(number):
                if self.coordinator.drained:
                    return
                continue
            self.spark["planned"] = number + 1  # Spark writes the offset log
            if crash_at == ("planned", number):
                raise Crash
            self._batch(number, crash_at)
            number += 1
        raise AssertionError("it never drained")

    def _batch(self, number: int, crash_at: tuple[str, int] | None) -> None:
        rows = self._job(number)
        if crash_at == ("run", number):
            raise Crash
        self.coordinator.finish(number, JobResult(rows=rows, secs=0.1))
        if crash_at == ("finished", number):
            raise Crash
        self.spark["committed"] = number + 1
        if crash_at == ("committed", number):
            raise Crash

    def _job(self, number: int) -> list[bytes]:
        worker, boxes = Worker(self.plan), dict[int, list[bytes]]()
        loads = self.coordinator.loads(number)
        self.firsts += [
            load.first for mine in loads.values() for load in mine if isinstance(load, Load)
        ]
        for stage in self.plan.stages:
            moved: dict[int, list[bytes]] = {}
            for partition in range(self.plan.partitions):
                job = StageJob(
                    worker=worker,
                    stage=stage,
                    partition=partition,
                    batch=self.coordinator.info(number),
                )
                mine = loads.get(partition, []) if stage.kind is StageKind.READ else []
                for home, data in job.run(boxes.get(partition, []), mine)[0]:
                    moved.setdefault(home, []).append(data)
            boxes = moved
        return [data for box in boxes.values() for data in box]

    def _on_tap(self, key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
        if key.component == "seen":
            self.taps += [row[0] for row in rows]


def plan_of(spout: Any, other: Any = None, *, bolt: Any = None, **settings: Any) -> Plan:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", spout)
    seen = builder.set_bolt("seen", bolt or Seen(), parallelism=3).shuffle_grouping("numbers")
    if other is not None:
        builder.set_spout("other", other)
        seen.shuffle_grouping("other")
    size = 10 if other is None else 40  # each spout gets its share; splits are of ten
    config = ss.Config(**{"retry_backoff_secs": 0, "batch_max_messages": size, **settings})
    return make_plan(
        builder.create_topology(), name="t", config=config, partitions=2, taps=["seen"]
    )


def loaded(driver: Driver) -> int:
    """How many messages the first batch of a driver has."""
    loads = [load for mine in driver.coordinator.loads(0).values() for load in mine]
    return sum(load.count for load in loads if isinstance(load, Load))


MOMENTS = [(moment, n) for moment in ("planned", "run", "finished", "committed") for n in (0, 2, 4)]


@pytest.mark.sweep
@pytest.mark.parametrize(("moment", "number"), MOMENTS)
def test_partitioned_spout(moment: str, number: int) -> None:
    """After a crash at any moment every message is acked exactly once."""
    plan, files, spark = plan_of(Numbers()), MemoryFiles(), {"committed": 0, "planned": 0}
    first = Driver(plan, files, spark)
    with pytest.raises(Crash):
        first.run((moment, number))
    second = Driver(plan, files, spark)
    second.run()
    acks = Counter(first.spout.acks + second.spout.acks)
    assert acks == Counter(range(TOTAL))
    assert max(Counter(first.taps + second.taps).values()) == 1


@pytest.mark.sweep
@pytest.mark.parametrize(("moment", "number"), MOMENTS[:6])
def test_crash_after_crash(moment: str, number: int) -> None:
    """A driver that dies on the very batch that it has just taken over loses nothing either."""
    plan, files, spark = plan_of(Numbers()), MemoryFiles(), {"committed": 0, "planned": 0}
    acks: Counter[int] = Counter()
    for _ in range(3):
        driver = Driver(plan, files, spark)
        with pytest.raises(Crash):
            driver.run((moment, number) if moment == "run" else ("run", number))
        acks.update(driver.spout.acks)
    last = Driver(plan, files, spark)
    last.run()
    assert acks + Counter(last.spout.acks) == Counter(range(TOTAL))


@pytest.mark.sweep
@pytest.mark.parametrize("moment", ["run", "finished", "committed"])
@pytest.mark.parametrize("before", ["planned", "run", "finished"])
def test_crash_of_the_driver_that_took_over(before: str, moment: str) -> None:
    """A third driver reads what the second one ran, not what the first one had planned.

    It once read the second one's outcome by the first one's plan, and could not start any more.
    """
    feeder = FeederSpout("n int")
    for n in range(3):
        feeder.feed([n], msg_id=n)
    plan, files = plan_of(Numbers(), feeder), MemoryFiles()
    spark = {"committed": 0, "planned": 0}
    drivers = [Driver(plan, files, spark)]
    with pytest.raises(Crash):
        drivers[0].run((before, 1))
    drivers.append(Driver(plan, files, spark))
    with pytest.raises(Crash):
        drivers[1].run((moment, 1))
    feeder.end()
    drivers.append(Driver(plan, files, spark))
    drivers[2].run()
    acks: Counter[int] = Counter()
    for driver in drivers:
        acks.update(driver.spout.acks)
    assert acks == Counter(range(TOTAL))
    firsts = [first for driver in drivers for first in driver.firsts]
    assert len(firsts) == len(set(firsts))


@pytest.mark.parametrize("moment", ["planned", "run", "finished", "committed"])
def test_hosted_spout(moment: str) -> None:
    """A hosted spout's messages come again from its source; the dead driver's roots end none."""
    feeder, files, spark = FeederSpout("n int"), MemoryFiles(), {"committed": 0, "planned": 0}
    plan = plan_of(feeder)
    first = Driver(plan, files, spark)
    for n in range(5):
        feeder.feed([n], msg_id=("first", n))
    with pytest.raises(Crash):
        first.run((moment, 0))
    assert feeder.acked == []
    second = Driver(plan, files, spark)
    for n in range(5):  # the source gives out again what was not acked
        feeder.feed([n], msg_id=("second", n))
    feeder.end()
    second.run()
    assert feeder.acked == [("second", n) for n in range(5)]
    assert feeder.failed == []
    assert second.coordinator.statistics().pending == 0


@pytest.mark.parametrize("moment", ["finished", "committed"])
def test_crash_on_a_batch_that_was_taken_over(moment: str) -> None:
    """The outcome that counts is that of the driver that ran the batch last."""
    plan, files, spark = plan_of(Numbers()), MemoryFiles(), {"committed": 0, "planned": 0}
    acks: Counter[int] = Counter()
    for crash in [("run", 1), (moment, 1)]:
        driver = Driver(plan, files, spark)
        with pytest.raises(Crash):
            driver.run(crash)
        acks.update(driver.spout.acks)
    last = Driver(plan, files, spark)
    last.run()
    assert acks + Counter(last.spout.acks) == Counter(range(TOTAL))


# --- messages that kill the driver -------------------------------------------------------------

GOOD = 1000


class Death(BaseException):
    """What ends a process without any handler having a say."""


class Fragile(ss.Bolt):
    """Dies of one number; notes with which attempts the others come."""

    def execute(self, tup: ss.Tuple) -> None:
        kind = "bad" if tup["n"] == World.bad else "good"
        World.attempts[kind, tup.attempt] += 1
        if kind == "bad":
            raise Death
        self.collector.ack(tup)


class Failing(ss.Bolt):
    """Fails everything."""

    def execute(self, tup: ss.Tuple) -> None:
        World.attempts["bad", tup.attempt] += 1
        self.collector.fail(tup, "always")


class World:
    """What outlives a driver: the queue's content, and the test's notes."""

    bad = GOOD // 2
    attempts: ClassVar[Counter[tuple[str, int]]] = Counter()
    held: ClassVar[dict[int, None]] = {}
    given_up: ClassVar[list[tuple[int, ss.Failure]]] = []


class Thousand(Numbers):
    """1,001 numbers, a hundred in a split."""

    def plan(self, limit: int) -> list[ss.Split]:
        count = min(100, limit, GOOD + 1 - self.planned)
        split = ss.Split(count=count, data={"from": self.planned, "count": count})
        self.planned += count
        return [split] if count else []

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return [(split.data["from"] + n,) for n in range(split.data["count"])]

    def exhausted(self) -> bool:
        return self.planned > GOOD


class Queue(ss.Spout):
    """A queue that gives out again, after a crash and in any order, what was not acked."""

    outputs = "n int"

    def open(self, config: Any, context: Any, collector: ss.SpoutCollector) -> None:
        self.collector = collector
        self.retries = config.max_retries
        self.ready = random.Random(len(World.held)).sample(list(World.held), len(World.held))

    def next_tuple(self) -> None:
        if self.ready:
            number = self.ready.pop()
            self.collector.emit([number], msg_id=("message", number))

    def ack(self, msg_id: tuple[str, int]) -> None:
        del World.held[msg_id[1]]

    def fail(self, msg_id: tuple[str, int], failure: ss.Failure) -> None:
        if failure.final or failure.attempt > self.retries:
            del World.held[msg_id[1]]
            World.given_up.append((msg_id[1], failure))
            self.collector.give_up(msg_id, failure)
        else:
            self.ready.insert(0, msg_id[1])

    def exhausted(self) -> bool:
        return not World.held


def live_and_die(plan: Plan) -> tuple[int, list[Driver]]:
    """Restart until a driver lives to the end; return how many died, and all of them."""
    files, spark, drivers = MemoryFiles(), {"committed": 0, "planned": 0}, []
    for deaths in range(50):
        drivers.append(Driver(plan, files, spark))
        with contextlib.suppress(Death):
            drivers[-1].run()
            return deaths, drivers
    raise AssertionError("it dies for ever")


@pytest.fixture
def _fresh() -> None:
    World.attempts.clear()
    World.held.clear()
    World.held.update(dict.fromkeys(range(GOOD + 1)))
    World.given_up.clear()


@pytest.mark.sweep
@pytest.mark.parametrize(("bad", "retries"), [(0, 2), (500, 0), (500, 16), (1000, 2)])
@pytest.mark.usefixtures("_fresh")
def test_a_message_that_kills_the_driver_reaches_its_limit(
    bad: int, retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a partitioned spout: all others are acked, none with a higher attempt."""
    monkeypatch.setattr(World, "bad", bad)
    plan = plan_of(Thousand(), bolt=Fragile(), max_retries=retries, batch_max_messages=1001)
    deaths, drivers = live_and_die(plan)
    acks = Counter(number for driver in drivers for number in driver.spout.acks)
    assert acks == Counter(set(range(GOOD + 1)) - {bad})
    assert [d.coordinator.statistics().given_up for d in drivers] == [0] * deaths + [1]
    assert {attempt for kind, attempt in World.attempts if kind == "good"} == {1}
    assert {attempt for kind, attempt in World.attempts if kind == "bad"} == {
        attempt + 1 for attempt in range(retries + 1)
    }
    assert deaths <= 4 + retries + 1


@pytest.mark.sweep
@pytest.mark.parametrize("retries", [0, 2, 16])
@pytest.mark.usefixtures("_fresh")
def test_a_hosted_message_that_kills_the_driver_reaches_its_limit(retries: int) -> None:
    """Nothing is known of the first batch, and the source gives out in any order."""
    plan = plan_of(Queue(), bolt=Fragile(), max_retries=retries, batch_max_messages=1001)
    deaths, _ = live_and_die(plan)
    assert not World.held
    ((number, failure),) = World.given_up
    assert (number, failure.attempt, failure.reason) == (World.bad, retries + 1, "lost")
    assert "driver has died" in failure.message
    assert {attempt for kind, attempt in World.attempts if kind == "good"} == {1}
    assert deaths <= 5 + retries + 1


@pytest.mark.usefixtures("_fresh")
def test_attempts_of_hosted_messages_survive_the_driver() -> None:
    """A message in retry goes on counting where the dead driver stopped."""
    World.held.clear()
    World.held[7] = None
    plan, files, spark = (
        plan_of(Queue(), bolt=Failing(), max_retries=4),
        MemoryFiles(),
        dict[str, int](),
    )
    spark.update(committed=0, planned=0)
    for crash in [("planned", 2), ("planned", 3)]:
        with pytest.raises(Crash):
            Driver(plan, files, spark).run(crash)
    Driver(plan, files, spark).run()
    assert [(number, failure.attempt) for number, failure in World.given_up] == [(7, 5)]
    assert World.attempts.total() <= 5


@pytest.mark.usefixtures("_fresh")
def test_a_driver_that_ends_in_good_order_makes_nobody_a_suspect() -> None:
    """What it left undone is run again in one go; what a dead one left, in pieces."""
    plan, files, spark = (
        plan_of(Thousand(), batch_max_messages=1000),
        MemoryFiles(),
        dict[str, int](),
    )
    spark.update(committed=0, planned=0)
    first = Driver(plan, files, spark)
    with pytest.raises(Crash):
        first.run(("planned", 0))
    first.coordinator.close()
    second = Driver(plan, files, spark)
    assert loaded(second) == 1000
    third = Driver(plan, files, spark)  # the second one died
    assert loaded(third) == 125
