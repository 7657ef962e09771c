"""The Kafka spout on a real broker: everything is processed once it can be, nothing is skipped."""

from typing import TYPE_CHECKING, Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.kafka import KafkaSpout
from sparkstorm.testing import PATIENCE_SECS, LocalRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


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
        assert run.wait_until_drained(PATIENCE_SECS)
    assert sorted(map(int, seen)) == list(range(10_000))
    assert [kafka.committed(topic, topic, n)[0] for n in range(2)] == [5000, 5000]


class Picky(ss.BasicBolt):
    """Emits what it gets, but raises at one value, for ever or a few times."""

    outputs = ("value",)

    def __init__(self, bad: str, tries: float = float("inf")) -> None:
        self.bad = bad
        self.tries = tries

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["value"] == self.bad and tup.attempt <= self.tries:
            raise ValueError(f"{self.bad} is bad")
        collector.emit([tup["value"]])


def test_a_stuck_message_holds_back_the_commit_and_nothing_else(kafka: Any) -> None:
    """Defect 1 and 4: all others are acked, and a run that starts anew does none of them again."""
    topic = kafka.topic()
    kafka.put(topic, range(10_001))
    seen: list[Any] = []
    spout = spout_of(kafka, topic, group=topic)
    with LocalRunner(
        topology_of(spout, Picky("0")),
        config=ss.Config(max_retries=None, retry_backoff_secs=600.0, retry_backoff_max_secs=600.0),
        taps=["echo"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
    ) as runner:
        while runner.statistics().acked < 10_000:
            runner.step()
        [told] = runner.statistics().partitions["kafka"]
        assert (told.committed, told.acked_beyond, told.in_retry, told.oldest) == (0, 10_000, 1, 0)
        assert (told.held_by, told.held_why) == ("echo", "ValueError: 0 is bad")
    assert len(seen) == 10_000
    offset, text = kafka.committed(topic, topic)
    assert offset == 0
    assert text.startswith('{"sparkstorm":1,"topology":"local","acks":"')
    kafka.put(topic, ["last"])
    statistics, again = run(topology_of(spout_of(kafka, topic, group=topic)))
    assert sorted(again) == ["0", "last"]
    assert statistics.acked == 2
    assert kafka.committed(topic, topic) == (
        10_002,
        '{"sparkstorm":1,"topology":"local","acks":""}',
    )


def test_a_message_that_always_fails_becomes_a_dead_letter(kafka: Any) -> None:
    """Defect 2: the commit goes on across it; the letter holds the record as it was."""
    topic = kafka.topic()
    kafka.put(topic, ["a", "bad", "c"], headers=[("trace", b"7")], key=b"k")
    files = MemoryFiles()
    topology = topology_of(spout_of(kafka, topic, group=topic), Picky("bad"))
    statistics, seen = run(topology, files=files, config={"max_retries": 2})
    assert (seen, statistics.given_up, statistics.failed) == (["a", "c"], 1, 3)
    assert kafka.committed(topic, topic)[0] == 3
    assert statistics.partitions["kafka"][0].dead_letters == 1
    [letter] = LetterStore(files).letters()
    assert letter.msg_id == (topic, 0, 1)
    assert letter.payload is not None
    assert letter.payload["value"] == "bad"
    assert letter.source is not None
    origin = {name: letter.source[name] for name in ("topic", "partition", "offset")}
    assert origin == {"topic": topic, "partition": 0, "offset": 1}
    assert (letter.source["key"], letter.source["value"]) == (b"k", b"bad")
    assert letter.source["headers"] == [["trace", b"7"]]
    assert letter.attempts == 3


def test_single_messages_are_read_again_by_their_offsets(kafka: Any) -> None:
    """Every hundredth fails once: each comes again, none twice, however they are read together."""
    topic = kafka.topic()
    kafka.put(topic, range(3000))

    class OnceInAHundred(ss.BasicBolt):
        outputs = ("value",)

        def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
            if int(tup["value"]) % 100 == 0 and tup.attempt == 1:
                raise ValueError(tup["value"])
            collector.emit([tup["value"]])

    spout = spout_of(kafka, topic, group=topic)
    statistics, seen = run(topology_of(spout, OnceInAHundred()))
    assert sorted(map(int, seen)) == list(range(3000))
    assert (statistics.failed, statistics.retried) == (30, 30)
    assert kafka.committed(topic, topic)[0] == 3000


def batches_until_acked(kafka: Any, topic: str, bolt: ss.BasicBolt, count: int) -> int:
    """How many batches it takes until so many are acked."""
    config = ss.Config(max_retries=None, retry_backoff_secs=0.01, batch_max_messages=1000)
    spout = spout_of(kafka, topic, group=f"{topic}-{type(bolt).__name__}")
    with LocalRunner(topology_of(spout, bolt), config=config) as runner:
        while runner.statistics().acked < count:
            runner.step()
        return runner.statistics().batches


def test_a_message_that_fails_for_ever_does_not_slow_down_its_partition(kafka: Any) -> None:
    """The others are acked in as many batches as without it: a ratio of 0.9 at least."""
    topic = kafka.topic()
    kafka.put(topic, range(20_000))
    without = batches_until_acked(kafka, topic, Echo(), 20_000)
    beside = batches_until_acked(kafka, topic, Picky("0"), 19_999)
    assert without / beside >= 0.9, (without, beside)
