"""The memory of a running word count: of the driver, the JVM, and Spark's Python workers.

``python -m benchmarks.process_memory`` runs the word count with state on two cores, and prints for
each kind of process how many there are, their resident memory in sum (pages that several processes
share are counted for each of them), and their proportional share (PSS), which is the real memory.
"""

import os
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import sparkstorm as ss
from benchmarks.ours import SentenceSpout, SplitSentence, WordCount
from benchmarks.spark_settings import PARALLELISM, spark_session
from sparkstorm.testing import wait_until

SENTENCES = 50_000_000
BATCHES = 12
_MB = 1024


def kinds_of(root: int) -> dict[str, list[tuple[int, int]]]:
    """Return (resident, proportional) kilobytes of each process below ``root``, by its kind."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(stat[1])
            except OSError:  # it has ended meanwhile
                continue
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for pid in parents:
        at = pid
        while at not in (root, 0):
            at = parents.get(at, 0)
        if at == root:
            found[_kind(pid, root)].append(_kilobytes(pid))
    return found


def _kind(pid: int, root: int) -> str:
    if pid == root:
        return "driver"
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return "JVM" if b"java" in command.split(b"\0")[0] else "Python workers"


def _kilobytes(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    facts = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return facts["Rss"], facts["Pss"]


def main() -> int:
    """Run until the sizes are steady, and print them."""
    builder = ss.TopologyBuilder()
    builder.set_spout("sentences", SentenceSpout(SENTENCES))
    split = builder.set_bolt("split", SplitSentence(), parallelism=PARALLELISM)
    split.local_or_shuffle_grouping("sentences")
    count = builder.set_bolt("count", WordCount(), parallelism=PARALLELISM)
    count.fields_grouping("split", ["word"])
    with spark_session("memory") as session, TemporaryDirectory() as folder:
        run = ss.submit(builder.create_topology(), session=session, checkpoint=f"{folder}/here")
        wait_until(lambda: run.statistics().batches >= BATCHES)
        found = kinds_of(os.getpid())
        run.stop(drain=False)
    for kind, each in sorted(found.items()):
        resident, real = (sum(one[place] for one in each) // _MB for place in (0, 1))
        line = f"{kind:15} {len(each):2} processes  {resident:5} MB resident  {real:5} MB real\n"
        sys.stdout.write(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
