"""Spout tasks in the driver: what is pending, and to whom which verdict goes."""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import sparkstorm as ss
from sparkstorm.acking.failed import FailedRoots
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.dead_letters import DeadLetterQueue, LetterStore
from sparkstorm.planning.passes import make_plan
from sparkstorm.planning.plan import Plan
from sparkstorm.sources.hosted.task import HostedTask
from sparkstorm.sources.partitioned.task import PartitionedTask
from sparkstorm.sources.source import Order, RootNumbers
from sparkstorm.testing import FeederSpout, ManualClock

LOST = ss.Failure(reason=ss.Reason.LOST)


class Numbers(ss.PartitionedSpout):
    """Splits of ten numbers; remembers its verdicts."""

    outputs = "n int"

    def __init__(self, total: int = 30) -> None:
        self.total = total
        self.planned = 0
        self.acked: list[tuple[int, Any]] = []
        self.failed: list[tuple[int, Any]] = []
        self.texts: list[str] = []

    def plan(self, limit: int) -> list[ss.Split]:
        count = min(10, limit, self.total - self.planned)
        split = ss.Split(count=count, data={"from": self.planned}, size=count)
        self.planned += count
        return [split] if count else []

    def read(self, split: ss.Split) -> list[tuple[int]]:
        return [(split.data["from"] + n,) for n in range(split.count)]

    def ack(self, split: ss.Split, positions: Any) -> None:
        self.acked.append((split.data["from"], positions))

    def fail(self, split: ss.Split, positions: Any, failure: ss.Failure) -> None:
        self.failed.append((split.data["from"], positions))
        self.texts.append(failure.message)

    def merge(self, splits: Sequence[ss.Split]) -> list[ss.Split]:
        """Read what failed of the same ten together."""
        only: dict[int, list[int]] = {}
        for split in splits:
            only.setdefault(split.data["from"], []).extend(split.only or ())
        return [
            ss.Split(count=len(places), data={"from": start}, only=tuple(sorted(places)))
            for start, places in only.items()
        ]


class Pausing(ss.Spout):
    """One message, taken from its source before it is emitted or given up; looks in between."""

    outputs = "n int"

    def __init__(self, *, gives_up: bool) -> None:
        self.left = [7]
        self.gives_up = gives_up
        self.look: Callable[[], None] = lambda: None

    def open(self, config: ss.Config, context: ss.TaskContext, collector: Any) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        if not self.left:
            return
        number = self.left.pop()
        self.look()
        if self.gives_up:
            self.collector.give_up(number, LOST)
        else:
            self.collector.emit([number])

    def exhausted(self) -> bool:
        return not self.left


