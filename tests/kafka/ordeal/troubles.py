"""An ordeal: a topic under load, and troubles for the driver that reads it, by dice."""

import random
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka as ck

from sparkstorm.testing import wait_until
from tests.crashes import processes
from tests.kafka.ordeal.evidence import Book, Record, Scribe, Spot, read_book
from tests.kafka.test_kill import Play

__all__ = ["CUTS", "KILLS", "PARTITIONS", "Load", "Ordeal"]

PARTITIONS = 2
KILLS = ("driver", "broker", "both", "worker")
CUTS = ("delete", "reset")
_END_SECS = 1200.0


class Load:
    """A thread that writes numbers, and writes down where each of them is."""

    def __init__(self, kafka: Any, topic: str, scribe: Scribe) -> None:
        self.lives = [kafka.topic_id(topic)]
        """The ids of the topics of the name, in order."""
        self.lock = threading.Lock()
        """Held during a burst; whoever holds it may delete the topic."""
        self._topic = topic
        self._scribe = scribe
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
                    partition=number % PARTITIONS,
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
            spot = Spot(self.lives[-1], said.partition(), said.offset())
            self._scribe.written(number, Record(spot, time.time()))


class Ordeal(Play):
    """The lives of a driver under load, with troubles from dice."""

    def __init__(self, kafka: Any, topic: str, folder: Path, sink: str = "") -> None:
        super().__init__(kafka, topic, folder, sink)
        self._scribe = Scribe(folder)
        self.load = Load(kafka, topic, self._scribe)
        self.troubles: Counter[str] = Counter()

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
                begin = time.time()
                if kind in ("driver", "both", "reset"):
                    driver.kill()
                    driver.wait()
                told = self._strike(kind, dice, driver.pid)
                self._scribe.trouble(kind, begin=begin, end=time.time(), pid=driver.pid, **told)
                if driver.poll() is not None:
                    driver = self.start("--endless")
        finally:
            self.load.end()
            driver.kill()
            driver.wait()
        self.finish()

    def finish(self) -> None:
        """Let a last driver read to the end of the topic."""
        driver = self.start()
        try:
            wait_until(lambda: driver.poll() is not None, secs=_END_SECS)
        finally:
            driver.kill()
            driver.wait()
            self._scribe.close()
        assert driver.returncode == 0, self.last_words()

    def book(self) -> Book:
        """Read the evidence, once it is over."""
        return read_book(self.folder, self.load.lives)

    def _await_work(self, driver: "subprocess.Popen[bytes]") -> None:
        before = self._processed()
        wait_until(lambda: driver.poll() is not None or self._processed() > before)

    def _strike(self, kind: str, dice: random.Random, pid: int) -> dict[str, Any]:
        """Do it; return its particulars."""
        match kind:
            case "worker":
                workers = processes.find(pid, dice.choice(("worker", "daemon")))
                return {"killed": [one for one in workers if processes.kill(one)]}
            case "broker" | "both":
                self._kafka.server.kill()
                time.sleep(dice.uniform(0.0, 3.0))
                self._kafka.server.start()
            case "delete":
                number = dice.randrange(PARTITIONS)
                low = max(0, self._kafka.end(self._topic, number) - dice.randint(0, 500))
                self._kafka.delete_before(self._topic, low, number)
                return {"partition": number, "low": low}
            case "remake":
                return self._remake()
            case "reset":
                low = self._kafka.start(self._topic)
                offset = dice.randint(low, self._kafka.end(self._topic))
                committed, text = self._kafka.committed("orders", self._topic)
                ours = self.load.lives[-1] in text  # else it is a late one of the topic before
                offset = max(low, min(offset, committed)) if ours else low
                self._kafka.commit("orders", self._topic, offset)
                return {"partition": 0, "committed": committed, "offset": offset}
        return {}

    def _remake(self) -> dict[str, Any]:
        """Delete the topic and make another one of the name."""
        with self.load.lock:
            ends = [self._kafka.end(self._topic, number) for number in range(PARTITIONS)]
            self._kafka.delete_topic(self._topic)
            self._kafka.topic(PARTITIONS, name=self._topic)
            self.load.lives.append(self._kafka.topic_id(self._topic))
            old, new = self.load.lives[-2:]
        return {"old": old, "new": new, "ends": ends}
