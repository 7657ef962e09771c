"""``sparkstorm run`` as a user would run it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from sparkstorm.testing import PATIENCE_SECS

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
SPARKSTORM = [sys.executable, "-m", "sparkstorm"]

COUNTING = """
import sparkstorm as ss
from tests.tools.word_count import WordCount, word_count

class Split(ss.BasicBolt):
    outputs = "word string"

    def execute(self, tup, collector):
        import beside
        for word in beside.words(tup["sentence"]):
            collector.emit([word])

class Count(WordCount):
    def finish_batch(self):
        print("counted", len(self.state))

def topology(args):
    return word_count(ss.spouts.LinesSpout(*args), split=Split(), count=Count())
"""

BESIDE = """
import threading

LOCK = threading.Lock()  # cannot be pickled, and need not be

def words(line):
    with LOCK:
        return line.split()
"""

FAILING = """
import itertools
import sparkstorm as ss

class Odd(ss.BasicBolt):
    outputs = "n long"

    def execute(self, tup, collector):
        if tup["n"] % 2 == 0:
            raise ValueError(f"{tup['n']} is even")
        collector.emit([tup["n"]])

def numbers():
    return itertools.count(1, 2)

def topology(args):
    items = range(10) if args else numbers
    builder = ss.TopologyBuilder()
    builder.set_spout("numbers", ss.spouts.IteratorSpout(items, outputs="n long"))
    builder.set_bolt("odd", Odd()).shuffle_grouping("numbers")
    return builder.create_topology()
"""


def run(*args: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [*SPARKSTORM, "run", *map(str, args)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECS, env=env)


def test_a_run_counts_taps_and_goes_on_with_its_checkpoint(tmp_path: Path) -> None:
    """Stdout has the tapped tuples and nothing else; a checkpoint belongs to its topology."""
    topology, text = tmp_path / "counting.py", tmp_path / "text.txt"
    topology.write_text(COUNTING)
    (tmp_path / "beside.py").write_text(BESIDE)
    text.write_text("a b a\nc\n\nb a ünï\n" * 50)
    checkpoint = tmp_path / "checkpoint"

    done = run(
        topology, "--available-now", "--tap", "count", "--checkpoint", checkpoint, "--", text
    )

    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(line["component"], line["stream"]) for line in lines} == {("count", "default")}
    counts = Counter[str]()
    for line in lines:
        counts[line["values"]["word"]] = max(
            counts[line["values"]["word"]], line["values"]["count"]
        )
    assert counts == Counter(text.read_text().split())
    assert len(lines) == counts.total()
    assert "count │ counted" in done.stderr
    assert "messages: 200 acked, 0 failed attempts, 0 given up, 0 pending" in done.stderr
    assert "Starting" not in done.stderr.replace("starting Spark on", "")
    assert "WARN" not in done.stderr

    other = run(topology, "--name", "other", "--checkpoint", checkpoint, "--", text)

    assert other.returncode == 2
    assert f"the checkpoint {checkpoint} belongs to the topology 'counting'" in other.stderr
    assert "Traceback" not in other.stderr
    assert "starting Spark" not in other.stderr


def test_a_missing_text_file_is_one_sentence(tmp_path: Path) -> None:
    """What only a spout can find out is said as clearly as the rest."""
    done = run(ROOT / "examples/word_count.py", "--", tmp_path / "missing.txt")
    assert done.returncode == 2
    assert "cannot read" in done.stderr
    assert "missing.txt" in done.stderr
    assert "Traceback" not in done.stderr


def test_given_up_messages_make_the_exit_code_1(tmp_path: Path) -> None:
    """Half of the messages fail at every try."""
    topology = tmp_path / "failing.py"
    topology.write_text(FAILING)
    done = run(topology, "--available-now", "-c", "max_retries=0", "--", "ten")
    assert done.returncode == 1, done.stderr
    assert "failing: 5 messages given up" in done.stderr
    assert "messages: 5 acked, 5 failed attempts (5 error), 5 given up, 0 pending" in done.stderr


@pytest.mark.slow
def test_ctrl_c_drains_and_a_second_one_does_not_wait(tmp_path: Path) -> None:
    """An endless topology stops with nothing pending; one that hangs stops all the same."""
    topology = tmp_path / "failing.py"
    topology.write_text(FAILING)
    code, text = interrupted(topology, times=1)
    assert code == 0, text
    topology.write_text(FAILING.replace("if tup", "import time; time.sleep(120)\n        if tup"))
    code, text = interrupted(topology, times=2)
    assert code == 130, text


def interrupted(topology: Path, *, times: int) -> tuple[int, str]:
    """Run until it says so, send SIGINT some times; return the exit code and what it said."""
    command = [*SPARKSTORM, "run", str(topology)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for("running", process)
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        if times > 1:
            wait_for("draining", process)
            process.send_signal(signal.SIGINT)
        _, text = process.communicate(timeout=PATIENCE_SECS)
    return process.returncode, text


def wait_for(word: str, process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return


CURABLE = """
import os
import sparkstorm as ss

class Parse(ss.BasicBolt):
    outputs = "n long"

    def execute(self, tup, collector):
        text = tup["sentence"]
        if not text.isdigit() and not os.path.exists(os.environ["CURE"]):
            raise ValueError(f"{text!r} is no number")
        collector.emit([len(text)])

def topology(args):
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout(*args))
    builder.set_bolt("parse", Parse(), parallelism=2).shuffle_grouping("lines")
    return builder.create_topology()
"""


@pytest.mark.slow
def test_dead_letters_are_listed_shown_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run gives up two lines and says where they are; after a mend they go through."""
    topology, text, cure = (tmp_path / name for name in ("curable.py", "text.txt", "cure"))
    topology.write_text(CURABLE)
    text.write_text("1\ntwo\n3\nfour\n5\n")
    monkeypatch.setenv("CURE", str(cure))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    options = ("--available-now", "-c", "max_retries=1", "-c", "retry_backoff_secs=0")
    checkpoint = ("--checkpoint", tmp_path / "checkpoint")

    done = run(topology, *options, *checkpoint, "--", text)

    assert done.returncode == 1, done.stderr
    command = f"sparkstorm dead-letters list --checkpoint {tmp_path / 'checkpoint'}"
    assert command in done.stderr
    assert "2 given up, 0 pending, 2 dead letters" in done.stderr
    listed = letters("list", *checkpoint, "--json")
    found = {line["values"][0]: line for line in map(json.loads, listed.splitlines())}
    assert sorted(found) == ["four", "two"]
    assert {line["attempts"] for line in found.values()} == {2}
    shown = letters("show", found["two"]["id"][:8], *checkpoint)
    assert "ValueError: 'two' is no number" in shown
    assert "raise ValueError" in shown

    cure.touch()
    assert "2 dead letters will be replayed" in letters("replay", "--all", *checkpoint)
    again = run(topology, *options, *checkpoint, "--tap", "parse", "--", text)

    assert again.returncode == 0, again.stderr
    assert "2 dead letters replayed and acked" in again.stderr
    rows = [json.loads(line)["values"]["n"] for line in again.stdout.splitlines()]
    assert sorted(rows) == [3, 4]
    assert letters("list", *checkpoint) == "no dead letters\n"


def letters(*args: str | Path) -> str:
    command = [*SPARKSTORM, "dead-letters", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECS)
    assert done.returncode == 0, done.stderr
    return done.stdout
