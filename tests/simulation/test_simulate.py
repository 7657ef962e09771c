"""What the simulation offers to users: it finds what is wrong with a topology of theirs."""

from collections import Counter
from random import Random
from typing import Any

import pytest

import sparkstorm as ss
from sparkstorm.testing import (
    BrokenPromise,
    Faults,
    LogSpout,
    Observer,
    Outcome,
    RequeueSpout,
    Simulation,
    simulate,
)
from sparkstorm.testing.internal.witness import Message
from tests.tools.word_count import WordCount

ROWS = [[f"w{n % 4}"] for n in range(12)]


class Careless(ss.BasicBolt):
    """Emits what depends on when it runs."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple, collector: ss.BasicCollector) -> None:
        collector.emit([f"{Random().random()}"])


class Stubborn(ss.Bolt):
    """Fails one word, always."""

    outputs = "word string"

    def execute(self, tup: ss.Tuple) -> None:
        if tup["word"] == "w1":
            self.collector.fail(tup, "never")
        else:
            self.collector.ack(tup)


class Endless(ss.Spout):
    """Emits every message again, even when it was acked."""

    outputs = "word string"

    def open(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        self._collector = collector

    def next_tuple(self) -> None:
        self._collector.emit(["again"], msg_id=1)


def topology(bolt: Any, spout: Any = None) -> ss.Topology:
    """One spout, one bolt of two tasks."""
    builder = ss.TopologyBuilder()
    builder.set_spout("words", spout or RequeueSpout(ROWS, "word string"))
    builder.set_bolt("bolt", bolt, 2).fields_grouping("words", "word")
    return builder.create_topology()


SMALL = ss.Config(batch_min_messages=3, batch_max_messages=3, retry_backoff_secs=0.1, max_retries=2)


def play(bolt: Any, spout: Any = None, **options: Any) -> Outcome:
    """Run it."""
    return simulate(topology(bolt, spout), config=SMALL, **options)


@pytest.mark.parametrize("kind", [RequeueSpout, LogSpout])
@pytest.mark.parametrize("seed", range(8))
def test_state_and_tuples_are_those_of_committed_batches(kind: Any, seed: int) -> None:
    """Whatever was run in vain has left nothing: neither tuples nor counts."""
    outcome = play(WordCount(), kind(ROWS, "word string"), seed=seed, faults=Faults(crash=0.05))
    counted = Counter(word for word, _ in outcome.values("bolt"))
    assert outcome.state["bolt"] == counted
    assert sorted(n for _, n in outcome.acked) == list(range(len(ROWS)))
    assert all(counted[f"w{n}"] >= 3 for n in range(4))


@pytest.mark.parametrize("kind", [RequeueSpout, LogSpout])
def test_what_always_fails_is_given_up_after_the_limit(kind: Any) -> None:
    """Three attempts of each of three messages; all others are acked."""
    outcome = play(Stubborn(), kind(ROWS, "word string"), faults=Faults.none())
    assert sorted(n for _, n in outcome.given_up) == [1, 5, 9]
    assert outcome.failures == {"failed": 9}
    assert len(outcome.acked) == 9


def test_a_bolt_that_is_not_deterministic_is_named() -> None:
    """Unless it is said to be meant so."""
    often = Faults.only(repeated_task=0.5)
    with pytest.raises(BrokenPromise, match=r"'bolt'.*sent other packets.*reproducible=False"):
        play(Careless(), faults=often)
    assert len(play(Careless(), faults=often, reproducible=False).acked) == 12


def test_a_spout_that_never_ends_does_not_drain() -> None:
    """The report has the seed, the settings and what happened."""
    with pytest.raises(BrokenPromise) as broken:
        play(Stubborn(), Endless(), seed=77, turns=1, faults=Faults.only(crash=1.0))
    report = str(broken.value)
    assert report.startswith("not drained 400 turns after the last fault")
    assert "seed=77 repeats it" in report
    assert "Faults(crash=1.0" in report
    assert "('words', 1): acked" in report
    assert "lines before" in report


class Doubting(Observer):
    """Breaks off when it sees an ack."""

    def verdict(self, message: Message, failure: ss.Failure | None) -> None:
        raise BrokenPromise(f"{message} has a verdict")


def test_checks_of_ones_own() -> None:
    """An observer may look at everything and object."""
    with pytest.raises(BrokenPromise, match=r"\('words', 0\) has a verdict(.|\n)*seed=0"):
        play(WordCount(), faults=Faults.none(), observer=Doubting())


def test_a_likelihood_is_checked() -> None:
    """A fault cannot be likelier than certain, and a cluster has a process."""
    with pytest.raises(ValueError, match="crash is a probability from 0 to 1, not 2"):
        Faults(crash=2)
    with pytest.raises(ValueError, match="processes must be at least 1"):
        Faults(processes=0)


def test_a_verdict_without_an_emit_is_noticed() -> None:
    """The observer is not fooled: an ack of what nobody emitted, and one before any commit."""
    simulation = Simulation(topology(WordCount()), faults=Faults.none(), config=SMALL)
    [task] = simulation.runner.coordinator.hosted.values()
    with pytest.raises(BrokenPromise, match="has a verdict, but it is not pending there"):
        task.spout.ack(3)
    simulation.runner.ask_spouts()
    with pytest.raises(BrokenPromise, match="acked, and nothing was committed since its emit"):
        task.spout.ack(3)
