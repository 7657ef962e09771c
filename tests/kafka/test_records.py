"""Odd records on a real broker: each is its own fault, and its letter has all that it holds."""

import itertools
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import DeadLetter, LetterStore
from sparkstorm.kafka import DeadLetterTopic, KafkaSpout, RecordInfo, WithRecord
from sparkstorm.testing import LocalRunner

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

MICROSECONDS = 1_700_000_000_000_000
ANY_TIME = {"message_timestamp_after_max_ms": 2**63 - 1}
"""Older brokers, and topics set up so, take times of the far future."""


class Echo(ss.BasicBolt):
    """Emits the values that it gets."""

    outputs = ("values",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tuple(tup.values)])


class Refuse(ss.BasicBolt):
    """Takes nothing."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        raise ValueError("no such customer")


def spout_of(kafka: Any, topic: str, **more: Any) -> KafkaSpout:
    return KafkaSpout(
        topic, bootstrap_servers=kafka.address, **{"group": topic, "until": "latest", **more}
    )


def drain(
    spout: KafkaSpout, bolt: ss.BasicBolt | None = None, **config: Any
) -> tuple[list[Any], list[DeadLetter]]:
    """Run a spout to its end; return the tuples that came through, and the letters."""
    builder = ss.TopologyBuilder()
    builder.set_spout("in", spout)
    builder.set_bolt("echo", bolt or Echo()).shuffle_grouping("in")
    rows: list[Any] = []
    files = MemoryFiles()
    with LocalRunner(
        builder.create_topology(),
        name="t",
        config=ss.Config(**{"max_retries": 0, **config}),
        files=files,
        taps=[] if bolt else ["echo"],
        on_tap=lambda key, task, found: rows.extend(row[0] for row in found),
    ) as runner:
        while not runner.coordinator.drained:
            runner.step()
    return rows, list(LetterStore(files).letters())


def test_a_time_in_microseconds_is_the_fault_of_that_record_alone(kafka: Any) -> None:
    """The others are processed; its letter has the bytes and the place."""
    topic = kafka.topic(**ANY_TIME)
    kafka.put(topic, range(5))
    kafka.put(topic, ["odd"], key=b"k", headers=[("h", b"\xff")], timestamp=MICROSECONDS)
    kafka.put(topic, range(6, 11))
    rows, letters = drain(spout_of(kafka, topic, fields=["offset", "timestamp"]))
    assert [offset for offset, _ in rows] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    [letter] = letters
    assert letter.source is not None
    assert {name: letter.source[name] for name in ("topic", "partition", "offset")} == {
        "topic": topic,
        "partition": 0,
        "offset": 5,
    }
    assert (letter.source["key"], letter.source["value"]) == (b"k", b"odd")
    assert letter.source["headers"] == [["h", b"\xff"]]
    assert letter.source["millis"] == MICROSECONDS
    assert "not microseconds" in letter.failure.message


ODD = [
    b"\xff\xfe",
    b"",
    b"[" * 5000,
    b"{",
    b"1e999",
    b'"\\ud800"',
    b'{"\\ud83d": 1}',
    b"9" * 5000,
    b"99999999999999999999999",
    b'{"a": {"b": [null, 1.5, "x"]}}',
    b"NaN",
    b"\x00",
    None,
]


@pytest.mark.parametrize("value", ["bytes", "string", "json"])
def test_each_odd_value_is_a_message_or_a_letter(kafka: Any, value: Any) -> None:
    """One number stands before and behind each odd one, and all of the numbers come through."""
    topic = kafka.topic()
    for odd in ODD:
        kafka.put(topic, ["1"])
        kafka.put(topic, [odd], key=odd, headers=[("h", odd)], timestamp=len(str(odd)))
    fields = ["offset", "timestamp", "key", "value", "headers"]
    rows, letters = drain(spout_of(kafka, topic, fields=fields, value=value, key=value))
    read = [row[0] for row in rows]
    dead = [(letter.source or {})["offset"] for letter in letters]
    assert sorted(read + dead) == list(range(2 * len(ODD)))
    assert set(range(0, 2 * len(ODD), 2)) <= set(read)
    values = {(letter.source or {})["offset"]: (letter.source or {})["value"] for letter in letters}
    assert values == {place: ODD[place // 2] for place in dead}
    if value == "bytes":
        assert not letters


def route(data: bytes, record: RecordInfo) -> dict[str, Any]:
    """Read a value by its topic, headers and time."""
    kind = dict(record.headers)["kind"]
    assert record.timestamp is not None
    if kind == b"bad":
        raise ValueError("a bad kind")
    return {
        "text": data.decode(),
        "place": (record.topic, record.partition, record.offset),
        "kind": kind,
        "year": record.timestamp.year,
    }


def test_readers_see_the_topic_the_headers_and_the_time(kafka: Any) -> None:
    topic = kafka.topic(**ANY_TIME)
    time = 1_700_000_000_000
    kafka.put(topic, ["a"], headers=[("kind", b"good")], timestamp=time)
    kafka.put(topic, ["b"], headers=[("kind", b"bad")], timestamp=time)
    kafka.put(topic, ["c"], headers=[("kind", b"good")], timestamp=MICROSECONDS)
    kafka.put(topic, [None], headers=[("kind", b"good")], timestamp=time)
    rows, letters = drain(spout_of(kafka, topic, fields=["value"], value=WithRecord(route)))
    first = {"text": "a", "place": (topic, 0, 0), "kind": b"good", "year": 2023}
    assert rows == [(first,), (None,)]
    assert [(letter.source or {})["offset"] for letter in letters] == [1, 2]
    assert "a bad kind" in letters[0].failure.message


def dead_headers(kafka: Any, topic: str, count: int) -> list[list[tuple[str, str]]]:
    """The headers of the records of a topic, as text."""
    return [
        [(name, value.decode()) for name, value in record.headers()]
        for record in kafka.read_all(topic, count)
    ]


def test_letters_have_the_headers_that_tools_for_connect_read(kafka: Any) -> None:
    source, dead = kafka.topic(), kafka.topic()
    kafka.put(source, ["v"], key=b"k", headers=[("trace", b"1")], timestamp=1_700_000_000_000)
    sink = DeadLetterTopic(dead, bootstrap_servers=kafka.address)
    drain(spout_of(kafka, source), Refuse(), dead_letter_sink=sink)
    [headers] = dead_headers(kafka, dead, 1)
    found = dict(headers)
    assert headers[0] == ("trace", "1")
    trace = found.pop("__connect.errors.exception.stacktrace")
    assert trace.startswith("Traceback (most recent call last):\n")
    assert trace.rstrip().endswith("ValueError: no such customer")
    assert found.pop("__connect.errors.task.id").isdecimal()
    connect = "__connect.errors."
    assert {n.removeprefix(connect): v for n, v in found.items() if n.startswith(connect)} == {
        "topic": source,
        "partition": "0",
        "offset": "0",
        "connector.name": "t",
        "stage": "TASK_PUT",
        "class.name": "echo",
        "exception.class.name": "ValueError",
        "exception.message": "no such customer",
    }
    assert found["__sparkstorm.errors.attempts"] == "1"
    assert found["__sparkstorm.errors.timestamp"] == "1700000000000"


def test_a_letter_that_becomes_a_letter_again_has_one_set_of_headers(kafka: Any) -> None:
    """The second letter says where the first one stood; nothing piles up."""
    topics = [kafka.topic() for _ in range(3)]
    kafka.put(topics[0], ["v"], headers=[("trace", b"1")])
    for source, dead in itertools.pairwise(topics):
        sink = DeadLetterTopic(dead, bootstrap_servers=kafka.address)
        drain(spout_of(kafka, source), Refuse(), dead_letter_sink=sink)
    [headers] = dead_headers(kafka, topics[2], 1)
    names = [name for name, _ in headers]
    assert len(names) == len(set(names))
    assert dict(headers)["__connect.errors.topic"] == topics[1]
    assert dict(headers)["trace"] == "1"
