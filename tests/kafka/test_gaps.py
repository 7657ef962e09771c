"""Offsets that hold no record, logs that begin late, records that cannot be read: on a broker."""

import datetime
import itertools
import logging
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.kafka import KafkaSpout
from sparkstorm.testing import LocalRunner, ManualClock, wait_until

pytestmark = pytest.mark.e2e


class Echo(ss.BasicBolt):
    """Emits what it gets; a message that is told to, fails once, or always."""

    outputs = ("offset", "value")

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        if str(tup["value"]).endswith("!") and tup.attempt == 1:
            raise ValueError("not yet")
        if tup["value"] == "never":
            raise ValueError("not this one")
        collector.emit([tup["offset"], tup["value"]])


def runner_of(kafka: Any, topics: Any, seen: list[Any], **more: Any) -> LocalRunner:
    given = {"group": str(topics), "value": "string", "until": "latest", "commit_secs": 0.0}
    fixed = {name: more.pop(name) for name in ("files", "config", "clock") if name in more}
    builder = ss.TopologyBuilder()
    spout = KafkaSpout(topics, bootstrap_servers=kafka.address, **{**given, **more})
    builder.set_spout("kafka", spout)
    builder.set_bolt("echo", Echo()).shuffle_grouping("kafka")
    return LocalRunner(
        builder.create_topology(),
        taps=["echo"],
        on_tap=lambda key, task, rows: seen.extend(tuple(row) for row in rows),
        **{"config": ss.Config(retry_backoff_secs=0.0, batch_max_messages=1000), **fixed},
    )


def drain(runner: LocalRunner) -> ss.Statistics:
    while not runner.coordinator.drained:
        runner.step()
    return runner.statistics()


def test_aborted_transactions_and_control_records(kafka: Any) -> None:
    """Defect 8: gaps complete as skipped; the log's last offsets may be such a gap."""
    topic = kafka.topic()
    kafka.put(topic, ["a"])
    kafka.put_aborted(topic, range(50))
    kafka.put_committed(topic, ["b!", "c"])
    kafka.put_aborted(topic, range(3))
    seen: list[Any] = []
    with runner_of(kafka, topic, seen) as runner:
        statistics = drain(runner)
    assert sorted(value for _, value in seen) == ["a", "b!", "c"]
    assert kafka.end(topic) == 1 + 51 + 3 + 4
    assert kafka.committed(topic, topic)[0] == kafka.end(topic)
    assert dict(statistics.component("kafka").user)["skipped"] == 56
    assert [(p.partition, p.skipped) for p in statistics.partitions["kafka"]] == [
        (f"{topic}/0", 56)
    ]


def test_a_transaction_that_is_open_is_not_waited_for(kafka: Any) -> None:
    """A range ends at the last stable offset: what lies beyond is planned when it is decided."""
    topic = kafka.topic()
    kafka.put(topic, ["a"])
    with kafka.open_transaction(topic, ["b"]) as transaction:
        kafka.put(topic, ["c"])
        seen: list[Any] = []
        with runner_of(kafka, topic, seen, until=None) as runner:
            runner.run_until_idle()
            assert (seen, runner.coordinator.drained) == ([(0, "a")], False)
            transaction.commit()
            while len(seen) < 3:
                runner.step()
            assert seen == [(0, "a"), (1, "b"), (2, "c")]


