"""Word count by shell bolts: against the same bolts in Python, and on Storm, in one run.

    python -m benchmarks.shell_bolts [--sentences N] [--pystorm PYTHON] [--storm]

Sentences of six words, split and counted by two tasks each on Spark's ``local[2]``, every message
tracked. The sides, one after the other and each in a process of its own: the bolts native;
``plain``, children without an adapter, which write their output in one go; ``storm.py``, children
on the adapter that Apache Storm publishes, which waits for the task ids of each emit; and
``pystorm``, if a Python that has it is named. With ``--storm`` the same children run on a local
cluster of Apache Storm 2.8.3 from Maven Central. Told is the steady rate, after the first fifth of
the sentences. Exit code 1 if a count was wrong.

``alone`` is what the children do for one core's time when nobody reads their output but this
script: no parent can be faster than that, times the cores that it leaves them.
"""

import argparse
import atexit
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import sparkstorm as ss
from benchmarks.workload import WORDS_PER_SENTENCE, expected_counts, sentences
from sparkstorm.multilang import ShellBolt
from sparkstorm.spouts import IteratorSpout
from tests.tools.storm import count_on_storm, put_adapters

CHILDREN = Path(__file__).parent / "children"
SCRIPTS = {"plain": "plain.py", "storm.py": "storm_words.py", "pystorm": "words.py"}
_STORM_SECS = 900.0


class Split(ss.BasicBolt):
    """Cuts a sentence into words."""

    outputs = ("word",)

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Emit each word."""
        for word in tup[0].split():
            collector.emit([word])


class Count(ss.BasicBolt):
    """Counts words in its state."""

    outputs = ("word", "n")
    stateful = True

    def prepare(self, config: ss.Config, context: ss.TaskContext) -> None:
        """Begin with nothing."""
        self.counts: Counter[str] = Counter()

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Count one word and tell."""
        self.counts[tup[0]] += 1
        collector.emit([tup[0], self.counts[tup[0]]])


class Totals:
    """Counts what is told, and when how much of it was committed."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.words = 0
        self.times: list[tuple[float, int]] = []

    def __call__(self, key: Any, task: int, rows: list[tuple[Any, ...]]) -> None:
        """Take the rows of one committed batch."""
        for word, n in rows:
            self.last[word] = max(n, self.last.get(word, 0))
        self.words += len(rows)
        self.times.append((time.monotonic(), self.words))

    def rate(self) -> float:
        """Sentences a second, without the first fifth."""
        begun = next(at for at in self.times if at[1] > self.words / 5)
        ended = self.times[-1]
        return (ended[1] - begun[1]) / (ended[0] - begun[0]) / WORDS_PER_SENTENCE


def shell(python: str, script: Path, name: str, outputs: list[str]) -> ShellBolt:
    """Return a bolt whose child is a script of the resources folder."""
    return ShellBolt([python, script.name, name], outputs=outputs, resources=script.parent)


@cache
def script_of(side: str) -> Path:
    """Return the script of a side's children, in the folder that has all it imports."""
    folder = Path(tempfile.mkdtemp(prefix="sparkstorm-children-"))
    atexit.register(shutil.rmtree, folder)
    if side == "storm.py":
        put_adapters(folder)
    return Path(shutil.copy(CHILDREN / SCRIPTS[side], folder))


def topology(count: int, side: str, python: str) -> ss.Topology:
    """Wire the word count of one side."""
    builder = ss.TopologyBuilder()
    lines = IteratorSpout(lambda: sentences(0, count), outputs=["sentence"])
    builder.set_spout("sentences", lines)
    split: Any = Split()
    counting: Any = Count()
    if side != "native":
        script = script_of(side)
        split = shell(python, script, "Split", ["word"])
        counting = shell(python, script, "Count", ["word", "n"])
    builder.set_bolt("split", split, 2).shuffle_grouping("sentences")
    builder.set_bolt("count", counting, 2).fields_grouping("split", ["word"])
    return builder.create_topology()


