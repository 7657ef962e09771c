"""Kills, cuts, new topics and resets at random moments under load, for as long as one likes.

``SPARKSTORM_TROUBLE_SECS=600 python -m pytest tests/kafka/test_random_troubles.py`` goes on for ten
minutes; ``SPARKSTORM_TROUBLE_SEED`` repeats the dice of an earlier run. Afterwards each record is
looked for: it was processed, or is a dead letter, or the log had lost it before it was read, which
the spout has counted and said. The evidence (ordeal/evidence.py) stays in the test's folder.
"""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.ordeal.judge import hopeless, judge
from tests.kafka.ordeal.troubles import CUTS, KILLS, PARTITIONS, Ordeal

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

_SECS = float(os.environ.get("SPARKSTORM_TROUBLE_SECS", "60"))
_MOST_SECS = _SECS + 2400.0


def _dice() -> tuple[int, random.Random]:
    seed = int(os.environ.get("SPARKSTORM_TROUBLE_SEED") or random.randrange(10**6))
    return seed, random.Random(seed)


@pytest.mark.timeout(600)
def test_nothing_is_processed_twice_when_nothing_is_killed(
    mortal_kafka: Any, tmp_path: Path
) -> None:
    """The rules' own test: without troubles each record is processed once, or a dead letter."""
    play = Ordeal(mortal_kafka, mortal_kafka.topic(PARTITIONS), tmp_path)
    play.load.burst(5000)
    play.finish()
    book = play.book()
    given = set(book.given)
    assert sorted(book.arrived) == sorted(given - hopeless(given))
    assert book.dead == hopeless(given)
    assert not judge(book).faults


@pytest.mark.timeout(_MOST_SECS)
@pytest.mark.parametrize(
    "kinds",
    [KILLS, KILLS + CUTS, (*KILLS, *CUTS, "remake")],
    ids=["kills", "cuts", "new-topics"],
)
def test_each_record_is_processed_or_accounted_for(
    mortal_kafka: Any, tmp_path: Path, kinds: tuple[str, ...]
) -> None:
    """At least once: the spout has said which offsets the log lost before they were read."""
    seed, dice = _dice()
    play = Ordeal(mortal_kafka, mortal_kafka.topic(PARTITIONS), tmp_path)
    play.suffer(dice, kinds, _SECS)
    book = play.book()
    found = judge(book)
    story = (
        f"seed {seed}, {dict(play.troubles)}, {len(book.lives)} topics, {len(book.given)} written, "
        f"{dict(found.fates)}, expired {book.counted}"
    )
    (tmp_path / "story.txt").write_text("\n".join([story, *found.faults]))
    assert book.given, story
    assert not found.faults, "\n".join([story, *found.faults[:10]])


@pytest.mark.timeout(_MOST_SECS)
def test_each_record_is_written_once_under_random_kills(mortal_kafka: Any, tmp_path: Path) -> None:
    """Exactly once: each number is in the sink's topic once, and the counts have no gap."""
    (seed, dice), target = _dice(), mortal_kafka.topic()
    play = Ordeal(mortal_kafka, mortal_kafka.topic(PARTITIONS), tmp_path, sink=target)
    play.suffer(dice, KILLS, _SECS)
    rows = [json.loads(message.value()) for message in mortal_kafka.read_to_end(target)]
    book = play.book()
    given = set(book.given)
    story = f"seed {seed}, {dict(play.troubles)}, {len(given)} written, {len(rows)} in the sink"
    (tmp_path / "story.txt").write_text(story)
    assert sorted(row[0] for row in rows) == sorted(given - hopeless(given)), story
    counts: dict[str, list[int]] = {}
    for _, digits, count in rows:
        counts.setdefault(digits, []).append(count)
    assert all(sorted(found) == [*range(1, len(found) + 1)] for found in counts.values()), story
    assert book.dead == hopeless(given), story
