"""The driver program of a message that takes all the memory that its worker may have.

Run as ``python hoard.py MASTER MESSAGES POISON RESULT``: numbers pass through a bolt that hoards
memory for one of them, on workers with a limit (``spark.executor.pyspark.memory``).
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import sparkstorm as ss
from sparkstorm.spouts import IteratorSpout
from sparkstorm.testing import PATIENCE_SECS

_MORE = 64 * 1024 * 1024


class Hoarder(ss.BasicBolt):
    """Passes numbers on, and asks for more and more memory when it gets the poison."""

    outputs = "n int"

    def __init__(self, poison: int) -> None:
        self.poison = poison

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        hoard: list[bytes] = []
        while tup["n"] == self.poison:
            hoard.append(b"x" * _MORE)
        collector.emit([tup["n"]])


def main(master: str, messages: int, poison: int, result: Path) -> None:
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", IteratorSpout(range(messages), "n int"))
    builder.set_bolt("hoarder", Hoarder(poison), 2).shuffle_grouping("numbers")
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the session is made here, not by submit
    session = (
        SparkSession.builder.master(master)
        .config("spark.executor.pyspark.memory", "1g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    seen: list[int] = []
    with ss.submit(
        builder.create_topology(),
        name="hoard",
        session=session,
        config={"max_retries": 1, "retry_backoff_secs": 0.1, "partitions": 2},
        taps=["hoarder"],
        on_tap=lambda key, task, rows: seen.extend(n for (n,) in rows),
    ) as run:
        drained = run.wait_until_drained(PATIENCE_SECS)
        statistics = run.statistics()
    answer = {
        "drained": drained,
        "seen": seen,
        "acked": statistics.acked,
        "given_up": statistics.given_up,
        "failures": statistics.failures,
        "dead_letters": statistics.dead_letters,
    }
    result.write_text(json.dumps(answer))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
