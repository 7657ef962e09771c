"""The price of forcing the driver's files to the disk: the time of a small batch.

``python -m benchmarks.fsync [rounds] [folder]``. A topology with batches of ten numbers runs on a
local Spark, in turns with ``topology.checkpoint.fsync`` and without, on checkpoints below the
folder (by default the current folder; the result depends on its disk). Then the driver's files
alone: one write of the size of a plan. Prints the medians and the folder.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

import sparkstorm as ss
from sparkstorm.checkpoint.files import LocalFiles
from sparkstorm.spark.driver.session import make_session

BATCHES = 60
WARM = 10
MESSAGES = 10
WRITES = 300
PLAN_BYTES = 2_000


class Numbers(ss.PartitionedSpout):
    """Numbers, ten in a split, without end."""

    outputs = "n long"

    def __init__(self) -> None:
        self._next = 0

    def plan(self, limit: int) -> list[ss.Split]:
        self._next += 1
        return [ss.Split(count=MESSAGES, data={})]

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return [(n,) for n in range(split.count)]

    def snapshot(self) -> int:
        return self._next

    def restore(self, snapshot: int) -> None:
        self._next = snapshot


class Pass(ss.BasicBolt):
    """Acks every tuple."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing: a basic bolt acks by itself."""


def batch_secs(session: SparkSession, folder: Path, *, fsync: bool) -> float:
    """Run once; return the seconds of a batch, the first few left out."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("pass", Pass()).shuffle_grouping("numbers")
    config = ss.Config(
        checkpoint_fsync=fsync, batch_min_messages=MESSAGES, batch_max_messages=MESSAGES
    )
    checkpoint = tempfile.mkdtemp(dir=folder)
    try:
        with ss.submit(
            builder.create_topology(),
            name="fsync",
            config=config,
            session=session,
            checkpoint=checkpoint,
        ) as run:
            moments = []
            for batches in (WARM, WARM + BATCHES):
                while run.statistics().batches < batches:
                    time.sleep(0.001)
                moments.append(time.monotonic())
            run.stop(drain=False)
    finally:
        shutil.rmtree(checkpoint)
    return (moments[1] - moments[0]) / BATCHES


def write_secs(folder: Path, *, fsync: bool) -> float:
    """Write files as plans are written; return the seconds of one write."""
    place = Path(tempfile.mkdtemp(dir=folder))
    files, data = LocalFiles(place, fsync=fsync), bytes(PLAN_BYTES)
    taken = []
    for number in range(WRITES):
        began = time.perf_counter()
        files.write(f"plans/0-{number}", data)
        taken.append(time.perf_counter() - began)
    shutil.rmtree(place)
    return statistics.median(taken)


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    chosen = parser.parse_args()
    rounds, folder = chosen.rounds, chosen.folder
    session = make_session("fsync", "local[2]")
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * rounds):
        fsync = number % 2 == 0
        taken[fsync].append(batch_secs(session, folder, fsync=fsync))
    session.stop()
    for fsync, secs in taken.items():
        one = write_secs(folder, fsync=fsync)
        print(
            f"{'with' if fsync else 'without'} fsync: a batch of {MESSAGES} messages "
            f"{statistics.median(secs) * 1e3:.1f} ms (from {min(secs) * 1e3:.1f} to "
            f"{max(secs) * 1e3:.1f}), a file of {PLAN_BYTES:,} bytes {one * 1e3:.2f} ms"
        )
    print(f"{rounds} rounds of {BATCHES} batches each way, in {folder.resolve()}")


if __name__ == "__main__":
    main()
