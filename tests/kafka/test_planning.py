"""Plans on a real broker: many holes, large records, and topics that feed on themselves."""

import re
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.kafka import DeadLetterTopic, KafkaBolt, KafkaSink, KafkaSpout
from sparkstorm.testing import LocalRunner

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

MEGABYTE = 1_000_000


class Picky(ss.BasicBolt):
    """Emits even numbers; odd ones fail while ``all`` is not set."""

    outputs = ("number",)

    def __init__(self, *, takes_all: bool) -> None:
        self._takes_all = takes_all

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if int(tup["value"]) % 2 and not self._takes_all:
            raise ValueError("odd")
        collector.emit([int(tup["value"])])


def spout_of(kafka: Any, topics: Any, **more: Any) -> KafkaSpout:
    given = {"group": "planning", "until": "latest", "value": "string", "commit_secs": 0.0}
    return KafkaSpout(topics, bootstrap_servers=kafka.address, **{**given, **more})


def topology_of(spout: KafkaSpout, bolt: Any) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("in", spout)
    builder.set_bolt("out", bolt).shuffle_grouping("in")
    return builder.create_topology()


def test_ten_thousand_holes_are_read_as_one_piece(kafka: Any) -> None:
    """A run without the checkpoint takes up the acks beyond the offset, in a few batches."""
    topic = kafka.topic()
    kafka.put(topic, range(20_000))
    patient = ss.Config(max_retries=None, retry_backoff_secs=600, retry_backoff_max_secs=600)
    spout = spout_of(kafka, topic, group=topic)
    with LocalRunner(topology_of(spout, Picky(takes_all=False)), config=patient) as runner:
        while runner.statistics().acked < 10_000:
            runner.step()
    assert kafka.committed(topic, topic)[0] == 1
    seen: list[int] = []
    with LocalRunner(
        topology_of(spout_of(kafka, topic, group=topic), Picky(takes_all=True)),
        taps=["out"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
    ) as runner:
        while not runner.coordinator.drained:
            runner.step()
        batches = runner.statistics().batches
    assert sorted(seen) == list(range(1, 20_000, 2))
    assert batches < 100
    assert kafka.committed(topic, topic)[0] == 20_000


class Sized(ss.BasicBolt):
    """Emits the size of each value."""

    outputs = ("size",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([len(tup["value"])])


@pytest.mark.parametrize("late", [False, True])
def test_bytes_bound_the_first_batch(kafka: Any, late: bool) -> None:
    """Of records of a megabyte no more come at once than the limit says, and later as many."""
    topic = kafka.topic(max_message_bytes=2 * MEGABYTE)
    if not late:
        kafka.put(topic, [b"x" * (MEGABYTE - 1000)] * 30)
    spout = spout_of(kafka, topic, until=None, value="bytes", group=topic)
    batches: list[int] = []
    config = ss.Config(max_pending_bytes=5 * MEGABYTE)
    with LocalRunner(
        topology_of(spout, Sized()),
        config=config,
        taps=["out"],
        on_tap=lambda key, task, rows: batches.append(len(rows)),
    ) as runner:
        if late:
            runner.run_until_idle()
            kafka.put(topic, [b"x" * (MEGABYTE - 1000)] * 30)
        while runner.statistics().acked < 30:
            runner.step()
    assert sum(batches) == 30
    assert batches[0] <= (16 if late else 5)
    assert max(batches[3:]) <= 5


def test_a_pattern_leaves_out_internal_topics(kafka: Any) -> None:
    """The offsets of groups are records, too, and each commit would make more of them."""
    topic = kafka.topic(name="plain-internal")
    kafka.put(topic, ["1"])
    kafka.commit("makes-the-internal-topic", topic, 1)
    assert "__consumer_offsets" in kafka.admin.list_topics(timeout=5).topics
    spout = spout_of(kafka, re.compile(r"plain-internal|_.*"), group=topic)
    with LocalRunner(topology_of(spout, Picky(takes_all=True))) as runner:
        runner.run_until_idle()
        partitions = runner.statistics().partitions["in"]
    assert [one.partition for one in partitions] == ["plain-internal/0"]


@pytest.mark.parametrize(
    "bolt",
    [
        lambda kafka: KafkaBolt("orders-done", bootstrap_servers=kafka.address),
        lambda kafka: KafkaSink("orders-done", bootstrap_servers=kafka.address),
        lambda kafka: KafkaSink(
            lambda tup: "orders-done", topics=["orders-done"], bootstrap_servers=kafka.address
        ),
    ],
    ids=["bolt", "sink", "sink of a function"],
)
def test_a_pattern_that_matches_the_own_output_is_refused(kafka: Any, bolt: Any) -> None:
    spout = spout_of(kafka, re.compile("orders-.*"))
    with pytest.raises(ss.TopologyError, match="spout 'in' would read the output of bolt 'out'"):
        topology_of(spout, bolt(kafka))
    topology_of(spout_of(kafka, re.compile("orders-new-.*")), bolt(kafka))
    topology_of(spout_of(kafka, ["orders-done"]), bolt(kafka))


@pytest.mark.parametrize("topics", [re.compile("orders-.*"), "orders-dead"])
def test_reading_the_own_dead_letters_is_refused(kafka: Any, topics: Any) -> None:
    if "orders-dead" not in kafka.admin.list_topics(timeout=5).topics:
        kafka.topic(name="orders-dead")
    sink = DeadLetterTopic("orders-dead", bootstrap_servers=kafka.address)
    topology = topology_of(spout_of(kafka, topics), Picky(takes_all=True))
    config = ss.Config(dead_letter_sink=sink)
    with (
        pytest.raises(ss.ConfigError, match="where the dead letters go"),
        LocalRunner(topology, config=config) as runner,
    ):
        runner.run_until_idle()


def test_a_missing_topic_for_dead_letters_is_seen_at_the_start(kafka: Any) -> None:
    sink = DeadLetterTopic("no-such-topic", bootstrap_servers=kafka.address, timeout_secs=1.0)
    topology = topology_of(spout_of(kafka, kafka.topic()), Picky(takes_all=True))
    with (
        pytest.raises(ss.ConfigError, match="no topic 'no-such-topic' for the dead letters"),
        LocalRunner(topology, config=ss.Config(dead_letter_sink=sink)),
    ):
        pass
