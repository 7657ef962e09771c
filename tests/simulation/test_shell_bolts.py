"""Shell bolts while drivers die, jobs fail, and tasks are run twice or hop between processes."""

import sys
from collections import Counter
from pathlib import Path

import pytest

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt
from sparkstorm.testing import LogSpout, simulate

CHILDREN = Path(__file__).parents[1] / "behaviour" / "children"
LINES = [[f"w{number % 5} x{number}"] for number in range(30)]


def child(role: str) -> ShellBolt:
    return ShellBolt([sys.executable, "roles.py", role], outputs=["word"], resources=CHILDREN)


def topology() -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("lines", LogSpout(LINES, outputs=["line"]))
    builder.set_bolt("split", child("split"), 2).shuffle_grouping("lines")
    builder.set_bolt("echo", child("upon"), 2).shuffle_grouping("split")
    return builder.create_topology()


SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40)]


@pytest.mark.parametrize("seed", [0, 1, 2, 3, *SLOW])
def test_every_word_comes_through_at_least_once(seed: int) -> None:
    outcome = simulate(topology(), seed=seed, reproducible=False)
    assert len(outcome.acked) == len(LINES)
    words = Counter(word for (word,) in outcome.values("echo"))
    assert words >= Counter(word for (line,) in LINES for word in line.split())
