"""How a run on Spark fares while a hundred pages are open on it.

python -m benchmarks.watched_run [MINUTES] [PAGES] [MESSAGES]

Starts ``sparkstorm run --ui`` on a topology in which so many messages wait for a retry while others
flow. Prints how long the page's views take, and the memory of driver and page, each minute.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.open_pages import VIEWS, fetch, look
from sparkstorm.control.client import connect
from sparkstorm.control.registry import Entry, Registry

STUCK = "stuck"
TOPOLOGY = f"""
import time
import sparkstorm as ss

class Numbers(ss.spouts.ReplayingSpout):
    outputs = "word string, number long"
    number = 0

    def next_message(self):
        self.number += 1
        if self.number > {{messages}}:
            time.sleep(0.005)
        word = "{STUCK}" if self.number <= {{messages}} else "fine"
        return f"number-{{{{self.number}}}}", [word, self.number]

class Refuse(ss.BasicBolt):
    def execute(self, tup, collector):
        if tup["word"] == "{STUCK}":
            raise ValueError("stuck")

builder = ss.TopologyBuilder()
builder.set_spout("numbers", Numbers())
builder.set_bolt("refuse", Refuse(), 2).shuffle_grouping("numbers")
topology = builder.create_topology()
"""


def start(folder: Path, messages: int) -> subprocess.Popen[bytes]:
    """Start the run."""
    (folder / "watched.py").write_text(TOPOLOGY.format(messages=messages))
    settings = ["max_retries=1000", "retry_backoff_secs=7200", "retry_backoff_max_secs=7200"]
    command = [
        *(sys.executable, "-m", "sparkstorm", "run", str(folder / "watched.py")),
        *("--master", "local[2]", "--ui", "--ui-port", "0", "--drain-secs", "0"),
        *(part for setting in settings for part in ("-c", setting)),
        *("-c", f"max_spout_pending={2 * messages}"),
    ]
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(command, stdout=said, stderr=said)


def served(folder: Path, messages: int) -> Entry:
    """Wait for the page, and until all stuck messages wait."""
    registry = Registry()
    ends = time.monotonic() + 300
    while time.monotonic() < ends:
        for entry in registry.entries():
            if entry.page and connect(entry).messages(state="retry", limit=1).total >= messages:
                return entry
        time.sleep(0.5)
    raise SystemExit(f"the run does not get there: {(folder / 'said').read_text()}")


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def page_of(driver: int) -> int:
    """Return the process of the page: the driver's child that runs ``sparkstorm ui``."""
    children = Path(f"/proc/{driver}/task/{driver}/children").read_text().split()
    return next(int(one) for one in children if b"\0ui\0" in command_of(one))


def command_of(pid: str) -> bytes:
    """Return the command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def watch(entry: Entry, minutes: int, pages: int) -> None:
    """Keep pages open, ask for views beside them, and print each minute's figures."""
    at = urlsplit(entry.page)
    assert at.port is not None
    message = connect(entry).messages(limit=1).messages[0].id
    views = [view.replace("m00000", message) for view in VIEWS]
    driver, page = entry.holder.pid, page_of(entry.holder.pid)
    events = [0]
    looking = [
        asyncio.create_task(look(at.port, at.path + views[number % len(views)], events))
        for number in range(pages)
    ]
    print("minute  views  p50 ms  p99 ms  most ms  driver MB  page MB  acked")
    for minute in range(1, minutes + 1):
        took = []
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            for view in views:
                status, secs = await fetch(at.port, at.path + view)
                assert status == 200, (view, status)
                took.append(1000 * secs)
            await asyncio.sleep(0.5)
        took.sort()
        acked = connect(entry).situation().acked
        print(
            f"{minute:6} {len(took):6} {statistics.median(took):7.0f} "
            f"{took[int(len(took) * 0.99)]:7.0f} {took[-1]:8.0f} {memory_mb(driver):10.0f} "
            f"{memory_mb(page):8.0f} {acked:6}",
            flush=True,
        )
    print(f"events sent: {events[0] / (60 * minutes):.0f} per second")
    for task in looking:
        task.cancel()


def main() -> None:
    """Start the run, open the pages, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", nargs="?", type=int, default=10)
    parser.add_argument("pages", nargs="?", type=int, default=100)
    parser.add_argument("messages", nargs="?", type=int, default=10_000)
    chosen = parser.parse_args()
    minutes, pages, messages = chosen.minutes, chosen.pages, chosen.messages
    with tempfile.TemporaryDirectory() as name:
        os.environ["SPARKSTORM_REGISTRY"] = str(Path(name) / "registry")
        run = start(Path(name), messages)
        try:
            asyncio.run(watch(served(Path(name), messages), minutes, pages))
        finally:
            run.terminate()
            run.wait()


if __name__ == "__main__":
    main()
