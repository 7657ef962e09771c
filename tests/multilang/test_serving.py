"""Our components as children: of the suite, and of our own shell components."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.multilang import ShellBolt, ShellSpout
from sparkstorm.testing import FeederSpout, LocalRunner
from sparkstorm.testing.shells import check_shell_bolt, check_shell_spout

pytestmark = [pytest.mark.e2e, pytest.mark.process]

FILE = str(Path(__file__).with_name("served.py"))


def served(name: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "sparkstorm", "multilang", f"{FILE}:{name}", *options]


class Collect(ss.BasicBolt):
    """Takes what comes."""

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Emit nothing."""


@pytest.mark.parametrize("name", ["Split", "ready", "Hold", "Wait"])
def test_a_bolt_passes_the_suite(name: str) -> None:
    """Prints of Python, C and children do not disturb it, nor does a handshake after them."""
    emitted = check_shell_bolt(served(name), [["to be"], ["or"]])
    words = {"Hold": ["to be!", "or!"], "Wait": ["to be", "or"]}.get(name, ["to", "be", "or"])
    assert sorted(emitted) == sorted((word,) for word in words)


def test_a_spout_passes_the_suite() -> None:
    """Its ids are tuples, which the protocol does not have."""
    emitted = check_shell_spout(served("Numbers", "--arg", "limit=3"))
    assert [value for (value,) in emitted][:3] == [1, 2, 3]


def run(spout: Any, bolt: Any, config: dict[str, Any] | None = None) -> tuple[Any, Any]:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    builder.set_bolt("bolt", bolt).shuffle_grouping("spout")
    builder.set_bolt("end", Collect()).shuffle_grouping("bolt")
    seen: list[Any] = []
    settings = ss.Config(**(config or {}), max_retries=0)
    with LocalRunner(
        builder.create_topology(),
        config=settings,
        taps=["bolt"],
        on_tap=lambda key, task, rows: seen.extend(rows),
    ) as runner:
        while runner.statistics().acked + runner.statistics().failed < 4:
            runner.step()
        return runner.statistics(), seen


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_a_bolt_works_under_our_own_parent(
    serializer: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its class runs here and there; prints come out in the log; what raises fails."""
    caplog.set_level(logging.INFO)
    command = served("Split", "--serializer", serializer)
    feed = FeederSpout("text string")
    for number, text in enumerate(["to be", "", "or not", "to"]):
        feed.feed([text], msg_id=number)
    statistics, seen = run(feed, ShellBolt(command, outputs=["value"], serializer=serializer))
    assert sorted(seen) == [("be",), ("not",), ("or",), ("to",), ("to",)]
    assert (statistics.acked, statistics.failed) == (3, 1)
    assert {"printed by Python", "printed by C", "printed by a child"} <= {*caplog.messages}
    assert "printed while the module is loaded" in caplog.text
    assert "ValueError: an empty text" in caplog.text


def test_wrong_emits_fail_their_tuple(caplog: pytest.LogCaptureFixture) -> None:
    """And no other: nothing of them was written."""
    feed = FeederSpout("text string")
    for text in ("bytes", "width", "text", "fine"):
        feed.feed([text], msg_id=text)
    statistics, seen = run(feed, ShellBolt(served("Odd"), outputs=["value"]))
    assert seen == [("fine",)]
    assert (statistics.acked, statistics.failed) == (1, 3)
    assert "emit" in caplog.text


def test_a_spout_works_under_our_own_parent() -> None:
    """It hears of its messages by the ids that it gave."""
    shell = ShellSpout(served("Numbers", "--arg", "limit=4"), outputs=["value"])
    statistics, seen = run(shell, ShellBolt(served("Wait"), outputs=["value"]))
    assert sorted(seen) == [(1,), (2,), (3,), (4,)]
    assert statistics.acked == 4


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Keeps", "keeps state or processes with Spark's batches"),
        ("Nothing", "defines no 'Nothing'"),
        ("subprocess", "cannot be served: give a Spout, a Bolt or a BasicBolt"),
    ],
)
def test_what_cannot_be_served_is_refused(name: str, words: str) -> None:
    """On standard error, in one sentence; standard output stays the protocol's."""
    handshake = (
        '{"conf":{},"pidDir":"/tmp","context":{"componentid":"a","taskid":1,'
        '"task->component":{"1":"a"}}}\nend\n'
    )
    done = subprocess.run(served(name), input=handshake, capture_output=True, text=True)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_by_hand_it_says_who_starts_it() -> None:
    """Somebody tries it in a terminal."""
    done = subprocess.run(served("Split"), input="", capture_output=True, text=True)
    assert done.returncode == 2
    assert "this command is started by a parent" in done.stderr
