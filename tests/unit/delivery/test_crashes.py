"""A driver that dies at the worst moments: nothing is lost, nothing committed is run again.

The pieces of the in-process runner play Spark: its batch numbers, its commit log and its order of
calls after a restart.
"""

from collections import Counter
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.delivery.coordinator import Coordinator
from sparkstorm.delivery.files import MemoryFiles
from sparkstorm.execution.job import StageJob
from sparkstorm.execution.level import Workshop
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan, StageKind
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
        split = ss.Split(count=count, data={"from": self.planned})
        self.planned += count
        return [split] if count else []

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return [(split.data["from"] + n,) for n in range(10)]

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
        self.coordinator = Coordinator(plan, files, ManualClock(), run="x", on_tap=self._on_tap)
        self.coordinator.open()
        self.hosted = list(self.coordinator.hosted.values())
        for task in self.hosted:
            task.open()
        self.spout = next((t.spout for t in self.coordinator.partitioned.values()), None)

    def run(self, crash_at: tuple[str, int] | None = None) -> None:
        """Run to the end, or until the moment of the crash."""
        number = self.spark["committed"]
        if self.spark["planned"] > number:  # Spark asks for the uncommitted batch first
            self._batch(number, crash_at)
            number += 1
        for _ in range(100):
            for task in self.hosted:
                while task.step(100):
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
        self.coordinator.finish(number, rows, secs=0.1)
        if crash_at == ("finished", number):
            raise Crash
        self.spark["committed"] = number + 1
        if crash_at == ("committed", number):
            raise Crash

    def _job(self, number: int) -> list[bytes]:
        workshop, boxes = Workshop(self.plan), {}
        loads = self.coordinator.loads(number)
        self.firsts += [load.first for mine in loads.values() for load in mine]
        for stage in self.plan.stages:
            moved: dict[int, list[bytes]] = {}
            for partition in range(self.plan.partitions):
                job = StageJob(
                    workshop=workshop,
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


def plan_of(spout: Any, other: Any = None) -> Plan:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", spout)
    seen = builder.set_bolt("seen", Seen(), parallelism=3).shuffle_grouping("numbers")
    if other is not None:
        builder.set_spout("other", other)
        seen.shuffle_grouping("other")
    size = 10 if other is None else 40  # each spout gets its share; splits are of ten
    config = ss.Config(retry_backoff_secs=0, batch_max_messages=size)
    return make_plan(
        builder.create_topology(), name="t", config=config, partitions=2, taps=["seen"]
    )


MOMENTS = [(moment, n) for moment in ("planned", "run", "finished", "committed") for n in (0, 2, 4)]


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
