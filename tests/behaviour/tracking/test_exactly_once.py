"""Batches that happen exactly once: as a whole, in order, and never twice."""

from collections import Counter
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.errors import SupersededError
from sparkstorm.testing import LogSpout, MemorySink

WORDS: list[list[Any]] = [[f"w{n % 7}", n] for n in range(60)]
ONCE = {
    "processing.guarantee": "exactly-once",
    "topology.batch.min.messages": 20,
    "topology.batch.max.messages": 20,
    "topology.retry.backoff.secs": 0.01,
    "topology.max.retries": 3,
}


class Count(ss.StatefulBolt):
    """Counts words, but fails some numbers at their first tries."""

    outputs = "word string, number long, count long"

    def __init__(self, tries: dict[int, int] | None = None) -> None:
        self._tries = tries or {}

    def execute(self, tup: ss.Tuple) -> None:
        count = self.state.get(tup["word"], 0) + 1
        self.state.put(tup["word"], count)
        self.collector.emit([tup["word"], tup["number"], count], anchors=tup)
        if tup.attempt < self._tries.get(tup["number"], 0):
            self.collector.fail(tup, "not yet")
        else:
            self.collector.ack(tup)


class Hoarder(ss.StatefulBolt):
    """Holds what it gets."""

    def execute(self, tup: ss.Tuple) -> None:
        self.state.tuples("held").add(None, tup)


class Forgetful(ss.CommitterBolt):
    """Applies what it gets and then says that it failed, the first time."""

    transient = ("raised",)

    def __init__(self) -> None:
        self.sink = MemorySink()
        self.raised: list[int] = []

    def commit(self, transaction: ss.Transaction, staged: Any) -> None:
        self.sink.commit(transaction, staged)
        if transaction.txid not in self.raised:
            self.raised.append(transaction.txid)
            raise ConnectionResetError("who knows whether that was stored")


class Broken(ss.CommitterBolt):
    """Cannot apply anything."""

    def commit(self, transaction: ss.Transaction, staged: Any) -> None:
        raise OSError("the disk is full")


class Superseded(ss.CommitterBolt):
    """Learns from its target that another run is there."""

    def commit(self, transaction: ss.Transaction, staged: Any) -> None:
        raise SupersededError("another run has taken over")


def topology(sink: ss.CommitterBolt, count: Any = None, words: Any = None) -> ss.Topology:
    """Words, counted and written."""
    builder = ss.TopologyBuilder()
    spout = LogSpout(WORDS if words is None else words, "word string, number long", split_rows=10)
    builder.set_spout("words", spout)
    builder.set_bolt("count", count or Count(), 2).fields_grouping("words", "word")
    builder.set_bolt("sink", sink, 2).shuffle_grouping("count")
    return builder.create_topology()


def counted(without: int | None = None) -> list[tuple[str, int, int]]:
    """What a count of all words emits, perhaps without one of them."""
    seen: Counter[str] = Counter()
    rows = []
    for word, number in WORDS:
        if number != without:
            seen[word] += 1
            rows.append((word, number, seen[word]))
    return rows


def test_a_failed_tuple_rolls_its_batch_back(run_topology: Any) -> None:
    """State and sink show each message once, in spite of two messages that fail at first."""
    sink = MemorySink()
    with run_topology(topology(sink, Count({5: 2, 45: 3})), ONCE) as play:
        statistics = play.drain()
    assert sorted(sink.rows) == sorted(counted())
    assert statistics.rollbacks == 3
    assert (statistics.acked, statistics.failed, statistics.given_up) == (60, 0, 0)
    assert sink.calls == sorted(set(sink.calls))


def test_what_fails_for_ever_is_left_out_of_its_batch(run_topology: Any) -> None:
    """It becomes a dead letter after all its tries, and counts go on as if it had never been."""
    sink = MemorySink()
    with run_topology(topology(sink, Count({3: 99})), ONCE) as play:
        statistics = play.drain()
    assert sorted(sink.rows) == sorted(counted(without=3))
    assert statistics.rollbacks == 4
    assert (statistics.acked, statistics.failed, statistics.given_up) == (59, 1, 1)
    assert statistics.failures == {"failed": 1}


def test_a_commit_that_raised_is_repeated(run_topology: Any) -> None:
    """With the same transaction, so that a sink that had applied it does nothing."""
    sink = Forgetful()
    with run_topology(topology(sink), ONCE) as play:
        play.drain()
    assert sorted(sink.sink.rows) == sorted(counted())
    assert len(sink.sink.calls) == 2 * len(set(sink.sink.calls))


def test_a_committer_that_cannot_ends_the_run(run_topology: Any) -> None:
    """After the tries that the retry policy allows, naming it and why."""
    with (
        pytest.raises(ss.CommitError, match=r"'sink' could not apply transaction 0 in 4 tries: OS"),
        run_topology(topology(Broken()), ONCE) as play,
    ):
        play.drain()


def test_a_committer_that_is_superseded_is_not_asked_again(run_topology: Any) -> None:
    """It would take over from the run that has taken over."""
    with (
        pytest.raises(SupersededError, match=r"^another run has taken over"),
        run_topology(topology(Superseded()), ONCE) as play,
    ):
        play.drain()


def test_a_batch_that_stages_nothing_is_not_applied(run_topology: Any) -> None:
    """A committer is not asked for nothing."""
    sink = MemorySink()
    with run_topology(topology(sink, words=[]), ONCE) as play:
        play.drain()
    assert sink.calls == []


def test_tuples_held_beyond_their_batch_end_the_run(run_topology: Any) -> None:
    """A batch that is not whole at its end can be neither committed nor rolled back."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", LogSpout(WORDS, "word string, number long"))
    builder.set_bolt("hoarder", Hoarder()).shuffle_grouping("words")
    with (
        pytest.raises(ss.ComponentError, match="'hoarder' held tuples beyond their batch"),
        run_topology(builder.create_topology(), ONCE) as play,
    ):
        play.drain()
