"""What is written of a tuple: everything that a producer would choke on fails the tuple."""

import datetime
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.errors import ConfigError, TopologyError
from sparkstorm.formats import writer_of
from sparkstorm.kafka import KafkaBolt, KafkaSink, KafkaSpout
from sparkstorm.kafka.formats import WithRecord
from sparkstorm.kafka.outgoing import RecordMaker, size_of
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import FeederSpout, complete_topology


class Show(ss.BasicBolt):
    """Emits the record of each tuple."""

    outputs = ("record",)

    def __init__(self, maker: RecordMaker) -> None:
        self._maker = maker

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([self._maker.record(tup)])


def maker_of(**more: Any) -> RecordMaker:
    """What makes records of tuples with the fields ``key`` and ``value``."""
    bare = writer_of("bytes")
    given = {"topic": "t", "value": "value", "key": None, "headers": None}
    return RecordMaker(**{**given, "write_value": bare, "write_key": bare, **more})


def made(maker: RecordMaker, key: Any, value: Any) -> Any:
    """The record of a tuple, or why there is none."""
    feeder = FeederSpout(["key", "value"])
    builder = ss.TopologyBuilder()
    builder.set_spout("in", feeder)
    builder.set_bolt("show", Show(maker)).shuffle_grouping("in")
    feeder.feed([key, value], msg_id=1)
    feeder.end()
    done = complete_topology(builder.create_topology())
    return done.values("show")[0][0] if feeder.acked else feeder.failures[0].message


def test_names_and_functions_choose_what_is_written() -> None:
    maker = maker_of(
        topic=lambda tup: f"t-{tup['key']}",
        key="key",
        write_key=writer_of("string"),
        value=lambda tup: {"v": tup["value"]},
        write_value=writer_of("json"),
        headers=lambda tup: [("n", b"1"), ("none", None)],
        partition="value",
        timestamp=lambda tup: datetime.datetime.fromtimestamp(1.5, datetime.UTC),
    )
    record = made(maker, "k", 7)
    assert record == ("t-k", b'{"v":7}', b"k", (("n", b"1"), ("none", None)), 7, 1500)


def test_the_client_chooses_partition_and_time_if_nobody_else_does() -> None:
    for more in ({}, {"partition": lambda tup: None, "timestamp": lambda tup: None}):
        assert made(maker_of(**more), "k", b"v") == ("t", b"v", None, (), None, None)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"topic": lambda tup: None}, "None is no name of a topic"),
        ({"topic": lambda tup: ""}, "'' is no name of a topic"),
        ({"write_value": lambda value: "text"}, "its value is written as str, not as bytes"),
        ({"key": "key", "write_key": lambda value: 7}, "its key is written as int, not as bytes"),
        ({"headers": lambda tup: [("n", 1)]}, "('n', 1) is no header"),
        ({"value": "valeu"}, "valeu"),
        ({"partition": "key"}, "'k' is no partition: give its number"),
        ({"partition": lambda tup: True}, "True is no partition"),
        ({"partition": lambda tup: -1}, "-1 is no partition: they count from 0"),
        ({"partition": lambda tup: 1 << 31}, "is no partition"),
        ({"timestamp": "key"}, "'k' is no time: give a datetime, or milliseconds"),
        ({"timestamp": lambda tup: datetime.datetime(2026, 1, 1)}, "without a time zone"),  # noqa: DTZ001
        ({"timestamp": lambda tup: -1}, "-1 is no time after 1970"),
        ({"timestamp": lambda tup: 1 << 63}, "is no time after 1970"),
    ],
)
def test_what_cannot_be_written_fails_the_tuple(more: Any, why: str) -> None:
    assert why in made(maker_of(**more), "k", b"v")


def test_a_size_covers_all_parts() -> None:
    assert size_of(("t", b"v" * 10, b"k" * 5, (("né", b"h" * 3), ("m", None)), 1, 2)) >= 10 + 5 + 7
    assert size_of(("t", None, None, (), None, None)) > 0


