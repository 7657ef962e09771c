"""Components of pystorm and streamparse run unchanged, by both of their serializers."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt, ShellSpout
from sparkstorm.testing import FeederSpout

pytestmark = pytest.mark.e2e

WORDS = Path(__file__).parent / "words"


def command(python: str, name: str, serializer: str) -> list[str]:
    return [python, "-m", "streamparse.run", f"streamparse_words.{name}", "-s", serializer]


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_words_are_counted_exactly(
    streamparse_python: str, run_until: Any, serializer: str
) -> None:
    """By a spout, bolts that anchor and ack by themselves, and one that acks in batches."""

    def words(name: str) -> list[str]:
        return command(streamparse_python, name, serializer)

    options: dict[str, Any] = {"resources": WORDS, "serializer": serializer}
    builder = ss.TopologyBuilder()
    spout = ShellSpout(words("Sentences"), outputs=["sentence"], **options)
    builder.set_spout("sentences", spout)
    split = ShellBolt(words("Split"), outputs=["word"], **options)
    builder.set_bolt("split", split, 2).shuffle_grouping("sentences")
    count = ShellBolt(words("Count"), outputs=["word", "n"], **options)
    builder.set_bolt("count", count, 2).fields_grouping("split", ["word"])
    groups = ShellBolt(words("Groups"), outputs=["word", "n"], **options)
    grouped = builder.set_bolt("groups", groups).shuffle_grouping("split")
    grouped.add_configuration("topology.tick.tuple.freq.secs", 0.2)

    statistics, emitted = run_until(builder.create_topology(), lambda s: s.acked == 200)
    assert statistics.failed == 0
    assert len(emitted["split"]) == 800
    assert Counter(emitted["count"]) == Counter(
        (word, n) for word in ["the", "quick", "brown", "fox"] for n in range(1, 201)
    )
    assert sum(n for _, n in emitted["groups"]) == 800


def test_a_bolt_that_raises_fails_its_tuple_and_is_started_again(
    streamparse_python: str, run_until: Any
) -> None:
    feed = FeederSpout(["word"])
    builder = ss.TopologyBuilder()
    builder.set_spout("feed", feed)
    bolt = ShellBolt(
        command(streamparse_python, "Broken", "json"), outputs=["word"], resources=WORDS
    )
    builder.set_bolt("shell", bolt).shuffle_grouping("feed")
    feed.feed(["bad"], 1)
    run_until(builder.create_topology(), lambda s: s.failed == 1)
    assert feed.failed == [1]
    assert feed.failures[0].component == "shell"
