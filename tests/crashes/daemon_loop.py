"""Kills Spark's Python daemons as they start, while messages flow; then checks the counts.

``PYTHONPATH=. python tests/crashes/daemon_loop.py FOLDER --master 'local-cluster[2,1,1024]'``

Workers and daemons that run are killed, too, every few seconds, so that new ones have to start. The
last line of output says how many daemons were killed as they started; exit code 1 if anything is
wrong: a message that was not acked, or counted twice or not at all.
"""

import argparse
import json
import random
import threading
import time
from collections import Counter
from pathlib import Path

import sparkstorm as ss
from sparkstorm.spouts import IteratorSpout
from tests.crashes import processes

_KEYS = 97
_LOOK_SECS = 0.01
_LONGEST_LIFE_SECS = 0.3


class Count(ss.StatefulBolt):
    """Counts its messages by key, and emits each count."""

    outputs = "key long, count long"

    def execute(self, tup: ss.Tuple) -> None:
        key = tup["key"]
        count = self.state.get(key, 0) + 1
        self.state.put(key, count)
        self.collector.emit([key, count], anchors=[tup])
        self.collector.ack(tup)


class Killer(threading.Thread):
    """Kills daemons of this process's Spark as they start, with some odds, for a while."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(daemon=True)
        self.killed: Counter[str] = Counter()
        self.over = threading.Event()
        self._dice = random.Random(options.seed)
        self._options = options
        self._seen: set[int] = set()

    def run(self) -> None:
        """Look for new daemons; and now and then end what has started."""
        end = time.monotonic() + self._options.secs
        next_round = time.monotonic() + self._options.pause
        while not self.over.wait(_LOOK_SECS) and time.monotonic() < end:
            for pid in set(processes.find(processes.HERE, "daemon")) - self._seen:
                self._seen.add(pid)
                if self._dice.random() < self._options.odds:
                    life = self._dice.uniform(0.0, _LONGEST_LIFE_SECS)
                    threading.Timer(life, self._kill, ("starting", pid)).start()
            if time.monotonic() > next_round:
                next_round = time.monotonic() + self._options.pause
                for kind in ("daemon", "worker"):
                    for pid in processes.find(processes.HERE, kind):
                        self._kill(kind, pid)

    def _kill(self, kind: str, pid: int) -> None:
        self.killed[kind] += processes.kill(pid)


def main() -> None:
    """Run the topology to its end."""
    options = _options()
    counts: dict[int, int] = {}

    def tap(stream: object, task: int, tuples: list[list[int]]) -> None:
        for key, count in tuples:
            counts[key] = max(count, counts.get(key, 0))

    builder = ss.TopologyBuilder()
    keys = [number % _KEYS for number in range(options.messages)]
    builder.set_spout("keys", IteratorSpout(keys, "key long"))
    builder.set_bolt("count", Count(), parallelism=2).fields_grouping("keys", "key")
    killer = Killer(options)
    killer.start()
    with ss.submit(
        builder.create_topology(),
        name="daemons",
        master=options.master,
        checkpoint=options.folder,
        taps=["count"],
        on_tap=tap,
    ) as run:
        drained = run.wait_until_drained(options.limit)
        acked = run.statistics().acked
    killer.over.set()
    wrong = {key: counts.get(key) for key, n in Counter(keys).items() if counts.get(key) != n}
    print(json.dumps({"acked": acked, "wrong": wrong, "killed": killer.killed}))
    if not drained or acked != options.messages or wrong:
        raise SystemExit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--master", default="local[4]")
    parser.add_argument("--odds", type=float, default=0.6, help="of a daemon to be killed early")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds until all are killed")
    parser.add_argument("--secs", type=float, default=60.0, help="for how long")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds until it must be done")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
