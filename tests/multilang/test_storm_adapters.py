"""Components on the adapters that Apache Storm publishes run unchanged."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt, ShellSpout

pytestmark = pytest.mark.e2e

COUNTED = Counter((word, n) for word in ["the", "quick", "brown", "fox"] for n in range(1, 101))


def counting(spout: ShellSpout, split: ShellBolt, resources: Path) -> ss.Topology:
    builder = ss.TopologyBuilder()
    builder.set_spout("sentences", spout)
    builder.set_bolt("split", split, 2).shuffle_grouping("sentences")
    count = ShellBolt(
        [sys.executable, "storm_words.py", "Count"], outputs=["word", "n"], resources=resources
    )
    builder.set_bolt("count", count, 2).fields_grouping("split", ["word"])
    return builder.create_topology()


def test_python(storm_resources: Path, run_until: Any) -> None:
    def words(name: str) -> list[str]:
        return [sys.executable, "storm_words.py", name]

    topology = counting(
        ShellSpout(words("Sentences"), outputs=["sentence"], resources=storm_resources),
        ShellBolt(words("Split"), outputs=["word"], resources=storm_resources),
        storm_resources,
    )
    statistics, emitted = run_until(topology, lambda s: s.acked == 100)
    assert statistics.failed == 0
    assert Counter(emitted["count"]) == COUNTED


@pytest.mark.parametrize("split", ["Split", "SlowSplit"])
def test_javascript(storm_resources: Path, run_until: Any, node: str, split: str) -> None:
    """Also one that works on in the background, and acks late and out of order."""
    topology = counting(
        ShellSpout(
            [node, "storm_words.js", "Sentences"],
            outputs=["sentence"],
            resources=storm_resources,
        ),
        ShellBolt([node, "storm_words.js", split], outputs=["word"], resources=storm_resources),
        storm_resources,
    )
    statistics, emitted = run_until(topology, lambda s: s.acked == 100)
    assert statistics.failed == 0
    assert Counter(emitted["count"]) == COUNTED
