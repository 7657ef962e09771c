"""Kills, cuts, new topics and resets at random moments under load, for as long as one likes.

``SPARKSTORM_TROUBLE_SECS=600 python -m pytest tests/kafka/test_random_troubles.py`` goes on for ten
minutes. Afterwards each record is looked for: it was processed, or is a dead letter, or the log had
lost it before it was read, which the statistics have counted.
"""

import json
import os
import random
import re
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka as ck
import pytest

from sparkstorm.testing import wait_until
from tests.kafka.test_kill import Play

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_SECS = float(os.environ.get("SPARKSTORM_TROUBLE_SECS", "60"))
_END_SECS = 1200.0
_PARTITIONS = 2
_KILLS = ("driver", "broker", "both")
_CUTS = ("delete", "reset")


class Written(NamedTuple):
    """Where the broker has put a record."""

    life: int
    partition: int
    offset: int


class Load:
    """A thread that writes numbers, and remembers where each of them is."""

    def __init__(self, kafka: Any, topic: str) -> None:
        self.written: dict[int, Written] = {}
        self.life = 0
        self.lock = threading.Lock()
        """Held during a burst; whoever holds it may delete the topic."""
        self._topic = topic
        self._next = 0
        self._ended = threading.Event()
        self._producer = ck.Producer(
            {"bootstrap.servers": kafka.address, "log_level": 2, "message.timeout.ms": 600_000}
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def burst(self, count: int) -> None:
        """Write so many numbers, of which each is written once its report is there."""
        with self.lock:
            for _ in range(count):
                number, self._next = self._next, self._next + 1
                self._producer.produce(
                    self._topic,
                    str(number).encode(),
                    partition=number % _PARTITIONS,
                    on_delivery=lambda error, said, number=number: self._note(number, error, said),
                )
            assert self._producer.flush(600) == 0

    def start(self) -> None:
        """Write until :meth:`end`."""
        self._thread.start()

    def end(self) -> None:
        """Write no more."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.05):
            self.burst(50)

    def _note(self, number: int, error: Any, said: Any) -> None:
        if error is None:
            self.written[number] = Written(self.life, said.partition(), said.offset())


class Ordeal(Play):
    """The lives of a driver under load, with troubles from dice."""

    def __init__(self, kafka: Any, topic: str, folder: Path, sink: str = "") -> None:
        super().__init__(kafka, topic, folder, sink)
        self.load = Load(kafka, topic)
        self.troubles: Counter[str] = Counter()
        self.cut_to: Counter[tuple[int, int]] = Counter()
        """By life of the topic and partition: before which offset the log was cut."""

    def suffer(self, dice: random.Random, kinds: tuple[str, ...], secs: float) -> None:
        """Let it run for so long, with one trouble after the other; then let it read all."""
        driver = self.start("--endless")
        self.load.start()
        try:
            self._await_work(driver)  # the log's start at the very first look is no loss
            deadline = time.monotonic() + secs
            while time.monotonic() < deadline:
                if dice.random() < 0.5:  # else it may be struck while it starts
                    self._await_work(driver)
                time.sleep(dice.uniform(1.0, 10.0))
                assert driver.poll() is None, self.last_words()
                kind = dice.choice(kinds)
                self.troubles[kind] += 1
                if kind in ("driver", "both", "reset"):
                    driver.kill()
                    driver.wait()
                self._strike(kind, dice)
                if driver.poll() is not None:
                    driver = self.start("--endless")
        finally:
            self.load.end()
            driver.kill()
            driver.wait()
        self.finish()

    def _await_work(self, driver: "subprocess.Popen[bytes]") -> None:
        before = self._processed()
        wait_until(lambda: driver.poll() is not None or self._processed() > before)

    def finish(self) -> None:
        """Let a last driver read to the end of the topic."""
        driver = self.start()
        try:
            wait_until(lambda: driver.poll() is not None, secs=_END_SECS)
        finally:
            driver.kill()
            driver.wait()
        assert driver.returncode == 0, self.last_words()

    def lost(self) -> set[int]:
        """The numbers that the log may have lost before they were read."""
        return {
            number
            for number, (life, partition, offset) in self.load.written.items()
            if life < self.load.life or offset < self.cut_to[life, partition]
        }

    def counted_as_gone(self) -> int:
        """How many offsets the last statistics call expired."""
        said = re.findall(
            r"^gone (\{.*\})$", (self.folder / "driver.log").read_text(), re.MULTILINE
        )
        return sum(json.loads(said[-1]).values())

    def dead(self) -> set[int]:
        """The numbers in dead letters that have their record."""
        found = [
            dict(zip(one["fields"], one["values"] or (), strict=False)) for one in self._letters()
        ]
        return {int(values["value"]) for values in found if values.get("value") is not None}

    def expired_letters(self) -> int:
        """How many dead letters are of records that the log had lost."""
        return sum(one["failure"]["reason"] == "expired" for one in self._letters())

    def _letters(self) -> list[dict[str, Any]]:
        files = (self.folder / "checkpoint/sparkstorm/dead-letters").glob("*.jsonl")
        lines = [line for path in files for line in path.read_text().splitlines()[1:]]
        return [json.loads(line) for line in lines]

    def _strike(self, kind: str, dice: random.Random) -> None:
        match kind:
            case "broker" | "both":
                self._kafka.server.kill()
                time.sleep(dice.uniform(0.0, 3.0))
                self._kafka.server.start()
            case "delete":
                number = dice.randrange(_PARTITIONS)
                low = max(0, self._kafka.end(self._topic, number) - dice.randint(0, 500))
                self._kafka.delete_before(self._topic, low, number)
                place = (self.load.life, number)
                self.cut_to[place] = max(self.cut_to[place], low)
            case "remake":
                with self.load.lock:
                    self._kafka.delete_topic(self._topic)
                    self.load.life += 1
                    self._kafka.topic(_PARTITIONS, name=self._topic)
            case "reset":
                low = self._kafka.start(self._topic)
                offset = dice.randint(low, self._kafka.end(self._topic))
                committed, _ = self._kafka.committed("orders", self._topic)
                self._kafka.commit("orders", self._topic, max(low, min(offset, committed)))


def hopeless(numbers: Any) -> set[int]:
    """The numbers that fail for ever."""
    return {number for number in numbers if number % 1000 == 7}


@pytest.mark.timeout(600)
def test_nothing_is_processed_twice_when_nothing_is_killed(
    mortal_kafka: Any, tmp_path: Path
) -> None:
    """The rules' own test: without troubles each record is processed once, or a dead letter."""
    play = Ordeal(mortal_kafka, mortal_kafka.topic(_PARTITIONS), tmp_path)
    play.load.burst(5000)
    play.finish()
    given = set(play.load.written)
    assert sorted(play.witnessed()) == sorted(given - hopeless(given))
    assert play.dead() == hopeless(given)


@pytest.mark.timeout(_SECS + 2 * _END_SECS)
@pytest.mark.parametrize(
    "kinds",
    [_KILLS, _KILLS + _CUTS, (*_KILLS, *_CUTS, "remake")],
    ids=["kills", "cuts", "new-topics"],
)
def test_each_record_is_processed_or_accounted_for(
    mortal_kafka: Any, tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    """At least once: what is missing was lost by the log, and counted.

    Nobody can count the records of a deleted topic whose end no driver has seen.
    """
    seed = random.randrange(10**6)
    play = Ordeal(mortal_kafka, mortal_kafka.topic(_PARTITIONS), tmp_path)
    play.suffer(random.Random(seed), kinds, _SECS)
    given, seen, dead = set(play.load.written), set(play.witnessed()), play.dead()
    missing = given - seen - dead
    counted = play.counted_as_gone() + play.expired_letters()
    story = (
        f"seed {seed}, {dict(play.troubles)}, {len(given)} written, {len(seen)} processed, "
        f"{len(dead)} dead letters, {len(missing)} missing, {counted} counted as gone"
    )
    (tmp_path / "story.txt").write_text(story)
    assert given, story
    assert missing <= play.lost(), f"{story}: {sorted(missing - play.lost())[:10]}"
    assert "remake" in play.troubles or len(missing) <= counted, story
    assert hopeless(given) - play.lost() <= dead, story
    assert not hopeless(given) & seen, story


@pytest.mark.timeout(_SECS + 2 * _END_SECS)
def test_each_record_is_written_once_under_random_kills(mortal_kafka: Any, tmp_path: Path) -> None:
    """Exactly once: each number is in the sink's topic once, and the counts have no gap."""
    seed, target = random.randrange(10**6), mortal_kafka.topic()
    play = Ordeal(mortal_kafka, mortal_kafka.topic(_PARTITIONS), tmp_path, sink=target)
    play.suffer(random.Random(seed), _KILLS, _SECS)
    rows = [json.loads(message.value()) for message in mortal_kafka.read_to_end(target)]
    given = set(play.load.written)
    story = f"seed {seed}, {dict(play.troubles)}, {len(given)} written, {len(rows)} in the sink"
    (tmp_path / "story.txt").write_text(story)
    assert sorted(row[0] for row in rows) == sorted(given - hopeless(given)), story
    counts: dict[str, list[int]] = {}
    for _, digits, count in rows:
        counts.setdefault(digits, []).append(count)
    assert all(sorted(found) == [*range(1, len(found) + 1)] for found in counts.values()), story
    assert play.dead() == hopeless(given), story
