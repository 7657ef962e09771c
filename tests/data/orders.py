"""A topology that keeps something of each kind in its checkpoint, and the script that made one.

The checkpoints beside this file were written by the code before the packages `delivery` and
`execution` were cut up (commit f34ee4d). Each is of a driver that was killed in the middle of a
batch. To make them again, check that commit out, and with its virtual environment run

    python tests/data/orders.py memory checkpoint-memory.tar.gz
    python tests/data/orders.py rocksdb checkpoint-rocksdb.tar.gz

The rows come in three parts, so that the script can wait for what each part leaves behind:

1. words; left halves of pairs, whose tuples stay held; a poison, which becomes a dead letter;
2. words; a row that fails once and waits for its retry;
3. words; the right halves; a row at which the bolt waits for the end of its driver.
"""

import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import sparkstorm as ss

WORDS = 200
PAIRS = 5
_FOR_EVER_SECS, _BRIEF_SECS = 1e9, 60
_PATIENCE_SECS = 120


def parts() -> list[list[str]]:
    """The rows of each part, as `kind key`."""
    words = [f"word w{number % 7}" for number in range(WORDS)]
    lefts = [f"left p{number}" for number in range(PAIRS)]
    rights = [f"right p{number}" for number in range(PAIRS)]
    return [
        [*words[:100], *lefts, "poison poison"],
        [*words[100:150], "late late"],
        [*words[150:], *rights, "stop stop"],
    ]


class Rows(ss.PartitionedSpout):
    """Reads the rows of a file; a part is planned when a file of its number is there.

    Args:
        path: the file.
        signs: the folder of the files that open the parts; None if all are open.
    """

    outputs = "kind string, key string"
    replayable = True

    def __init__(self, path: Path, signs: Path | None = None) -> None:
        self._path = path
        self._signs = signs
        self._next = 0

    def plan(self, limit: int) -> list[ss.Split]:
        """Return the next rows of an open part."""
        count = min(limit, self._open_rows() - self._next)
        if count <= 0:
            return []
        split = ss.Split(count=count, data={"start": self._next})
        self._next += count
        return [split]

    def read(self, split: ss.Split) -> Iterable[Sequence[str]]:
        """Read the rows of a split."""
        start = split.data["start"]
        rows = self._path.read_text().splitlines()[start : start + split.to_read]
        return [row.split() for row in rows]

    def snapshot(self) -> Any:
        """How many rows are planned."""
        return self._next

    def restore(self, snapshot: Any) -> None:
        """Go on after these rows."""
        self._next = snapshot

    def exhausted(self) -> bool:
        """Whether all rows are planned."""
        return self._next == sum(map(len, parts()))

    def _open_rows(self) -> int:
        signs = self._signs
        return sum(
            len(part) for n, part in enumerate(parts()) if not signs or (signs / str(n)).exists()
        )


class Judge(ss.Bolt):
    """Counts rows by kind in an attribute, and passes them on; some fail as long as it is `broken`.

    Args:
        signs: where it says that it reached a row that fails, or the last; None if none fails.
    """

    stateful = True
    outputs = {  # noqa: RUF012
        "words": "key string, seen long",
        "pairs": "kind string, key string, seen long",
    }

    def __init__(self, signs: Path | None = None) -> None:
        self._signs = signs
        self.seen: dict[str, int] = {}

    def execute(self, tup: ss.Tuple) -> None:
        """Fail a row, or pass it on."""
        kind, key = tup["kind"], tup["key"]
        if self._signs is not None and kind in ("poison", "late", "stop"):
            (self._signs / kind).touch()
            if kind == "stop":
                time.sleep(_PATIENCE_SECS)
            raise ValueError(f"{kind} is refused")
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if kind in ("left", "right"):
            self.collector.emit([kind, key, self.seen[kind]], anchors=tup, stream="pairs")
        else:
            self.collector.emit([key, self.seen[kind]], anchors=tup, stream="words")
        self.collector.ack(tup)


