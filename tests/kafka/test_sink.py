"""The Kafka sink on a real broker: each batch is one transaction, and happens once."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.errors import SupersededError
from sparkstorm.kafka import KafkaSink, KafkaSpout
from sparkstorm.kafka.client.transactions import TransactionalSender
from sparkstorm.kafka.cluster import Cluster
from sparkstorm.kafka.outgoing import Outgoing
from sparkstorm.testing import PATIENCE_SECS, LocalRunner, LogSpout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.e2e

WORDS: list[list[Any]] = [[f"w{n % 7}", n] for n in range(60)]
ONCE = {
    "processing_guarantee": "exactly-once",
    "batch_min_messages": 20,
    "batch_max_messages": 20,
    "retry_backoff_secs": 0.01,
    "max_retries": 3,
}


class Count(ss.StatefulBolt):
    """Counts words, but fails some numbers at their first tries."""

    outputs = "word string, number long, count long"

    def __init__(self, tries: dict[int, int]) -> None:
        self._tries = tries

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get(tup["word"], 0) + 1
        self.state.put(tup["word"], count)
        self.collector.emit([tup["word"], tup["number"], count], anchors=tup)
        if tup.attempt < self._tries.get(tup["number"], 0):
            self.collector.fail(tup, "not yet")
        else:
            self.collector.ack(tup)


def sink_of(kafka: Any, topic: Any, **more: Any) -> KafkaSink:
    """A sink that writes counts as JSON."""
    given = {"key": "word", "key_format": "string", "value": lambda tup: list(tup.values)}
    return KafkaSink(
        topic, bootstrap_servers=kafka.address, **{"value_format": "json", **given, **more}
    )


def topology(sink: KafkaSink, tries: dict[int, int] | None = None) -> ss.Topology:
    """Words, counted and written."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", LogSpout(WORDS, "word string, number long", split_rows=10))
    builder.set_bolt("count", Count(tries or {}), 2).fields_grouping("words", "word")
    builder.set_bolt("sink", sink, 2).shuffle_grouping("count")
    return builder.create_topology()


def counted(without: int | None = None) -> list[bytes]:
    """What a count of all words writes, perhaps without one of them."""
    seen: Counter[str] = Counter()
    rows = []
    for word, number in WORDS:
        if number != without:
            seen[word] += 1
            rows.append(f'["{word}",{number},{seen[word]}]'.encode())
    return rows


def values(kafka: Any, topic: str) -> list[bytes]:
    """What a reader of committed transactions sees, in order."""
    return [message.value() for message in kafka.read_to_end(topic)]


def numbers(kafka: Any, topic: str) -> list[int]:
    """The numbers among these values."""
    return [int(value.split(b",")[1]) for value in values(kafka, topic)]


def transaction(txid: int, owner: str = "t/0/sink") -> ss.Transaction:
    return ss.Transaction(txid=txid, owner=owner, time=0.0)


def records(topic: str, *texts: str) -> list[Outgoing]:
    return [(topic, text.encode(), None, ()) for text in texts]


def test_each_record_once_in_spite_of_failures(kafka: Any) -> None:
    """Batches are rolled back and run again, and each is in the topic once, in its turn."""
    topic = kafka.topic()
    with LocalRunner(
        topology(sink_of(kafka, topic), {5: 2, 45: 3}), config=ss.Config(**ONCE)
    ) as runner:
        statistics = runner.run_until_idle()
    assert statistics.rollbacks == 3
    assert sorted(values(kafka, topic)) == sorted(counted())
    found = numbers(kafka, topic)
    batches = [set(found[start : start + 20]) for start in (0, 20, 40)]
    assert batches == [set(range(start, start + 20)) for start in (0, 20, 40)]
    assert [m.key() for m in kafka.read_to_end(topic)] == [
        value.split(b'"')[1] for value in values(kafka, topic)
    ]


