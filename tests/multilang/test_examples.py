"""The example in four languages counts right, on an installation that has all of them."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkstorm.cli.loading import load
from sparkstorm.testing import complete_topology

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).parents[2] / "examples" / "multilang"


@pytest.fixture
def example(tmp_path: Path, needed: Callable[[str], str]) -> Path:
    """A copy of the example, its bolt in C compiled."""
    for program in ("node", "ruby", "perl"):
        needed(program)
    shutil.copytree(EXAMPLE, tmp_path / "multilang")
    folder = tmp_path / "multilang" / "resources"
    compiler = [needed("gcc"), "-Wall", "-Werror", "-O2", "-o", str(folder / "shout")]
    subprocess.run([*compiler, str(folder / "shout.c")], check=True)
    return tmp_path / "multilang" / "word_count.py"


def test_words_are_counted_in_four_languages(example: Path) -> None:
    lines = ["To be or not to be 42", "größer und Größer"] * 30
    done: Any = complete_topology(load(str(example), lines).topology)
    words = Counter(" ".join(lines).lower().replace(" 42", "").split())
    counted = Counter(dict(sorted(done.values("count"))))
    assert counted == words
    assert len(done.values("count")) == words.total()
    assert {word for (word,) in done.values("shout")} >= {"TO", "BE", "GRößER"}
    assert done.statistics.acked == 60
