"""However runs are paused, killed and woken: what a run was told is durable, its successors know.

Each run is a thread that waits for its turn before every access to the files, so a schedule decides
between which two accesses a run is paused, and for how long. That holds where a file is created by
one access, also if the answer to it is lost; it does not where one looks first and then writes.
"""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstorm.batches.journal import Journal
from sparkstorm.batches.planning.batch_plan import BatchPlan
from sparkstorm.checkpoint.engine_log import EngineLog
from sparkstorm.checkpoint.files import MemoryFiles
from sparkstorm.checkpoint.holder import Holder
from sparkstorm.checkpoint.lease import Lease
from sparkstorm.errors import CheckpointError, SupersededError
from sparkstorm.testing import ManualClock

TIMEOUT = 10.0
RUNS = 4


class Killed(BaseException):
    """Ends a run's thread at its next access."""


class SteppedFiles:
    """The shared files, as one run sees them: each access waits for its turn."""

    def __init__(self, files: MemoryFiles, wait_for_turn: Callable[[], None]) -> None:
        self._files = files
        self._wait_for_turn = wait_for_turn

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._files, name)

        def stepped(*args: Any, **options: Any) -> Any:
            self._wait_for_turn()
            return act(*args, **options)

        return stepped


class AnswerLost(SteppedFiles):
    """A store whose client asks again when no answer comes, and then finds its own file there."""

    def create(self, name: str, data: bytes) -> bool:
        self._wait_for_turn()
        self._files.create(name, data)
        return False


class HeadThenPut(SteppedFiles):
    """An object store without conditions: its client looks whether an object is there, and writes.

    So does S3A for ``create(overwrite=false)`` without conditional creation.
    """

    def create(self, name: str, data: bytes) -> bool:
        self._wait_for_turn()
        if self._files.read(name) is not None:
            return False
        self._wait_for_turn()
        self._files.write(name, data)
        return True