def test_what_fails_for_ever_is_in_no_transaction(kafka: Any) -> None:
    topic = kafka.topic()
    with LocalRunner(topology(sink_of(kafka, topic), {3: 99}), config=ss.Config(**ONCE)) as runner:
        assert runner.run_until_idle().given_up == 1
    assert sorted(values(kafka, topic)) == sorted(counted(without=3))


def test_a_transaction_that_is_repeated_writes_nothing(kafka: Any) -> None:
    """By the same sink, or by that of the next driver, which reads the number back."""
    topic = kafka.topic()
    for _ in range(2):
        sink = sink_of(kafka, topic)
        for _ in range(2):
            sink.commit(transaction(4), records(topic, "a", "b"))
            sink.commit(transaction(3), records(topic, "early"))
    sink.commit(transaction(5), records(topic, "c"))
    assert values(kafka, topic) == [b"a", b"b", b"c"]
    sink_of(kafka, topic).commit(transaction(0, "t/1/sink"), records(topic, "other"))
    assert values(kafka, topic)[-1] == b"other"


def test_a_driver_that_dies_after_the_transaction(kafka: Any) -> None:
    """Before Spark has committed the batch: the next one runs it again and writes nothing."""
    topic, files = kafka.topic(), MemoryFiles()
    config = ss.Config(**ONCE)
    first = LocalRunner(topology(sink_of(kafka, topic)), config=config, files=files)
    first.__enter__()
    assert first.plan_batch()
    assert first.finish(first.run_job())
    first.apply()
    assert len(values(kafka, topic)) == 20
    with LocalRunner(topology(sink_of(kafka, topic)), config=config, files=files) as second:
        second.run_until_idle()
    assert sorted(values(kafka, topic)) == sorted(counted())


def test_a_transaction_that_is_left_open_is_never_seen(kafka: Any) -> None:
    """A driver died in the middle: the next one's records are not held up by its own."""
    topic = kafka.topic()
    sink = sink_of(kafka, topic)
    sink.commit(transaction(0), records(topic, "a"))
    with kafka.open_transaction(topic, ["half"], name="t/0/sink"):
        assert values(kafka, topic) == [b"a"]
        sink_of(kafka, topic).commit(transaction(1), records(topic, "b"))
    assert values(kafka, topic) == [b"a", b"b"]


def test_a_transaction_that_is_refused_half_way_is_not_seen(kafka: Any) -> None:
    """What was taken of it is aborted; when it is mended, all of it is there."""
    topic, small = kafka.topic(), kafka.topic(max_message_bytes=1000)
    sink = sink_of(kafka, lambda tup: topic, topics=[topic, small])
    both = [*records(topic, "a"), *records(small, "x" * 5000)]
    for _ in range(2):
        with pytest.raises(ss.CommitError, match=f"'{small}' did not take a record.*too large"):
            sink.commit(transaction(0), both)
    kafka.put(topic, ["another's"])
    assert values(kafka, topic) == [b"another's"]
    kafka.configure(small, max_message_bytes=10_000)
    sink.commit(transaction(0), both)
    sink.commit(transaction(0), both)
    assert values(kafka, topic) == [b"another's", b"a"]
    assert values(kafka, small) == [b"x" * 5000]


def test_a_topic_that_is_not_there_is_named(kafka: Any) -> None:
    """At the start, or when it is gone."""
    with (
        pytest.raises(ss.CommitError, match=r"'sink' cannot connect.*no topic 'countz': create it"),
        LocalRunner(topology(sink_of(kafka, "countz")), config=ss.Config(**ONCE)),
    ):
        pass
    topic = kafka.topic()
    sink = sink_of(kafka, topic)
    kafka.delete_topic(topic)
    with pytest.raises(ss.CommitError, match=f"no topic '{topic}': create it"):
        sink.commit(transaction(0), records(topic, "a"))


