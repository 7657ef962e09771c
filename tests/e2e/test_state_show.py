"""``sparkstorm state show`` on the checkpoint of a topology that has stopped."""

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
        for word in tup["sentence"].split():
            self.state.put(word, self.state.get(word, 0) + 1)
        self.state.named("lengths").put(len(tup["sentence"]), [tup["sentence"]])
        self.collector.ack(tup)

def topology(args):
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", ss.spouts.LinesSpout(args[0]))
    bolt = builder.set_bolt("count", Count(), parallelism=2)
    bolt.fields_grouping("lines", ["sentence"]).add_configuration("state_backend", args[1])
    return builder.create_topology()
"""


def sparkstorm(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-m", "sparkstorm", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "rocksdb"])
def test_the_state_of_a_stopped_topology_is_shown(tmp_path: Path, backend: str) -> None:
    """All of it as JSON lines, one key of it, and a sentence for what does not fit."""
    (tmp_path / "words.py").write_text(_TOPOLOGY)
    (tmp_path / "in.txt").write_text("a b a\nb c\n")
    place = ("--checkpoint", tmp_path / "checkpoint")
    run = ("run", tmp_path / "words.py", "--available-now", "--master", "local[2]", *place)
    done = sparkstorm(*run, "--", tmp_path / "in.txt", backend)
    assert done.returncode == 0, done.stderr

    shown = sparkstorm("state", "show", "words", "count", *place)
    assert shown.returncode == 0, shown.stderr
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    counts: dict[str, int] = {}
    for row in rows:
        if row["state"] == "":
            counts[row["key"]] = counts.get(row["key"], 0) + row["value"]
    assert counts == {"a": 2, "b": 2, "c": 1}
    lengths = {row["key"]: row["value"] for row in rows if row["state"] == "lengths"}
    assert lengths == {5: ["a b a"], 3: ["b c"]}

    one = sparkstorm("state", "show", "words", "count", *place, "--key", "5")
    (row,) = map(json.loads, one.stdout.splitlines())
    assert (row["state"], row["value"]) == ("lengths", ["a b a"])


def test_what_does_not_fit_is_said_in_a_sentence(tmp_path: Path) -> None:
    """No checkpoint: exit code 2, before Spark starts."""
    done = sparkstorm("state", "show", "words", "count", "--checkpoint", tmp_path)
    assert done.returncode == 2
    assert "is no checkpoint folder of sparkstorm" in done.stderr
    assert "Traceback" not in done.stderr
