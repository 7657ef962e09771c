"""``sparkstorm debug`` on a dead letter that only fails with the state of its task."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparkstorm.testing import PATIENCE_SECS

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

_TOPOLOGY = """
import sparkstorm as ss

class Count(ss.StatefulBolt):
    outputs = "word string"

    def execute(self, tup):
        word = tup["sentence"]
        seen = self.state.get(word, 0)
        if seen == 2:
            raise ValueError(f"{word} for the third time")
        self.state.put(word, seen + 1)
        self.collector.ack(tup)

def topology(args):
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout(args[0]))
    bolt = builder.set_bolt("count", Count(), parallelism=2)
    bolt.fields_grouping("lines", ["sentence"]).add_configuration("state_backend", args[1])
    return builder.create_topology()
"""


def sparkstorm(*args: str | Path, answers: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-m", "sparkstorm", *map(str, args)],
        input=answers,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_the_breakpoint_has_the_state_of_the_last_commit(tmp_path: Path, backend: str) -> None:
    """Without the state the message passes; and neither look changes the checkpoint's letters."""
    target, args = tmp_path / "words.py", ("--", tmp_path / "in.txt", backend)
    target.write_text(_TOPOLOGY)
    (tmp_path / "in.txt").write_text("a\nb\na\na\n")
    place = ("--checkpoint", tmp_path / "checkpoint")
    run = ("run", target, "--available-now", "--master", "local[2]", "-c", "max_retries=0")
    done = sparkstorm(*run, *place, *args)
    assert done.returncode == 1, done.stderr
    (line,) = sparkstorm("dead-letters", "list", "--json", *place).stdout.splitlines()
    letter = json.loads(line)["id"]

    keys = "p self.state.get('a'), self.state.get('b')\nc\np seen\nq\n"
    stopped = sparkstorm("debug", letter, target, *place, *args, answers=keys)
    assert stopped.returncode == 0, stopped.stderr
    assert "(2, " in stopped.stdout
    assert "ValueError: a for the third time" in stopped.stderr

    empty = sparkstorm("debug", letter, target, "--no-state", *place, *args)
    assert "does not fail any more" in empty.stdout, empty.stderr
    assert sparkstorm("dead-letters", "list", "--json", *place).stdout.splitlines() == [line]

    file = tmp_path / "test_third.py"
    wrote = sparkstorm("debug", letter, target, "--test", file, *place, *args)
    assert wrote.returncode == 0, wrote.stderr
    assert "state={" in file.read_text()
    assert "passes already" not in wrote.stderr