def test_the_topic_may_depend_on_the_tuple(kafka: Any) -> None:
    """A transaction may write to several; a tuple that would go elsewhere fails."""
    topics = [kafka.topic(), kafka.topic()]
    sink = sink_of(
        kafka, lambda tup: [*topics, "elsewhere"][min(tup["number"] % 6, 2)], topics=topics
    )
    with LocalRunner(topology(sink), config=ss.Config(**ONCE)) as runner:
        assert runner.run_until_idle().given_up == 40
    for rest, topic in enumerate(topics):
        assert sorted(numbers(kafka, topic)) == list(range(rest, 60, 6))


def test_the_topics_of_a_function_have_to_be_named() -> None:
    with pytest.raises(ss.ConfigError, match="name the topics that it may return"):
        KafkaSink(lambda tup: "t", bootstrap_servers="k:1")


class Interrupted(list[Any]):
    """Items among which something happens."""

    def __init__(self, items: Iterable[Any], event: Callable[[], None]) -> None:
        super().__init__(items)
        self.event = event

    def __iter__(self) -> Iterator[Any]:
        for number, item in enumerate(super().__iter__()):
            yield item
            if number == len(self) // 2:
                self.event()


def test_a_sink_that_is_fenced_commits_nothing(kafka: Any) -> None:
    """It says so, and does not take the name back."""
    topic = kafka.topic()
    older, newer = sink_of(kafka, topic), sink_of(kafka, topic)
    older.commit(transaction(0), records(topic, "a"))
    newer.commit(transaction(1), records(topic, "b"))
    for _ in range(2):
        with pytest.raises(SupersededError, match="taken over the transactional id 't/0/sink'"):
            older.commit(transaction(2), records(topic, *map(str, range(1000))))
    newer.commit(transaction(3), records(topic, "c"))
    assert values(kafka, topic) == [b"a", b"b", b"c"]


def test_a_sink_that_is_fenced_in_a_transaction_commits_nothing(kafka: Any) -> None:
    """While records are sent, or when all of them are and the end is near."""
    topic = kafka.topic()
    newer = sink_of(kafka, topic)

    def take_over(txid: int) -> None:
        newer.disconnect()
        newer.commit(transaction(txid), records(topic, f"new {txid}"))

    cluster = Cluster(bootstrap_servers=kafka.address)
    older = TransactionalSender(cluster, "t/0/sink", [topic], 30.0)
    with pytest.raises(SupersededError):
        older.commit(0, Interrupted(records(topic, *"xyz"), lambda: take_over(1)))
    topics = Interrupted([topic], lambda: None)
    older = TransactionalSender(cluster, "t/0/sink", topics, 30.0)
    topics.event = lambda: take_over(3)  # they are looked at when the number is stored
    with pytest.raises(SupersededError):
        older.commit(2, records(topic, *"xyz"))
    assert values(kafka, topic) == [b"new 1", b"new 3"]


def test_a_record_that_is_too_large_fails_its_tuple(kafka: Any) -> None:
    """It becomes a dead letter, and the rest of its batch is written."""
    topic = kafka.topic()
    rows = [[b"a"], [b"x" * 999_901], [b"y" * 999_900], [b"b"]]
    builder = ss.TopologyBuilder()
    builder.set_spout("in", LogSpout(rows, "value binary"))
    sink = KafkaSink(topic, bootstrap_servers=kafka.address)
    builder.set_bolt("sink", sink).shuffle_grouping("in")
    with LocalRunner(builder.create_topology(), config=ss.Config(**ONCE)) as runner:
        statistics = runner.run_until_idle()
    assert (statistics.acked, statistics.given_up) == (3, 1)
    assert sorted(value[:1] for value in values(kafka, topic)) == [b"a", b"b", b"y"]