@pytest.mark.parametrize("kind", [KafkaBolt, KafkaSink])
def test_an_empty_topic_is_refused(kind: Any) -> None:
    with pytest.raises(ss.ConfigError, match="topic is empty"):
        kind("", bootstrap_servers="k:1")


async def waits(*_: Any) -> bytes:
    """Return a coroutine."""
    return b""


def yields(*_: Any) -> Any:
    """Return a generator."""
    yield b""


def nothing() -> bytes:
    """Take no arguments."""
    return b""


SELECTORS = ["topic", "value", "key", "headers", "partition", "timestamp"]


def bolt_of(kind: Any, **more: Any) -> Any:
    """Make a Kafka bolt or sink; nothing is connected."""
    topics = {"topics": ["t"]} if kind is KafkaSink and "topic" in more else {}
    return kind(**{"topic": "t", "bootstrap_servers": "nowhere:1", **topics, **more})


@pytest.mark.parametrize("kind", [KafkaBolt, KafkaSink])
@pytest.mark.parametrize("name", [*SELECTORS, "value_format", "key_format"])
@pytest.mark.parametrize(
    ("function", "why"),
    [(waits, "async function"), (yields, "has a yield"), (nothing, r"takes \(\), but is called")],
)
def test_a_function_that_would_not_work_is_refused(
    kind: Any, name: str, function: Any, why: str
) -> None:
    """A coroutine or a generator would be written as its text."""
    if (name, function) == ("headers", yields):
        bolt_of(kind, headers=yields)  # headers are iterated over
        return
    with pytest.raises(ConfigError, match=why):
        bolt_of(kind, **{name: function})


@pytest.mark.parametrize("function", [waits, yields, nothing])
def test_a_spout_refuses_readers_that_would_not_work(function: Any) -> None:
    """With and without the record beside the bytes."""
    for value in (function, WithRecord(function)):
        with pytest.raises(ConfigError):
            KafkaSpout("t", bootstrap_servers="nowhere:1", group="g", value=value)


def test_work_that_nobody_awaits_is_not_written() -> None:
    """A lambda hides the coroutine until it is called."""
    why = made(maker_of(value=lambda tup: waits(tup), write_value=writer_of("string")), "k", 7)
    assert "value returned a coroutine, which nobody awaits" in why


@pytest.mark.parametrize("kind", [KafkaBolt, KafkaSink])
@pytest.mark.parametrize("name", ["value", "key", "partition", "timestamp"])
def test_a_field_that_no_stream_has_is_refused(kind: Any, name: str) -> None:
    """When the topology is built, not with the first record."""
    given = {"value": "n", name: "nope"}
    builder = ss.TopologyBuilder()
    builder.set_spout("in", FeederSpout("n long"))
    builder.set_bolt("out", bolt_of(kind, **given)).shuffle_grouping("in")
    with pytest.raises(TopologyError) as caught:
        builder.create_topology()
    assert caught.value.faults == (
        f"bolt 'out': its {name} names the field 'nope', but the stream 'in' has the fields n",
    )


@pytest.mark.parametrize(
    "more",
    [
        {},  # 7 is no bytes
        {"write_value": writer_of("json"), "value": lambda tup: {1, 2}},
        {"partition": lambda tup: -1},
        {"topic": lambda tup: ""},
    ],
)
def test_a_record_that_cannot_be_written_is_given_up_at_once(more: Any) -> None:
    """Another try would make the same record."""
    builder = ss.TopologyBuilder()
    builder.set_spout("in", IteratorSpout([("k", 7)], ["key", "value"]))
    builder.set_bolt("show", Show(maker_of(**more))).shuffle_grouping("in")
    statistics = complete_topology(builder.create_topology()).statistics
    assert (statistics.given_up, statistics.retried) == (1, 0)