def test_a_transaction_that_nobody_ends_is_said(
    kafka: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """With the last stable offset and the end of the log; once, and again when it is over."""
    topic, seen = kafka.topic(), []  # type: tuple[str, list[Any]]
    kafka.put(topic, ["a"])
    with (
        kafka.open_transaction(topic, ["b", "c"]) as transaction,
        runner_of(kafka, topic, seen, until=None, refresh_secs=0.2) as runner,
    ):
        stuck = f"{topic}/0: the last stable offset is stuck at 1, and the log ends at 3"
        wait_until(lambda: seen and stuck in caplog.text, check=runner.step)
        assert seen == [(0, "a")]
        transaction.commit()
        wait_until(lambda: len(seen) == 3, check=runner.step)
        wait_until(lambda: "the last stable offset moves again" in caplog.text)
    assert caplog.text.count("is stuck at") == 1


def test_a_compacted_topic(kafka: Any) -> None:
    """Most offsets are gone; tombstones are messages with the value None."""
    topic = kafka.topic(
        cleanup_policy="compact",
        segment_ms=100,
        min_cleanable_dirty_ratio=0.01,
        delete_retention_ms=3_600_000,
    )
    for turn in range(20):
        kafka.put(topic, [f"{turn}"] * 10, key=b"k")
        kafka.put(topic, [f"{turn}"], key=b"%d" % turn)
    kafka.put(topic, [None], key=b"gone")

    def is_compacted() -> bool:
        kafka.put(topic, ["roll"], key=b"roll")
        return bool(kafka.read_offsets(topic)[:3] != [0, 1, 2])

    wait_until(is_compacted)
    left = kafka.read_offsets(topic)
    seen: list[Any] = []
    with runner_of(kafka, topic, seen) as runner:
        drain(runner)
    # the cleaner may have gone on meanwhile, but the last record of each key stays
    assert {offset for offset, _ in seen} <= set(left)
    values = [value for _, value in seen]
    assert set(map(str, range(20))) <= set(values)
    assert None in values
    assert kafka.committed(topic, topic)[0] == kafka.end(topic)


def test_a_start_in_the_middle_of_a_compressed_batch(kafka: Any) -> None:
    """Defect 8: the broker sends the whole batch; what lies before the start is not emitted."""
    topic = kafka.topic()
    kafka.put(topic, range(1000), compressed=True)
    kafka.commit(topic, topic, 777)
    seen: list[Any] = []
    with runner_of(kafka, topic, seen) as runner:
        drain(runner)
    assert [offset for offset, _ in seen] == list(range(777, 1000))


@pytest.mark.parametrize("policy", ["earliest", "latest", "timestamp"])
def test_a_stored_offset_that_is_gone(
    kafka: Any, policy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Defect 6: the policy says where to go on, and a warning says from where to where."""
    topic = kafka.topic()
    kafka.put(topic, range(100))
    kafka.commit(topic, topic, 10)
    kafka.delete_before(topic, 40)
    if policy == "timestamp":
        policy = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    seen: list[Any] = []
    with (
        caplog.at_level(logging.WARNING),
        runner_of(kafka, topic, seen, out_of_range=policy) as runner,
    ):
        statistics = drain(runner)
    begin = 100 if policy == "latest" else 40
    assert [offset for offset, _ in seen] == list(range(begin, 100))
    assert f"the log has no offset 10, it goes from 40 to 100: going on at {begin}" in caplog.text
    assert statistics.partitions["kafka"][0].expired == begin - 10
    assert kafka.committed(topic, topic)[0] == 100


def test_a_stored_offset_that_is_gone_may_be_an_error(kafka: Any) -> None:
    topic = kafka.topic()
    kafka.put(topic, range(10))
    kafka.commit(topic, topic, 50)
    with pytest.raises(ss.SpoutConnectionError, match="no offset 50, it goes from 0 to 10"):
        runner_of(kafka, topic, [], out_of_range="fail").__enter__()


def test_a_log_that_is_cut_while_it_is_read(kafka: Any, caplog: pytest.LogCaptureFixture) -> None:
    """What was planned and is gone is a dead letter; what was not planned is counted."""
    topic = kafka.topic()
    kafka.put(topic, range(100))
    files, seen = MemoryFiles(), []  # type: tuple[MemoryFiles, list[Any]]
    config = ss.Config(max_spout_pending=20)
    with (
        caplog.at_level(logging.WARNING),
        runner_of(kafka, topic, seen, files=files, config=config, refresh_secs=0.0) as runner,
    ):
        assert runner.plan_batch()
        kafka.delete_before(topic, 50)
        runner.finish(runner.run_job())
        runner.commit()
        statistics = drain(runner)
    gone = [letter.msg_id[2] for letter in LetterStore(files).letters()]
    assert sorted(gone) == list(range(20))
    assert {letter.failure.reason for letter in LetterStore(files).letters()} == {ss.Reason.EXPIRED}
    assert [offset for offset, _ in seen] == list(range(50, 100))
    assert (
        "the log has no offset 20, it begins at 50: going on at 50; 30 offsets are" in caplog.text
    )
    assert statistics.partitions["kafka"][0].expired == 30
    assert kafka.committed(topic, topic)[0] == 100


def test_records_that_cannot_be_read(kafka: Any) -> None:
    """They are dead letters with their bytes, and the others go on."""
    topic = kafka.topic()
    kafka.put(topic, ['{"n": 1}', b"\xff\x00", "{", '{"n": 2}'])
    files, seen = MemoryFiles(), []  # type: tuple[MemoryFiles, list[Any]]
    with runner_of(kafka, topic, seen, files=files, value="json") as runner:
        statistics = drain(runner)
    assert [value for _, value in seen] == [{"n": 1}, {"n": 2}]
    assert (statistics.given_up, statistics.failed) == (2, 2)
    letters = sorted(LetterStore(files).letters(), key=lambda letter: letter.msg_id)
    assert [letter.source["value"] for letter in letters if letter.source] == [b"\xff\x00", b"{"]
    assert "its value is unreadable: JSONDecodeError" in letters[1].failure.message
    assert not letters[1].replayable
    assert kafka.committed(topic, topic)[0] == 4


def test_a_message_of_several_tuples_comes_again_whole(kafka: Any) -> None:
    """Defect 9: each tuple has its index, so that a bolt can skip what it did."""
    topic = kafka.topic()
    kafka.put(topic, ['["a", "b!"]', '["c"]', "[]"])
    seen: list[Any] = []
    fields = ("offset", "index", "value")
    with runner_of(kafka, topic, seen, value="json", many=True, fields=fields) as runner:
        drain(runner)
    assert sorted(seen) == [(0, "a"), (0, "a"), (0, "b!"), (1, "c")]
    assert kafka.committed(topic, topic)[0] == 3


def kept(runner: LocalRunner) -> int:
    """How many records of failed messages are kept."""
    return sum(one.kept for one in runner.statistics().partitions["kafka"])


def test_a_failed_message_outlives_its_record(kafka: Any) -> None:
    """The topic is deleted before the next try: there is what it takes, and the dead letter."""
    topic, clock, files = kafka.topic(), ManualClock(), MemoryFiles()
    kafka.put(topic, ["once!", "fine", "never"], key=b"k")
    seen: list[Any] = []
    config = ss.Config(retry_backoff_secs=10.0, max_retries=2)
    with runner_of(kafka, topic, seen, config=config, files=files, clock=clock) as runner:
        wait_until(runner.step)
        runner.plan_batch()
        wait_until(lambda: kept(runner) == 2)
        kafka.delete_topic(topic)
        for _ in range(4):  # three tries, and the verdict on the last one
            clock.advance(100.0)
            runner.step()
        assert runner.statistics().acked == 2
        assert kept(runner) == 0
    assert sorted(seen) == [(0, "once!"), (1, "fine")]
    [letter] = LetterStore(files).letters()
    assert (letter.attempts, letter.failure.reason) == (3, ss.Reason.ERROR)
    assert letter.payload is not None
    assert letter.payload["value"] == "never"
    assert letter.source is not None
    assert (letter.source["key"], letter.source["value"]) == (b"k", b"never")


def test_a_failed_message_outlives_its_record_and_its_driver(kafka: Any) -> None:
    """What a try is planned with is in the checkpoint."""
    topic, clock, files = kafka.topic(), ManualClock(), MemoryFiles()
    kafka.put(topic, ["fine", "once!"])
    seen: list[Any] = []
    config = ss.Config(retry_backoff_secs=10.0)
    first = runner_of(kafka, topic, seen, config=config, files=files, clock=clock)
    first.__enter__()
    wait_until(first.step)
    first.plan_batch()
    wait_until(lambda: kept(first) == 1)
    clock.advance(100.0)
    assert first.plan_batch()
    first.__exit__(RuntimeError, RuntimeError("the driver dies"), None)
    kafka.delete_before(topic, 2)
    with runner_of(kafka, topic, seen, config=config, files=files) as runner:
        assert drain(runner).given_up == 0
    assert sorted(set(seen)) == [(0, "fine"), (1, "once!")]


def test_new_topics_and_partitions_are_found(kafka: Any) -> None:
    """A pattern takes in topics that come later, from their first record on."""
    import re

    name = kafka.topic()
    kafka.put(name, ["old"])
    seen: list[Any] = []
    pattern = re.compile(f"{name}(-.*)?")
    options = {"group": name, "start": "latest", "until": None, "refresh_secs": 0.0}
    with runner_of(kafka, pattern, seen, **options) as runner:
        runner.run_until_idle()
        other = kafka.topic(name=f"{name}-2")
        kafka.put(other, ["new topic"])
        kafka.add_partitions(name, 2)
        kafka.put(name, ["new partition"], partition=1)
        for _ in itertools.takewhile(lambda _: len(seen) < 2, itertools.count()):
            runner.step()
    assert sorted(value for _, value in seen) == ["new partition", "new topic"]