class Count(ss.StatefulBolt):
    """Counts each key three times: in a value that changes in place, and in two named states."""

    outputs = "key string, count long, rows long, lasting long, brief long"

    def execute(self, tup: ss.Tuple) -> None:
        """Count, and emit the counts."""
        key = tup["key"]
        value = self.state.get(key, {"count": 0, "seen": []})
        value["count"] += 1
        value["seen"].append(tup["seen"])
        self.state.put(key, value)
        lasting = self.state.named("lasting", ttl_secs=_FOR_EVER_SECS).add(key)
        brief = self.state.named("brief", ttl_secs=_BRIEF_SECS).add(key)
        counts = [value["count"], len(value["seen"]), lasting, brief]
        self.collector.emit([key, *counts], anchors=tup)
        self.collector.ack(tup)


class Pair(ss.StatefulBolt):
    """Holds left halves until their right ones come."""

    outputs = "key string, lefts long"

    def execute(self, tup: ss.Tuple) -> None:
        """Hold a left half, or emit a pair."""
        held, key = self.state.tuples("lefts"), tup["key"]
        if tup["kind"] == "left":
            held.add(key, tup)
            return
        lefts = held.pop(key)
        if not lefts:
            raise LookupError(f"no left half of {key} is held")
        self.collector.emit([key, len(lefts)], anchors=[*lefts, tup])
        for one in (*lefts, tup):
            self.collector.ack(one)


def topology(rows: Path, signs: Path | None = None) -> ss.Topology:
    """Rows by a judge to those that count and to those that pair."""
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", Rows(rows, signs))
    builder.set_bolt("judge", Judge(signs)).shuffle_grouping("rows")
    count = builder.set_bolt("count", Count(), parallelism=2)
    count.fields_grouping("judge", ["key"], stream="words")
    pair = builder.set_bolt("pair", Pair(), parallelism=2)
    pair.fields_grouping("judge", ["key"], stream="pairs")
    return builder.create_topology()


def config(backend: str, **changed: Any) -> ss.Config:
    """The settings of both runs; a poison is given up after its second try."""
    settings: dict[str, Any] = {
        "state_backend": backend,
        "partitions": 2,
        "acker_executors": 2,
        "max_retries": 1,
        "retry_backoff_secs": 15,
        "message_timeout_secs": 3600,
    }
    return ss.Config(**{**settings, **changed})


def _drive(backend: str, folder: Path) -> None:
    """Run in a process of its own, which kills itself."""
    signs = folder / "signs"
    run = ss.submit(
        topology(folder / "rows.txt", signs),
        name="orders",
        config=config(backend),
        checkpoint=folder / "checkpoint",
        master="local[2]",
    )
    (signs / "0").touch()
    letters = folder / "checkpoint" / "sparkstorm" / "dead-letters"
    _wait(lambda: run.statistics().failed >= 2 and any(letters.rglob("*.jsonl")))
    (signs / "1").touch()
    _wait(lambda: run.statistics().failed >= 3)
    (signs / "2").touch()
    _wait((signs / "stop").exists)
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_SECS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("what the script waits for does not come")
        time.sleep(0.05)


def _make(backend: str, archive: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "signs").mkdir()
        (folder / "rows.txt").write_text("".join(f"{row}\n" for part in parts() for row in part))
        driver = subprocess.Popen([sys.executable, __file__, "--drive", backend, name])
        assert driver.wait() == -signal.SIGKILL
        time.sleep(10)  # the JVM ends by itself when its driver is gone
        with tarfile.open(archive, "w:gz") as packed:
            packed.add(folder / "checkpoint", "checkpoint")


if __name__ == "__main__":
    if sys.argv[1] == "--drive":
        _drive(sys.argv[2], Path(sys.argv[3]))
    else:
        _make(sys.argv[1], Path(sys.argv[2]))