def run(count: int, side: str, python: str) -> None:
    """Run one side and print its rate, or end with 1 if a count was wrong."""
    totals = Totals()
    config = {"topology.max.spout.pending": count}
    running = ss.submit(
        topology(count, side, python),
        master="local[2]",
        taps=["count"],
        on_tap=totals,
        config=config,
    )
    running.wait_until_drained()
    running.stop()
    if totals.last != expected_counts(count):
        print(f"{side}: the counts are wrong", file=sys.stderr)
        sys.exit(1)
    print(json.dumps({"side": side, "rate": totals.rate()}))


def alone(count: int, side: str, python: str) -> float:
    """Return the sentences that the children of one side do in a second of one core."""
    lines = sentences(0, count)
    words = [word for line in lines for word in line.split()]
    script = str(script_of(side))
    split, counting = [python, script, "Split"], [python, script, "Count"]
    waits = side == "storm.py"
    return count / (cpu_of(split, lines, waits=waits) + cpu_of(counting, words, waits=waits))


def cpu_of(command: list[str], values: list[str], *, waits: bool) -> float:
    """Feed a child one-field tuples; return the seconds of CPU that it took for them.

    A child that waits for the task ids of each emit finds them behind the tuple.
    """
    hello = {
        "conf": {},
        "context": {"taskid": 1, "componentid": "alone", "task->component": {"1": "alone"}},
        "pidDir": tempfile.gettempdir(),
    }
    tuples: list[Any] = []
    for number, value in enumerate(values):
        tup = {"id": str(number), "comp": "in", "stream": "default", "task": 2, "tuple": [value]}
        tuples += [tup, *([[2]] * len(value.split()) if waits else [])]
    beat = {"id": "beat", "comp": "__system", "stream": "__heartbeat", "task": -1, "tuple": []}
    used = []
    for messages in ([], tuples):
        text = "".join(f"{json.dumps(one)}\nend\n" for one in [hello, *messages, beat])
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # pystorm ends with 2 when its parent has gone
        subprocess.run(command, input=text, stdout=subprocess.DEVNULL, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return used[1] - used[0]  # without the start of the interpreter


def run_on_storm(count: int, side: str, python: str) -> float:
    """Return the rate of Storm with the children of one side; ends with 1 if a count was wrong."""
    script = str(script_of(side))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(sentences(0, count)))
        file.flush()
        commands = [[python, script, name] for name in ("Split", "Count")]
        found = count_on_storm(Path(file.name), count, *commands, secs=_STORM_SECS)
    if found.counts != expected_counts(count):
        sys.exit(f"storm, {side}: the counts are wrong")
    return found.rate


def main() -> None:
    """Run all sides and print how they compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--pystorm", metavar="PYTHON")
    parser.add_argument("--storm", action="store_true")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        run(options.sentences, options.side, options.pystorm or sys.executable)
        return
    sides = ["native", "plain", "storm.py", *(["pystorm"] if options.pystorm else [])]
    rates: dict[str, float] = {}
    for side in sides:
        command = [sys.executable, "-m", "benchmarks.shell_bolts", "--side", side]
        command += ["--sentences", str(options.sentences)]
        command += ["--pystorm", options.pystorm] if side == "pystorm" else []
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rates[side] = json.loads(done.stdout.splitlines()[-1])["rate"]
        print(f"{side:8} {rates[side]:10,.0f} sentences/s  {rates[side] / rates['native']:.3f}")
        if side != "native":
            most = alone(options.sentences, side, options.pystorm or sys.executable)
            print(f"  alone  {most:10,.0f} sentences/s of one core")
        if options.storm and side != "native":
            theirs = run_on_storm(options.sentences, side, options.pystorm or sys.executable)
            print(f"  Storm  {theirs:10,.0f} sentences/s  ours ÷ Storm {rates[side] / theirs:.2f}")


if __name__ == "__main__":
    main()