@pytest.mark.slow
def test_a_broker_that_is_killed_in_a_transaction(mortal_kafka: Any) -> None:
    """While records are sent, or when only the end is missing: it happens once, and whole."""
    topic = mortal_kafka.topic()
    cluster = Cluster(bootstrap_servers=mortal_kafka.address)

    def sender_of(topics: list[str]) -> TransactionalSender:
        return TransactionalSender(cluster, "t/0/sink", topics, 5.0)

    first = sender_of([topic])
    with pytest.raises(ss.CommitError):
        first.commit(0, Interrupted(records(topic, *"abc"), mortal_kafka.server.kill))
    mortal_kafka.server.start()
    sender_of([topic]).commit(0, records(topic, *"abc"))
    assert values(mortal_kafka, topic) == [b"a", b"b", b"c"]
    topics = Interrupted([topic], lambda: None)
    second = sender_of(topics)
    topics.event = mortal_kafka.server.kill
    with pytest.raises(ss.CommitError):
        second.commit(1, records(topic, *"def"))
    mortal_kafka.server.start()
    sender_of([topic]).commit(1, records(topic, *"def"))
    sender_of([topic]).commit(1, records(topic, *"def"))
    assert values(mortal_kafka, topic) == [b"a", b"b", b"c", b"d", b"e", b"f"]


@pytest.mark.slow
def test_a_broker_that_is_killed_between_transactions(
    mortal_kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The transaction is tried until it is back, and happens once."""
    topic = mortal_kafka.topic()

    def come_up_after_a_try(record: logging.LogRecord) -> bool:
        if "could not apply" in record.getMessage():
            mortal_kafka.server.start()
        return True

    caplog.handler.addFilter(come_up_after_a_try)
    sink = sink_of(mortal_kafka, topic, timeout_secs=5.0)
    config = ss.Config(**{**ONCE, "max_retries": 20})
    with LocalRunner(topology(sink), config=config) as runner:
        while runner.step():
            mortal_kafka.server.kill()
            if runner.number < 3:
                continue
            mortal_kafka.server.start()
    caplog.handler.removeFilter(come_up_after_a_try)
    assert caplog.text.count("tried again in") >= 2
    found = numbers(mortal_kafka, topic)
    batches = [set(found[start : start + 20]) for start in (0, 20, 40)]
    assert batches == [set(range(start, start + 20)) for start in (0, 20, 40)]
    assert len(found) == 60


def test_no_error_and_no_repr_shows_a_password() -> None:
    secret = {"sasl.password": "hush"}
    sink = KafkaSink("t", bootstrap_servers="127.0.0.1:1", client=secret, timeout_secs=1.0)
    with pytest.raises(ss.CommitError, match=r"127\.0\.0\.1:1.*Connection refused") as caught:
        sink.connect(ss.Config())
    assert "hush" not in f"{caught.value} {sink!r}"


@pytest.mark.spark
def test_from_topic_to_topic_on_spark(kafka: Any, spark: "SparkSession") -> None:
    """Read, fail now and then, and write: each record once, and the group's offsets at the end."""
    source, target = kafka.topic(2), kafka.topic()
    for number in range(2):
        kafka.put(source, range(500 * number, 500 * number + 500), partition=number)
    builder = ss.TopologyBuilder()
    spout = KafkaSpout(
        source, bootstrap_servers=kafka.address, group=source, value="string", until="latest"
    )
    builder.set_spout("in", spout)
    builder.set_bolt("check", Check()).shuffle_grouping("in")
    sink = KafkaSink(target, bootstrap_servers=kafka.address, value_format="string")
    builder.set_bolt("out", sink, 2).shuffle_grouping("check")
    config = ss.Config(**{**ONCE, "batch_min_messages": 200, "batch_max_messages": 200})
    with ss.submit(builder.create_topology(), session=spark, config=config) as run:
        assert run.wait_until_drained(PATIENCE_SECS)
        assert run.statistics().rollbacks > 0
    assert sorted(map(int, values(kafka, target))) == list(range(1000))
    assert [kafka.committed(source, source, number)[0] for number in range(2)] == [500, 500]


class Check(ss.BasicBolt):
    """Passes on what it gets, but fails each hundredth once, after the others."""

    outputs = "value string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([tup["value"]])
        if int(tup["value"]) % 100 == 99 and tup.attempt == 1:
            raise ValueError("only this once")
