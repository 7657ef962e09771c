"""A topology run by a script of the user's: the terminal shows the script's own lines alone."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.process]

SCRIPT = """
import itertools, sys
import sparkstorm as ss

class Count(ss.StatefulBolt):
    outputs = "n long"

    def execute(self, tup):
        if tup["n"] == 5:
            print("five is here")
        self.state.add(tup["n"] % 10)
        self.collector.emit(tup.values, anchors=tup)
        self.collector.ack(tup)

builder = ss.TopologyBuilder()
numbers = itertools.count if len(sys.argv) > 1 else lambda: range(10)
builder.set_spout("numbers", ss.spouts.IteratorSpout(numbers, outputs="n long"))
builder.set_bolt("count", Count()).fields_grouping("numbers", ["n"])

run = ss.submit(builder.create_topology(), name="numbers", master="local[2]")
if len(sys.argv) > 1:
    while run.statistics().acked < 10:
        run.await_termination(0.1)
    if "undrained" in sys.argv:
        run.stop(drain=False)
        raise SystemExit("stopped in the middle of it")
    raise SystemExit("enough of it")
run.wait_until_drained()
print(run.stop())
"""


def ran(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run the script to its end."""
    script = folder / "counting.py"
    script.write_text(SCRIPT)
    return subprocess.run(
        [sys.executable, str(script), *args], capture_output=True, text=True, check=False
    )


def test_a_script_shows_what_it_prints_and_what_its_bolts_print(tmp_path: Path) -> None:
    """Nothing of Spark's or PySpark's."""
    done = ran(tmp_path)
    assert done.stderr == "count: five is here\n"
    assert done.stdout.startswith("10 messages acked, 0 failed attempts, 0 given up, 0 pending, ")
    assert done.stdout.count("\n") == 1


def test_a_script_that_ends_under_a_run_stops_it(tmp_path: Path) -> None:
    """No trace of the workers that lose their readers, and no stack of Java's."""
    done = ran(tmp_path, "endless")
    assert done.stderr == "count: five is here\nenough of it\n"
    assert done.returncode == 1


def test_a_run_that_is_stopped_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    """``stop(drain=False)`` cancels Spark's jobs; no stack of Java's tells of it."""
    done = ran(tmp_path, "undrained")
    assert done.stderr == "count: five is here\nstopped in the middle of it\n"
    assert done.returncode == 1
