"""However runs are paused, killed and woken: what a run was told is durable, its successors know.

Each run is a thread that waits for its turn before every access to the files, so a schedule decides
between which two accesses a run is paused, and for how long.
"""

import threading
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkstorm.delivery.files import MemoryFiles
from sparkstorm.delivery.holder import Holder
from sparkstorm.delivery.journal import Journal
from sparkstorm.delivery.lease import Lease
from sparkstorm.delivery.plans import BatchPlan
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

        def stepped(*args: Any) -> Any:
            self._wait_for_turn()
            return act(*args)

        return stepped


class Run:
    """A run: takes the lease, reads the last plan, then renews and writes plans for ever."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.name = f"run-{number}"
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
        files: Any = SteppedFiles(world.files, self._turn)
        holder = Holder(run=self.name)
        lease = Lease(files, world.clock, holder, TIMEOUT, died=lambda h: h.run in world.dead)
        lease.acquire(sleep=lambda secs: self._turn())
        world.epochs.append(lease.epoch)
        journal = Journal(files, lease)
        last = journal.last()
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

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.clock = ManualClock()
        self.dead: set[str] = set()
        self.epochs: list[int] = []
        self.read: dict[int, int] = {}
        self.told: list[tuple[int, int]] = []
        self.ends: dict[str, BaseException] = {}
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


@settings(max_examples=300)
@given(st.lists(event, min_size=4, max_size=40))
def test_no_plan_that_spark_may_hear_of_is_unknown_to_a_later_run(events: list[Any]) -> None:
    """No epoch is given twice, and a run that read the last plan knows all plans told before.

    A plan is told only after the check that follows its writing. So one told by an earlier run
    must have been read by each later one: otherwise both could run it, unknown to each other.
    """
    world = World()
    try:
        for kind, number, amount in events:
            if kind == "time":
                world.clock.advance(amount)
            elif kind == "kill":
                world.kill(world.runs[number])
                world.runs[number] = Run(world, 100 + len(world.ends))
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
