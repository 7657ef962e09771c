"""Partitions and times of written records, on a real broker."""

import datetime
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.kafka import KafkaBolt, KafkaSink
from sparkstorm.testing import FeederSpout, LocalRunner, LogSpout

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

BY_JAVA = (
    "05445453423322210265530130013052253214502630104614664316506330011445444532412144045365015432244"
    "26016435462101150163351613005224364646544051012104544040653432163564060502134616644414151666055"
    "5553553166"
)
"""Where Java's producer (kafka-clients 4.3.1) puts key-0 … key-199 among seven partitions."""

ODD_BY_JAVA = {b"": 2, "žluť 猫".encode(): 3, bytes(range(256)): 3}

PUBLISHED = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Kafka's own vectors for murmur2 (its UtilsTest); the sign is dropped before the remainder."""

EXPECTED = {
    **{b"key-%d" % n: int(place) for n, place in enumerate(BY_JAVA)},
    **ODD_BY_JAVA,
    **{key: (hashed & 0x7FFFFFFF) % 7 for key, hashed in PUBLISHED.items()},
}


def write(kind: type, kafka: Any, topic: str, rows: list[list[Any]], **more: Any) -> None:
    """Write rows of ``key``, ``value`` and ``at`` with a bolt or with a sink."""
    bolt = kind(topic, bootstrap_servers=kafka.address, key="key", **more)
    builder = ss.TopologyBuilder()
    source = LogSpout(rows, "key binary, value binary, at long")
    builder.set_spout("in", source)
    builder.set_bolt("out", bolt, 2).shuffle_grouping("in")
    guarantee = "exactly-once" if kind is KafkaSink else "at-least-once"
    config = ss.Config(processing_guarantee=guarantee)
    with LocalRunner(builder.create_topology(), config=config) as runner:
        while not runner.coordinator.drained:
            runner.step()
        assert runner.statistics().acked == len(rows)


@pytest.mark.parametrize("kind", [KafkaBolt, KafkaSink])
def test_keys_go_where_java_puts_them(kafka: Any, kind: type) -> None:
    topic = kafka.topic(7)
    write(kind, kafka, topic, [[key, b"v", 0] for key in EXPECTED])
    found = {m.key(): m.partition() for m in kafka.read_partitions(topic, len(EXPECTED))}
    assert found == EXPECTED


def test_another_hash_is_a_property_of_the_client(kafka: Any) -> None:
    topic = kafka.topic(7)
    client = {"partitioner": "consistent_random"}
    write(KafkaBolt, kafka, topic, [[key, b"v", 0] for key in EXPECTED], client=client)
    found = {m.key(): m.partition() for m in kafka.read_partitions(topic, len(EXPECTED))}
    assert found.keys() == EXPECTED.keys()
    assert found != EXPECTED


@pytest.mark.parametrize("kind", [KafkaBolt, KafkaSink])
def test_partition_and_time_are_chosen_by_a_field_or_a_function(kafka: Any, kind: type) -> None:
    topic = kafka.topic(3)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    write(
        kind,
        kafka,
        topic,
        [[b"k", b"%d" % n, 1000 + n] for n in range(9)],
        partition=lambda tup: tup["at"] % 3,
        timestamp=lambda tup: epoch + datetime.timedelta(milliseconds=tup["at"]),
    )
    write(kind, kafka, topic, [[b"k", b"9", 1]], partition="at", timestamp="at")
    found = sorted(
        (int(m.value()), m.partition(), m.timestamp()[1]) for m in kafka.read_partitions(topic, 10)
    )
    assert found == [(n, (1000 + n) % 3, 1000 + n) for n in range(9)] + [(9, 1, 1)]


def test_a_partition_that_is_not_there_fails_its_tuple_alone(kafka: Any) -> None:
    topic = kafka.topic(2)
    feeder = FeederSpout(["value", "at"])
    builder = ss.TopologyBuilder()
    builder.set_spout("in", feeder)
    bolt = KafkaBolt(topic, bootstrap_servers=kafka.address, partition="at", timeout_secs=5)
    builder.set_bolt("out", bolt).shuffle_grouping("in")
    for number in range(4):
        feeder.feed([b"v", number], msg_id=number)
    with LocalRunner(builder.create_topology()) as runner:
        runner.run_until_idle()
    assert sorted(feeder.acked) == [0, 1]
    assert sorted(feeder.failed) == [2, 3]
