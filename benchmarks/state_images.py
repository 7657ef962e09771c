"""Images of state in worker processes: their number and memory, and the price of a bound.

``python -m benchmarks.state_images [MASTER [MIB ...]]``: local[4] and the bounds of 1024, 40 and 0
MiB a process unless given. For each bound, twelve stateful tasks put 600,000 keys, then count
random keys. Prints how many runs of a task were in the process that ran the task before. Then,
for each process at the end: its images, their estimated bytes, its resident set, how many images
it read from the start, and its CPU time. With ``local-cluster[4,1,1024]``, and ``.`` in PYTHONPATH,
there are four executors of one core.
"""

import argparse
import os
import random
import tempfile
import time
from typing import Any, NamedTuple

import pyarrow as pa

import sparkstorm as ss
from benchmarks.large_state import mib, resident_bytes
from benchmarks.numbered_spout import NumberedSpout
from benchmarks.spark_settings import SPARK_SETTINGS, spark_session
from sparkstorm.spark.worker import runtime
from sparkstorm.state.image import StateImage

KEYS = 600_000
TOUCHED = 1_000_000
TASKS = 12
PARTITIONS = 4
BATCH = 20_000
_PATIENCE_SECS = 3600


class Keys(NumberedSpout):
    """Emits each key once, then random keys."""

    outputs = "n long"

    def rows(self, first: int, end: int) -> pa.RecordBatch:
        """Return the keys of a range of messages."""
        dice = random.Random(first)
        numbers = [n if n < KEYS else dice.randrange(KEYS) for n in range(first, end)]
        return pa.record_batch([pa.array(numbers, pa.int64())], ["n"])


class Seen(NamedTuple):
    """A task's view of its process at the end of a batch."""

    task: int
    batch: int
    pid: int
    images: int
    estimate: int
    resident: int
    reads: int
    cpu: float


class Keep(ss.StatefulBolt):
    """Counts each key; at the end of a batch it emits figures of its process."""

    outputs = (
        "task long, batch long, pid long, images long, estimate long, resident long, reads long, "
        "cpu double"
    )

    def init_state(self, state: ss.State) -> None:
        """Count how many images this process reads from the start."""
        super().init_state(state)
        count_reads()

    def execute(self, tup: ss.Tuple) -> None:
        """Count a key."""
        self.state.add(f"user/{tup['n']}")
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        """Emit the figures."""
        [shop] = runtime._WORKSHOPS
        images = shop._images
        self.collector.emit(
            Seen(
                self.context.task,
                self.context.batch,
                os.getpid(),
                len(images),
                images.bytes,
                resident_bytes("self"),
                StateImage._read_anew.reads,  # type: ignore[attr-defined]
                time.process_time(),
            )
        )


def count_reads() -> None:
    """Count each call that reads a snapshot, once in a process."""
    read = StateImage._read_anew
    if hasattr(read, "reads"):
        return

    def counted(*args: Any) -> None:
        counted.reads += 1  # type: ignore[attr-defined]
        read(*args)

    counted.reads = 0  # type: ignore[attr-defined]
    StateImage._read_anew = counted  # type: ignore[method-assign]


def main() -> None:
    """Measure each bound on a session of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("master", nargs="?", default="local[4]")
    parser.add_argument("bounds", nargs="*", type=int, default=(1024, 40, 0), metavar="mib")
    chosen = parser.parse_args()
    SPARK_SETTINGS["spark.master"] = chosen.master
    for bound in chosen.bounds:
        print(f"{chosen.master}, {bound} MiB")
        report(run_once(bound * 2**20))


def run_once(bound: int) -> list[Seen]:
    """Run the topology and return the figures that its tasks emitted."""
    builder = ss.TopologyBuilder()
    builder.set_spout("keys", Keys(KEYS + TOUCHED))
    builder.set_bolt("keep", Keep(), parallelism=TASKS).fields_grouping("keys", ["n"])
    seen: list[Seen] = []
    with spark_session("images") as session, tempfile.TemporaryDirectory() as folder:
        run = ss.submit(
            builder.create_topology(),
            name="images",
            config={
                "state_memory_bytes": bound,
                "partitions": PARTITIONS,
                "batch_max_messages": BATCH,
            },
            session=session,
            checkpoint=folder,
            taps=["keep"],
            on_tap=lambda key, task, rows: seen.extend(Seen(*row) for row in rows),
        )
        assert run.wait_until_drained(_PATIENCE_SECS)
        run.stop()
    return seen


def report(seen: list[Seen]) -> None:
    """Print how tasks moved about, and each process's figures at the end."""
    seen.sort(key=lambda one: one.batch)
    where: dict[int, int] = {}
    stayed = 0
    for one in seen:
        stayed += where.get(one.task) == one.pid
        where[one.task] = one.pid
    print(f"  in the same process as before: {stayed} of {len(seen) - len(where)} runs")
    for pid, last in {one.pid: one for one in seen}.items():
        print(
            f"  process {pid}: {last.images} images of about {mib(last.estimate)}, resident "
            f"{mib(last.resident)}, {last.reads} read from the start, CPU {last.cpu:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
