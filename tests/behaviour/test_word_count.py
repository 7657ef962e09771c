"""Word count of real text is exact, with every parallelism, tracked or not, on both runners."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyspark
import pytest

import sparkstorm as ss
from sparkstorm.spouts import LinesSpout
from tests.tools.word_count import word_count


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 2 MB of real text: the licence texts inside PySpark, over and over."""
    root = Path(pyspark.__file__).parent
    licences = sorted(path for path in (root / "licenses").iterdir() if path.is_file())
    whole = b"\n".join(path.read_bytes() for path in licences)
    path = tmp_path_factory.mktemp("text") / "licences.txt"
    path.write_bytes((whole + b"\n") * (2_000_000 // len(whole) + 1))
    assert path.stat().st_size > 2_000_000
    return path


@pytest.fixture(scope="session")
def truth(text: Path) -> tuple[Counter[str], int]:
    """The words, counted independently, and the number of lines."""
    data = text.read_bytes().decode("utf-8", "replace")
    return Counter(data.split()), data.count("\n")


def check(play: Any, statistics: ss.Statistics, truth: tuple[Counter[str], int]) -> None:
    words, lines = truth
    counted: dict[str, int] = {}
    for word, count in play.emitted("count"):
        counted[word] = max(count, counted.get(word, 0))
    assert counted == words
    assert len(play.emitted("count")) == words.total()
    assert (statistics.acked, statistics.pending, statistics.failed) == (lines, 0, 0)


@pytest.mark.parametrize("ackers", [0, 1, 4])
@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_every_parallelism(
    run_locally: Any, text: Path, truth: Any, parallelism: int, ackers: int
) -> None:
    """The counts are exact and every line is acked, whatever the numbers of tasks and ackers."""
    config = {"acker_executors": ackers, "batch_max_messages": 20_000}
    with run_locally(word_count(LinesSpout(text), parallelism=parallelism), config) as play:
        check(play, play.drain(), truth)


@pytest.mark.spark
@pytest.mark.parametrize(("parallelism", "ackers"), [(1, 1), (2, 4), (7, 0)])
def test_on_spark(run_on_spark: Any, text: Path, truth: Any, parallelism: int, ackers: int) -> None:
    """The same through Spark's exchanges and state store."""
    with run_on_spark(
        word_count(LinesSpout(text), parallelism=parallelism), {"acker_executors": ackers}
    ) as play:
        check(play, play.drain(), truth)
