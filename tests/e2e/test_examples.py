"""The examples do what they say."""

import re
import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from sparkstorm import ConfigError
from sparkstorm.cli.loading import load
from sparkstorm.planning.plan import StreamKey
from sparkstorm.testing import PATIENCE_SECS, LocalRunner, ManualClock, complete_topology

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def test_word_count_without_spark() -> None:
    lines = [["b a"], ["a"]]
    topology = load(str(EXAMPLES / "word_count.py")).topology
    done = complete_topology(topology, mock_sources={"lines": lines})
    assert sorted(done.values("count")) == [("a", 1), ("a", 2), ("b", 1)]
    assert done.statistics.acked == 2


def test_word_count_in_yaml() -> None:
    """The same bolts, wired by a file; its spout reads what the property says."""
    loaded = load(str(EXAMPLES / "word_count.yaml"), ["text=README.md"])
    done = complete_topology(loaded.topology, mock_sources={"lines": [["b a"], ["a"]]})
    assert sorted(done.values("count")) == [("a", 1), ("a", 2), ("b", 1)]
    assert (loaded.name, loaded.settings) == ("words", {"topology.max.spout.pending": 10000})


def test_the_concurrent_bolt_looks_up_everything() -> None:
    topology = load(str(EXAMPLES / "concurrent_bolt.py"), ["40"]).topology
    done = complete_topology(topology)
    assert done.values("look-up") == [(number, number**2) for number in range(40)]


def test_rolling_top_words_are_those_of_the_last_seconds() -> None:
    """Each ranking is that of a plain count, over the seconds that the counters knew by then."""
    loaded = load(str(EXAMPLES / "rolling_top_words.py"), ["9"]).topology
    spoken: list[list[str]] = []
    rankings: list[dict[str, int]] = []

    def on_tap(key: StreamKey, task: int, rows: list[tuple[Any, ...]]) -> None:
        if key.component == "words":
            spoken[-1] += [word for (word,) in rows]
        else:
            rankings.extend(ranking for (ranking,) in rows)

    clock = ManualClock()
    with LocalRunner(loaded, clock=clock, taps=["words", "merge"], on_tap=on_tap) as runner:
        for _ in range(20):
            clock.advance(1.0)
            spoken.append([])
            runner.run_until_idle()
        assert runner.coordinator.drained
        assert runner.statistics().acked == sum(map(len, spoken)) == 9 * 400
    # a tick rides at the front of its batch, so the counts of that one are not among them yet
    for batch, ranking in enumerate(rankings, 1):
        counts = Counter(chain.from_iterable(spoken[max(0, batch - 4) : batch]))
        best = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)[:3]
        assert ranking == dict(best)
    assert len(rankings) == 12
    assert [max(ranking, key=ranking.__getitem__) for ranking in rankings[3::4]] == [
        "ack",
        "anchor",
        "batch",
    ]


@pytest.mark.slow
@pytest.mark.e2e
def test_rolling_top_words_on_spark() -> None:
    """Ticks come while the words do, and after them; the run ends all the same."""
    script = str(EXAMPLES / "rolling_top_words.py")
    command = [sys.executable, "-m", "sparkstorm", "run", script, "--available-now"]
    done = subprocess.run(
        [*command, "--", "6", "600"],  # a busy machine may take longer than 5 seconds for a batch
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
    )
    assert done.returncode == 0, done.stderr
    assert "2,400 acked, 0 failed" in done.stderr
    assert re.search(r"merge │ (\w+ \d+  ){2}\w+ \d+", done.stderr), done.stderr


@pytest.mark.slow
@pytest.mark.e2e
def test_the_hosted_spout_gets_everything_through_by_retrying() -> None:
    command = [sys.executable, "-m", "sparkstorm", "run", str(EXAMPLES / "hosted_spout.py")]
    done = subprocess.run(
        [*command, "--available-now", "--", "30"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
    )
    assert done.returncode == 0, done.stderr
    assert "messages: 30 acked, 30 failed attempts (30 failed), 0 given up" in done.stderr


@pytest.mark.e2e
def test_the_snippet_of_the_readme_runs_as_a_script(tmp_path: Path) -> None:
    """The classes of a script work in the workers."""
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "words.py").write_text(snippet)
    (tmp_path / "book.txt").write_text("a b\na\n" * 20)
    done = subprocess.run(
        [sys.executable, "words.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
    )
    assert done.returncode == 0, done.stderr
    assert "40 messages acked, 0 failed attempts, 0 given up, 0 pending" in done.stdout


@pytest.mark.e2e
@pytest.mark.slow
def test_kafka_enrich_brings_each_order_to_one_topic_or_the_other() -> None:
    """It starts a broker of its own; the one order that is none becomes a dead letter."""
    command = [sys.executable, str(EXAMPLES / "kafka_enrich.py"), "--demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECS)
    assert done.returncode == 0, done.stderr
    assert "100 orders enriched, 1 dead letter\n" in done.stdout
    assert "committed up to 101, 0 behind\n" in done.stdout


@pytest.mark.e2e
@pytest.mark.slow
def test_word_count_is_a_script_too() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "word_count.py")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
    )
    assert done.returncode == 0, done.stderr
    assert "lines acked, 0 pending" in done.stdout


def test_kafka_enrich_says_what_it_needs() -> None:
    topology = load(str(EXAMPLES / "kafka_enrich.py"), ["broker:9092", "a", "b", "c"]).topology
    assert str(topology) == "Topology(orders, enrich, sink)"
    with pytest.raises(ConfigError, match="name broker, source, target and dead letters"):
        load(str(EXAMPLES / "kafka_enrich.py"))
