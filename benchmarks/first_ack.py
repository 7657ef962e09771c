"""The first half minute: seconds until the first ack, until the end, and after a killed driver.

``python -m benchmarks.first_ack [--other CHECKOUT] [--rounds N] [--cores 0,1]``. Runs ``sparkstorm
run examples/word_count.py --available-now`` on 3,000 lines, and prints the median of all rounds.
With ``--other``, the path of another checkout that was set up, both run in turns, and the ratios of
this one to the other are printed. Each round, a run is killed (kill -9) after its first batch, and
the same command started again: the time to the first ack of the second is told, too.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import PROJECT

LINES = 3_000
_SENTENCE = "the quick brown fox jumps over the lazy dog and runs away\n"
FIGURES = ("first ack", "end", "first ack after kill -9")


class Checkout:
    """A checkout of sparkstorm that was set up by ``make setup``.

    Args:
        path: its folder.
        text: the file whose words are counted.
        cores: the processor's cores to run on, as ``taskset`` takes them; empty for all.
    """

    def __init__(self, path: Path, text: Path, cores: str) -> None:
        program = str(path / ".venv" / "bin" / "sparkstorm")
        pinned = ["taskset", "-c", cores] if cores else []
        self._command = [*pinned, program, "run", "examples/word_count.py"]
        self._path, self._text = path, text

    def figures(self) -> list[float]:
        """Return seconds, as many as FIGURES."""
        with tempfile.TemporaryDirectory() as folder:
            first, end = self._run()
            self._run(folder, kill=True)
            again, _ = self._run(folder)
        return [first, end, again]

    def _run(self, checkpoint: str = "", *, kill: bool = False) -> tuple[float, float]:
        """Return the seconds until the first counted word came out, and until the end."""
        where = ["--checkpoint", checkpoint] if checkpoint else []
        # Small batches, so that the killed run has something left to do.
        small = ["-c", "topology.batch.max.messages=1000"] if checkpoint else []
        options = ["--available-now", "--tap", "count", *where, *small, "--", str(self._text)]
        started = time.monotonic()
        with subprocess.Popen(
            [*self._command, *options],
            cwd=self._path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            first = time.monotonic() - started
            if kill:
                os.kill(process.pid, signal.SIGKILL)
            for _ in process.stdout:
                pass
        return first, time.monotonic() - started


def main() -> int:
    """Run all rounds and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, help="another checkout, run in turns with this one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", default="", help="run on these cores, for example 0,1")
    given = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(_SENTENCE * LINES)
        file.flush()
        paths = [PROJECT, *([given.other.resolve()] if given.other else [])]
        sides = [Checkout(path, Path(file.name), given.cores) for path in paths]
        rounds = [[side.figures() for side in sides] for _ in range(given.rounds)]
    for number, name in enumerate(FIGURES):
        _tell(name, [[side[number] for side in one] for one in rounds])
    return 0


def _tell(name: str, rounds: Sequence[Sequence[float]]) -> None:
    medians = [statistics.median(side) for side in zip(*rounds, strict=True)]
    text = f"{name:24} {medians[0]:5.1f} s"
    if len(medians) > 1:
        ratio = statistics.median(mine / theirs for mine, theirs in rounds)
        text += f"   other {medians[1]:5.1f} s   ratio {ratio:.2f}"
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
