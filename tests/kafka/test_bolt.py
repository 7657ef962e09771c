"""The Kafka bolt, and dead letters in a topic, on a real broker."""

from typing import TYPE_CHECKING, Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.kafka import DeadLetterTopic, KafkaBolt, KafkaSpout
from sparkstorm.testing import PATIENCE_SECS, FeederSpout, LocalRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e


def written(kafka: Any, topic: str, count: int) -> list[tuple[Any, Any, Any]]:
    """Key, value and headers of the records of a topic."""
    return [(m.key(), m.value(), m.headers()) for m in kafka.read_all(topic, count)]


def run_bolt(bolt: KafkaBolt, rows: list[list[Any]], **config: Any) -> tuple[FeederSpout, Any]:
    """Feed rows to a bolt; return the feeder and the statistics."""
    feeder = FeederSpout(["key", "value"])
    builder = ss.TopologyBuilder()
    builder.set_spout("in", feeder)
    builder.set_bolt("out", bolt, parallelism=2).shuffle_grouping("in")
    for number, row in enumerate(rows):
        feeder.feed(row, msg_id=number)
    with LocalRunner(builder.create_topology(), config=ss.Config(**config)) as runner:
        return feeder, runner.run_until_idle()


def test_each_tuple_becomes_a_record_and_is_acked(kafka: Any) -> None:
    topic = kafka.topic()
    bolt = KafkaBolt(
        topic,
        bootstrap_servers=kafka.address,
        key="key",
        key_format="string",
        value=lambda tup: {"v": tup["value"]},
        value_format="json",
        headers=lambda tup: [("n", str(tup["value"]).encode())],
    )
    feeder, _ = run_bolt(bolt, [[f"k{n}", n] for n in range(200)])
    assert sorted(feeder.acked) == list(range(200))
    found = written(kafka, topic, 200)
    assert sorted(found) == sorted(
        (f"k{n}".encode(), b'{"v":%d}' % n, [("n", str(n).encode())]) for n in range(200)
    )


def test_the_topic_may_depend_on_the_tuple(kafka: Any) -> None:
    topics = [kafka.topic(), kafka.topic()]
    bolt = KafkaBolt(
        lambda tup: topics[tup["value"] % 2], bootstrap_servers=kafka.address, value_format="string"
    )
    run_bolt(bolt, [["", n] for n in range(10)])
    for rest, topic in enumerate(topics):
        values = sorted(int(value) for _, value, _ in written(kafka, topic, 5))
        assert values == list(range(rest, 10, 2))


def test_a_record_that_cannot_be_sent_fails_its_tuple_alone(kafka: Any) -> None:
    """With the client's reason, or the writer's; the others are acked."""
    topic = kafka.topic()
    bolt = KafkaBolt(topic, bootstrap_servers=kafka.address)
    values = [b"a", b"x" * 2_000_000, "not bytes", b"b"]
    feeder, statistics = run_bolt(bolt, [["", value] for value in values])
    assert sorted(feeder.acked) == [0, 3]
    assert sorted(feeder.failed) == [1, 2]
    assert {name: count for name, count in statistics.failures.items() if count} == {
        "failed": 1,
        "error": 1,
    }
    assert sorted(value for _, value, _ in written(kafka, topic, 2)) == [b"a", b"b"]


def test_a_broker_that_is_away_fails_the_tuples_in_time(mortal_kafka: Any) -> None:
    """And takes them when it is back."""
    topic = mortal_kafka.topic()
    mortal_kafka.server.kill()
    bolt = KafkaBolt(topic, bootstrap_servers=mortal_kafka.address, timeout_secs=1.0)
    feeder = FeederSpout(["key", "value"])
    builder = ss.TopologyBuilder()
    builder.set_spout("in", feeder)
    builder.set_bolt("out", bolt).shuffle_grouping("in")
    feeder.feed(["", b"x"], msg_id="x")
    with LocalRunner(builder.create_topology()) as runner:
        runner.run_until_idle()
        assert feeder.failed == ["x"]
        mortal_kafka.server.start()
        feeder.feed(["", b"y"], msg_id="y")
        while not feeder.acked:
            runner.run_until_idle()
            if "y" in feeder.failed:
                feeder.failed.clear()
                feeder.feed(["", b"y"], msg_id="y")
    assert written(mortal_kafka, topic, 1)[-1] == (None, b"y", None)


