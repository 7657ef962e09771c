"""A program that runs shell components on Spark until it is ended: python endless.py CHILDREN.

Prints the process ids of the JVM and of all children of one kind, then ``ready``.
"""

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from pyspark import SparkContext

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt, ShellSpout


class Words(ss.Spout):
    """A word each hundredth of a second, for ever."""

    outputs = ("word",)

    def open(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        self.collector, self.sent = collector, 0

    def next_tuple(self) -> None:
        self.sent += 1
        self.collector.emit([f"w{self.sent % 7}"], msg_id=self.sent)
        time.sleep(0.01)


def topology(children: str) -> ss.Topology:
    roles = [sys.executable, "roles.py"]
    builder = ss.TopologyBuilder()
    builder.set_spout("words", Words())
    spout = ShellSpout([*roles, "told"], outputs=["pid"], resources=children)
    builder.set_spout("told", spout)
    count = ShellBolt([*roles, "count"], outputs=["word", "n", "pid"], resources=children)
    builder.set_bolt("count", count, 2).fields_grouping("words", ["word"])
    return builder.create_topology()


def main() -> None:
    pids: set[int] = set()

    def tap(key: Any, task: int, rows: Sequence[Sequence[Any]]) -> None:
        pids.update(row[-1] for row in rows)
        if len(pids) == 3:
            context: Any = SparkContext._active_spark_context
            jvm = context._jvm.java.lang.ProcessHandle.current().pid()
            print(f"jvm {jvm}", flush=True)  # noqa: T201
            print(f"children {' '.join(map(str, pids))}", flush=True)  # noqa: T201
            print("ready", flush=True)  # noqa: T201
            pids.add(os.getpid())

    run = ss.submit(
        topology(sys.argv[1]), master="local[2]", taps=["count", "told"], on_tap=tap, name="endless"
    )
    with run:
        run.await_termination()


if __name__ == "__main__":
    main()
