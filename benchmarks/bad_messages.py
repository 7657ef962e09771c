"""The price of bad messages for good ones: latency with and without them, run by run.

``python -m benchmarks.bad_messages [rounds]``. An enrichment topology of 10,000 messages, given out
at a steady rate; in every second run 1 % of them fail once and 0.1 % always. Prints the median time
from emit to ack of the good messages, and the ratio. The target is at most 1.2.
"""

import argparse
import logging
import statistics
import time
from collections.abc import Hashable, Sequence

import sparkstorm as ss
from sparkstorm.components.context import TaskContext
from sparkstorm.spark.driver.session import make_session
from sparkstorm.spouts import ReplayingSpout
from sparkstorm.tasks.report import LINES

MESSAGES = 10_000
PER_SEC = 1_000.0


class Orders(ReplayingSpout):
    """Gives out numbers at a steady rate."""

    outputs = "n long"

    def open(self, config: ss.Config, context: TaskContext, collector: ss.SpoutCollector) -> None:
        super().open(config, context, collector)
        self._started = time.monotonic()
        self._emitted: dict[int, float] = {}
        self.latencies: dict[int, float] = {}

    def next_message(self) -> tuple[Hashable, Sequence[int]] | None:
        number, now = len(self._emitted), time.monotonic()
        if number == MESSAGES or now - self._started < number / PER_SEC:
            return None
        self._emitted[number] = now
        return number, [number]

    def ack(self, msg_id: Hashable) -> None:
        super().ack(msg_id)
        assert isinstance(msg_id, int)
        self.latencies[msg_id] = time.monotonic() - self._emitted[msg_id]

    def exhausted(self) -> bool:
        return len(self._emitted) == MESSAGES and not self.kept


class Enrich(ss.BasicBolt):
    """Looks a number up; if asked to, fails some numbers once and some always."""

    outputs = "n long, customer string"

    def __init__(self, with_bad_ones: bool) -> None:
        self.with_bad_ones = with_bad_ones

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        n = tup["n"]
        if self.with_bad_ones and (n % 1_000 == 500 or (n % 100 == 7 and tup.attempt == 1)):
            raise ValueError(f"{n} has no customer")
        collector.emit([n, f"customer {n}"])


def good(number: int) -> bool:
    """Whether a message passes in every run."""
    return number % 1_000 != 500 and number % 100 != 7


def measure(session: object, with_bad_ones: bool) -> tuple[float, int]:
    """Run once; return the good messages' median latency, and the number of dead letters."""
    builder = ss.TopologyBuilder()
    builder.set_spout("orders", Orders())
    builder.set_bolt("enrich", Enrich(with_bad_ones), parallelism=2).shuffle_grouping("orders")
    config = ss.Config(retry_backoff_secs=0.2, max_retries=3, dead_letters="files")
    topology = builder.create_topology()
    logging.getLogger(LINES).setLevel(logging.CRITICAL)
    run = ss.submit(topology, name="enrich", config=config, session=session)
    assert run.wait_until_drained(300)
    found = run.stop()
    given_up = MESSAGES // 1_000 if with_bad_ones else 0
    assert (found.acked, found.dead_letters) == (MESSAGES - given_up, given_up), found
    (task,) = run._coordinator.hosted.values()
    assert isinstance(task.spout, Orders)
    # the first seconds are Spark's start
    measured = task.spout.latencies.items()
    latencies = [secs for n, secs in measured if good(n) and n > 2 * PER_SEC]
    return statistics.median(latencies), found.dead_letters


def main() -> None:
    """Print each pair of runs, then the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    rounds = parser.parse_args().rounds
    session = make_session("bad-messages", "local[2]")
    without, with_bad = [], []
    try:
        measure(session, False)  # warms up the JVM and the workers
        for number in range(rounds):
            without.append(measure(session, False)[0])
            with_bad.append(measure(session, True)[0])
            print(f"{number}: {without[-1]:.3f} s without, {with_bad[-1]:.3f} s with bad ones")
    finally:
        session.stop()
    ratio = statistics.median(with_bad) / statistics.median(without)
    print(f"ratio of the medians: {ratio:.2f}")


if __name__ == "__main__":
    main()