class Refuse(ss.BasicBolt):
    """Takes nothing."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        raise ValueError("no such customer")


def refuse(kafka: Any, spout: Any, sink: Any) -> tuple[ss.Statistics, MemoryFiles]:
    """Run a spout whose messages are all refused."""
    builder = ss.TopologyBuilder()
    builder.set_spout("in", spout)
    builder.set_bolt("refuse", Refuse()).shuffle_grouping("in")
    config, files = ss.Config(max_retries=0, dead_letter_sink=sink), MemoryFiles()
    with LocalRunner(builder.create_topology(), name="t", config=config, files=files) as runner:
        return runner.run_until_idle(), files


def test_dead_letters_are_records_with_their_origin(kafka: Any) -> None:
    """The record is as it was, and the headers say where it comes from, and why."""
    source, dead = kafka.topic(), kafka.topic()
    kafka.put(source, ["fine"])
    kafka.put(source, [b"\xff"], key=b"k", headers=[("trace", b"1")])
    kafka.put(source, [None], key=b"gone")
    kafka.commit("d", source, 1)
    spout = KafkaSpout(source, bootstrap_servers=kafka.address, group="d", until="latest")
    sink = DeadLetterTopic(dead, bootstrap_servers=kafka.address)
    statistics, files = refuse(kafka, spout, sink)
    assert (statistics.dead_letters, statistics.dead_letter_faults) == (2, 0)
    assert not list(LetterStore(files).letters())
    first, second = written(kafka, dead, 2)
    assert first[:2] == (b"k", b"\xff")
    assert second[:2] == (b"gone", None)
    headers = {name: value.decode() for name, value in first[2]}
    assert headers.pop("trace") == "1"
    told = {name.removeprefix("__sparkstorm.errors."): text for name, text in headers.items()}
    assert (told["topic"], told["partition"], told["offset"]) == (source, "0", "1")
    assert (told["reason"], told["component"], told["attempts"]) == ("error", "refuse", "1")
    assert (told["message"], told["topology"]) == ("ValueError: no such customer", "t")
    assert told["first.time"].endswith("+00:00")


def test_letters_of_other_spouts_are_json(kafka: Any) -> None:
    dead = kafka.topic()
    spout = ss.spouts.IteratorSpout([(1, b"x")], ["n", "data"])
    refuse(kafka, spout, DeadLetterTopic(dead, bootstrap_servers=kafka.address))
    [(key, value, _)] = written(kafka, dead, 1)
    assert key == b"0"
    assert value == b'{"n": 1, "data": {"$": "bytes", "v": "eA=="}}'


def test_letters_that_the_brokers_do_not_take_go_to_the_files(kafka: Any) -> None:
    spout = ss.spouts.IteratorSpout([(1,)], ["n"])
    sink = DeadLetterTopic("no-such-topic", bootstrap_servers=kafka.address, timeout_secs=1.0)
    statistics, files = refuse(kafka, spout, sink)
    assert statistics.dead_letter_faults == 1
    assert [letter.msg_id for letter in LetterStore(files).letters()] == [0]


@pytest.mark.spark
def test_from_topic_to_topic_on_spark(kafka: Any, spark: "SparkSession") -> None:
    source, target = kafka.topic(2), kafka.topic()
    for number in range(2):
        kafka.put(source, range(1000 * number, 1000 * number + 1000), partition=number)
    builder = ss.TopologyBuilder()
    builder.set_spout(
        "in",
        KafkaSpout(source, bootstrap_servers=kafka.address, group=source, until="latest"),
    )
    bolt = KafkaBolt(target, bootstrap_servers=kafka.address)
    builder.set_bolt("out", bolt, parallelism=2).shuffle_grouping("in")
    with ss.submit(builder.create_topology(), session=spark) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
        assert run.statistics().acked == 2000
    assert sorted(int(value) for _, value, _ in written(kafka, target, 2000)) == list(range(2000))
