"""Two hundred thousand records, holes in the log, bad messages, and kill -9 all along."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

_PROGRAM = Path(__file__).with_name("orders.py")
_MESSAGES = 200_000
_PARTITIONS = 4
_MINUTES = 60


class Play:
    """The driver's lives, and what they left."""

    def __init__(self, kafka: Any, topic: str, folder: Path, sink: str = "") -> None:
        self.folder = folder
        self.killed = {"driver": 0, "broker": 0}
        self._sink = sink
        self._kafka = kafka
        self._topic = topic
        (folder / "witness").mkdir()

    def start(self, *more: str) -> "subprocess.Popen[bytes]":
        """Start the driver, on the same checkpoint as before."""
        with (self.folder / "driver.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, str(_PROGRAM), "--brokers", self._kafka.address),
                    *("--topic", self._topic, "--checkpoint", str(self.folder / "checkpoint")),
                    *("--witness", str(self.folder / "witness")),
                    *(("--sink", self._sink) if self._sink else ()),
                    *more,
                ],
                stdout=log,
                stderr=log,
            )

    def run(self, dice: random.Random, messages: int = _MESSAGES) -> None:
        """Let it run, kill driver or broker whenever more was processed, until all is through."""
        deadline = time.monotonic() + 60 * _MINUTES
        driver, mark = self.start(), self._next_mark(dice, messages)
        try:
            while (code := driver.poll()) is None:
                assert time.monotonic() < deadline, self.last_words()
                if self._processed() < mark:
                    time.sleep(0.2)
                    continue
                victim = min(self.killed, key=lambda name: (self.killed[name], dice.random()))
                self.killed[victim] += 1
                if victim == "broker":
                    self._kafka.server.kill()
                    time.sleep(dice.uniform(0.0, 3.0))
                    self._kafka.server.start()
                else:
                    driver.kill()
                    driver.wait()
                    driver = self.start()
                mark = self._next_mark(dice, messages)
            assert code == 0, self.last_words()
        finally:
            driver.kill()
            driver.wait()

    def witnessed(self) -> list[int]:
        """Every number that was processed, once for each time."""
        files = [path.read_text() for path in (self.folder / "witness").iterdir()]
        return [int(line.split()[0]) for text in files for line in text.split("\n")[:-1]]

    def dead(self) -> set[int]:
        """The numbers in dead letters."""
        found: set[int] = set()
        for path in (self.folder / "checkpoint/sparkstorm/dead-letters").glob("*.jsonl"):
            letters = [json.loads(line) for line in path.read_text().splitlines()[1:]]
            found |= {int(letter["values"][letter["fields"].index("value")]) for letter in letters}
        return found

    def last_words(self) -> str:
        return f"{self.killed} {(self.folder / 'driver.log').read_text(errors='replace')[-3000:]}"

    def _processed(self) -> int:
        return self._kafka.end(self._sink) if self._sink else len(self.witnessed())

    def _next_mark(self, dice: random.Random, messages: int) -> int:
        return self._processed() + dice.randint(messages // 20, messages // 4)


def fill(kafka: Any, topic: str) -> set[int]:
    """Put the numbers in, between them what is aborted or will be compacted; return the numbers."""
    each = _MESSAGES // _PARTITIONS
    producer = ck.Producer(
        {"bootstrap.servers": kafka.address, "transactional.id": "orders", "log_level": 2}
    )
    producer.init_transactions(60)
    for start in range(0, each, each // 5):
        for commit in (True, False):
            producer.begin_transaction()
            for partition in range(_PARTITIONS):
                for number in range(start, start + each // (5 if commit else 100)):
                    value = partition * each + number if commit else -1
                    key = b"aborted" if not commit else str(value).encode()
                    _produce(producer, topic, partition, key, value)
                    if commit and number % 10 == 0:  # the same key again: compaction takes these
                        _produce(producer, topic, partition, key, value)
            assert producer.flush(60) == 0
            (producer.commit_transaction if commit else producer.abort_transaction)(60)
    return set(range(_MESSAGES))


def _produce(producer: Any, topic: str, partition: int, key: bytes, value: int) -> None:
    while True:
        try:
            producer.produce(topic, str(value).encode(), key=key, partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            return


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(60 * (_MINUTES + 2))
def test_nothing_is_lost_whatever_is_killed(mortal_kafka: Any, tmp_path: Path) -> None:
    """Each is processed or a dead letter, and the group's offsets end at the log's ends."""
    topic = mortal_kafka.topic(
        _PARTITIONS,
        cleanup_policy="compact",
        segment_bytes=1_048_576,
        min_cleanable_dirty_ratio=0.01,
    )
    given = fill(mortal_kafka, topic)
    seed = random.randrange(10**6)
    play = Play(mortal_kafka, topic, tmp_path)
    play.run(random.Random(seed))
    story = f"seed {seed}, killed {play.killed}, {len(play.witnessed())} times processed"
    (tmp_path / "story.txt").write_text(story)
    hopeless = {number for number in given if number % 1000 == 7}
    assert play.dead() == hopeless, story
    assert set(play.witnessed()) == given - hopeless, story
    for partition in range(_PARTITIONS):
        end = mortal_kafka.end(topic, partition)
        assert mortal_kafka.committed("orders", topic, partition)[0] == end, story


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(60 * (_MINUTES + 2))
def test_each_record_is_written_once_whatever_is_killed(mortal_kafka: Any, tmp_path: Path) -> None:
    """Each number is counted once and written once: state and sink agree."""
    source, target = mortal_kafka.topic(2), mortal_kafka.topic()
    each = 15_000
    for partition in range(2):
        numbers = range(partition * each, (partition + 1) * each)
        mortal_kafka.put(source, numbers, partition=partition)
    seed = random.randrange(10**6)
    play = Play(mortal_kafka, source, tmp_path, sink=target)
    play.run(random.Random(seed), messages=2 * each)
    story = f"seed {seed}, killed {play.killed}"
    rows = [json.loads(message.value()) for message in mortal_kafka.read_to_end(target)]
    hopeless = {number for number in range(2 * each) if number % 1000 == 7}
    assert sorted(row[0] for row in rows) == sorted({*range(2 * each)} - hopeless), story
    counts: dict[str, list[int]] = {}
    for number, digits, count in rows:
        assert f"{number:02}"[-2:] == digits.zfill(2)
        counts.setdefault(digits, []).append(count)
    for found in counts.values():
        assert sorted(found) == [*range(1, len(found) + 1)], story
    assert play.dead() == hopeless, story