class Sink(ss.Bolt):
    """Acks."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


class Keeper(ss.StatefulBolt):
    """Keeps state."""

    def execute(self, tup: ss.Tuple) -> None:
        self.collector.ack(tup)


def plan_of(
    spout: Any,
    bolt: Any = None,
    *,
    name: str = "t",
    tasks: int = 2,
    partitions: int = 2,
    **config: Any,
) -> Plan:
    builder = ss.TopologyBuilder()
    builder.set_spout("spout", spout)
    builder.set_bolt("bolt", bolt or Sink(), parallelism=tasks).shuffle_grouping("spout")
    return make_plan(
        builder.create_topology(), name=name, config=ss.Config(**config), partitions=partitions
    )


def partitioned(store: LetterStore | None = None, **config: Any) -> PartitionedTask:
    plan = plan_of(Numbers(), **config)
    number = plan.tasks["spout"].start
    task = PartitionedTask(plan, "spout", number, dead_letters(store))
    task.recover(None, now=0.0)
    NUMBERS[task] = RootNumbers()
    return task


def spout_of(task: PartitionedTask) -> Numbers:
    assert isinstance(task.spout, Numbers)
    return task.spout


class Piece(NamedTuple):
    """A planned split."""

    split: ss.Split
    attempt: int
    since: float
    first: int | None


NUMBERS: "WeakKeyDictionary[object, RootNumbers]" = WeakKeyDictionary()


def ask(
    task: PartitionedTask, limit: int, pieces: int, *, fresh: bool, now: float, room: int = 10**9
) -> list[Piece]:
    """Plan what the task has for a batch."""
    order = Order(
        limit=limit,
        now=now,
        numbers=NUMBERS[task],
        fresh=fresh,
        room=room,
        partitions=pieces,
        pieces=pieces,
    )
    found = []
    for planned in task.plan(order):
        load = planned.load
        assert load.split is not None
        found.append(Piece(load.split, planned.attempt, planned.since, load.first))
    return found


def dead_letters(store: LetterStore | None = None) -> DeadLetterQueue:
    return DeadLetterQueue("t", store or LetterStore(MemoryFiles()), ManualClock())


def quoting(number: int) -> ss.Failure:
    """How a bolt fails that says in its error what it could not make sense of."""
    return ss.Failure(reason=ss.Reason.ERROR, component="bolt", message=f"what is {number}?")


def failed(pairs: Sequence[tuple[int, ss.Failure]]) -> FailedRoots:
    """Roots and how they failed."""
    return FailedRoots.of(dict(pairs))


def roots(first: int, positions: list[int]) -> Any:
    return np.array([first + position for position in positions], np.uint64)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: partitioned(), id="partitioned"),
        pytest.param(lambda: hosted(FeederSpout("n int")), id="hosted"),
    ],
)
def test_an_error_of_exhausted_is_the_spouts(
    make: Callable[[], PartitionedTask | HostedTask],
) -> None:
    """It is asked by whoever waits for the end of the run, and told as one of ``plan`` is."""
    task = make()

    def exhausted() -> bool:
        raise OSError("the log has a hole")

    task.spout.exhausted = exhausted  # type: ignore[method-assign]
    with pytest.raises(ss.ComponentError, match="' raised in exhausted: OSError: the log"):
        task.drained  # noqa: B018 - the look is the test


class TestSplit:
    def test_narrow_of_narrow_counts_in_the_whole_split(self) -> None:
        """Positions of a narrowed split are numbered anew; ``only`` keeps those of the source."""
        split = ss.Split(count=10, data={"a": 1}, size=1000)
        first = split.narrow([2, 4, 6, 8])
        second = first.narrow([1, 3])
        assert (first.count, first.only, first.size) == (4, (2, 4, 6, 8), 400)
        assert (second.count, second.only, second.size) == (2, (4, 8), 200)


class TestPartitionedTask:
    def test_acks_and_failures_reach_their_positions(self) -> None:
        """Every position ends once; what failed comes back narrowed, with a higher attempt."""
        task = partitioned(retry_backoff_secs=0)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        first = piece.first
        assert first is not None
        assert task.pending == 10
        task.deliver(roots(first, [0, 1, 5]), failed([(first + 3, LOST), (first + 4, LOST)]), now=0)
        assert spout_of(task).acked == [(0, [(0, 2), (5, 6)])]
        assert spout_of(task).failed == [(0, [(3, 5)])]
        assert task.pending == 7
        (again,) = ask(task, 10, 1, fresh=False, now=1)
        assert (again.split.only, again.attempt) == ((3, 4), 2)
        second = again.first
        assert second is not None
        task.deliver(roots(second, [1]), failed([(second, LOST)]), now=1)
        assert spout_of(task).acked[-1] == (0, [(1, 2)])
        (third,) = ask(task, 10, 1, fresh=False, now=9)
        assert (third.split.only, third.attempt, third.since) == ((3,), 3, piece.since)

    def test_outstanding_is_what_is_owed(self) -> None:
        """What is neither ended nor committing is owed: the rest of splits, and retries."""
        task = partitioned(retry_backoff_secs=5)
        plans = ask(task, 20, 2, fresh=True, now=0)
        firsts = [piece.first for piece in plans]
        first, second = firsts
        assert first is not None
        assert second is not None
        task.deliver(roots(first, list(range(8))), failed([(first + 8, LOST)]), now=0)
        owed = {
            (o.split.data["from"], o.split.only, o.attempt)
            for o in task.progress({second}).outstanding
        }
        assert owed == {(0, (9,), 1), (0, (8,), 2)}
        everything = task.progress(set()).outstanding
        assert sum(item.split.count for item in everything) == task.pending == 12
        assert not task.drained

    def test_retries_do_not_hold_back_fresh_messages(self) -> None:
        """A batch holds what is due and fresh messages side by side."""
        task = partitioned(retry_backoff_secs=0)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        first = piece.first
        assert first is not None
        task.deliver(roots(first, []), failed([(first, LOST)]), now=0)
        planned = ask(task, 10, 1, fresh=True, now=1)
        assert [(s.data["from"], s.count, a) for s, a, *_ in planned] == [(0, 1, 2), (10, 9, 1)]

    def test_retries_and_fresh_messages_share_what_is_wanted(self) -> None:
        """However much is due: after an outage that was once a batch far above its limit."""
        task = partitioned(retry_backoff_secs=0)
        pieces = ask(task, 20, 2, fresh=True, now=0)
        for piece in pieces:
            first = piece.first
            assert first is not None
            task.deliver(roots(first, []), failed([(first + n, LOST) for n in range(10)]), now=0)
        planned = ask(task, 6, 1, fresh=True, now=1)
        assert [(s.only, s.count, a) for s, a, *_ in planned] == [((0, 1, 2), 3, 2), (None, 3, 1)]
        planned = ask(task, 6, 1, fresh=True, now=1, room=0)
        assert [(s.only, s.count, a) for s, a, *_ in planned] == [((3, 4, 5, 6, 7, 8), 6, 2)]
        planned = ask(task, 6, 1, fresh=False, now=1)
        assert {(s.data["from"], s.only) for s, *_ in planned} == {
            (0, (9,)),
            (10, (0, 1, 2, 3, 4)),
        }
        assert task.pending - task.in_flight == 5

    def test_neither_retries_nor_fresh_messages_wait_for_ever(self) -> None:
        """If only one message is wanted at a time, they take turns."""
        task = partitioned(retry_backoff_secs=0)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        first = piece.first
        assert first is not None
        task.deliver(roots(first, []), failed([(first + n, LOST) for n in range(10)]), now=0)
        attempts = [a for _ in range(4) for _, a, *_ in ask(task, 1, 1, fresh=True, now=1)]
        assert sorted(attempts) == [1, 1, 2, 2]

    def test_retries_that_are_due_together_are_merged(self) -> None:
        """Messages that failed for different reasons are read together if their spout can."""
        task = partitioned(retry_backoff_secs=0)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        first = piece.first
        assert first is not None
        other = ss.Failure(reason=ss.Reason.ERROR, message="another")
        task.deliver(roots(first, []), failed([(first + 3, LOST), (first + 7, other)]), now=0)
        [merged] = ask(task, 10, 1, fresh=False, now=1)
        assert (merged.split.only, merged.attempt, merged.since) == ((3, 7), 2, piece.since)
        assert task.pending == task.in_flight

    def test_errors_that_quote_their_messages_are_retried_in_one_split(self) -> None:
        """They once made a split each, and so a load each, which read the whole of its source."""
        task = partitioned(retry_backoff_secs=5)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        first = piece.first
        assert first is not None
        task.deliver(roots(first, []), failed([(first + n, quoting(n)) for n in range(10)]), now=0)
        failures = spout_of(task).failed
        assert failures == [(0, [(n, n + 1)]) for n in range(10)], "each has its own text"
        [owed] = task.progress(set()).outstanding
        assert (owed.split.only, owed.attempt) == (tuple(range(10)), 2)
        assert spout_of(task).texts == [f"what is {n}?" for n in range(10)]

    def test_each_message_that_is_given_up_keeps_its_own_text(self) -> None:
        """Also if all of them fail in one way, and others for good."""
        store = LetterStore(MemoryFiles())
        task = partitioned(store=store, max_retries=0)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        first = piece.first
        assert first is not None
        final = replace(quoting(9), final=True)
        tried = [(first + n, quoting(n)) for n in range(9)]
        task.deliver(roots(first, []), failed([*tried, (first + 9, final)]), now=0)
        letters = {letter.values: letter.failure.message for letter in store.letters()}
        assert letters == {(n,): f"what is {n}?" for n in range(10)}
        assert (task.given_up, task.progress(set()).outstanding) == (10, [])

    def test_what_is_final_is_not_retried_with_what_is_not(self) -> None:
        """One component may fail messages in both ways."""
        task = partitioned(retry_backoff_secs=0)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        first = piece.first
        assert first is not None
        final = replace(quoting(0), final=True)
        task.deliver(roots(first, []), failed([(first + 3, quoting(0)), (first + 4, final)]), now=0)
        assert task.given_up == 1
        assert [piece.split.only for piece in ask(task, 10, 1, fresh=False, now=1)] == [(3,)]

    def test_what_was_no_attempt_does_not_count(self) -> None:
        """While the source is away nothing is given up, whatever the limit."""
        task = partitioned(max_retries=0, retry_backoff_secs=1)
        away = ss.Failure(reason=ss.Reason.ERROR, message="away", counted=False)
        (piece,) = ask(task, 10, 1, fresh=True, now=0)
        for turn in range(5):
            first = piece.first
            assert first is not None
            task.deliver(roots(first, []), failed([(first + n, away) for n in range(10)]), now=turn)
            assert not ask(task, 10, 1, fresh=False, now=turn + 0.5), "it waits before it tries"
            (piece,) = ask(task, 10, 1, fresh=False, now=turn + 1)
            assert (piece.split.count, piece.attempt) == (10, 1)
        assert task.given_up == 0


def hosted(spout: ss.Spout) -> HostedTask:
    plan = plan_of(spout)
    number = plan.tasks["spout"].start
    task = HostedTask(plan, "spout", number, threading.Event(), dead_letters())
    task.open()
    return task


class TestHostedTask:
    @pytest.mark.parametrize("gives_up", [False, True])
    def test_a_spout_is_not_done_while_it_holds_its_last_message(self, gives_up: bool) -> None:
        """What next_tuple has taken and not emitted or given up yet keeps a run from draining."""
        task = hosted(Pausing(gives_up=gives_up))
        assert isinstance(task.spout, Pausing)
        seen: list[bool] = []
        task.spout.look = lambda: seen.append(task.drained)
        assert task.step(100) is not gives_up
        seen.append(task.drained)
        assert seen == [False, gives_up]
        assert task.given_up == int(gives_up)

    @pytest.mark.parametrize("seed", range(5))
    def test_verdicts_go_to_the_right_ids_in_any_order(self, seed: int) -> None:
        """Verdicts of several batches, late and mixed, reach exactly the messages meant."""
        feeder = FeederSpout("n int")
        task = hosted(feeder)
        id_of: dict[int, int] = {}
        numbers = RootNumbers()
        for batch in range(4):
            for message in range(5):
                feeder.feed([message], msg_id=10 * batch + message)
                assert task.step(100)
            (planned,) = task.plan(Order(limit=5, now=0, numbers=numbers))
            load = planned.load
            assert (load.count, planned.attempt) == (5, 1)
            assert load.first is not None
            id_of.update({load.first + n: 10 * batch + n for n in range(5)})
        assert task.pending == 20
        order = sorted(id_of)
        random.Random(seed).shuffle(order)
        for root in order:
            if root % 3:
                task.deliver(np.array([root], np.uint64), failed([]), 0)
            else:
                task.deliver(np.array([], np.uint64), failed([(root, LOST)]), 0)
            task.deliver(
                np.array([root], np.uint64), failed([]), 0
            )  # a second verdict is passed over
        assert feeder.acked == [id_of[root] for root in order if root % 3]
        assert feeder.failed == [id_of[root] for root in order if not root % 3]
        assert task.pending == 0
