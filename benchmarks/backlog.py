"""A backlog of lines, worked off with the default settings where each batch costs much time.

``python -m benchmarks.backlog [--partitions 24] [--lines 300000] [--master local[2]]``. Many
partitions on few cores cost each batch seconds, however few messages the batch holds; a checkpoint
far away does the same. Prints each batch, then the messages per second over the whole run.
Exit code 1 if not all were acked.
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import sparkstorm as ss
from benchmarks.ours import EachWordCount, SplitSentence
from benchmarks.workload import SENTENCES
from sparkstorm.spouts import LinesSpout

_LOOK_SECS = 0.01


def topology(path: Path, tasks: int) -> ss.Topology:
    """Wire a word count that tells each count."""
    builder = ss.TopologyBuilder()
    builder.set_spout("sentences", LinesSpout(path))
    split = builder.set_bolt("split", SplitSentence(), parallelism=tasks)
    split.local_or_shuffle_grouping("sentences")
    counted = builder.set_bolt("count", EachWordCount(), parallelism=tasks)
    counted.fields_grouping("split", ["word"])
    return builder.create_topology()


def work_off(path: Path, partitions: int, master: str, limit_secs: float) -> ss.Statistics:
    """Process a file; print each batch as it ends."""
    config, started = {"partitions": partitions}, time.monotonic()
    with ss.submit(topology(path, partitions), master=master, config=config) as run:
        seen, ended = 0, started
        while time.monotonic() < started + limit_secs:
            drained, now = run.wait_until_drained(timeout=0), run.statistics()
            if now.batches > seen:
                before, ended, seen = ended, time.monotonic(), now.batches
                print(
                    f"{ended - started:7.1f} s  batch {seen:3}: {now.batch_messages:9,} messages, "
                    f"job {now.batch_secs:6.2f} s, from the one before {ended - before:6.2f} s",
                    flush=True,
                )
            if drained:
                break
            time.sleep(_LOOK_SECS)
        secs, done = time.monotonic() - started, run.statistics()
        print(f"{done.acked:,} acked in {secs:.1f} s: {done.acked / secs:,.0f} a second")
        run.stop(drain=False)
        return done


def main() -> int:
    """Read the arguments, write the lines and work them off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--lines", type=int, default=300_000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--limit-secs", type=float, default=300.0)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines.txt"
        times = -(-given.lines // len(SENTENCES))
        lines = (SENTENCES * times)[: given.lines]
        path.write_text("".join(f"{line}\n" for line in lines))
        done = work_off(path, given.partitions, given.master, given.limit_secs)
    return 0 if done.acked == given.lines else 1


if __name__ == "__main__":
    sys.exit(main())
