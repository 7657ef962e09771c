"""Bulk writers: by size, at the end of the batch or by time; all of a write is acked, or fails."""

import json
from pathlib import Path
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.bolts import BulkWriterBolt, HoldingBulkWriterBolt
from sparkstorm.errors import ComponentError, TopologyError
from sparkstorm.testing import FeederSpout

PATIENT = {"message_timeout_secs": 600}


class Lines(BulkWriterBolt):
    """Appends a line per write to a file; refuses a write with a word that has a ``!``."""

    flush_size = 3

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, tuples: Any) -> None:
        append(self.path, [tup["word"] for tup in tuples])


class HeldLines(HoldingBulkWriterBolt):
    """The same over batches."""

    flush_size = 3
    flush_secs = 2.0

    def __init__(self, path: Path, secs: float = 2.0) -> None:
        self.path = path
        self.flush_secs = secs

    def write(self, tuples: Any) -> None:
        append(self.path, [tup["word"] for tup in tuples])


def append(path: Path, words: list[str]) -> None:
    if any("!" in word for word in words):
        raise OSError("disk is full")
    with path.open("a") as file:
        print(json.dumps(words), file=file)


def written(path: Path) -> list[list[str]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wired(bolt: ss.Bolt, tick: float | None = None) -> tuple[FeederSpout, ss.Topology]:
    feeder = FeederSpout("word string")
    builder = ss.TopologyBuilder()
    builder.set_spout("words", feeder)
    declared = builder.set_bolt("writer", bolt).shuffle_grouping("words")
    if tick is not None:
        declared.add_configuration("tick_tuple_freq_secs", tick)
    return feeder, builder.create_topology()


def feed(feeder: FeederSpout, words: str) -> None:
    for word in words.split():
        feeder.feed([word], msg_id=word)


def test_it_writes_by_size_and_at_the_end_of_the_batch(run_topology: Any, tmp_path: Path) -> None:
    """Nothing waits for another batch."""
    path = tmp_path / "lines"
    feeder, topology = wired(Lines(path))
    with run_topology(topology, PATIENT) as play:
        feed(feeder, "a b c d e f g")
        assert play.settle().failed == 0
        play.settle()
        assert sorted(word for line in written(path) for word in line) == list("abcdefg")
        assert max(map(len, written(path))) <= 3
        assert sorted(feeder.acked) == list("abcdefg")


def test_a_write_that_fails_fails_all_of_it(run_locally: Any, tmp_path: Path) -> None:
    """With the reason; other writes of the batch stand, and the traceback is shown."""
    path = tmp_path / "lines"
    feeder, topology = wired(Lines(path), tick=1.0)
    with run_locally(topology) as play:
        feed(feeder, "a b c d e! f g")
        play.settle()
        assert written(path) == [["a", "b", "c"], ["g"]]
        assert (sorted(feeder.acked), sorted(feeder.failed)) == (list("abcg"), ["d", "e!", "f"])
        assert {failure.message for failure in feeder.failures} == {"OSError: disk is full"}
        assert "Traceback" in "\n".join(play.texts("writer"))
        play.clock.advance(1.0)  # a tick is nothing to write
        play.settle()
        assert len(written(path)) == 2


def test_a_holding_one_waits_for_the_size_or_the_time(run_locally: Any, tmp_path: Path) -> None:
    """Over batches; acked with the write, and not before."""
    path = tmp_path / "lines"
    feeder, topology = wired(HeldLines(path))
    with run_locally(topology) as play:
        for words in ("a b", "c d", "e"):
            feed(feeder, words)
            play.settle()
            play.clock.advance(0.5)
        assert (written(path), feeder.acked) == ([["a", "b", "c"]], ["a", "b", "c"])
        play.clock.advance(0.5)  # d has waited 1.5 seconds
        play.settle()
        assert len(written(path)) == 1
        play.clock.advance(0.5)
        play.settle()
        assert written(path)[1:] == [["d", "e"]]
        assert play.statistics().pending == 0


def test_a_holding_one_writes_by_ticks(run_topology: Any, tmp_path: Path) -> None:
    """While nothing else comes, under both runners."""
    path = tmp_path / "lines"
    feeder, topology = wired(HeldLines(path, 1.0))
    with run_topology(topology, PATIENT) as play:
        feed(feeder, "a b")
        feeder.end()
        play.pass_time(lambda: len(feeder.acked) == 2)
        assert sorted(word for line in written(path) for word in line) == ["a", "b"]
        assert play.drain().failed == 0


def test_what_is_held_and_cannot_be_written_fails(run_locally: Any, tmp_path: Path) -> None:
    """It is held no longer; its message comes again."""
    path = tmp_path / "lines"
    feeder, topology = wired(HeldLines(path))
    with run_locally(topology) as play:
        feed(feeder, "a! b")
        play.settle()
        feed(feeder, "c d")
        play.settle()
        assert (written(path), sorted(feeder.failed)) == ([], ["a!", "b", "c"])
        assert play.statistics().pending == 1


def test_numbers_that_do_not_fit_are_refused(run_locally: Any, tmp_path: Path) -> None:
    """When it is wired; or, if the time-out is the matter, when it starts."""
    for name, bolt in {"flush_size": Lines(tmp_path), "flush_secs": HeldLines(tmp_path)}.items():
        setattr(bolt, name, 0)
        with pytest.raises(TopologyError, match=f"component 'writer': {name} is 0"):
            wired(bolt)
    feeder, topology = wired(HeldLines(tmp_path, 60.0))
    with run_locally(topology) as play:
        feed(feeder, "a")
        with pytest.raises(ComponentError, match=r"flush_secs = 60\.0, but tuples time out"):
            play.settle()
