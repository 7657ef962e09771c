"""The price of a window's results: CPU time, memory and packets by the number of results.

``python -m benchmarks.window_results [tuples] [results …]``, 20,000 tuples with 1, 100 and 200
results unless given. A window of so many tuples, each a message, emits so many results for four
further tasks; on the in-process runner, in one batch, each case in a process of its own. Prints
the CPU seconds of the batch, the most memory it took, the largest packet, and all packets
between the window and the ackers. Exit code 1 if a message was not acked.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

import sparkstorm as ss
from benchmarks.large_state import mib
from benchmarks.numbered_spout import NumberedSpout
from sparkstorm.bolts import CountWindow, Window, WindowBolt
from sparkstorm.packets.packet import read_head
from sparkstorm.planning.plan import StageKind
from sparkstorm.tasks.worker import StageJob
from sparkstorm.testing import LocalRunner

TUPLES = 20_000
RESULTS = (1, 100, 200)


class Numbers(NumberedSpout):
    """Emits the numbers."""

    outputs = "n long"

    def rows(self, first: int, end: int) -> pa.RecordBatch:
        """Return the numbers of a range."""
        return pa.record_batch([pa.array(range(first, end), pa.int64())], ["n"])


class Rank(WindowBolt):
    """Emits a number of results for a window of tuples."""

    outputs = "n long"

    def __init__(self, tuples: int, results: int) -> None:
        self.window = CountWindow(tuples)
        self.results = results

    def execute_window(self, window: Window, collector: ss.BasicCollector) -> None:
        """Emit the first tuples."""
        for number in range(self.results):
            collector.emit([number])


class Store(ss.BasicBolt):
    """The last bolt."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing: a basic bolt acks by itself."""


def topology(tuples: int, results: int) -> ss.Topology:
    """Wire a window and the bolt that takes its results."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", Numbers(tuples))
    builder.set_bolt("rank", Rank(tuples, results)).global_grouping("numbers")
    builder.set_bolt("store", Store(), parallelism=4).shuffle_grouping("rank")
    return builder.create_topology()


def watch_packets() -> list[int]:
    """Return a list that receives the size of each packet that a bolt sends from now on."""
    sizes: list[int] = []
    run = StageJob.run

    def watched(job: StageJob, packets: Iterable[bytes], loads: Any = ()) -> Any:
        sent, reports = run(job, packets, loads)
        if job.stage.kind not in (StageKind.READ, StageKind.ACK):
            sizes.extend(len(data) for _, data in sent if read_head(data).source > 1)
        return sent, reports

    StageJob.run = watched  # type: ignore[method-assign]
    return sizes


def measure(tuples: int, results: int) -> dict[str, float]:
    """Run one batch."""
    sizes = watch_packets()
    every = dict.fromkeys(("batch_min_messages", "batch_max_messages"), tuples)
    config = ss.Config(**every, max_spout_pending=tuples, acker_executors=4)  # type: ignore[arg-type]
    before, started = peak_bytes(), time.process_time()
    with LocalRunner(topology(tuples, results), config=config) as runner:
        statistics = runner.run_until_idle()
    return {
        "acked": statistics.acked,
        "cpu": time.process_time() - started,
        "memory": peak_bytes() - before,
        "largest": max(sizes),
        "packets": sum(sizes),
    }


def peak_bytes() -> int:
    """Return the most memory that this process has taken."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Measure each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tuples", nargs="?", type=int, default=TUPLES)
    parser.add_argument("results", nargs="*", type=int, default=RESULTS)
    chosen = parser.parse_args()
    tuples, cases = chosen.tuples, chosen.results
    wrong = False
    for results in cases:
        command = [sys.executable, "-m", "benchmarks.window_results", "--one"]
        done = subprocess.run(
            [*command, str(tuples), str(results)], stdout=subprocess.PIPE, text=True, check=True
        )
        found = json.loads(done.stdout)
        wrong |= found["acked"] != tuples
        print(
            f"{tuples:,} tuples, {results:,} results: {found['cpu']:.1f} s of CPU, "
            f"{mib(found['memory'])}; largest packet {found['largest'] / 1024:,.0f} KiB, "
            f"all {mib(found['packets'])}; {found['acked']:,} acked",
            flush=True,
        )
    return int(wrong)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*map(int, sys.argv[2:]))))
    else:
        sys.exit(main())
