"""The driver program of the cluster tests: word count on a master, and what became of it as JSON.

Run as ``python count_words.py MASTER TEXT RESULT [PID…]``. If process ids of workers are given, one
executor that is their child is killed as soon as a batch is committed and the next one runs.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

import sparkstorm as ss
from sparkstorm.spouts import LinesSpout
from sparkstorm.testing import PATIENCE_SECS
from tests.cluster.executors import executors_of
from tests.tools.word_count import word_count


def main(master: str, text: str, result: str, *workers: str) -> None:
    counts: dict[str, int] = {}
    tapped = [0]

    def on_tap(key: object, task: int, rows: list[tuple[str, int]]) -> None:
        tapped[0] += len(rows)
        for word, count in rows:
            counts[word] = max(count, counts.get(word, 0))

    killed = []
    config = {"batch_max_messages": 3_000, "partitions": 2}
    with ss.submit(
        word_count(LinesSpout(text)),
        name="words",
        master=master,
        config=config,
        taps=["count"],
        on_tap=on_tap,
    ) as run:
        if workers:
            tick = threading.Event()
            while not run.statistics().batches:
                run._check()
                tick.wait(0.02)
            killed = executors_of([int(pid) for pid in workers])[:1]
            os.kill(killed[0], signal.SIGKILL)
        drained = run.wait_until_drained(PATIENCE_SECS)
        statistics = run.statistics()
    answer = {
        "counts": counts,
        "tapped": tapped[0],
        "killed": killed,
        "drained": drained,
        "acked": statistics.acked,
        "failed": statistics.failed,
        "pending": statistics.pending,
        "batches": statistics.batches,
    }
    Path(result).write_text(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