class Run:
    """A run: takes the lease, reads the last plan, then renews and writes plans for ever."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.name = f"run-{number}"  # a name of its own, as each real run has
        self.killed = False
        self.ended = False
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()
        self._back.acquire()

    def step(self) -> None:
        """Let it do one access, and what follows up to the next."""
        if not self.ended:
            self._go.release()
            self._back.acquire()

    def _turn(self) -> None:
        self._back.release()
        self._go.acquire()
        if self.killed:
            raise Killed

    def _main(self) -> None:
        try:
            self._turn()
            self._live()
        except (Killed, CheckpointError) as end:
            self.world.ends[self.name] = end
        finally:
            self.ended = True
            self._back.release()

    def _live(self) -> None:
        world = self.world
        files: Any = world.store(world.files, self._turn)
        holder = Holder(run=self.name)
        lease = Lease(files, world.clock, holder, TIMEOUT, died=lambda h: h.run in world.dead)
        lease.acquire(sleep=lambda secs: self._turn())
        world.epochs.append(lease.epoch)
        journal = Journal(files, lease)
        told = max((number for _, number in world.told), default=-1)
        last = journal.last(EngineLog(heard=told, committed=told))
        number = -1 if last is None else last.number
        world.read[lease.epoch] = number
        for turn in range(1000):
            lease.renew()
            if turn % 7 == 6:
                lease.release()
                return
            number += 1
            journal.write_plan(BatchPlan(number=number, run=self.name))
            journal.purge()
            world.told.append((lease.epoch, number))


class World:
    """The checkpoint, the time and what happened."""

    def __init__(self, store: type[SteppedFiles] = SteppedFiles) -> None:
        self.store = store
        self.files = MemoryFiles()
        self.clock = ManualClock()
        self.dead: set[str] = set()
        self.epochs: list[int] = []
        self.read: dict[int, int] = {}
        self.told: list[tuple[int, int]] = []
        self.ends: dict[str, BaseException] = {}
        self.more = itertools.count(RUNS)
        self.runs = [Run(self, number) for number in range(RUNS)]

    def kill(self, run: Run) -> None:
        """End a process for good; its machine can tell."""
        run.killed = True
        run.step()
        self.dead.add(run.name)

    def close(self) -> None:
        for run in self.runs:
            self.kill(run)

    def overtake(self, run: Run) -> None:
        """Let one run go on while all others are paused, until it has the lease or is refused."""
        before = len(self.epochs)
        for _ in range(60):
            if run.ended or len(self.epochs) > before:
                return
            run.step()
            self.clock.advance(0.5)


numbers = st.integers(0, RUNS - 1)
event = st.one_of(
    st.tuples(st.just("step"), numbers, st.sampled_from([1, 2, 3, 5, 8, 13])),
    st.tuples(st.just("overtake"), numbers, st.just(0)),
    st.tuples(st.just("time"), st.just(0), st.sampled_from([1, 4, 11])),
    st.tuples(st.just("kill"), numbers, st.just(0)),
)


@settings(max_examples=settings().max_examples * 3)
@given(st.sampled_from([SteppedFiles, AnswerLost]), st.lists(event, min_size=4, max_size=40))
def test_no_plan_that_spark_may_hear_of_is_unknown_to_a_later_run(
    store: type[SteppedFiles], events: list[Any]
) -> None:
    """No epoch is given twice, and a run that read the last plan knows all plans told before.

    A plan is told only after the check that follows its writing. So one told by an earlier run
    must have been read by each later one: otherwise both could run it, unknown to each other.
    """
    world = World(store)
    try:
        for kind, number, amount in events:
            if kind == "time":
                world.clock.advance(amount)
            elif kind == "kill":
                world.kill(world.runs[number])
                world.runs[number] = Run(world, next(world.more))
            elif kind == "overtake":
                world.overtake(world.runs[number])
            else:
                for _ in range(amount):
                    world.runs[number].step()
    finally:
        world.close()
    assert len(set(world.epochs)) == len(world.epochs)
    for epoch, number in world.told:
        for later, known in world.read.items():
            assert later <= epoch or number <= known, (epoch, number, later, known)
    assert all(isinstance(end, Killed | CheckpointError) for end in world.ends.values())


def test_the_schedules_do_supersede() -> None:
    """A run that is paused between its write and the check behind it is not told."""
    world = World()
    first, second = world.runs[:2]
    try:
        while not any(name == "plans/1-1" for name in world.files._files):
            first.step()
        world.overtake(second)
        assert world.epochs == [1, 2]
        before = [told for told in world.told if told[0] == 1]
        while not first.ended:
            first.step()
        assert [told for told in world.told if told[0] == 1] == before
        assert isinstance(world.ends[first.name], SupersededError)
    finally:
        world.close()


def step_together(world: World) -> None:
    """Let two runs take turns until either is refused, or both have told of a plan."""
    runs = world.runs[:2]
    while not any(run.ended for run in runs) and len(world.told) < 2:
        for run in runs:
            run.step()


@pytest.mark.parametrize("store", [SteppedFiles, AnswerLost])
def test_of_two_that_begin_at_once_one_gets_the_first_epoch(store: type[SteppedFiles]) -> None:
    world = World(store)
    try:
        step_together(world)
        assert world.epochs == [1]
        assert isinstance(world.ends[world.runs[1].name], CheckpointError)
    finally:
        world.close()


def test_a_store_that_looks_before_it_writes_lets_both_pass() -> None:
    """Both are told that they have epoch 1, pass every check, and tell Spark plan 0.

    No protocol of ours mends that, so such a store is refused: ``spark/driver/storage/stores.py``.
    """
    world = World(HeadThenPut)
    try:
        step_together(world)
        assert world.epochs == [1, 1]
        assert world.told[:2] == [(1, 0), (1, 0)]
        assert not world.ends
    finally:
        world.close()
