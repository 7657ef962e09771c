"""Kills parts of a running word count at random moments until all lines are through, then checks.

``PYTHONPATH=. python tests/crashes/kill_loop.py FOLDER --lines 20000 --victims worker,driver``

A driver that was killed is started again at once on the same checkpoint. With the victim ``source``
the lines come from a queue in a process of its own, which is started again, too. In the end a roll
call (one more line that holds every word) shows what the state counted, and the checker compares.
The last line of output says how many of each were killed; exit code 1 if anything is wrong.
"""

import argparse
import json
import random
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from math import inf
from pathlib import Path

from tests.crashes import processes

_HERE = Path(__file__).parent
_WORDS_PER_LINE = 12
_ROLL_CALL_SECS = 300.0


class KillLoop:
    """One word count, its folder, and the dice."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.killed: Counter[str] = Counter()
        self._folder = folder
        self._options = options
        self._dice = random.Random(options.seed)
        self._words = [f"w{number}" for number in range(options.vocabulary)]
        self._text = folder / "lines.txt"
        self._witnesses = folder / "witnesses"
        self._witnesses.mkdir(parents=True)
        self._queue = _Queue(folder) if "source" in options.victims else None
        self._written = 0

    def run(self) -> dict[str, object]:
        """Kill until all lines are through; return what the checker found.

        A driver that is through before anything was killed gets as many lines again.
        """
        self._write_lines()
        if self._queue is not None:
            self._queue.start()
        deadline = time.monotonic() + self._options.minutes * 60
        while self._live_once(deadline):
            pass
        given = shutil.copy(self._text, self._folder / "given.txt")
        try:
            return self._compare(Path(given), self._roll_call())
        finally:
            if self._queue is not None:
                self._queue.kill()

    def _write_lines(self) -> None:
        with self._text.open("a") as file:
            for number in range(self._written, self._written + self._options.lines):
                words = self._dice.choices(self._words, k=self._dice.randint(1, _WORDS_PER_LINE))
                file.write(f"{number} {' '.join(words)}\n")
        self._written += self._options.lines

    def _live_once(self, deadline: float) -> bool:
        """One life of the driver; returns whether there must be another."""
        driver = self._start()
        try:
            while True:
                code = _wait(driver, self._dice.uniform(0.2, self._options.pause))
                if code is not None:
                    return self._again(code)
                if time.monotonic() > deadline:
                    raise SystemExit(f"not through in time: {self.killed}, {self._last_words()}")
                kind = self._dice.choice(self._options.victims.split(","))
                running = processes.find(driver.pid, "worker")  # before that nothing is learnt
                enough = self.killed.total() >= self._options.kills
                if running and not enough and self._kill(driver.pid, kind):
                    self.killed[kind] += 1
                    print("killed", kind, flush=True)
        finally:
            processes.kill(driver.pid)
            driver.wait()

    def _kill(self, driver: int, kind: str) -> bool:
        if kind == "source":
            self._restart_queue()
            return True
        victims = processes.find(driver, kind)
        return bool(victims) and processes.kill(self._dice.choice(victims))

    def _restart_queue(self) -> None:
        if self._queue is not None:
            self._queue.kill()
            self._queue.start()

    def _again(self, code: int) -> bool:
        """Whether a driver that ended so is to be started again; it may only end for cause."""
        if code == 0:
            if not self.killed:
                self._write_lines()
                self._restart_queue()
            return not self.killed
        for_cause = code < 0 or self.killed["jvm"]
        if not for_cause:
            raise SystemExit(f"the driver ended with {code}: {self._last_words()}")
        return True

    def _start(self, *more: str) -> "subprocess.Popen[bytes]":
        with (self._folder / "driver.log").open("ab") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, str(_HERE / "words.py"), *more),
                    *("--master", self._options.master, *self._source()),
                    *("--checkpoint", str(self._folder / "checkpoint")),
                    *("--witness", str(self._witnesses), "--batch", str(self._options.batch)),
                ],
                stdout=log,
                stderr=log,
            )

    def _source(self) -> list[str]:
        return ["--text", str(self._text)] if self._queue is None else self._queue.options

    def _roll_call(self) -> Path:
        """Count each word once more; return the file of the counts before that."""
        tapped = self._folder / "tapped.json"
        with self._text.open("a") as file:
            file.write(f"roll-call {' '.join(self._words)}\n")
        self._restart_queue()
        if _wait(self._start("--tap", str(tapped)), _ROLL_CALL_SECS) != 0:
            raise SystemExit(f"the roll call failed: {self._last_words()}")
        counts = {word: count - 1 for word, count in json.loads(tapped.read_text()).items()}
        tapped.write_text(json.dumps({word: count for word, count in counts.items() if count}))
        return tapped

    def _compare(self, given: Path, counts: Path) -> dict[str, object]:
        for path in self._witnesses.iterdir():  # what the roll call itself left
            path.write_text(path.read_text().replace("roll-call\n", ""))
        command = [sys.executable, str(_HERE / "checker.py"), given, self._witnesses, counts]
        command += [] if self._queue is None else ["--at-least"]
        checked = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        found: dict[str, object] = json.loads(checked.stdout)
        return found

    def _last_words(self) -> str:
        return (self._folder / "driver.log").read_text(errors="replace")[-4000:]


class _Queue:
    """The process of the source."""

    def __init__(self, folder: Path) -> None:
        self._files = [folder / "lines.txt", folder / "acked.txt"]
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = str(free.getsockname()[1])
        self.options = ["--queue", self._port]

    def start(self) -> None:
        command = [sys.executable, _HERE / "queue_server.py", *self._files, self._port]
        self._process = subprocess.Popen([*map(str, command)])

    def kill(self) -> None:
        processes.kill(self._process.pid)
        self._process.wait()


def _wait(process: "subprocess.Popen[bytes]", secs: float) -> int | None:
    """The exit code of a process, or None if it still lives after some seconds."""
    try:
        return process.wait(secs)
    except subprocess.TimeoutExpired:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--vocabulary", type=int, default=150, help="how many distinct words")
    parser.add_argument("--batch", type=int, default=200, help="lines a batch, at most")
    parser.add_argument(
        "--victims",
        default="worker,worker,worker,driver",
        help=f"one is drawn each time: source, {', '.join(processes.KINDS)}",
    )
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--pause", type=float, default=6.0, help="longest time between two kills")
    parser.add_argument("--kills", type=float, default=inf, help="how many at most")
    parser.add_argument("--minutes", type=float, default=10.0, help="when to call it stuck")
    options = parser.parse_args()
    print("seed", options.seed, flush=True)
    loop = KillLoop(options.folder, options)
    started = time.monotonic()
    wrong = loop.run()
    print(json.dumps({"secs": round(time.monotonic() - started), "killed": loop.killed, **wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
