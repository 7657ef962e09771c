"""Mistakes in the program are final at once; what may be the world's fault is tried again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import LetterStore
from sparkstorm.spouts import IteratorSpout

Use = Callable[[Any, Any], Any]
"""What a bolt does with itself and a tuple."""


class Uses(ss.Bolt):
    """Does what it is told with each tuple."""

    outputs = "x string, n long"

    def __init__(self, use: Use) -> None:
        self.use = use

    def execute(self, tup: ss.Tuple) -> None:
        self.use(self, tup)
        self.collector.ack(tup)


class UsesBasic(ss.BasicBolt):
    """Does what it is told with itself and the collector."""

    outputs = "x string, n long"

    def __init__(self, use: Use) -> None:
        self.use = use

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        self.use(self, collector)


class Fails(ss.Bolt):
    """Fails each tuple with an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.fail(tup, self.error)


def helper(word: str) -> str:
    """Return the word."""
    return word


MISTAKES: dict[str, Any] = {
    "values one by one": Uses(lambda me, tup: me.collector.emit("a", 1)),
    "an argument that emit has not": Uses(lambda me, tup: me.collector.emit(["a", 1], id=1)),
    "no argument for fail": Uses(lambda me, tup: me.collector.fail()),
    "a call with wrong arguments": Uses(lambda me, tup: helper("a", 1)),  # type: ignore[call-arg]
    "a stream that is not declared": Uses(lambda me, tup: me.collector.emit(["a", 1], stream="z")),
    "too few values": Uses(lambda me, tup: me.collector.emit(["a"], anchors=tup)),
    "a value of another type": Uses(lambda me, tup: me.collector.emit(["a", "b"], anchors=tup)),
    "a field that is not there": Uses(lambda me, tup: tup["nope"]),
    "a value that is not there": Uses(lambda me, tup: tup[7]),
    "an attribute that a tuple has not": Uses(lambda me, tup: tup.nope),
    "a method that a collector has not": Uses(lambda me, tup: me.collector.emitt([1])),
    "a method that another collector has": UsesBasic(lambda me, collector: collector.ack(1)),
    "the collector of another kind of bolt": UsesBasic(lambda me, collector: me.collector),
    "an attribute that the bolt has not": UsesBasic(lambda me, collector: me.cuonts),
    "an ack of something else": Uses(lambda me, tup: me.collector.ack("a")),
    "a second ack": Uses(lambda me, tup: me.collector.ack(tup)),
    "an anchor of another type": Uses(lambda me, tup: me.collector.emit(["a", 1], anchors="a")),
    "a name that is not there": UsesBasic(lambda me, collector: nope),  # type: ignore[name-defined]  # noqa: F821
    "a mistake told to fail": Fails(NameError("nope")),
}

WORLDS: dict[str, Any] = {
    "a key that is not there": Uses(lambda me, tup: {"b": 1}["a"]),
    "a connection that is None": Uses(lambda me, tup: None.cursor),  # type: ignore[attr-defined]
    "a connection that is away": Uses(lambda me, tup: Path("/nowhere/at/all").read_text()),
    "a broken text": Uses(lambda me, tup: json.loads("{")),
    "a value of the input's": Uses(lambda me, tup: 1 + tup["x"]),
    "an error told to fail": Fails(KeyError("a")),
}


def attempts(run_locally: Any, bolt: Any) -> int:
    """Return how often a bolt is tried until its message is a dead letter."""
    builder = ss.TopologyBuilder()
    builder.set_spout("rows", IteratorSpout(["a"], "x string"))
    builder.set_bolt("bolt", bolt).shuffle_grouping("rows")
    files = MemoryFiles()
    config = {"max_retries": 2, "retry_backoff_secs": 0}
    with run_locally(builder.create_topology(), config, files=files) as play:
        play.drain()
    (letter,) = LetterStore(files).letters()
    tries: int = letter.attempts
    return tries


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_dead_letter_at_once(run_locally: Any, mistake: str) -> None:
    """Half an hour of retries would tell nothing new."""
    assert attempts(run_locally, MISTAKES[mistake]) == 1


@pytest.mark.parametrize("fault", WORLDS)
def test_a_fault_of_the_world_is_tried_again(run_locally: Any, fault: str) -> None:
    """It may be gone by then."""
    assert attempts(run_locally, WORLDS[fault]) == 3


class Opens(ss.BasicBolt):
    """Fails in a library while it is prepared."""

    def prepare(self, config: ss.Config, context: ss.TaskContext) -> None:
        json.loads("{")

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        """Do nothing."""


def test_a_preparation_that_failed_is_shown_by_the_users_own_line(run_locally: Any) -> None:
    """Not by the line of the library that raised."""
    shown = r"JSONDecodeError: .*test_mistakes\.py\", line \d+, in prepare\)"
    with pytest.raises(ss.ComponentError, match=f"'bolt' could not be prepared: {shown}"):
        attempts(run_locally, Opens())
