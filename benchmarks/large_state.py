"""The price of a large state: filling it, starting with it, its memory.

``python -m benchmarks.large_state [keys]``, a million unless given. For each back end a topology
puts that many keys (two tasks, local[2]). Another process, as after a restart, times a first batch
that touches a few keys: once on that checkpoint, once on a checkpoint with these few keys alone.
The difference is the price of the state at the start. Memory is the resident set of the two Python
workers together, and of the JVM, at the end of that batch.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import sparkstorm as ss
from benchmarks.numbered_spout import NumberedSpout
from benchmarks.spark_settings import spark_session

KEYS = 1_000_000
TOUCHED = 100
_PATIENCE_SECS = 3600
_PAGE_BYTES = 4096


class Numbers(NumberedSpout):
    """Emits the numbers."""

    outputs = "n long"

    def rows(self, first: int, end: int) -> pa.RecordBatch:
        """Return the numbers of a range."""
        return pa.record_batch([pa.array(range(first, end), pa.int64())], ["n"])


class Keep(ss.StatefulBolt):
    """Counts each key; at the end of a batch emits the number of keys and the process's memory."""

    outputs = "task long, keys long, bytes long"

    def execute(self, tup: ss.Tuple) -> None:
        """Count a key."""
        key = f"user/{tup['n']}"
        self.state.put(key, self.state.get(key, 0) + 1)
        self.collector.ack(tup)

    def finish_batch(self) -> None:
        """Emit the number of keys and the memory."""
        self.collector.emit([self.context.task, len(self.state), resident_bytes("self")])


def main() -> None:
    """Measure both back ends, each step in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("keys", nargs="?", type=int, default=KEYS)
    keys = parser.parse_args().keys
    for backend in ("memory", "rocksdb"):
        with tempfile.TemporaryDirectory(prefix="sparkstorm-bench-") as folder:
            full, small = f"{folder}/full", f"{folder}/small"
            filled = apart(backend, full, keys)
            apart(backend, small, TOUCHED)
            started, base = (apart(backend, place, TOUCHED) for place in (full, small))
            disk = sum(path.stat().st_size for path in Path(full).rglob("*") if path.is_file())
        assert started["keys"] == keys, started
        print(
            f"{backend}: {keys:,} keys put in {filled['secs']:.0f} s "
            f"({keys / filled['secs']:,.0f}/s); first batch after a restart {started['secs']:.1f} s"
            f", with {TOUCHED} keys {base['secs']:.1f} s; Python workers {mib(started['python'])} "
            f"({mib(base['python'])}), JVM {mib(started['jvm'])} ({mib(base['jvm'])}); checkpoint "
            f"{mib(disk)}",
            flush=True,
        )


def apart(*step: object) -> dict[str, Any]:
    """Run a step in a process of its own and return its figures."""
    command = [sys.executable, "-m", "benchmarks.large_state", "--step", *map(str, step)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def run_step(backend: str, checkpoint: str, count: int) -> dict[str, Any]:
    """Let the topology count the numbers from 0 up to a count."""
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", Numbers(count))  # keeps no progress: starts again at 0
    builder.set_bolt("keep", Keep(), parallelism=2).fields_grouping("numbers", ["n"])
    told: dict[int, tuple[int, int]] = {}

    def take(key: Any, task: int, rows: list[tuple[int, int, int]]) -> None:
        told.update({number: (keys, size) for number, keys, size in rows})

    with spark_session("large-state") as session:
        started = time.monotonic()
        run = ss.submit(
            builder.create_topology(),
            name="large-state",
            config={"state_backend": backend, "batch_max_messages": 50_000},
            session=session,
            checkpoint=checkpoint,
            taps=["keep"],
            on_tap=take,
        )
        assert run.wait_until_drained(_PATIENCE_SECS)
        secs = time.monotonic() - started
        jvm = resident_bytes(session.sparkContext._gateway.proc.pid)
        run.stop()
    return {
        "secs": secs,
        "keys": sum(keys for keys, _ in told.values()),
        "python": sum(size for _, size in told.values()),
        "jvm": jvm,
    }


def resident_bytes(pid: int | str) -> int:
    """Return the resident set of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def mib(size: int) -> str:
    """Return a size for people."""
    return f"{size / 2**20:,.0f} MiB"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        print(json.dumps(run_step(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main()
