"""The Kafka spout on a real broker: everything is processed once it can be, nothing is skipped."""

from typing import TYPE_CHECKING, Any

import pytest

import sparkstorm as ss
from sparkstorm.kafka import KafkaSpout
from sparkstorm.testing import LocalRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


class Echo(ss.BasicBolt):
    """Emits what it gets."""

    outputs = ("value",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["value"]])


def spout_of(kafka: Any, topics: Any, **more: Any) -> KafkaSpout:
    given = {"group": "g", "value": "string", "until": "latest", "commit_secs": 0.0}
    return KafkaSpout(topics, bootstrap_servers=kafka.address, **{**given, **more})


def topology_of(spout: KafkaSpout, bolt: ss.BasicBolt | None = None, tasks: int = 1) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("kafka", spout, parallelism=tasks)
    builder.set_bolt("echo", bolt or Echo(), parallelism=2).shuffle_grouping("kafka")
    return builder.create_topology()


def run(topology: ss.Topology, **more: Any) -> tuple[ss.Statistics, list[Any]]:
    """Run until everything is drained; return what was emitted by the bolt."""
    seen: list[Any] = []
    with LocalRunner(
        topology,
        config=ss.Config(**{"retry_backoff_secs": 0.0, **more.pop("config", {})}),
        taps=["echo"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
        **more,
    ) as runner:
        while not runner.coordinator.drained:
            runner.step()
        return runner.statistics(), seen


def test_every_record_is_processed_and_committed(kafka: Any) -> None:
    """Two tasks share three partitions; the group's offsets end at the log's ends."""
    topic = kafka.topic(3)
    for number in range(3):
        kafka.put(topic, range(100 * number, 100 * number + 100), partition=number)
    statistics, seen = run(topology_of(spout_of(kafka, topic, group=topic), tasks=2))
    assert sorted(map(int, seen)) == list(range(300))
    assert (statistics.acked, statistics.failed) == (300, 0)
    assert [kafka.committed(topic, topic, n)[0] for n in range(3)] == [100, 100, 100]


@pytest.mark.spark
def test_every_record_is_processed_and_committed_on_spark(
    kafka: Any, spark: "SparkSession"
) -> None:
    """The same with executors that read."""
    topic = kafka.topic(2)
    for number in range(2):
        kafka.put(topic, range(5000 * number, 5000 * number + 5000), partition=number)
    seen: list[Any] = []
    run = ss.submit(
        topology_of(spout_of(kafka, topic, group=topic)),
        session=spark,
        taps=["echo"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
    )
    with run:
        assert run.wait_until_drained(60)
    assert sorted(map(int, seen)) == list(range(10_000))
    assert [kafka.committed(topic, topic, n)[0] for n in range(2)] == [5000, 5000]
