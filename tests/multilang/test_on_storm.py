"""Our bolts as children of a real Apache Storm, from Maven Central."""

import sys
from pathlib import Path

import pytest

from sparkstorm.testing import PATIENCE_SECS
from tests.tools.storm import count_on_storm

pytestmark = [pytest.mark.e2e, pytest.mark.process, pytest.mark.slow]

SENTENCES = ("to be or not to be", "that is the question", "ünïcode too")


@pytest.mark.parametrize("name", ["Split", "AckLate"])
def test_a_bolt_of_ours_counts_exactly_under_storm(tmp_path: Path, name: str) -> None:
    """Every sentence is acked, every word counted once, whether it acks at once or in batches."""
    file, words = tmp_path / "sentences.txt", Path(__file__).with_name("storm") / "words.py"
    file.write_text("\n".join(SENTENCES), "utf-8")
    child = [sys.executable, "-m", "sparkstorm", "multilang", f"{words}:{name}"]
    found = count_on_storm(file, 3000, child, secs=PATIENCE_SECS)
    every = [word for sentence in SENTENCES for word in sentence.split()]
    assert found.counts == {word: 1000 * every.count(word) for word in every}
