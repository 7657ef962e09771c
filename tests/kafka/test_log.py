"""Logs that get shorter, and offsets that others set, forget or copy: on a broker."""

import itertools
import logging
import random
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka as ck
import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.kafka import KafkaSpout
from sparkstorm.testing import LocalRunner, ManualClock, wait_until
from sparkstorm.testing.servers import KafkaServer

pytestmark = pytest.mark.e2e


class Echo(ss.BasicBolt):
    """Emits the values that it gets; "stuck" fails."""

    outputs = ("value",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if tup["value"] == "stuck":
            raise ValueError("not this one")
        collector.emit([tup["value"]])


def runner_of(kafka: Any, topic: str, seen: list[str], **more: Any) -> LocalRunner:
    fixed = {name: more.pop(name) for name in ("files", "clock") if name in more}
    given = {"group": topic, "value": "string", "commit_secs": 0.0, "timeout_secs": 2.0, **more}
    builder = ss.TopologyBuilder()
    builder.set_spout("in", KafkaSpout(topic, bootstrap_servers=kafka.address, **given))
    builder.set_bolt("echo", Echo()).shuffle_grouping("in")
    return LocalRunner(
        builder.create_topology(),
        taps=["echo"],
        on_tap=lambda key, task, rows: seen.extend(row[0] for row in rows),
        config=ss.Config(
            max_retries=None, retry_backoff_secs=1000.0, retry_backoff_max_secs=1000.0
        ),
        **fixed,
    )


def drained(kafka: Any, topic: str, **more: Any) -> list[str]:
    """Run to the end of the topic; return the values that were processed."""
    seen: list[str] = []
    with runner_of(kafka, topic, seen, until="latest", **more) as runner:
        while not runner.coordinator.drained:
            runner.step()
    return seen


def stand(runner: LocalRunner) -> Any:
    """How all partitions stand; none while their topic is away."""
    return runner.statistics().partitions["in"]


def told(runner: LocalRunner, number: int = 0) -> Any:
    """How a partition stands."""
    return stand(runner)[number]


def expired(runner: LocalRunner) -> int:
    """How many offsets were gone before they were read; a topic may be away for a moment."""
    return sum(one.expired for one in stand(runner))


# --- logs that get shorter -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["earliest", "latest", "fail"])
def test_a_partition_that_is_lost_while_we_run(
    mortal_kafka: Any, policy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """New records are read by the policy; the warning has both offsets, the statistics count."""
    topic, seen = mortal_kafka.topic(), []  # type: tuple[str, list[str]]
    mortal_kafka.put(topic, range(100))
    with (
        caplog.at_level(logging.WARNING),
        runner_of(mortal_kafka, topic, seen, out_of_range=policy) as runner,
    ):
        wait_until(lambda: told(runner).committed == 100, check=runner.step)
        mortal_kafka.server.kill()
        shutil.rmtree(mortal_kafka.server._folder / "data" / f"{topic}-0")
        mortal_kafka.server.start()
        if policy == "fail":
            with pytest.raises(ss.SpoutConnectionError, match="no offset 100, it goes from 0 to"):
                wait_until(lambda: False, check=runner.step)
            return
        wait_until(lambda: told(runner).log_cuts == 1, check=runner.step)
        mortal_kafka.put(topic, [f"new {n}" for n in range(40)])
        wait_until(lambda: told(runner).committed == 40, check=runner.step)
        assert (told(runner).lag, told(runner).log_cuts) == (0, 1)
    assert seen[100:] == [f"new {n}" for n in range(40)]
    assert "the log has no offset 100, it goes from 0 to 0: going on at 0" in caplog.text
    assert mortal_kafka.committed(topic, topic)[0] == 40


@pytest.mark.slow
def test_an_unclean_leader_election_under_load(
    started: Callable[[KafkaServer], KafkaServer],
    hand: Callable[[KafkaServer], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The new leader lacks 100 records, and 120 new ones hide it: each of these is read."""
    first = KafkaServer({"unclean.leader.election.enable": "true"})
    second, third = (KafkaServer(joins=first) for _ in range(2))
    with started(first), second, third:
        kafka = hand(first)
        wait_until(lambda: {second.node, third.node} <= kafka.brokers())
        topic, seen = kafka.topic_on([second.node, third.node]), []  # type: tuple[str, list[str]]
        kafka.put(topic, range(100))
        with runner_of(kafka, topic, seen, refresh_secs=0.2) as runner:
            wait_until(lambda: len(seen) == 100, check=runner.step)
            third.kill()
            wait_until(lambda: kafka.in_sync(topic) == [second.node])
            kafka.put(topic, range(100, 200))
            wait_until(lambda: told(runner).committed == 200, check=runner.step)
            second.kill()
            third.start()
            wait_until(lambda: kafka.leaders(topic)[0] == third.node)
            kafka.put(topic, [f"new {n}" for n in range(120)])
            wait_until(lambda: "new 119" in seen, check=runner.step, secs=90.0)
            wait_until(lambda: told(runner).committed == 220, check=runner.step)
            assert told(runner).log_cuts == 1
    assert set(seen) == {*map(str, range(200)), *(f"new {n}" for n in range(120))}
    assert re.search("the log was cut at 100|the log has no offset 200", caplog.text)


@pytest.mark.parametrize("more", [0, 300])
def test_a_partition_that_is_lost_and_filled_again(mortal_kafka: Any, more: int) -> None:
    """Before anybody looks: its records have old offsets, and each of them is read."""
    topic, seen = mortal_kafka.topic(), []  # type: tuple[str, list[str]]
    mortal_kafka.put(topic, range(100))
    with runner_of(mortal_kafka, topic, seen, refresh_secs=0.2) as runner:
        wait_until(lambda: told(runner).committed == 100, check=runner.step)
        mortal_kafka.server.kill()
        shutil.rmtree(mortal_kafka.server._folder / "data" / f"{topic}-0")
        mortal_kafka.server.start()
        mortal_kafka.put(topic, [f"new {n}" for n in range(100 + more)])
        wait_until(lambda: len(seen) >= 200 + more, check=runner.step)
        assert told(runner).log_cuts == 1
    assert set(seen[100:]) >= {f"new {n}" for n in range(100 + more)}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(2))
def test_logs_that_are_cut_at_random_moments_under_load(mortal_kafka: Any, seed: int) -> None:
    """Lost, made anew, deleted from: what the log holds in the end has been processed."""
    dice, server = random.Random(seed), mortal_kafka.server
    topic, seen = mortal_kafka.topic(), []  # type: tuple[str, list[str]]
    numbers, going = itertools.count(), threading.Event()

    def produce() -> None:
        producer = ck.Producer({"bootstrap.servers": mortal_kafka.address, "log_level": 2})
        while not going.wait(0.01):
            for _ in range(20):
                producer.produce(topic, str(next(numbers)).encode(), partition=0)
            producer.poll(0)
        producer.flush(30)

    load = threading.Thread(target=produce)
    with runner_of(mortal_kafka, topic, seen, refresh_secs=0.5) as runner:
        load.start()
        for _ in range(5):
            count = len(seen) + dice.randint(100, 2000)
            wait_until(lambda count=count: len(seen) >= count, check=runner.step)  # type: ignore[misc]
            match dice.choice(("lose", "lose", "remake", "delete")):
                case "lose":
                    server.kill()
                    shutil.rmtree(server._folder / "data" / f"{topic}-0")
                    server.start()
                case "remake":
                    mortal_kafka.delete_topic(topic)
                    mortal_kafka.topic(name=topic)
                case "delete":
                    end = mortal_kafka.end(topic)
                    mortal_kafka.delete_before(topic, end - dice.randint(0, min(end, 500)))
        going.set()
        load.join()
        left = {(one.value() or b"").decode() for one in mortal_kafka.read_to_end(topic)}
        wait_until(lambda: left <= set(seen), check=runner.step)
        wait_until(lambda: [p.lag for p in stand(runner)] == [0], check=runner.step)
    assert left


def test_records_that_nobody_had_read_are_counted_when_their_topic_is_deleted(
    kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Processed, dead letters, or counted as gone: together they are all that there was."""
    topic, seen = kafka.topic(), []  # type: tuple[str, list[str]]
    kafka.put(topic, range(100))
    with runner_of(kafka, topic, seen, rate=10.0, clock=ManualClock(), refresh_secs=0.0) as runner:
        wait_until(lambda: len(seen) == 10, check=runner.step)
        kafka.delete_topic(topic)
        kafka.topic(name=topic)
        kafka.put(topic, ["new", "topic"])
        wait_until(lambda: expired(runner) > 0, check=runner.step)
        assert expired(runner) == 90
    text = "planned up to the offset 10, and its last known end is 100: 90 offsets were not read"
    assert text in caplog.text


@pytest.mark.parametrize("gone", [0, 1])
def test_a_topic_that_is_made_anew_while_the_driver_is_down_is_counted_and_told_of(
    kafka: Any, caplog: pytest.LogCaptureFixture, gone: int
) -> None:
    """The checkpoint has the end that was last seen; the new topic may have lost records, too."""
    topic, files, seen = kafka.topic(), MemoryFiles(), []  # type: tuple[str, Any, list[str]]
    old = kafka.topic_id(topic)
    kafka.put(topic, range(100))
    with runner_of(kafka, topic, seen, rate=10.0, clock=ManualClock(), files=files) as runner:
        wait_until(lambda: len(seen) == 10, check=runner.step)
    kafka.put(topic, ["nobody knows"] * 5)
    kafka.delete_topic(topic)
    kafka.topic(name=topic)
    kafka.put(topic, ["lost", "new"])
    kafka.delete_before(topic, gone)
    with runner_of(kafka, topic, seen, files=files) as runner:
        wait_until(lambda: "new" in seen, check=runner.step)
        assert expired(runner) == 90 + gone
    assert seen[10:] == ["lost", "new"][gone:]
    assert f"the topic id {old} became {kafka.topic_id(topic)}" in caplog.text
    text = "planned up to the offset 10, and its last known end is 100: 90 offsets were not read"
    assert text in caplog.text


def test_records_of_a_new_topic_are_not_taken_for_those_of_the_old_one(kafka: Any) -> None:
    """Kafka reads by name: the topic may become another one while a range is read."""
    topic = kafka.topic()
    spout = KafkaSpout(topic, bootstrap_servers=kafka.address, group=topic, value="string")
    data = {"topic": topic, "partition": 0, "topic_id": kafka.topic_id(topic), "start": 0}
    count = 40_000  # more than a reader fetches ahead
    kafka.put(topic, ["old" * 200] * count)
    reading = spout.read(ss.Split(count=count, data={**data, "epoch": 0}))
    next(reading)
    kafka.delete_topic(topic)
    kafka.topic(name=topic)
    kafka.put(topic, ["new" * 200] * count)
    with pytest.raises(ss.SpoutConnectionError, match=f"{topic}/0 was deleted while it was read"):
        list(reading)


# --- offsets that others set ---------------------------------------------------------------------


def test_a_reset_while_stopped_is_respected(kafka: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The ordinary tool commits an offset without a text. By default nothing is started."""
    topic, files = kafka.topic(), MemoryFiles()
    kafka.put(topic, range(10))
    assert len(drained(kafka, topic, files=files)) == 10
    assert drained(kafka, topic, files=files) == [], "nobody has reset anything"
    kafka.commit(topic, topic, 4)
    with pytest.raises(ss.CheckpointError, match=f"{topic}/0 was reset .* offset is 4 now") as it:
        drained(kafka, topic, files=files)
    assert "goes on at 10" in str(it.value)
    assert kafka.committed(topic, topic)[0] == 4, "it is not overwritten"
    assert drained(kafka, topic, files=files, on_reset="follow") == [*map(str, range(4, 10))]
    assert drained(kafka, topic, files=files) == [], "it was followed once"
    kafka.commit(topic, topic, 4)
    assert drained(kafka, topic, files=files, on_reset="ignore") == []
    assert kafka.committed(topic, topic)[0] == 10
    assert "reset to the offset 4 while the topology was stopped: that is ignored" in caplog.text
    assert drained(kafka, topic, files=files) == []


def test_a_commit_that_the_checkpoint_missed_is_no_reset(kafka: Any) -> None:
    """A driver dies between its commit and the next plan: the name beside the offset tells."""
    topic, files, seen = kafka.topic(), MemoryFiles(), []  # type: tuple[str, MemoryFiles, list[str]]
    kafka.put(topic, range(10))
    first = runner_of(kafka, topic, seen, files=files)
    first.__enter__()
    wait_until(lambda: kafka.committed(topic, topic)[0] == 10, check=first.step)
    kafka.put(topic, range(10, 20))
    wait_until(lambda: kafka.committed(topic, topic)[0] == 20, check=first.step)
    first.__exit__(RuntimeError, RuntimeError("the driver dies"), None)
    kafka.put(topic, range(20, 30))
    wait_until(lambda: kafka.end(topic) == 30)
    drained(kafka, topic, files=files)
    assert kafka.committed(topic, topic)[0] == 30


def test_a_late_commit_for_the_topic_before_is_no_reset_of_the_new_one(kafka: Any) -> None:
    """A driver dies after the topic was made anew, and its last commit was for the old one."""
    topic, files = kafka.topic(), MemoryFiles()
    kafka.put(topic, range(10))
    assert len(drained(kafka, topic, files=files)) == 10
    late = kafka.committed(topic, topic)
    kafka.delete_topic(topic)
    kafka.topic(name=topic)
    kafka.put(topic, range(5))
    assert len(drained(kafka, topic, files=files)) == 5
    kafka.put(topic, range(5, 20))
    kafka.commit(topic, topic, *late)
    assert drained(kafka, topic, files=files) == [*map(str, range(5, 20))]
    assert kafka.committed(topic, topic)[0] == 20


def test_another_run_of_the_group_counts_as_a_reset(kafka: Any) -> None:
    """The checkpoint is behind: both are named."""
    topic, files = kafka.topic(), MemoryFiles()
    kafka.put(topic, range(10))
    drained(kafka, topic, files=files)
    kafka.put(topic, range(10, 15))
    assert len(drained(kafka, topic)) == 5
    with pytest.raises(ss.CheckpointError, match="offset is 15 now, and the checkpoint goes on at"):
        drained(kafka, topic, files=files)


def test_a_text_that_was_copied_beside_another_offset_makes_nothing_disappear(
    kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """MirrorMaker 2 translates the offset and passes the text on."""
    topic, seen = kafka.topic(), []  # type: tuple[str, list[str]]
    kafka.put(topic, ["a", "b", "stuck", *range(10)])
    with runner_of(kafka, topic, seen) as runner:
        wait_until(lambda: len(seen) == 12, check=runner.step)
        wait_until(lambda: told(runner).acked_beyond == 10, check=runner.step)
    offset, text = kafka.committed(topic, topic)
    assert offset == 2
    target = kafka.topic()
    kafka.put(target, range(13))
    kafka.commit(target, target, 0, text)
    assert drained(kafka, target) == [*map(str, range(13))]
    kafka.commit(target, target, 2, text)
    assert drained(kafka, target) == [*map(str, range(2, 13))]
    assert "the text belongs to the offset 2" in caplog.text
    assert "the text belongs to another topic" in caplog.text


@pytest.mark.parametrize("text", ["[" * 3000, '{"sparkstorm":3,"x":1}', "hello", "\u3400"])
def test_a_text_that_is_not_ours_is_said_to_be(
    kafka: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic()
    kafka.put(topic, range(5))
    kafka.commit(topic, topic, 3, text)
    assert drained(kafka, topic) == ["3", "4"]
    assert f"{topic}/0: the text beside the committed offset 3 is ignored" in caplog.text


def test_a_text_of_many_holes_survives(kafka: Any) -> None:
    """Characters beyond ASCII and all: the broker counts UTF-16 units."""
    topic, seen = kafka.topic(), []  # type: tuple[str, list[str]]
    dice = random.Random(7)
    wanted = [dice.choice(("stuck", str(n))) for n in range(26_000)]
    kafka.put(topic, wanted)
    with runner_of(kafka, topic, seen) as runner:
        count = sum(value != "stuck" for value in wanted)
        wait_until(lambda: len(seen) == count, check=runner.step)
        wait_until(lambda: told(runner).in_retry == 26_000 - count, check=runner.step)
        beyond = told(runner).acked_beyond
    offset, text = kafka.committed(topic, topic)
    assert not text.isascii()
    again: list[str] = []
    with runner_of(kafka, topic, again, rate=100.0) as runner:
        runner.step()
        assert again == []
        assert (told(runner).committed, told(runner).acked_beyond) == (offset, beyond)


# --- offsets that brokers forget or refuse -------------------------------------------------------


def test_a_quiet_partition_is_committed_now_and_then(kafka: Any) -> None:
    """A broker forgets an offset that is not committed for long; the run commits it again."""
    topic, clock = kafka.topic(2), ManualClock()
    kafka.put(topic, range(3), partition=0)
    with runner_of(kafka, topic, [], clock=clock, renew_secs=600.0) as runner:
        wait_until(lambda: kafka.committed(topic, topic)[0] == 3, check=runner.step)
        wait_until(lambda: kafka.committed(topic, topic, 1)[0] == 0, check=runner.step)
        kafka.admin.delete_consumer_groups([topic])[topic].result()
        clock.advance(599.0)
        runner.step()
        assert kafka.committed(topic, topic, 1)[0] < 0
        clock.advance(2.0)
        runner.step()
        wait_until(lambda: kafka.committed(topic, topic, 1)[0] == 0)
        assert kafka.committed(topic, topic)[0] == 3
        kafka.admin.delete_consumer_groups([topic])[topic].result()
    assert [kafka.committed(topic, topic, n)[0] for n in range(2)] == [3, 0], "and at the end"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_offsets_do_not_expire_while_the_topology_runs(
    started: Callable[[KafkaServer], KafkaServer], hand: Callable[[KafkaServer], Any]
) -> None:
    """A broker that keeps offsets for a minute: those of a program that has ended go, ours stay."""
    fast = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
    with started(KafkaServer(fast)) as server:
        kafka = hand(server)
        topic = kafka.topic(2)
        kafka.put(topic, range(3), partition=0)
        kafka.commit("ended", topic, 1)
        with runner_of(kafka, topic, [], renew_secs=10.0) as runner:
            wait_until(lambda: kafka.committed(topic, topic)[0] == 3, check=runner.step)
            wait_until(
                lambda: kafka.committed("ended", topic)[0] < 0, check=runner.step, secs=300.0
            )
            assert [kafka.committed(topic, topic, n)[0] for n in range(2)] == [3, 0]


@pytest.fixture
def hand(kafka: Any) -> Callable[[KafkaServer], Any]:
    """Makes hands for brokers of a test's own."""
    return type(kafka)


@pytest.fixture(scope="module")
def narrow(started: Callable[[KafkaServer], KafkaServer]) -> Iterator[KafkaServer]:
    """A broker that has little room for texts."""
    with started(KafkaServer({"offset.metadata.max.bytes": "500"})) as server:
        yield server


def test_a_broker_with_little_room_for_texts(
    narrow: KafkaServer, hand: Callable[[KafkaServer], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Everything is read, and the offset is committed with as much of the acks as fits."""
    kafka = hand(narrow)
    topic, seen = kafka.topic(), []  # type: tuple[str, list[str]]
    dice = random.Random(7)
    wanted = [dice.choice(("stuck", str(n))) for n in range(20_000)]
    kafka.put(topic, ["done", *wanted])
    with runner_of(kafka, topic, seen) as runner:
        count = 1 + sum(value != "stuck" for value in wanted)
        wait_until(lambda: len(seen) == count, check=runner.step)
        kafka.put(topic, ["more"])
        wait_until(lambda: "more" in seen, check=runner.step)
        wait_until(lambda: "offset.metadata.max.bytes" in caplog.text, check=runner.step)
        beyond = told(runner).acked_beyond
    offset, text = kafka.committed(topic, topic)
    assert offset >= 1
    assert 300 < len(text) <= 500
    assert re.search("acks beyond the committed offsets do not fit", caplog.text)
    with runner_of(kafka, topic, [], rate=100.0) as runner:
        assert 1000 < told(runner).acked_beyond < beyond


# --- where to begin ------------------------------------------------------------------------------


def test_offsets_to_start_at(kafka: Any) -> None:
    """As Spark's startingOffsets; without progress only."""
    topic = kafka.topic(2)
    for number in range(2):
        kafka.put(topic, [f"{number}/{n}" for n in range(5)], partition=number)
    assert sorted(drained(kafka, topic, start={topic: {0: 3}})) == [
        *("0/3", "0/4"),
        *(f"1/{n}" for n in range(5)),
    ]
    assert drained(kafka, topic, start={topic: {0: 0}}) == []


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ({"other": {0: 1}}, "offsets for the topic 'other', which the spout does not read"),
        ({"t": {0: -1}}, "give a mapping of partition numbers to offsets"),
        ({"t": 7}, "give a mapping of partition numbers to offsets"),
        ("soon", "start is 'soon'"),
    ],
)
def test_a_start_that_names_no_offsets_is_refused(start: Any, why: str) -> None:
    with pytest.raises(ss.ConfigError, match=why):
        KafkaSpout("t", bootstrap_servers="k:1", group="g", start=start)


def test_the_age_of_a_lag_is_told(kafka: Any) -> None:
    """For how long the oldest message waits, and since when the figures are known."""
    topic, clock, seen = kafka.topic(), ManualClock(), []  # type: tuple[str, ManualClock, list[str]]
    with runner_of(kafka, topic, seen, clock=clock) as runner:
        runner.step()
        kafka.put(topic, ["stuck", "fine"])
        wait_until(lambda: seen == ["fine"], check=runner.step)
        clock.advance(30.0)
        assert (told(runner).lag, told(runner).lag_secs) == (2, 30.0)
        assert told(runner).seen_secs < 60.0


def test_partitions_are_paused_and_resumed(kafka: Any) -> None:
    """Of a running topology; the others go on, and retries do."""
    topic, seen = kafka.topic(2), []  # type: tuple[str, list[str]]
    with runner_of(kafka, topic, seen) as runner:
        runner.step()
        runner.pause("in", [f"{topic}/0"])
        for number in range(2):
            kafka.put(topic, [f"{number}/{n}" for n in range(3)], partition=number)
        wait_until(lambda: told(runner, 0).lag == 3 and len(seen) == 3, check=runner.step)
        assert seen == ["1/0", "1/1", "1/2"]
        assert [told(runner, n).halted for n in range(2)] == [True, False]
        runner.pause("in")
        kafka.put(topic, ["1/3"], partition=1)
        wait_until(lambda: told(runner, 1).lag == 1, check=runner.step)
        runner.resume("in", [f"{topic}/1"])
        wait_until(lambda: "1/3" in seen, check=runner.step)
        assert len(seen) == 4
        runner.resume("in")
        wait_until(lambda: len(seen) == 7, check=runner.step)
        with pytest.raises(ss.ConfigError, match=f"has no partition 'x'; it has {topic}/0"):
            runner.pause("in", ["x"])
        with pytest.raises(ss.ConfigError, match="no partitioned spout 'out'"):
            runner.resume("out")
